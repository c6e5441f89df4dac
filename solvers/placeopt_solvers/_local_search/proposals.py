"""Propose moves: each changes the state, stores how to undo it, and returns the first position whose times change.

    move        a group to a device, mostly that of a neighbour of the task; often the task shifts, too
    swap        two groups exchange their devices
    shift       a task to another position in the order, between its producers and its consumers
    run         consecutive tasks of one device go to another, which moves the cuts that full devices force
    cluster     tasks of one device that edges connect go to another
    exchange    two devices exchange their tasks within an interval of the order

Half of the tasks are drawn from a critical path, if one is known: other moves rarely shorten a schedule. Moves
respect feasibility and separation; violations of memory and deadlines are penalised
(`placeopt_solvers._local_search.decoding`).
"""

from __future__ import annotations

from placeopt.kernels import kernel
from placeopt.model.arrays import Int

from .instance import Instance
from .moving import allowed, relocate, rotate
from .state import CRITICAL, LAST, LONGEST, MOVED, PUT, SEED, TAKEN, State

MODULUS = 2**31 - 1
"""Modulus of the random numbers."""

MOVE, SWAP, SHIFT, RUN, CLUSTER, EXCHANGE = range(6)
KINDS = 6


@kernel(allocates=False)
def draw(state: State, below: int) -> int:
    """Return a random number in 0..below - 1, where below is much less than 2^31: Park and Miller's generator."""
    state.number[SEED] = state.number[SEED] * 48271 % MODULUS
    return int(state.number[SEED]) % below


@kernel(draw, allocates=False)
def pick(state: State) -> int:
    """Return a random task to change."""
    known = state.number[CRITICAL]
    if known > 0 and draw(state, 2) == 0:
        return int(state.critical[draw(state, known)])
    return draw(state, len(state.order))


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
def random_other_device(instance: Instance, state: State, i: int) -> int:
    """Return another device for task i, often that of a neighbour."""
    m, here = len(state.room), state.device[i]
    if draw(state, 5) < 3:
        j = random_neighbour(instance, state, i)
        if j >= 0 and state.device[j] != here:
            return int(state.device[j])
    to = draw(state, m - 1)
    return to if to < here else to + 1


@kernel(relocate, allocates=False)
def put(instance: Instance, state: State, g: int, to: int) -> int:
    """Move group g to device `to` and store its former device; return the first position that changes."""
    count = state.number[MOVED]
    state.moved[count], state.origin[count] = g, state.home[g]
    state.number[MOVED] = count + 1
    return relocate(instance, state, g, to)


@kernel(allowed, put, allocates=False)
def take(instance: Instance, state: State, g: int, to: int) -> int:
    """Apply `put` if it is allowed; return n if it is not."""
    if state.number[MOVED] >= LONGEST or not allowed(instance, state, g, to):
        return len(state.order)
    return put(instance, state, g, to)


@kernel(draw, rotate, allocates=False)
def shift(instance: Instance, state: State, i: int) -> int:
    """Shift task i between its producers and its consumers; return the first position that changes, n if none."""
    n, here = len(state.order), state.position[i]
    low, high = 0, n - 1
    for k in range(instance.in_start[i], instance.in_start[i + 1]):
        low = max(low, state.position[instance.source[k]] + 1)
    for e in range(instance.out_start[i], instance.out_start[i + 1]):
        high = min(high, state.position[instance.target[e]] - 1)
    far = 2 << draw(state, 10)
    low, high = max(low, here - far), min(high, here + far)
    if low == high:
        return n
    to = low + draw(state, high - low)
    if to >= here:
        to += 1
    state.number[TAKEN], state.number[PUT] = here, to
    return rotate(state, here, to)


@kernel(relocate, rotate, allocates=False)
def undo(instance: Instance, state: State) -> None:
    """Undo the last proposal."""
    if state.number[PUT] >= 0:
        rotate(state, state.number[PUT], state.number[TAKEN])
    for at in range(state.number[MOVED] - 1, -1, -1):
        relocate(instance, state, state.moved[at], state.origin[at])


