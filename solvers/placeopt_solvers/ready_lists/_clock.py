"""The loop of Baechi's released code: a clock that goes from event to event, and devices that choose at its ticks.

The code is https://github.com/beomyeol/baechi (`m_etf.py`, `m_sct.py`); only its rules are used here. A task is ready
when all its producers have *ended*. The *schedulable tick* of a ready task on a device is the latest of the arrival of
its data there, the end of the device's last task, and the current tick. At each tick, every idle device chooses a task:

- A device waits if the favourite child of its last task is ready, no task of the child's group has a device, and no
  other device has an earlier schedulable tick for the child. It chooses the first *urgent* task, one that is
  schedulable now on every device that may run it. Without one, it chooses the child, if that is schedulable now.
- Any other device chooses the first task that is schedulable there now.

"First" is by rank, that is by `ties` in breadth-first order. Of all choices, the task of the lowest rank starts now, on
the lowest device that chose it, and all devices choose again. If no device chooses a task, the clock goes to the next
tick at which a task ends, a device that does not wait could start a task, or a waiting device could start the favourite
child or a task that is schedulable everywhere.

Differences from `place_favourites` and `place_pairs`:

- Nothing is decided before its tick: a device does not wait for a child whose producers are placed but have not ended,
  and a task that becomes ready meanwhile competes.
- A task is urgent only if all devices are idle that may run it, and not if its data could be on all of them.
- Tasks with equal starts compare by rank alone. A favourite child goes to an idle device of a lower index that could
  start it at the same tick as the device that waits for it.
- Durations never count, only starts.

The clock moves at most once for each task and each (task, device) pair; each move costs O(W m) for W ready tasks, or
O(W m^2) if a device waits, because it looks for tasks that are schedulable on all devices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem

from .._constructive.construction import PartialSchedule, run_loop
from .._constructive.groups import Groups
from .._constructive.placement_ops import append, can_run, compute_ready_times, contends
from .._constructive.ready_list import first_unplaced, scan_steps
from .._constructive.timeline import NEVER, Instance, Timeline


class Clock(NamedTuple):
    """The favourites, and the state of the loop."""

    child: Int
    """(n,) the favourite child of each task, -1 if it has none."""
    rank: Int
    """(n,) the order that breaks ties."""
    missing: Int
    """(n,) number of each task's producers that have not ended."""
    ready: Int
    size: Int
    """The ready tasks without a device are ready[:size[0]], in no order."""
    arrival: Int
    """(n, m) the tick at which the data of each ready task is on each device."""
    last: Int
    running: Int
    """(m,) the last task of each device, and the same until it has ended; -1 if there is none."""


