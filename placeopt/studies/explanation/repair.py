"""Repair a schedule for slightly different constraints: a few groups are moved, and the order of tasks is kept.

Consecutive questions of the deletion filter differ by few constraints, so their schedules are similar.
"""

from __future__ import annotations

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.simulation import retime


def repaired(problem: Problem, schedule: Schedule) -> Schedule | None:
    """Move groups to allowed devices with enough memory; None if that fails.

    Separations, times and live memory are not considered; the verifier checks them. O(g m) per moved group.
    """
    allowed = problem.group_feasible()
    first = np.unique(problem.group, return_index=True)[1]
    need = np.zeros(problem.n_groups, dtype=np.int64)
    np.add.at(need, problem.group, problem.memory if problem.memory_model == "sum" else problem.resident)
    place = schedule.device[first].copy()
    used = np.zeros(problem.n_devices, dtype=np.int64)
    groups = np.arange(problem.n_groups)
    astray = ~allowed[groups, place]
    np.add.at(used, place[~astray], need[~astray])
    for group in np.flatnonzero(astray)[np.argsort(-need[astray], kind="stable")].tolist():
        open_to = np.flatnonzero(allowed[group])
        if len(open_to) == 0:
            return None
        place[group] = open_to[np.argmax(problem.capacity[open_to] - used[open_to])]
        used[place[group]] += need[group]
    for device in np.flatnonzero(used > problem.capacity).tolist():
        if not _relieved(problem, allowed, need, place, used, device):
            return None
    return retime(problem, Schedule(place[problem.group], schedule.start))


def _relieved(problem: Problem, allowed: np.ndarray, need: Int, place: Int, used: Int, device: int) -> bool:
    """Move groups off a device until its capacity suffices; False if no other device has enough memory."""
    while used[device] > problem.capacity[device]:
        excess = used[device] - problem.capacity[device]
        room = np.where(np.arange(problem.n_devices) == device, -1, problem.capacity - used)
        here = np.flatnonzero((place == device) & (need > 0))
        best = np.where(allowed[here], room, -1)
        movable = here[best.max(axis=1, initial=-1) >= need[here]]
        if len(movable) == 0:
            return False
        # The smallest group that is large enough, else the largest.
        enough = movable[need[movable] >= excess]
        group = int(enough[np.argmin(need[enough])] if len(enough) else movable[np.argmax(need[movable])])
        target = int(np.argmax(np.where(allowed[group], room, -1)))
        place[group] = target
        used[device] -= need[group]
        used[target] += need[group]
    return True
