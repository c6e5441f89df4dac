"""List scheduling without insertion: tasks in a given order, each after the last task of its device."""

from __future__ import annotations

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem

from .construction import PartialSchedule, run_loop
from .groups import Groups
from .placement_ops import append, can_host, compute_ready_times, ready_time
from .timeline import DONE, NEVER, Instance, Timeline

END, WORK, IDLE, INDEX = 0, 1, 2, 3
"""How a device is chosen: earliest end (minimum completion time), least duration there (minimum execution time), the
device that is free first (opportunistic load balancing), the lowest index."""


def append_tasks(problem: Problem, groups: Groups, sequence: Int, measure: int) -> PartialSchedule:
    """Append each task of `sequence`, a topological order, to the best device by `measure` (END, WORK, ...)."""
    return run_loop(problem, groups, append_in_order, sequence, measure)


def fill_devices(problem: Problem, groups: Groups, sequence: Int, keep: Int) -> PartialSchedule:
    """Append the tasks of `sequence`, a topological order, to the first device until it is full, then to the next.

    A device is full if the next task would leave fewer than `keep` (m,) bytes.
    """
    return run_loop(problem, groups, fill_in_order, sequence, keep)


@kernel(compute_ready_times, ready_time, can_host, append, allocates=False)
def append_in_order(instance: Instance, line: Timeline, sequence: Int, measure: int) -> int:
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
                    worth = max(line.ready[d], line.free[d]) + instance.duration[i, d]
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
        append(instance, line, i, best, max(ready_time(instance, line, i, best), line.free[best]))
    return DONE


@kernel(ready_time, can_host, append, allocates=False)
def fill_in_order(instance: Instance, line: Timeline, sequence: Int, keep: Int) -> int:
    """Place the tasks in turn; return DONE or the task that no device can take."""
    m = len(line.room)
    filling = 0
    for position in range(len(sequence)):
        i = sequence[position]
        g = instance.group[i]
        best = line.home[g]
        if best < 0:
            while filling < m - 1 and line.room[filling] - instance.memory[g] < keep[filling]:
                filling += 1
            # First the devices from the current one on, then all devices up to their full memory.
            for offset in range(2 * m):
                d = (filling + offset) % m
                enough = line.room[d] - instance.memory[g] >= keep[d] and d >= filling
                if (enough or offset >= m) and can_host(instance, line, g, d):
                    best = d
                    break
            if best < 0:
                return int(i)
        append(instance, line, i, best, max(ready_time(instance, line, i, best), line.free[best]))
    return DONE
