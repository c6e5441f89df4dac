"""Flexible job shops: a small one by hand, the files of benchmarks, and mistakes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from placeopt.bridges.importers.imported import Imported, ImportOptions
from placeopt.bridges.importers.registry import import_file
from placeopt.errors import DocumentError
from placeopt.io.compiler import compile_spec
from placeopt.orchestration.pipeline import solve

DATA = Path(os.environ.get("PLACEOPT_DATA", Path(__file__).parents[3] / "shared" / "data")) / "fjsp"
SMALL = """\
3 2 1.4
2 2 1 4 2 5 1 2 3
1 1 1 6
2 1 2 7 2 2 3 1 2
"""


def imported(folder: Path, text: str, file: str = "shop.fjs", **options: Any) -> Imported:
    path = folder / file
    path.write_text(text)
    return import_file(path, None, ImportOptions(**options))


class TestForms:
    def test_a_small_shop(self, tmp_path: Path) -> None:
        found = imported(tmp_path, SMALL, "shop")  # recognised without the ending of the name
        assert found.notes == ()
        assert found.document == {
            "placeopt": 1,
            "name": "shop",
            "source": "shop, a flexible job shop",
            "resolution": "1 s",
            "devices": {"machine1": {}, "machine2": {}},
            "tasks": {
                "job1-1": {"time": {"machine1": "4 s", "machine2": "5 s"}},
                "job1-2": {"time": {"machine2": "3 s"}, "after": ["job1-1"]},
                "job2-1": {"time": {"machine1": "6 s"}},
                "job3-1": {"time": {"machine2": "7 s"}},
                "job3-2": {"time": {"machine2": "3 s", "machine1": "2 s"}, "after": ["job3-1"]},
            },
        }
        # Machine 1 needs 4 + 6 + 2 ticks, and machine 2 needs 7 + 3.
        assert solve(compile_spec(found.document), "cp-sat", time_limit=10).objective == 12

    def test_decimals_make_finer_ticks(self, tmp_path: Path) -> None:
        problem = compile_spec(imported(tmp_path, "1 1\n1 1 1 2.5\n").document)
        assert problem.duration.tolist() == [[2500]]


class TestMistakes:
    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", " has no numbers; expected those of jobs and machines"),
            ("1\n1 1 1 2\n", "1: has 1 number; expected those of jobs and machines"),
            ("1 0\n1 1 1 2\n", "1:3: 0 is not a number of machines; expected 1 to 4096"),
            ("2 1\n1 1 1 2\n", "1: has 1 job; its first line states 2"),
            ("1 x\n1 1 1 2\n", '1:3: "x" is not a whole number'),
            ("1 1 x\n1 1 1 2\n", '1:5: "x" is not a time'),
            ("1 1\n1 1 2 2\n", "2:5: 2 is not a machine; expected 1 to 1"),
            ("1 1\n1 1 1 -2\n", '2:7: "-2" is not a time'),
            ("1 1\n1 2 1 2 1 2\n", "2:9: machine 1 is stated twice for an operation"),
            ("1 1\n1 0\n", "2: operation 1 has no machine"),
            ("1 1\n2 1 1 2\n", "2: ends within operation 2 of 2"),
            ("1 1\n1 1 1 2 9\n", "2:9: expected the end of the job after its last operation, got 9"),
            ("1 1\n1 1 1 9e30\n", '2: task job1-1: "9000000000000000000000000000000 s" is more than 2^60 ticks'),
        ],
    )
    def test_each_has_its_line(self, tmp_path: Path, text: str, said: str) -> None:
        with pytest.raises(DocumentError, match=r"shop\.fjs") as caught:
            imported(tmp_path, text)
        (found,) = [str(issue).removeprefix(f"{tmp_path / 'shop.fjs'}:") for issue in caught.value.issues]
        assert found.startswith(said)


def text_of(shop: dict[str, Any]) -> str:
    """The file `.fjs` of a shop in JSON, whose operations are numbered job by job."""
    chains = [[0]]
    for k in range(1, len(shop["durations"])):
        if [k - 1, k] in shop["precedences"]:
            chains[-1].append(k)
        else:
            chains.append([k])
    assert sum(len(chain) - 1 for chain in chains) == len(shop["precedences"])
    machines = {machine for times in shop["durations"] for machine in times}
    lines = [f"{len(chains)} {max(map(int, machines)) + 1}"]
    for chain in chains:
        words = [len(chain)]
        for k in chain:
            times = shop["durations"][k]
            words += [len(times), *(number for d, time in times.items() for number in (int(d) + 1, time))]
        lines.append(" ".join(map(str, words)))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", ["mk01", "mk10", "la01_edata", "la27_rdata", "mt10x", "seti5x", "behnke1"])
def test_shops_of_benchmarks(name: str, tmp_path: Path) -> None:
    if not (DATA / f"{name}.json").is_file():
        pytest.skip(f"{DATA / name}.json is missing; PLACEOPT_DATA names the folder above fjsp")
    shop = json.loads((DATA / f"{name}.json").read_text())
    problem = compile_spec(imported(tmp_path, text_of(shop), name).document)  # recognised without the ending
    assert problem.n_edges == len(shop["precedences"])
    for row, times in enumerate(shop["durations"]):
        able = {problem.device_names[d]: int(problem.duration[row, d]) for d in range(problem.n_devices)}
        able = {name: time for d, (name, time) in enumerate(able.items()) if problem.feasible[row, d]}
        assert able == {f"machine{int(d) + 1}": time for d, time in times.items()}


def test_the_optimum_of_a_benchmark(tmp_path: Path) -> None:
    if not (DATA / "best_known.json").is_file():
        pytest.skip(f"{DATA / 'best_known.json'} is missing; PLACEOPT_DATA names the folder above fjsp")
    known = json.loads((DATA / "best_known.json").read_text())["values"]["la01_edata"]
    problem = compile_spec(imported(tmp_path, text_of(json.loads((DATA / "la01_edata.json").read_text()))).document)
    found = solve(problem, "cp-sat", time_limit=60)
    assert found.gap == 0
    assert found.objective == known["upper_bound"] == known["lower_bound"]
