"""The network of GiPH in compiled code: the same scores as in PyTorch, some ten times faster for a single search.

A search makes its moves one by one, and a graph has tens of levels with a few nodes each. PyTorch spends nearly all of
the time between operations. Training computes gradients of many states at once with PyTorch; see `networks.giph`. This
module does not need PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placeopt import engine
from placeopt.learning.graphs.gpnet import EDGE_DATA
from placeopt.learning.graphs.views import Observation
from placeopt.model.arrays import Float, Int

EMBEDDING = 5
"""Size of the embedding in each direction."""
HIDDEN = 16
"""Hidden units of the score function, and of GraphSAGE-NE."""

Layers = Mapping[str, NDArray[np.floating[Any]]]
"""The weights of `networks.giph.Giph` under the names of its `state_dict`."""


def layer_shapes(nodes: int) -> dict[str, tuple[int, ...]]:
    """The shapes of `Layers` for gpNets with this number of features of a node (Hu et al. 2023, table 5)."""
    message = EMBEDDING + EDGE_DATA
    sizes = {  # of each linear layer: outputs and inputs
        "score.0": (HIDDEN, 2 * EMBEDDING),
        "score.2": (1, HIDDEN),
        "transform.0": (nodes, nodes),
        "transform.2": (EMBEDDING, nodes),
    }
    for way in ("along", "against"):
        sizes |= {f"{way}.message": (message, message), f"{way}.update": (EMBEDDING, message)}
    shapes: dict[str, tuple[int, ...]] = {}
    for name, size in sizes.items():
        shapes |= {f"{name}.weight": size, f"{name}.bias": size[:1]}
    return shapes


class Order(NamedTuple):
    """The order in which message passing visits nodes and edges: level by level."""

    node: Int  # (N,) nodes by level
    node_bounds: Int
    edge: Int  # (E,) edges by the level of the node that receives
    edge_bounds: Int


class Weights(NamedTuple):
    """The weights of one direction: messages [e_v | x_vu] -> h, and the update of their mean -> o."""

    message: Float  # (h, d + g)
    message_bias: Float
    update: Float  # (o, h)
    update_bias: Float


def order_by(level: Int, receiver: Int) -> Order:
    """The order of nodes with these levels, and of edges with these receivers."""
    into = level[receiver]
    node, edge = np.argsort(level, kind="stable"), np.argsort(into, kind="stable")
    borders = np.arange(int(level.max(initial=0)) + 2)
    return Order(node, np.searchsorted(level[node], borders), edge, np.searchsorted(into[edge], borders))


class CompiledGiph:
    """Scores of the observations of one search by a network of the class `Giph` with the weights `layers`."""

    def __init__(self, layers: Layers) -> None:
        self._layers = {name: np.ascontiguousarray(value, dtype=np.float64) for name, value in layers.items()}
        self._weights = [Weights(*(self._layers[f"{way}.{part}"] for part in _PARTS)) for way in ("along", "against")]
        self._orders: tuple[Int, tuple[Order, Order]] | None = None

    @np.errstate(invalid="ignore", over="ignore")  # huge weights: the caller rejects undefined probabilities
    def log_probabilities(self, seen: Observation) -> Float:
        """(c,) log-probabilities of the choices, -inf where masked."""
        start = self._dense("transform", seen.nodes.astype(np.float64))
        edges = np.ascontiguousarray(seen.edges, dtype=np.float64)
        parts = []
        ways = (seen.source, seen.target), (seen.target, seen.source)
        for order, (sender, receiver), weights in zip(self._order(seen), ways, self._weights, strict=True):
            parts.append(engine.pass_messages(*order, sender, receiver, edges, weights, start))
        scores = self._dense("score", np.concatenate(parts, axis=1))[:, 0]
        scores = np.where(seen.allowed, scores, -np.inf)
        scores = scores - scores.max()
        found_scores: Float = scores - np.log(np.exp(scores).sum())
        return found_scores

    def _dense(self, name: str, values: Float) -> Float:
        """Two layers with ReLU between them."""
        layers = self._layers
        hidden = np.maximum(values @ layers[f"{name}.0.weight"].T + layers[f"{name}.0.bias"], 0.0)
        found: Float = hidden @ layers[f"{name}.2.weight"].T + layers[f"{name}.2.bias"]
        return found

    def _order(self, seen: Observation) -> tuple[Order, Order]:
        """The orders of both directions: gpNet's levels, and the task that each edge enters or leaves, never change."""
        if self._orders is None or self._orders[0] is not seen.depth:
            both = order_by(seen.depth, seen.target), order_by(seen.height, seen.source)
            self._orders = seen.depth, both
        return self._orders[1]


_PARTS = ("message.weight", "message.bias", "update.weight", "update.bias")
