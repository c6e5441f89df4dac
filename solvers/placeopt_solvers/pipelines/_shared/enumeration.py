"""Enumerate all placements of a tiny pipeline, with all replicas, orders of stages and recomputation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.memory import pipeline_memory
from placeopt.model.period import loads
from placeopt.model.problem import Problem
from placeopt.model.schedule import Stages
from placeopt.model.stages import backward, forward_in_training, rules, trivial_stages

from ..._constructive.groups import grouped, possible
from .assessment import assessed, numberings, sound_machines, teams


def best_pipeline(problem: Problem, step: Callable[[], None], found: Callable[[Int, Stages, int], None]) -> int | None:
    """Report every placement that may be better than all before; return the least period, None if none is feasible.

    `step` is called for every placement, and ends the search by an exception. Combinations are left out only where
    loads without recomputation and synchronisation, which add to them, reach the least period so far; they exceed it
    if further levels of the objective compare equal periods. Where the first level is not the period, none is left out.
    """
    least: int | None = None
    single = problem.objective.single == "period"
    first = [term.metric for term in problem.objective.levels[0]] == ["period"]

    def useless(period: int) -> bool:
        return least is not None and first and (period >= least if single else period > least)

    m = problem.n_devices
    alone, nothing = np.arange(m), np.zeros(m, dtype=np.int64)
    most = np.minimum(rules(problem).replicas, np.bincount(problem.device_class)[problem.device_class])

    def worse(device: Int, number: Int, team: Int) -> bool:
        load = loads(problem, device, Stages(number, alone, nothing, nothing)).busiest
        return useless(int((-(-load // team)).max(initial=0)))

    for device in placements(problem):
        step()
        trivial = trivial_stages(problem, device)
        if not sound_machines(problem, device) or worse(device, trivial.number, most):
            continue
        redone = list(recomputed(problem, device))
        if rules(problem).in_flight != "1f1b":  # neither stages nor teams change the memory
            redone = [
                again for again in redone if _fits(problem, device, Stages(trivial.number, alone, again, nothing))
            ]
        if not redone:
            continue
        for number in distinct(problem, device):
            if worse(device, number, most):
                continue
            for leader in teams(problem, device):
                if worse(device, number, np.maximum(np.bincount(leader, minlength=m), 1)):
                    continue
                for again in redone:
                    stages = Stages(number, leader.copy(), again, nothing)
                    value = assessed(problem, device, stages)
                    if value is not None and not useless(value):
                        least = value if least is None else min(least, value)
                        found(device, stages, value)
    return least


def _fits(problem: Problem, device: Int, stages: Stages) -> bool:
    return bool((pipeline_memory(problem, device, stages) <= problem.capacity).all())


def distinct(problem: Problem, device: Int) -> Iterator[Int]:
    """Yield one of all numberings (n,) with the same number of stages of each device and order of forward stages."""
    if not rules(problem).numbered:
        yield trivial_stages(problem, device).number
        return
    ahead, seen = ~backward(problem), set()
    for number in numberings(problem, device):
        _, first = np.unique(number, return_index=True)
        _, line = np.unique(number[ahead], return_index=True)
        order = device[ahead][line].tolist() if rules(problem).in_flight == "1f1b" else []
        key = (*np.bincount(device[first], minlength=problem.n_devices).tolist(), -1, *order)
        if key not in seen:
            seen.add(key)
            yield number


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
