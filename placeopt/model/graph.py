"""The shape of a task graph: levels, connected components and siblings."""

from __future__ import annotations

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int


@kernel(allocates=False)
def longest_paths(order: Int, out_start: Int, edge_target: Int, weight: Int, before: Int) -> None:
    """Raise `before` (n,) to the largest sum of weights (n,) over a path that ends just before each task.

    What it holds at first stands for what comes before the task anyway.
    """
    for i in order:
        length = before[i] + weight[i]
        for e in range(out_start[i], out_start[i + 1]):
            j = edge_target[e]
            before[j] = max(before[j], length)


@kernel(allocates=False)
def join_components(left: Int, right: Int, parent: Int) -> None:
    """Unite the sets of every pair; `parent` (n,), each its own at first, ends as the smallest member of its set."""
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
        parent[i] = parent[parent[i]]  # members come after their smallest, which is final by then


def components(count: int, left: Int, right: Int) -> tuple[Int, int]:
    """(count,) the connected component of each node, 0.. in order of first appearance, and how many there are."""
    parent = np.arange(count)
    join_components.select(2 * (len(left) + count))(left, right, parent)
    smallest, label = np.unique(parent, return_inverse=True)
    return label.astype(np.int64), len(smallest)


def path_lengths(order: Int, out_start: Int, edge_target: Int, weight: Int, least: Int | None = None) -> Int:
    """(n,) the largest sum of weights over a path that ends just before each task.

    `least` (n,), 0 where not given, is what comes before each task anyway; paths start with it.
    """
    before = np.zeros(len(order), dtype=np.int64) if least is None else least.copy()
    longest_paths.select(2 * (len(order) + len(edge_target)))(order, out_start, edge_target, weight, before)
    return before


@kernel()
def split_siblings(out_start: Int, edge_target: Int, label: Int) -> None:
    """Give tasks the same `label` (n,), all 0 at first, if and only if they have the same producers.

    Partition refinement: each producer parts those of its consumers in every class from the rest. O(n + e).
    """
    last = np.full(len(edge_target) + 1, -1)  # the producer that a class was made for or last parted by
    part = np.zeros(len(edge_target) + 1, dtype=np.int64)  # and what became of its consumers
    fresh = 1
    for i in range(len(out_start) - 1):
        for e in range(out_start[i], out_start[i + 1]):
            j = edge_target[e]
            c = label[j]
            if last[c] != i:
                last[c], part[c] = i, fresh
                last[fresh], part[fresh] = i, fresh  # an edge stated twice changes nothing
                fresh += 1
            label[j] = part[c]


def siblings(out_start: Int, edge_target: Int) -> Int:
    """(n,) labels that two tasks share if and only if they have the same set of producers; those without any do too.

    Neither of two siblings depends on the other: the last producer on a path between them would be a producer of both
    and close a cycle.
    """
    label = np.zeros(len(out_start) - 1, dtype=np.int64)
    split_siblings.select(2 * (len(label) + len(edge_target)))(out_start, edge_target, label)
    return label
