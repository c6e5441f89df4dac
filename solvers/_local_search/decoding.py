"""The times of a state, from the first position that a change touches, and what it costs.

A change is given up as soon as some task is so late that what follows it makes the state cost too much. What follows is
known exactly behind the last position that the change touches (`look_ahead`): most changes are given up right there.

The oracle of all of this is the plain one: `placeopt.simulation.retime` of the schedule that comes out may only be
shorter, `placeopt.model.objective.evaluate` gives its value, and decoding everything anew gives the same cost as
decoding a part. Times before the change are kept; devices and ports resume from the mark before it. Behind the change,
without ports, timing ends at the first mark where all devices are as they were and no data is there at another time.
"""

from __future__ import annotations

import math

from placeopt.kernels import kernel
from placeopt.model.problem import PARTS, UNLIMITED
from placeopt.simulation.loops import pop, push

from .case import BALANCE, LATE, LOAD, MAKESPAN, OVERFULL, Case
from .state import COUNTER, FIXED, GUIDE, KNOWN, LAST, PENALTY, STEP, TIMED, VALID, State

MARKS = 8
"""Marks from which on times from before a change are kept: on shorter orders timing tasks again is as fast."""


@kernel(allocates=False)
def standing_cost(case: Case, state: State) -> float:
    """What the state costs whatever its times are; sets the penalty for memory under the `sum` model."""
    value = state.cost[FIXED]
    overfull, fullest, busiest = 0, 0.0, 0
    for d in range(len(state.room)):
        busiest = max(busiest, state.load[d])
        if case.capacity[d] != UNLIMITED:
            overfull += max(-state.room[d], 0)
            fullest = max(fullest, (case.capacity[d] - state.room[d]) / max(case.capacity[d], 1))
    value += case.weight[LOAD] * busiest
    if not case.peak:
        value += case.weight[BALANCE] * PARTS * fullest
    state.cost[PENALTY] = case.weight[OVERFULL] * overfull
    return float(value)


@kernel(push, pop, allocates=False)
def live_cost(case: Case, state: State) -> float:
    """Under `peak`: set the penalty for what is live at one time, and return what the memory balance costs. O(n log n).

    What is live on a device grows only where a task starts, and tasks start in the state's order.
    """
    n, m = len(state.order), len(state.room)
    freed, time, code = state.freed, state.time, state.code
    for d in range(m):
        state.stamp[d] = 0  # length of the heap of the device
        state.level[0, d], state.level[1, d], state.level[2, d] = 0, 0, 0
    for i in range(n):
        d = state.device[i]
        state.level[2, d] += 1
        state.level[0, d] += case.resident[i]
        freed[i] = state.end[i]
        for e in range(case.out_start[i], case.out_start[i + 1]):
            j = case.target[e]
            k = case.slot[e]
            if state.device[j] == d:
                gone = state.end[j]
            elif case.port:
                gone = state.arrive[k]
            else:
                gone = state.end[i] + state.delay[k]
            freed[i] = max(freed[i], gone)
    begin = 0
    for d in range(m):
        count = state.level[2, d]
        state.level[2, d] = begin
        begin += count
        state.level[1, d] = state.level[0, d]
    for i in state.order:
        d = state.device[i]
        start = state.end[i] - state.ticks[i]
        heap, codes, size = time[state.level[2, d] :], code[state.level[2, d] :], state.stamp[d]
        while size > 0 and heap[0] <= start:
            state.level[0, d] -= case.output[codes[0]]
            size -= 1
            pop(heap, codes, size)
        if freed[i] > start and case.output[i] > 0:
            push(heap, codes, size, freed[i], i)
            size += 1
            state.level[0, d] += case.output[i]
        state.stamp[d] = size
        running = case.scratch[i] if state.ticks[i] > 0 else 0
        state.level[1, d] = max(state.level[1, d], state.level[0, d] + running)
    overfull, fullest = 0, 0.0
    for d in range(m):
        state.stamp[d] = 0
        if case.capacity[d] != UNLIMITED:
            overfull += max(state.level[1, d] - case.capacity[d], 0)
            fullest = max(fullest, state.level[1, d] / max(case.capacity[d], 1))
    state.cost[PENALTY] = case.weight[OVERFULL] * overfull
    return float(case.weight[BALANCE] * PARTS * fullest)


@kernel(allocates=False, inline=True)
def booked(case: Case, state: State, k: int, p: int, d: int) -> int:
    """When the data of in-edge k is on device d for the task at position p, under ports; books the transfer.

    What was booked for an earlier consumer serves this one too, if that position was timed when it was booked.
    """
    u = case.source[k]
    a = state.device[u]
    if a == d:
        return int(state.end[u])
    shared = case.shared[k]
    if shared:
        q = state.owner[u, d]
        if q < p and state.written[u, d] == state.marks[q >> state.number[STEP], 3 * len(state.free)]:
            return int(state.sent[u, d])
    arrival = max(state.end[u], state.send[a], state.receive[d]) + state.delay[k]
    state.send[a], state.receive[d] = arrival, arrival
    if shared:
        state.owner[u, d], state.written[u, d], state.sent[u, d] = p, state.number[COUNTER], arrival
    return int(arrival)


