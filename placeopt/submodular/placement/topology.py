"""The numbers of parallel tasks in a growing placement: the partial topology of Carbonari et al. 2017.

Definitions (section 2.2). For a set S of placed tasks, the dependencies D_S[j] of task j are the tasks of S from which
a path leads to j without another task of S in between. A placed task j' is *parallel* to j if D[j] = D[j'] for the set
D = D_(S + j); two empty sets are equal. Neither then depends on the other: on a path from one to the other, the last
task of S + j before its end would be in only one of the two sets.

The number of placed tasks that are parallel to j is kept for each unplaced task j and each device, because greedy reads
all of them in each round. Placing a task v changes these numbers in three ways:

1. v becomes parallel to the unplaced tasks with its dependencies, except the ancestors of v: placing one of these would
   change the dependencies of v.
2. The *dependents* of v, to which a path leads from v without a placed task in between, now depend on v. They lose the
   dependencies that they had through v only. The numbers of the unplaced dependents restart from 0.
3. The placed dependents are no longer parallel to tasks with their old dependencies, but to those with their new ones.

Sets are compared by a hash, the exclusive or of a random 62-bit number per task. In a run with 36,000 tasks, two
different sets have equal hashes with a probability of about 1e-6. Lost dependencies are computed from bit sets, with
one bit for each placed task that can still be a dependency. Only dependencies of v can be lost, and only by tasks that
have v, or a task that lost something, as a producer.

Complexity of placing one task: O(s + l w + (p / 60 + 1) a + c), where s counts the dependents of v and their edges, l
those that lose something, w the words per bit set, p the placed dependents, a their unplaced ancestors, and c the tasks
that share their dependencies.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem

BITS = 60
"""Bits per word of a bit set, and number of tasks whose ancestors are marked at once."""


class Graph(NamedTuple):
    """A task graph as arrays for kernels: n tasks, e edges."""

    order: Int  # (n,) a topological order
    position: Int  # (n,) position of each task in it
    out_start: Int  # (n + 1,) the edges as CSR by producer
    out_target: Int  # (e,)
    in_start: Int  # (n + 1,) the edges as CSR by consumer
    in_source: Int  # (e,)
    key: Int  # (n,) a random number for each task


class Topology(NamedTuple):
    """The partial topology of a growing placement: n tasks, m devices, w words per bit set."""

    device: Int  # (n,) device of each placed task, -1 for the others
    digest: Int  # (n,) hash of the dependencies of each task
    depends: Int  # (n, w) bit set of the dependencies that have a slot
    words: Int  # (1,) number of columns of `depends` in use
    slot: Int  # (n,) bit of each placed task with unplaced consumers, -1 for the others
    owner: Int  # (n,) task of each bit
    free: Int  # (n,) released slots
    n_free: Int  # (1,) their number
    n_slots: Int  # (1,) number of slots ever used
    waiting: Int  # (n,) number of edges from each task to unplaced consumers
    first: Int  # (2**k,) first unplaced task of each bucket (hash mod 2**k); -1 ends a list
    after: Int  # (n,) next task in the bucket
    before: Int  # (n,) previous task in the bucket
    parallel: Int  # (m, n) number of tasks on each device parallel to each unplaced task
    total: Int  # (n,) sum of `parallel` over the devices
    raised: Int  # (m,) number of tasks on each device that became parallel to others with the last placement
    gained: Int  # (n,) unplaced tasks that gained a parallel task with the last placement
    n_gained: Int  # (1,) their number
    risen: Int  # (n,) last placement with which each task gained one
    placed: Int  # (1,) number of placements
    moved: Int  # (n,) dependents of the task placed last
    fresh: Int  # (n,) their new hashes
    mark: Int  # (n,) work space: stamps of visited tasks
    bits: Int  # (n,) work space: which tasks of `queue` each ancestor reaches
    queue: Int  # (n,) work space: tasks
    row: Int  # (w,) work space: a bit set
    stamp: Int  # (1,) last stamp used


def make_graph(problem: Problem) -> Graph:
    """The graph of a problem; the random numbers are the same in every run."""
    n = problem.n_tasks
    position = np.empty(n, dtype=np.int64)
    position[problem.order] = np.arange(n)
    key = np.random.default_rng(0).integers(1, 2**62, size=n, dtype=np.int64)
    source = problem.edge_source[problem.in_edge]
    return Graph(problem.order, position, problem.out_start, problem.edge_target, problem.in_start, source, key)


def make_topology(graph: Graph, m: int) -> Topology:
    """The empty placement, in which all tasks have no dependencies."""
    n = len(graph.order)
    buckets = 1 << max(2 * n - 1, 1).bit_length()
    first = np.full(buckets, -1, dtype=np.int64)
    tasks = np.arange(n, dtype=np.int64)
    if n:
        first[0] = 0

    per_task = "digest", "owner", "free", "total", "gained", "risen", "moved", "fresh", "mark", "bits", "queue"
    single = "words", "n_free", "n_slots", "n_gained", "placed", "stamp"
    return Topology(
        device=np.full(n, -1, dtype=np.int64),
        depends=np.zeros((n, n // BITS + 1), dtype=np.int64),  # unused columns are never touched and take no memory
        slot=np.full(n, -1, dtype=np.int64),
        waiting=np.diff(graph.out_start),
        first=first,
        after=np.where(tasks < n - 1, tasks + 1, -1),
        before=tasks - 1,
        parallel=np.zeros((m, n), dtype=np.int32),
        raised=np.zeros(m, dtype=np.int64),
        row=np.zeros(n // BITS + 1, dtype=np.int64),
        **{name: np.zeros(n, dtype=np.int64) for name in per_task},
        **{name: np.zeros(1, dtype=np.int64) for name in single},
    )


@kernel(allocates=False)
def bucket_insert(state: Topology, u: int) -> None:
    """Add task u to the bucket of its hash."""
    bucket = state.digest[u] & (len(state.first) - 1)
    head = state.first[bucket]
    state.after[u], state.before[u] = head, -1
    if head >= 0:
        state.before[head] = u
    state.first[bucket] = u


@kernel(allocates=False)
def bucket_remove(state: Topology, u: int) -> None:
    """Remove task u from the bucket of its hash."""
    before, after = state.before[u], state.after[u]
    if before >= 0:
        state.after[before] = after
    else:
        state.first[state.digest[u] & (len(state.first) - 1)] = after
    if after >= 0:
        state.before[after] = before


@kernel(allocates=False)
def count_parallel(state: Topology, digest: int, d: int, change: int, bit: int) -> None:
    """Count a task on d as parallel (change 1), or no longer parallel (-1), to the unplaced tasks with this hash.

    Its ancestors, which the last `mark_ancestors` marked with this bit, are excluded.
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
def earliest_of(graph: Graph, state: Topology, digest: int) -> int:
    """The earliest position of the unplaced tasks with this hash; n if there are none."""
    earliest = len(graph.order)
    u = state.first[digest & (len(state.first) - 1)]
    while u >= 0:
        if state.digest[u] == digest:
            earliest = min(earliest, graph.position[u])
        u = state.after[u]
    return earliest


