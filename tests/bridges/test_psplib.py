"""Projects in PSPLIB's format and in Patterson's: small ones, computed by hand; real ones; mistakes."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from placeopt.bridges.importers.imported import Imported, ImportOptions
from placeopt.bridges.importers.registry import import_file
from placeopt.errors import DocumentError, UsageError
from placeopt.io.compiler import compile_spec
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, makespan
from placeopt.orchestration.pipeline import solve
from placeopt.protocol import Termination
from placeopt.verifier import verify

DATA = Path(os.environ.get("PLACEOPT_DATA", Path(__file__).parents[3] / "shared" / "data")) / "rcpsp"
REAL = sorted(DATA.glob("*.rcp"))

SM = """\
************************************************************************
file with basedata            : small.bas
initial value random generator: 28123
************************************************************************
projects                      :  1
jobs (incl. supersource/sink ):  6
horizon                       :  17
RESOURCES
  - renewable                 :  2   R
  - nonrenewable              :  0   N
  - doubly constrained        :  0   D
************************************************************************
PROJECT INFORMATION:
pronr.  #jobs rel.date duedate tardcost  MPM-Time
    1      4      0       9        3        9
************************************************************************
PRECEDENCE RELATIONS:
jobnr.    #modes  #successors   successors
   1        1          3           2   3   4
   2        1          1           5
   3        1          1           6
   4        1          1           6
   5        1          1           6
   6        1          0
************************************************************************
REQUESTS/DURATIONS:
jobnr. mode duration  R 1  R 2
------------------------------------------------------------------------
  1      1     0       0    0
  2      1     4       2    0
  3      1     3       2    1
  4      1     6       0    1
  5      1     5       1    0
  6      1     0       0    0
************************************************************************
RESOURCEAVAILABILITIES:
  R 1  R 2
    3    1
************************************************************************
"""
# The same project; task 4 continues on a second line.
RCP = """\
6 2
3 1

0 0 0 3 2 3 4
4 2 0 1 5
3 2 1 1 6
6 0 1
  1 6
