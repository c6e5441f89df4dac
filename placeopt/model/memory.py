"""Memory that a schedule needs on each device, under both memory models.

`sum` counts everything a device ever holds: resident + output + scratch of all its tasks.
`peak` counts what is live at one time: `resident` for the whole run, `scratch` while the task
runs, `output` from the task's start until its last consumer has it, which is the end of a consumer on the same
device, the arrival of the transfer for one elsewhere, and the task's own end if it has none.
A consumer's copy of a transferred payload is not counted on the consumer's device: state it as
the consumer's `scratch` where it matters.
"""

from __future__ import annotations

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, arrivals, check_schedule, durations


def sum_memory(problem: Problem, device: Int) -> Int:
    """(m,) bytes that the tasks placed on each device count for, all added up."""
    return _per_device(problem, device, problem.memory)


def freed_at(problem: Problem, schedule: Schedule) -> Int:
    """(n,) tick until which each task's output stays on its device."""
    ends = schedule.start + durations(problem, schedule.device)
    freed = ends.copy()
    source, target = problem.edge_source, problem.edge_target
    same = schedule.device[source] == schedule.device[target]
    np.maximum.at(freed, source, np.where(same, ends[target], arrivals(problem, schedule)))
    return freed


def memory_profile(problem: Problem, schedule: Schedule, device: int) -> tuple[Int, Int]:
    """Live memory of one device over time: ticks of change (k,), bytes live from each of them on (k,).

    The first tick is 0, where the resident bytes of the device's tasks are there already.
    """
    return _profile(problem, schedule, device, freed_at(problem, schedule))


def memory_profiles(problem: Problem, schedule: Schedule) -> tuple[tuple[Int, Int], ...]:
    """`memory_profile` of every device."""
    freed = freed_at(problem, schedule)
    return tuple(_profile(problem, schedule, device, freed) for device in range(problem.n_devices))


def _profile(problem: Problem, schedule: Schedule, device: int, freed: Int) -> tuple[Int, Int]:
    tasks = np.flatnonzero(schedule.device == device)
    start = schedule.start[tasks]
    end = start + problem.duration[tasks, device]
    output, scratch = problem.output[tasks], problem.scratch[tasks]
    times = np.concatenate(([0], start, start, end, freed[tasks]))
    changes = np.concatenate(([problem.resident[tasks].sum()], scratch, output, -scratch, -output))
    ticks, position = np.unique(times, return_inverse=True)
    steps = np.zeros(len(ticks), dtype=np.int64)
    np.add.at(steps, position, changes)
    return ticks, np.cumsum(steps)


def peak_memory(problem: Problem, schedule: Schedule) -> Int:
    """(m,) most bytes live at one time on each device. Intervals are half-open, so what ends frees first."""
    freed = freed_at(problem, schedule)
    end = schedule.start + durations(problem, schedule.device)
    resident = _per_device(problem, schedule.device, problem.resident)
    device = np.concatenate([schedule.device] * 4)
    ticks = np.concatenate((schedule.start, schedule.start, end, freed))
    changes = np.concatenate((problem.scratch, problem.output, -problem.scratch, -problem.output))
    by_time = np.lexsort((ticks, device))
    device, ticks, changes = device[by_time], ticks[by_time], changes[by_time]
    level = np.cumsum(changes)  # each device's changes add up to zero, so the sum restarts by itself
    last = np.ones(len(ticks), dtype=np.bool_)
    last[:-1] = (ticks[1:] != ticks[:-1]) | (device[1:] != device[:-1])
    peak = np.zeros(problem.n_devices, dtype=np.int64)
    np.maximum.at(peak, device[last], level[last])
    return resident + peak


def used_memory(problem: Problem, schedule: Schedule) -> Int:
    """(m,) bytes to compare with the capacities, under the problem's own memory model."""
    if problem.memory_model == "sum":
        return sum_memory(problem, schedule.device)
    return peak_memory(problem, schedule)


def fits(problem: Problem, schedule: Schedule) -> bool:
    """Whether no device's capacity is exceeded."""
    check_schedule("fits", problem, schedule)
    return bool((used_memory(problem, schedule) <= problem.capacity).all())


def limited(problem: Problem) -> bool:
    """Whether any device states a capacity."""
    return bool((problem.capacity != UNLIMITED).any())


def _per_device(problem: Problem, device: Int, amounts: Int) -> Int:
    total = np.zeros(problem.n_devices, dtype=np.int64)
    np.add.at(total, device, amounts)
    return total
