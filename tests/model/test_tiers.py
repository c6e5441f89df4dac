"""Memory tiers: a worked example through the whole toolkit, their construction, and their swap times."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.errors import UsageError
from placeopt.model.critical_path import critical_path, critical_ticks
from placeopt.model.memory import earliest_starts, swap_times, tier_bytes
from placeopt.model.problem import UNLIMITED
from placeopt.model.tiers import Tiers, build_tiers
from placeopt.simulation import simulate_noisy
from placeopt.studies.sensitivity.changes import Amounts, make_changes
from placeopt.verifier import verify

SPEC: dict[str, Any] = {
    "placeopt": 1,
    "resolution": "1 s",
    "devices": {"fast": {"memory": 4, "tiers": [{"memory": 6, "bandwidth": 2}]}, "slow": {"memory": 4}},
    "links": {"default": {"latency": 3}},
    "tasks": {
        "x": {"time": {"fast": 2, "slow": 5}, "memory": 3},
        "y": {"time": {"fast": 3, "slow": 6}, "memory": 4, "after": "x"},
        "z": {"time": {"fast": 2, "slow": 4}, "memory": 4, "after": "x"},
    },
}
"""Together the tasks need 11 bytes; the device fast has 10, of which 4 are fast."""


def example(**devices: Any) -> po.Problem:
    return po.compile({**SPEC, "devices": {**SPEC["devices"], **devices}})


class TestByHand:
    """x and y on fast: 3 of their 7 bytes lie in the second tier and take ceil(3 / 2) ticks. x runs in [2, 4) and y in
    [4, 7). z needs the data of x at 4 + 3 on slow and runs in [7, 11)."""

    def test_simulation(self) -> None:
        schedule = po.simulate(example(), [0, 0, 1])
        assert schedule.start.tolist() == [2, 4, 7]
        report = verify(example(), schedule)
        assert (report.feasible, report.makespan) == (True, 11)

    @pytest.mark.parametrize("rule", ["fifo", "priority", "order"])
    @pytest.mark.parametrize("contention", ["none", "port"])
    def test_every_discipline_waits(self, rule: Any, contention: str) -> None:
        problem = po.compile({**SPEC, "devices": example_devices(), "contention": contention})
        values = {} if rule == "fifo" else {rule: [1, 2, 3]}
        schedule = po.simulate(problem, [0, 0, 1], discipline=rule, **values)
        assert schedule.start.tolist() == [2, 4, 7]
        assert po.retime(problem, po.Schedule([0, 0, 1], [0, 1, 2])).start.tolist() == [2, 4, 7]

    def test_swapping_does_not_vary_under_noise(self) -> None:
        assert simulate_noisy(example(), [0, 0, 1], noise=0.0, runs=2, seed=1).makespans.tolist() == [11, 11]

    def test_the_best_schedule(self) -> None:
        # All tasks on fast exceed its memory; y and z there swap 4 bytes, and y starts at 5 + 3: [8, 11), z [11, 13).
        for solver in ("brute-force", "cp-sat", "auto"):
            result = po.solve(example(), solver, workers=1, time_limit=20)
            assert (result.termination, result.objective, result.bound) == ("optimal", 11, 11)
            assert result.devices[0].tiers == (4, 3)
            assert (result.devices[0].swap, result.devices[1].swap) == (2, 0)
        assert "7 B, 3 B swapped in 2 s" in result.summary()

    def test_all_on_one_device_with_a_slow_disk(self) -> None:
        # 6 of the 11 bytes in the second tier take 3 ticks, 1 in the third takes 2; then 2 + 3 + 2 ticks of computing.
        disk = {"memory": 4, "tiers": [{"memory": 6, "bandwidth": 2}, {"bandwidth": 0.5}]}
        problem = example(fast=disk)
        assert problem.capacity.tolist() == [UNLIMITED, 4]
        result = po.solve(problem, "single")
        assert (result.feasible, result.objective) == (True, 12)
        found = po.measure(problem, result.schedule)
        assert found.swap.tolist() == [5, 0]
        assert found.tier_memory is not None
        assert found.tier_memory.tolist() == [[4, 6, 1], [0, 0, 0]]

    def test_the_critical_path_begins_with_swapping(self) -> None:
        path = critical_path(example(), po.Schedule([0, 0, 1], [2, 4, 7]))
        assert [(step.kind, step.start, step.end, step.cause) for step in path] == [
            ("swap", 0, 2, "start"), ("task", 2, 4, "swap"), ("transfer", 4, 7, "data"), ("task", 7, 11, "data"),
        ]  # fmt: skip
        assert critical_ticks(path)["swap"] == 2

    def test_a_solver_without_support_says_which_have_it(self) -> None:
        with pytest.raises(po.UnsupportedError, match=r"lns does not support memory tiers; solvers .*cp-sat.*heft"):
            po.solve(example(), "lns")

    def test_more_memory_is_more_of_the_first_tier(self) -> None:
        (changed,), _ = make_changes(example(), ["memory"], Amounts(memory=Fraction(2)))
        assert changed.problem.tiers == build_tiers([8, 8], [[(6, 1, 2)], []])
        (changed,), _ = make_changes(example(), ["devices:fast"])
        assert changed.problem.tiers == build_tiers([4, 4, 4], [[(6, 1, 2)], [], [(6, 1, 2)]])


def example_devices() -> Any:
    return SPEC["devices"]


class TestSwapTimes:
    def test_each_tier_is_rounded_up(self) -> None:
        tiers = build_tiers([2], [[(3, 1, 2), (9, 2, 3)]])
        assert [tiers.swap_time(0, used) for used in range(10)] == [0, 0, 0, 1, 1, 2, 3, 4, 4, 5]
        assert tiers.swap_time(0, 14) == tiers.swap_time(0, 99) == 2 + 6

    def test_without_tiers_nothing_is_swapped(self) -> None:
        problem = po.build_problem(task_names=["t"], device_names=["d"], duration=[[1]], resident=[9], release=[4])
        assert swap_times(problem, np.array([0])).tolist() == [0]
        assert earliest_starts(problem, np.array([0])).tolist() == [4]
        assert po.measure(problem, po.Schedule([0], [4])).tier_memory is None

    def test_bytes_beyond_the_capacity_are_in_no_tier(self) -> None:
        problem = po.build_problem(
            task_names=["t"], device_names=["d"], duration=[[1]], resident=[9], tiers=build_tiers([2], [[(3, 1, 1)]])
        )
        assert tier_bytes(problem, np.array([0])).tolist() == [[2, 3]]


class TestConstruction:
    def test_one_tier_each_is_a_memory_without_tiers(self) -> None:
        problem = one(tiers=build_tiers([4], [[]]))
        assert (problem.tiers, problem.capacity.tolist()) == (None, [4])

    def test_empty_tiers_count_as_absent(self) -> None:
        assert build_tiers([4, 4], [[(0, 1, 1), (5, 2, 1)], []]) == build_tiers([4, 4], [[(5, 2, 1)], []])
        assert build_tiers([4, 6], [[(0, 1, 1)], []]).end.tolist() == [[4], [6]]

    @pytest.mark.parametrize(
        ("made", "message"),
        [
            (
                lambda: build_tiers([4], [[(5, 0, 1)]]),
                r"tiers\[0\]\[0\]: 0 ticks move 1 bytes; expected numbers of at le",
            ),
            (lambda: build_tiers([4], [[(5, 2**40, 2**40)]]), "expected numbers of at least 1 with a product below 2"),
            (lambda: build_tiers([4], [[(5, 2, 1), (5, 1, 1)]]), r"tiers\[0\]\[1\] is faster than the tier before it"),
            (lambda: build_tiers([UNLIMITED], [[(5, 2, 1)]]), "follows memory without a limit, which is never full"),
            (lambda: build_tiers([4], [[(UNLIMITED - 2, 2, 1)]]), "are 2.63 or more; expected ENDLESS, or less"),
            (lambda: build_tiers([4], [[(5, 2)]]), r"tiers\[0\]\[0\].*expected \(3,\)"),
            (lambda: build_tiers([4, 4], [[]]), r"first: has shape \(2,\)"),
            (lambda: one(tiers=[[1]]), "tiers is a list; expected Tiers, as build_tiers makes them"),
            (lambda: one(tiers=build_tiers([1, 2], [[], []])), "tiers: they are for 2 devices; expected 1"),
            (lambda: one(capacity=[4]), r"capacity\[0\] is 4; expected that of all tiers of d, 9"),
            (lambda: one(memory_model="peak"), "memory_model is peak; expected sum with memory tiers"),
            (
                lambda: one(objective=po.Objective(((po.Term("period"),),))),
                "tiers: the objective period contains period; expected one without it",
            ),
        ],
    )
    def test_wrong_ones_are_rejected(self, made: Callable[[], object], message: str) -> None:
        with pytest.raises(UsageError, match=message):
            made()


def one(tiers: Any = None, **changes: Any) -> po.Problem:
    """One task on one device with two tiers."""
    tiers = build_tiers([4], [[(5, 1, 1)]]) if tiers is None else tiers
    return po.build_problem(task_names=["t"], device_names=["d"], duration=[[1]], tiers=tiers, **changes)


def test_tiers_are_not_compared_with_other_things() -> None:
    assert build_tiers([4], [[(5, 1, 1)]]) != "tiers"
    assert isinstance(one().tiers, Tiers)
