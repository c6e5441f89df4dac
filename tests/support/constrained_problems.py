"""Random problems with all constraints of the makespan, and schedules to start from."""

from __future__ import annotations

from typing import Any

import numpy as np
from link_lanes import linked
from placeopt_solvers._starts.warm_start import best_start

from placeopt.model.building import build_problem
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.simulation import retime


def never() -> bool:
    return False


def ignored(schedule: Schedule) -> None:
    """Ignore a schedule."""


def constrained(seed: int, n: int = 24, m: int = 3, **rest: Any) -> Problem:
    """A random graph with memory, groups, separation, forbidden devices, release times and different links.

    The contention `links` stands for shared links.
    """
    rng = np.random.default_rng(seed)
    edges = [(a, b) for b in range(n) for a in range(max(0, b - 6), b) if rng.random() < 0.3]
    resident = rng.integers(1, 10, n)
    feasible = rng.random((n, m)) < 0.9
    feasible[:, 0] = True
    group = np.arange(n)
    group[[3, 9]] = 3
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=rng.integers(0, 20, (n, m)),
        edges=edges,
        payload=rng.integers(0, 20, len(edges)),
        latency=rng.integers(0, 5, (m, m)),
        byte_ticks_num=rng.integers(1, 3, (m, m)),
        feasible=feasible,
        resident=resident,
        output=rng.integers(0, 4, n),
        capacity=np.full(m, int(resident.sum() * 0.6)),
        release=np.where(rng.random(n) < 0.3, rng.integers(0, 60, n), 0),
        group=group,
        separation=[(1, 2), (5, 20)],
        **linked(seed, m, rest),
    )


def started(problem: Problem) -> Schedule:
    start = best_start(problem, None, True)
    assert start is not None
    return retime(problem, start)
