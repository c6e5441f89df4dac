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
- occupies d one task at a time: t >= the least L[w, d] + the durations of all members, or of some.

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
k^2 + n k b) for parts of A(t) of at most b edges, memory O(n k + e k).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placeopt.bounding.quick.classes import LARGEST_TOTAL, Classes
from placeopt.kernels import WaitingStoppedError, kernel
from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.problem import transfer_ticks

NEVER = 1 << 61
"""Above every real tick; the sum of two does not overflow."""

ROUNDS = 64
"""Maximum number of times that the start of a task on a class is raised."""

FOLLOWED = 1 << 26
"""Edges followed in total if each set A(t) is examined once."""

SMALL_BUDGET, BUDGET = 1 << 15, 1 << 25
"""Edges followed at first (0.1 s in plain Python), and in all (0.5 s in compiled code)."""


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
    head = _heads(classes, release, problem.order, problem.in_start, problem.in_edge, problem.edge_source, links)
    edges = np.arange(problem.n_edges)
    tail = _heads(classes, after, problem.order[::-1].copy(), problem.out_start, edges, problem.edge_target, backwards)
    allowed = classes.allowed[problem.group] & (head < NEVER) & (tail < NEVER)
    nowhere = np.asarray(~allowed.any(axis=1))
    for ticks in (head, tail):
        ticks[nowhere] = 0
    return Windows(head, tail, allowed | nowhere[:, None])


