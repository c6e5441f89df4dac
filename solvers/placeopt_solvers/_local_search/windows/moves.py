"""Moves of tasks to other devices and other places on their device, within the window.

    move      a group to another device: of some devices, the one where the path through a task of it is shortest
    shift     a task to another place on its device
    swap      two groups exchange their devices
    cluster   tasks of one device that edges connect go to another

A task that moves goes to the slot where the path through it is shortest, estimated from heads and tails before the move
(M. Mastrolilli, L. M. Gambardella: Effective neighbourhood functions for the flexible job shop problem, Journal of
Scheduling 3, 2000, doi:10.1002/(SICI)1099-1425(200001/02)3:1<3::AID-JOS32>3.0.CO;2-Y, section 3, give the optimal
slots without transfers). Departures: transfers take time, slots follow from positions in an order of all tasks, and
tasks need not be critical.

Moves respect feasibility, groups, separation and memory.
"""

from __future__ import annotations

from typing import NamedTuple

from placeopt.kernels import kernel

from ..instance import Instance, moving_ticks
from .state import ANCHOR, FIRST, HIGH, HORIZON, LAST, LEAST, LONGEST, LOW, MODULUS, MOVED, SEED, SLOT, State
from .timing import mark


class Tuning(NamedTuple):
    """Parameters of the moves; `benchmarks/search_speed.py` measures their effect."""

    moves: int = 50  # percentages of the kinds of moves; the rest are clusters
    shifts: int = 20
    swaps: int = 10
    tries: int = 30  # at most as many random tasks are drawn to change the one on the longest path
    choices: int = 6  # devices that a move compares
    near: int = 85  # percentage of these devices that are those of producers or consumers
    least: int = 1  # fewest tasks of the group of the task to change


@kernel(allocates=False)
def draw(state: State, below: int) -> int:
    """Return a random number in 0..below - 1, where below is much less than 2^31: Park and Miller's generator."""
    state.number[SEED] = state.number[SEED] * 48271 % MODULUS
    return int(state.number[SEED]) % below


@kernel(draw, allocates=False)
def pick(instance: Instance, state: State, tries: int, least: int) -> int:
    """Return the task on the longest path among `tries` random ones of the window in groups of `least` tasks or more.

    Returns -1 if none of them is in such a group.
    """
    low, count = state.number[LOW], state.number[HIGH] - state.number[LOW]
    found, longest = -1, -1
    for _ in range(tries):
        i = state.order[low + draw(state, count)]
        g = instance.group[i]
        length = state.end[i] + state.after[i]
        if length > longest and instance.member_start[g + 1] - instance.member_start[g] >= least:
            found, longest = i, length
    return int(found)


@kernel(draw, allocates=False)
def random_neighbour(instance: Instance, state: State, i: int) -> int:
    """Return a random producer or consumer of task i, -1 if it has none."""
    before = instance.in_start[i + 1] - instance.in_start[i]
    after = instance.out_start[i + 1] - instance.out_start[i]
    if before + after == 0:
        return -1
    at = draw(state, before + after)
    if at < before:
        return int(instance.source[instance.in_start[i] + at])
    return int(instance.target[instance.out_start[i] + at - before])


@kernel(draw, random_neighbour, allocates=False)
def random_other_device(instance: Instance, state: State, i: int, near: int) -> int:
    """Return another device for task i, in `near` percent of the cases that of a neighbour."""
    here = state.device[i]
    if draw(state, 100) < near:
        j = random_neighbour(instance, state, i)
        if j >= 0 and state.device[j] != here:
            return int(state.device[j])
    to = draw(state, len(state.room) - 1)
    return to if to < here else to + 1


@kernel(allocates=False)
def successor(state: State, previous: int, d: int, i: int) -> int:
    """Return the task after `previous` (-1: the first one) in the chain of device d without task i, -1 for none."""
    j = state.first[d] if previous < 0 else state.behind[previous]
    return int(state.behind[i] if j == i else j)


@kernel(allocates=False)
def last_before(state: State, d: int, p: int) -> int:
    """Return the last task of device d up to position p, which is in the window or just before it; -1 for none."""
    low = state.number[LOW]
    for q in range(p, max(p - 2 * len(state.room), low - 1), -1):
        if state.device[state.order[q]] == d:
            return int(state.order[q])
    i = state.gate[d]
    following = state.first[d] if i < 0 else state.behind[i]
    while following >= 0 and state.position[following] <= p:
        i = following
        following = state.behind[i]
    return int(i)


