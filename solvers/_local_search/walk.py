"""A walk through states: moves tried one after the other, accepted at temperatures that fall."""

from __future__ import annotations

import math

from placeopt.kernels import kernel
from placeopt.model.arrays import Int

from .case import Case
from .decoding import decode, look_ahead
from .moving import accept
from .proposals import draw, drawn, find_critical, undo
from .state import ACCEPTED, COST, FIXED, GUIDE, HELD, KNOWN, NEWS, PENALTY, State

AHEAD = 16
"""Moves after which what follows each task is worked out again."""

REFRESH = 64
"""Accepted moves after which the critical chain is looked for again."""


@kernel(allocates=False)
def hold(state: State, worth: float) -> None:
    """Keep the state as the best so far."""
    state.cost[HELD] = worth
    state.number[NEWS] = 1
    for p in range(len(state.order)):
        state.best_order[p] = state.order[p]
    for g in range(len(state.home)):
        state.best_home[g] = state.home[g]


@kernel(draw, drawn, undo, decode, look_ahead, accept, find_critical, hold, allocates=False)
def walk(
    case: Case,
    state: State,
    shares: Int,
    begin: int,
    end: int,
    rounds: int,
    hot: float,
    cold: float,
    enough: float,
) -> int:
    """Try the moves `begin` to `end` of a walk of `rounds` moves; how many were evaluated.

    Several calls that make up a walk do the same as one. Temperatures fall from `hot` to `cold` along it. Those of 0
    accept what does not cost more, infinite ones accept everything. `shares` (6,) are the percentages of the kinds of
    moves, added up. The best state that breaks no rule replaces the one held if it costs less; at `enough` or less the
    walk ends.
    """
    n = len(state.order)
    evaluated = 0
    if begin == 0:
        state.number[ACCEPTED] = 0
    for at in range(begin, end):
        if at % AHEAD == 0 and case.timed and state.number[KNOWN] > 0:
            look_ahead(case, state)
        fixed = state.cost[FIXED]
        first = drawn(case, state, shares)
        if first >= n:
            continue
        limit = state.cost[COST]
        if hot == math.inf:
            limit = hot
        elif hot > 0:
            limit -= hot * (cold / hot) ** (at / rounds) * math.log(1.0 - draw(state, 1 << 24) / (1 << 24))
        value = decode(case, state, first, limit)
        evaluated += 1
        if value > limit:
            undo(case, state)
            state.cost[FIXED] = fixed
            continue
        state.cost[COST] = value
        accept(state)
        worth = value - state.cost[GUIDE]
        if state.cost[PENALTY] == 0.0 and worth < state.cost[HELD]:
            hold(state, worth)
            if worth <= enough:
                break
        if state.number[ACCEPTED] % REFRESH == 0 and case.timed:
            find_critical(case, state)
        state.number[ACCEPTED] += 1
    return evaluated
