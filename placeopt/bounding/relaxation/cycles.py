"""Cycle cuts: to be on the same device is an equivalence relation.

If all pairs of a cycle except one stay on one device, so does the last. For each pair q of a cycle,

    [q is on different devices] <= sum over the other pairs of [on different devices].

A pool counts as one device. The most violated cycle through a pair is a shortest path between its groups that avoids
the pair, with lengths sum_ab w[q,ab].
"""

from __future__ import annotations

import numpy as np

from placeopt.bounding.engines import BuildStoppedError
from placeopt.bounding.engines.linear_program import Row, row
from placeopt.bounding.relaxation.model import GroupGraph, Relaxation
from placeopt.kernels import kernel
from placeopt.model.arrays import Float, Int

SMALLEST = 0.02
"""Least violation of a cut that is added."""

STEPS = 1_000_000
"""Maximum number of neighbours visited between two polls of the stop signal."""

LONGEST = 256
"""Maximum number of pairs on a detour."""


class CycleCuts:
    """Finds violated cycles."""

    def __init__(self, relaxation: Relaxation, network: GroupGraph) -> None:
        self.relaxation, self.network = relaxation, network

    def violated(self, x: Float) -> list[tuple[float, Row]]:
        """Violated cycles and their violation."""
        relaxation, network = self.relaxation, self.network
        moved = np.maximum(relaxation.moved(x), 0.0)
        pairs = np.flatnonzero(moved > SMALLEST)
        around = np.empty((len(pairs), LONGEST), dtype=np.int64)
        count, length = np.zeros(len(pairs), dtype=np.int64), np.zeros(len(pairs))
        search = shortest_detours.select(len(pairs) * 16 * len(network.start))
        limit = moved[pairs] - SMALLEST
        piece = max(STEPS // max(len(network.neighbour), 1), 1)
        for begin in range(0, len(pairs), piece):
            if relaxation.program.should_stop():
                raise BuildStoppedError
            part = slice(begin, begin + piece)
            search(
                network.start, network.neighbour, network.pair, relaxation.low, relaxation.high, moved, pairs[part],
                limit[part], around[part], count[part], length[part],
            )  # fmt: skip
        found = []
        for place in np.flatnonzero(count).tolist():
            there = relaxation.w[pairs[place]]
            others = relaxation.w[around[place, : count[place]]].reshape(-1)
            signs = np.concatenate([np.full(len(there), -1), np.ones(len(others), np.int64)])
            excess = float(moved[pairs[place]] - length[place])
            found.append((excess, row(np.concatenate([there, others]), signs, 0)))
        return found


@kernel()
def shortest_detours(
    start: Int, neighbour: Int, pair: Int, low: Int, high: Int, moved: Float, pairs: Int, limit: Float,
    around: Int, count: Int, length: Float,
) -> None:  # fmt: skip
    """Fill row p of `around` with the shortest path between the groups of pairs[p] that avoids this pair.

    Only if it is shorter than limit[p] and fits into a row. `count` is the number of its pairs, 0 if none is found;
    `length` is their total. Dijkstra's algorithm from the lower group.
    """
    groups = len(start) - 1
    stamp = np.full(groups, -1, dtype=np.int64)
    best = np.zeros(groups)
    came = np.zeros(groups, dtype=np.int64)
    came_from = np.zeros(groups, dtype=np.int64)
    waiting = np.zeros(groups, dtype=np.int64)
    for p in range(len(pairs)):
        closed, target = 2 * p + 1, high[pairs[p]]
        count[p] = 0
        waiting[0], frontier = low[pairs[p]], 1
        stamp[waiting[0]], best[waiting[0]] = closed - 1, 0.0
        while frontier > 0:
            chosen = 0
            for place in range(1, frontier):
                if best[waiting[place]] < best[waiting[chosen]]:
                    chosen = place
            g = waiting[chosen]
            frontier -= 1
            waiting[chosen] = waiting[frontier]
            stamp[g] = closed
            if g == target:
                steps = 0
                while g != low[pairs[p]] and steps < around.shape[1]:
                    around[p, steps] = came[g]
                    g = came_from[g]
                    steps += 1
                if g == low[pairs[p]]:
                    count[p], length[p] = steps, best[target]
                break
            for position in range(start[g], start[g + 1]):
                h, q = neighbour[position], pair[position]
                reached = best[g] + moved[q]
                if q == pairs[p] or stamp[h] == closed or reached >= limit[p]:
                    continue
                if stamp[h] != closed - 1:
                    stamp[h] = closed - 1
                    waiting[frontier] = h
                    frontier += 1
                elif reached >= best[h]:
                    continue
                best[h], came[h], came_from[h] = reached, q, g
