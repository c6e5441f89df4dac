"""Addresses in cp-sat: optima and proofs of infeasibility, against a model of pairs and against all orders."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import placeopt as po
from tests.support.exact_addresses import least_makespan, small_problem
from tests.support.orders import has_plan, random_problem


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_optima_are_those_of_a_model_of_pairs(first: int) -> None:
    seen = Counter[bool]()
    for seed in range(first, first + 40):
        problem = small_problem(seed)
        least, result = least_makespan(problem), po.solve(problem, "cp-sat", workers=1)
        seen[least is None] += 1
        if least is None:
            assert result.termination is po.Termination.INFEASIBLE
            continue
        assert (result.objective, result.bound, result.feasible) == (least, least, True)
        assert result.schedule is not None
        assert po.verify(problem, result.schedule).feasible
        heuristic = po.solve(problem, "heft", workers=1)
        assert heuristic.bound is not None
        assert heuristic.bound <= least
        assert not heuristic.feasible or heuristic.objective >= least  # type: ignore[operator]
    assert min(seen.values()) > 1


def test_that_no_order_has_offsets_is_proved() -> None:
    seen = Counter[bool]()
    for seed in range(100, 130):
        problem = random_problem(seed)
        exists, result = has_plan(problem), po.solve(problem, "cp-sat", workers=1)
        assert result.termination.value == ("optimal" if exists else "infeasible")
        seen[exists] += 1
    assert min(seen.values()) > 5


def test_devices_without_a_limit_that_matters() -> None:
    arrays = {
        "task_names": "abc", "device_names": "xy", "duration": [[2, 3], [3, 2], [2, 2]], "edges": [(0, 2)],
        "output": [7, 9, 3], "resident": [1, 0, 3], "memory_model": "peak", "alignment": 8,
    }  # fmt: skip
    for capacity in ([2**63 - 1] * 2, [64, 64], [40, 2**63 - 1]):
        problem = po.build_problem(**arrays, capacity=capacity)  # type: ignore[arg-type]
        # Nothing is proved by counting alone if the objective has two levels.
        levels = po.Objective(((po.Term("makespan"),), (po.Term("max_load"),)))
        both = po.build_problem(**arrays, capacity=capacity, objective=levels)  # type: ignore[arg-type]
        for each in (problem, both):
            result = po.solve(each, "cp-sat", workers=1)
            assert result.termination is po.Termination.OPTIMAL
            assert result.feasible
            assert result.values is not None
            assert result.values[0] == 4


def test_large_amounts_and_long_ticks() -> None:
    """Bytes up to 2^40, times with a common factor, and an offset that must be exact."""
    big = 2**40
    problem = po.build_problem(
        task_names="abc", device_names="x", duration=np.full((3, 1), 10**6), edges=[(0, 1), (1, 2)],
        output=[3 * big, 2 * big, 3 * big], capacity=[5 * big], memory_model="peak", alignment=4096,
    )  # fmt: skip
    result = po.solve(problem, "cp-sat", workers=1)
    assert (result.termination, result.objective) == (po.Termination.OPTIMAL, 3 * 10**6)
    less = po.build_problem(
        task_names="abc", device_names="x", duration=np.full((3, 1), 10**6), edges=[(0, 1), (1, 2)],
        output=[3 * big, 2 * big - 1, 3 * big], capacity=[5 * big - 1], memory_model="peak", alignment=4096,
    )  # fmt: skip
    # By bytes, two neighbours fit exactly; 2^41 - 1 bytes end at the top only above the other, which then moves.
    assert po.solve(less, "cp-sat", workers=1).termination is po.Termination.OPTIMAL
