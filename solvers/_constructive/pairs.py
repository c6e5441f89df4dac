"""The ready tasks and the devices they may go to, in pairs by earliest start or earliest end.

A pair (i, d) of a ready task (all its producers are placed) and a device that may take it is worth

    max(arrival of i's data on d, free[d]) + work

and the queue tells the pair of least worth, where work is what the algorithm adds to the start: the duration of i on d
to go by the earliest end; or, to go by the earliest start, the detour that d is for i, 0 on like devices (`detours`).
Ties end on a rank of the task, then on the index of the device. When a task's data reaches a device is known once it is
ready, and only free[d] grows. So each device has two heaps:

    later    pairs whose data is (as far as looked at) not there when the device is free, keyed by arrival + work: never
             more than their worth, so that only the head needs a look; one whose data has arrived goes to
    now      pairs that could start as soon as the device is free, keyed by work alone, for all wait for the same tick

The best of a device is the lesser of the two heads, and the best of all is found by a scan over the devices. Pairs of
tasks that were placed elsewhere stay until they come to the head. So do those that became impossible: memory only
shrinks, homes and separation only forbid more, so that no pair dropped would ever have come back. Once a group has its
home, its tasks queue there alone.

Each pair is pushed at most twice and popped at most twice: O(n m log n) in all, beside O(e m) for the arrivals.

Under port contention what is booked meanwhile delays the arrivals of pairs in the queue. So the arrival of the best
pair is worked out anew, and the pair goes back into `later` if it is above what its key says; but after PATIENCE of
them, for each task that is placed, the next is taken as it is: where one device sends to all, every placement delays
every pair. (The few that a transfer for another task has brought forward are found when their old key comes to the
head.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.solver import Settings

from .construction import Built
from .groups import Groups
from .heaps import Heaps, make_heaps, pop, push
from .placement_ops import append, arrival_on, may_take, note_arrivals, open_to
from .timeline import NEVER, Case, Timeline, make_case, make_timeline, work_steps


class Pairs(NamedTuple):
    """The queue of ready (task, device) pairs.

    Attributes
    ----------
    work
        (n, m) ticks added to the start of each pair when pairs are compared.
    sequence, rank
        (n,) twice: the tasks by rank, and the rank of each, which breaks ties.
    missing
        (n,) producers of each task that are not placed yet; 0 for a ready task.
    later, now
        The pairs of each device, see the module.
    worth, head
        (m,) twice: worth and task of the best pair of each device, NEVER and -1 where there is none. As of the last
        look: the task may have been placed meanwhile.
    last, loose
        For an algorithm that queues a task for one device only: (n,) key of each task in `loose`, a single heap (m = 1)
        that takes the tasks whose pair became impossible; -1 for those that need not or have gone there.
    """

    work: Int
    sequence: Int
    rank: Int
    missing: Int
    later: Heaps
    now: Heaps
    worth: Int
    head: Int
    last: Int
    loose: Heaps


PATIENCE = 16
"""Pairs that may go back into the queue, ports having held them up, before one is taken as it is."""


class StartSettings(Settings):
    """What an earliest start is where devices are unlike."""

    detour: bool = True
    """Whether a device on which a task takes longer than on another counts as starting it that much later; false: as
    published, for like devices, on which it makes no difference."""


def detours(problem: Problem, settings: StartSettings) -> Int:
    """(n, m) ticks by which each device counts as starting each task later than it does.

    Classical algorithms choose the earliest start, for devices that are alike. Where they are not, the device that is
    free first would get a task that another ends long before: so a slower one counts as starting it later by the ticks
    that the task takes there beyond the least on any device that may run it.
    """
    if not settings.detour:
        return np.zeros_like(problem.duration)
    least = np.where(problem.feasible, problem.duration, UNLIMITED).min(axis=1, initial=UNLIMITED)
    return np.where(problem.feasible, problem.duration - least[:, None], 0)


def make_pairs(problem: Problem, sequence: Int, work: Int) -> Pairs:
    """An empty queue; `sequence` (n,) is the tasks in the order that breaks ties, `work` (n, m) as in `Pairs`."""
    n, m = problem.n_tasks, problem.n_devices
    rank = np.empty(n, dtype=np.int64)
    rank[sequence] = np.arange(n)
    return Pairs(
        work=work,
        sequence=sequence,
        rank=rank,
        missing=np.diff(problem.in_start),
        later=make_heaps(n, m),
        now=make_heaps(n, m),
        worth=np.full(m, NEVER, dtype=np.int64),
        head=np.full(m, -1, dtype=np.int64),
        last=np.full(n, -1, dtype=np.int64),
        loose=make_heaps(n, 1),
    )


def earliest_pairs(problem: Problem, groups: Groups, sequence: Int, work: Int) -> Built:
    """The best pair of all placed again and again; ties by the order of `sequence` (n,), then by device."""
    line = make_timeline(problem, groups)
    pairs = make_pairs(problem, sequence, work)
    placed = place_pairs.select(work_steps(problem))(make_case(problem, groups), line, pairs)
    return ready_built(problem, line, pairs.missing, placed)


def ready_built(problem: Problem, line: Timeline, missing: Int, placed: int) -> Built:
    """What came of placing ready tasks; the stuck group is that of the first task that is ready and has no device."""
    if placed == problem.n_tasks:
        return Built(line)
    stuck = np.flatnonzero((line.device < 0) & (missing == 0))[0]
    return Built(line, int(problem.group[stuck]))


@kernel(open_to, allocates=False)
def alive(case: Case, line: Timeline, i: int, d: int) -> bool:
    """Whether ready task i can still be placed on device d."""
    return line.device[i] < 0 and open_to(case, line, i, d)


@kernel(push, allocates=False)
def loosen(line: Timeline, pairs: Pairs, i: int) -> None:
    """Let a task that lost its only pair go to `loose`, once, if that is where it may go."""
    if pairs.last[i] >= 0 and line.device[i] < 0:
        push(pairs.loose, 0, pairs.last[i], pairs.rank[i])
        pairs.last[i] = -1


@kernel(alive, push, pop, loosen, allocates=False)
def refresh(case: Case, line: Timeline, pairs: Pairs, d: int) -> None:
    """Find the best pair of device d anew: after something was placed there, or where the one known is gone."""
    later, now = pairs.later, pairs.now
    free = line.free[d]
    worth, head, rank = NEVER, -1, -1
    while later.size[d] > 0:
        r = later.item[0, d]
        i = pairs.sequence[r]
        if alive(case, line, i, d):
            work = pairs.work[i, d]
            if later.key[0, d] - work > free:
                worth, head, rank = later.key[0, d], i, r
                break
            push(now, d, work, r)
        else:
            loosen(line, pairs, i)
        pop(later, d)
    while now.size[d] > 0:
        r = now.item[0, d]
        i = pairs.sequence[r]
        if alive(case, line, i, d):
            end = free + now.key[0, d]
            if end < worth or (end == worth and r < rank):
                worth, head = end, i
            break
        loosen(line, pairs, i)
        pop(now, d)
    pairs.worth[d], pairs.head[d] = worth, head


@kernel(push, allocates=False)
def enqueue_on(line: Timeline, pairs: Pairs, i: int, d: int, arrival: int) -> None:
    """Queue ready task i for device d, which its data reaches at `arrival`."""
    r = pairs.rank[i]
    free = line.free[d]
    work = pairs.work[i, d]
    if arrival > free:
        push(pairs.later, d, arrival + work, r)
    else:
        push(pairs.now, d, work, r)
    worth = max(arrival, free) + work
    head = pairs.head[d]
    if head < 0 or worth < pairs.worth[d] or (worth == pairs.worth[d] and r < pairs.rank[head]):
        pairs.worth[d], pairs.head[d] = worth, i


@kernel(note_arrivals, arrival_on, may_take, enqueue_on, allocates=False)
def enqueue(case: Case, line: Timeline, pairs: Pairs, i: int) -> None:
    """Queue ready task i for its home, or for every device that may take it."""
    g = case.group[i]
    home = line.home[g]
    if home >= 0:
        enqueue_on(line, pairs, i, home, arrival_on(case, line, i, home))
        return
    note_arrivals(case, line, i)
    for d in range(len(line.room)):
        if may_take(case, line, g, d):
            enqueue_on(line, pairs, i, d, line.ready[d])


@kernel(push, pop, refresh, allocates=False)
def postpone(case: Case, line: Timeline, pairs: Pairs, d: int, arrival: int) -> None:
    """Queue the best pair of device d again: its data arrives later than was thought, after the device is free."""
    i = pairs.head[d]
    r = pairs.rank[i]
    if pairs.now.size[d] > 0 and pairs.now.item[0, d] == r:
        pop(pairs.now, d)
    else:
        pop(pairs.later, d)
    push(pairs.later, d, arrival + pairs.work[i, d], r)
    refresh(case, line, pairs, d)


@kernel(alive, refresh, arrival_on, postpone, allocates=False)
def best_device(case: Case, line: Timeline, pairs: Pairs) -> int:
    """The device of the best pair of all, -1 if there is none; the pair's task and worth are the device's head."""
    head, worth = pairs.head, pairs.worth
    m = len(head)
    held = 0
    while True:
        best, least, rank = -1, NEVER, -1
        for d in range(m):
            if head[d] >= 0 and line.device[head[d]] >= 0:
                refresh(case, line, pairs, d)
            if head[d] >= 0 and (worth[d] < least or (worth[d] == least and pairs.rank[head[d]] < rank)):
                best, least, rank = d, worth[d], pairs.rank[head[d]]
        if best < 0:
            return best
        # Whether the pair is still possible, and how long ports hold it up, costs more to ask: only the best is asked.
        i = head[best]
        if not alive(case, line, i, best):
            refresh(case, line, pairs, best)
            continue
        if not case.port:
            return best
        arrival = arrival_on(case, line, i, best)
        end = max(arrival, line.free[best]) + pairs.work[i, best]
        if end <= least or held == PATIENCE:
            worth[best] = end
            return best
        postpone(case, line, pairs, best, arrival)
        held += 1


@kernel(enqueue, allocates=False)
def enqueue_sources(case: Case, line: Timeline, pairs: Pairs) -> None:
    """Queue the tasks without producers."""
    for i in range(len(pairs.missing)):
        if pairs.missing[i] == 0:
            enqueue(case, line, pairs, i)


@kernel(append, refresh, enqueue, allocates=False)
def place(case: Case, line: Timeline, pairs: Pairs, i: int, d: int, start: int) -> None:
    """Put task i at the end of device d from `start` on, and queue the consumers that become ready."""
    append(case, line, i, d, start)
    refresh(case, line, pairs, d)
    for k in range(case.out_start[i], case.out_start[i + 1]):
        j = case.out_target[k]
        pairs.missing[j] -= 1
        if pairs.missing[j] == 0:
            enqueue(case, line, pairs, j)


@kernel(enqueue_sources, best_device, place, allocates=False)
def place_pairs(case: Case, line: Timeline, pairs: Pairs) -> int:
    """Place the best pair of all until none is left; how many tasks were placed, n unless there is no room for some."""
    enqueue_sources(case, line, pairs)
    placed = 0
    while True:
        d = best_device(case, line, pairs)
        if d < 0:
            return placed
        i = pairs.head[d]
        place(case, line, pairs, i, d, pairs.worth[d] - pairs.work[i, d])
        placed += 1
