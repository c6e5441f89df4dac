"""Propagate start windows and clusters until a makespan is refuted or nothing changes.

The rules are those of `placeopt.bounding.destructive`. The tasks whose windows or clusters changed wait in a queue. All
changes during a probe are recorded in a trail, so that they can be undone.
"""

from __future__ import annotations

from typing import NamedTuple

from placeopt.kernels import kernel
from placeopt.model.arrays import Int

NEVER = 1 << 61
"""Start on a closed class; above every real tick."""

PAIRS = 1 << 16
"""Maximum number of pairs of tasks of two clusters that are compared; larger clusters count as compatible."""

SET = 1024
"""Maximum number of tasks of a cluster for which sets of tasks in an interval are examined."""

START, LATEST, PAYS, CLUSTER, NEXT, SIZE, HELD = range(7)
"""Arrays of `State` in the trail."""

FIRST, WAITING, LENGTH, RECORD, STEPS = range(5)
"""Entries of `State.counts`: position and number of queued tasks, entries of the trail, whether it is on, and steps."""


class Facts(NamedTuple):
    """The problem, by classes of devices."""

    in_start: Int  # (n + 1,) and (e,): in-edges of task v are in_edge[in_start[v] : in_start[v + 1]]
    in_edge: Int
    out_start: Int  # (n + 1,): out-edges of task v are out_start[v] to out_start[v + 1] - 1
    source: Int  # (e,) tasks
    target: Int
    duration: Int  # (n, k) ticks
    move: Int  # (e, k, k) ticks of the transfer from a device of the first class to another device of the second
    capacity: Int  # (k,) bytes
    apart_start: Int  # (n + 1,) and the tasks that are separated from each task
    apart: Int


class State(NamedTuple):
    """What is known of all schedules within the makespan that is to be refuted."""

    start: Int  # (n, k) ticks: earliest start on the class; NEVER if the task does not run there
    latest: Int  # (n, k) ticks: latest start
    pays: Int  # (e,) 1 if the ends of the edge run on different devices
    cluster: Int  # (n,) tasks with the same number run on one device
    next: Int  # (n,) circular list of the tasks of each cluster
    size: Int  # (n,) tasks of each cluster
    held: Int  # (n,) bytes that each cluster takes permanently
    queue: Int  # (n,) circular
    queued: Int  # (n,) 0 or 1
    trail: Int  # (t, 3): array, index, old value
    counts: Int  # (5,)


@kernel(allocates=False)
def record(state: State, array: int, index: int, old: int) -> bool:
    """Record a change; False if the trail is full, so that the change must not be made."""
    if not state.counts[RECORD]:
        return True
    at = state.counts[LENGTH]
    if at == len(state.trail):
        return False
    state.trail[at, 0] = array
    state.trail[at, 1] = index
    state.trail[at, 2] = old
    state.counts[LENGTH] = at + 1
    return True


@kernel(allocates=False)
def enqueue(state: State, v: int) -> None:
    """Append a task to the queue unless it waits there."""
    if not state.queued[v]:
        state.queued[v] = 1
        state.queue[(state.counts[FIRST] + state.counts[WAITING]) % len(state.queue)] = v
        state.counts[WAITING] += 1


@kernel(record, enqueue, allocates=False)
def raise_start(state: State, v: int, c: int, t: int) -> None:
    """Let task v start on class c at t or later."""
    if t > state.start[v, c] and record(state, START, v * state.start.shape[1] + c, state.start[v, c]):
        state.start[v, c] = min(t, NEVER)
        enqueue(state, v)


@kernel(record, enqueue, allocates=False)
def lower_latest(state: State, v: int, c: int, t: int) -> None:
    """Let task v start on class c at t or earlier."""
    t = max(t, -1)
    if t < state.latest[v, c] and record(state, LATEST, v * state.start.shape[1] + c, state.latest[v, c]):
        state.latest[v, c] = t
        enqueue(state, v)


