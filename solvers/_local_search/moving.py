"""Changes of a state, each with its sums kept up to date, and the way back."""

from __future__ import annotations

from placeopt.kernels import kernel
from placeopt.model.problem import ratio_ceil

from .case import BYTES, JOULES, TICKS, Case, moving_ticks
from .state import COUNTER, FIXED, KNOWN, LAST, VALID, State


@kernel(moving_ticks, ratio_ceil, allocates=False)
def sending_price(case: Case, state: State, u: int) -> float:
    """What the objective asks for all transfers of task u's output and edges; a shared output counts once a device."""
    a = state.device[u]
    ticks, moved, energy = 0, 0, 0
    state.number[COUNTER] += 1
    for e in range(case.out_start[u], case.out_start[u + 1]):
        b = state.device[case.target[e]]
        k = case.slot[e]
        if b == a:
            continue
        if case.shared[k]:
            if state.stamp[b] == state.number[COUNTER]:
                continue
            state.stamp[b] = state.number[COUNTER]
        ticks += state.delay[k]
        moved += case.payload[k]
        energy += ratio_ceil(case.payload[k], case.byte_energy_num[a, b], case.byte_energy_den[a, b])
    return float(case.price[TICKS] * ticks + case.price[BYTES] * moved + case.price[JOULES] * energy)


@kernel(sending_price, allocates=False)
def touched_price(case: Case, state: State, g: int) -> float:
    """`sending_price` of all tasks of group g and of their producers outside it, each once."""
    price = 0.0
    for at in range(case.member_start[g], case.member_start[g + 1]):
        i = case.member[at]
        price += sending_price(case, state, i)
        for k in range(case.in_start[i], case.in_start[i + 1]):
            u = case.source[k]
            if case.group[u] == g:
                continue
            # Of the group's edges out of u the first stands for all.
            counted = False
            for e in range(case.out_start[u], case.out_start[u + 1]):
                if case.group[case.target[e]] == g:
                    counted = case.slot[e] != k
                    break
            if not counted:
                price += sending_price(case, state, u)
    return price


@kernel(moving_ticks, touched_price, allocates=False)
def relocate(case: Case, state: State, g: int, to: int) -> int:
    """Move group g to device `to`, whatever the rules say; the first position whose times that changes."""
    away = state.home[g]
    if case.priced:
        state.cost[FIXED] -= touched_price(case, state, g)
    state.home[g] = to
    state.room[away] += case.memory[g]
    state.room[to] -= case.memory[g]
    first = len(state.order)
    for at in range(case.member_start[g], case.member_start[g + 1]):
        i = case.member[at]
        first = min(first, state.position[i])
        state.number[LAST] = max(state.number[LAST], state.position[i])
        state.device[i] = to
        state.load[away] -= state.ticks[i]
        state.ticks[i] = case.duration[i, to]
        state.load[to] += state.ticks[i]
        state.cost[FIXED] += case.charge[i, to] - case.charge[i, away]
    for at in range(case.member_start[g], case.member_start[g + 1]):
        i = case.member[at]
        for k in range(case.in_start[i], case.in_start[i + 1]):
            a = state.device[case.source[k]]
            state.delay[k] = 0 if a == to else moving_ticks(case, k, a, to)
        for e in range(case.out_start[i], case.out_start[i + 1]):
            b = state.device[case.target[e]]
            k = case.slot[e]
            state.delay[k] = 0 if b == to else moving_ticks(case, k, to, b)
    if case.priced:
        state.cost[FIXED] += touched_price(case, state, g)
    return first


@kernel(allocates=False)
def allowed(case: Case, state: State, g: int, to: int) -> bool:
    """Whether group g may be on device `to` beside what it must be apart from; memory aside."""
    if not case.feasible[g, to]:
        return False
    for at in range(case.apart_start[g], case.apart_start[g + 1]):  # noqa: SIM110 - a kernel has no generators
        if state.home[case.apart[at]] == to:
            return False
    return True


@kernel(allocates=False)
def rotate(state: State, taken: int, put: int) -> int:
    """Take the task at place `taken` of the order and put it at place `put`; the first position that changes."""
    order, position = state.order, state.position
    i = order[taken]
    if taken < put:
        for p in range(taken, put):
            order[p] = order[p + 1]
            position[order[p]] = p
    else:
        for p in range(taken, put, -1):
            order[p] = order[p - 1]
            position[order[p]] = p
    order[put] = i
    position[i] = put
    state.number[LAST] = max(state.number[LAST], taken, put)
    return min(taken, put)


@kernel(moving_ticks, sending_price, allocates=False)
def settle(case: Case, state: State) -> None:
    """Work out from the order and the homes all that is kept up to date; no times are right after it."""
    for d in range(len(state.room)):
        state.room[d], state.load[d] = case.capacity[d], 0
    for g in range(len(state.home)):
        state.room[state.home[g]] -= case.memory[g]
    state.cost[FIXED] = 0.0
    for i in range(len(state.order)):
        d = state.home[case.group[i]]
        state.position[state.order[i]] = i
        state.device[i] = d
        state.ticks[i] = case.duration[i, d]
        state.load[d] += state.ticks[i]
        state.cost[FIXED] += case.charge[i, d]
    for i in range(len(state.order)):
        d = state.device[i]
        for k in range(case.in_start[i], case.in_start[i + 1]):
            a = state.device[case.source[k]]
            state.delay[k] = 0 if a == d else moving_ticks(case, k, a, d)
    if case.priced:
        for i in range(len(state.order)):
            state.cost[FIXED] += sending_price(case, state, i)
    state.number[VALID], state.number[KNOWN], state.number[LAST] = 0, len(state.order), len(state.order)


@kernel(allocates=False)
def accept(state: State) -> None:
    """Stay with the last change: what follows the tasks up to where it reached has to be worked out again."""
    state.number[KNOWN] = max(state.number[KNOWN], state.number[LAST] + 1)
