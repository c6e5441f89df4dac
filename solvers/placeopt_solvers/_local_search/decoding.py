"""Compute the times and the cost of a state, from the first position that a change affects.

Evaluation stops as soon as a task is so late that the cost exceeds a limit. After the last position that the change
affects, the remaining ticks are known exactly (`look_ahead`), and most evaluations stop there. Times before the change
are kept; devices and ports resume from the mark before it. After the change, without ports, timing ends at the first
mark where all devices are free at the same ticks as before and no arrival has changed.

Tests compare with plain oracles: `placeopt.simulation.retime` may only shorten the schedule,
`placeopt.model.objective.evaluate` gives its value, and a complete evaluation gives the same cost as a partial one.
"""

from __future__ import annotations

import math

from placeopt.kernels import kernel
from placeopt.model.problem import PARTS, UNLIMITED
from placeopt.model.tiers import swap_time
from placeopt.simulation.loops import pop, push

from .instance import BALANCE, LATE, LOAD, MAKESPAN, OVERFULL, Instance
from .state import BEGUN, COUNTER, FIXED, GUIDE, KNOWN, LAST, PENALTY, STEP, TIMED, VALID, State

MARKS = 8
"""Marks from which on the times before a change are saved; on shorter orders, recomputing them is as fast."""


@kernel(allocates=False)
def standing_cost(instance: Instance, state: State) -> float:
    """Return the cost apart from times; sets the penalty for memory under the `sum` model."""
    value = state.cost[FIXED]
    overfull, fullest, busiest = 0, 0.0, 0
    for d in range(len(state.room)):
        busiest = max(busiest, state.load[d])
        if instance.capacity[d] != UNLIMITED:
            overfull += max(-state.room[d], 0)
            fullest = max(fullest, (instance.capacity[d] - state.room[d]) / max(instance.capacity[d], 1))
    value += instance.weight[LOAD] * busiest
    if not instance.peak:
        value += instance.weight[BALANCE] * PARTS * fullest
    state.cost[PENALTY] = instance.weight[OVERFULL] * overfull
    return float(value)


@kernel(swap_time, allocates=False, inline=True)
def swapped(instance: Instance, state: State, d: int) -> int:
    """Return the tick at which a device has swapped, with memory tiers."""
    ticks: int = swap_time(instance.tiers, d, instance.capacity[d] - state.room[d])
    return ticks


@kernel(push, pop, allocates=False)
def live_cost(instance: Instance, state: State) -> float:
    """Under `peak`, set the penalty for memory and return the cost of the memory balance. O(n log n).

    The bytes live on a device grow only when a task starts, and tasks start in the state's order.
    """
    n, m = len(state.order), len(state.room)
    freed, time, code = state.freed, state.time, state.code
    for d in range(m):
        state.stamp[d] = 0  # length of the heap of the device
        state.level[0, d], state.level[1, d], state.level[2, d] = 0, 0, 0
    for i in range(n):
        d = state.device[i]
        state.level[2, d] += 1
        state.level[0, d] += instance.resident[i]
        freed[i] = state.end[i]
        for e in range(instance.out_start[i], instance.out_start[i + 1]):
            j = instance.target[e]
            k = instance.slot[e]
            if state.device[j] == d:
                gone = state.end[j]
            elif instance.port:
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
            state.level[0, d] -= instance.output[codes[0]]
            size -= 1
            pop(heap, codes, size)
        if freed[i] > start and instance.output[i] > 0:
            push(heap, codes, size, freed[i], i)
            size += 1
            state.level[0, d] += instance.output[i]
        state.stamp[d] = size
        running = instance.scratch[i] if state.ticks[i] > 0 else 0
        state.level[1, d] = max(state.level[1, d], state.level[0, d] + running)
    overfull, fullest = 0, 0.0
    for d in range(m):
        state.stamp[d] = 0
        if instance.capacity[d] != UNLIMITED:
            overfull += max(state.level[1, d] - instance.capacity[d], 0)
            fullest = max(fullest, state.level[1, d] / max(instance.capacity[d], 1))
    state.cost[PENALTY] = instance.weight[OVERFULL] * overfull
    return float(instance.weight[BALANCE] * PARTS * fullest)


@kernel(allocates=False, inline=True)
def booked(instance: Instance, state: State, k: int, p: int, d: int) -> int:
    """Book the transfer of in-edge k to device d for the task at position p, under ports; return its arrival.

    A transfer booked for an earlier consumer serves this one, too, if the position of that one is still timed the same.
    """
    u = instance.source[k]
    a = state.device[u]
    if a == d:
        return int(state.end[u])
    shared = instance.shared[k]
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
def rewind(instance: Instance, state: State, first: int) -> None:
    """Restore the times before the last evaluation of a change from position `first`; call it before `undo`.

    Under ports, on short orders and without saved times, it only makes the next evaluation begin at `first` or before.
    """
    n, shift = len(state.order), state.number[STEP]
    first = min(first, state.number[BEGUN])
    if instance.port or len(state.latest) < MARKS or state.number[VALID] < n:
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


