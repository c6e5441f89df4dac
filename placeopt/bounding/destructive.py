"""A lower bound of the makespan by refuting makespans: start windows, and clusters of tasks on one device.

**Definitions.** Suppose that a schedule has a makespan of at most T. By class c, S[v, c] is a tick before which task v
does not start, E[v, c] one after which it does not start; both hold if v runs on a device of class c. At first, S is
the head of v, and E = T - tail - duration (`placeopt.bounding.quick.paths`). A class is *open* for v while S <= E. A
*cluster* is a set of tasks that run on one device; at first, the colocation groups. Let p be durations, and for an edge
(u, w) let

    remote(c) = min over open classes a of S[u, a] + p[u, a] + the transfer from a device of a to another one of c.

**Rules.** All hold in every schedule within T.

- *edge*: w starts on c at min(remote(c), S[u, c] + p[u, c]) or later; if u and w share a device, at S[u, c] + p[u, c];
  if not, at remote(c). The same holds backwards for E.
- *merging*: if remote(c) > E[w, c] for all open c, the data comes too late from any other device. So u and w, hence
  their clusters, share a device. Its class is open for all their tasks, and has the memory for what they hold.
- *order*: if i cannot run before j on the device of their cluster, since S[i, c] + p[i, c] > E[j, c] or a path leads
  from j to i, then j runs before i. All such j that start at r or later end at r + the sum of their durations or later,
  and so S[i, c] is at least that; the same holds backwards for E. If neither can run before the other, or if the tasks
  that must run within an interval take longer than it lasts, class c is closed for the cluster.
- *parting*: two clusters do not share a device if on each class open for both, some pair of their tasks can run in
  neither order, or their memory does not fit; or if a separation or an edge that is known to be cut joins them.
- A task without an open class refutes T: the makespan is at least T + 1.
- *probing*: if the rules refute T once the ends of an undecided edge are assumed to share a device, they do not, and
  vice versa.
- *cases*: the ends of an edge share a device or not. If both cases are refuted, each with all rules, so is T. The edge
  is one for which both assumptions change much.

Proof. Each rule states what follows from T, the windows and the clusters, if these hold; by induction, the last ones
hold. Ports, memory tiers, live memory and resources only delay a schedule more. ∎ Devices that run several tasks at
once do not: with one, no makespan is refuted.

Applied to parts of the rules only, or stopped early, windows are wider and still valid. A search over T finds the
largest that is refuted: first without probing, then with, and then, within a time limit, with more and more cases. The
rules are in `engine/native/propagation.cpp`.

The method is "destructive improvement" (R. Klein, A. Scholl, "Computing lower bounds by destructive improvement: an
application to resource-constrained project scheduling", EJOR 112 (1999), doi:10.1016/S0377-2217(97)00442-6). Orders
that follow from windows are from J. Carlier, E. Pinson, "An algorithm for solving the job-shop problem", Management
Science 35 (1989), doi:10.1287/mnsc.35.2.164, and probing ("shaving") from P. Martin, D. B. Shmoys, "A new approach to
computing optimal schedules for the job-shop scheduling problem", IPCO 1996, doi:10.1007/3-540-61310-2_29. The devices
of tasks are fixed there; here clusters, merging and parting replace them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from placeopt import engine
from placeopt.bounding.quick import Bound, narrowed_classes
from placeopt.bounding.quick.classes import LARGEST_TOTAL, Classes
from placeopt.bounding.quick.paths import NEVER, Windows, critical_path, windows
from placeopt.model.arrays import Int
from placeopt.model.native import native
from placeopt.model.problem import Problem
from placeopt.model.units import time_text

TABLE = 1 << 23
"""Maximum number of transfers (edges times pairs of classes) that are tabulated; beyond, all classes count as one."""

LIMITS = 1 << 20, 1 << 27, 1 << 16
"""Steps of a probe, steps of propagation without probing, and changes during a probe."""

EFFORTS = 0, 1, *(4**i for i in range(2, 16))
"""Largest numbers of cases, one after the other; 0: without probing. Without a time limit only the first two."""

PRECISION, COARSE = 4000, 200
"""With probing, and with several cases, T is searched up to these parts of the bound."""

WIDE = 32
"""Without probing, the first T is this part of the bound above it. Wide steps may succeed where short ones stop."""


def destructive_bound(
    problem: Problem,
    least: int,
    *,
    known: int | None = None,
    seconds: float | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Bound:
    """The best bound of the makespan by refuted makespans; it improves on another bound `least` if possible.

    Parameters
    ----------
    least, known
        Ticks of a proved bound, and of a known schedule.
    seconds
        Time limit; None for none, and for a single case.
    """
    begun = time.perf_counter()
    stop = engine.Stop(should_stop, seconds)
    classes = narrowed_classes(problem)
    found = windows(classes)
    best = critical_path(classes, found)[0]
    why = "the longest chain of tasks and unavoidable transfers; nothing longer is proved"
    if problem.n_devices > 1 and "parallel" not in problem.rules and not should_stop():
        efforts = EFFORTS[:2] if seconds is None else EFFORTS
        proved = largest(propagation(classes, found), max(best, least), known, stop, efforts)
        if proved > max(best, least):
            best = proved
            why = (
                f"a makespan below {time_text(best, problem.resolution)} leaves too little time for the transfers, or "
                "for the tasks that must then share a device"
            )
    return Bound("destructive", best, why, time.perf_counter() - begun)


def largest(
    rules: engine.Propagation,
    proved: int,
    known: int | None,
    stop: engine.Stop,
    efforts: Sequence[int],
) -> int:
    """The best proved bound, from `proved` to `known`, with each of these maximum numbers of cases; less if stopped."""
    # Only an infeasible problem has no schedule below LARGEST_TOTAL; its bounds mean nothing.
    least, most = proved, LARGEST_TOTAL if known is None else min(known, LARGEST_TOTAL)
    with suppress(engine.StoppedError):
        for cases in efforts:
            high = most
            unit = 1 + proved // (PRECISION if cases == 1 else COARSE) if cases else 1
            step = unit if cases else 1 + proved // WIDE
            while proved + (unit if high < most or cases < 2 else 1) <= high:
                tried = min(proved + step, high) - 1
                if rules.refutes(tried, cases, *LIMITS, stop):
                    proved, step = tried + 1, 2 * step
                elif tried < proved + unit:
                    if rules.cases < cases:  # more of them do not help
                        return proved
                    break
                else:
                    high, step = tried, max(step // 4, unit)
    return least if proved >= LARGEST_TOTAL else proved


def propagation(classes: Classes, found: Windows) -> engine.Propagation:
    """The rules for a problem."""
    problem = classes.problem
    return engine.Propagation(native(problem), *_tables(classes, found), classes.memory, problem.separation)


def _tables(classes: Classes, found: Windows) -> tuple[Int, Int, Int, Int, Int]:
    """Heads (NEVER on closed classes), tails, durations, transfers by classes, and capacities.

    With too many classes for a table of transfers, all count as one, with the least of all times: a relaxation.
    """
    problem = classes.problem
    k = classes.n_classes
    head = np.where(found.allowed, found.head, NEVER)
    if problem.n_edges * k * k <= TABLE:
        move = np.full((problem.n_edges, k, k), NEVER, dtype=np.int64)
        for a, c in zip(*np.nonzero(classes.linked), strict=True):
            move[:, a, c] = problem.transfer(problem.payload, classes.source[a, c], classes.target[a, c])
        return head, found.tail, classes.duration, move, classes.capacity
    least = np.full(problem.n_edges, NEVER, dtype=np.int64)
    for a, c in zip(*np.nonzero(classes.linked), strict=True):
        least = np.minimum(least, problem.transfer(problem.payload, classes.source[a, c], classes.target[a, c]))
    tail, duration = (np.where(found.allowed, each, NEVER).min(axis=1) for each in (found.tail, classes.duration))
    return (
        np.ascontiguousarray(head.min(axis=1)[:, None]), tail[:, None], duration[:, None], least[:, None, None],
        classes.capacity.max(keepdims=True),
    )  # fmt: skip