def _heads(
    classes: Classes, release: Int, order: Int, start: Int, edge: Int, producer: Int, links: tuple[Int, ...]
) -> Int:
    """(n, k) the heads in a graph given by its in-edges, with these release times, latencies, nums and dens."""
    problem = classes.problem
    allowed = classes.allowed[problem.group]
    n, k = allowed.shape
    latency, num, den = links
    most = min(max(FOLLOWED // (n * k), 4), problem.n_edges)

    graph = InEdges(order, start, edge, producer)
    times = LinkTimes(latency, num, den, np.where(classes.linked, latency, np.inf), num / den)
    tasks = TasksByClass(
        classes.capacity, classes.duration, allowed, problem.group, classes.group_memory, problem.payload,
        classes.together, classes.apart,
    )  # fmt: skip

    def fill(run: Callable[..., int], budget: int) -> tuple[Int, int]:
        head = np.where(allowed, release[:, None], NEVER)
        followed = run(graph, times, tasks, most, budget, head)
        return head, followed

    work = 2 * k * (problem.n_edges * (k + 2) + n * min(most, 64))
    if work > BUDGET:  # far more than to follow the edges: not twice
        try:
            return fill(earliest_starts.select(work, optional=True), BUDGET)[0]
        except WaitingStoppedError:
            pass
    head, followed = fill(earliest_starts.select(work, chunked=True), SMALL_BUDGET)
    if followed < SMALL_BUDGET or work > BUDGET:
        return head
    try:
        return fill(earliest_starts.select(min(work, BUDGET), optional=True), BUDGET)[0]
    except WaitingStoppedError:  # the heads so far are valid but weaker
        return head


def critical_path(classes: Classes, found: Windows) -> tuple[int, int]:
    """The longest head + duration + tail, each task on its best class, and the task that attains it."""
    through = np.where(found.allowed, found.head + classes.duration + found.tail, NEVER).min(axis=1)
    task = int(through.argmax())
    return int(through[task]), task


class InEdges(NamedTuple):
    """The in-edges of all tasks, or in the opposite direction the out-edges."""

    order: Int  # (n,)
    start: Int  # (n + 1,)
    edge: Int  # (e,)
    producer: Int  # (e,) the task at the far end of each edge


class LinkTimes(NamedTuple):
    """Links between classes, exactly and in doubles."""

    latency: Int  # (k, k)
    num: Int
    den: Int
    lag: Float  # `latency`, infinite without a link
    rate: Float  # num / den


class TasksByClass(NamedTuple):
    """Tasks, edges and classes, as in `Classes` and `Problem`."""

    capacity: Int  # (k,)
    duration: Int  # (n, k)
    allowed: Bool  # (n, k)
    group: Int  # (n,)
    group_memory: Int  # (g,)
    payload: Int  # (e,)
    together: Bool  # (e,)
    apart: Bool  # (e,)


@kernel(transfer_ticks, allocates=False)
def find_arrivals(
    links: LinkTimes, tasks: TasksByClass, u: int, e: int, head: Int, about: Float, best: Float, remote: Int
) -> None:
    """Compute the arrivals of edge e from task u on other classes; `about` and `best` (k,) are work space."""
    k = len(about)
    size = float(tasks.payload[e])
    # Find the best source in doubles, then compute its time exactly.
    about[:] = np.inf
    for a in range(k):
        if head[u, a] < NEVER:
            end = float(head[u, a] + tasks.duration[u, a])
            for c in range(k):
                arrival = end + links.lag[a, c] + size * links.rate[a, c]
                better = arrival < about[c]
                about[c] = arrival if better else about[c]
                best[c] = a if better else best[c]
    for c in range(k):
        if about[c] < NEVER:
            a = int(best[c])
            ticks = transfer_ticks(tasks.payload[e], links.latency[a, c], links.num[a, c], links.den[a, c])
            t = head[u, a] + tasks.duration[u, a] + ticks
            # If rounding to doubles may hide a source that is earlier by a tick, assume that there is one.
            error = about[c] * 2e-15
            remote[e, c] = t - 1 - int(error) if t - about[c] > 1 - error else t


@kernel(transfer_ticks, find_arrivals)
def earliest_starts(graph: InEdges, links: LinkTimes, tasks: TasksByClass, most: int, budget: int, head: Int) -> int:
    """Compute L of the module's docstring in `head` (n, k), initially the release time, or NEVER if not allowed.

    At most `most` edges of a set A(t) are followed, and `budget` edges in all; the number followed is returned. Tasks
    that can start nowhere (the problem is infeasible) get zeros.
    """
    in_start, in_edge, producer = graph.start, graph.edge, graph.producer
    duration, group, group_memory = tasks.duration, tasks.group, tasks.group_memory
    n, k = duration.shape
    remote = np.full((len(producer), k), NEVER, dtype=np.int64)
    about = np.empty(k)
    best = np.empty(k)  # doubles too, so that the loop below is vectorised
    stamp, followed = 0, 0
    seen = np.zeros(n, dtype=np.int64)  # stamp of the last A(t) that a task was in
    seen_group = np.zeros(len(group_memory), dtype=np.int64)
    after = np.zeros(n, dtype=np.int64)  # ticks from the start of a member of A(t) to t, along its consumers
    pending = np.empty(n, dtype=np.int64)  # members to follow; the last one has no pending consumers
    rank = np.empty(n, dtype=np.int64)
    for i in range(n):
        rank[graph.order[i]] = i
    for v in graph.order:
        begin, stop = in_start[v], in_start[v + 1]
        for position in range(begin, stop):
            e = in_edge[position]
            if not tasks.together[e]:
                find_arrivals(links, tasks, producer[e], e, head, about, best, remote)
        possible = False
        for c in range(k):
            if not tasks.allowed[v, c]:
                continue
            t = head[v, c]
            for position in range(begin, stop):
                e = in_edge[position]
                u = producer[e]
                t = max(t, min(remote[e, c], head[u, c] + duration[u, c] if head[u, c] < NEVER else NEVER))
            for _ in range(ROUNDS):
                # A(t), followed from v; `change` is the first tick at which it shrinks.
                stamp += 1
                seen_group[group[v]] = stamp
                first, work, busy, held, change = NEVER, 0, 0, group_memory[group[v]], NEVER
                fits, loose, steps = True, False, 0
                pending[0], count = v, 1
                after[v] = 0
                while count > 0 and steps < most and followed < budget:
                    count -= 1
                    u = pending[count]
                    if count == 0 and not loose:
                        after[u] = max(after[u], work)  # all other members follow u, on the same device
                    tied = False
                    for position in range(in_start[u], in_start[u + 1]):
                        e = in_edge[position]
                        steps += 1
                        followed += 1
                        if remote[e, c] <= t - after[u]:
                            continue
                        w = producer[e]
                        tied = True
                        change = min(change, remote[e, c] + after[u])
                        if tasks.apart[e] or head[w, c] == NEVER:
                            fits = False
                        if seen[w] == stamp:
                            after[w] = max(after[w], after[u] + duration[w, c])
                        else:
                            seen[w] = stamp
                            first = min(first, head[w, c])
                            work += duration[w, c]
                            busy = max(busy, first + work)
                            after[w] = after[u] + duration[w, c]
                            place = count
                            while place > 0 and rank[pending[place - 1]] > rank[w]:
                                pending[place] = pending[place - 1]
                                place -= 1
                                followed += 1
                            pending[place] = w
                            count += 1
                            if seen_group[group[w]] != stamp:
                                seen_group[group[w]] = stamp
                                held += group_memory[group[w]]
                    loose = loose or not tied
                fits = fits and held <= tasks.capacity[c]
                if fits and busy <= t:
                    break
                t = min(change, busy) if fits else change
                if t >= NEVER:
                    break
            head[v, c] = min(t, NEVER)
            possible = possible or t < NEVER
        if not possible:
            for c in range(k):
                if tasks.allowed[v, c]:
                    head[v, c] = 0
    return followed
