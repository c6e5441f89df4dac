"""single: the best single device."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.model.building import build_problem
from placeopt.model.problem import UNLIMITED, Objective, Problem, Term
from placeopt.protocol import Termination


def problem(durations: list[list[int]], **rest: Any) -> Problem:
    return build_problem(
        task_names=[f"t{i}" for i in range(len(durations))],
        device_names=[f"d{d}" for d in range(len(durations[0]))],
        duration=np.array(durations),
        **rest,
    )


def test_the_fastest_device_wins_and_ties_go_to_the_first() -> None:
    result = po.solve(problem([[3, 2, 2], [3, 4, 4]]), "single")
    assert result.objective == 6
    assert result.schedule is not None
    assert result.schedule.device.tolist() == [0, 0]
    assert po.solve(problem([[3, 2], [3, 3]]), "single").objective == 5


def test_the_objective_decides() -> None:
    rest = {"power_num": np.array([9, 1]), "power_den": np.array([1, 1])}
    both = Objective(((Term("energy"), Term("makespan", Fraction(1, 2))),))
    assert po.solve(problem([[1, 2]], **rest), "single").objective == 1
    assert po.solve(problem([[1, 2]], objective=Objective(((Term("energy"),),)), **rest), "single").objective == 2
    assert po.solve(problem([[1, 2]], objective=both, **rest), "single").objective == 3


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        ({"separation": [(0, 1)]}, "t0 and t1 must be on different devices"),
        ({"resident": np.array([3, 3]), "capacity": np.array([5, 4])}, "d0 has 5 B of the 6 B needed"),
        ({"feasible": np.array([[1, 0], [0, 1]], dtype=np.bool_)}, "d0 may not run t1, d1 may not run t0"),
    ],
)
def test_reasons_are_reported(rest: dict[str, Any], reason: str) -> None:
    result = po.solve(problem([[1, 1], [1, 1]], **rest), "single")
    assert result.termination is Termination.FAILED
    assert result.schedule is None
    assert reason in result.message


def test_a_device_waits_for_release_times_and_meanwhile_runs_other_tasks() -> None:
    # In index order t0 from 4 to 6, then t1 and t2. As they become ready: t1, t2 and then t0.
    result = po.solve(problem([[2], [3], [1]], release=[4, 0, 1]), "single")
    assert result.objective == 6
    assert result.schedule is not None
    assert result.schedule.start.tolist() == [4, 0, 3]


def test_the_earliest_deadline_first_where_another_order_is_late() -> None:
    # t2 has no deadline, but t3 after it does.
    rest = {"edges": [(2, 3)], "deadline": [UNLIMITED, 6, UNLIMITED, 3]}
    result = po.solve(problem([[4], [2], [1], [2]], **rest), "single")
    assert result.feasible
    assert result.schedule is not None
    assert result.schedule.start.tolist() == [5, 3, 0, 1]


def test_a_device_that_meets_the_deadlines_is_better_than_a_fast_one() -> None:
    result = po.solve(problem([[6, 2], [1, 3]], deadline=[UNLIMITED, 2]), "single")
    assert result.schedule is not None
    assert (result.feasible, result.schedule.device.tolist(), result.objective) == (True, [0, 0], 7)
    late = po.solve(problem([[3, 3], [3, 3]], deadline=[5, 5]), "single")
    assert (late.feasible, late.message) == (False, "some task misses its deadline by 1 ns")


def test_peak_memory_may_fit_where_the_sum_does_not() -> None:
    rest = {"scratch": np.array([4, 4]), "capacity": np.array([4]), "memory_model": "peak"}
    assert po.solve(problem([[1], [1]], **rest), "single").objective == 2


def test_a_depth_first_order_is_tried_where_memory_is_tight() -> None:
    # Two chains t0 -> t2, t1 -> t3: in index order both outputs of 4 are live at once, depth first only one.
    rest = {
        "edges": [(0, 2), (1, 3)],
        "output": np.array([4, 4, 0, 0]),
        "capacity": np.array([4]),
        "memory_model": "peak",
    }
    result = po.solve(problem([[1]] * 4, **rest), "single")
    assert result.feasible