5 1 0 1 6
0 0 0 0
"""


# The same project, where tasks 2 and 5 have a second mode that uses the nonrenewable resource.
MM = (
    SM.replace("nonrenewable              :  0", "nonrenewable              :  1")
    .replace("R 1  R 2\n-", "R 1  R 2  N 1\n-")
    .replace("R 1  R 2\n    3    1", "R 1  R 2  N 1\n    3    1    7")
    .replace("   2        1          1           5", "   2        2          1           5")
    .replace("   5        1          1           6", "   5        2          1           6")
)
for row in ("  1      1     0       0    0", "  3      1     3       2    1", "  4      1     6       0    1"):
    MM = MM.replace(row, f"{row}    0")
MM = (
    MM.replace("  6      1     0       0    0", "  6      1     0       0    0    0")
    .replace("  2      1     4       2    0", "  2      1     4       2    0    0\n         2     2       3    0    5")
    .replace("  5      1     5       1    0", "  5      1     5       1    0    0\n         2     3       1    0    4")
)


def best_of_modes() -> int:
    """The optimum of MM: serial schedules of all orders in all modes, tick by tick."""
    modes = {2: [(4, 2, 0, 0), (2, 3, 0, 5)], 3: [(3, 2, 1, 0)], 4: [(6, 0, 1, 0)], 5: [(5, 1, 0, 0), (3, 1, 0, 4)]}
    best = 99
    for chosen in itertools.product(*modes.values()):
        if sum(mode[3] for mode in chosen) > 7:
            continue
        for order in itertools.permutations(range(4)):
            used = [[0, 0] for _ in range(99)]
            ends: dict[int, int] = {}
            for k in order:
                time, first, second, _ = chosen[k]
                start = ends.get(0, 99) if k == 3 else 0
                while start < 50 and any(u + first > 3 or v + second > 1 for u, v in used[start : start + time]):
                    start += 1
                for each in used[start : start + time]:
                    each[0] += first
                    each[1] += second
                ends[k] = start + time
            best = min(best, max(ends.values()))
    return best


def imported(folder: Path, text: str, file: str = "small.sm", **options: Any) -> Imported:
    path = folder / file
    path.write_text(text)
    return import_file(path, None, ImportOptions(**options))


def complaints(folder: Path, text: str, name: str = "small.sm") -> list[str]:
    with pytest.raises(DocumentError, match=name) as caught:
        imported(folder, text, name)
    return [str(issue).removeprefix(f"{folder / name}:") for issue in caught.value.issues]


def test_several_modes_and_a_nonrenewable_resource(tmp_path: Path) -> None:
    document = imported(tmp_path, MM, "small.mm").document
    assert document["budgets"] == {"N1": 7}
    assert list(document["tasks"]["2"]["modes"]) == ["m1", "m2"]
    problem = compile_spec(document)
    result = solve(problem, "cp-sat", workers=1)
    assert result.termination is Termination.OPTIMAL
    assert result.makespan == best_of_modes() * int(1 / problem.resolution)


class TestForms:
    @pytest.mark.parametrize(("text", "format"), [(SM, "PSPLIB"), (RCP, "Patterson")])
    def test_a_small_project(self, tmp_path: Path, text: str, format: str) -> None:
        found = imported(tmp_path, text, "project")  # recognised without the ending of the name
        assert found.notes[-1] == "2 dummy tasks dropped: 1 and 6"
        assert (len(found.notes) == 2) == (format == "PSPLIB")  # the due date is dropped
        assert found.document == {
            "placeopt": 1,
            "name": "project",
            "source": f"project, a project in the format of {format}",
            "resolution": "1 s",
            "devices": {"project": {"parallel": True}},
            "resources": {"R1": 3, "R2": 1},
            "tasks": {
                "2": {"time": "4 s", "uses": {"R1": 2}},
                "3": {"time": "3 s", "uses": {"R1": 2, "R2": 1}},
                "4": {"time": "6 s", "uses": {"R2": 1}},
                "5": {"time": "5 s", "uses": {"R1": 1}, "after": ["2"]},
            },
        }

    def test_resources_limit_the_schedule(self, tmp_path: Path) -> None:
        """Tasks 2 and 3 cannot overlap, nor 3 and 4: 4 ticks, 3 ticks, and 6 ticks or 5."""

        def schedule(*start: int) -> Schedule:
            return Schedule(np.zeros(4, dtype=np.int64), np.array(start))

        problem = compile_spec(imported(tmp_path, RCP, "small.rcp").document)
        for start, rules in (([0, 4, 7, 4], set()), ([0, 6, 0, 4], set()), ([0, 0, 3, 4], {"resource"})):
            assert {each.rule.value for each in verify(problem, schedule(*start)).violations} == rules
        found = solve(problem, "cp-sat", time_limit=60)
        assert found.objective == found.bound == makespan(problem, schedule(0, 6, 0, 4)) == 9

    def test_first_and_last_tasks_that_take_time_stay(self, tmp_path: Path) -> None:
        found = imported(tmp_path, "2 1\n4\n3 0 1 2\n0 1 0\n", "small.rcp", name="x", resolution="1 ms")
        assert compile_spec(found.document).duration.tolist() == [[3000], [0]]
        assert (found.document["name"], found.notes) == ("x", ())

    def test_a_project_without_resources(self, tmp_path: Path) -> None:
        found = imported(tmp_path, "2 0\n3 1 2\n4 0\n", "small.rcp").document
        assert found["tasks"] == {"1": {"time": "3 s"}, "2": {"time": "4 s", "after": ["1"]}}

    def test_devices_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="the format psplib takes no --devices"):
            imported(tmp_path, RCP, "small.rcp", network="xeon-core:2")


class TestMistakes:
    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", " has no numbers; expected a project"),
            ("x\n", "1: expected the section PRECEDENCE RELATIONS and REQUESTS/DURATIONS and RESOURCE AVAILABILITIES"),
            ("1\n", "1: expected the number of tasks and the number of resources: 2 numbers; got 1"),
            ("1 2\n3\n", "2: expected the capacities of 2 resources: 2 numbers; got 1"),
            ("2 1\n3\n1 1 0\n", "1: the file has 1 task; expected 2"),
            ("1 1\n3\n1 1 0\n2 1 0\n", "4: expected the end of the file after 1 task"),
            ("1 1\n3\n1 1 0 5\n", "3: expected the duration of a task, its amount of each resource"),
            ("1 1\n3\n1 1 2 5\n", "3: expected the duration of a task, its amount of each resource"),
            ("1 1\n3\n1 -1 0\n", '3:3: "-1" is not a whole number'),
            ("1 1\n3\n1 1 1 7\n", "3: task 1: no task has the number 7"),
            ("2 0\n1 2 2 2\n1 0\n", "2: task 1: successor 2 is stated twice"),
            ("2 0\n1 1 2\n1 1 1\n", "3: task 1: these tasks form a cycle: 1 -> 2 -> 1"),
            ("1 1\n3\n1 4 0\n", "3: task 1: the task uses at least 4, and R1 has 3"),
            (f"1 0\n{10**29} 0\n", f'2: task 1: "{10**29} s" is more than 2^60 ticks'),
        ],
    )
    def test_patterson(self, tmp_path: Path, text: str, said: str) -> None:
        (found,) = complaints(tmp_path, text, "small.rcp")
        assert found.startswith(said)

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ("projects                      :  1", "projects : 2", "5: has 2 projects; expected 1"),
            ("sink ):  6", "sink ):  7", "6: states 7 jobs, but has 6"),
            ("RESOURCEAVAILABILITIES", "RESOURCES", "39: expected the section RESOURCE AVAILABILITIES before the end"),
            ("REQUESTS/DURATIONS", "PRECEDENCE RELATIONS", "26: the section PRECEDENCE RELATIONS is stated twice"),
            ("R 1  R 2\n    3", "R 1  D 2\n    3", "37: doubly constrained resources (D) are not supported"),
            ("    3    1\n", "    3\n", "38: has 1 number; expected the capacities of 2 resources"),
            ("    3    1\n", "", "37: the section RESOURCE AVAILABILITIES has 1 line; expected names and capacities"),
            ("   2        1          1           5\n", "", "29: task 2 has no successors stated"),
            (
                "  2        1          1           5",
                "  2  1  1",
                "20: has 3 numbers; expected the number of a task, of",
            ),
            ("  2        1          1           5", "  1  1  0", "20: task 1 is stated twice"),
            ("  2      1     4       2    0\n", "", "20: task 2: has 0 modes; line 20 states 1"),
            ("  2      1     4       2    0", "  1  1  4  2  0", "30: task 1 is stated twice"),
            ("  2      1     4       2    0", "  2  2  4  2  0", "30: task 2: mode 2 follows 0"),
            ("  2      1     4       2    0", "  2  1  4  2", "20: task 2: has 0 modes; line 20 states 1"),
            ("  2      1     4       2    0", "  2  1  4", "30: has 3 numbers; expected the number of a task, a mode"),
            ("  2      1     4       2    0", "  2  1  x  2  0", '30:9: "x" is not a whole number'),
            ("  2      1     4       2    0", "  2  1  4  9  0", "30: task 2: the task uses at least 9, and R1 has 3"),
        ],
    )
    def test_psplib(self, tmp_path: Path, old: str, new: str, said: str) -> None:
        assert old in SM
        assert complaints(tmp_path, SM.replace(old, new, 1))[0].startswith(said)

    def test_all_at_once(self, tmp_path: Path) -> None:
        wrong = RCP.replace("4 2 0 1 5", "4 2 x 1 5").replace("5 1 0 1 6", "-5 1 0 1 6")
        assert complaints(tmp_path, wrong, "small.rcp") == [
            '5:5: "x" is not a whole number',
            '9:1: "-5" is not a whole number',
        ]


@pytest.mark.skipif(not REAL, reason=f"no files of the format in {DATA}; PLACEOPT_DATA names the folder above rcpsp")
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_projects_of_psplib(path: Path) -> None:
    """30 tasks and 4 resources, and successors as in the file."""
    problem: Problem = compile_spec(import_file(path).document)
    assert (problem.n_tasks, problem.n_devices) == (30, 1)
    assert problem.resources is not None
    numbers = iter(map(int, path.read_text().split()))
    assert [next(numbers), next(numbers)] == [32, 4]
    assert problem.resources.capacity.tolist() == [next(numbers) for _ in range(4)]
    edges = {
        (problem.task_names[i], problem.task_names[j])
        for i, j in zip(problem.edge_source, problem.edge_target, strict=True)
    }
    for number in range(1, 33):
        time, *amounts = (next(numbers) for _ in range(5))
        successors = {next(numbers) for _ in range(next(numbers))}
        if 1 < number < 32:
            task = problem.task_names.index(str(number))
            assert problem.duration[task, 0] == time
            assert [int(problem.resources.amounts(r)[task, 0]) for r in range(4)] == amounts
            assert {int(j) for i, j in edges if i == str(number)} == successors - {32}


OPTIMA = {"j30_1_1": 43, "j30_1_2": 47, "j30_37_8": 72, "j30_48_10": 54}
"""Proved by PyJobShop 0.0.9, too: `python benchmarks/pyjobshop_gaps.py`."""


@pytest.mark.skipif(not REAL, reason=f"no files of the format in {DATA}; PLACEOPT_DATA names the folder above rcpsp")
@pytest.mark.parametrize("name", OPTIMA)
def test_optima_of_psplib(name: str) -> None:
    found = solve(compile_spec(import_file(DATA / f"{name}.rcp").document), "cp-sat", time_limit=120)
    assert found.objective == found.bound == OPTIMA[name]
