"""What a search changes: an order, a placement, the times they give, and sums over both kept up to date."""

from __future__ import annotations

from typing import NamedTuple

from placeopt.model.arrays import Float, Int

LONGEST = 512
"""Groups that one proposal takes to another device, at most."""

VALID, KNOWN, LAST, TIMED, STEP, COUNTER, SEED, MOVED, TAKEN, PUT, CRITICAL, NEWS, ACCEPTED = range(13)
"""Places of `State.number`: the first position whose times are not those of the state; the first one from which on
`after` holds; the last position that the last proposal touched; the one before which the last evaluation stopped timing
tasks, n + 1 if it came to the end; the logarithm to base 2 of the positions between two marks; the number of the
evaluation; the random numbers; groups that the last proposal moved, the place in the order from which it took a task
and the one where it put it, -1 if it left the order alone; tasks known to be critical; 1 once a better best has been
found; moves accepted since the walk began."""

COST, FIXED, GUIDE, PENALTY, HELD = range(5)
"""Places of `State.cost`: what the state costs; what tasks and transfers ask for apart from times; parts of the last
evaluation that only lead the search, and that stand for broken rules; the cost of the best state that breaks none."""


class State(NamedTuple):
    """A state and the room in which it is evaluated; n tasks, m devices, e edges, g groups.

    Attributes
    ----------
    order, position
        (n,) the tasks in a topological order; the place of each in it.
    home, device
        (g,) and (n,) the device of each group and of each task.
    ticks, delay
        (n,) ticks of each task on its device; (e,) those of each in-edge's transfer, 0 on the same device.
    end, arrive
        (n,) ticks at which tasks end, (e,) at which in-edges' data is there; right before position number[VALID].
        `arrive` is kept under ports only.
    after
        (n,) from position number[KNOWN] on: ticks from each task's end to the end of the last task, at least, as long
        as nothing behind it changes.
    load, room
        (m,) ticks of computing on each device; bytes left on it under the `sum` model, negative where it is overfull.
    free, send, receive
        (m,) when devices and ports become free.
    marks
        (c + 1, 3 m + 1) before every 2^number[STEP]-th position and after the last: `free`, `send`, `receive`; and the
        number of the evaluation that timed the positions from there to the next mark.
    latest, late
        (c,) the latest end and the lateness of all tasks between a mark and the next.
    old_end, old_marks, old_latest, old_late
        What the last evaluation wrote over, ends by position.
    owner, written, sent
        (n, m) under ports, for shared outputs: the position of the consumer that had it sent to the device, the
        evaluation in which that was, and when it arrives there. Else empty.
    stamp
        (max(n, m, g),) for telling what has been seen.
    moved, origin
        (LONGEST,) groups that the last proposal moved, and where they were.
    critical
        (n,) the tasks of a critical chain, as far as number[CRITICAL] says.
    freed, time, code
        (n,) under `peak`: when each output is freed, and heaps. Else empty.
    level
        (3, m) under `peak`: bytes live on each device, the most so far, and where its heap begins. Else empty.
    best_order, best_home
        The best state so far that breaks no rule.
    number, cost
        What the names of their places say.
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