def schedule_by_clock(
    problem: Problem, groups: Groups, child: Int, sequence: Int, closing: bool = False
) -> PartialSchedule:
    """Schedule as the released code; `child` (n,) as in `Clock`, `sequence` (n,) are the tasks by rank."""
    n, m = problem.n_tasks, problem.n_devices
    rank = np.empty(n, dtype=np.int64)
    rank[sequence] = np.arange(n)
    clock = Clock(
        child,
        rank,
        np.diff(problem.in_start),
        np.empty(n, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros((n, m), dtype=np.int64),
        *(np.full(m, -1, dtype=np.int64) for _ in range(2)),
    )
    return run_loop(problem, groups, place_by_clock, clock, steps=m * scan_steps(problem), closing=closing)


@kernel(compute_ready_times, allocates=False)
def note_arrival(instance: Instance, line: Timeline, clock: Clock, i: int) -> None:
    """Note when the data of ready task i is on each device."""
    compute_ready_times(instance, line, i)
    for d in range(len(line.free)):
        clock.arrival[i, d] = line.ready[d]


@kernel(note_arrival, allocates=False)
def become_ready(instance: Instance, line: Timeline, clock: Clock, i: int) -> None:
    """Add task i to the ready tasks."""
    clock.ready[clock.size[0]] = i
    clock.size[0] += 1
    note_arrival(instance, line, clock, i)


@kernel(become_ready, note_arrival, allocates=False)
def advance(instance: Instance, line: Timeline, clock: Clock, now: int) -> None:
    """End the tasks that have run until `now`: their consumers become ready. Arrivals that may change are updated."""
    if instance.port or len(instance.tiers.memory) > 0:
        for k in range(clock.size[0]):
            note_arrival(instance, line, clock, clock.ready[k])
    for d in range(len(line.free)):
        i = clock.running[d]
        if i < 0 or line.free[d] > now:
            continue
        clock.running[d] = -1
        for k in range(instance.out_start[i], instance.out_start[i + 1]):
            j = instance.out_target[k]
            clock.missing[j] -= 1
            if clock.missing[j] == 0:
                become_ready(instance, line, clock, j)


@kernel(contends, allocates=False)
def schedulable(instance: Instance, line: Timeline, clock: Clock, i: int, d: int, now: int) -> int:
    """Return the schedulable tick of ready task i on device d, NEVER if it may not run there."""
    if not contends(instance, line, i, d):
        return NEVER
    return int(max(clock.arrival[i, d], line.free[d], now))


@kernel(schedulable, allocates=False)
def schedulable_everywhere(instance: Instance, line: Timeline, clock: Clock, i: int, d: int, now: int) -> int:
    """Return the tick from which ready task i is schedulable on all devices that may run it, NEVER if d may not."""
    latest = schedulable(instance, line, clock, i, d, now)
    if latest < NEVER:
        for b in range(len(line.free)):
            there = schedulable(instance, line, clock, i, b, now)
            if there < NEVER:
                latest = max(latest, there)
    return latest


@kernel(schedulable, allocates=False)
def awaited(instance: Instance, line: Timeline, clock: Clock, d: int, now: int) -> int:
    """Return the favourite child that idle device d waits for, -1 if it does not wait."""
    j = clock.child[clock.last[d]] if clock.last[d] >= 0 else -1
    if j < 0 or clock.missing[j] > 0 or line.device[j] >= 0 or line.home[instance.group[j]] >= 0:
        return -1
    own = schedulable(instance, line, clock, j, d, now)
    if own == NEVER:
        return -1
    for b in range(len(line.free)):
        if schedulable(instance, line, clock, j, b, now) < own:
            return -1
    return int(j)


@kernel(awaited, schedulable, schedulable_everywhere, allocates=False)
def choose(instance: Instance, line: Timeline, clock: Clock, d: int, now: int) -> tuple[int, int]:
    """Return the task that device d starts now, -1 if there is none, and the tick at which it could start the next."""
    if line.free[d] > now:
        return -1, int(line.free[d])
    j = awaited(instance, line, clock, d, now)
    first, least = -1, NEVER
    for k in range(clock.size[0]):
        i = clock.ready[k]
        if j >= 0:
            tick = schedulable_everywhere(instance, line, clock, i, d, now)
        else:
            tick = schedulable(instance, line, clock, i, d, now)
        if tick < least or (first >= 0 and tick == least and clock.rank[i] < clock.rank[first]):
            first, least = i, tick
    if j >= 0 and least > now:
        own = schedulable(instance, line, clock, j, d, now)
        if own <= least:
            first, least = j, own
    return (int(first), now) if least <= now else (-1, int(least))


@kernel(append, allocates=False)
def start_task(instance: Instance, line: Timeline, clock: Clock, i: int, d: int, now: int) -> None:
    """Start ready task i on device d."""
    append(instance, line, i, d, now)
    clock.last[d] = clock.running[d] = i
    for k in range(clock.size[0]):
        if clock.ready[k] == i:
            clock.size[0] -= 1
            clock.ready[k] = clock.ready[clock.size[0]]
            break


@kernel(advance, become_ready, can_run, choose, first_unplaced, start_task, allocates=False)
def place_by_clock(instance: Instance, line: Timeline, clock: Clock) -> int:
    """Start tasks until none is left; return DONE or the first ready task that no device can take."""
    for i in range(len(clock.missing)):
        if clock.missing[i] == 0:
            become_ready(instance, line, clock, i)
    now = 0
    while True:
        advance(instance, line, clock, now)
        task, device, following = -1, -1, NEVER
        for d in range(len(line.free)):
            i, tick = choose(instance, line, clock, d, now)
            if i < 0:
                following = min(following, tick)
            elif task < 0 or clock.rank[i] < clock.rank[task]:
                task, device = i, d
        if task >= 0 and can_run(instance, line, task, device):
            start_task(instance, line, clock, task, device, now)
        elif task >= 0:
            line.closed[device] = True
        elif following < NEVER:
            now = following
        else:
            return first_unplaced(line, clock.missing)
