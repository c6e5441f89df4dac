"""Walk in a window: propose moves of tasks on long paths, and accept them at falling temperatures."""

from __future__ import annotations

import math

from placeopt.kernels import kernel
from placeopt.model.arrays import Int

from .._local_search.instance import Instance
from .moves import (
    allowed,
    begin_move,
    change,
    draw,
    find_slot,
    mark_changes,
    mark_tails,
    move_group,
    undo,
)
from .state import ANCHOR, EXCESS, FRESH, HELD, HIGH, LONGEST, LOW, OPS, SLOT, SPAN, SURE, State
from .timing import propagate, repair_tails, restore

MOVE, SHIFT, SWAP, CLUSTER = range(4)
KINDS = 4


@kernel(draw, allocates=False)
def pick(state: State, tries: int) -> int:
    """Return the task on the longest path among `tries` random ones of the window."""
    low, count = state.number[LOW], state.number[HIGH] - state.number[LOW]
    best, longest = -1, -1
    for _ in range(tries):
        i = state.order[low + draw(state, count)]
        length = state.end[i] + state.after[i]
        if length > longest:
            best, longest = i, length
    return int(best)


@kernel(draw, allocates=False)
def neighbour(instance: Instance, state: State, i: int) -> int:
    """Return a random producer or consumer of task i, -1 if it has none."""
    before = instance.in_start[i + 1] - instance.in_start[i]
    after = instance.out_start[i + 1] - instance.out_start[i]
    if before + after == 0:
        return -1
    at = draw(state, before + after)
    if at < before:
        return int(instance.source[instance.in_start[i] + at])
    return int(instance.target[instance.out_start[i] + at - before])


@kernel(draw, neighbour, allocates=False)
def other_device(instance: Instance, state: State, i: int, near: int) -> int:
    """Return another device for task i: with a probability of `near` percent, that of a producer or consumer."""
    m, here = len(state.room), state.device[i]
    if draw(state, 100) < near:
        j = neighbour(instance, state, i)
        if j >= 0 and state.device[j] != here:
            return int(state.device[j])
    to = draw(state, m - 1)
    return to if to < here else to + 1


@kernel(draw, pick, neighbour, other_device, allowed, begin_move, change, find_slot, move_group, undo, allocates=False)
def propose(instance: Instance, state: State, tuning: Int, limit: float) -> bool:
    """Apply a random move; return False if there is none, or the makespan certainly exceeds `limit`."""
    number = state.number
    begin_move(state)
    i = pick(state, 1 + draw(state, tuning[4]))
    kind, share = 0, draw(state, 100)
    while tuning[kind] <= share:
        kind += 1
    here, g = state.device[i], instance.group[i]
    spread = tuning[5]
    if kind == SHIFT or len(state.room) == 1:
        if find_slot(instance, state, i, here, spread) < 0 or number[SURE] > limit:
            return False
        change(instance, state, i, here, number[SLOT], number[ANCHOR])
        return True
    if kind == MOVE:
        best, to = -1, -1
        slot, anchor, sure = 0, 0, 0
        for _ in range(tuning[6]):
            d = other_device(instance, state, i, tuning[7])
            if d == to or not allowed(instance, state, g, d):
                continue
            through = find_slot(instance, state, i, d, spread)
            if best < 0 or through < best:
                best, to = through, d
                slot, anchor, sure = number[SLOT], number[ANCHOR], number[SURE]
        if best < 0 or sure > limit:
            return False
        if instance.member_start[g + 1] - instance.member_start[g] > 1:
            return move_group(instance, state, g, to, spread)
        change(instance, state, i, to, slot, anchor)
        state.room[here] += instance.memory[g]
        state.room[to] -= instance.memory[g]
        return True
    if kind == SWAP:
        low, count = number[LOW], number[HIGH] - number[LOW]
        to, h = here, g
        for _ in range(4):
            far = 4 << draw(state, 6)
            p = state.position[i] + draw(state, 2 * far) - far
            h = instance.group[state.order[min(max(p, low), low + count - 1)]]
            to = state.device[instance.member[instance.member_start[h]]]
            if to != here:
                break
        if to == here:
            return False
        if not (instance.feasible[g, to] and instance.feasible[h, here]):
            return False
        if not (move_group(instance, state, g, to, spread) and move_group(instance, state, h, here, spread)):
            undo(instance, state)
            return False
        fits = state.room[here] >= 0 and state.room[to] >= 0
        # Checked after the swap, because two separated groups may exchange their devices.
        for at in range(instance.apart_start[g], instance.apart_start[g + 1]):
            f = instance.apart[at]
            fits = fits and state.device[instance.member[instance.member_start[f]]] != to
        for at in range(instance.apart_start[h], instance.apart_start[h + 1]):
            f = instance.apart[at]
            fits = fits and state.device[instance.member[instance.member_start[f]]] != here
        if not fits:
            undo(instance, state)
        return bool(fits)
    to = other_device(instance, state, i, tuning[7])
    if not allowed(instance, state, g, to) or not move_group(instance, state, g, to, spread):
        return False
    wanted = 2 + draw(state, 2 << draw(state, 4))
    tries = 3 * wanted
    while tries > 0 and number[OPS] < min(wanted, LONGEST):
        tries -= 1
        j = neighbour(instance, state, state.moved[draw(state, number[OPS])])
        if j >= 0 and state.device[j] == here and allowed(instance, state, instance.group[j], to):
            move_group(instance, state, instance.group[j], to, spread)
    return True


@kernel(allocates=False)
def keep_best(state: State) -> None:
    """Store the state as the best one."""
    number = state.number
    number[HELD] = number[SPAN]
    low, high = number[LOW], number[HIGH]
    if number[FRESH] == 0:
        low, high = 0, len(state.order)
        number[FRESH] = 1
    for p in range(low, high):
        i = state.order[p]
        state.best_order[p] = i
        state.best_device[i] = state.device[i]


@kernel(
    propose,
    undo,
    mark_changes,
    propagate,
    restore,
    mark_tails,
    repair_tails,
    keep_best,
    draw,
    allocates=False,
)
def walk(
    instance: Instance,
    state: State,
    tuning: Int,
    begin: int,
    end: int,
    rounds: int,
    hot: float,
    cold: float,
    weight: float,
) -> int:
    """Try the moves `begin` to `end` of a walk of `rounds` moves in the window; return how many were accepted."""
    number = state.number
    accepted = 0
    for at in range(begin, end):
        span, excess = number[SPAN], number[EXCESS]
        cost = span + weight * excess
        limit = cost
        if hot > 0:
            limit -= hot * (cold / hot) ** (at / rounds) * math.log(1.0 - draw(state, 1 << 24) / (1 << 24))
        if not propose(instance, state, tuning, limit):
            state.tally[0] += 1
            continue
        mark_changes(instance, state)
        state.tally[1] += 1
        if not propagate(instance, state, int(limit)):
            restore(state)
            undo(instance, state)
            state.tally[2] += 1
            continue
        if number[SPAN] + weight * number[EXCESS] > limit:
            number[SPAN], number[EXCESS] = span, excess
            restore(state)
            undo(instance, state)
            state.tally[3] += 1
            continue
        mark_tails(instance, state)
        repair_tails(instance, state)
        accepted += 1
        if number[SPAN] < number[HELD]:
            keep_best(state)
    return accepted
