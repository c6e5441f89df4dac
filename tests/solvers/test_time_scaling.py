"""Longer ticks: the same optimum, and schedules and values that convert back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from brute_force import optimum, small_problem
from placeopt_solvers._runs.time_scaling import coarsened
from placeopt_solvers._runs.validity import valid
from placeopt_solvers.exact._cp_sat.run import CpSatSettings
from placeopt_solvers.exact.cp_sat import CpSat

import placeopt as po
from placeopt.model.building import build_problem
from placeopt.model.objective import evaluate
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.protocol import Options, Termination


def stretched(problem: Problem, unit: int, rng: np.random.Generator) -> Problem:
    """The problem with all times `unit` times as long; deadlines a little later than that."""
    bounded = problem.deadline != UNLIMITED
    late = problem.deadline * unit + rng.integers(0, unit, problem.n_tasks)
    arrays = {
        "duration": problem.duration * unit,
        "latency": problem.latency * unit,
        "release": problem.release * unit,
        "relocation": problem.relocation * unit,
        "deadline": np.where(bounded, np.where(bounded, late, 0), UNLIMITED),
        "byte_ticks_num": problem.byte_ticks_num * unit,
        "byte_ticks_den": np.ones_like(problem.byte_ticks_den),
    }
    return replace(problem, **arrays)


@pytest.mark.parametrize("seed", range(80))
def test_longer_ticks_keep_the_optimum(seed: int) -> None:
    rng = np.random.default_rng(5000 + seed)
    unit = int(rng.integers(2, 12))
    problem = stretched(small_problem(rng, times=True), unit, rng)
    found = coarsened(problem)
    assert found.unit % unit == 0 or not (problem.duration.any() or problem.release.any())
    best, coarse = optimum(problem), optimum(found.problem)
    assert (best is None) == (coarse is None)
    if best is None or coarse is None:
        return
    assert best[0] == coarse[0]
    fine = found.fine(coarse[1])
    assert valid(problem, fine)
    assert tuple(evaluate(problem, fine)) == best[0]
    rounded = found.coarse(best[1])
    assert valid(found.problem, rounded)
    assert tuple(evaluate(found.problem, rounded)) == best[0]
    answer = CpSat().solve(problem, Options(time_limit=60, initial=best[1]), CpSatSettings(hint=seed % 2 == 0))
    assert answer.termination is Termination.OPTIMAL
    assert answer.bound == best[0][0]
    assert answer.schedule is not None
    assert tuple(evaluate(problem, answer.schedule)) == best[0]


def two(**rest: object) -> Problem:
    return build_problem(
        task_names=["a", "b"],
        device_names=["x", "y"],
        duration=np.array([[6, 6], [12, 12]]),
        edges=[(0, 1)],
        payload=[9],
        byte_ticks_num=np.full((2, 2), 2),
        byte_ticks_den=np.full((2, 2), 3),
        **rest,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("rest", "unit"),
    [
        ({}, 6),
        ({"release": [0, 4]}, 2),
        ({"release": [0, 5]}, 1),
        ({"deadline": [7, 35]}, 6),
        ({"latency": [[0, 2], [3, 0]]}, 1),
        ({"latency": [[0, 3], [3, 0]]}, 3),
    ],
)
def test_the_unit_is_the_common_divisor(rest: dict[str, object], unit: int) -> None:
    found = coarsened(two(**{key: np.array(value) for key, value in rest.items()}))
    assert found.unit == unit
    assert found.problem.duration[:, 0].tolist() == [6 // unit, 12 // unit]


def test_deadlines_round_down() -> None:
    assert coarsened(two(deadline=np.array([7, 35]))).problem.deadline.tolist() == [1, 5]


def test_ratios_that_need_too_many_bits_prevent_scaling() -> None:
    problem = replace(two(), power_num=np.array([2**31 - 1, 1]), power_den=np.array([2**30 + 3, 1]))
    assert coarsened(problem).unit == 1


def test_large_ticks_are_presolved() -> None:
    """Seconds in nanoseconds become numbers that CP-SAT may presolve."""
    problem = replace(two(), duration=np.array([[6, 6], [12, 12]]) * 10**10)
    problem = replace(problem, byte_ticks_num=np.full((2, 2), 2 * 10**10))
    assert coarsened(problem).unit == 6 * 10**10
    result = po.solve(problem, "cp-sat", workers=1)
    assert (result.termination, result.objective) == (Termination.OPTIMAL, 18 * 10**10)


def test_without_any_time_ticks_do_not_change() -> None:
    problem = build_problem(task_names=["a"], device_names=["x"], duration=np.zeros((1, 1), dtype=np.int64))
    assert coarsened(problem).unit == 1
