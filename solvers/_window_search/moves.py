"""Moves of tasks within the window: where a task fits best on a device, and how to place it there and back."""

from __future__ import annotations

from placeopt.kernels import kernel

from .._local_search.instance import Instance, moving_ticks
from .state import ANCHOR, FIRST, HIGH, HORIZON, LAST, LONGEST, LOW, OPS, SEED, SLOT, SURE, State
from .timing import mark

MODULUS = 2**31 - 1
"""Modulus of the random numbers."""


@kernel(allocates=False)
def draw(state: State, below: int) -> int:
    """Return a random number in 0..below - 1, where below is much less than 2^31: Park and Miller's generator."""
    state.number[SEED] = state.number[SEED] * 48271 % MODULUS
    return int(state.number[SEED]) % below


@kernel(allocates=False)
def chained(state: State, previous: int, d: int, i: int) -> int:
    """Return the task after `previous` on device d (-1: the first one) without task i; -1 if there is none."""
    j = state.first[d] if previous < 0 else state.behind[previous]
    return int(state.behind[j] if j == i and j >= 0 else j)


@kernel(moving_ticks, draw, chained, allocates=False)
def find_slot(instance: Instance, state: State, i: int, d: int, spread: int) -> int:
    """Return the estimated length of the longest path through task i at its best slot on device d; -1 without a slot.

    A slot is a place between two tasks of the device, after the producers and before the consumers of i. Sets
    number[SLOT], the position in the order, number[ANCHOR], the task before it on the device, and number[SURE], a lower
    bound of the new makespan. With `spread` > 0, each slot is taken regardless of its path with a probability of
    1 / spread. The length is an estimate, because i still is in its place.
    """
    position, end, after, ticks, number = state.position, state.end, state.after, state.ticks, state.number
    low, high = number[LOW] - 1, number[HIGH]
    here = position[i]
    ready, follow = instance.release[i], 0
    for k in range(instance.in_start[i], instance.in_start[i + 1]):
        u = instance.source[k]
        low = max(low, position[u])
        a = state.device[u]
        ready = max(ready, end[u] + (0 if a == d else moving_ticks(instance, k, a, d)))
    for e in range(instance.out_start[i], instance.out_start[i + 1]):
        j = instance.target[e]
        high = min(high, position[j])
        b = state.device[j]
        gap = 0 if b == d else moving_ticks(instance, instance.slot[e], d, b)
        follow = max(follow, gap + ticks[j] + after[j])
    own = instance.duration[i, d]
    previous = state.gate[d]
    following = chained(state, previous, d, i)
    while following >= 0 and position[following] <= low:
        previous = following
        following = chained(state, previous, d, i)
    best = -1
    while True:
        start, rest, left, right = ready, follow, low, high
        sure = 0
        if previous >= 0:
            start = max(start, end[previous])
            left = max(left, position[previous])
        if following >= 0:
            rest = max(rest, ticks[following] + after[following])
            right = min(right, position[following])
        if d != state.device[i] or previous != state.before[i]:
            through = start + own + rest
            if best < 0 or through < best or (spread > 0 and draw(state, spread) == 0):
                best = through
                # Times before i are those without i, so that they are exact after its removal, as are tails after i.
                if previous >= 0 and position[previous] > here:
                    start = ready
                if following >= 0 and position[following] < here:
                    rest = follow
                sure = start + own + rest
                number[SURE], number[ANCHOR] = sure, previous
                number[SLOT] = here
                if here <= left:
                    number[SLOT] = left
                elif here >= right:
                    number[SLOT] = right
        if following < 0 or position[following] >= high:
            break
        previous = following
        following = chained(state, previous, d, i)
    return int(best)


@kernel(moving_ticks, allocates=False)
def place(instance: Instance, state: State, i: int, d: int, put: int, anchor: int) -> None:
    """Place task i on device d after task `anchor` (-1: first), at position `put` of the order, without checks."""
    order, position, before, behind = state.order, state.position, state.before, state.behind
    was, taken = state.device[i], position[i]
    previous, following = before[i], behind[i]
    if previous >= 0:
        behind[previous] = following
    else:
        state.first[was] = following
    if following >= 0:
        before[following] = previous
    if put > taken:
        for p in range(taken, put):
            j = order[p + 1]
            order[p] = j
            position[j] = p
    else:
        for p in range(taken, put, -1):
            j = order[p - 1]
            order[p] = j
            position[j] = p
    order[put], position[i] = i, put
    following = state.first[d] if anchor < 0 else behind[anchor]
    before[i], behind[i] = anchor, following
    if anchor >= 0:
        behind[anchor] = i
    else:
        state.first[d] = i
    if following >= 0:
        before[following] = i
    if d != was:
        state.device[i] = d
        state.ticks[i] = instance.duration[i, d]
        for k in range(instance.in_start[i], instance.in_start[i + 1]):
            a = state.device[instance.source[k]]
            state.delay[k] = 0 if a == d else moving_ticks(instance, k, a, d)
        for e in range(instance.out_start[i], instance.out_start[i + 1]):
            b = state.device[instance.target[e]]
            k = instance.slot[e]
            state.delay[k] = 0 if b == d else moving_ticks(instance, k, d, b)


