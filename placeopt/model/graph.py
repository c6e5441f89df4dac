"""Task graphs: topological order, cycles, longest paths, connected components and siblings."""

from __future__ import annotations

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int


def find_cycle(pairs: Int, n: int) -> list[int]:
    """The tasks of one cycle in edge order, the smallest index first; empty without a cycle."""
    by_source = np.argsort(pairs[:, 0], kind="stable")
    source, target = pairs[by_source, 0], pairs[by_source, 1]
    out_start = np.searchsorted(source, np.arange(n + 1)).astype(np.int64)
    placed = engine.topological_order(out_start, target.astype(np.int64))
    if len(placed) == n:
        return []
    stuck = np.ones(n, dtype=np.bool_)
    stuck[placed] = False
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


def components(count: int, left: Int, right: Int) -> tuple[Int, int]:
    """(count,) the connected component of each node, 0.. in order of first appearance, and their number."""
    parent = engine.components(np.ascontiguousarray(left), np.ascontiguousarray(right), count)
    smallest, label = np.unique(parent, return_inverse=True)
    return label.astype(np.int64), len(smallest)


def path_lengths(order: Int, out_start: Int, edge_target: Int, weight: Int, least: Int | None = None) -> Int:
    """(n,) the largest sum of weights over a path that ends just before each task, at least `least` (n,)."""
    before = np.zeros(len(order), dtype=np.int64) if least is None else least
    order, out_start, edge_target, weight = (
        np.ascontiguousarray(each) for each in (order, out_start, edge_target, weight)
    )
    return engine.raise_paths(order, out_start, edge_target, weight, None, before)


def siblings(out_start: Int, edge_target: Int) -> Int:
    """(n,) labels that two tasks share if and only if they have the same set of producers, perhaps an empty one.

    Siblings never depend on each other: the last producer on a path between them would produce for both and close a
    cycle.
    """
    return engine.siblings(out_start, edge_target)
