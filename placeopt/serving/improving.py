"""Improve intervals by a search: nodes move, one at a time, to where layers lack coverage most.

The coverage of a layer is the sum of the rates of the nodes that hold it. For a wanted rate f, what a layer lacks is f
minus its coverage. A step takes a random node out and gives it the interval that reduces the sum of what layers lack
most, among all intervals, with noise that falls to a half during the search (a Gibbs sampler by the Gumbel-max rule).
If no layer lacks anything, the coverage is f: without slow links, the flow is, too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placeopt.model.arrays import Int
from placeopt.serving.plan import node_rates
from placeopt.serving.problem import Serving

WARM = (0.03, 0.12)
"""Noise at the start, as a share of the wanted rate; each search draws it from this range."""

NOISE = 2**17
"""Number of random numbers that a search draws at once; each step takes a part of them."""


class _Intervals:
    """All intervals of a kind of nodes: (i,) first layers, ends, rates, and how much of what is lacking each covers."""

    def __init__(self, problem: Serving, kind: int) -> None:
        begin, count = (index.reshape(-1) for index in np.indices((problem.layers, problem.most)))
        rate = problem.rate[kind, 0 if problem.alike else begin, count]
        kept = (rate > 0) & (begin + count < problem.layers)
        self.begin, self.end, self.rate = begin[kept], begin[kept] + count[kept] + 1, rate[kept]
        # Intervals with the same rate share the sums over the first layers.
        rates, self._row = np.unique(self.rate, return_inverse=True)
        self._rates = rates[:, None]
        self._sums = np.zeros((len(self._rates), problem.layers + 1), dtype=np.int64)

    def gains(self, lacking: Int) -> Int:
        """(i,) the sum over the layers of an interval of the least of its rate and what the layer lacks."""
        np.cumsum(np.minimum(lacking, self._rates), axis=1, out=self._sums[:, 1:])
        found: Int = self._sums[self._row, self.end] - self._sums[self._row, self.begin]
        return found

    def missing(self, begin: int, end: int) -> Int:
        """(i,) the number of layers of an interval that are not among those from `begin` to before `end`."""
        common = np.minimum(self.end, end) - np.maximum(self.begin, begin)
        found: Int = self.end - self.begin - np.maximum(common, 0)
        return found


class CoverageSearch:
    """Searches intervals of some nodes whose coverage of every layer reaches a rate."""

    def __init__(self, problem: Serving, nodes: Int, seed: int) -> None:
        self.problem, self.nodes = problem, nodes
        self._random = np.random.default_rng(seed)
        kinds = np.unique(problem.kind[nodes])
        self._intervals = {int(t): _Intervals(problem, int(t)) for t in kinds}
        largest = max((len(each.rate) for each in self._intervals.values()), default=0)
        self._noise = self._random.gumbel(size=max(NOISE, 2 * largest))

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
        warm: float | None = None,
        stay: tuple[Int, int] | None = None,
    ) -> tuple[Int, Int, bool]:
        """The last intervals of a search from other ones, and whether their coverage is at least `wanted`.

        `stay` states (v, 2) intervals that nodes hold, and what each layer costs that they do not hold.
        """
        problem = self.problem
        begin, end = begin.copy(), end.copy()
        rates = node_rates(problem, begin, end)
        lacking = wanted - self.coverage(begin, end)
        warm = float(self._random.uniform(*WARM)) if warm is None else warm
        order = offsets = self.nodes
        for step in range(steps):
            if step % 64 == 0 and should_stop():
                break
            turn = step % len(order)
            if turn == 0:
                order = self._random.permutation(self.nodes)
                offsets = self._random.integers(len(self._noise) // 2, size=len(order))
            node = int(order[turn])
            intervals = self._intervals[int(problem.kind[node])]
            if not len(intervals.rate):
                continue
            lacking[begin[node] : end[node]] += rates[node]
            gains = intervals.gains(np.maximum(lacking, 0))
            if stay is not None:
                gains -= stay[1] * intervals.missing(*stay[0][node].tolist())
            heat = warm * wanted * (1 - step / (2 * steps))
            noise = self._noise[offsets[turn] : offsets[turn] + len(gains)]
            best = int((gains + heat * noise if heat else gains).argmax())
            begin[node], end[node], rates[node] = intervals.begin[best], intervals.end[best], intervals.rate[best]
            lacking[begin[node] : end[node]] -= rates[node]
            if lacking.max() <= 0:
                return begin, end, True
        return begin, end, False
