"""List scheduling of tasks in a given order: appended to devices, or inserted into gaps; HEFT as a function.

With insertion, finish times can be penalised per device, such as by the ticks that PEFT expects to follow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Float, Int
from placeopt.model.problem import UNLIMITED, Problem, group_memory
from placeopt.model.schedule import Schedule, lateness, makespan

from .construction import (
    Build,
    Construction,
    PartialSchedule,
    best_until_stopped,
    construct_with_repair,
    filled,
    with_port_times,
)
from .groups import Groups, grouped, with_homes
from .priorities import deadline_ranks, priority_list, upward_ranks

END, WORK, IDLE, INDEX = 0, 1, 2, 3
"""Measures by which `list_tasks` chooses a device: the task's end there (minimum completion time), its duration there
(minimum execution time), the time at which the device is free (opportunistic load balancing), the device's index."""


class Penalties(NamedTuple):
    """Ticks that are added to the end of a task on a device when devices are compared."""

    row: Int
    """(n,) each task's row in `ticks`."""
    ticks: Int
    """(r, m) ticks, not negative; an end plus a penalty stays below NEVER."""


def insert_tasks(
    problem: Problem, groups: Groups, sequence: Int, penalties: Penalties | None = None
) -> PartialSchedule:
    """Insert each task of `sequence`, a topological order, where it ends first, penalties (by default 0) included."""
    if penalties is None:
        penalties = Penalties(np.zeros(problem.n_tasks, np.int64), np.zeros((1, problem.n_devices), np.int64))
    return filled(problem, groups, engine.insert_tasks, sequence, penalties.row, penalties.ticks)


def list_tasks(
    problem: Problem, groups: Groups, sequence: Int, measure: int, *, insertion: bool = False
) -> PartialSchedule:
    """Place each task of `sequence`, a topological order, on the best device by `measure` (END, WORK, ...).

    A task is appended to the tasks of its device, or with `insertion` uses the first gap that fits.
    """
    return filled(problem, groups, engine.list_tasks, sequence, measure, insertion=insertion)


def fill_devices(problem: Problem, groups: Groups, sequence: Int, most: int = UNLIMITED) -> PartialSchedule:
    """Append the tasks of `sequence`, a topological order, to the first device until it is full, then to the next.

    A device is full if it has no memory for the next task, or would hold more than `most` bytes by the model `sum`.
    """
    weight, share = group_memory(problem), np.full(problem.n_devices, most)
    there = np.flatnonzero(groups.home >= 0)
    np.subtract.at(share, groups.home[there], weight[there])
    return filled(problem, groups, engine.fill_devices, sequence, weight, share)


def heft(problem: Problem) -> Construction:
    """Return HEFT's schedule; if it misses a deadline, the better of it and one with ranks against deadlines."""
    return _ranked(problem, lambda rank: construct_with_repair(problem, by_rank(problem, rank)))


def heft_on_homes(problem: Problem, home: Int) -> Schedule:
    """Return HEFT's schedule with every group on a given device (g,)."""
    groups = with_homes(grouped(problem), home)
    found = _ranked(problem, lambda rank: Construction(with_port_times(problem, by_rank(problem, rank)(groups).line)))
    assert found.schedule is not None, "every group has its device"
    return found.schedule


def by_rank(problem: Problem, rank: Float) -> Build:
    """Return list scheduling with insertion by decreasing rank (n,)."""
    sequence = priority_list(problem, rank)
    return lambda groups: insert_tasks(problem, groups, sequence)


def _ranked(problem: Problem, construct: Callable[[Float], Construction]) -> Construction:
    found = construct(upward_ranks(problem))
    if found.schedule is None or not lateness(problem, found.schedule):
        return found
    rank = deadline_ranks(problem, makespan(problem, found.schedule))
    return best_until_stopped(problem, (lambda: found, lambda: construct(rank)))