@kernel(moving_ticks, last_before, successor, allocates=False)
def find_slot(instance: Instance, state: State, i: int, d: int) -> int:
    """Return the ticks of the longest path through task i at its best slot on device d, -1 without a slot.

    A slot lies between two tasks of the device, behind the producers and before the consumers of i, and is not the
    present place. The ticks are an estimate, because i has not left its place. Ties are broken by position. Sets
    number[SLOT], number[ANCHOR] and number[LEAST].
    """
    position, end, after, ticks, number = state.position, state.end, state.after, state.ticks, state.number
    low, high = number[LOW] - 1, number[HIGH]
    here, own = position[i], instance.duration[i, d]
    ready, rest = instance.release[i], 0
    for k in range(instance.in_start[i], instance.in_start[i + 1]):
        u = instance.source[k]
        a = state.device[u]
        low = max(low, position[u])
        ready = max(ready, end[u] + (0 if a == d else moving_ticks(instance, k, a, d)))
    for e in range(instance.out_start[i], instance.out_start[i + 1]):
        j = instance.target[e]
        b = state.device[j]
        high = min(high, position[j])
        gap = 0 if b == d else moving_ticks(instance, instance.slot[e], d, b)
        rest = max(rest, gap + ticks[j] + after[j])
    previous = last_before(state, d, low)
    following = successor(state, previous, d, i)
    best = -1
    while True:
        if d != state.device[i] or previous != state.before[i]:
            start, behind = ready, rest
            if previous >= 0:
                start = max(start, end[previous])
            if following >= 0:
                behind = max(behind, ticks[following] + after[following])
            if best < 0 or start + own + behind < best:
                best = start + own + behind
                # When i leaves its place, heads before it and tails after it do not change.
                if previous >= 0 and position[previous] > here:
                    start = ready
                if following >= 0 and position[following] < here:
                    behind = rest
                number[LEAST], number[ANCHOR] = start + own + behind, previous
                left = low if previous < 0 else max(low, position[previous])
                right = high if following < 0 else min(high, position[following])
                number[SLOT] = left if here <= left else right if here >= right else here
        if following < 0 or position[following] >= high:
            return int(best)
        previous = following
        following = successor(state, previous, d, i)


@kernel(moving_ticks, allocates=False)
def place(instance: Instance, state: State, i: int, d: int, put: int, anchor: int) -> None:
    """Place task i on device d behind task `anchor` (-1: as the first one), at position `put` of the order.

    Neither checks rules nor computes times.
    """
    order, position, before, behind = state.order, state.position, state.before, state.behind
    away, taken = state.device[i], position[i]
    previous, following = before[i], behind[i]
    if previous >= 0:
        behind[previous] = following
    else:
        state.first[away] = following
    if following >= 0:
        before[following] = previous
    step = 1 if put > taken else -1
    for p in range(taken, put, step):
        j = order[p + step]
        order[p] = j
        position[j] = p
    order[put], position[i] = i, put
    following = behind[anchor] if anchor >= 0 else state.first[d]
    before[i], behind[i] = anchor, following
    if anchor >= 0:
        behind[anchor] = i
    else:
        state.first[d] = i
    if following >= 0:
        before[following] = i
    if d == away:
        return
    state.device[i], state.ticks[i] = d, instance.duration[i, d]
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
    at, here = number[MOVED], state.position[i]
    state.moved[at], state.old_device[at], state.old_position[at] = i, state.device[i], here
    state.old_before[at], state.old_behind[at] = state.before[i], state.behind[i]
    number[MOVED] = at + 1
    number[FIRST], number[LAST] = min(number[FIRST], here, put), max(number[LAST], here, put)
    place(instance, state, i, d, put, anchor)


@kernel(place, allocates=False)
def undo(instance: Instance, state: State) -> None:
    """Undo the last proposal, apart from times."""
    for at in range(state.number[MOVED] - 1, -1, -1):
        i, to = state.moved[at], state.old_device[at]
        g, here = instance.group[i], state.device[i]
        if here != to and instance.member[instance.member_start[g]] == i:
            state.room[here] += instance.memory[g]
            state.room[to] -= instance.memory[g]
        place(instance, state, i, to, state.old_position[at], state.old_before[at])
    state.number[MOVED] = 0


@kernel(mark, allocates=False)
def mark_heads(instance: Instance, state: State) -> None:
    """Mark all tasks whose head or reach the last proposal may change directly."""
    for at in range(state.number[MOVED]):
        i = state.moved[at]
        mark(state, i)
        for j in (state.before[i], state.behind[i], state.old_before[at], state.old_behind[at]):
            if j >= 0:
                mark(state, j)
        for e in range(instance.out_start[i], instance.out_start[i + 1]):
            mark(state, instance.target[e])


@kernel(mark, allocates=False)
def mark_tails(instance: Instance, state: State) -> None:
    """Mark all tasks whose tail the last proposal may change directly."""
    for at in range(state.number[MOVED]):
        i = state.moved[at]
        mark(state, i)
        for j in (state.before[i], state.old_before[at]):
            if j >= 0:
                mark(state, j)
        for k in range(instance.in_start[i], instance.in_start[i + 1]):
            mark(state, instance.source[k])


@kernel(allocates=False)
def apart(instance: Instance, state: State, g: int, d: int) -> bool:
    """Return whether no group that must be separated from group g is on device d."""
    for at in range(instance.apart_start[g], instance.apart_start[g + 1]):
        if state.device[instance.member[instance.member_start[instance.apart[at]]]] == d:
            return False
    return True


