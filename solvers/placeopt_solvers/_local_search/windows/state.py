"""The state of a search in windows: an order and a placement with their times before, in and after a window."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import Problem

MODULUS = 2**31 - 1
"""Modulus of the random numbers."""

LONGEST = 512
"""Tasks that one proposal moves, at most."""

(
    LOW, HIGH, SEED, MOVED, FIRST, LAST, HORIZON, LOGGED, SPAN, AROUND, HELD, FRESH, SLOT, ANCHOR, LEAST, OPEN, ENDED
) = range(17)  # fmt: skip
"""Indices of `State.number`.

    LOW, HIGH    the window is the positions [LOW, HIGH)
    SEED         state of the random numbers
    MOVED        tasks that the last proposal moved
    FIRST, LAST  first and last position that it affects apart from times
    HORIZON      last marked position
    LOGGED       tasks that the last evaluation timed again
    SPAN         the makespan
    AROUND       length of the longest path without a task of the window
    HELD         the makespan of the best state so far
    FRESH        1 if the best state and this one are the same outside the window
    SLOT         results of `find_slot`: a position of the order,
    ANCHOR       the task before it on the device, -1 for none,
    LEAST        and a lower bound of the makespan with the task there
    OPEN         tasks before the window with consumers in or after it
    ENDED        the latest end before the window
"""


class State(NamedTuple):
    """A state, and the buffers to evaluate it; n tasks, m devices, e edges.

    A chain links the tasks of a device in their order.
    """

    order: Int  # (n,) the tasks in a topological order
    position: Int  # (n,) the position of each task in it
    device: Int  # (n,) the device of each task
    ticks: Int  # (n,) ticks of each task on its device
    delay: Int  # (e,) ticks of each in-edge's transfer, 0 on the same device
    end: Int  # (n,) end of each task, valid before position number[HIGH]
    after: Int  # (n,) ticks from each task's end to the end of the last task, valid from position number[LOW] on
    reach: Int  # (n,) in the window: end of each task plus the ticks after it on paths that leave the window at it
    before: Int  # (n,) the task before each in its chain, -1 for none
    behind: Int  # (n,) the task after each in its chain, -1 for none
    first: Int  # (m,) the first task of each device, -1 for none
    gate: Int  # (m,) the last task of each device before the window, -1 for none
    room: Int  # (m,) bytes left on each device
    later: Int  # (n,) length of the longest path that begins at each position or later, valid like `after`
    open: Int  # (n,) tasks before the window with consumers in or after it; number[OPEN] is their number
    marked: Bool  # (n,) by position: tasks to time again
    logged: Int  # (n,) the tasks that the last evaluation timed again
    old_end: Int  # (n,) their former `end`
    old_reach: Int  # (n,) their former `reach`
    moved: Int  # (LONGEST,) the tasks that the last proposal moved
    old_device: Int  # (LONGEST,) their former devices
    old_position: Int  # (LONGEST,) their former positions
    old_before: Int  # (LONGEST,) their former `before`
    old_behind: Int  # (LONGEST,) their former `behind`
    best_order: Int  # (n,) the best state so far
    best_device: Int  # (n,)
    number: Int  # at the indices LOW, ...


def make_state(problem: Problem, seed: int) -> State:
    """Return an empty state. Memory O(n + m + e)."""
    n, m = problem.n_tasks, problem.n_devices
    size = {"delay": problem.n_edges, "first": m, "gate": m, "room": m, "number": ENDED + 1}
    size |= dict.fromkeys(("moved", "old_device", "old_position", "old_before", "old_behind"), LONGEST)
    kind: dict[str, Any] = dict.fromkeys(State._fields, np.int64) | {"marked": np.bool_}
    arrays: dict[str, Any] = {name: np.zeros(size.get(name, n), kind[name]) for name in State._fields}
    arrays["number"][SEED] = seed % (MODULUS - 1) + 1
    return State(**arrays)
