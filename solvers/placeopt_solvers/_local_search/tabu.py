"""Tabu search over states: each round makes the best of some moves, even if it is worse, and forbids undoing it.

F. Glover: Tabu search, part I, ORSA Journal on Computing 1 (1989), doi:10.1287/ijoc.1.3.190. The candidates of a round
are a sample of moves, because the neighbourhood of a state with thousands of tasks is too large. For some rounds, a
group must not return to the device that it left, and a shifted task must not be shifted again. A forbidden move is
allowed if it leads to a new best state (aspiration).
"""

from __future__ import annotations

import math

from placeopt.kernels import kernel
from placeopt.model.arrays import Int

from .decoding import decode, look_ahead, rewind
from .instance import Instance
from .moving import accept
from .proposals import draw, find_critical, propose_random, undo
from .state import COST, FIXED, GUIDE, HELD, KNOWN, MOVED, PENALTY, PUT, SEED, State
from .walk import keep_best

REFRESH = 16
"""Rounds between two computations of the critical path."""


@kernel(allocates=False)
def forbidden(state: State, until: Int, still: Int, now: int) -> bool:
    """Return whether the last proposal moves a group or shifts a task that is forbidden."""
    for at in range(state.number[MOVED]):
        g = state.moved[at]
        if until[g, state.home[g]] > now:
            return True
    return bool(state.number[PUT] >= 0 and still[state.order[state.number[PUT]]] > now)


@kernel(draw, allocates=False)
def forbid(state: State, until: Int, still: Int, now: int, tenure: int) -> None:
    """Forbid reversing the last proposal, for `tenure` to 2 `tenure` rounds."""
    end = now + 1 + tenure + draw(state, tenure + 1)
    for at in range(state.number[MOVED]):
        until[state.moved[at], state.origin[at]] = end
    if state.number[PUT] >= 0:
        still[state.order[state.number[PUT]]] = end


@kernel(
    propose_random,
    forbidden,
    forbid,
    undo,
    decode,
    rewind,
    look_ahead,
    accept,
    find_critical,
    keep_best,
    allocates=False,
)
def run_tabu(
    instance: Instance,
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
    """Run rounds of tabu search, numbered from `begin`; return how many states were evaluated.

    `until` (g, m) are the rounds until which a group must not move to a device, `still` (n,) those until which a task
    must not be shifted.
    """
    n = len(state.order)
    evaluated = 0
    for now in range(begin, begin + rounds):
        if instance.timed and state.number[KNOWN] > 0:
            look_ahead(instance, state)
        best, chosen = math.inf, 0
        fixed = state.cost[FIXED]
        for _ in range(candidates):
            seed = state.number[SEED]
            first = propose_random(instance, state, shares)
            if first >= n:
                continue
            value = decode(instance, state, first, best)
            evaluated += 1
            if value < best and (
                not forbidden(state, until, still, now)
                or (state.cost[PENALTY] == 0.0 and value - state.cost[GUIDE] < state.cost[HELD])
            ):
                best, chosen = value, seed
            if value < math.inf:
                rewind(instance, state, first)
            undo(instance, state)
            state.cost[FIXED] = fixed
        if chosen == 0:
            continue
        after = state.number[SEED]
        state.number[SEED] = chosen
        first = propose_random(instance, state, shares)  # the same move, for the same random numbers
        state.number[SEED] = after
        state.cost[COST] = decode(instance, state, first, math.inf)
        accept(state)
        forbid(state, until, still, now, tenure)
        worth = state.cost[COST] - state.cost[GUIDE]
        if state.cost[PENALTY] == 0.0 and worth < state.cost[HELD]:
            keep_best(state, worth)
            if worth <= enough:
                break
        if now % REFRESH == 0 and instance.timed:
            find_critical(instance, state)
    return evaluated
