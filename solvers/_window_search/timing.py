"""Heads and tails: computed for all tasks, and repaired within the window after a change."""

from __future__ import annotations

from placeopt.kernels import kernel

from .._local_search.instance import Instance, moving_ticks
from .state import BASE, EXCESS, FIRST, HIGH, HORIZON, LAST, LOGGED, LOW, SKIP, SPAN, State


@kernel(moving_ticks, allocates=False)
def connect(instance: Instance, state: State) -> None:
    """Recompute the positions, the chains of the devices and all delays from the order and the devices."""
    for d in range(len(state.room)):
        state.room[d] = instance.capacity[d]
        state.first[d] = -1
        state.gate[d] = -1
    for p in range(len(state.order)):
        i = state.order[p]
        d = state.device[i]
        state.position[i] = p
        state.ticks[i] = instance.duration[i, d]
        state.before[i], state.behind[i] = state.gate[d], -1
        if state.gate[d] >= 0:
            state.behind[state.gate[d]] = i
        else:
            state.first[d] = i
        state.gate[d] = i
        for k in range(instance.in_start[i], instance.in_start[i + 1]):
            a = state.device[instance.source[k]]
            state.delay[k] = 0 if a == d else moving_ticks(instance, k, a, d)
    for g in range(len(instance.memory)):
        state.room[state.device[instance.member[instance.member_start[g]]]] -= instance.memory[g]


@kernel(allocates=False)
def head(instance: Instance, state: State, i: int) -> int:
    """Return the end of task i, from those of the tasks before it."""
    t = instance.release[i]
    if state.before[i] >= 0:
        t = max(t, state.end[state.before[i]])
    for k in range(instance.in_start[i], instance.in_start[i + 1]):
        t = max(t, state.end[instance.source[k]] + state.delay[k])
    return int(t + state.ticks[i])


@kernel(allocates=False)
def tail(instance: Instance, state: State, i: int, begin: int) -> int:
    """Return the ticks after task i on paths through tasks from position `begin` on."""
    behind = 0
    j = state.behind[i]
    if j >= 0 and state.position[j] >= begin:
        behind = state.ticks[j] + state.after[j]
    for e in range(instance.out_start[i], instance.out_start[i + 1]):
        j = instance.target[e]
        if state.position[j] >= begin:
            behind = max(behind, state.delay[instance.slot[e]] + state.ticks[j] + state.after[j])
    return int(behind)


@kernel(head, allocates=False)
def time_heads(instance: Instance, state: State, begin: int, end: int) -> None:
    """Compute the ends of the tasks at positions [begin, end)."""
    for p in range(begin, end):
        i = state.order[p]
        state.end[i] = head(instance, state, i)


@kernel(tail, allocates=False)
def time_tails(instance: Instance, state: State, begin: int, end: int) -> None:
    """Compute the tails of the tasks at positions [begin, end), from the last to the first."""
    for p in range(end - 1, begin - 1, -1):
        i = state.order[p]
        state.after[i] = tail(instance, state, i, 0)


@kernel(allocates=False)
def weigh(instance: Instance, state: State) -> None:
    """Recompute the sum of excesses."""
    excess = 0
    for p in range(state.number[LOW], state.number[HIGH]):
        excess += max(state.reach[state.order[p]] - state.number[BASE], 0)
    state.number[EXCESS] = excess


@kernel(tail, weigh, allocates=False)
def enter(instance: Instance, state: State, low: int, high: int, margin: int) -> None:
    """Make the positions [low, high) the window; heads before `high` and tails from `low` on are valid."""
    number = state.number
    number[LOW], number[HIGH] = low, high
    span = 0
    for p in range(high, len(state.order)):
        i = state.order[p]
        span = max(span, instance.release[i] + state.ticks[i] + state.after[i])
    for d in range(len(state.gate)):
        state.gate[d] = -1
    for p in range(low):
        i = state.order[p]
        state.gate[state.device[i]] = i
        span = max(span, state.end[i] + tail(instance, state, i, high))
    # A path from a device's last task before the window to its first task after it is shorter than with the tasks
    # between them. It is counted, because it remains if these move away.
    for d in range(len(state.gate)):
        i = state.first[d] if state.gate[d] < 0 else state.behind[state.gate[d]]
        while i >= 0 and state.position[i] < high:
            i = state.behind[i]
        if i >= 0:
            free = 0 if state.gate[d] < 0 else state.end[state.gate[d]]
            span = max(span, free + state.ticks[i] + state.after[i])
    number[SKIP] = span
    for p in range(low, high):
        i = state.order[p]
        state.reach[i] = state.end[i] + tail(instance, state, i, high)
        span = max(span, state.reach[i])
        state.dirty[p] = False
    number[SPAN] = span
    number[BASE] = span - margin
    weigh(instance, state)