@kernel(apart, allocates=False)
def allowed(instance: Instance, state: State, g: int, to: int) -> bool:
    """Return whether feasibility, memory and separation allow group g on device `to`, where it is not yet."""
    fits = instance.feasible[g, to] and state.room[to] >= instance.memory[g]
    return bool(fits and apart(instance, state, g, to))


@kernel(find_slot, change, allocates=False)
def move_group(instance: Instance, state: State, g: int, to: int) -> bool:
    """Move group g to another device, without checks of rules; return whether it lies in the window and is small."""
    number = state.number
    begin, end = instance.member_start[g], instance.member_start[g + 1]
    if number[MOVED] + end - begin > LONGEST:
        return False
    for at in range(begin, end):
        if not number[LOW] <= state.position[instance.member[at]] < number[HIGH]:
            return False
    state.room[state.device[instance.member[begin]]] += instance.memory[g]
    state.room[to] -= instance.memory[g]
    for at in range(begin, end):
        i = instance.member[at]
        find_slot(instance, state, i, to)
        change(instance, state, i, to, number[SLOT], number[ANCHOR])
    return True


@kernel(random_other_device, allowed, find_slot, move_group, allocates=False)
def move(instance: Instance, state: State, i: int, tuning: Tuning, limit: float) -> bool:
    """Move the group of task i to the best of some devices; return False if there is none.

    The estimated path through i must not become longer. Otherwise tasks that are not critical drift until they are.
    """
    g = instance.group[i]
    best, to = state.end[i] + state.after[i] + 1, -1
    for _ in range(tuning.choices):
        d = random_other_device(instance, state, i, tuning.near)
        if d == to or not allowed(instance, state, g, d):
            continue
        length = find_slot(instance, state, i, d)
        if length < best and state.number[LEAST] <= limit:
            best, to = length, d
    return bool(to >= 0 and move_group(instance, state, g, to))


@kernel(find_slot, change, allocates=False)
def shift(instance: Instance, state: State, i: int, limit: float) -> bool:
    """Move task i on its device; return False without a slot, or if the path through i becomes longer."""
    d = state.device[i]
    length = find_slot(instance, state, i, d)
    if length < 0 or length > state.end[i] + state.after[i] or state.number[LEAST] > limit:
        return False
    change(instance, state, i, d, state.number[SLOT], state.number[ANCHOR])
    return True


@kernel(draw, apart, move_group, undo, allocates=False)
def swap(instance: Instance, state: State, i: int) -> bool:
    """Exchange the devices of the group of task i and of a group near it; return False if rules forbid it."""
    low, high = state.number[LOW], state.number[HIGH]
    g, here = instance.group[i], state.device[i]
    far = 4 << draw(state, 6)
    j = state.order[min(max(state.position[i] + draw(state, 2 * far + 1) - far, low), high - 1)]
    h, to = instance.group[j], state.device[j]
    if to == here or not (instance.feasible[g, to] and instance.feasible[h, here]):
        return False
    fits = True
    for at in range(2):
        fits = fits and move_group(instance, state, h if at else g, here if at else to)
    # Checked after the swap, because two separated groups may exchange their devices.
    fits = fits and state.room[here] >= 0 and state.room[to] >= 0
    fits = fits and apart(instance, state, g, to) and apart(instance, state, h, here)
    if not fits:
        undo(instance, state)
    return bool(fits)


@kernel(draw, random_neighbour, random_other_device, allowed, move_group, allocates=False)
def cluster(instance: Instance, state: State, i: int, near: int) -> bool:
    """Move task i and tasks of its device that edges connect with it to another device; return False if i cannot."""
    here = state.device[i]
    to = random_other_device(instance, state, i, near)
    wanted = 2 + draw(state, 2 << draw(state, 4))
    j = i
    for _ in range(3 * wanted):
        if j >= 0 and state.device[j] == here and allowed(instance, state, instance.group[j], to):
            move_group(instance, state, instance.group[j], to)
        if state.number[MOVED] == 0:
            return False
        if state.number[MOVED] >= wanted:
            break
        j = random_neighbour(instance, state, state.moved[draw(state, state.number[MOVED])])
    return True


@kernel(draw, pick, move, shift, swap, cluster, allocates=False)
def propose(instance: Instance, state: State, tuning: Tuning, limit: float) -> bool:
    """Apply a random move; return False if there is none, or its makespan is certainly above `limit`."""
    number = state.number
    number[MOVED], number[FIRST], number[LAST], number[HORIZON] = 0, len(state.order), -1, -1
    i = pick(instance, state, 1 + draw(state, tuning.tries), tuning.least)
    if i < 0:
        return False
    kind = draw(state, 100)
    if len(state.room) == 1:
        return shift(instance, state, i, limit)
    if kind < tuning.moves:
        return move(instance, state, i, tuning, limit)
    if kind < tuning.moves + tuning.shifts:
        return shift(instance, state, i, limit)
    if kind < tuning.moves + tuning.shifts + tuning.swaps:
        return swap(instance, state, i)
    return cluster(instance, state, i, tuning.near)