@kernel(draw, pick, random_neighbour, random_other_device, allowed, put, take, shift, undo, allocates=False)
def propose(instance: Instance, state: State, kind: int) -> int:
    """Apply a random move of a kind; return the first position that changes, n if none."""
    n, m = len(state.order), len(state.room)
    state.number[MOVED], state.number[PUT], state.number[LAST] = 0, -1, -1
    i = pick(state)
    if kind == SHIFT or m == 1:
        return shift(instance, state, i)
    first, here = n, state.device[i]
    to = random_other_device(instance, state, i)
    g = instance.group[i]
    if kind == MOVE:
        first = take(instance, state, g, to)
        if first < n and draw(state, 2) == 0:
            first = min(first, shift(instance, state, i))
    elif kind == SWAP:
        other = g
        for _ in range(4):
            other = instance.group[state.order[(state.position[i] + draw(state, n)) % n]]
            if state.home[other] != here:
                break
        to = state.home[other]
        if to != here:
            first = min(put(instance, state, g, to), put(instance, state, other, here))
            # Checked after the swap, because two separated groups may exchange their devices.
            if not (allowed(instance, state, g, to) and allowed(instance, state, other, here)):
                undo(instance, state)
                return n
    elif kind == RUN:
        count = 2 + draw(state, 2 << draw(state, 6))
        step = 1 if draw(state, 2) == 0 else -1
        p = state.position[i]
        while 0 <= p < n and count > 0:
            h = instance.group[state.order[p]]
            if state.home[h] == here:
                first = min(first, take(instance, state, h, to))
                count -= 1
            p += step
    elif kind == CLUSTER:
        first = take(instance, state, g, to)
        wanted = 2 + draw(state, 2 << draw(state, 6))
        tries = 3 * wanted
        while tries > 0 and 0 < state.number[MOVED] < wanted:
            tries -= 1
            h = state.moved[draw(state, state.number[MOVED])]
            j = instance.member[
                instance.member_start[h] + draw(state, instance.member_start[h + 1] - instance.member_start[h])
            ]
            j = random_neighbour(instance, state, j)
            if j >= 0 and state.device[j] == here:
                first = min(first, take(instance, state, instance.group[j], to))
    else:
        last = min(state.position[i] + 2 + draw(state, 4 << draw(state, 6)), n)
        for p in range(state.position[i], last):
            h = instance.group[state.order[p]]
            if instance.member[instance.member_start[h]] != state.order[p]:
                continue  # a group moves once, with the first of its tasks
            if state.home[h] == here:
                first = min(first, take(instance, state, h, to))
            elif state.home[h] == to:
                first = min(first, take(instance, state, h, here))
    return first


@kernel(draw, propose, allocates=False)
def propose_random(instance: Instance, state: State, shares: Int) -> int:
    """Apply a move of a random kind; return the first position that changes, n if none.

    `shares` (6,) are the cumulative percentages of the kinds.
    """
    number = draw(state, 100)
    kind = 0
    while shares[kind] <= number:
        kind += 1
    return propose(instance, state, kind)


@kernel(draw, allocates=False)
def find_critical(instance: Instance, state: State) -> None:
    """Fill State.critical with a critical path, found backwards from the task that ends last.

    Each task of it waits for the previous one on its device, for the data of a producer, or for its release; ties are
    broken at random.
    """
    n = len(state.order)
    i = state.order[0]
    for j in state.order:
        if state.end[j] > state.end[i]:
            i = j
    count, p = 0, state.position[i]
    while True:
        state.critical[count] = i
        count += 1
        start = state.end[i] - state.ticks[i]
        before = -1
        for k in range(instance.in_start[i], instance.in_start[i + 1]):
            arrival = state.arrive[k] if instance.port else state.end[instance.source[k]] + state.delay[k]
            if arrival == start and (before < 0 or draw(state, 2) == 0):
                before = instance.source[k]
        if before < 0 or draw(state, 2) == 0:
            at = p - 1
            while at >= 0 and (state.device[state.order[at]] != state.device[i] or state.end[state.order[at]] != start):
                at -= 1
            if at >= 0:
                before = state.order[at]
        if before < 0 or start == 0:
            break
        i = before
        p = state.position[i]
    state.number[CRITICAL] = count if count < n else 0
