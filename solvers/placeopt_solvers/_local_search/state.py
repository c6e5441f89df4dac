"""The state of a search: an order, a placement, their times, and sums that are updated incrementally."""

from __future__ import annotations

from typing import NamedTuple

from placeopt.model.arrays import Float, Int

LONGEST = 512
"""Groups that one proposal moves, at most."""

VALID, KNOWN, LAST, TIMED, STEP, COUNTER, SEED, MOVED, TAKEN, PUT, CRITICAL, NEWS, ACCEPTED, BEGUN = range(14)
"""Indices of `State.number`.

    VALID       first position whose times are not those of the state
    KNOWN       first position from which on `after` is valid
    LAST        last position that the last proposal changed
    TIMED       position at which the last evaluation stopped timing tasks, n + 1 if it reached the end
    STEP        logarithm to base 2 of the positions between two marks
    COUNTER     number of the evaluation
    SEED        state of the random numbers
    MOVED       groups that the last proposal moved
    TAKEN, PUT  positions from which and to which it moved a task; PUT is -1 if the order did not change
    CRITICAL    tasks known to be critical
    NEWS        1 once a better best state was found
    ACCEPTED    moves accepted since the walk began
    BEGUN       position at which the last evaluation began: before the change if the swap time of a device changed
"""

COST, FIXED, GUIDE, PENALTY, HELD = range(5)
"""Indices of `State.cost`: cost of the state; its part apart from times; parts of the last evaluation that only guide
the search, and that penalise violated constraints; cost of the best feasible state."""


class State(NamedTuple):
    """A state, and the buffers to evaluate it; n tasks, m devices, e edges, g groups, c marks."""

    order: Int  # (n,) the tasks in a topological order
    position: Int  # (n,) the position of each task in it
    home: Int  # (g,) the device of each group
    device: Int  # (n,) the device of each task
    ticks: Int  # (n,) ticks of each task on its device
    delay: Int  # (e,) ticks of each in-edge's transfer, 0 on the same device
    end: Int  # (n,) end of each task, valid before position number[VALID]
    arrive: Int  # (e,) arrival of each in-edge's data, valid like `end`; empty without ports
    # (n,) from position number[KNOWN] on: lower bounds of the ticks from each task's end to the end of the last task,
    # as long as nothing after it changes
    after: Int
    load: Int  # (m,) ticks of computing on each device
    room: Int  # (m,) bytes left on each device under the `sum` model, negative if it is overfull
    free: Int  # (m,) ticks at which devices become free
    send: Int  # (m,) ticks at which sending ports become free
    receive: Int  # (m,) ticks at which receiving ports become free; may be `send`, see `port_times`
    # (c + 1, 3 m + 1) before every 2^number[STEP]-th position and after the last: `free`, `send`, `receive`, and the
    # number of the evaluation that timed the positions from there to the next mark
    marks: Int
    latest: Int  # (c,) the latest end between a mark and the next
    late: Int  # (c,) the lateness of all tasks between a mark and the next
    old_end: Int  # (n,) ends by position that the last evaluation overwrote
    old_marks: Int  # (c + 1, 3 m + 1), (c,), (c,) likewise
    old_latest: Int
    old_late: Int
    owner: Int  # (n, m) shared outputs under ports: position of the consumer for which it was sent; otherwise empty
    written: Int  # (n, m) the evaluation in which it was sent
    sent: Int  # (n, m) its arrival
    stamp: Int  # (max(n, m, g),) marks of visited items
    moved: Int  # (LONGEST,) groups that the last proposal moved
    origin: Int  # (LONGEST,) their former devices
    critical: Int  # (n,) the tasks of a critical path; number[CRITICAL] is their number
    freed: Int  # (n,) when each output is released; empty unless `peak`
    time: Int  # (n,) keys of the heaps under `peak`
    code: Int  # (n,) tasks in the heaps
    level: Int  # (3, m) under `peak`: bytes live on each device, their maximum so far, where its heap begins
    best_order: Int  # (n,) the best feasible state so far
    best_home: Int  # (g,)
    number: Int  # at the indices VALID, ...
    cost: Float  # at the indices COST, ...
