"""Heads and tails: how early a task can start and how much must follow it, and the critical path.

L[v, d] is a tick before which task v cannot start when it runs on device d; not before its release, to begin with.
The data of a producer u
is on d no earlier than

    remote(u, v) = min over devices a != d of L[u, a] + p[u, a] + c(a, d)

if u runs elsewhere, c(a, d) being the transfer. So for v to start at t, every producer with remote(u, v) > t
is tied to v: it runs on d itself, and starts by t - p[u, d]. Then every producer w of u with
remote(w, u) > t - p[u, d] is tied as well, and so on. The set A(t) of all tasks tied to v, directly or not,

    has no member that cannot be on d together with its consumer in A(t) (feasibility, separation),
    fits into d with the groups of its members, beside v's group,
    takes d one task at a time: t >= the earliest L[w, d] + the durations of all members, or of some.

A member to which all that were found before it are tied precedes all of them, so it starts by t - the durations of
all (a chain of fork-joins is serialised so). Besides, t >= min(remote(u, v), L[u, d] + p[u, d]) for every producer.
A(t) shrinks as t grows, and t is raised until all this holds; that is L[v, d]. By induction along
the order no schedule starts v on d earlier: the true starts of producers are no smaller than their L, waiting for
ports or devices only adds, and the rest follows from the rules of the problem. Looking at a part of A(t) only,
or stopping to raise t early, leaves a smaller L, as valid.

That tasks must either be tied to a device or wait for a transfer is the idea of J.-Y. Colin and P. Chrétienne,
"C.P.M. scheduling with small communication delays and task duplication", Operations Research 39 (1991),
doi:10.1287/opre.39.4.680; here for unrelated devices, any delays, and memory. With memory it sees that a
chain of tasks too large for one device must be cut, and where that is cheapest.

Tails are the heads of the reversed graph with reversed links, where nothing needs to be released: unless ticks are
given that must follow the tasks anyway, as deadlines ask for (`placeopt.bounding.quick.deadlines`). Devices of one
class share a value. Time O(e k^2 + n k b) for parts of A(t) of b edges at most, memory O(n k + e k).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placeopt.bounding.quick.classes import LARGEST_TOTAL, Classes
from placeopt.kernels import WaitingStoppedError, kernel
from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.problem import transfer_ticks

NEVER = 1 << 61
"""Above every real tick; two of them still add up without overflow."""

ROUNDS = 64
"""Times that the start of a task on a class is raised, at most."""

FOLLOWED = 1 << 26
"""Edges followed for all tasks and classes together, were each set A(t) looked at once."""

SMALL_BUDGET, BUDGET = 1 << 15, 1 << 25
"""Edges followed at first, a tenth of a second in plain Python, and in all, half a second in compiled code."""


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """What must come before and after each task, by class.

    Attributes
    ----------
    head
        (n, k) ticks: no start on a device of the class is earlier. NEVER or less where it may not run.
    tail
        (n, k) ticks: the makespan is at least that much later than the task's end; as `head`. With ticks given
        that must follow: the last task and what must follow it are over no sooner than that much later.
    allowed
        (n, k), where the task may run: there both are below NEVER. A task that may run nowhere (the
        problem is infeasible) is allowed everywhere with no head and no tail.
    """

    head: Int
    tail: Int
    allowed: Bool


def windows(classes: Classes, after: Int | None = None) -> Windows:
    """Heads and tails of every task on every class; `after` (n,) ticks must follow each task's end anyway."""
    problem = classes.problem
    # Less is a relaxation too, and leaves room for durations.
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

    def fill(run: Callable[..., int], budget: int) -> tuple[Int, int]:
        head = np.where(allowed, release[:, None], NEVER)
        followed = run(
            order,
            start,
            edge,
            producer,
            latency,
            num,
            den,
            np.where(classes.linked, latency, np.inf),
            num / den,
            classes.capacity,
            classes.duration,
            allowed,
            problem.group,
            classes.group_memory,
            problem.payload,
            classes.together,
            classes.apart,
            most,
            budget,
            head,
        )
        return head, followed

    work = 2 * k * (problem.n_edges * (k + 2) + n * min(most, 64))
    head, followed = fill(earliest_starts.select(work, chunked=True), SMALL_BUDGET)
    if followed < SMALL_BUDGET:
        return head
    try:
        return fill(earliest_starts.select(min(work, BUDGET), optional=True), BUDGET)[0]
    except WaitingStoppedError:  # what there is holds too, and is weaker
        return head


