"""The numbers of time that a mixed-integer programme is built with, and why they are valid."""

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

    Attributes
    ----------
    unit
        Ticks of which every duration, transfer and release time is a multiple. So is then every start of a
        schedule in which nothing can start earlier by itself; a deadline may be rounded down to one.
    horizon
        By which some optimal schedule has ended, and every one at least as good as the incumbent if the
        first level of the objective counts the makespan.
    duration
        Per task and device.
    transfer
        Per edge, sending and receiving device; 0 between a device and itself.
    earliest, latest
        Per task: what its start cannot precede, what its end cannot exceed.
    least
        Per task: its shortest duration.
    after
        Per task: the set of tasks that a path leads to, as the bits of a number.
    """

    unit: int
    horizon: int
    duration: list[list[int]]
    transfer: list[list[list[int]]]
    earliest: list[int]
    latest: list[int]
    least: list[int]
    after: list[int]

    def ordered(self, i: int, j: int) -> bool:
        """Whether a path leads from one of two tasks to the other."""
        return bool(self.after[i] >> j & 1 or self.after[j] >> i & 1)


def times_of(problem: Problem, allowed: Bool, incumbent: Value | None) -> Times:
    """Units, horizon and windows, for schedules whose first level is no worse than the incumbent's; O(n e + e m^2).

    The horizon. Take an optimal schedule. Where after the last release time there is a tick at which nothing runs
    and nothing moves, cut it out and let all that follows come one tick earlier. Every rule still holds:
    nothing in flight is cut, no release time is touched, deadlines only get easier, and what is live at any tick was
    live at some tick before. No metric grows. In what is left, every tick after the last release time has a task or a
    transfer, so that all ends by that time plus the sum of all durations and all transfers, each taken where it is
    longest. And if the makespan has weight w > 0 in the first level of value V, every schedule
    no worse ends by V / w.

    The windows follow paths: the start of a task from its release time and the ends of its producers, each as short as
    it can be, transfers left out; its end from its deadline, the horizon and the latest ends of its consumers.
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
