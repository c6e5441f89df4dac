"""Undirected graphs cut into parts by METIS, by way of PyMetis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import MissingExtraError
from placeopt.model.arrays import Float, Int

TOTAL = 2**30
"""What the weights of vertices add up to, and those of edges counted both ways: METIS may have 32-bit numbers."""

_BISECTED = 8
"""Parts up to which METIS's manual advises recursive bisection; the k-way scheme for more."""


@dataclass(frozen=True, slots=True)
class Graph:
    """An undirected graph: the neighbours of vertex v are neighbours[starts[v]:starts[v + 1]].

    `weight` is that of the edges, at least 1, `size` (vertices,) that of the vertices.
    """

    starts: Int
    neighbours: Int
    weight: Int
    size: Int


def make_graph(low: Int, high: Int, weight: Float, size: Float) -> Graph:
    """The graph with edges between `low` and `high`; loops are left out, parallel edges added up, weights scaled."""
    count = max(len(size), 1)
    apart = low != high
    keys, place = np.unique(
        np.minimum(low[apart], high[apart]) * count + np.maximum(low[apart], high[apart]), return_inverse=True
    )
    total = np.bincount(place.reshape(-1), weights=weight[apart], minlength=len(keys)).astype(np.float64)
    scaled = np.maximum(whole(total, TOTAL // 2), 1)
    source, target = np.concatenate((keys // count, keys % count)), np.concatenate((keys % count, keys // count))
    order = np.lexsort((target, source))
    starts = np.searchsorted(source[order], np.arange(len(size) + 1)).astype(np.int64)
    return Graph(starts, target[order], np.concatenate((scaled, scaled))[order], whole(size, TOTAL))


def whole(amount: Float, total: int) -> Int:
    """Amounts as whole numbers that add up to `total`, but for rounding; zeros stay zeros."""
    return np.rint(shares(amount) * total).astype(np.int64)


def shares(amount: Float) -> Float:
    """Amounts as shares of their sum; zeros if that is zero."""
    total = float(amount.sum())
    return np.asarray(amount / total if total > 0 else np.zeros(len(amount)), dtype=np.float64)


def parts(graph: Graph, share: Float, seed: int) -> Int:
    """(vertices,) the part of each vertex, 0..k-1; part p is to have share[p] of all sizes.

    METIS writes to the standard output where a part that it halves once more has no vertex. Asked for two parts it
    halves none; so it gets the k-way cut to do alone where all vertices are small against all parts, and bisects what
    is given to it otherwise.

    Raises
    ------
    MissingExtraError
        If PyMetis is not installed.
    """
    try:
        import pymetis  # noqa: F401  before there is anything to cut
    except ImportError:
        raise MissingExtraError("the solver metis needs PyMetis: pip install 'placeopt[metis]'") from None
    k = len(share)
    found = np.zeros(len(graph.size), dtype=np.int64)
    small = graph.size.max(initial=0) * 10 <= share.min() * graph.size.sum()
    if k > _BISECTED and small and share.min() * 4 * k >= 1:
        return _cut(graph, share, seed)
    _bisect(graph, np.arange(len(found)), share, 0, seed, found)
    return found


def _bisect(graph: Graph, vertices: Int, share: Float, first: int, seed: int, found: Int) -> None:
    """Give the vertices, which make up the graph, the parts `first`, `first + 1`, ... with these shares."""
    if len(share) == 1 or len(vertices) == 0:
        found[vertices] = first
        return
    half = (len(share) + 1) // 2
    side = np.zeros(len(vertices), dtype=np.int64)
    if len(vertices) > 1:
        side = _cut(graph, shares(np.array([share[:half].sum(), share[half:].sum()])), seed)
    elif share[half:].max() > share[:half].max():
        side[:] = 1
    for which, ours, start in ((0, share[:half], first), (1, share[half:], first + half)):
        inside = side == which
        _bisect(_induced(graph, inside), vertices[inside], ours, start, seed, found)


def _induced(graph: Graph, inside: NDArray[np.bool_]) -> Graph:
    """What is left of the graph between the vertices inside (vertices,)."""
    source = np.repeat(np.arange(len(inside)), np.diff(graph.starts))
    kept = inside[source] & inside[graph.neighbours]
    number = np.cumsum(inside) - 1
    starts = np.searchsorted(number[source[kept]], np.arange(int(inside.sum()) + 1)).astype(np.int64)
    return Graph(starts, number[graph.neighbours[kept]], graph.weight[kept], graph.size[inside])


def _cut(graph: Graph, share: Float, seed: int) -> Int:
    """The parts that METIS makes; at least two of them."""
    import pymetis

    # Parts of nothing are balanced by number.
    size = graph.size if graph.size.any() else np.ones_like(graph.size)
    found = pymetis.part_graph(
        len(share),
        pymetis.CSRAdjacency(graph.starts.tolist(), graph.neighbours.tolist()),
        vweights=size.tolist(),
        eweights=graph.weight.tolist() or None,
        tpwgts=(shares(share) if share.any() else np.full(len(share), 1 / len(share))).tolist(),
        options=pymetis.Options(seed=seed % 2**31),
        recursive=False if len(share) > _BISECTED else None,
    )
    return np.array(found.vertex_part, dtype=np.int64)
