"""Cycles of pairs: to be on the same device is an equivalence.

Around a cycle of pairs, if all pairs but one stay on a device, so does the last: for each pair q of the cycle

    [q is on different devices] <= sum over the other pairs of [on different devices].

A pool counts as one device, here as everywhere in the relaxation. The most violated cycle through a pair is a
shortest path between its groups around it, in the lengths sum_ab w[q,ab].
"""

from __future__ import annotations

import numpy as np

from placeopt.bounding.engines import BuildStoppedError
from placeopt.bounding.engines.linear_program import Row, row
from placeopt.bounding.relaxation.model import Relaxation
from placeopt.bounding.relaxation.network import Network
from placeopt.kernels import kernel
from placeopt.model.arrays import Float, Int

SMALLEST = 0.02
"""Violation from which on a cycle is worth a row."""

STEPS = 1_000_000
"""Neighbours looked at, at most, between two looks at whether to stop."""

LONGEST = 256
"""Pairs on a way around, at most."""


class Cycles:
    """Finds the cycles that a point violates."""

    def __init__(self, relaxation: Relaxation, network: Network) -> None:
        self.relaxation, self.network = relaxation, network

    def violated(self, x: Float) -> list[tuple[float, Row]]:
        """Violated cycles and by how much."""
        relaxation, network = self.relaxation, self.network
        moved = np.maximum(relaxation.moved(x), 0.0)
        pairs = np.flatnonzero(moved > SMALLEST)
        around = np.empty((len(pairs), LONGEST), dtype=np.int64)
        count, length = np.zeros(len(pairs), dtype=np.int64), np.zeros(len(pairs))
        search = ways_around.select(len(pairs) * 16 * len(network.start))
        limit = moved[pairs] - SMALLEST
        piece = max(STEPS // max(len(network.neighbour), 1), 1)
        for begin in range(0, len(pairs), piece):
            if relaxation.programme.should_stop():
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
def ways_around(
    start: Int,
    neighbour: Int,
    pair: Int,
    low: Int,
    high: Int,
    moved: Float,
    pairs: Int,
    limit: Float,
    around: Int,
    count: Int,
    length: Float,
) -> None:
    """Fill row p of `around` with the shortest way between the ends of pairs[p] that avoids it.

    Only where it is shorter than limit[p] and has no more pairs than a row has places; `count` is then their number,
    0 elsewhere, and `length` their sum. Dijkstra's algorithm from the lower end.
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
