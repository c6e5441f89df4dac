"""Chains: one node after the other, each with as many layers as the same period and number of requests allow."""

from __future__ import annotations

import heapq

import numpy as np

from placeopt.model.arrays import Int
from placeopt.serving.in_flight import MOST_REQUESTS, Floats, edge_delays, token_times
from placeopt.serving.plan import COORDINATOR
from placeopt.serving.problem import Serving
from placeopt.serving.sites import Sites

SIZES = 24
"""Numbers of requests of a group that are tried at first."""

NEAR = 0.97 ** np.arange(-6, 7)
"""Factors of the best of them that are tried then."""

_HALVINGS = 14
"""Steps of the search for the shortest period."""


def best_chain(problem: Serving, nodes: Int, sites: Sites) -> tuple[Int, Int, Int] | None:
    """The order, begins and ends of the best chain found of some nodes; None if there is none.

    Nodes of a site follow each other, and of these, nodes of a kind; some may stay idle.
    """
    order = nodes[np.lexsort((problem.kind[nodes], sites.of_node[nodes]))]
    found = _intervals(problem.part(order))
    return None if found is None else (order, *found)


def _intervals(problem: Serving) -> tuple[Int, Int] | None:
    """The intervals of a chain of all nodes in their order."""
    steps = problem.steps
    assert steps is not None
    tables = _Tables(problem)
    most = float(min(tables.room.max(initial=0), MOST_REQUESTS if steps.batch is None else steps.batch))
    if steps.requests is not None:
        most = min(most, float(steps.requests))
    if most < 1:
        return None
    sizes = np.unique(np.geomspace(1, most, SIZES).astype(np.int64)).astype(np.float64)
    period = tables.periods(sizes)
    best = sizes[int((sizes / period).argmax())]
    sizes = np.unique(np.clip((best * NEAR).astype(np.int64), 1, int(most))).astype(np.float64)
    period = tables.periods(sizes)
    at = int((sizes / period).argmax())
    if np.isinf(period[at]):
        return None
    counts = tables.layers(sizes[at : at + 1], period[at : at + 1])[0]
    return _divided(problem, tables, sizes[at], counts)


class _Tables:
    """Room and times of steps by kind of the nodes and number of layers, for the worst of unlike layers."""

    def __init__(self, problem: Serving) -> None:
        steps = problem.steps
        assert steps is not None
        self.problem = problem
        self.kinds, self.numbers = np.unique(problem.kind, return_counts=True)
        firsts = np.arange(problem.rate.shape[1])[:, None] + np.arange(1, problem.most + 1)[None, :]
        inside = problem.alike | (firsts <= problem.layers)
        holds = ((problem.rate[self.kinds] > 0) | ~inside).all(axis=1)
        self.room = np.where(holds, np.where(inside, steps.room[self.kinds], MOST_REQUESTS).min(axis=1), 0)
        self.times = [
            np.where(inside, table[self.kinds], 0).max(axis=1).astype(np.float64)
            for table in (steps.reading, steps.token, steps.overhead, steps.work)
        ]
        nodes = np.arange(problem.n_nodes)
        ends = np.append(nodes, COORDINATOR), np.append(COORDINATOR, nodes)
        edges = np.stack([ends[1], ends[0]], axis=1)
        self._delay = float(edge_delays(problem, edges).sum())
        self._each = float(token_times(problem, np.zeros(problem.n_nodes, dtype=np.int64), edges).sum())

    def steps(self, sizes: Floats) -> Floats:
        """(s, t, K) times of steps."""
        a, b, c, d = self.times
        requests = sizes[:, None, None]
        found: Floats = np.maximum(a + requests * b, c + requests * d)
        return found

    def layers(self, sizes: Floats, period: Floats) -> Int:
        """(s, t) the most layers of nodes with these requests in a group, if groups follow after a period."""
        steps = self.steps(sizes)
        short = steps <= period[:, None, None]
        links = self._delay + self._each * sizes
        way = links + self.problem.n_nodes * period
        for _ in range(3):  # steps that are shorter than the period need fewer groups, which leave more room
            groups = np.ceil(way / period)
            if self.problem.steps is not None and self.problem.steps.token_time is not None:
                short &= (groups * period <= self.problem.steps.token_time)[:, None, None]
            able = short & (self.room >= (groups * sizes)[:, None, None])
            found: Int = np.minimum.accumulate(able, axis=2).sum(axis=2)
            last = np.maximum(found - 1, 0)[:, :, None]
            taken = np.where(found > 0, np.take_along_axis(steps, last, axis=2)[:, :, 0], 0.0)
            way = np.minimum(way, links + taken @ self.numbers)
        return found

    def periods(self, sizes: Floats) -> Floats:
        """(s,) the shortest periods with which the nodes hold all layers; infinite without one."""
        high = np.full(len(sizes), self.steps(sizes).max(initial=1.0) + self._delay + self._each * sizes.max())
        low = np.zeros_like(high)
        enough = self.layers(sizes, high) @ self.numbers >= self.problem.layers
        for _ in range(_HALVINGS):
            middle = np.where(low > 0, np.sqrt(low * high), high / 16)
            fits = self.layers(sizes, middle) @ self.numbers >= self.problem.layers
            low, high = np.where(fits, low, middle), np.where(fits, middle, high)
        return np.where(enough, high, np.inf)


def _divided(problem: Serving, tables: _Tables, size: float, most: Int) -> tuple[Int, Int]:
    """Intervals of all layers with at most (t,) layers of a node of each kind: those with the longest steps have
    fewer."""
    row = np.searchsorted(tables.kinds, problem.kind)
    counts = most[row].tolist()
    steps = tables.steps(np.array([size]))[0].tolist()
    longest = [
        (-steps[r][count - 1], n) for n, (r, count) in enumerate(zip(row.tolist(), counts, strict=True)) if count
    ]
    heapq.heapify(longest)
    for _ in range(sum(counts) - problem.layers):
        n = longest[0][1]
        counts[n] -= 1
        if counts[n]:
            heapq.heapreplace(longest, (-steps[row[n]][counts[n] - 1], n))
        else:
            heapq.heappop(longest)
    end = np.cumsum(counts)
    return end - counts, end