def critical_path(classes: Classes, found: Windows) -> tuple[int, int]:
    """The longest head + duration + tail, each task on the best class for it, and the task that has it."""
    through = np.where(found.allowed, found.head + classes.duration + found.tail, NEVER).min(axis=1)
    task = int(through.argmax())
    return int(through[task]), task


@kernel(transfer_ticks)
def earliest_starts(
    order: Int,
    in_start: Int,
    in_edge: Int,
    producer: Int,
    latency: Int,
    num: Int,
    den: Int,
    lag: Float,
    rate: Float,
    capacity: Int,
    duration: Int,
    allowed: Bool,
    group: Int,
    group_memory: Int,
    payload: Int,
    together: Bool,
    apart: Bool,
    most: int,
    budget: int,
    head: Int,
) -> int:
    """Fill `head` (n, k), the release time where a task may run and NEVER elsewhere, with L of the module's text.

    `producer` is the task at the far end of each edge. `lag` and `rate` are `latency` and num / den in
    doubles, `lag` infinite where there is no link. A set A(t) is followed for `most` edges, all of them for `budget`,
    then for none; how many it were is returned. A task that could start nowhere (the problem is infeasible) gets
    zeros.
    """
    n, k = duration.shape
    remote = np.full((len(producer), k), NEVER, dtype=np.int64)
    about = np.empty(k)
    best = np.empty(k)  # a double too, so that the loop below compiles to vector instructions
    stamp, followed = 0, 0
    seen = np.zeros(n, dtype=np.int64)  # stamp of the last A(t) that a task was in
    seen_group = np.zeros(len(group_memory), dtype=np.int64)
    after = np.zeros(n, dtype=np.int64)  # ticks from the start of a member of A(t) to t, along its consumers
    pending = np.empty(n, dtype=np.int64)  # members to follow; the one whose consumers are all done stands last
    rank = np.empty(n, dtype=np.int64)
    for i in range(n):
        rank[order[i]] = i
    for v in order:
        begin, stop = in_start[v], in_start[v + 1]
        for position in range(begin, stop):
            e = in_edge[position]
            if together[e]:
                continue
            u = producer[e]
            size = float(payload[e])
            # The best source in doubles, then exactly.
            about[:] = np.inf
            for a in range(k):
                if head[u, a] < NEVER:
                    end = float(head[u, a] + duration[u, a])
                    for c in range(k):
                        arrival = end + lag[a, c] + size * rate[a, c]
                        better = arrival < about[c]
                        about[c] = arrival if better else about[c]
                        best[c] = a if better else best[c]
            for c in range(k):
                if about[c] < NEVER:
                    a = int(best[c])
                    t = head[u, a] + duration[u, a] + transfer_ticks(payload[e], latency[a, c], num[a, c], den[a, c])
                    # Where rounding to doubles can hide a source that is earlier by a tick, assume there is one.
                    error = about[c] * 2e-15
                    remote[e, c] = t - 1 - int(error) if t - about[c] > 1 - error else t
        possible = False
        for c in range(k):
            if not allowed[v, c]:
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
                        if apart[e] or head[w, c] == NEVER:
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
                fits = fits and held <= capacity[c]
                if fits and busy <= t:
                    break
                t = min(change, busy) if fits else change
                if t >= NEVER:
                    break
            head[v, c] = min(t, NEVER)
            possible = possible or t < NEVER
        if not possible:
            for c in range(k):
                if allowed[v, c]:
                    head[v, c] = 0
    return followed
