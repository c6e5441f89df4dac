"""Compute the units, the horizon and the time windows of a mixed-integer program, and state why they are valid."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from placeopt.model.arrays import Bool
from placeopt.model.objective import Value
from placeopt.model.problem import UNLIMITED, Problem


@dataclass(frozen=True, slots=True)
class Times:
    """Times in units of `unit` ticks.

    Every duration, transfer and release time is a multiple of the unit. So is every start of a schedule in which
    nothing can start earlier by itself; deadlines may be rounded down to a multiple. By the horizon, some optimal
    schedule ends, and every one at least as good as the incumbent if the first level contains the makespan.
    """

    unit: int
    horizon: int
    duration: list[list[int]]  # of each task on each device
    transfer: list[list[list[int]]]  # of each edge, between sender and receiver; 0 between a device and itself
    earliest: list[int]  # lower bound of each task's start
    latest: list[int]  # upper bound of each task's end
    least: list[int]  # shortest duration of each task
    after: list[int]  # direct and indirect successors of each task, as the bits of a number

    def ordered(self, i: int, j: int) -> bool:
        """Return whether a path leads from one of two tasks to the other."""
        return bool(self.after[i] >> j & 1 or self.after[j] >> i & 1)


def times_of(problem: Problem, allowed: Bool, incumbent: Value | None) -> Times:
    """Return units, horizon and windows for schedules no worse than the incumbent. O(n e + e m^2).

    The horizon. Take an optimal schedule and remove each tick after the last release time at which nothing runs and
    nothing moves. It stays valid, and no metric grows (`_cp_sat.limits` gives the argument). So it ends by that time
    plus the sum of all durations and all transfers, each with its maximum over the devices. If the makespan has weight
    w > 0 in the first level of value V, every schedule no worse ends by V / w.

    The windows follow paths. The start of a task follows from its release time and the earliest ends of its producers,
    with least durations and without transfers; its end from its deadline, the horizon and its consumers.
    """
    n, m = problem.n_tasks, problem.n_devices
    devices = np.arange(m)
    moving = np.asarray(problem.transfer(problem.payload[:, None, None], devices[:, None], devices[None, :]))
    may_run = allowed[problem.group]
    durations = problem.duration[may_run].tolist()
    unit = math.gcd(*durations, *moving.ravel().tolist(), *problem.release.tolist()) or 1

    longest = np.where(may_run, problem.duration, 0).max(axis=1, initial=0)
    ticks = (
        int(problem.release.max(initial=0)) + sum(longest.tolist()) + sum(moving.max(axis=(1, 2), initial=0).tolist())
    )
    weight = next((term.weight for term in problem.objective.levels[0] if term.metric == "makespan"), 0)
    if incumbent is not None and weight > 0:
        ticks = min(ticks, int(incumbent / weight))
    horizon = ticks // unit

    least = (np.where(may_run, problem.duration, UNLIMITED).min(axis=1, initial=UNLIMITED) // unit).tolist()
    earliest = (problem.release // unit).tolist()
    latest = np.minimum(problem.deadline // unit, horizon).tolist()
    after = [0] * n
    target, first = problem.edge_target.tolist(), problem.out_start.tolist()
    for i in problem.order.tolist():
        for j in target[first[i] : first[i + 1]]:
            earliest[j] = max(earliest[j], earliest[i] + least[i])
    for i in reversed(problem.order.tolist()):
        for j in target[first[i] : first[i + 1]]:
            latest[i] = min(latest[i], latest[j] - least[j])
            after[i] |= after[j] | 1 << j
    return Times(
        unit=unit,
        horizon=horizon,
        duration=(problem.duration // unit).tolist(),
        transfer=(moving // unit).tolist(),
        earliest=earliest,
        latest=latest,
        least=least,
        after=after,
    )
