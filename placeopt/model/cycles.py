"""A topological order of a graph, and a cycle where there is none."""

from __future__ import annotations

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int


@kernel()
def topological_order(out_start: Int, edge_target: Int, in_degree: Int, order: Int) -> int:
    """Fill `order` with a topological order and return how many tasks it holds (fewer than n: a cycle).

    Kahn's algorithm, first in first out: tasks ready from the start by index, then as they become ready.
    """
    waiting = in_degree.copy()
    tail = 0
    for i in range(len(waiting)):
        if waiting[i] == 0:
            order[tail] = i
            tail += 1
    head = 0
    while head < tail:
        i = order[head]
        head += 1
        for k in range(out_start[i], out_start[i + 1]):
            j = edge_target[k]
            waiting[j] -= 1
            if waiting[j] == 0:
                order[tail] = j
                tail += 1
    return tail


def find_cycle(pairs: Int, n: int) -> list[int]:
    """The tasks of one cycle in the order of its edges, the smallest index first; empty without a cycle."""
    by_source = np.argsort(pairs[:, 0], kind="stable")
    source, target = pairs[by_source, 0], pairs[by_source, 1]
    out_start = np.searchsorted(source, np.arange(n + 1))
    order = np.empty(n, dtype=np.int64)
    in_degree = np.bincount(target, minlength=n)
    placed = topological_order.select(n + len(pairs))(out_start, target, in_degree, order)
    if placed == n:
        return []
    stuck = np.ones(n, dtype=np.bool_)
    stuck[order[:placed]] = False
    # Every stuck task has a stuck producer: walking from producer to producer must come around.
    producer = {int(b): int(a) for a, b in pairs[::-1] if stuck[a] and stuck[b]}
    walk = [int(np.flatnonzero(stuck)[0])]
    seen = {walk[0]: 0}
    while producer[walk[-1]] not in seen:
        walk.append(producer[walk[-1]])
        seen[walk[-1]] = len(walk) - 1
    around = walk[seen[producer[walk[-1]]] :][::-1]
    first = around.index(min(around))
    return around[first:] + around[:first]
