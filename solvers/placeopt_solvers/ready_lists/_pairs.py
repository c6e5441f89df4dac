"""The queue of pairs of a ready task and a device, by earliest start or by earliest end.

A pair (i, d) of a ready task (all its producers are placed) and a device that can take it has the value

    max(arrival of i's data on d, free[d]) + work

and the pair with the least value comes first. `work` is what the algorithm adds to the start: the duration of i on d,
for the earliest end; or the detour of i on d, 0 on identical devices, for the earliest start (`detours`). Ties go to
the lower rank of the task, then to the lower device index. Arrivals are fixed once the task is ready; only free[d]
grows. So each device has two heaps:

    later    pairs whose data arrives after the device is free, by arrival + work. This is at most their value, so only
             the head must be examined; if its data has arrived, it moves to
    now      pairs that could start as soon as the device is free, by work alone, because all wait for the same tick

The best pair of a device is the better of the two heads, and the best of all is found by a scan of the devices. Pairs
of tasks that were placed elsewhere stay until they reach the head. So do pairs that became impossible: memory only
shrinks, and homes and separation only rule out more, so they never become possible again. Once a group has a home, its
tasks are queued there only. With `closing`, pairs without room stay: the device closes when one of them is the best.

Each pair is pushed and popped at most twice: O(n m log n) in all, plus O(e m) for the arrivals.

Under port contention, transfers booked later delay the arrivals of queued pairs. So the arrival of the best pair is
recomputed, and the pair goes back to `later` if its value has grown. After PATIENCE such pairs for one placement the
next pair is taken as it is: if one device sends to all others, every placement delays every pair. (The few pairs that a
transfer for another task has advanced are found when their old key reaches the head.)

With insertion (`slot`), a pair of which `work` is the duration may also start in a gap. Gaps only shrink, so values
still only grow, but those in gaps grow irregularly. Such pairs are in `later` too, by a lower bound of their value that
is raised when it reaches the head. When a task leaves a gap before it, the pairs of `now` that fit there go back to
`later` (`reconsider`). The pair with the earliest end leaves no such gap, except with tasks of no duration or ports.

With batches, tasks that become ready wait until all queued tasks are placed.

FCP and FLB consider two devices only: the enabling device of a task (`last_message`), and the one that is idle first
(`first_idle`).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.solver import Settings

from .._constructive.construction import PartialSchedule, run_loop
from .._constructive.groups import Groups
from .._constructive.heaps import Heaps, make_heaps, pop, push
from .._constructive.placement_ops import (
    can_host,
    can_run,
    compute_ready_times,
    contends,
    link_ticks,
    occupy,
    ready_time,
    slot,
)
from .._constructive.ready_list import ReadySettings, first_unplaced
from .._constructive.timeline import NEVER, Instance, Timeline


class Pairs(NamedTuple):
    """The queue of ready (task, device) pairs."""

    work: Int
    """(n, m) ticks that are added to the start of each pair when pairs are compared."""
    sequence: Int
    rank: Int
    """(n,) twice: the tasks by rank, and the rank of each, which breaks ties."""
    missing: Int
    """(n,) number of each task's producers without a device; 0 for a ready task."""
    later: Heaps
    now: Heaps
    """The pairs of each device, see the module."""
    worth: Int
    head: Int
    """(m,) twice: value and task of the best pair of each device, NEVER and -1 if there is none. They are as of the
    last `refresh`: the task may have been placed since."""
    waiting: Int
    """(n,) scratch: the ready tasks that wait for the next batch."""
    last: Int
    loose: Heaps
    """For an algorithm that queues a task for one device only: `loose` is a single heap for tasks whose pair became
    impossible, `last` (n,) their keys in it; -1 for tasks that do not go there or went there already."""


PATIENCE = 16
"""Pairs delayed by ports that go back into the queue before the next one is taken as it is."""


class StartSettings(Settings):
    """Meaning of the earliest start on heterogeneous devices."""

    detour: bool = True
    """Whether a start counts as later by the ticks that the task takes longer there than on its fastest device. false:
    as published, for identical devices, on which it makes no difference."""


class TieSettings(StartSettings):
    """Meaning of the earliest start, and the order of tasks that tie."""

    ties: Literal["index", "topological"] = "index"
    """Which of several tasks with equal starts comes first. index: the one with the lowest index. topological: the
    first in topological order, breadth first, as in Baechi's released code."""


def tie_order(problem: Problem, settings: TieSettings) -> Int:
    """Return the tasks (n,) in the order that breaks ties."""
    return problem.order if settings.ties == "topological" else np.arange(problem.n_tasks)


def detours(problem: Problem, settings: StartSettings) -> Int:
    """Return the ticks (n, m) that count as added to the start of each task on each device.

    Classical algorithms choose the earliest start, on identical devices. On heterogeneous devices, the device that is
    free first would get a task that another one ends long before. So the start on a slower device counts as later, by
    the difference between the task's duration there and its least duration.
    """
    if not settings.detour:
        return np.zeros_like(problem.duration)
    least = np.where(problem.feasible, problem.duration, UNLIMITED).min(axis=1, initial=UNLIMITED)
    return np.where(problem.feasible, problem.duration - least[:, None], 0)


