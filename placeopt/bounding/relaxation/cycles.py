"""Cycle cuts: to be on the same device is an equivalence relation.

If all pairs of a cycle except one stay on one device, so does the last. For each pair q of a cycle,

    [q is on different devices] <= sum over the other pairs of [on different devices].

A pool counts as one device. The most violated cycle through a pair is a shortest path between its groups that avoids
the pair, with lengths sum_ab w[q,ab].
"""

from __future__ import annotations

import numpy as np

from placeopt import engine
from placeopt.bounding.engines.linear_program import Row, row
from placeopt.bounding.relaxation.model import GroupGraph, Relaxation
from placeopt.model.arrays import Float

SMALLEST = 0.02
"""Least violation of a cut that is added."""

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
        start, around, length = engine.shortest_detours(
            network.start, network.neighbour, network.pair, relaxation.low, relaxation.high, moved, pairs,
            moved[pairs] - SMALLEST, LONGEST, engine.Stop(relaxation.program.should_stop),
        )  # fmt: skip
        found = []
        for place in np.flatnonzero(np.diff(start)).tolist():
            there = relaxation.w[pairs[place]]
            others = relaxation.w[around[start[place] : start[place + 1]]].reshape(-1)
            signs = np.concatenate([np.full(len(there), -1), np.ones(len(others), np.int64)])
            excess = float(moved[pairs[place]] - length[place])
            found.append((excess, row(np.concatenate([there, others]), signs, 0)))
        return found