@kernel(allocates=False)
def mark_ancestors(graph: Graph, state: Topology, tasks: int, earliest: int) -> None:
    """Mark the ancestors of the placed tasks queue[:tasks] that reach them through unplaced tasks, one bit for each.

    The search ends at the earliest position.
    """
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


@kernel(earliest_of, mark_ancestors, count_parallel, allocates=False)
def recount_moved(graph: Graph, state: Topology, moved: int, change: int) -> None:
    """Count the placed tasks of moved[:moved] as parallel (change 1), or no longer parallel (-1), to unplaced tasks."""
    n = len(graph.order)
    tasks, earliest = 0, n
    for k in range(moved):
        p = state.moved[k]
        if state.device[p] >= 0:
            position = earliest_of(graph, state, state.digest[p])
            if position < n:
                earliest = min(earliest, position)
                state.queue[tasks] = p
                tasks += 1
        if tasks == BITS or (k == moved - 1 and tasks > 0):
            mark_ancestors(graph, state, tasks, earliest)
            for t in range(tasks):
                p = state.queue[t]
                count_parallel(state, state.digest[p], state.device[p], change, t)
            tasks, earliest = 0, n


@kernel(allocates=False)
def drop_lost(graph: Graph, state: Topology, v: int, w: int) -> bool:
    """Remove the dependencies that w, a dependent of v, has through v only; whether there are any."""
    words = state.words[0]
    row, rest = state.row, 0
    for k in range(words):
        row[k] = state.depends[w, k] & state.depends[v, k]
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
                row[k] &= ~state.depends[q, k]
                rest |= row[k]
    lossy = False
    for k in range(words):
        lost = row[k]
        if lost != 0:
            lossy = True
            state.depends[w, k] &= ~lost
            for b in range(BITS):
                if (lost >> b) & 1:
                    state.fresh[w] ^= graph.key[state.owner[k * BITS + b]]
    return lossy


