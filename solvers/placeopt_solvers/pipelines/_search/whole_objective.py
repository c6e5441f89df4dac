"""Improve a pipeline's objective as a whole, where it counts more than the period, such as [period, makespan].

The other searches minimise the period alone. This one is a descent with random moves: tasks move to the device of a
neighbour or to any device, two devices change their tasks, a device joins or leaves a team, or begins or ceases to
compute outputs again. One or two of them are accepted if the objective of the periodic schedule does not increase. That
takes the time of a whole periodic schedule, so that the descent is for some hundred tasks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.objective import evaluate
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, Stages
from placeopt.model.stages import rules, trivial_stages
from placeopt.simulation.pipelines import periodic_schedule, stage_numbers

from .._shared.assessment import accepted, assessed, permitted

PATIENCE = 40
"""Moves without a gain, per group and device, after which the descent ends."""


def improve(
    problem: Problem, start: Schedule, seed: int, stopped: Callable[[], bool], offer: Callable[[Schedule], object]
) -> None:
    """Offer schedules that are better than the start, each better than the last."""
    stages = accepted(problem, start)
    if stages is None:
        return
    random = np.random.default_rng(seed)
    device, best = start.device, evaluate(problem, start)
    first = problem.objective.levels[0]
    idle = 0
    while idle < PATIENCE * problem.n_groups * problem.n_devices and not stopped():
        idle += 1
        found = _moved(problem, device, stages, random)
        period = None if found is None else assessed(problem, *found)
        if found is None or period is None:
            continue
        if len(first) == 1 and first[0].metric == "period" and first[0].weight * period > best[0]:
            continue
        schedule = periodic_schedule(problem, *found)
        values = evaluate(problem, schedule)
        if values <= best:
            device, stages = found
        if values < best:
            best, idle = values, 0
            offer(schedule)


def _moved(problem: Problem, device: Int, stages: Stages, random: np.random.Generator) -> tuple[Int, Stages] | None:
    """Return a random neighbour of a placement, one or two moves away; None if it is not permitted."""
    device, leader, again = device.copy(), stages.leader.copy(), stages.recompute.copy()
    for _ in range(int(random.integers(1, 3))):
        device, leader, again = _changed(problem, device, leader, again, random)
    leader[device] = device  # a replica that gets tasks leaves its team
    numbered = rules(problem).numbered
    number = stage_numbers(problem, device) if numbered else trivial_stages(problem, device).number
    if number is None:
        return None
    found = Stages(number, leader, again, np.zeros(problem.n_devices, dtype=np.int64))
    return (device, found) if permitted(problem, device, found) else None


def _changed(
    problem: Problem, device: Int, leader: Int, again: Int, random: np.random.Generator
) -> tuple[Int, Int, Int]:
    """Return devices (n,), leaders (m,) and recomputation (m,) after a move; the arrays may be changed."""
    pipeline, m = rules(problem), problem.n_devices
    a, b = random.integers(m, size=2)
    kind = int(random.integers(5))
    if kind == 0 and problem.n_edges:
        edge = random.integers(problem.n_edges)
        ends = [problem.edge_source[edge], problem.edge_target[edge]]
        random.shuffle(ends)
        device[problem.group == problem.group[ends[0]]] = device[ends[1]]
    elif kind == 1:
        device[problem.group == random.integers(problem.n_groups)] = a
    elif kind == 2:
        role = np.arange(m)
        role[[a, b]] = b, a
        device, leader, again = role[device], role[leader[role]], again[role]
    elif kind == 3 and pipeline.recompute:
        again[a] = 1 - again[a]
    elif kind == 4 and pipeline.replicas > 1 and leader[b] == b:
        leader[a] = b
    return device, leader, again
