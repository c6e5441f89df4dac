"""The groups and the pairs that join them, as an undirected graph for the cuts to walk on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.bounding.relaxation.model import Relaxation
from placeopt.model.arrays import Float, Int


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """The groups and their pairs as an undirected graph.

    Attributes
    ----------
    start, neighbour, pair
        Neighbours of group g and the pairs to them: start[g]..start[g+1].
    appeal
        (q,) below 0.001: what makes one of two equal pairs come first, the payload it carries.
    """

    start: Int
    neighbour: Int
    pair: Int
    appeal: Float

    @staticmethod
    def of(relaxation: Relaxation) -> Network:
        """The network of a relaxation."""
        q = np.arange(len(relaxation.low))
        here = np.concatenate([relaxation.low, relaxation.high])
        there, pair = np.concatenate([relaxation.high, relaxation.low]), np.concatenate([q, q])
        order = np.lexsort((there, here))
        payload = np.zeros(len(q))
        outer = relaxation.pair >= 0
        np.maximum.at(payload, relaxation.pair[outer], relaxation.problem.payload[outer].astype(np.float64))
        start = np.searchsorted(here[order], np.arange(relaxation.problem.n_groups + 1))
        return Network(start, there[order], pair[order], 1e-3 * payload / max(payload.max(initial=0), 1.0))
