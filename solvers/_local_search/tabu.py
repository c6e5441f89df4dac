"""Tabu search over states: the best of a few moves is made whether it helps or not, and not undone for a while.

F. Glover: Tabu search, part I, ORSA Journal on Computing 1 (1989), doi:10.1287/ijoc.1.3.190. The candidates of a round
are a sample of moves, for the neighbourhood of a state with thousands of tasks is too large to look at whole. What is
forbidden for some rounds: that a group goes back to the device that it left, and that a task that was shifted in the
order is shifted again. A forbidden move is made all the same if it leads to a better state than any so far
(aspiration).
"""

from __future__ import annotations

import math

from placeopt.kernels import kernel
from placeopt.model.arrays import Int

from .case import Case
from .decoding import decode, look_ahead, rewind
from .moving import accept
from .proposals import draw, drawn, find_critical, undo
from .state import COST, FIXED, GUIDE, HELD, KNOWN, MOVED, PENALTY, PUT, SEED, State
from .walk import hold

REFRESH = 16
"""Rounds after which the critical chain is looked for again."""


@kernel(allocates=False)
def forbidden(state: State, until: Int, still: Int, now: int) -> bool:
    """Whether the last proposal brings a group back or shifts a task again too early."""
    for at in range(state.number[MOVED]):
        g = state.moved[at]
        if until[g, state.home[g]] > now:
            return True
    return bool(state.number[PUT] >= 0 and still[state.order[state.number[PUT]]] > now)


@kernel(draw, allocates=False)
def forbid(state: State, until: Int, still: Int, now: int, tenure: int) -> None:
    """Forbid what would take back the last proposal, for `tenure` to twice as many rounds."""
    end = now + 1 + tenure + draw(state, tenure + 1)
    for at in range(state.number[MOVED]):
        until[state.moved[at], state.origin[at]] = end
    if state.number[PUT] >= 0:
        still[state.order[state.number[PUT]]] = end


@kernel(drawn, forbidden, forbid, undo, decode, rewind, look_ahead, accept, find_critical, hold, allocates=False)
def prowl(
    case: Case,
    state: State,
    shares: Int,
    until: Int,
    still: Int,
    begin: int,
    rounds: int,
    candidates: int,
    tenure: int,
    enough: float,
) -> int:
    """Make so many rounds of tabu search, numbered from `begin`; how many states were evaluated.

    `until` (g, m) and `still` (n,) are the rounds until which a group may not go to a device and a task not be shifted.
    """
    n = len(state.order)
    evaluated = 0
    for now in range(begin, begin + rounds):
        if case.timed and state.number[KNOWN] > 0:
            look_ahead(case, state)
        best, chosen = math.inf, 0
        fixed = state.cost[FIXED]
        for _ in range(candidates):
            seed = state.number[SEED]
            first = drawn(case, state, shares)
            if first >= n:
                continue
            value = decode(case, state, first, best)
            evaluated += 1
            if value < best and (
                not forbidden(state, until, still, now)
                or (state.cost[PENALTY] == 0.0 and value - state.cost[GUIDE] < state.cost[HELD])
            ):
                best, chosen = value, seed
            if value < math.inf:
                rewind(case, state, first)
            undo(case, state)
            state.cost[FIXED] = fixed
        if chosen == 0:
            continue
        after = state.number[SEED]
        state.number[SEED] = chosen
        first = drawn(case, state, shares)  # the same move, for the same random numbers
        state.number[SEED] = after
        state.cost[COST] = decode(case, state, first, math.inf)
        accept(state)
        forbid(state, until, still, now, tenure)
        worth = state.cost[COST] - state.cost[GUIDE]
        if state.cost[PENALTY] == 0.0 and worth < state.cost[HELD]:
            hold(state, worth)
            if worth <= enough:
                break
        if now % REFRESH == 0 and case.timed:
            find_critical(case, state)
    return evaluated