@kernel(raise_start, allocates=False)
def close(state: State, v: int, c: int) -> None:
    """Let no task of v's cluster run on class c."""
    x = v
    while True:
        raise_start(state, x, c, NEVER)
        x = state.next[x]
        if x == v:
            break


@kernel(allocates=False)
def disjoint(facts: Facts, state: State, i: int, j: int, c: int) -> bool:
    """Whether i and j can run one after the other on a device of class c."""
    p, q = facts.duration[i, c], facts.duration[j, c]
    if p == 0 or q == 0 or state.start[i, c] + p <= state.latest[j, c]:
        return True
    return bool(state.start[j, c] + q <= state.latest[i, c])


@kernel(disjoint, allocates=False)
def compatible(facts: Facts, state: State, u: int, w: int) -> bool:
    """Whether the clusters of u and w may run on one device, as far as their pairs show."""
    if state.size[state.cluster[u]] > state.size[state.cluster[w]]:
        u, w = w, u
    a, b = state.cluster[u], state.cluster[w]
    state.counts[STEPS] += state.size[a]
    if state.size[a] * state.size[b] > PAIRS:
        return True
    i = u
    while True:
        for position in range(facts.apart_start[i], facts.apart_start[i + 1]):
            if state.cluster[facts.apart[position]] == b:
                return False
        for e in range(facts.out_start[i], facts.out_start[i + 1]):
            if state.pays[e] and state.cluster[facts.target[e]] == b:
                return False
        for position in range(facts.in_start[i], facts.in_start[i + 1]):
            e = facts.in_edge[position]
            if state.pays[e] and state.cluster[facts.source[e]] == b:
                return False
        i = state.next[i]
        if i == u:
            break
    for c in range(len(facts.capacity)):
        if state.start[u, c] >= NEVER or state.start[w, c] >= NEVER:
            continue
        if state.held[a] + state.held[b] > facts.capacity[c]:
            continue
        fits = True
        while fits:
            j = w
            while fits:
                state.counts[STEPS] += 1
                fits = disjoint(facts, state, i, j, c)
                j = state.next[j]
                if j == w:
                    break
            i = state.next[i]
            if i == u:
                break
        if fits:
            return True
        i = u
    return False


@kernel(record, enqueue, allocates=False)
def merge(facts: Facts, state: State, u: int, w: int) -> None:
    """Let the clusters of u and w, which differ, run on one device, unless the trail has no room for that."""
    if state.size[state.cluster[u]] < state.size[state.cluster[w]]:
        u, w = w, u
    a, b = state.cluster[u], state.cluster[w]
    changes = (len(facts.capacity) + 1) * (state.size[a] + state.size[b]) + 4
    if state.counts[RECORD] and len(state.trail) - state.counts[LENGTH] < changes:
        return
    record(state, SIZE, a, state.size[a])
    record(state, HELD, a, state.held[a])
    state.size[a] += state.size[b]
    state.held[a] += state.held[b]
    x = w
    while True:
        record(state, CLUSTER, x, b)
        state.cluster[x] = a
        x = state.next[x]
        if x == w:
            break
    record(state, NEXT, u, state.next[u])
    record(state, NEXT, w, state.next[w])
    after = state.next[u]
    state.next[u] = state.next[w]
    state.next[w] = after
    # A class that is closed for a task of one cluster, is closed for all.
    for c in range(len(facts.capacity)):
        if state.start[u, c] >= NEVER or state.start[w, c] >= NEVER or state.held[a] > facts.capacity[c]:
            x = u
            while True:
                if state.start[x, c] < NEVER:
                    record(state, START, x * len(facts.capacity) + c, state.start[x, c])
                    state.start[x, c] = NEVER
                x = state.next[x]
                if x == u:
                    break
    x = u
    while True:
        enqueue(state, x)
        x = state.next[x]
        if x == u:
            break


