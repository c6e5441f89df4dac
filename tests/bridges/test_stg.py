"""Task graphs of the Standard Task Graph Set: the forms of the format, computed by hand, and mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commandline import run

from placeopt.bridges.importers.imported import Imported, ImportOptions
from placeopt.bridges.importers.registry import import_file
from placeopt.errors import DocumentError
from placeopt.io.compiler import compile_spec
from placeopt.model.problem import Problem
from placeopt.orchestration.pipeline import solve

# The example of the set's page about the format: ten tasks, and two dummy tasks.
SAMPLE = """\
         10
          0          0          0
          1         20          1          0
          2          3          1          0
          3          4          1          0
          4          2          1          1
          5          3          3          2          3          4
          6         10          1          2
          7         20          2          3          4
          8          7          2          5          6
          9          5          2          6          7
         10          8          2          8          9
         11          0          1         10
# Standard Task Graph Set Project
# CP Length : 55
"""
# Costs on separate lines, and the number of processors; no dummy tasks.
COSTS = """\
# a comment before the first line
\t3\t2
\t0\t3\t0
\t1\t5\t1
\t\t\t\t0\t2
\t2\t2\t2
\t\t\t\t0\t1
\t\t\t\t1\t4
"""


def imported(folder: Path, text: str, **options: Any) -> Imported:
    path = folder / "graph.stg"
    path.write_text(text)
    return import_file(path, None, ImportOptions(**options))


def problem(folder: Path, text: str, **options: Any) -> Problem:
    return compile_spec(imported(folder, text, **options).document)


def complaints(folder: Path, text: str) -> list[str]:
    with pytest.raises(DocumentError, match=r"graph\.stg") as caught:
        imported(folder, text)
    return [str(issue).removeprefix(f"{folder / 'graph.stg'}:") for issue in caught.value.issues]


class TestForms:
    def test_without_costs(self, tmp_path: Path) -> None:
        found = imported(tmp_path, SAMPLE)
        assert found.notes == (
            "2 dummy tasks without time dropped: 0 and 11",
            "the problem has 4 identical processors; edit `devices`, or state --devices",
        )
        graph = compile_spec(found.document)
        assert graph.task_names == tuple(str(k) for k in range(1, 11))
        assert graph.n_edges == 13
        # A tick is a unit of time, so that objectives equal those of the literature.
        assert graph.duration.tolist() == [[t] * 4 for t in (20, 3, 4, 2, 3, 10, 20, 7, 5, 8)]
        assert not graph.transfer(graph.payload, 0, 1).any()
        assert solve(graph, "cp-sat", time_limit=10).objective == 55  # 20 + 2 + 20 + 5 + 8: tasks 1, 4, 7, 9, 10

    def test_with_costs(self, tmp_path: Path) -> None:
        for text in (COSTS, "3 2\n0 3 0\n1 5 1 0 2\n2 2 2 0 1 1 4\n"):  # on one line, too
            graph = problem(tmp_path, text)
            assert graph.device_names == ("processor0", "processor1")
            assert graph.duration[:, 0].tolist() == [3, 5, 2]
            assert not graph.shared.any()
            assert [int(graph.transfer(b, 0, 1)) for b in graph.payload] == [2, 1, 4]

    def test_the_prototype_has_an_exit_only(self, tmp_path: Path) -> None:
        found = imported(tmp_path, "2 3\n1 14 0\n2 20 1 1\n3 0 1 2\n")
        assert found.notes == ("1 dummy task without time dropped: 3",)
        assert compile_spec(found.document).n_devices == 3

    def test_dummy_tasks_with_costs_stay(self, tmp_path: Path) -> None:
        graph = problem(tmp_path, "1\n0 0 0\n1 3 1 0 5\n2 0 1 1 0\n")
        assert graph.task_names == ("0", "1", "2")

    def test_decimals_make_finer_ticks(self, tmp_path: Path) -> None:
        graph = problem(tmp_path, "2 2\n0 1.5 0\n1 2 1 0 0.25\n")
        assert graph.resolution == graph.resolution.__class__(1, 1000)
        assert graph.duration[:, 0].tolist() == [1500, 2000]
        assert int(graph.transfer(graph.payload[0], 0, 1)) == 250

    def test_devices(self, tmp_path: Path) -> None:
        alike = {"devices": {"cpu": {"count": 3, "memory": "1 GB"}}}
        assert problem(tmp_path, SAMPLE, network=alike).duration[:, 0].tolist()[:2] == [20, 3]
        unlike = {"devices": {"slow": {"speed": "3 GFLOP/s"}, "fast": {"speed": "6 GFLOP/s", "overhead": "5 ms"}}}
        found = imported(tmp_path, SAMPLE, network=unlike, name="x", resolution="1 us")
        assert found.notes[1].startswith("times hold for the slowest device")
        graph = compile_spec(found.document)
        assert graph.name == "x"
        assert graph.duration[0].tolist() == [20 * 10**6, 10 * 10**6 + 5000]
        with_costs = imported(tmp_path, COSTS, network={**alike, "links": {"default": {"bandwidth": "1 MB/s"}}})
        assert "communication costs hold for links of 1 GB/s; other links change them" in with_costs.notes
        described = "Payloads are communication costs: they hold for links of 1 GB/s."
        assert with_costs.document["description"] == described  # true on any links
        assert imported(tmp_path, COSTS).document["description"] == described.replace("1 GB/s", "1 B/s")
        slow = compile_spec(with_costs.document)  # links of 1 MB/s are a thousand times slower
        assert [int(slow.transfer(b, 0, 1)) for b in slow.payload] == [cost * 1000 * 10**9 for cost in (2, 1, 4)]
        latency = {"devices": {"cpu": {"count": 2}}, "links": {"default": {"latency": "3 us"}}}
        fast = problem(tmp_path, SAMPLE, network=latency)
        assert (fast.duration[0, 0], int(fast.transfer(0, 0, 1))) == (20 * 10**9, 3000)

    def test_recognised_without_the_ending(self, tmp_path: Path) -> None:
        path = tmp_path / "rand0000"
        path.write_text(SAMPLE)
        assert run("import", path).code == 0


class TestMistakes:
    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", " has no numbers; expected the number of tasks in the first line"),
            ("x\n1 2 0\n", '1:1: "x" is not a whole number'),
            ("# A page\n\nwith text\n\nof several lines\n", '3:1: "with" is not a whole number'),
            ("1 0\n1 2 0\n", "1:3: 0 is not a number of processors; expected 1 to 4096"),
            ("9\n1 2 0\n", "1: the file has 1 task; its first line states 9, so that 9 to 11 are expected"),
            ("1\n1 -2 0\n", '2:3: "-2" is not a time; expected a number that is not negative'),
            ("1\n1 nan 0\n", '2:3: "nan" is not a time'),
            ("1\n1 2\n", "2: has 2 numbers; expected the number of a task, its time, and the number of its"),
            ("1\n1 2 3 1\n", "2: task 1: expected 3 numbers for 3 predecessors; got 1"),
            ("2\n1 2 0\n1 2 0\n", "3: task 1 is stated twice, first in line 2"),
            ("2\n1 2 0\n2 2 1 7\n", "3: task 2: no task has the number 7"),
            ("2\n1 2 0\n2 2 2 1 1\n", "3:9: task 2: predecessor 1 is stated twice"),
            ("2\n1 2 1 2\n2 2 1 1\n", "2: task 1: these tasks form a cycle: 1 -> 2 -> 1"),
            ("1\n1 2 1 1\n", "2: task 1: a task cannot come after itself"),
            ("1\n1 9e30 0\n", '2: task 1: "9000000000000000000000000000000 s" is more than 2^60 ticks'),
        ],
    )
    def test_each_has_its_line(self, tmp_path: Path, text: str, said: str) -> None:
        (found,) = complaints(tmp_path, text)
        assert found.startswith(said)

    def test_all_at_once(self, tmp_path: Path) -> None:
        wrong = SAMPLE.replace("         20          1          0", "         xx          1          0").replace(
            " 8          7 ", " 8         -7 "
        )
        assert complaints(tmp_path, wrong) == [
            '3:21: "xx" is not a time; expected a number that is not negative',
            '10:21: "-7" is not a time; expected a number that is not negative',
        ]
