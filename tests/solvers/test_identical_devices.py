"""Device classes as pools: the same optimum, valid schedules, and no pool where a class does not allow it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from brute_force import optimum
from placeopt_solvers._runs.validity import valid
from placeopt_solvers.exact._cp_sat.identical_devices import pools
from placeopt_solvers.exact._cp_sat.run import CpSatSettings
from placeopt_solvers.exact.cp_sat import CpSat

from placeopt.model.building import build_problem
from placeopt.model.objective import evaluate
from placeopt.model.problem import UNLIMITED, Objective, Problem, Term
from placeopt.model.schedule import Schedule
from placeopt.protocol import Options, Termination

OBJECTIVES = (
    Objective(),
    Objective(((Term("makespan"),), (Term("total_cost"),))),
    Objective(((Term("makespan"), Term("total_cost")),)),
    Objective(((Term("total_cost"),),)),
)


def cpus_and_accelerator(rng: np.random.Generator, n: int, k: int, **rest: Any) -> Problem:
    """k CPUs with free transfers between them, and an accelerator with little memory."""
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.3]
    links = np.ones((k + 1, k + 1), dtype=np.int64)
    links[:k, :k] = 0
    duration = np.repeat(rng.integers(1, 8, (n, 1)), k + 1, axis=1)
    duration[:, k] = rng.integers(0, 8, n)
    arrays: dict[str, Any] = {
        "resident": rng.integers(0, 5, n),
        "output": rng.integers(0, 5, n),
        "memory_model": "peak" if rng.random() < 0.4 else "sum",
        "capacity": np.array([UNLIMITED] * k + [int(rng.integers(4, 20))]),
        "release": np.where(rng.random(n) < 0.3, rng.integers(0, 6, n), 0),
        "deadline": np.where(rng.random(n) < 0.2, rng.integers(10, 25, n), UNLIMITED),
        "objective": OBJECTIVES[int(rng.integers(len(OBJECTIVES)))],
        "duration": duration,
    }
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"cpu{d}" for d in range(k)] + ["acc"],
        edges=edges,
        payload=rng.integers(0, 6, len(edges)),
        byte_ticks_num=links,
        **(arrays | rest),
    )


@pytest.mark.parametrize("seed", range(40))
def test_pools_keep_the_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = cpus_and_accelerator(rng, int(rng.integers(3, 6)), int(rng.integers(2, 4)))
    assert len(pools(problem, True).slots) == 2
    best = optimum(problem)
    answer = CpSat().solve(problem, Options(time_limit=60, seed=seed), CpSatSettings(hint=seed % 2 == 0))
    if best is None:
        assert answer.termination is Termination.INFEASIBLE
        return
    assert answer.termination is Termination.OPTIMAL
    assert answer.bound == best[0][0]
    assert answer.schedule is not None
    assert valid(problem, answer.schedule)
    assert tuple(evaluate(problem, answer.schedule)) == best[0]


@pytest.mark.parametrize("seed", range(8))
def test_larger_problems_have_the_same_optimum_either_way(seed: int) -> None:
    problem = cpus_and_accelerator(np.random.default_rng(seed), 12, 3)
    answers = [CpSat().solve(problem, Options(time_limit=60), CpSatSettings(pool=pool)) for pool in (False, True)]
    assert answers[0].termination == answers[1].termination
    assert answers[0].bound == answers[1].bound


def test_the_spread_uses_a_device_again_once_it_is_free() -> None:
    problem = cpus_and_accelerator(np.random.default_rng(0), 4, 2, duration=np.full((4, 3), 2))
    found = pools(problem, True)
    assert (found.slots, found.members) == ([2, 1], [[0, 1], [2]])
    spread = found.spread(Schedule(np.zeros(4, dtype=np.int64), np.array([0, 1, 2, 3])))
    assert spread.device.tolist() == [0, 1, 0, 1]
    assert found.pooled(spread).device.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "rest",
    [
        {"contention": "port"},
        {"objective": Objective(((Term("max_load"),),))},
        {"objective": Objective(((Term("makespan"),), (Term("communication"),)))},
        {"separation": [(0, 2)]},
        {"group": np.array([0, 1, 1, 2, 3])},
        {"duration": np.array([[1, 1, 1], [1, 1, 1], [0, 0, 1], [1, 1, 1], [1, 1, 1]])},
        {"capacity": np.array([3, 3, 9]), "resident": np.ones(5, dtype=np.int64)},
        {"latency": np.ones((3, 3), dtype=np.int64)},
    ],
)
def test_classes_that_cannot_be_pooled_are_unchanged(rest: dict[str, Any]) -> None:
    problem = cpus_and_accelerator(np.random.default_rng(3), 5, 2, **rest)
    assert pools(problem, True).problem is problem


def test_tasks_that_cannot_run_there_do_not_count() -> None:
    """A group, a separated task and one of no duration, all feasible only on the accelerator; memory for the rest."""
    feasible = np.ones((5, 3), dtype=np.bool_)
    feasible[:4, :2] = False
    rest: dict[str, Any] = {"separation": [(0, 1)], "group": np.array([0, 1, 2, 2, 3]), "feasible": feasible}
    problem = cpus_and_accelerator(np.random.default_rng(3), 5, 2, capacity=np.array([99, 99, 200]), **rest)
    assert pools(problem, True).slots == [2, 1]
    assert pools(problem, False).problem is problem
