"""Improve intervals by a search: nodes move, one at a time, to where layers lack coverage most.

The coverage of a layer is the sum of the rates of the nodes that hold it. For a wanted rate f, what a layer lacks is f
minus its coverage. A step takes a random node out and gives it the interval that reduces the sum of what layers lack
most, among all intervals, with noise that falls during the search (simulated annealing with the Gumbel-max rule). If no
layer lacks anything, the coverage is f: without slow links, the flow is, too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placeopt.model.arrays import Int
from placeopt.serving.plan import node_rates
from placeopt.serving.problem import Serving

WARM = 0.08
"""Noise at the start, as a share of the wanted rate."""


class CoverageSearch:
    """Searches intervals of some nodes whose coverage of every layer reaches a rate."""

    def __init__(self, problem: Serving, nodes: Int, seed: int) -> None:
        self.problem, self.nodes = problem, nodes
        self._random = np.random.default_rng(seed)
        kinds = np.unique(problem.kind[nodes])
        self._intervals = {int(t): self._of_kind(int(t)) for t in kinds}

    def _of_kind(self, kind: int) -> tuple[Int, Int, Int, Int]:
        """Begin, end and rate of each interval of a kind, and its layers, padded with one that lacks nothing."""
        problem = self.problem
        found = [
            (begin, begin + k, problem.rate_of(kind, begin, begin + k))
            for k in range(1, problem.most + 1)
            for begin in range(problem.layers - k + 1)
            if problem.rate_of(kind, begin, begin + k)
        ]
        begin, end, rate = (
            (np.array(column, dtype=np.int64) for column in zip(*found, strict=True))
            if found
            else [np.zeros(0, dtype=np.int64)] * 3
        )
        layer = begin[:, None] + np.arange(problem.most)[None, :]
        return begin, end, rate, np.where(layer < end[:, None], layer, problem.layers)

    def coverage(self, begin: Int, end: Int) -> Int:
        """(L,) coverage of each layer by the nodes of the search."""
        change = np.zeros(self.problem.layers + 1, dtype=np.int64)
        rates = node_rates(self.problem, begin, end)[self.nodes]
        np.add.at(change, begin[self.nodes], rates)
        np.add.at(change, end[self.nodes], -rates)
        return np.cumsum(change)[:-1]

    def search(
        self,
        begin: Int,
        end: Int,
        wanted: int,
        steps: int,
        should_stop: Callable[[], bool] = lambda: False,
        warm: float = WARM,
    ) -> tuple[Int, Int, bool]:
        """The last intervals of a search from other ones, and whether their coverage is at least `wanted`."""
        problem = self.problem
        begin, end = begin.copy(), end.copy()
        rates = node_rates(problem, begin, end)
        lacking = np.zeros(problem.layers + 1, dtype=np.int64)
        lacking[:-1] = wanted - self.coverage(begin, end)
        order = self.nodes
        for step in range(steps):
            if step % 64 == 0 and should_stop():
                break
            if step % len(order) == 0:
                order = self._random.permutation(self.nodes)
            node = int(order[step % len(order)])
            begins, ends, passed, layers = self._intervals[int(problem.kind[node])]
            if not len(begins):
                continue
            lacking[begin[node] : end[node]] += rates[node]
            gain = np.minimum(np.maximum(lacking, 0)[layers], passed[:, None]).sum(axis=1)
            heat = warm * wanted * (1 - step / steps) ** 2
            best = int((gain + heat * self._random.gumbel(size=len(gain))).argmax()) if heat else int(gain.argmax())
            begin[node], end[node], rates[node] = begins[best], ends[best], passed[best]
            lacking[begin[node] : end[node]] -= rates[node]
            if lacking.max() <= 0:
                return begin, end, True
        return begin, end, False
