"""Which placed tasks run parallel to a task, while a placement grows: the partial topology of Carbonari et al. 2017.

Section 2.2: of a placement S only the placed tasks and the one in question count. The dependencies D_S[j] of task j are
the nearest placed tasks that it depends on; through tasks not placed they are inherited. Task j' is *parallel* to j if
D_S[j] = D_S[j'] (equal as sets, the empty set to itself), where S holds both. It follows that neither depends on the
other: a task between them, or one of the two, would be in only one of the sets.

How many tasks parallel to j are placed on each device is kept up to date for every j not placed yet, since a greedy
maximiser asks for all of them in every round. To place v changes it in three ways:

1. v itself is now parallel to the tasks with its dependencies, but for those that v depends on: to place one of these
   would change the dependencies of v.
2. Tasks that see v (nothing placed between) now depend on v, and no longer on what they saw through v alone. Those
   not placed begin to count anew,
3. those placed are no longer counted by tasks with their old dependencies, but by those with their new ones.

Sets are compared by a hash, the exclusive or of a random 62-bit number per task: in a whole run with 36,000 tasks two
different ones are taken for equal with a probability of some 1e-6. What a task that sees v loses is worked out from bit
sets, with one bit for each placed task that can still be seen: only what v sees can be, and only by tasks with a
producer that is v or lost something.

Placing one task takes O(s + l w + (p / 60 + 1) a + c) steps: s tasks and edges see v, l of them lose something, with w
words per set; p of them are placed, a tasks see these, and c tasks share dependencies with one of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem

BITS = 60
"""Bits per word of a set; and tasks looked for at once."""


class Graph(NamedTuple):
    """A task graph as the kernels take it: n tasks, e edges, m devices.

    Attributes
    ----------
    order, position
        (n,) a topological order, and where each task stands in it.
    out_start, out_target, in_start, in_source
        The edges as CSR both ways.
    key
        (n,) a random number of each task.
    """

    order: Int
    position: Int
    out_start: Int
    out_target: Int
    in_start: Int
    in_source: Int
    key: Int


class Topology(NamedTuple):
    """The partial topology of a growing placement.

    Attributes
    ----------
    device
        (n,) of the tasks placed, -1 for the others.
    digest
        (n,) hash of each task's dependencies, placed or not.
    sees, words
        (n, w), (1,) the dependencies as bits: those that have a slot. Columns from `words` on are not in use.
    slot, owner
        (n,), (n,) the bit of each placed task with consumers not placed, -1 for others; and whose each bit is.
    free, n_free, n_slots
        (n,), (1,), (1,) slots given back, their number, and the number of all that were ever given.
    waiting
        (n,) edges to consumers not placed.
    first, after, before
        (2**k,), (n,), (n,) the tasks not placed, as doubly linked lists of those with like hashes (mod 2**k); -1 ends.
    parallel, total
        (m, n), (n,) tasks placed on each device and parallel to each task not placed, and their sum over devices.
    raised
        (m,) how many tasks on each device began to be parallel to others when the last one was placed.
    gained, n_gained, risen, placed
        (n,), (1,) those others; (n,), (1,) placement in which each was one last, and the number of the present one.
    moved, fresh
        (n,) the tasks that see the one placed last, and their new hashes.
    mark, bits, queue, row
        (n,), (w,) to scribble on: stamps, which tasks are seen, tasks found, a set.
    stamp
        (1,) the last stamp given.
    """

    device: Int
    digest: Int
    sees: Int
    words: Int
    slot: Int
    owner: Int
    free: Int
    n_free: Int
    n_slots: Int
    waiting: Int
    first: Int
    after: Int
    before: Int
    parallel: Int
    total: Int
    raised: Int
    gained: Int
    n_gained: Int
    risen: Int
    placed: Int
    moved: Int
    fresh: Int
    mark: Int
    bits: Int
    queue: Int
    row: Int
    stamp: Int


def make_graph(problem: Problem) -> Graph:
    """The problem's graph; the random numbers are the same in every run."""
    n = problem.n_tasks
    position = np.empty(n, dtype=np.int64)
    position[problem.order] = np.arange(n)
    key = np.random.default_rng(0).integers(1, 2**62, size=n, dtype=np.int64)
    source = problem.edge_source[problem.in_edge]
    return Graph(problem.order, position, problem.out_start, problem.edge_target, problem.in_start, source, key)


