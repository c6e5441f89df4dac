"""Enumerate all placements of a tiny pipeline, with all replicas, orders of stages and recomputation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.model.schedule import Stages
from placeopt.model.stages import forward_in_training, rules, trivial_stages

from .._constructive.groups import grouped, possible
from ._assessment import assessed, numberings, teams


def best_pipeline(problem: Problem, step: Callable[[], None], found: Callable[[Int, Stages, int], None]) -> int | None:
    """Report every placement that is better than all before; return the least period, None if none is feasible.

    `step` is called for every placement, and ends the search by an exception.
    """
    least: int | None = None
    nothing = np.zeros(problem.n_devices, dtype=np.int64)
    for device in placements(problem):
        step()
        numbers = numberings(problem, device) if rules(problem).numbered else [trivial_stages(problem, device).number]
        for number, leader, again in itertools.product(
            list(numbers), list(teams(problem, device)), list(recomputed(problem, device))
        ):
            stages = Stages(number, leader, again, nothing)
            value = assessed(problem, device, stages)
            if value is not None and (least is None or value < least):
                least = value
                found(device, stages, value)
    return least


def placements(problem: Problem) -> Iterator[Int]:
    """Yield all placements that satisfy feasibility, groups, separations and `sum` memory, up to equal devices."""
    groups = grouped(problem)
    if groups.stuck is not None:
        return
    home, room = groups.home.copy(), groups.room.copy()
    free = np.flatnonzero(home < 0).tolist()

    def place(depth: int) -> Iterator[Int]:
        if depth == len(free):
            yield home[problem.group]
            return
        k = free[depth]
        fresh: set[int] = set()
        for d in possible(groups, home, room, k).tolist():
            if not (home == d).any():
                if int(problem.device_class[d]) in fresh:
                    continue
                fresh.add(int(problem.device_class[d]))
            home[k] = d
            room[d] -= groups.memory[k]
            yield from place(depth + 1)
            home[k] = -1
            room[d] += groups.memory[k]

    yield from place(0)


def recomputed(problem: Problem, device: Int) -> Iterator[Int]:
    """Yield every choice (m,) of devices that compute outputs again, among those that can."""
    m = problem.n_devices
    able = np.unique(device[forward_in_training(problem)]).tolist() if rules(problem).recompute else []
    for chosen in itertools.product((0, 1), repeat=len(able)):
        again = np.zeros(m, dtype=np.int64)
        again[able] = chosen
        yield again
