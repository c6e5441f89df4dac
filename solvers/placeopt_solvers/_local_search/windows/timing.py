"""Heads and tails: computed along the order, and repaired in the window after a change.

A head is the end of a task, a tail the ticks after it. The makespan is the largest sum of both. A path either avoids
the window, or it leaves the window at one of its tasks, and `reach` is the longest of these. Therefore heads up to the
window's end and tails from its begin on give the exact makespan after each change in the window.

Times are repaired task by task in the order of their positions. A task whose time changes marks only those that the
former time determined or the new one delays.
"""

from __future__ import annotations

from placeopt.kernels import kernel

from ..instance import Instance, moving_ticks
from .state import AROUND, ENDED, FIRST, HIGH, HORIZON, LAST, LOGGED, LOW, OPEN, SPAN, State


@kernel(moving_ticks, allocates=False)
def connect(instance: Instance, state: State) -> None:
    """Recompute positions, ticks, delays, chains and room from the order and the devices."""
    for d in range(len(state.room)):
        state.room[d] = instance.capacity[d]
        state.first[d], state.gate[d] = -1, -1
    for g in range(len(instance.memory)):
        state.room[state.device[instance.member[instance.member_start[g]]]] -= instance.memory[g]
    for p in range(len(state.order)):
        i = state.order[p]
        d = state.device[i]
        previous = state.gate[d]
        state.position[i], state.ticks[i] = p, instance.duration[i, d]
        state.before[i], state.behind[i] = previous, -1
        if previous >= 0:
            state.behind[previous] = i
        else:
            state.first[d] = i
        state.gate[d] = i
        for k in range(instance.in_start[i], instance.in_start[i + 1]):
            a = state.device[instance.source[k]]
            state.delay[k] = 0 if a == d else moving_ticks(instance, k, a, d)


@kernel(allocates=False)
def head(instance: Instance, state: State, i: int) -> int:
    """Return the end of task i after the tasks before it."""
    start = instance.release[i]
    if state.before[i] >= 0:
        start = max(start, state.end[state.before[i]])
    for k in range(instance.in_start[i], instance.in_start[i + 1]):
        start = max(start, state.end[instance.source[k]] + state.delay[k])
    return int(start + state.ticks[i])


@kernel(allocates=False)
def tail(instance: Instance, state: State, i: int, begin: int) -> int:
    """Return the ticks after task i on paths that continue at a position from `begin` on; 0 without one."""
    ticks = 0
    j = state.behind[i]
    if j >= 0 and state.position[j] >= begin:
        ticks = state.ticks[j] + state.after[j]
    for e in range(instance.out_start[i], instance.out_start[i + 1]):
        j = instance.target[e]
        if state.position[j] >= begin:
            ticks = max(ticks, state.delay[instance.slot[e]] + state.ticks[j] + state.after[j])
    return int(ticks)


@kernel(head, allocates=False)
def time_heads(instance: Instance, state: State, begin: int, end: int) -> None:
    """Compute the heads of the positions [begin, end)."""
    for p in range(begin, end):
        i = state.order[p]
        state.end[i] = head(instance, state, i)


@kernel(time_heads, tail, allocates=False)
def time_all(instance: Instance, state: State) -> None:
    """Compute all heads and tails and the makespan; the window is empty and at the begin."""
    number, n = state.number, len(state.order)
    for d in range(len(state.gate)):
        state.gate[d] = -1
    number[LOW], number[HIGH], number[OPEN], number[ENDED], number[SPAN] = 0, 0, 0, 0, 0
    time_heads(instance, state, 0, n)
    latest = 0
    for p in range(n - 1, -1, -1):
        i = state.order[p]
        state.after[i] = tail(instance, state, i, 0)
        latest = max(latest, instance.release[i] + state.ticks[i] + state.after[i])
        state.later[p] = latest
        number[SPAN] = max(number[SPAN], state.end[i])


@kernel(time_heads, tail, allocates=False)
def enter(instance: Instance, state: State, low: int, high: int) -> None:
    """Move the window to [low, high), where neither is lower than before, and compute the makespan.

    Heads before the old window's end and tails from its begin on are valid. O(k) for k tasks and edges in both windows
    and between them, or from tasks before the window to others in or after it.
    """
    number, order, position = state.number, state.order, state.position
    time_heads(instance, state, number[HIGH], high)
    for p in range(number[LOW], low):
        i = order[p]
        state.gate[state.device[i]] = i
        number[ENDED] = max(number[ENDED], state.end[i])
        state.open[number[OPEN]] = i
        number[OPEN] += 1
    number[LOW], number[HIGH] = low, high
    # The longest path around the window: it ends before it, begins after it, or an edge or a device leads past it.
    longest = max(number[ENDED], state.later[high] if high < len(order) else 0)
    count = 0
    for at in range(number[OPEN]):
        i = state.open[at]
        farthest = -1
        for e in range(instance.out_start[i], instance.out_start[i + 1]):
            farthest = max(farthest, position[instance.target[e]])
        if farthest >= high:
            longest = max(longest, state.end[i] + tail(instance, state, i, high))
        if farthest >= low:
            state.open[count] = i
            count += 1
    number[OPEN] = count
    # From the last task of a device before the window to its first one after it. Tasks between them only make this path
    # longer, so it counts even with such tasks: they may leave the device.
    for d in range(len(state.gate)):
        i = state.gate[d]
        free = 0 if i < 0 else state.end[i]
        i = state.first[d] if i < 0 else state.behind[i]
        while i >= 0 and position[i] < high:
            i = state.behind[i]
        if i >= 0:
            longest = max(longest, free + state.ticks[i] + state.after[i])
    number[AROUND] = longest
    for p in range(low, high):
        i = order[p]
        state.reach[i] = state.end[i] + tail(instance, state, i, high)
        longest = max(longest, state.reach[i])
        state.marked[p] = False
    number[SPAN] = longest