@kernel(allocates=False, inline=True)
def mark(state: State, j: int) -> None:
    """Time task j again, if it is in the window."""
    p = state.position[j]
    if state.number[LOW] <= p < state.number[HIGH]:
        state.dirty[p] = True
        state.number[FIRST] = min(state.number[FIRST], p)
        state.number[HORIZON] = max(state.number[HORIZON], p)


@kernel(head, allocates=False)
def propagate(instance: Instance, state: State, limit: int) -> bool:
    """Time all tasks again that a change affects; return whether the makespan is at most `limit`.

    Updates SPAN and EXCESS. If the makespan exceeds the limit, times remain as far as they were computed; `restore`
    reverses them.
    """
    number, end, after, position = state.number, state.end, state.after, state.position
    high, last, base = number[HIGH], number[LAST], number[BASE]
    critical, latest, excess, count = False, 0, number[EXCESS], 0
    p = number[FIRST]
    kept = True
    while p <= number[HORIZON]:
        if not state.dirty[p]:
            p += 1
            continue
        state.dirty[p] = False
        i = state.order[p]
        t = head(instance, state, i)
        was = end[i]
        if p > last:
            if t == was:
                p += 1
                continue
            if t + after[i] > limit:
                kept = False
                break
        far = 0
        j = state.behind[i]
        if j >= 0:
            q = position[j]
            if q >= high:
                far = state.ticks[j] + after[j]
            elif t != was:
                start = end[j] - state.ticks[j]
                if t > start or was == start:
                    state.dirty[q] = True
                    number[HORIZON] = max(number[HORIZON], q)
        for e in range(instance.out_start[i], instance.out_start[i + 1]):
            j = instance.target[e]
            q = position[j]
            gap = state.delay[instance.slot[e]]
            if q >= high:
                far = max(far, gap + state.ticks[j] + after[j])
            elif t != was:
                start = end[j] - state.ticks[j]
                if t + gap > start or was + gap == start:
                    state.dirty[q] = True
                    number[HORIZON] = max(number[HORIZON], q)
        reach = t + far
        before = state.reach[i]
        state.logged[count], state.old_end[count], state.old_reach[count] = i, was, before
        count += 1
        end[i], state.reach[i] = t, reach
        if reach > limit:
            kept = False
            break
        critical = critical or before == number[SPAN]
        latest = max(latest, reach)
        excess += max(reach - base, 0) - max(before - base, 0)
        p += 1
    number[LOGGED] = count
    if not kept:
        for q in range(p, number[HORIZON] + 1):
            state.dirty[q] = False
        return False
    if critical and latest < number[SPAN]:
        latest = max(latest, number[SKIP])
        for q in range(number[LOW], high):
            latest = max(latest, state.reach[state.order[q]])
        number[SPAN] = latest
    else:
        number[SPAN] = max(number[SPAN], latest)
    number[EXCESS] = excess
    return True


@kernel(allocates=False)
def restore(state: State) -> None:
    """Reverse the times of the last evaluation."""
    for at in range(state.number[LOGGED] - 1, -1, -1):
        i = state.logged[at]
        state.end[i], state.reach[i] = state.old_end[at], state.old_reach[at]
    state.number[LOGGED] = 0


@kernel(tail, mark, allocates=False)
def repair_tails(instance: Instance, state: State) -> None:
    """Recompute the tails that an accepted change affects; the tasks at its positions are marked.

    A task whose tail changes marks those before it whose tails it determines.
    """
    number, after, position = state.number, state.after, state.position
    low = number[LOW]
    lowest = number[FIRST]
    p = number[LAST]
    while p >= lowest:
        if not state.dirty[p]:
            p -= 1
            continue
        state.dirty[p] = False
        i = state.order[p]
        now = tail(instance, state, i, 0)
        was = after[i]
        if now != was:
            after[i] = now
            new, old = now + state.ticks[i], was + state.ticks[i]
            u = state.before[i]
            if u >= 0 and position[u] >= low and (new > after[u] or old == after[u]):
                state.dirty[position[u]] = True
                lowest = min(lowest, position[u])
            for k in range(instance.in_start[i], instance.in_start[i + 1]):
                u = instance.source[k]
                gap = state.delay[k]
                if position[u] >= low and (new + gap > after[u] or old + gap == after[u]):
                    state.dirty[position[u]] = True
                    lowest = min(lowest, position[u])
        p -= 1