def make_pairs(problem: Problem, sequence: Int, work: Int, times: int = 1) -> Pairs:
    """Return an empty queue; `sequence` (n,) are the tasks in the order that breaks ties, `work` is as in `Pairs`.

    A task may be queued up to `times` times for one device.
    """
    n, m = problem.n_tasks, problem.n_devices
    rank = np.empty(n, dtype=np.int64)
    rank[sequence] = np.arange(n)
    return Pairs(
        work=work,
        sequence=sequence,
        rank=rank,
        missing=np.diff(problem.in_start),
        later=make_heaps(times * n, m),
        now=make_heaps(times * n, m),
        worth=np.full(m, NEVER, dtype=np.int64),
        head=np.full(m, -1, dtype=np.int64),
        waiting=np.empty(n, dtype=np.int64),
        last=np.full(n, -1, dtype=np.int64),
        loose=make_heaps(n, 1),
    )


def schedule_pairs(
    problem: Problem,
    groups: Groups,
    sequence: Int,
    work: Int,
    settings: ReadySettings | None = None,
    closing: bool = False,
) -> PartialSchedule:
    """Schedule the best pair until none is left; ties go by `sequence` (n,), then by device.

    With `settings` for insertion, `work` must be the durations. By default tasks are appended, without batches.
    """
    settings = settings or ReadySettings(insertion=False, batches=False)
    pairs = make_pairs(problem, sequence, work)
    return run_loop(
        problem, groups, place_pairs, pairs, settings.batches, insertion=settings.insertion, closing=closing
    )


@kernel(contends, allocates=False)
def alive(instance: Instance, line: Timeline, i: int, d: int) -> bool:
    """Return whether the pair of ready task i and device d still competes, see `contends`."""
    return line.device[i] < 0 and contends(instance, line, i, d)


@kernel(push, allocates=False)
def loosen(line: Timeline, pairs: Pairs, i: int) -> None:
    """Move a task that lost its only pair to `loose`, at most once."""
    if pairs.last[i] >= 0 and line.device[i] < 0:
        push(pairs.loose, 0, pairs.last[i], pairs.rank[i])
        pairs.last[i] = -1


@kernel(alive, push, pop, loosen, slot, allocates=False)
def refresh(instance: Instance, line: Timeline, pairs: Pairs, d: int) -> None:
    """Update the best pair of device d, after a task was placed there or if the pair is no longer possible."""
    later, now = pairs.later, pairs.now
    free = line.free[d]
    worth, head, rank = NEVER, -1, -1
    while later.size[d] > 0:
        r = later.item[0, d]
        i = pairs.sequence[r]
        if alive(instance, line, i, d):
            work = pairs.work[i, d]
            bound = later.key[0, d] - work
            start, _ = slot(instance, line, i, d, bound)
            if start == bound != free:
                worth, head, rank = start + work, i, r
                break
            if start == free:
                push(now, d, work, r)
            else:
                pop(later, d)
                push(later, d, start + work, r)
                continue
        else:
            loosen(line, pairs, i)
        pop(later, d)
    while now.size[d] > 0:
        r = now.item[0, d]
        i = pairs.sequence[r]
        if alive(instance, line, i, d):
            end = free + now.key[0, d]
            if end < worth or (end == worth and r < rank):
                worth, head = end, i
            break
        loosen(line, pairs, i)
        pop(now, d)
    pairs.worth[d], pairs.head[d] = worth, head


@kernel(push, slot, allocates=False)
def enqueue_on(instance: Instance, line: Timeline, pairs: Pairs, i: int, d: int, arrival: int) -> None:
    """Queue ready task i for device d, where its data arrives at `arrival`."""
    r = pairs.rank[i]
    work = pairs.work[i, d]
    start, _ = slot(instance, line, i, d, arrival)
    if start == line.free[d]:
        push(pairs.now, d, work, r)
    else:
        push(pairs.later, d, start + work, r)
    worth = start + work
    head = pairs.head[d]
    if head < 0 or worth < pairs.worth[d] or (worth == pairs.worth[d] and r < pairs.rank[head]):
        pairs.worth[d], pairs.head[d] = worth, i


@kernel(compute_ready_times, ready_time, contends, enqueue_on, allocates=False)
def enqueue(instance: Instance, line: Timeline, pairs: Pairs, i: int) -> None:
    """Queue ready task i for its home, or for every device that can take it."""
    home = line.home[instance.group[i]]
    if home >= 0:
        enqueue_on(instance, line, pairs, i, home, ready_time(instance, line, i, home))
        return
    compute_ready_times(instance, line, i)
    for d in range(len(line.room)):
        if contends(instance, line, i, d):
            enqueue_on(instance, line, pairs, i, d, line.ready[d])


