"""Tardiness, price and the number of devices: exact solvers against brute force, and valid bounds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import placeopt as po
from tests.support.brute_force import optimum, small_problem

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
