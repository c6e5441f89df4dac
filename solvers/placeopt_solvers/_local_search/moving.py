"""Change a state and update its sums; each change can be reversed."""

from __future__ import annotations

from placeopt.kernels import kernel
from placeopt.model.problem import ratio_ceil

from .instance import BYTES, JOULES, TICKS, Instance, moving_ticks
from .state import COUNTER, FIXED, KNOWN, LAST, VALID, State


@kernel(moving_ticks, ratio_ceil, allocates=False)
def sending_price(instance: Instance, state: State, u: int) -> float:
    """Return the price of all transfers of task u; a shared output counts once per device."""
    a = state.device[u]
    ticks, moved, energy = 0, 0, 0
    state.number[COUNTER] += 1
    for e in range(instance.out_start[u], instance.out_start[u + 1]):
        b = state.device[instance.target[e]]
        k = instance.slot[e]
        if b == a:
            continue
        if instance.shared[k]:
            if state.stamp[b] == state.number[COUNTER]:
                continue
            state.stamp[b] = state.number[COUNTER]
        ticks += state.delay[k]
        moved += instance.payload[k]
        energy += ratio_ceil(instance.payload[k], instance.byte_energy_num[a, b], instance.byte_energy_den[a, b])
    return float(instance.price[TICKS] * ticks + instance.price[BYTES] * moved + instance.price[JOULES] * energy)


@kernel(sending_price, allocates=False)
def touched_price(instance: Instance, state: State, g: int) -> float:
    """Return `sending_price` of all tasks of group g and of their producers outside it, each once."""
    price = 0.0
    for at in range(instance.member_start[g], instance.member_start[g + 1]):
        i = instance.member[at]
        price += sending_price(instance, state, i)
        for k in range(instance.in_start[i], instance.in_start[i + 1]):
            u = instance.source[k]
            if instance.group[u] == g:
                continue
            # Count u at the first of its edges into the group.
            counted = False
            for e in range(instance.out_start[u], instance.out_start[u + 1]):
                if instance.group[instance.target[e]] == g:
                    counted = instance.slot[e] != k
                    break
            if not counted:
                price += sending_price(instance, state, u)
    return price


@kernel(moving_ticks, touched_price, allocates=False)
def relocate(instance: Instance, state: State, g: int, to: int) -> int:
    """Move group g to device `to` without checks; return the first position whose times change."""
    away = state.home[g]
    if instance.priced:
        state.cost[FIXED] -= touched_price(instance, state, g)
    state.home[g] = to
    state.room[away] += instance.memory[g]
    state.room[to] -= instance.memory[g]
    first = len(state.order)
    for at in range(instance.member_start[g], instance.member_start[g + 1]):
        i = instance.member[at]
        first = min(first, state.position[i])
        state.number[LAST] = max(state.number[LAST], state.position[i])
        state.device[i] = to
        state.load[away] -= state.ticks[i]
        state.ticks[i] = instance.duration[i, to]
        state.load[to] += state.ticks[i]
        state.cost[FIXED] += instance.charge[i, to] - instance.charge[i, away]
    for at in range(instance.member_start[g], instance.member_start[g + 1]):
        i = instance.member[at]
        for k in range(instance.in_start[i], instance.in_start[i + 1]):
            a = state.device[instance.source[k]]
            state.delay[k] = 0 if a == to else moving_ticks(instance, k, a, to)
        for e in range(instance.out_start[i], instance.out_start[i + 1]):
            b = state.device[instance.target[e]]
            k = instance.slot[e]
            state.delay[k] = 0 if b == to else moving_ticks(instance, k, to, b)
    if instance.priced:
        state.cost[FIXED] += touched_price(instance, state, g)
    return first


@kernel(allocates=False)
def allowed(instance: Instance, state: State, g: int, to: int) -> bool:
    """Return whether feasibility and separation allow group g on device `to`."""
    if not instance.feasible[g, to]:
        return False
    for at in range(instance.apart_start[g], instance.apart_start[g + 1]):
        if state.home[instance.apart[at]] == to:
            return False
    return True


@kernel(allocates=False)
def rotate(state: State, taken: int, put: int) -> int:
    """Move a task from position `taken` of the order to position `put`; return the first position that changes."""
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
def recompute(instance: Instance, state: State) -> None:
    """Recompute all sums from the order and the homes; all times become invalid."""
    for d in range(len(state.room)):
        state.room[d], state.load[d] = instance.capacity[d], 0
    for g in range(len(state.home)):
        state.room[state.home[g]] -= instance.memory[g]
    state.cost[FIXED] = 0.0
    for i in range(len(state.order)):
        d = state.home[instance.group[i]]
        state.position[state.order[i]] = i
        state.device[i] = d
        state.ticks[i] = instance.duration[i, d]
        state.load[d] += state.ticks[i]
        state.cost[FIXED] += instance.charge[i, d]
    for i in range(len(state.order)):
        d = state.device[i]
        for k in range(instance.in_start[i], instance.in_start[i + 1]):
            a = state.device[instance.source[k]]
            state.delay[k] = 0 if a == d else moving_ticks(instance, k, a, d)
    if instance.priced:
        for i in range(len(state.order)):
            state.cost[FIXED] += sending_price(instance, state, i)
    state.number[VALID], state.number[KNOWN], state.number[LAST] = 0, len(state.order), len(state.order)


@kernel(allocates=False)
def accept(state: State) -> None:
    """Keep the last change; `after` becomes invalid up to its last position."""
    state.number[KNOWN] = max(state.number[KNOWN], state.number[LAST] + 1)
