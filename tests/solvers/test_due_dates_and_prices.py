"""Tardiness, price and the number of devices: exact solvers against brute force, and valid bounds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import placeopt as po
from placeopt.model.building import with_changes
from placeopt.model.objective import METRICS as METRIC_VALUES
from tests.support.brute_force import METRICS, optimum, small_problem

OBJECTIVES = (
    po.Objective(((po.Term("tardiness"),),)),
    po.Objective(((po.Term("price"),),)),
    po.Objective(((po.Term("devices"),),)),
    po.Objective(((po.Term("makespan"), po.Term("price", Fraction(1, 2))), (po.Term("devices"),))),
    po.Objective(((po.Term("tardiness", 2), po.Term("devices", 3)), (po.Term("makespan"),))),
)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("solver", ["cp-sat", "milp"])
def test_exact_solvers_find_the_optimum(solver: str, seed: int) -> None:
    problem = small_problem(np.random.default_rng(seed), OBJECTIVES[seed % 5], times=seed % 3 == 0)
    expected = optimum(problem)
    found = po.solve(problem, solver=solver, workers=1)
    if expected is None:
        assert found.termination == "infeasible"
        return
    assert (found.termination, found.values) == ("optimal", expected[0])
    assert all(bound.value <= expected[0][0] for bound in po.bounds(problem))


@pytest.mark.parametrize("seed", range(30))
def test_limits_of_metrics_are_hard(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = small_problem(rng, po.Objective())
    free = optimum(problem)
    if free is None:
        return
    metric = METRICS[seed % len(METRICS)]
    least = optimum(with_changes(problem, objective=po.Objective(((po.Term(metric),),))))
    assert least is not None
    low, high = int(least[0][0]), METRIC_VALUES[metric](problem, free[1])
    most = int(rng.integers(max(low - 1, 0), high + 1))
    limited = with_changes(problem, limits=[(metric, most)])
    expected = optimum(limited)
    for solver in ("cp-sat", "milp"):
        found = po.solve(limited, solver=solver, workers=1)
        if expected is None:
            assert found.termination == "infeasible"
        else:
            assert found.schedule is not None
            assert (found.termination, found.values) == ("optimal", expected[0])
            assert po.verify(limited, found.schedule).feasible


def test_prices_are_those_of_tasks_and_of_the_time_on_devices() -> None:
    document = {
        "placeopt": 1,
        "devices": {"a": {"price": 3.6}, "b": {"price": 1.8, "count": 2}},
        "objective": "price",
        "tasks": {"x": {"time": {"a": "1 ms", "b": "3 ms"}}, "y": {"time": "2 ms", "price": {"a": 0.5, "b0": "0.25"}}},
    }
    problem = po.compile(document)
    # An hour costs 3.6, so that a millisecond costs 1e-6: 1,000 billionths.
    assert problem.price.tolist() == [[1000, 1500, 1500], [500_002_000, 250_001_000, 1000]]
    assert po.solve(problem, solver="cp-sat").objective == 2000


@pytest.mark.parametrize(
    ("objective", "message"),
    [("price", "price needs the price of devices or of tasks"), ("tardiness", "tardiness needs due dates of tasks")],
)
def test_an_objective_needs_what_it_counts(objective: str, message: str) -> None:
    document = {"placeopt": 1, "devices": {"a": {}}, "objective": objective, "tasks": {"x": {"time": 1}}}
    with pytest.raises(po.SpecError, match=message):
        po.compile(document)