@kernel(place, allocates=False)
def change(instance: Instance, state: State, i: int, d: int, put: int, anchor: int) -> None:
    """Apply `place`, and store how to undo it."""
    number = state.number
    at = number[OPS]
    number[OPS] = at + 1
    state.moved[at], state.old_device[at], state.old_position[at] = i, state.device[i], state.position[i]
    state.old_before[at], state.old_behind[at] = state.before[i], state.behind[i]
    number[FIRST] = min(number[FIRST], state.position[i], put)
    number[LAST] = max(number[LAST], state.position[i], put)
    place(instance, state, i, d, put, anchor)


@kernel(place, allocates=False)
def undo(instance: Instance, state: State) -> None:
    """Undo the last proposal."""
    for at in range(state.number[OPS] - 1, -1, -1):
        i, d = state.moved[at], state.old_device[at]
        if state.device[i] != d:
            g = instance.group[i]
            if instance.member[instance.member_start[g]] == i:
                state.room[state.device[i]] += instance.memory[g]
                state.room[d] -= instance.memory[g]
        place(instance, state, i, d, state.old_position[at], state.old_before[at])
    state.number[OPS] = 0


@kernel(mark, allocates=False)
def mark_changes(instance: Instance, state: State) -> None:
    """Mark all tasks whose heads or reaches depend on the last proposal."""
    for at in range(state.number[OPS]):
        i = state.moved[at]
        mark(state, i)
        for j in (state.before[i], state.behind[i], state.old_before[at], state.old_behind[at]):
            if j >= 0:
                mark(state, j)
        for e in range(instance.out_start[i], instance.out_start[i + 1]):
            mark(state, instance.target[e])


@kernel(mark, allocates=False)
def mark_tails(instance: Instance, state: State) -> None:
    """Mark all tasks whose tails depend on the last proposal."""
    for at in range(state.number[OPS]):
        i = state.moved[at]
        mark(state, i)
        for j in (state.before[i], state.old_before[at]):
            if j >= 0:
                mark(state, j)
        for k in range(instance.in_start[i], instance.in_start[i + 1]):
            mark(state, instance.source[k])


@kernel(allocates=False)
def allowed(instance: Instance, state: State, g: int, to: int) -> bool:
    """Return whether feasibility, separation and memory allow group g to move to device `to` within the window."""
    if not instance.feasible[g, to] or state.room[to] < instance.memory[g]:
        return False
    for at in range(instance.apart_start[g], instance.apart_start[g + 1]):
        h = instance.apart[at]
        if state.device[instance.member[instance.member_start[h]]] == to:
            return False
    return True


@kernel(find_slot, change, allocates=False)
def move_group(instance: Instance, state: State, g: int, to: int, spread: int) -> bool:
    """Move group g to device `to`, each task to its best slot; return whether it was possible.

    A group with tasks outside the window, or with more than the buffers hold, does not move.
    """
    number = state.number
    begin, end = instance.member_start[g], instance.member_start[g + 1]
    if number[OPS] + end - begin > LONGEST:
        return False
    for at in range(begin, end):
        if not number[LOW] <= state.position[instance.member[at]] < number[HIGH]:
            return False
    away = state.device[instance.member[begin]]
    for at in range(begin, end):
        i = instance.member[at]
        find_slot(instance, state, i, to, spread)
        change(instance, state, i, to, number[SLOT], number[ANCHOR])
    state.room[away] += instance.memory[g]
    state.room[to] -= instance.memory[g]
    return True


@kernel(allocates=False)
def begin_move(state: State) -> None:
    """Begin a proposal."""
    number = state.number
    number[OPS], number[FIRST], number[LAST], number[HORIZON], number[SURE] = 0, len(state.order), -1, -1, 0
