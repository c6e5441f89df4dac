"""The rule `address`: wrong offsets made by hand, and mutants of good plans compared with all pairs of buffers."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.model.schedule import BUFFERS, Offsets, Schedule
from placeopt.verifier import Rule, Violation, verify


def chain(**changes: Any) -> po.Problem:
    """a passes 60 bytes to b and b 30 bytes to c, on one device of 120 bytes; b has 5 resident bytes."""
    arrays: dict[str, Any] = {
        "task_names": "abc", "device_names": ["mcu"], "duration": [[1], [1], [1]], "edges": [(0, 1), (1, 2)],
        "resident": [0, 5, 0], "output": [60, 30, 40], "scratch": [10, 0, 0], "capacity": [120],
        "memory_model": "peak", "alignment": 4,
    }  # fmt: skip
    return po.build_problem(**(arrays | changes))


def plan(**changes: Any) -> Schedule:
    """a's output lies at [0, 60) in ticks 0 to 2, b's at [64, 94) in 1 to 3, c's at [0, 40) in 2 to 3."""
    offsets = {"resident": [0, 96, 0], "output": [0, 64, 0], "scratch": [64, 0, 0]}
    return Schedule([0, 0, 0], [0, 1, 2], offsets=Offsets(**(offsets | changes)))  # type: ignore[arg-type]


def found(problem: po.Problem, schedule: Schedule) -> list[tuple[str, int | None, int | None]]:
    """The messages of violations, with their task and amount; all are of the rule `address`."""
    violations = verify(problem, schedule).violations
    assert {violation.rule for violation in violations} <= {Rule.ADDRESS}
    return [(violation.message, violation.task, violation.amount) for violation in violations]


def test_good_offsets_pass() -> None:
    assert found(chain(), plan()) == []
    assert found(chain(capacity=None), plan(resident=[0, 4 * 10**15, 0])) == []
    # Neither a buffer of no bytes nor one that is live at no tick needs a place.
    assert found(chain(), plan(scratch=[64, -7, 999])) == []
    assert found(chain(duration=[[0], [1], [1]]), replace(plan(scratch=[-3, 0, 0]), start=np.array([0, 0, 1]))) == []


def test_the_problem_and_the_plan_agree_on_addresses() -> None:
    without = Schedule([0, 0, 0], [0, 1, 2])
    assert found(chain(), without) == [
        ("the schedule has no offsets; the problem asks for those of all buffers", None, None)
    ]
    assert found(chain(alignment=None), without) == []
    assert found(chain(alignment=None), plan()) == [
        ("the schedule has offsets, but the problem asks for no addresses", None, None)
    ]
    assert found(chain(), plan(output=[0, 64])) == [
        ("the offsets of output have shape (2,); expected (3,)", None, None)
    ]


@pytest.mark.parametrize(
    ("changes", "message", "task", "amount"),
    [
        ({"output": [0, 56, 0]}, "the output of b at [56, 86) and the output of a at [0, 60) of mcu are both live at "
         "tick 1: 4 bytes overlap", 1, 4),
        ({"resident": [0, 92, 0]}, "the output of b at [64, 94) and the resident of b at [92, 97) of mcu are both live "
         "at tick 1: 2 bytes overlap", 1, 2),
        ({"output": [0, 64, 32]}, "the output of c at [32, 72) and the output of b at [64, 94) of mcu are both live at "
         "tick 2: 8 bytes overlap", 2, 8),
        ({"scratch": [96, 0, 0]}, "the resident of b at [96, 101) and the scratch of a at [96, 106) of mcu are both "
         "live at tick 0: 5 bytes overlap", 1, 5),
        ({"resident": [0, 116, 0]}, "the resident of b at [116, 121) of mcu ends above its 120 bytes: 1 too many", 1,
         1),
        ({"resident": [0, 98, 0]}, "the resident of b at [98, 103) of mcu does not begin at a multiple of 4", 1, None),
        ({"resident": [0, -4, 0]}, "the resident of b at [-4, 1) of mcu begins before offset 0: 4 bytes outside", 1, 4),
    ],
)  # fmt: skip
def test_each_fault_is_named(changes: dict[str, Any], message: str, task: int, amount: int | None) -> None:
    assert (message, task, amount) in found(chain(), plan(**changes))


def test_an_output_stays_until_it_has_arrived() -> None:
    """The output of x is sent to another device from tick 1 to 6; y reuses its bytes at tick 6, not before."""
    problem = po.build_problem(
        task_names="xyz", device_names=["here", "there"], duration=[[1, 1]] * 3, edges=[(0, 2)], payload=[5],
        byte_ticks_num=np.ones((2, 2), dtype=int), output=[5, 5, 0], capacity=[8, 8], memory_model="peak", alignment=1,
    )  # fmt: skip
    offsets = Offsets(resident=[0, 0, 0], output=[0, 2, 0], scratch=[0, 0, 0])  # type: ignore[arg-type]
    late = Schedule([0, 0, 1], [0, 6, 6], offsets=offsets)  # type: ignore[arg-type]
    assert verify(problem, late).feasible
    early = replace(late, start=np.array([0, 5, 6]))
    assert [violation.rule for violation in verify(problem, early).violations] == [Rule.MEMORY, Rule.ADDRESS]