@kernel(standing_cost, swapped, live_cost, booked, rewind, allocates=False)
def decode(instance: Instance, state: State, begin: int, limit: float) -> float:
    """Return the cost of the state after a change from position `begin` to number[LAST]; infinite if over `limit`.

    State.cost[GUIDE] and [PENALTY] are the parts that do not belong to the objective. If the cost is infinite, the
    times before the change are restored.
    """
    n, m = len(state.order), len(state.free)
    order, device, ticks, delay, end, free = state.order, state.device, state.ticks, state.delay, state.end, state.free
    state.cost[GUIDE] = 0.0
    state.number[TIMED] = 0
    rest = standing_cost(instance, state)
    roomy = state.cost[PENALTY] == 0.0
    if not instance.peak:
        rest += state.cost[PENALTY]
    if rest > limit or not instance.timed:
        return math.inf if rest > limit else float(rest)
    state.number[COUNTER] += 1
    heavy = instance.weight[MAKESPAN]
    cut = (limit - rest) / heavy if heavy > 0 else math.inf
    known = max(state.number[LAST] + 1, state.number[KNOWN])
    marks, shift = state.marks, state.number[STEP]
    first = min(begin, state.number[VALID])
    swaps = len(instance.tiers.memory) > 0
    if swaps:  # a device is busy until it has swapped: any change of that time begins before the first task
        for d in range(m):
            if swapped(instance, state, d) != marks[0, d]:
                first = 0
    state.number[BEGUN] = first
    # Whether the times before the change are saved until the new ones join them again.
    warm = not instance.port and len(state.latest) >= MARKS and state.number[VALID] == n
    touched = horizon = state.number[LAST]
    joined = False
    c = first >> shift
    for d in range(m):
        free[d] = swapped(instance, state, d) if swaps and c == 0 else marks[c, d]
        if instance.port:
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
            if instance.port:
                marks[c, m + d], marks[c, 2 * m + d] = state.send[d], state.receive[d]
        marks[c, 3 * m] = state.number[COUNTER]
        latest, late = 0, 0
        for p in range(c << shift, min((c + 1) << shift, n)):
            i = order[p]
            d = device[i]
            t = max(free[d], instance.release[i])
            if instance.port:
                for k in range(instance.in_start[i], instance.in_start[i + 1]):
                    arrival = booked(instance, state, k, p, d)
                    state.arrive[k] = arrival
                    t = max(t, arrival)
            else:
                for k in range(instance.in_start[i], instance.in_start[i + 1]):
                    t = max(t, end[instance.source[k]] + delay[k])
            t += ticks[i]
            if warm:
                state.old_end[p] = end[i]
                if t != end[i] or p <= touched:
                    for e in range(instance.out_start[i], instance.out_start[i + 1]):
                        horizon = max(horizon, state.position[instance.target[e]])
            end[i] = t
            free[d] = t
            latest = max(latest, t)
            if t + (state.after[i] if p >= known else instance.tail[i]) > cut:
                state.number[TIMED] = p + 1
                rewind(instance, state, first)
                return math.inf
            if instance.due:
                late += max(t - instance.deadline[i], 0)
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
        over += max(marks[last, d] - instance.bound, 0)
    state.cost[GUIDE] = heavy * over / max(m, 1)
    if instance.peak:
        if not roomy or instance.weight[BALANCE] > 0:
            rest += live_cost(instance, state)
        else:
            state.cost[PENALTY] = 0.0
        rest += state.cost[PENALTY]
    if instance.due:
        state.cost[PENALTY] += instance.weight[LATE] * late
        rest += instance.weight[LATE] * late
    value = float(rest + heavy * span + state.cost[GUIDE])
    if value > limit:
        rewind(instance, state, first)
        return math.inf
    state.number[VALID] = n
    return value


@kernel(allocates=False)
def look_ahead(instance: Instance, state: State) -> None:
    """Compute State.after for all tasks, from the last to the first; overwrites `free`.

    A task is followed by its consumers and by the next task on its device, each with its own followers. Queues at ports
    are ignored, so with ports the result is a lower bound.
    """
    known = state.number[KNOWN]
    for d in range(len(state.free)):
        state.free[d] = 0
    for p in range(len(state.order) - 1, -1, -1):
        i = state.order[p]
        d = state.device[i]
        if p < known:
            behind = max(instance.tail[i], state.free[d])
            for e in range(instance.out_start[i], instance.out_start[i + 1]):
                j = instance.target[e]
                behind = max(behind, state.delay[instance.slot[e]] + state.ticks[j] + state.after[j])
            state.after[i] = behind
        state.free[d] = state.ticks[i] + state.after[i]
    state.number[KNOWN] = 0