@kernel(raise_start, lower_latest, close, disjoint, allocates=False)
def sequence(facts: Facts, state: State, v: int) -> None:
    """Order v and the other tasks of its cluster on their device, class by class."""
    members = state.size[state.cluster[v]]
    for c in range(len(facts.capacity)):
        p = facts.duration[v, c]
        if p == 0:
            continue
        j = state.next[v]
        while j != v and state.start[v, c] < NEVER:
            q = facts.duration[j, c]
            state.counts[STEPS] += 1
            if not disjoint(facts, state, v, j, c):
                close(state, v, c)
            elif q > 0 and state.start[j, c] + q > state.latest[v, c]:
                raise_start(state, j, c, state.start[v, c] + p)
                lower_latest(state, v, c, state.latest[j, c] - p)
            elif q > 0 and state.start[v, c] + p > state.latest[j, c]:
                raise_start(state, v, c, state.start[j, c] + q)
                lower_latest(state, j, c, state.latest[v, c] - q)
            j = state.next[j]
        if not 3 <= members <= SET or state.start[v, c] >= NEVER:
            continue
        # All work that must lie between v's earliest start and the latest end of some member.
        begin = state.start[v, c]
        j = v
        while True:
            end = state.latest[j, c] + facts.duration[j, c]
            work, x = 0, v
            while True:
                if state.start[x, c] >= begin and state.latest[x, c] + facts.duration[x, c] <= end:
                    work += facts.duration[x, c]
                x = state.next[x]
                if x == v:
                    break
            state.counts[STEPS] += members
            if work > end - begin and end >= begin:
                close(state, v, c)
                break
            j = state.next[j]
            if j == v:
                break


@kernel(raise_start, lower_latest, merge, compatible, allocates=False)
def relate(facts: Facts, state: State, e: int) -> bool:
    """Apply the rules of an edge; False if the makespan is refuted."""
    u, w = facts.source[e], facts.target[e]
    k = len(facts.capacity)
    state.counts[STEPS] += k * k
    one, other = state.cluster[u] == state.cluster[w], state.pays[e] == 1
    if one and other:
        return False
    late = True  # whether the data of u comes too late from another device
    for c in range(k):
        if state.start[w, c] >= NEVER:
            continue
        t = NEVER
        if not one:
            for a in range(k):
                if state.start[u, a] < NEVER:
                    t = min(t, state.start[u, a] + facts.duration[u, a] + facts.move[e, a, c])
        late = late and t > state.latest[w, c]
        if not other:
            t = min(t, state.start[u, c] + facts.duration[u, c])
        raise_start(state, w, c, t)
    for a in range(k):
        if state.start[u, a] >= NEVER:
            continue
        t = -1
        if not one:
            for c in range(k):
                if state.start[w, c] < NEVER:
                    t = max(t, state.latest[w, c] - facts.move[e, a, c])
        if not other and state.start[w, a] < NEVER:
            t = max(t, state.latest[w, a])
        lower_latest(state, u, a, t - facts.duration[u, a])
    if one or other:
        return not (other and late)
    if not late:
        return True
    if not compatible(facts, state, u, w):
        return False
    merge(facts, state, u, w)
    return True


@kernel(record, enqueue, allocates=False)
def separate(facts: Facts, state: State, e: int) -> None:
    """Let the ends of an edge run on different devices."""
    if record(state, PAYS, e, 0):
        state.pays[e] = 1
        enqueue(state, facts.source[e])
        enqueue(state, facts.target[e])


@kernel(separate, compatible, allocates=False)
def part(facts: Facts, state: State, e: int) -> None:
    """Let the ends of an edge run on different devices if their clusters are not compatible."""
    u, w = facts.source[e], facts.target[e]
    if state.pays[e] or state.cluster[u] == state.cluster[w] or compatible(facts, state, u, w):
        return
    separate(facts, state, e)