def make_topology(graph: Graph, m: int) -> Topology:
    """Nothing placed: all tasks have the same dependencies, none."""
    n = len(graph.order)
    buckets = 1 << max(2 * n - 1, 1).bit_length()
    first = np.full(buckets, -1, dtype=np.int64)
    tasks = np.arange(n, dtype=np.int64)
    if n:
        first[0] = 0

    def zeros(*shape: int) -> Int:
        return np.zeros(shape, dtype=np.int64)

    return Topology(
        device=np.full(n, -1, dtype=np.int64),
        digest=zeros(n),
        sees=zeros(n, n // BITS + 1),  # what is not used is never touched and costs nothing
        words=zeros(1),
        slot=np.full(n, -1, dtype=np.int64),
        owner=zeros(n),
        free=zeros(n),
        n_free=zeros(1),
        n_slots=zeros(1),
        waiting=np.diff(graph.out_start),
        first=first,
        after=np.where(tasks < n - 1, tasks + 1, -1),
        before=tasks - 1,
        parallel=np.zeros((m, n), dtype=np.int32),
        total=zeros(n),
        raised=zeros(m),
        gained=zeros(n),
        n_gained=zeros(1),
        risen=zeros(n),
        placed=zeros(1),
        moved=zeros(n),
        fresh=zeros(n),
        mark=zeros(n),
        bits=zeros(n),
        queue=zeros(n),
        row=zeros(n // BITS + 1),
        stamp=zeros(1),
    )


@kernel(allocates=False)
def list_in(state: Topology, u: int) -> None:
    """Put task u into the list of its hash."""
    bucket = state.digest[u] & (len(state.first) - 1)
    head = state.first[bucket]
    state.after[u], state.before[u] = head, -1
    if head >= 0:
        state.before[head] = u
    state.first[bucket] = u


@kernel(allocates=False)
def list_out(state: Topology, u: int) -> None:
    """Take task u out of the list of its hash."""
    before, after = state.before[u], state.after[u]
    if before >= 0:
        state.after[before] = after
    else:
        state.first[state.digest[u] & (len(state.first) - 1)] = after
    if after >= 0:
        state.before[after] = before


@kernel(allocates=False)
def count(state: Topology, digest: int, d: int, change: int, bit: int) -> None:
    """A task placed on d is now parallel (change 1), or no longer (-1), to all of this hash from which it is not seen.

    It is seen from what was marked last, with that bit.
    """
    stamp, met = state.stamp[0], False
    u = state.first[digest & (len(state.first) - 1)]
    while u >= 0:
        if state.digest[u] == digest and (state.mark[u] != stamp or not (state.bits[u] >> bit) & 1):
            state.parallel[d, u] += change
            state.total[u] += change
            met = True
            if change > 0 and state.risen[u] != state.placed[0]:
                state.risen[u] = state.placed[0]
                state.gained[state.n_gained[0]] = u
                state.n_gained[0] += 1
        u = state.after[u]
    if met and change > 0:
        state.raised[d] += 1


@kernel(allocates=False)
def first_of(graph: Graph, state: Topology, digest: int) -> int:
    """The earliest position of the tasks of this hash that are not placed; n if there are none."""
    earliest = len(graph.order)
    u = state.first[digest & (len(state.first) - 1)]
    while u >= 0:
        if state.digest[u] == digest:
            earliest = min(earliest, graph.position[u])
        u = state.after[u]
    return earliest


@kernel(allocates=False)
def look_up_from(graph: Graph, state: Topology, tasks: int, earliest: int) -> None:
    """Mark all tasks from which one of queue[:tasks], placed all, is seen, with one bit for each; no further up than
    the earliest position."""
    state.stamp[0] += 1
    stamp = state.stamp[0]
    at = -1
    for k in range(tasks):
        p = state.queue[k]
        at = max(at, graph.position[p])
        for e in range(graph.in_start[p], graph.in_start[p + 1]):
            q = graph.in_source[e]
            if state.mark[q] != stamp:
                state.mark[q] = stamp
                state.bits[q] = 0
            state.bits[q] |= 1 << k
    while at > earliest:
        at -= 1
        u = graph.order[at]
        if state.mark[u] != stamp or state.device[u] >= 0:
            continue
        for e in range(graph.in_start[u], graph.in_start[u + 1]):
            q = graph.in_source[e]
            if state.mark[q] != stamp:
                state.mark[q] = stamp
                state.bits[q] = 0
            state.bits[q] |= state.bits[u]


@kernel(first_of, look_up_from, count, allocates=False)
def recount(graph: Graph, state: Topology, moved: int, change: int) -> None:
    """Those of moved[:moved] that are placed are now parallel, or no longer, to all with the same dependencies that do
    not see them."""
    n = len(graph.order)
    tasks, earliest = 0, n
    for k in range(moved):
        p = state.moved[k]
        if state.device[p] >= 0:
            position = first_of(graph, state, state.digest[p])
            if position < n:
                earliest = min(earliest, position)
                state.queue[tasks] = p
                tasks += 1
        if tasks == BITS or (k == moved - 1 and tasks > 0):
            look_up_from(graph, state, tasks, earliest)
            for t in range(tasks):
                p = state.queue[t]
                count(state, state.digest[p], state.device[p], change, t)
            tasks, earliest = 0, n


@kernel(allocates=False)
def renewed(graph: Graph, state: Topology, v: int, w: int) -> bool:
    """Whether w, a task that sees v, loses something that it saw through v alone; it is taken off, from `fresh` too."""
    words = state.words[0]
    row, rest = state.row, 0
    for k in range(words):
        row[k] = state.sees[w, k] & state.sees[v, k]
        rest |= row[k]
    for e in range(graph.in_start[w], graph.in_start[w + 1]):
        if rest == 0:
            return False
        q = graph.in_source[e]
        if state.device[q] >= 0:
            if state.slot[q] >= 0:
                row[state.slot[q] // BITS] &= ~(1 << (state.slot[q] % BITS))
        elif q != v:
            rest = 0
            for k in range(words):
                row[k] &= ~state.sees[q, k]
                rest |= row[k]
    lossy = False
    for k in range(words):
        lost = row[k]
        if lost != 0:
            lossy = True
            state.sees[w, k] &= ~lost
            for b in range(BITS):
                if (lost >> b) & 1:
                    state.fresh[w] ^= graph.key[state.owner[k * BITS + b]]
    return lossy


@kernel(renewed, allocates=False)
def spread(graph: Graph, state: Topology, v: int) -> int:
    """Find the tasks that see v, in topological order, and what they depend on once v is placed: `moved`, `fresh`."""
    state.stamp[0] += 2
    stamp = state.stamp[0]  # stamp - 1 for what sees v, stamp where a producer is v or lost something
    slot, at, highest = state.slot[v], graph.position[v], graph.position[v]
    moved, seen = 0, False
    for k in range(state.words[0]):
        seen = seen or state.sees[v, k] != 0
    while at <= highest:
        u = graph.order[at]
        at += 1
        if u != v:
            if state.mark[u] < stamp - 1:
                continue
            state.moved[moved] = u
            moved += 1
            state.fresh[u] = state.digest[u] ^ graph.key[v]
        lossy = seen if u == v else state.mark[u] == stamp and renewed(graph, state, v, u)
        if u != v:
            if slot >= 0:
                state.sees[u, slot // BITS] |= 1 << (slot % BITS)
            if state.device[u] >= 0:
                continue
        for e in range(graph.out_start[u], graph.out_start[u + 1]):
            s = graph.out_target[e]
            state.mark[s] = max(state.mark[s], stamp if lossy else stamp - 1)
            highest = max(highest, graph.position[s])
    return moved


@kernel(allocates=False)
def take_slot(state: Topology, v: int) -> None:
    """Give a task a bit, as long as tasks not placed may see it."""
    if state.n_free[0] > 0:
        state.n_free[0] -= 1
        slot = state.free[state.n_free[0]]
    else:
        slot = state.n_slots[0]
        state.n_slots[0] += 1
        state.words[0] = slot // BITS + 1
    state.slot[v] = slot
    state.owner[slot] = v


@kernel(allocates=False)
def drop_slot(graph: Graph, state: Topology, x: int) -> None:
    """All consumers of x are placed: they depend on it for good, and nobody else can; its bit may be another's."""
    slot = state.slot[x]
    for e in range(graph.out_start[x], graph.out_start[x + 1]):
        state.sees[graph.out_target[e], slot // BITS] &= ~(1 << (slot % BITS))
    state.slot[x] = -1
    state.free[state.n_free[0]] = slot
    state.n_free[0] += 1


@kernel(list_in, list_out, first_of, look_up_from, count, recount, spread, take_slot, drop_slot, allocates=False)
def place(graph: Graph, state: Topology, v: int, d: int) -> None:
    """Put task v, not placed yet, onto device d."""
    state.placed[0] += 1
    state.n_gained[0] = 0
    for k in range(len(state.raised)):
        state.raised[k] = 0
    list_out(state, v)
    earliest = first_of(graph, state, state.digest[v])
    if earliest < len(graph.order):
        state.queue[0] = v
        look_up_from(graph, state, 1, earliest)
        count(state, state.digest[v], d, 1, 0)
    if state.waiting[v] > 0:
        take_slot(state, v)
    moved = spread(graph, state, v)
    recount(graph, state, moved, -1)
    state.device[v] = d
    for at in range(moved):
        w = state.moved[at]
        if state.device[w] >= 0:
            state.digest[w] = state.fresh[w]
        else:
            list_out(state, w)
            state.digest[w] = state.fresh[w]
            list_in(state, w)
            if state.total[w] > 0:
                state.total[w] = 0
                for k in range(len(state.parallel)):
                    state.parallel[k, w] = 0
    recount(graph, state, moved, 1)
    for e in range(graph.in_start[v], graph.in_start[v + 1]):
        q = graph.in_source[e]
        state.waiting[q] -= 1
        if state.waiting[q] == 0 and state.device[q] >= 0:
            drop_slot(graph, state, q)