@kernel(allocates=False)
def rewind(case: Case, state: State, first: int) -> None:
    """Bring back the times from before the last evaluation, which began with position `first`; before `undo`.

    Under ports, on short orders and where there are none to bring back, the next evaluation begins no later than this.
    """
    n, shift = len(state.order), state.number[STEP]
    if case.port or len(state.latest) < MARKS or state.number[VALID] < n:
        state.number[VALID] = min(state.number[VALID], first)
        return
    c, timed = first >> shift, min(state.number[TIMED], n)
    for p in range(c << shift, timed):
        state.end[state.order[p]] = state.old_end[p]
    while c << shift < timed:
        for k in range(state.marks.shape[1]):
            state.marks[c, k] = state.old_marks[c, k]
        state.latest[c], state.late[c] = state.old_latest[c], state.old_late[c]
        c += 1
    if state.number[TIMED] > n:
        for k in range(state.marks.shape[1]):
            state.marks[c, k] = state.old_marks[c, k]


@kernel(standing_cost, live_cost, booked, rewind, allocates=False)
def decode(case: Case, state: State, begin: int, limit: float) -> float:
    """What the state costs after a change from position `begin` to number[LAST]; infinite once that is over `limit`.

    State.cost[GUIDE] and [PENALTY] are the parts of it that are no value of the objective. Where it is infinite, times
    are again those from before the change.
    """
    n, m = len(state.order), len(state.free)
    order, device, ticks, delay, end, free = state.order, state.device, state.ticks, state.delay, state.end, state.free
    state.cost[GUIDE] = 0.0
    state.number[TIMED] = 0
    rest = standing_cost(case, state)
    roomy = state.cost[PENALTY] == 0.0
    if not case.peak:
        rest += state.cost[PENALTY]
    if rest > limit or not case.timed:
        return math.inf if rest > limit else float(rest)
    state.number[COUNTER] += 1
    heavy = case.weight[MAKESPAN]
    cut = (limit - rest) / heavy if heavy > 0 else math.inf
    known = max(state.number[LAST] + 1, state.number[KNOWN])
    marks, shift = state.marks, state.number[STEP]
    first = min(begin, state.number[VALID])
    # Whether there are times from before the change: then they may join again behind it, and are kept until then.
    warm = not case.port and len(state.latest) >= MARKS and state.number[VALID] == n
    touched = horizon = state.number[LAST]
    joined = False
    c = first >> shift
    for d in range(m):
        free[d] = marks[c, d]
        if case.port:
            state.send[d], state.receive[d] = marks[c, m + d], marks[c, 2 * m + d]
    while c << shift < n:
        if warm:
            joined = c << shift > horizon
            for d in range(m):
                state.old_marks[c, d] = marks[c, d]
                joined = joined and free[d] == marks[c, d]
            if joined:
                break
            state.old_latest[c], state.old_late[c] = state.latest[c], state.late[c]
        for d in range(m):
            marks[c, d] = free[d]
            if case.port:
                marks[c, m + d], marks[c, 2 * m + d] = state.send[d], state.receive[d]
        marks[c, 3 * m] = state.number[COUNTER]
        latest, late = 0, 0
        for p in range(c << shift, min((c + 1) << shift, n)):
            i = order[p]
            d = device[i]
            t = max(free[d], case.release[i])
            if case.port:
                for k in range(case.in_start[i], case.in_start[i + 1]):
                    arrival = booked(case, state, k, p, d)
                    state.arrive[k] = arrival
                    t = max(t, arrival)
            else:
                for k in range(case.in_start[i], case.in_start[i + 1]):
                    t = max(t, end[case.source[k]] + delay[k])
            t += ticks[i]
            if warm:
                state.old_end[p] = end[i]
                if t != end[i] or p <= touched:
                    for e in range(case.out_start[i], case.out_start[i + 1]):
                        horizon = max(horizon, state.position[case.target[e]])
            end[i] = t
            free[d] = t
            latest = max(latest, t)
            if t + (state.after[i] if p >= known else case.tail[i]) > cut:
                state.number[TIMED] = p + 1
                rewind(case, state, first)
                return math.inf
            if case.due:
                late += max(t - case.deadline[i], 0)
        state.latest[c], state.late[c] = latest, late
        c += 1
    state.number[TIMED] = c << shift if joined else n + 1
    last = len(state.latest)
    if not joined:
        for d in range(m):
            state.old_marks[last, d] = marks[last, d]
            marks[last, d] = free[d]
    span, late, over = 0, 0, 0
    for c in range(last):
        span = max(span, state.latest[c])
        late += state.late[c]
    for d in range(m):
        over += max(marks[last, d] - case.bound, 0)
    state.cost[GUIDE] = heavy * over / max(m, 1)
    if case.peak:
        if not roomy or case.weight[BALANCE] > 0:
            rest += live_cost(case, state)
        else:
            state.cost[PENALTY] = 0.0
        rest += state.cost[PENALTY]
    if case.due:
        state.cost[PENALTY] += case.weight[LATE] * late
        rest += case.weight[LATE] * late
    value = float(rest + heavy * span + state.cost[GUIDE])
    if value > limit:
        rewind(case, state, first)
        return math.inf
    state.number[VALID] = n
    return value


@kernel(allocates=False)
def look_ahead(case: Case, state: State) -> None:
    """Work out State.after for all tasks, from the last to the first; leaves `free` changed.

    Behind a task come those that need its data and the one after it on its device, each with what comes behind it.
    Queues at ports are left out, so with them it is less than what follows.
    """
    known = state.number[KNOWN]
    for d in range(len(state.free)):
        state.free[d] = 0
    for p in range(len(state.order) - 1, -1, -1):
        i = state.order[p]
        d = state.device[i]
        if p < known:
            behind = max(case.tail[i], state.free[d])
            for e in range(case.out_start[i], case.out_start[i + 1]):
                j = case.target[e]
                behind = max(behind, state.delay[case.slot[e]] + state.ticks[j] + state.after[j])
            state.after[i] = behind
        state.free[d] = state.ticks[i] + state.after[i]
    state.number[KNOWN] = 0
