"""The state of a search: an order, a placement, their times, and sums that are updated incrementally."""

from __future__ import annotations

from typing import NamedTuple

from placeopt.model.arrays import Float, Int

LONGEST = 512
"""Groups that one proposal moves, at most."""

VALID, KNOWN, LAST, TIMED, STEP, COUNTER, SEED, MOVED, TAKEN, PUT, CRITICAL, NEWS, ACCEPTED = range(13)
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
"""

COST, FIXED, GUIDE, PENALTY, HELD = range(5)
"""Indices of `State.cost`: cost of the state; its part apart from times; parts of the last evaluation that only guide
the search, and that penalise violated constraints; cost of the best feasible state."""


class State(NamedTuple):
    """A state, and the buffers to evaluate it; n tasks, m devices, e edges, g groups.

    Attributes
    ----------
    order, position
        (n,) the tasks in a topological order; the position of each in it.
    home, device
        (g,) and (n,) the device of each group and of each task.
    ticks, delay
        (n,) ticks of each task on its device; (e,) those of each in-edge's transfer, 0 on the same device.
    end, arrive
        (n,) end of each task; (e,) arrival of each in-edge's data, under ports only. Valid before position
        number[VALID].
    after
        (n,) from position number[KNOWN] on: lower bounds of the ticks from each task's end to the end of the last task,
        as long as nothing after it changes.
    load, room
        (m,) ticks of computing on each device; bytes left on it under the `sum` model, negative where it is overfull.
    free, send, receive
        (m,) ticks at which devices and ports become free.
    marks
        (c + 1, 3 m + 1) before every 2^number[STEP]-th position and after the last: `free`, `send`, `receive`; and the
        number of the evaluation that timed the positions from there to the next mark.
    latest, late
        (c,) the latest end and the lateness of all tasks between a mark and the next.
    old_end, old_marks, old_latest, old_late
        Values that the last evaluation overwrote, ends by position.
    owner, written, sent
        (n, m) under ports, for shared outputs: the position of the consumer for which it was sent to the device, the
        evaluation that did so, and its arrival. Otherwise empty.
    stamp
        (max(n, m, g),) marks of visited items.
    moved, origin
        (LONGEST,) groups that the last proposal moved, and their former devices.
    critical
        (n,) the tasks of a critical path; number[CRITICAL] is their number.
    freed, time, code
        (n,) under `peak`: when each output is released, and heaps. Otherwise empty.
    level
        (3, m) under `peak`: bytes live on each device, their maximum so far, where its heap begins. Otherwise empty.
    best_order, best_home
        The best feasible state so far.
    number, cost
        Values at the indices above.
    """

    order: Int
    position: Int
    home: Int
    device: Int
    ticks: Int
    delay: Int
    end: Int
    arrive: Int
    after: Int
    load: Int
    room: Int
    free: Int
    send: Int
    receive: Int
    marks: Int
    latest: Int
    late: Int
    old_end: Int
    old_marks: Int
    old_latest: Int
    old_late: Int
    owner: Int
    written: Int
    sent: Int
    stamp: Int
    moved: Int
    origin: Int
    critical: Int
    freed: Int
    time: Int
    code: Int
    level: Int
    best_order: Int
    best_home: Int
    number: Int
    cost: Float
