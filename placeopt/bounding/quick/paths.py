"""Heads and tails (how early a task can start, how much must follow it), and the critical path.

**Definitions.** L[v, d] is a tick before which task v cannot start on device d; initially its release time. p[u, d] is
the duration of u on d, c(a, d) the time of the transfer from a to d. If u does not run on d, its data arrives on d no
earlier than

    remote(u, v) = min over devices a != d of L[u, a] + p[u, a] + c(a, d).

Suppose v starts on d at t. Every producer u with remote(u, v) > t is *tied* to v: it runs on d itself and starts by t -
p[u, d]. Likewise every producer w of u with remote(w, u) > t - p[u, d] is tied, and so on. The set A(t) of all tasks
tied to v, directly or not,

- has no member that cannot share d with its consumer in A(t) (feasibility, separation);
- fits into d with the groups of its members, together with v's group;
- occupies d one task at a time, unless d runs several at once: t >= the least L[w, d] + the durations of all members,
  or of some.

A member to which all members found before it are tied precedes all of them, so it starts by t less their durations
(this serialises a chain of fork-joins). Also, t >= min(remote(u, v), L[u, d] + p[u, d]) for every producer u. A(t)
shrinks as t grows. L[v, d] is the result of raising t until all these conditions hold.

**Claim.** No schedule starts v on d before L[v, d]. By induction along the topological order: true starts of producers
are at least their L, waiting for ports or devices only adds, and the rest follows from the rules of the problem.
Examining only a part of A(t), or stopping early, gives a smaller and valid L. ∎

The idea that a task is either tied to a device or waits for a transfer is from J.-Y. Colin and P. Chrétienne, "C.P.M.
scheduling with small communication delays and task duplication", Operations Research 39 (1991),
doi:10.1287/opre.39.4.680; extended here to unrelated devices, arbitrary delays, and memory. With memory, a chain of
tasks too large for one device must be cut, where that is cheapest.

Tails are the heads of the reversed graph with reversed links, without release times; instead, given ticks may have to
follow each task, as for deadlines (`placeopt.bounding.quick.deadlines`). Devices of one class share a value. Time O(e
k^2 + n k b) for parts of A(t) of at most b edges, memory O(n k + e k). If all links from a class are alike, time
O(e k + n k b), memory O(n k + e).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt import engine
from placeopt.bounding.quick.classes import LARGEST_TOTAL, Classes, by_row, row_minima
from placeopt.model.arrays import Bool, Int

NEVER = 1 << 61
"""Above every real tick; the sum of two does not overflow."""

FOLLOWED = 1 << 26
"""Edges followed in total if each set A(t) is examined once."""

BUDGET = 1 << 25
"""Edges followed in all (0.5 s)."""


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Heads and tails by class."""

    # (n, k) ticks: no start on a device of the class is earlier; at most NEVER where the task may not run
    head: Int
    # (n, k) ticks: the makespan, and the end of given following ticks, is at least this much later than the task's end
    tail: Int
    # (n, k), whether the task may run there: both are below NEVER. A task that may run nowhere (the problem is
    # infeasible) is allowed everywhere with zero head and tail
    allowed: Bool


def windows(classes: Classes, after: Int | None = None) -> Windows:
    """Heads and tails of every task on every class; at least `after` (n,) ticks follow each task's end."""
    problem = classes.problem
    # Clipping is a relaxation and avoids overflow.
    release = np.minimum(problem.release, LARGEST_TOTAL - 1)
    after = np.zeros_like(release) if after is None else after
    links = classes.latency, classes.num, classes.den
    backwards = tuple(np.ascontiguousarray(link.T) for link in links)
    into, out = problem.in_edge, slice(None)
    head = _heads(classes, release, problem.order, problem.in_start, into, problem.edge_source, links)
    tail = _heads(classes, after, problem.order[::-1].copy(), problem.out_start, out, problem.edge_target, backwards)
    allowed = classes.task_allowed & (head < NEVER) & (tail < NEVER)
    nowhere = np.asarray(~allowed.any(axis=1))
    for ticks in (head, tail):
        ticks[nowhere] = 0
    return Windows(head, tail, allowed | nowhere[:, None])


def _heads(
    classes: Classes, release: Int, order: Int, start: Int, edges: Int | slice, producer: Int, links: tuple[Int, ...]
) -> Int:
    """(n, k) the heads in a graph given by its in-edges, with these release times, latencies, nums and dens.

    The `edges` of task v are those at start[v]..start[v + 1].
    """
    problem = classes.problem
    allowed = classes.task_allowed
    n, k = allowed.shape
    most = min(max(FOLLOWED // (n * k), 4), problem.n_edges)

    tasks = (
        classes.capacity, classes.duration, classes.busy, allowed, problem.group, classes.group_memory,
        problem.payload[edges], classes.together[edges], classes.apart[edges],
    )  # fmt: skip
    return engine.earliest_heads(
        (order, start, producer[edges]), (*links, classes.linked), tasks, most, BUDGET, release, engine.current_stop()
    )


def critical_path(classes: Classes, found: Windows) -> tuple[int, int]:
    """The longest head + duration + tail, each task on its best class, and the task that attains it."""

    def shortest(block: slice) -> Int:
        through = found.head[block] + classes.duration[block] + found.tail[block]
        return row_minima(np.where(found.allowed[block], through, NEVER))

    through = by_row(found.head.shape, shortest)
    task = int(through.argmax())
    return int(through[task]), task
