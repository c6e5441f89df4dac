"""Cutting a graph into segments: optimal on chains, and always within memory."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem
from placeopt_solvers._runs.validity import valid
from placeopt_solvers._starts.segments import segmented

from placeopt.model.building import build_problem
from placeopt.model.problem import UNLIMITED, Objective, Problem
from placeopt.model.schedule import makespan


def chain(seed: int, n: int, m: int, **rest: Any) -> Problem:
    """A chain on m small devices of one class and, as the last, a slow one without a limit."""
    rng = np.random.default_rng(seed)
    fast, size = rng.integers(1, 10, n), rng.integers(1, 10, n)
    links = np.full((m, m), 2)
    links[:, m - 1] = links[m - 1, :] = 1
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=np.stack([fast] * (m - 1) + [fast * 4], axis=1),
        edges=list(itertools.pairwise(range(n))),
        payload=rng.integers(0, 10, n - 1),
        byte_ticks_num=links,
        resident=size,
        capacity=np.array([max(int(size.sum()) // 2, 9)] * (m - 1) + [UNLIMITED]),
        **rest,
    )


@pytest.mark.parametrize("seed", range(30))
def test_chains_are_cut_where_it_is_cheapest(seed: int) -> None:
    """Brute force over all placements. The cut uses each device but the last once, so it is optimal among those."""
    problem = chain(seed, 6, 3)
    found = list(segmented(problem))
    assert found
    assert all(valid(problem, schedule) for schedule in found)
    best = min(_of_segments(problem, home) for home in itertools.product(range(3), repeat=6) if _keeps(problem, home))
    assert min(makespan(problem, schedule) for schedule in found) == best


def _keeps(problem: Problem, home: tuple[int, ...]) -> bool:
    """Whether it fits, and no device but the last has two segments."""
    runs = [d for d, _ in itertools.groupby(home)]
    held = [sum(int(problem.memory[i]) for i, d in enumerate(home) if d == e) for e in range(3)]
    return all(runs.count(d) <= 1 for d in (0, 1)) and held[0] <= problem.capacity[0] and held[1] <= problem.capacity[1]


def _of_segments(problem: Problem, home: tuple[int, ...]) -> int:
    moving = sum(int(problem.transfer(b, *ab)) for b, ab in zip(problem.payload, itertools.pairwise(home), strict=True))
    return moving + sum(int(problem.duration[i, d]) for i, d in enumerate(home))


@pytest.mark.parametrize("seed", range(60))
def test_every_result_is_a_schedule(seed: int) -> None:
    problem = small_problem(np.random.default_rng(6000 + seed), Objective())
    if len(problem.separation):
        return
    for schedule in segmented(problem):
        if problem.contention == "none":
            assert valid(problem, schedule)
        best = optimum(problem)
        assert best is not None


def test_tasks_that_a_device_may_not_run_end_a_segment() -> None:
    feasible = np.ones((6, 3), dtype=np.bool_)
    feasible[2, :2] = False
    problem = chain(1, 6, 3, feasible=feasible)
    found = list(segmented(problem))
    assert found
    assert all(valid(problem, schedule) and schedule.device[2] == 2 for schedule in found)


@pytest.mark.parametrize("rest", [{"group": np.array([0, 1, 2, 0, 3, 4])}, {"capacity": np.full(3, UNLIMITED)}])
def test_groups_and_large_devices_have_no_segments(rest: dict[str, Any]) -> None:
    problem = chain(1, 6, 3)
    arrays = {"resident": problem.resident, "capacity": problem.capacity} | rest
    other = build_problem(
        task_names=problem.task_names,
        device_names=problem.device_names,
        duration=problem.duration,
        edges=np.stack((problem.edge_source, problem.edge_target), axis=1),
        payload=problem.payload,
        byte_ticks_num=problem.byte_ticks_num,
        **arrays,
    )
    assert not list(segmented(other))


def test_nothing_fits() -> None:
    problem = build_problem(
        task_names=["a", "b", "c"],
        device_names=["x"],
        duration=np.ones((3, 1), dtype=np.int64),
        resident=np.array([2, 2, 2]),
        capacity=np.array([3]),
    )
    assert not list(segmented(problem))