def random_plan(rng: random.Random) -> tuple[po.Problem, Schedule]:
    """A few tasks on two devices, and a plan with offsets."""
    n = rng.randint(2, 9)

    def amounts(largest: int) -> list[int]:
        return [rng.choice([0, rng.randint(1, largest)]) for _ in range(n)]

    problem = po.build_problem(
        task_names=[f"t{i}" for i in range(n)], device_names=["x", "y"],
        duration=[[rng.randint(0, 4), rng.randint(0, 4)] for _ in range(n)],
        edges=[(i, j) for j in range(n) for i in range(j) if rng.random() < 0.3],
        latency=[[0, 2], [3, 0]], output=amounts(40), scratch=amounts(30), resident=amounts(10),
        capacity=[rng.choice([250, 10**6]), 10**6], memory_model="peak", alignment=rng.choice([1, 4, 16]),
    )  # fmt: skip
    result = po.solve(problem, "heft", workers=1, time_limit=5)
    assert result.feasible
    assert result.schedule is not None
    return problem, result.schedule


def lives(problem: po.Problem, schedule: Schedule) -> list[tuple[int, int, int, int, int]]:
    """(device, begin, end, low, high) of each buffer, from the definitions in docs/spec.md."""
    n, device, start = problem.n_tasks, schedule.device.tolist(), schedule.start.tolist()
    end = [start[i] + int(problem.duration[i, device[i]]) for i in range(n)]
    freed = list(end)
    for i, j in zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True):
        arrival = end[i] + int(problem.latency[device[i], device[j]])
        freed[i] = max(freed[i], end[j] if device[i] == device[j] else arrival)
    spans = {"resident": [(0, max(1, *freed))] * n, "output": list(zip(start, freed, strict=True))}
    spans["scratch"] = list(zip(start, end, strict=True))
    assert schedule.offsets is not None
    return [
        (device[i], begin, until, low, low + size)
        for kind in BUFFERS
        for i, (begin, until) in enumerate(spans[kind])
        for low in [int(getattr(schedule.offsets, kind)[i])]
        if (size := int(getattr(problem, kind)[i])) and begin < until
    ]


def expected_faults(problem: po.Problem, schedule: Schedule) -> tuple[int, set[int], int]:
    """The number of faults of single buffers; of all pairs that overlap, the bytes that they share; and the number of
    buffers that overlap one that begins earlier.
    """
    buffers, wrong = lives(problem, schedule), 0
    for d, _, _, low, high in buffers:
        wrong += (low < 0) + (high > int(problem.capacity[d])) + (low % (problem.alignment or 1) > 0)
    shared, late = set(), set()
    for (k, a), (j, b) in combinations(enumerate(buffers), 2):
        bytes_ = min(a[4], b[4]) - max(a[3], b[3])
        if a[0] == b[0] and max(a[1], b[1]) < min(a[2], b[2]) and bytes_ > 0:
            shared.add(bytes_)
            if a[1] != b[1]:
                late.add(k if a[1] > b[1] else j)
    return wrong, shared, len(late)


def moved(rng: random.Random, problem: po.Problem, good: Schedule) -> Schedule:
    """The schedule with the offsets of one to five buffers changed."""
    assert good.offsets is not None
    step = problem.alignment or 1
    arrays = {kind: getattr(good.offsets, kind).copy() for kind in BUFFERS}
    for _ in range(rng.choice([1, 1, 2, 5])):
        kind, i = rng.choice(BUFFERS), rng.randrange(problem.n_tasks)
        arrays[kind][i] += rng.choice([-1, 1, -step, step, 3 * step, -7 * step, rng.randint(-60, 60)])
    return replace(good, offsets=Offsets(**arrays))


def check_addresses(problem: po.Problem, schedule: Schedule) -> bool:
    """Whether some address is wrong, once the verifier and a look at all pairs of buffers agree on what is."""
    violations: list[Violation] = list(verify(problem, schedule).violations)
    assert {violation.rule for violation in violations} <= {Rule.ADDRESS}
    overlaps = [violation for violation in violations if "overlap" in violation.message]
    wrong, shared, late = expected_faults(problem, schedule)
    assert len(violations) - len(overlaps) == wrong
    assert len(overlaps) >= max(late, bool(shared))
    assert {violation.amount for violation in overlaps} <= shared
    assert not shared or max(shared) in {violation.amount for violation in overlaps}
    return bool(violations)


@pytest.mark.parametrize("seed", range(60))
def test_every_overlap_of_mutants_is_found(seed: int) -> None:
    rng = random.Random(seed)
    problem, good = random_plan(rng)
    assert not check_addresses(problem, good)
    for _ in range(40):
        check_addresses(problem, moved(rng, problem, good))
