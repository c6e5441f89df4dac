"""Scheduling of the ready task with the latest earliest end (max-min) or the widest gap to its second best end.

The earliest ends of a ready task over the devices only grow. They are recomputed only if the task's best device (for
the gap: or its second best) was the last one used, or if its group was assigned a home. All ready tasks are scanned in
each step: O(n W + r m + e m), where W is the maximum number of tasks ready at once and r <= n W the number of
recomputations: few if arrivals decide, close to n W if many tasks agree on the best device.

Under port contention later transfers delay the data of ready tasks. It is recomputed for the chosen task, whose device
is then chosen by it.

With insertion (`slot`) ends only grow as well, because gaps only shrink. With batches, all ready tasks are placed
before those that become ready meanwhile.
"""

from __future__ import annotations

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem

from .._constructive.construction import PartialSchedule, run_loop
from .._constructive.groups import Groups
from .._constructive.placement_ops import can_run, compute_ready_times, slot
from .._constructive.ready_list import Ready, ReadySettings, admit_sources, first_unplaced, make_ready, place_ready
from .._constructive.timeline import NEVER, Instance, Timeline

BEST, END, SECOND, SECOND_END = range(4)
"""Notes on a ready task: the device where it ends first and the end there, then the second best; NEW or NOWHERE."""

NEW, NOWHERE = -1, -2
"""In place of a device: not computed yet; no device can take the task."""


def schedule_neediest(problem: Problem, groups: Groups, settings: ReadySettings, *, by_gap: bool) -> PartialSchedule:
    """Schedule the ready task with the latest earliest end, or the widest gap to the second, where it ends first."""
    members = np.bincount(problem.group)
    return run_loop(
        problem, groups, place_neediest, make_ready(problem, notes=4), members, by_gap, settings.batches,
        insertion=settings.insertion,
    )  # fmt: skip


@kernel(can_run, slot, allocates=False)
def weigh(instance: Instance, line: Timeline, ready: Ready, position: int, by_gap: bool) -> None:
    """Note the earliest end of the task at a position, and with `by_gap` the second.

    Starts only grow, so the ones found replace the arrivals in `ready.data`: the next call skips more devices.
    """
    i = ready.task[position]
    best, end, second, second_end = NOWHERE, NEVER, NOWHERE, NEVER
    for d in range(len(line.room)):
        work = instance.duration[i, d]
        limit = second_end if by_gap else end
        if ready.data[i, d] + work >= limit:
            continue
        start, _ = slot(instance, line, i, d, ready.data[i, d])
        ready.data[i, d] = start
        there = start + work
        if there >= limit or not can_run(instance, line, i, d):
            continue
        if there < end:
            second, second_end = best, end
            best, end = d, there
        else:
            second, second_end = d, there
    ready.note[BEST, position], ready.note[END, position] = best, end
    ready.note[SECOND, position], ready.note[SECOND_END, position] = second, second_end


@kernel(admit_sources, compute_ready_times, first_unplaced, place_ready, weigh, allocates=False)
def place_neediest(instance: Instance, line: Timeline, ready: Ready, members: Int, by_gap: bool, batches: bool) -> int:
    """Place all tasks; return DONE or the first ready task that no device can take. `members` (g,) of each group."""
    task, best, end = ready.task, ready.note[BEST], ready.note[END]
    second, second_end = ready.note[SECOND], ready.note[SECOND_END]
    admit_sources(instance, line, ready)
    used, assigned = len(line.room), -1
    batch_end = ready.span[1]
    while True:
        chosen, most = -1, -1
        for position in range(ready.span[0], batch_end if batches else ready.span[1]):
            if (
                best[position] == used
                or best[position] == NEW
                or (by_gap and second[position] == used)
                or (assigned >= 0 and instance.group[task[position]] == assigned)
            ):
                weigh(instance, line, ready, position, by_gap)
            if best[position] < 0:
                continue
            need = second_end[position] - end[position] if by_gap else end[position]
            if need > most or (need == most and task[position] < task[chosen]):
                chosen, most = position, need
        if chosen < 0:
            if batches and batch_end < ready.span[1]:
                batch_end = ready.span[1]
                continue
            return first_unplaced(line, ready.missing)
        i = task[chosen]
        if instance.port:
            compute_ready_times(instance, line, i)
            for d in range(len(line.room)):
                ready.data[i, d] = line.ready[d]
            weigh(instance, line, ready, chosen, by_gap)
        used = best[chosen]
        # Ready tasks of the same group must follow. Most groups have one task and need no recomputation.
        g = instance.group[i]
        assigned = g if line.home[g] < 0 and members[g] > 1 else -1
        place_ready(instance, line, ready, chosen, used)