@kernel(drop_lost, allocates=False)
def update_dependents(graph: Graph, state: Topology, v: int) -> int:
    """Find the dependents of v in topological order (`moved`), and update their dependencies (`fresh`)."""
    state.stamp[0] += 2
    stamp = state.stamp[0]  # stamp - 1: dependent of v; stamp: moreover, a producer is v or lost something
    slot, at, highest = state.slot[v], graph.position[v], graph.position[v]
    moved, seen = 0, False
    for k in range(state.words[0]):
        seen = seen or state.depends[v, k] != 0
    while at <= highest:
        u = graph.order[at]
        at += 1
        if u != v:
            if state.mark[u] < stamp - 1:
                continue
            state.moved[moved] = u
            moved += 1
            state.fresh[u] = state.digest[u] ^ graph.key[v]
        lossy = seen if u == v else state.mark[u] == stamp and drop_lost(graph, state, v, u)
        if u != v:
            if slot >= 0:
                state.depends[u, slot // BITS] |= 1 << (slot % BITS)
            if state.device[u] >= 0:
                continue
        for e in range(graph.out_start[u], graph.out_start[u + 1]):
            s = graph.out_target[e]
            state.mark[s] = max(state.mark[s], stamp if lossy else stamp - 1)
            highest = max(highest, graph.position[s])
    return moved


@kernel(allocates=False)
def take_slot(state: Topology, v: int) -> None:
    """Assign a bit to a task, as long as unplaced tasks may depend on it."""
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
    """Release the bit of x, all of whose consumers are placed: no other task can depend on it."""
    slot = state.slot[x]
    for e in range(graph.out_start[x], graph.out_start[x + 1]):
        state.depends[graph.out_target[e], slot // BITS] &= ~(1 << (slot % BITS))
    state.slot[x] = -1
    state.free[state.n_free[0]] = slot
    state.n_free[0] += 1


@kernel(
    bucket_insert, bucket_remove, earliest_of, mark_ancestors, count_parallel, recount_moved, update_dependents,
    take_slot, drop_slot, allocates=False,
)  # fmt: skip
def place(graph: Graph, state: Topology, v: int, d: int) -> None:
    """Place the unplaced task v on device d."""
    state.placed[0] += 1
    state.n_gained[0] = 0
    state.raised[:] = 0
    bucket_remove(state, v)
    earliest = earliest_of(graph, state, state.digest[v])
    if earliest < len(graph.order):
        state.queue[0] = v
        mark_ancestors(graph, state, 1, earliest)
        count_parallel(state, state.digest[v], d, 1, 0)
    if state.waiting[v] > 0:
        take_slot(state, v)
    moved = update_dependents(graph, state, v)
    recount_moved(graph, state, moved, -1)
    state.device[v] = d
    for at in range(moved):
        w = state.moved[at]
        if state.device[w] >= 0:
            state.digest[w] = state.fresh[w]
        else:
            bucket_remove(state, w)
            state.digest[w] = state.fresh[w]
            bucket_insert(state, w)
            if state.total[w] > 0:
                state.total[w] = 0
                state.parallel[:, w] = 0
    recount_moved(graph, state, moved, 1)
    for e in range(graph.in_start[v], graph.in_start[v + 1]):
        q = graph.in_source[e]
        state.waiting[q] -= 1
        if state.waiting[q] == 0 and state.device[q] >= 0:
            drop_slot(graph, state, q)
