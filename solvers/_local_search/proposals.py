"""The moves of a search: each changes the state, remembers how to undo it, and says from where times change.

    move        a group to a device, mostly one that holds a neighbour of the task; often the task shifts, too
    swap        two groups exchange their devices
    shift       a task to another place in the order, between its producers and its consumers
    run         tasks that follow each other on one device go to another: the cuts that full devices force move so
    cluster     tasks of one device connected by edges go to another
    exchange    within a stretch of the order two devices exchange their tasks

Half of the tasks are picked from a critical chain, where one is known: moving others seldom makes a schedule shorter.
Feasibility and separation are kept; memory and deadlines have their price (`placeopt_solvers._local_search.decoding`).
"""

from __future__ import annotations

from placeopt.kernels import kernel
from placeopt.model.arrays import Int

from .case import Case
from .moving import allowed, relocate, rotate
from .state import CRITICAL, LAST, LONGEST, MOVED, PUT, SEED, TAKEN, State

MODULUS = 2**31 - 1
"""Of the random numbers."""

MOVE, SWAP, SHIFT, RUN, CLUSTER, EXCHANGE = range(6)
KINDS = 6


@kernel(allocates=False)
def draw(state: State, below: int) -> int:
    """A pseudo-random number in 0..below - 1, where below is much less than 2^31: Park and Miller's generator."""
    state.number[SEED] = state.number[SEED] * 48271 % MODULUS
    return int(state.number[SEED]) % below


@kernel(draw, allocates=False)
def pick(state: State) -> int:
    """A task to change."""
    known = state.number[CRITICAL]
    if known > 0 and draw(state, 2) == 0:
        return int(state.critical[draw(state, known)])
    return draw(state, len(state.order))


@kernel(draw, allocates=False)
def beside(case: Case, state: State, i: int) -> int:
    """A producer or a consumer of task i, -1 if it has none."""
    before = case.in_start[i + 1] - case.in_start[i]
    after = case.out_start[i + 1] - case.out_start[i]
    if before + after == 0:
        return -1
    at = draw(state, before + after)
    if at < before:
        return int(case.source[case.in_start[i] + at])
    return int(case.target[case.out_start[i] + at - before])


@kernel(draw, beside, allocates=False)
def elsewhere(case: Case, state: State, i: int) -> int:
    """A device for task i other than its own: often that of a neighbour."""
    m, here = len(state.room), state.device[i]
    if draw(state, 5) < 3:
        j = beside(case, state, i)
        if j >= 0 and state.device[j] != here:
            return int(state.device[j])
    to = draw(state, m - 1)
    return to if to < here else to + 1


@kernel(relocate, allocates=False)
def put(case: Case, state: State, g: int, to: int) -> int:
    """Move group g to device `to` and remember where it was; the first position that changes."""
    count = state.number[MOVED]
    state.moved[count], state.origin[count] = g, state.home[g]
    state.number[MOVED] = count + 1
    return relocate(case, state, g, to)


@kernel(allowed, put, allocates=False)
def take(case: Case, state: State, g: int, to: int) -> int:
    """`put` where the rules allow it; n if they do not."""
    if state.number[MOVED] >= LONGEST or not allowed(case, state, g, to):
        return len(state.order)
    return put(case, state, g, to)


@kernel(draw, rotate, allocates=False)
def shift(case: Case, state: State, i: int) -> int:
    """Put task i elsewhere between its producers and its consumers; the first position that changes, n if none does."""
    n, here = len(state.order), state.position[i]
    low, high = 0, n - 1
    for k in range(case.in_start[i], case.in_start[i + 1]):
        low = max(low, state.position[case.source[k]] + 1)
    for e in range(case.out_start[i], case.out_start[i + 1]):
        high = min(high, state.position[case.target[e]] - 1)
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
def undo(case: Case, state: State) -> None:
    """Take back the last proposal."""
    if state.number[PUT] >= 0:
        rotate(state, state.number[PUT], state.number[TAKEN])
    for at in range(state.number[MOVED] - 1, -1, -1):
        relocate(case, state, state.moved[at], state.origin[at])


@kernel(draw, pick, beside, elsewhere, allowed, put, take, shift, undo, allocates=False)
def propose(case: Case, state: State, kind: int) -> int:
    """Change the state by a move of the kind; the first position that changes, n if nothing does."""
    n, m = len(state.order), len(state.room)
    state.number[MOVED], state.number[PUT], state.number[LAST] = 0, -1, -1
    i = pick(state)
    if kind == SHIFT or m == 1:
        return shift(case, state, i)
    first, here = n, state.device[i]
    to = elsewhere(case, state, i)
    g = case.group[i]
    if kind == MOVE:
        first = take(case, state, g, to)
        if first < n and draw(state, 2) == 0:
            first = min(first, shift(case, state, i))
    elif kind == SWAP:
        other = g
        for _ in range(4):
            other = case.group[state.order[(state.position[i] + draw(state, n)) % n]]
            if state.home[other] != here:
                break
        to = state.home[other]
        if to != here:
            first = min(put(case, state, g, to), put(case, state, other, here))
            # Only now: two that must be apart may take each other's places.
            if not (allowed(case, state, g, to) and allowed(case, state, other, here)):
                undo(case, state)
                return n
    elif kind == RUN:
        count = 2 + draw(state, 2 << draw(state, 6))
        step = 1 if draw(state, 2) == 0 else -1
        p = state.position[i]
        while 0 <= p < n and count > 0:
            h = case.group[state.order[p]]
            if state.home[h] == here:
                first = min(first, take(case, state, h, to))
                count -= 1
            p += step
    elif kind == CLUSTER:
        first = take(case, state, g, to)
        wanted = 2 + draw(state, 2 << draw(state, 6))
        tries = 3 * wanted
        while tries > 0 and 0 < state.number[MOVED] < wanted:
            tries -= 1
            h = state.moved[draw(state, state.number[MOVED])]
            j = case.member[case.member_start[h] + draw(state, case.member_start[h + 1] - case.member_start[h])]
            j = beside(case, state, j)
            if j >= 0 and state.device[j] == here:
                first = min(first, take(case, state, case.group[j], to))
    else:
        last = min(state.position[i] + 2 + draw(state, 4 << draw(state, 6)), n)
        for p in range(state.position[i], last):
            h = case.group[state.order[p]]
            if case.member[case.member_start[h]] != state.order[p]:
                continue  # a group goes once, with the first of its tasks
            if state.home[h] == here:
                first = min(first, take(case, state, h, to))
            elif state.home[h] == to:
                first = min(first, take(case, state, h, here))
    return first


@kernel(draw, propose, allocates=False)
def drawn(case: Case, state: State, shares: Int) -> int:
    """A move of a random kind, made; the first position that changes, n if nothing does.

    `shares` (6,) are the percentages of the kinds, added up.
    """
    number = draw(state, 100)
    kind = 0
    while shares[kind] <= number:
        kind += 1
    return propose(case, state, kind)


@kernel(draw, allocates=False)
def find_critical(case: Case, state: State) -> None:
    """Fill State.critical with a chain that decides when the last task ends, found backwards from there.

    Each task of it waits for the one before on its device, for the data of a producer, or for its release. Where both
    hold it up, chance decides.
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
        for k in range(case.in_start[i], case.in_start[i + 1]):
            arrival = state.arrive[k] if case.port else state.end[case.source[k]] + state.delay[k]
            if arrival == start and (before < 0 or draw(state, 2) == 0):
                before = case.source[k]
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