@kernel(allocates=False)
def mark(state: State, i: int) -> None:
    """Mark task i to be timed again, if it is in the window."""
    p = state.position[i]
    if state.number[LOW] <= p < state.number[HIGH]:
        state.marked[p] = True
        state.number[FIRST] = min(state.number[FIRST], p)
        state.number[HORIZON] = max(state.number[HORIZON], p)


@kernel(head, allocates=False)
def repair_heads(instance: Instance, state: State, limit: int) -> bool:
    """Time the marked tasks again and all that they affect; return whether the makespan is at most `limit`.

    The limit is at least the makespan before the change, so that only changed paths may exceed it. Tails after the last
    changed position are those before the change. So the lengths of all changed paths are known as soon as the tasks up
    to this position are timed. If one exceeds the limit, `restore` reverses the evaluation.
    """
    number, end, after, ticks, position = state.number, state.end, state.after, state.ticks, state.position
    high, last = number[HIGH], number[LAST]
    shortened, longest, count, kept = False, 0, 0, True
    p = number[FIRST]
    while kept and p <= number[HORIZON]:
        if not state.marked[p]:
            p += 1
            continue
        state.marked[p] = False
        i = state.order[p]
        p += 1
        now, was = head(instance, state, i), end[i]
        if now == was and p > last + 1:
            continue
        beyond = 0
        for e in range(instance.out_start[i] - 1, instance.out_start[i + 1]):
            if e < instance.out_start[i]:
                j, gap = state.behind[i], 0
                if j < 0:
                    continue
            else:
                j, gap = instance.target[e], state.delay[instance.slot[e]]
            q = position[j]
            rest = gap + ticks[j] + after[j]
            if q > last and now + rest > limit:
                kept = False
                break
            if q >= high:
                beyond = max(beyond, rest)
            elif now != was:
                start = end[j] - ticks[j]
                if now + gap > start or was + gap == start:
                    state.marked[q] = True
                    number[HORIZON] = max(number[HORIZON], q)
        state.logged[count], state.old_end[count], state.old_reach[count] = i, was, state.reach[i]
        count += 1
        end[i] = now
        shortened = shortened or state.reach[i] == number[SPAN]
        state.reach[i] = now + beyond
        longest = max(longest, now + beyond)
        kept = kept and now + beyond <= limit
    number[LOGGED] = count
    if not kept:
        for q in range(p, number[HORIZON] + 1):
            state.marked[q] = False
        return False
    if shortened and longest < number[SPAN]:
        longest = max(longest, number[AROUND])
        for q in range(number[LOW], high):
            longest = max(longest, state.reach[state.order[q]])
        number[SPAN] = longest
    else:
        number[SPAN] = max(number[SPAN], longest)
    return True


@kernel(allocates=False)
def restore(state: State) -> None:
    """Reverse the times of a rejected evaluation."""
    for at in range(state.number[LOGGED]):
        i = state.logged[at]
        state.end[i], state.reach[i] = state.old_end[at], state.old_reach[at]


@kernel(tail, allocates=False)
def repair_tails(instance: Instance, state: State) -> None:
    """Compute the tails of the marked tasks again, and all that they affect in the window."""
    number, after, position = state.number, state.after, state.position
    low, lowest = number[LOW], number[FIRST]
    p = number[LAST]
    while p >= lowest:
        if not state.marked[p]:
            p -= 1
            continue
        state.marked[p] = False
        i = state.order[p]
        p -= 1
        now, was = tail(instance, state, i, 0), after[i]
        if now == was:
            continue
        after[i] = now
        for k in range(instance.in_start[i] - 1, instance.in_start[i + 1]):
            if k < instance.in_start[i]:
                u, gap = state.before[i], state.ticks[i]
                if u < 0:
                    continue
            else:
                u, gap = instance.source[k], state.ticks[i] + state.delay[k]
            q = position[u]
            if q >= low and (now + gap > after[u] or was + gap == after[u]):
                state.marked[q] = True
                lowest = min(lowest, q)
