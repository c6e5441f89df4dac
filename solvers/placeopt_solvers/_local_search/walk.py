"""Walk through states: try moves one after the other, and accept them at falling temperatures."""

from __future__ import annotations

import math

from placeopt.kernels import kernel
from placeopt.model.arrays import Int

from .decoding import decode, look_ahead
from .instance import Instance
from .moving import accept
from .proposals import draw, find_critical, propose_random, undo
from .state import ACCEPTED, COST, FIXED, GUIDE, HELD, KNOWN, NEWS, PENALTY, State

AHEAD = 16
"""Moves between two computations of `State.after`."""

REFRESH = 64
"""Accepted moves between two computations of the critical path."""


@kernel(allocates=False)
def keep_best(state: State, worth: float) -> None:
    """Store the state as the best so far."""
    state.cost[HELD] = worth
    state.number[NEWS] = 1
    for p in range(len(state.order)):
        state.best_order[p] = state.order[p]
    for g in range(len(state.home)):
        state.best_home[g] = state.home[g]


@kernel(draw, propose_random, undo, decode, look_ahead, accept, find_critical, keep_best, allocates=False)
def walk(
    instance: Instance,
    state: State,
    shares: Int,
    begin: int,
    end: int,
    rounds: int,
    hot: float,
    cold: float,
    enough: float,
) -> int:
    """Try the moves `begin` to `end` of a walk of `rounds` moves; return how many were evaluated.

    A walk may be split into several calls. Temperatures fall from `hot` to `cold` along it. A temperature of 0 accepts
    moves that do not increase the cost; an infinite one accepts every move. `shares` (6,) are the cumulative
    percentages of the kinds of moves. A better feasible state becomes the best; at a cost of `enough` the walk ends.
    """
    n = len(state.order)
    evaluated = 0
    if begin == 0:
        state.number[ACCEPTED] = 0
    for at in range(begin, end):
        if at % AHEAD == 0 and instance.timed and state.number[KNOWN] > 0:
            look_ahead(instance, state)
        fixed = state.cost[FIXED]
        first = propose_random(instance, state, shares)
        if first >= n:
            continue
        limit = state.cost[COST]
        if hot == math.inf:
            limit = hot
        elif hot > 0:
            limit -= hot * (cold / hot) ** (at / rounds) * math.log(1.0 - draw(state, 1 << 24) / (1 << 24))
        value = decode(instance, state, first, limit)
        evaluated += 1
        if value > limit:
            undo(instance, state)
            state.cost[FIXED] = fixed
            continue
        state.cost[COST] = value
        accept(state)
        worth = value - state.cost[GUIDE]
        if state.cost[PENALTY] == 0.0 and worth < state.cost[HELD]:
            keep_best(state, worth)
            if worth <= enough:
                break
        if state.number[ACCEPTED] % REFRESH == 0 and instance.timed:
            find_critical(instance, state)
        state.number[ACCEPTED] += 1
    return evaluated
