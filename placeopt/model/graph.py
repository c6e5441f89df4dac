"""Task graphs: topological order, cycles, longest paths, connected components and siblings."""

from __future__ import annotations

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int


@kernel()
def topological_order(out_start: Int, edge_target: Int, in_degree: Int, order: Int) -> int:
    """Fill `order` with a topological order and return its length (less than n if there is a cycle).

    Kahn's algorithm, first in first out: sources by index, then tasks as they become ready.
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
    """The tasks of one cycle in edge order, the smallest index first; empty without a cycle."""
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
    # Every stuck task has a stuck producer, so that a walk from producer to producer closes a cycle.
    producer = {int(b): int(a) for a, b in pairs[::-1] if stuck[a] and stuck[b]}
    walk = [int(np.flatnonzero(stuck)[0])]
    seen = {walk[0]: 0}
    while producer[walk[-1]] not in seen:
        walk.append(producer[walk[-1]])
        seen[walk[-1]] = len(walk) - 1
    around = walk[seen[producer[walk[-1]]] :][::-1]
    first = around.index(min(around))
    return around[first:] + around[:first]


@kernel(allocates=False)
def longest_paths(order: Int, out_start: Int, edge_target: Int, weight: Int, before: Int) -> None:
    """Raise `before` (n,) to the largest sum of weights (n,) over a path that ends just before each task.

    Its initial values are lower limits: paths may start there.
    """
    for i in order:
        length = before[i] + weight[i]
        for e in range(out_start[i], out_start[i + 1]):
            j = edge_target[e]
            before[j] = max(before[j], length)


@kernel(allocates=False)
def join_components(left: Int, right: Int, parent: Int) -> None:
    """Unite the sets of every pair; `parent` (n,), initially 0..n-1, ends as the smallest member of each set."""
    for e in range(len(left)):
        a, b = left[e], right[e]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        parent[max(a, b)] = min(a, b)
    for i in range(len(parent)):
        parent[i] = parent[parent[i]]  # the smallest member has the lowest index and is final by then


def components(count: int, left: Int, right: Int) -> tuple[Int, int]:
    """(count,) the connected component of each node, 0.. in order of first appearance, and their number."""
    parent = np.arange(count)
    join_components.select(2 * (len(left) + count))(left, right, parent)
    smallest, label = np.unique(parent, return_inverse=True)
    return label.astype(np.int64), len(smallest)


def path_lengths(order: Int, out_start: Int, edge_target: Int, weight: Int, least: Int | None = None) -> Int:
    """(n,) the largest sum of weights over a path that ends just before each task, at least `least` (n,)."""
    before = np.zeros(len(order), dtype=np.int64) if least is None else least.copy()
    longest_paths.select(2 * (len(order) + len(edge_target)))(order, out_start, edge_target, weight, before)
    return before


@kernel()
def split_siblings(out_start: Int, edge_target: Int, label: Int) -> None:
    """Set equal labels (n,), initially 0, for tasks with the same set of producers, and different ones for others.

    Partition refinement: each producer splits its consumers off every class. O(n + e).
    """
    last = np.full(len(edge_target) + 1, -1)  # the producer that created or last split a class
    part = np.zeros(len(edge_target) + 1, dtype=np.int64)  # the class of its consumers since then
    fresh = 1
    for i in range(len(out_start) - 1):
        for e in range(out_start[i], out_start[i + 1]):
            j = edge_target[e]
            c = label[j]
            if last[c] != i:
                last[c], part[c] = i, fresh
                last[fresh], part[fresh] = i, fresh  # a repeated edge changes nothing
                fresh += 1
            label[j] = part[c]


def siblings(out_start: Int, edge_target: Int) -> Int:
    """(n,) labels that two tasks share if and only if they have the same set of producers, perhaps an empty one.

    Siblings never depend on each other: the last producer on a path between them would produce for both and close a
    cycle.
    """
    label = np.zeros(len(out_start) - 1, dtype=np.int64)
    split_siblings.select(2 * (len(label) + len(edge_target)))(out_start, edge_target, label)
    return label