@kernel(push, pop, refresh, allocates=False)
def postpone(instance: Instance, line: Timeline, pairs: Pairs, d: int, arrival: int) -> None:
    """Queue the best pair of device d again: its data arrives later than assumed, after the device is free."""
    i = pairs.head[d]
    r = pairs.rank[i]
    if pairs.now.size[d] > 0 and pairs.now.item[0, d] == r:
        pop(pairs.now, d)
    else:
        pop(pairs.later, d)
    push(pairs.later, d, arrival + pairs.work[i, d], r)
    refresh(instance, line, pairs, d)


@kernel(alive, refresh, ready_time, slot, postpone, allocates=False)
def best_device(instance: Instance, line: Timeline, pairs: Pairs) -> int:
    """Return the device of the best pair, -1 if there is none; `head` and `worth` have its task and value."""
    head, worth = pairs.head, pairs.worth
    m = len(head)
    held = 0
    while True:
        best, least, rank = -1, NEVER, -1
        for d in range(m):
            if head[d] >= 0 and line.device[head[d]] >= 0:
                refresh(instance, line, pairs, d)
            if head[d] >= 0 and (worth[d] < least or (worth[d] == least and pairs.rank[head[d]] < rank)):
                best, least, rank = d, worth[d], pairs.rank[head[d]]
        if best < 0:
            return best
        # Checking that a pair is possible, and its delay by ports, is expensive: only the best pair is checked.
        i = head[best]
        if not alive(instance, line, i, best):
            refresh(instance, line, pairs, best)
            continue
        if not instance.port:
            return best
        arrival = ready_time(instance, line, i, best)
        start, _ = slot(instance, line, i, best, arrival)
        end = start + pairs.work[i, best]
        if end <= least or held == PATIENCE:
            worth[best] = end
            return best
        postpone(instance, line, pairs, best, arrival)
        held += 1


@kernel(push, pop, allocates=False)
def reconsider(pairs: Pairs, d: int, begin: int, end: int) -> None:
    """Queue the pairs of device d that fit into its new gap [begin, end) by the bound of a start in that gap."""
    now = pairs.now
    while now.size[d] > 0 and now.key[0, d] <= end - begin:
        push(pairs.later, d, begin + now.key[0, d], now.item[0, d])
        pop(now, d)


@kernel(can_run, slot, occupy, best_device, enqueue, first_unplaced, reconsider, refresh, allocates=False)
def place_pairs(instance: Instance, line: Timeline, pairs: Pairs, batches: bool) -> int:
    """Place the best pair until none is left; return DONE or the first ready task that no device can take."""
    waiting = 0
    for i in range(len(pairs.missing)):
        if pairs.missing[i] == 0:
            enqueue(instance, line, pairs, i)
    while True:
        d = best_device(instance, line, pairs)
        if d < 0:
            if waiting == 0:
                return first_unplaced(line, pairs.missing)
            for position in range(waiting):
                enqueue(instance, line, pairs, pairs.waiting[position])
            waiting = 0
            continue
        i = pairs.head[d]
        if instance.closing and not can_run(instance, line, i, d):
            line.closed[d] = True
            continue
        free = line.free[d]
        start, gap = slot(instance, line, i, d, pairs.worth[d] - pairs.work[i, d])
        occupy(instance, line, i, d, start, gap)
        if instance.insertion and start > free:
            reconsider(pairs, d, free, start)
        refresh(instance, line, pairs, d)
        for k in range(instance.out_start[i], instance.out_start[i + 1]):
            j = instance.out_target[k]
            pairs.missing[j] -= 1
            if pairs.missing[j] == 0 and batches:
                pairs.waiting[waiting] = j
                waiting += 1
            elif pairs.missing[j] == 0:
                enqueue(instance, line, pairs, j)


@kernel(link_ticks, allocates=False)
def last_message(instance: Instance, line: Timeline, i: int) -> tuple[int, int]:
    """Return LMT and EP of ready task i: the arrival of its last message on any device, and the device it comes from.

    On heterogeneous links a message counts with the slowest link from its device. LMT is never before the release time.
    EP is -1 without producers; of messages that arrive together that of the first producer counts.
    """
    last, enabling = -1, -1
    for k in range(instance.in_start[i], instance.in_start[i + 1]):
        u = instance.in_source[k]
        a = line.device[u]
        arrival = line.end[u]
        for c in range(1, instance.kinds[a]):
            arrival = max(arrival, line.end[u] + link_ticks(instance, instance.in_payload[k], a, c))
        if arrival > last:
            last, enabling = arrival, a
    return max(last, instance.release[i]), enabling


@kernel(can_host, allocates=False)
def first_idle(instance: Instance, line: Timeline, detour: Int, i: int) -> int:
    """Return the device that becomes idle first of those that can take task i, whose group has no home; -1 for none.

    A device counts as idle later by the task's `detour` (n, m) there, see `detours`.
    """
    best, idle = -1, NEVER
    for d in range(len(line.free)):
        if line.free[d] + detour[i, d] < idle and can_host(instance, line, instance.group[i], d):
            best, idle = d, line.free[d] + detour[i, d]
    return best