@kernel(close, sequence, relate, part, allocates=False)
def examine(facts: Facts, state: State, v: int) -> bool:
    """Apply all rules to a task; False if the makespan is refuted."""
    for c in range(len(facts.capacity)):
        if state.start[v, c] < NEVER and state.start[v, c] > state.latest[v, c]:
            close(state, v, c)
    if state.next[v] != v:
        sequence(facts, state, v)
    for e in range(facts.out_start[v], facts.out_start[v + 1]):
        if not relate(facts, state, e):
            return False
    for position in range(facts.in_start[v], facts.in_start[v + 1]):
        if not relate(facts, state, facts.in_edge[position]):
            return False
    for e in range(facts.out_start[v], facts.out_start[v + 1]):
        part(facts, state, e)
    for position in range(facts.in_start[v], facts.in_start[v + 1]):
        part(facts, state, facts.in_edge[position])
    runs = False
    for c in range(len(facts.capacity)):
        runs = runs or state.start[v, c] < NEVER
    return runs


@kernel(examine, allocates=False)
def propagate(facts: Facts, state: State, limit: int) -> bool:
    """Apply the rules to all queued tasks, and stop after about `limit` steps; False if the makespan is refuted.

    The queue is empty afterwards.
    """
    state.counts[STEPS] = 0
    possible = True
    while state.counts[WAITING] > 0:
        v = state.queue[state.counts[FIRST]]
        state.counts[FIRST] = (state.counts[FIRST] + 1) % len(state.queue)
        state.counts[WAITING] -= 1
        state.queued[v] = 0
        if possible and state.counts[STEPS] <= limit:
            possible = examine(facts, state, v)
    return possible


@kernel(allocates=False)
def undo(state: State) -> None:
    """Undo all changes in the trail."""
    k = state.start.shape[1]
    for at in range(state.counts[LENGTH] - 1, -1, -1):
        array, index, old = state.trail[at, 0], state.trail[at, 1], state.trail[at, 2]
        if array == START:
            state.start[index // k, index % k] = old
        elif array == LATEST:
            state.latest[index // k, index % k] = old
        elif array == PAYS:
            state.pays[index] = old
        elif array == CLUSTER:
            state.cluster[index] = old
        elif array == NEXT:
            state.next[index] = old
        elif array == SIZE:
            state.size[index] = old
        else:
            state.held[index] = old
    state.counts[LENGTH] = 0


@kernel(compatible, merge, separate, propagate, undo, allocates=False)
def holds(facts: Facts, state: State, e: int, apart: bool, limit: int) -> bool:
    """Whether the ends of an edge may run apart, or together; the state is not changed."""
    if not apart and not compatible(facts, state, facts.source[e], facts.target[e]):
        return False
    state.counts[RECORD] = 1
    if apart:
        separate(facts, state, e)
    else:
        merge(facts, state, facts.source[e], facts.target[e])
    possible = propagate(facts, state, limit)
    undo(state)
    state.counts[RECORD] = 0
    return possible


@kernel(compatible, merge, separate, propagate, holds, allocates=False)
def refute(facts: Facts, state: State, edges: Int, limit: int, most: int) -> int:
    """Propagate, then probe some edges; -1 if the makespan is refuted, otherwise the number of edges decided.

    A probe takes about `limit` steps; what follows from a decision, about `most`.
    """
    if not propagate(facts, state, most):
        return -1
    decided = 0
    for e in edges:
        u, w = facts.source[e], facts.target[e]
        if state.pays[e] or state.cluster[u] == state.cluster[w]:
            continue
        if not holds(facts, state, e, True, limit):
            if not compatible(facts, state, u, w):
                return -1
            merge(facts, state, u, w)
        elif not holds(facts, state, e, False, limit):
            separate(facts, state, e)
        else:
            continue
        decided += 1
        if not propagate(facts, state, most):
            return -1
    return decided
