"""List scheduling with insertion: tasks in a given order, each on the device and in the gap where it ends first.

Finish times can be penalised per device, such as by the ticks that PEFT expects to follow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem

from .construction import PartialSchedule, run_loop
from .groups import Groups
from .placement_ops import can_host, compute_ready_times, earliest_start, occupy, ready_time
from .timeline import DONE, NEVER, Instance, Timeline

BLOCK = 16
"""Tasks whose data is read ahead."""


class Penalties(NamedTuple):
    """Ticks that are added to the end of a task on a device when devices are compared.

    Attributes
    ----------
    row
        (n,) each task's row in `ticks`.
    ticks
        (r, m) ticks, not negative; an end plus a penalty stays below NEVER.
    """

    row: Int
    ticks: Int


def no_penalties(problem: Problem) -> Penalties:
    """Return penalties of zero: the device where a task ends first is the best."""
    return Penalties(np.zeros(problem.n_tasks, dtype=np.int64), np.zeros((1, problem.n_devices), dtype=np.int64))


def insert_tasks(
    problem: Problem, groups: Groups, sequence: Int, penalties: Penalties | None = None
) -> PartialSchedule:
    """Insert each task of `sequence`, a topological order, where it ends first, penalties included."""
    return run_loop(problem, groups, insert_in_order, sequence, penalties or no_penalties(problem))


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
