"""The shape of a task graph: levels and connected components."""

from __future__ import annotations

import numpy as np

from placeopt.ir import Int
from placeopt.kernels import kernel


@kernel()
def longest_paths(order: Int, out_start: Int, edge_target: Int, weight: Int, before: Int) -> None:
    """Raise `before` (n,) to the largest sum of weights (n,) over a path that ends just before each task.

    What it holds at first stands for what comes before the task anyway.
    """
    for i in order:
        length = before[i] + weight[i]
        for e in range(out_start[i], out_start[i + 1]):
            j = edge_target[e]
            before[j] = max(before[j], length)


@kernel()
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
