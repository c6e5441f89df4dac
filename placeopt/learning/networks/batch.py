"""Many observations as one graph in PyTorch, and the choice among their moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from placeopt.learning.graphs.views import Observation
from placeopt.model.arrays import Int, inverse


@dataclass(frozen=True, slots=True)
class Levels:
    """The nodes of a batch level by level in one direction, as message passing in topological order visits them."""

    rank: Tensor
    """(N,) position of each node if nodes are sorted by level."""
    node: Tensor
    """(N,) the node at each position."""
    edge: Tensor
    """(E,) edges sorted by the level of the node that they enter."""
    sender: Tensor
    """(E,) position of the node that each of these edges leaves."""
    receiver: Tensor
    """(E,) position of the node that it enters, within its level."""
    node_bounds: tuple[int, ...]
    edge_bounds: tuple[int, ...]
    """Positions at which levels start, and the end."""


class Batch:
    """Disjoint union of the graphs of observations.

    Attributes
    ----------
    nodes
        (N, f) features of all nodes.
    edges
        (E, g) features of all edges.
    source, target
        (E,) nodes of each edge.
    n_graphs
        Number of observations.
    """

    def __init__(self, observations: Sequence[Observation], device: torch.device | str = "cpu") -> None:
        self.observations, self.device = observations, torch.device(device)
        self.n_graphs = len(observations)
        sizes = [len(each.nodes) for each in observations]
        self.offset = np.concatenate(([0], np.cumsum(sizes)))
        self._source = np.concatenate([o.source + at for o, at in zip(observations, self.offset, strict=False)])
        self._target = np.concatenate([o.target + at for o, at in zip(observations, self.offset, strict=False)])
        self.nodes = self._tensor(np.concatenate([each.nodes for each in observations]))
        self.edges = self._tensor(np.concatenate([each.edges for each in observations]))
        self.source, self.target = self._tensor(self._source), self._tensor(self._target)

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all graphs."""
        return int(self.offset[-1])

    @cached_property
    def forward(self) -> Levels:
        """Levels from the entry nodes, along the edges."""
        return self._levels(np.concatenate([o.depth for o in self.observations]), self._source, self._target)

    @cached_property
    def backward(self) -> Levels:
        """Levels from the exit nodes, against the edges."""
        return self._levels(np.concatenate([o.height for o in self.observations]), self._target, self._source)

    @cached_property
    def pulled_backward(self) -> Levels:
        """Levels from the exit nodes, but along the edges: a fault of the released code."""
        return self._levels(np.concatenate([o.height for o in self.observations]), self._source, self._target)

    def _levels(self, level: Int, sender: Int, receiver: Int) -> Levels:
        short = level.astype(np.int16) if level.max(initial=0) < 2**15 else level  # sorts in linear time
        node, edge = np.argsort(short, kind="stable"), np.argsort(short[receiver], kind="stable")
        rank = inverse(node)
        count = int(level.max(initial=0)) + 1
        node_bounds = np.searchsorted(level[node], np.arange(count + 1))
        edge_bounds = np.searchsorted(level[receiver[edge]], np.arange(count + 1))
        into = rank[receiver[edge]] - node_bounds[level[receiver[edge]]]
        return Levels(
            rank=self._tensor(rank),
            node=self._tensor(node),
            edge=self._tensor(edge),
            sender=self._tensor(rank[sender[edge]]),
            receiver=self._tensor(into),
            node_bounds=tuple(node_bounds.tolist()),
            edge_bounds=tuple(edge_bounds.tolist()),
        )

    def log_probabilities(self, scores: Tensor) -> Tensor:
        """(B, most choices) log-probabilities of the choices of each graph, -inf where masked or absent.

        `scores` has one entry for each choice of each graph, one graph after the other.
        """
        counts = [len(each.allowed) for each in self.observations]
        width = max(counts)
        flat = np.concatenate([np.arange(n) + row * width for row, n in enumerate(counts)])
        allowed = np.concatenate([each.allowed for each in self.observations])
        padded = scores.new_full((self.n_graphs * width,), -torch.inf)
        padded = padded.index_copy(0, self._tensor(flat[allowed]), scores[self._tensor(np.flatnonzero(allowed))])
        return torch.log_softmax(padded.view(self.n_graphs, width), dim=1)

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)
