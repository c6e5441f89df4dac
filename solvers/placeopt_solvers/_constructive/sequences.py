"""List scheduling of tasks in a given order: appended to devices, or inserted into gaps; HEFT as a function.

With insertion, finish times can be penalised per device, such as by the ticks that PEFT expects to follow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Float, Int
from placeopt.model.problem import UNLIMITED, Problem, group_memory
from placeopt.model.schedule import Schedule, lateness, makespan

from .construction import (
    Build,
    Construction,
    PartialSchedule,
    best_of,
    construct_with_repair,
    run_loop,
    with_port_times,
)
from .groups import Groups, grouped, with_homes
from .placement_ops import (
    append,
    can_host,
    compute_ready_times,
    earliest_start,
    has_room,
    occupy,
    place,
    ready_time,
    slot,
)
from .priorities import deadline_ranks, priority_list, upward_ranks
from .timeline import DONE, NEVER, Instance, Timeline

BLOCK = 16
"""Tasks whose data is read ahead."""

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
    return run_loop(problem, groups, insert_in_order, sequence, penalties)


@kernel(allocates=False)
def fetch(instance: Instance, line: Timeline, sequence: Int, position: int) -> None:
    """Read the data of the next BLOCK tasks, which loads it into the cache for all of them at once.

    Tasks that follow each other by rank are far apart in memory. This saves a sixth of the time of a million tasks.
    """
    total = 0
    for k in range(position, min(position + BLOCK, len(sequence))):
        i = sequence[k]
        g = instance.group[i]
        total += (
            instance.duration[i, 0]
            + instance.in_start[i]
            + instance.release[i]
            + instance.memory[g]
            + instance.apart_start[g]
        )
    line.arrival[0] = total  # scratch; without a use of the sum the compiler would drop the reads


@kernel(compute_ready_times, ready_time, can_host, earliest_start, occupy, fetch, allocates=False)
def insert_in_order(instance: Instance, line: Timeline, sequence: Int, penalties: Penalties) -> int:
    """Place the tasks in turn where they end first; return DONE or the task that no device can take."""
    m = len(line.room)
    for position in range(len(sequence)):
        if position % BLOCK == 0:
            fetch(instance, line, sequence, position)
        i = sequence[position]
        g = instance.group[i]
        best, best_worth, best_start, best_gap = line.home[g], NEVER, 0, 0
        if best >= 0:
            best_start, best_gap = earliest_start(instance, line, i, best, ready_time(instance, line, i, best))
        else:
            compute_ready_times(instance, line, i)
            row = penalties.row[i]
            for d in range(m):
                # A task starts no earlier than its data arrives: this rules out most devices without a search for gaps.
                work = instance.duration[i, d] + penalties.ticks[row, d]
                if line.ready[d] + work >= best_worth or not can_host(instance, line, g, d):
                    continue
                start, gap = earliest_start(instance, line, i, d, line.ready[d])
                if start + work < best_worth:
                    best, best_worth, best_start, best_gap = d, start + work, start, gap
            if best < 0:
                return int(i)
        occupy(instance, line, i, best, best_start, best_gap)
    return DONE


def list_tasks(
    problem: Problem, groups: Groups, sequence: Int, measure: int, *, insertion: bool = False
) -> PartialSchedule:
    """Place each task of `sequence`, a topological order, on the best device by `measure` (END, WORK, ...).

    A task is appended to the tasks of its device, or with `insertion` uses the first gap that fits.
    """
    return run_loop(problem, groups, list_in_order, sequence, measure, insertion=insertion)


def fill_devices(problem: Problem, groups: Groups, sequence: Int, most: int = UNLIMITED) -> PartialSchedule:
    """Append the tasks of `sequence`, a topological order, to the first device until it is full, then to the next.

    A device is full if it has no memory for the next task, or would hold more than `most` bytes by the model `sum`.
    """
    weight, share = group_memory(problem), np.full(problem.n_devices, most)
    there = np.flatnonzero(groups.home >= 0)
    np.subtract.at(share, groups.home[there], weight[there])
    return run_loop(problem, groups, fill_in_order, sequence, weight, share)


@kernel(compute_ready_times, slot, can_host, place, allocates=False)
def list_in_order(instance: Instance, line: Timeline, sequence: Int, measure: int) -> int:
    """Place the tasks in turn; return DONE or the task that no device can take."""
    m = len(line.room)
    for position in range(len(sequence)):
        i = sequence[position]
        g = instance.group[i]
        best, least = line.home[g], NEVER
        if best < 0:
            if measure == END:
                compute_ready_times(instance, line, i)
            for d in range(m):
                if measure == END:
                    work = instance.duration[i, d]
                    if line.ready[d] + work >= least:
                        continue
                    start, _ = slot(instance, line, i, d, line.ready[d])
                    worth = start + work
                elif measure == WORK:
                    worth = instance.duration[i, d]
                elif measure == IDLE:
                    worth = line.free[d]
                else:
                    worth = d
                if worth < least and can_host(instance, line, g, d):
                    best, least = d, worth
            if best < 0:
                return int(i)
        place(instance, line, i, best)
    return DONE


@kernel(ready_time, can_host, has_room, append, allocates=False)
def fill_in_order(instance: Instance, line: Timeline, sequence: Int, weight: Int, share: Int) -> int:
    """Place the tasks in turn; return DONE or the task that no device can take.

    `weight` (g,) are the bytes that count for the `share` (m,) that each device has left.
    """
    m = len(line.room)
    filling = 0
    for position in range(len(sequence)):
        i = sequence[position]
        g = instance.group[i]
        best = line.home[g]
        if best < 0:
            while filling < m - 1 and (share[filling] < weight[g] or not has_room(instance, line, g, filling)):
                filling += 1
            # First the devices from the current one on, then all devices up to their full memory.
            for offset in range(2 * m):
                d = (filling + offset) % m
                enough = share[d] >= weight[g] and d >= filling
                if (enough or offset >= m) and can_host(instance, line, g, d):
                    best = d
                    break
            if best < 0:
                return int(i)
            share[best] -= weight[g]
        append(instance, line, i, best, max(ready_time(instance, line, i, best), line.free[best]))
    return DONE


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
    return best_of(problem, [found, construct(rank)])
