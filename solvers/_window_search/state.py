"""The state of a search in windows: an order, a placement, heads and tails, and the window."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.problem import Problem

LONGEST = 64
"""Tasks that one proposal moves, at most."""

(
    LOW,
    HIGH,
    SEED,
    OPS,
    FIRST,
    LAST,
    HORIZON,
    LOGGED,
    SPAN,
    SKIP,
    EXCESS,
    BASE,
    HELD,
    FRESH,
    SLOT,
    ANCHOR,
    SURE,
) = range(17)
"""Indices of `State.number`.

    LOW, HIGH      the window is the positions [LOW, HIGH)
    SEED           state of the random numbers
    OPS            tasks that the last proposal moved
    FIRST, LAST    first and last position that it changed
    HORIZON        last position whose task must be timed again
    LOGGED         tasks whose times the last evaluation changed
    SPAN           the makespan
    SKIP           length of the longest path that avoids the tasks of the window
    EXCESS         the sum of what each path that leaves the window exceeds BASE by
    BASE           length up to which paths do not matter
    HELD           the makespan of the best state
    FRESH          1 if the best state differs from this one only in the window
    SLOT, ANCHOR   results of `find_slot`: a position, and the task before it on the device
"""


class State(NamedTuple):
    """A state, and the buffers to evaluate it; n tasks, m devices, e edges."""

    order: Int  # (n,) the tasks in a topological order
    position: Int  # (n,) the position of each task in it
    device: Int  # (n,) the device of each task
    ticks: Int  # (n,) ticks of each task on its device
    delay: Int  # (e,) ticks of each in-edge's transfer, 0 on the same device
    end: Int  # (n,) end of each task, valid before position number[HIGH]
    after: Int  # (n,) ticks from each task's end to the end of the last task, valid from position number[LOW]
    reach: Int  # (n,) length of the longest path through an arc of each task that leaves the window
    before: Int  # (n,) the task before each on its device, -1 for none
    behind: Int  # (n,) the task after each on its device, -1 for none
    first: Int  # (m,) the first task of each device, -1 for none
    gate: Int  # (m,) the last task of each device before the window, -1 for none
    room: Int  # (m,) bytes left on each device
    dirty: Bool  # (n,) by position: tasks to time again
    logged: Int  # (n,) tasks whose times the last evaluation changed
    old_end: Int  # (n,) their former ends
    old_reach: Int  # (n,)
    moved: Int  # (LONGEST,) tasks that the last proposal moved, in this order
    old_device: Int  # (LONGEST,) their former devices
    old_position: Int  # (LONGEST,) their former positions
    old_before: Int  # (LONGEST,) their former `before`
    old_behind: Int  # (LONGEST,) their former `behind`
    best_order: Int  # (n,)
    best_device: Int  # (n,)
    number: Int  # at the indices LOW, ...
    tally: Int  # counts of proposals, by outcome


def make_state(problem: Problem, seed: int) -> State:
    """Return an empty state."""
    n, m, e = problem.n_tasks, problem.n_devices, problem.n_edges
    size = {"delay": e, "first": m, "gate": m, "room": m, "number": SURE + 1, "tally": 16}
    size |= dict.fromkeys(("moved", "old_device", "old_position", "old_before", "old_behind"), LONGEST)
    arrays = {name: np.zeros(size.get(name, n), dtype=np.int64) for name in State._fields}
    arrays["dirty"] = np.zeros(n, dtype=np.bool_)
    arrays["number"][SEED] = seed % (2**31 - 2) + 1
    return State(**arrays)
