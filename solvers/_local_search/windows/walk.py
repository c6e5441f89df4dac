"""Walk through states that differ in the window: propose moves and accept them at falling temperatures."""

from __future__ import annotations

import math

from placeopt.kernels import kernel

from ..instance import Instance
from .moves import Tuning, draw, mark_heads, mark_tails, propose, undo
from .state import FRESH, HELD, HIGH, LOW, SPAN, State
from .timing import repair_heads, repair_tails, restore


@kernel(allocates=False)
def keep_best(state: State) -> None:
    """Store the state as the best so far."""
    number = state.number
    low, high = number[LOW], number[HIGH]
    if not number[FRESH]:
        low, high = 0, len(state.order)
    for p in range(low, high):
        i = state.order[p]
        state.best_order[p], state.best_device[i] = i, state.device[i]
    number[HELD], number[FRESH] = number[SPAN], 1


@kernel(
    draw,
    propose,
    undo,
    mark_heads,
    repair_heads,
    restore,
    mark_tails,
    repair_tails,
    keep_best,
    allocates=False,
)
def walk(
    instance: Instance, state: State, tuning: Tuning, begin: int, end: int, rounds: int, hot: float, cold: float
) -> int:
    """Try the moves `begin` to `end` of a walk of `rounds` moves in the window; return how many were evaluated.

    Temperatures fall from `hot` to `cold` ticks along the walk; 0 accepts moves that do not increase the makespan.
    """
    number = state.number
    evaluated = 0
    for at in range(begin, end):
        limit = float(number[SPAN])
        if hot > 0:
            limit -= hot * (cold / hot) ** (at / rounds) * math.log(1.0 - draw(state, 1 << 24) / (1 << 24))
        if not propose(instance, state, tuning, limit):
            continue
        evaluated += 1
        mark_heads(instance, state)
        if not repair_heads(instance, state, int(limit)):
            restore(state)
            undo(instance, state)
            continue
        mark_tails(instance, state)
        repair_tails(instance, state)
        if number[SPAN] < number[HELD]:
            keep_best(state)
    return evaluated
