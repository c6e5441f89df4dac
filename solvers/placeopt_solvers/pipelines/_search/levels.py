"""Coarser units: units that belong together become one, so that moves of a search take them along.

Multilevel partitioning of acyclic graphs: J. Herrmann, M. Y. Özkaya, B. Uçar, K. Kaya, Ü. V. Çatalyürek: Multilevel
algorithms for acyclic partitioning of directed acyclic graphs, SIAM Journal on Scientific Computing 41 (2019),
doi:10.1137/18M1176865. Merged are, one kind after another, each on the result of the one before:

- a unit and its only successor, and a unit and its only predecessor: so trees become one unit;
- units with the same predecessors and successors;
- a unit and a successor that is one level further (levels are lengths of longest paths), so that no other path leads
  from one to the other. Pairs that share the most data for their work come first.

The order of merged units stays acyclic. Trees: a path that leaves one can do so only at its root, and returns only to
where a path leads to the root, so a circle of trees would be a circle of units. Equal neighbours: an edge between two
merged units stands for edges between all their members. Levels: of the pairs and units of a circle, take those that
begin at the least level. An edge can enter one only at the second unit of a pair, from the first unit of another of
them. So the circle has only pairs of the same two levels, among them the one that was merged last. Such a pair is
merged only if no edge leads to it from a pair that was merged before, or none leads from it to one.

Where stages are not ordered, the last step merges any units that share data, those that share the most first.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from placeopt.model.arrays import Float, Int, by_index

from .placements import View
from .units import Units, units_of

ROUNDS = 8
"""Maximum number of rounds of merging for one level."""


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """What merging depends on: k units and p pairs of them, of which the first begins before the second."""

    first: Int
    second: Int
    """(p,) units of each pair, sorted by the first and the second."""
    shared: Int
    """(p,) bytes that move between them if they are apart."""
    ordered: bool
    """Whether pairs must stay acyclic."""
    ticks: Float
    """(k,) mean over the devices."""
    kind: Int
    """(k,) units merge only with those of the same kind."""

    def following(self) -> list[list[int]]:
        """The second units of the pairs of each unit."""
        return _lists(len(self.kind), self.first, self.second)

    def preceding(self) -> list[list[int]]:
        """The first units of the pairs of each unit."""
        by_second = np.argsort(self.second, kind="stable")
        return _lists(len(self.kind), self.second[by_second], self.first[by_second])


def _lists(size: int, label: Int, value: Int) -> list[list[int]]:
    values = value.tolist()
    return [values[a:b] for a, b in pairwise(np.searchsorted(label, np.arange(size + 1)).tolist())]


def coarser(view: View, place: Int, most: int, heaviest: float) -> tuple[View, Int] | None:
    """Return a view with about `most` units and the unit (k,) of each unit, None if units can hardly be merged.

    Only units with the same number in `place` (k,) are merged, as long as they compute for at most `heaviest` ticks.
    """
    units = view.units
    graph, k = graph_of(units, place), len(units.fixed)
    label = np.arange(k)
    for _ in range(ROUNDS):
        before = len(graph.kind)
        for merge in (_tails, _heads, _twins, _matched if graph.ordered else _joined):
            if len(graph.kind) > most:
                merged = np.unique(merge(graph, heaviest), return_inverse=True)[1].astype(np.int64)
                if len(graph.kind) > merged.max(initial=-1) + 1:
                    graph, label = merged_graph(graph, merged), merged[label]
        if len(graph.kind) <= most or len(graph.kind) > 0.95 * before:
            break
    if len(graph.kind) > 0.8 * k:
        return None
    unit, pairs = label[view.unit], np.stack((graph.first, graph.second), axis=1)
    return view._replace(unit=unit, units=units_of(view.problem, unit, pairs, ordered=graph.ordered)), label


def graph_of(units: Units, place: Int) -> Graph:
    """Return the graph of units; units with separations merge with no others."""
    k = len(units.fixed)
    kind = np.unique(np.column_stack((place, units.allowed)), axis=0, return_inverse=True)[1].reshape(-1)
    alone = np.flatnonzero(np.diff(units.apart_start))
    kind[alone] = k + alone
    item = np.repeat(np.arange(len(units.producer)), np.diff(units.consumer_start))
    a, b = units.producer[item], units.consumer
    keys, inverse = np.unique(np.minimum(a, b) * k + np.maximum(a, b), return_inverse=True)
    shared = by_index(np.add, inverse, units.payload[item], len(keys))
    first = np.repeat(np.arange(k), np.diff(units.after_start))
    wanted = np.minimum(first, units.after) * k + np.maximum(first, units.after)
    place_of = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    amount = np.where(keys[place_of] == wanted, shared[place_of], 0) if len(keys) else np.zeros_like(wanted)
    return Graph(first, units.after, amount, units.ordered, units.computing.mean(axis=1, dtype=np.float64), kind)


def merged_graph(graph: Graph, label: Int) -> Graph:
    """Return the graph of merged units."""
    k = int(label.max(initial=-1)) + 1
    a, b = label[graph.first], label[graph.second]
    keys, inverse = np.unique(a * k + b, return_inverse=True)
    shared = by_index(np.add, inverse, graph.shared, len(keys))
    apart = keys // k != keys % k
    kind = np.zeros(k, dtype=np.int64)
    kind[label] = graph.kind
    ticks: Float = np.bincount(label, weights=graph.ticks, minlength=k).astype(np.float64)
    return Graph(keys[apart] // k, keys[apart] % k, shared[apart], graph.ordered, ticks, kind)


def _tails(graph: Graph, heaviest: float) -> Int:
    """Merge units with their only successor."""
    return _trees(graph, graph.first, graph.second, heaviest)


def _heads(graph: Graph, heaviest: float) -> Int:
    """Merge units with their only predecessor."""
    by_second = np.argsort(graph.second, kind="stable")
    return _trees(graph, graph.second[by_second], graph.first[by_second], heaviest)


def _trees(graph: Graph, unit: Int, near: Int, heaviest: float) -> Int:
    """Merge units with the only neighbour of their pairs, which are sorted by unit."""
    start = np.searchsorted(unit, np.arange(len(graph.kind) + 1))
    lone = np.flatnonzero(np.diff(start) == 1)
    return _united(graph, lone, near[start[lone]], heaviest)


def _united(graph: Graph, first: Int, second: Int, heaviest: float) -> Int:
    """Merge the sets of units that contain the units of pairs, one pair after another."""
    k, kind, ticks = len(graph.kind), graph.kind.tolist(), graph.ticks.tolist()
    root = list(range(k))

    def find(v: int) -> int:
        while root[v] != v:
            root[v] = root[root[v]]
            v = root[v]
        return v

    for v, u in zip(first.tolist(), second.tolist(), strict=True):
        if kind[u] == kind[v]:
            a, b = find(v), find(u)
            if a != b and ticks[a] + ticks[b] <= heaviest:
                root[a] = b
                ticks[b] += ticks[a]
    return np.array([find(v) for v in range(k)], dtype=np.int64)


def _joined(graph: Graph, heaviest: float) -> Int:
    """Merge sets of neighbours, those that share the most data for their work first."""
    rows = np.argsort(-_attraction(graph), kind="stable")
    return _united(graph, graph.first[rows], graph.second[rows], heaviest)


def _attraction(graph: Graph) -> Float:
    """(p,) bytes that pairs share, divided by their ticks."""
    return graph.shared / np.maximum(graph.ticks[graph.first] + graph.ticks[graph.second], 1.0)


def _twins(graph: Graph, heaviest: float) -> Int:
    """Merge pairs of units with the same predecessors and the same successors."""
    kind, ticks = graph.kind.tolist(), graph.ticks.tolist()
    label, waiting = list(range(len(kind))), dict[tuple[object, ...], int]()
    for v, (before, after) in enumerate(zip(graph.preceding(), graph.following(), strict=True)):
        key = kind[v], tuple(before), tuple(after)
        u = waiting.pop(key, None)
        if u is None or ticks[u] + ticks[v] > heaviest:
            waiting[key] = v
        else:
            label[v] = u
    return np.array(label, dtype=np.int64)


def _matched(graph: Graph, heaviest: float) -> Int:
    """Merge pairs of neighbours, those that share the most data for their work first."""
    near = (graph.kind[graph.first] == graph.kind[graph.second]) & (
        graph.ticks[graph.first] + graph.ticks[graph.second] <= heaviest
    )
    following, preceding = graph.following(), graph.preceding()
    level = _levels(following, preceding)
    depth = np.array(level, dtype=np.int64)
    near &= depth[graph.second] == depth[graph.first] + 1
    rows = np.flatnonzero(near)
    rows = rows[np.argsort(-_attraction(graph)[rows], kind="stable")]
    label, taken = list(range(len(level))), [False] * len(level)
    for a, b in zip(graph.first[rows].tolist(), graph.second[rows].tolist(), strict=True):
        if taken[a] or taken[b]:
            continue
        leads = any(taken[u] and level[u] == level[b] for u in following[a])
        if leads and any(taken[u] and level[u] == level[a] for u in preceding[b]):
            continue
        label[b] = a
        taken[a] = taken[b] = True
    return np.array(label, dtype=np.int64)


def _levels(following: list[list[int]], preceding: list[list[int]]) -> list[int]:
    """Return the length of the longest path to each unit."""
    level, left = [0] * len(following), [len(each) for each in preceding]
    order = [v for v, number in enumerate(left) if number == 0]
    for v in order:
        for u in following[v]:
            level[u] = max(level[u], level[v] + 1)
            left[u] -= 1
            if left[u] == 0:
                order.append(u)
    return level
