"""Improve stages where links between sites are slow: their order, their numbers of layers, and their nodes.

What two successive stages pass is the largest flow from the nodes of one to those of the other. A step changes one or
two stages at random, and keeps the change by the rule of simulated annealing (S. Kirkpatrick, C. D. Gelatt, M. P.
Vecchi, Science 1983, doi:10.1126/science.220.4598.671). For a wanted rate f, the cost is a sum of squares: of the share
of f that each pair of successive stages lacks, and of the share that the flow through all of them lacks. This flow is
computed only if the pairs alone do not refute the change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from math import log
from random import Random
from typing import NamedTuple

import numpy as np
from ortools.graph.python import max_flow

from placeopt.model.arrays import Int
from placeopt.serving.flow import best_flow
from placeopt.serving.problem import Serving

WARM, HOT = 1 / 6, 5e-5
"""Temperature at the start of a search, as a part of the cost of the flow at its start; and the highest temperature."""

ORDERS, LAYERS, MOVES, LIKE = 0.1, 0.1, 0.2, 0.4
"""Shares of changes: another order, a layer for another stage, a node for another stage, and two nodes of a kind in
different sites that change places. All other changes are of any two nodes."""

REMEMBERED = 200_000
"""Most pairs of stages whose flow is remembered."""


class _Stage(NamedTuple):
    """Nodes that hold the same layers, the number of these, and the rates of the nodes."""

    nodes: tuple[int, ...]
    size: int
    rates: tuple[int, ...]


@lru_cache(1_000)
def _arcs(senders: int, receivers: int) -> tuple[Int, Int, Int, Int]:
    """Tails and heads of a network from a source to senders, from all of them to receivers, and to a sink; and the
    sender and the receiver of each link."""
    m, n = senders, receivers
    rows, columns = np.repeat(np.arange(m), n), np.tile(np.arange(n), m)
    tails = np.concatenate([np.full(m, m + n), rows, m + np.arange(n)])
    heads = np.concatenate([np.arange(m), m + columns, np.full(n, m + n + 1)])
    return tails, heads, rows, columns


class StageSearch:
    """Searches stages whose nodes pass a rate over their links."""

    def __init__(self, problem: Serving, of_node: Int, seed: int) -> None:
        self.problem = problem
        self._kind, self._site = problem.kind.tolist(), of_node.tolist()
        self._rate = problem.rate.tolist()
        self._random = Random(seed)
        self._lacking: dict[tuple[_Stage, _Stage], float] = {}

    def search(
        self, begin: Int, end: Int, wanted: int, steps: int, should_stop: Callable[[], bool] = lambda: False
    ) -> tuple[Int, Int, int]:
        """The intervals with the largest flow that a search from those of stages finds, and this flow.

        `begin` and `end` are (v,) layers of nodes; nodes with common layers hold the same ones. The search ends when
        the flow is `wanted`, in millionths of a token per second.
        """
        self._lacking.clear()
        self._wanted = wanted
        held = sorted({(b, e) for b, e in zip(begin.tolist(), end.tolist(), strict=True) if e > b})
        stages = [
            self._stage(np.flatnonzero((begin == b) & (end == e)).tolist(), e - b, b) for b, e in held
        ]  # fmt: skip
        idle = tuple(np.flatnonzero(begin == end).tolist())
        lacks = [self._lack(a, b) for a, b in pairwise(stages)]
        best, found = self._flow(stages), stages
        cost = sum(lacks) + self._share(best)
        warm = min(WARM * self._share(best), HOT)
        for step in range(steps if stages else 0):
            if best >= wanted or (step % 64 == 0 and should_stop()):
                break
            new, new_idle = self._changed(stages, idle)
            limit = cost - warm * (1 - step / steps) * log(1 - self._random.random())
            new_lacks = None if new is stages else self._lacks(new, stages, lacks, limit)
            if new_lacks is None:
                continue
            rate = self._flow(new)
            new_cost = sum(new_lacks) + self._share(rate)
            if new_cost <= limit:
                stages, idle, lacks, cost = new, new_idle, new_lacks, new_cost
                if rate > best:
                    best, found = rate, stages
        return *self._intervals(found), best

    def _stage(self, nodes: Iterable[int], size: int, first: int) -> _Stage:
        """A stage of nodes that hold a number of layers from a first one on."""
        nodes = tuple(sorted(nodes))
        at = 0 if self.problem.alike else first
        return _Stage(nodes, size, tuple(self._rate[self._kind[n]][at][size - 1] for n in nodes))

    def _intervals(self, stages: Sequence[_Stage]) -> tuple[Int, Int]:
        begin, end = np.zeros((2, self.problem.n_nodes), dtype=np.int64)
        first = 0
        for stage in stages:
            nodes = list(stage.nodes)
            begin[nodes], end[nodes] = first, first + stage.size
            first += stage.size
        return begin, end

    def _flow(self, stages: Sequence[_Stage]) -> int:
        return best_flow(self.problem, *self._intervals(stages)).rate

    def _share(self, rate: int) -> float:
        """The square of the share of the wanted rate that a flow lacks."""
        return (max(self._wanted - rate, 0) / self._wanted) ** 2

    def _lacks(
        self, stages: Sequence[_Stage], before: Sequence[_Stage], known: Sequence[float], limit: float
    ) -> list[float] | None:
        """The squares for successive stages, of which some are `known` from before a change; None beyond a limit."""
        same = [a is b for a, b in zip(stages, before, strict=False)]
        found = [x if a and b else -1.0 for x, (a, b) in zip(known, pairwise(same), strict=True)]
        total = sum(x for x in found if x >= 0)
        for k, x in enumerate(found):
            if x < 0:
                found[k] = self._lack(stages[k], stages[k + 1])
                total += found[k]
                if total > limit:
                    return None
        return found

    def _lack(self, a: _Stage, b: _Stage) -> float:
        found = self._lacking.get((a, b))
        if found is None:
            if len(self._lacking) >= REMEMBERED:
                self._lacking.clear()
            found = self._lacking[a, b] = self._share(self._passed(a, b))
        return found

    def _passed(self, a: _Stage, b: _Stage) -> int:
        """The largest flow from one stage to the next."""
        senders, receivers = len(a.nodes), len(b.nodes)
        tails, heads, rows, columns = _arcs(senders, receivers)
        sent, links = np.array(a.rates), self.problem.link[np.array(a.nodes)[rows], np.array(b.nodes)[columns]]
        network = max_flow.SimpleMaxFlow()
        network.add_arcs_with_capacity(tails, heads, np.concatenate([sent, np.minimum(links, sent[rows]), b.rates]))
        network.solve(senders + receivers, senders + receivers + 1)
        return int(network.optimal_flow())

    def _changed(self, stages: list[_Stage], idle: tuple[int, ...]) -> tuple[list[_Stage], tuple[int, ...]]:
        """Stages and idle nodes after a random change; the same ones if the change that was drawn is not possible."""
        draw = self._random.random()
        if draw < ORDERS:
            return self._in_place(self._in_other_order(stages)), idle
        if draw < ORDERS + LAYERS:
            return self._in_place(self._with_other_sizes(stages)), idle
        x, y = self._random.sample(range(len(stages) + 1), 2)  # the last number stands for idle nodes
        one, other = (list(stages[k].nodes if k < len(stages) else idle) for k in (x, y))
        if draw < ORDERS + LAYERS + MOVES:
            if len(one) <= (x < len(stages)):
                return stages, idle
            other.append(one.pop(self._random.randrange(len(one))))
        else:
            a = self._random.randrange(len(one)) if one else 0
            fits = list(range(len(other) if one else 0))
            if draw < ORDERS + LAYERS + MOVES + LIKE:
                fits = [
                    b for b in fits
                    if self._kind[other[b]] == self._kind[one[a]] and self._site[other[b]] != self._site[one[a]]
                ]  # fmt: skip
            if not fits:
                return stages, idle
            b = self._random.choice(fits)
            one[a], other[b] = other[b], one[a]
        new = stages.copy()
        for k, nodes in ((x, one), (y, other)):
            if k == len(stages):
                idle = tuple(nodes)
            else:
                first = 0 if self.problem.alike else sum(stage.size for stage in stages[:k])
                new[k] = self._stage(nodes, stages[k].size, first)
        return new, idle

    def _in_other_order(self, stages: list[_Stage]) -> list[_Stage]:
        """A part of the stages is reversed, or one of them moves."""
        low, high = sorted(self._random.sample(range(len(stages)), 2)) if len(stages) > 1 else (0, 0)
        part = stages[low : high + 1]
        part = self._random.choice((part[::-1], [*part[1:], part[0]], [part[-1], *part[:-1]]))
        return stages[:low] + part + stages[high + 1 :]

    def _with_other_sizes(self, stages: list[_Stage]) -> list[_Stage]:
        """One stage gives a layer to another."""
        x, y = self._random.sample(range(len(stages)), 2) if len(stages) > 1 else (0, 0)
        if stages[x].size == 1 or stages[y].size == self.problem.most:
            return stages
        new = stages.copy()
        for k, more in ((x, -1), (y, 1)):
            new[k] = self._stage(stages[k].nodes, stages[k].size + more, 0)
        return new

    def _in_place(self, stages: list[_Stage]) -> list[_Stage]:
        """The stages with the rates that nodes have where the stages are now."""
        if self.problem.alike:
            return stages
        firsts = accumulate((stage.size for stage in stages), initial=0)
        return [self._stage(stage.nodes, stage.size, first) for first, stage in zip(firsts, stages, strict=False)]
