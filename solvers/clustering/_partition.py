"""Undirected graphs, and their partition by METIS through PyMetis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import MissingExtraError
from placeopt.model.arrays import Float, Int

TOTAL = 2**30
"""Sum of the weights of vertices, and of edges counted both ways: METIS may use 32-bit integers."""

_BISECTED = 8
"""Number of parts up to which METIS's manual advises recursive bisection instead of the k-way scheme."""


@dataclass(frozen=True, slots=True)
class Graph:
    """An undirected graph: the neighbours of vertex v are neighbours[starts[v]:starts[v + 1]].

    `weight` are the weights of the edges, at least 1, `size` (vertices,) those of the vertices.
    """

    starts: Int
    neighbours: Int
    weight: Int
    size: Int


def make_graph(low: Int, high: Int, weight: Float, size: Float) -> Graph:
    """Build the graph with edges between `low` and `high`: without loops, parallel edges merged, weights scaled."""
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
    """Return amounts scaled to integers that sum to `total` up to rounding; zeros stay zeros."""
    return np.rint(shares(amount) * total).astype(np.int64)


def shares(amount: Float) -> Float:
    """Return amounts as shares of their sum; zeros if it is zero."""
    total = float(amount.sum())
    return np.asarray(amount / total if total > 0 else np.zeros(len(amount)), dtype=np.float64)


def parts(graph: Graph, share: Float, seed: int) -> Int:
    """Return the part (vertices,) of each vertex, 0..k-1; part p gets about share[p] of all sizes.

    METIS prints to the standard output if it bisects a part without vertices, which cannot happen if it is called for
    two parts. So METIS makes the k-way cut itself only if all vertices are small compared with all parts. Otherwise the
    bisection is done here, with one call of METIS for each cut.

    Raises
    ------
    MissingExtraError
        If PyMetis is not installed.
    """
    try:
        import pymetis  # noqa: F401  the error comes even if nothing is cut
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
    """Assign the vertices, which are those of the graph, to the parts `first`, `first + 1`, ... with these shares."""
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
    """Return the subgraph of the vertices with `inside` (vertices,) set."""
    source = np.repeat(np.arange(len(inside)), np.diff(graph.starts))
    kept = inside[source] & inside[graph.neighbours]
    number = np.cumsum(inside) - 1
    starts = np.searchsorted(number[source[kept]], np.arange(int(inside.sum()) + 1)).astype(np.int64)
    return Graph(starts, number[graph.neighbours[kept]], graph.weight[kept], graph.size[inside])


def _cut(graph: Graph, share: Float, seed: int) -> Int:
    """Return the parts of METIS's own cut, at least two."""
    import pymetis

    # If all sizes are 0, parts are balanced by their number of vertices.
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
