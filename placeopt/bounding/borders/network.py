"""What a set of groups must move across its border, and the least of it as a minimum cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from ortools.graph.python import max_flow

from placeopt.bounding.quick.classes import Classes
from placeopt.model.arrays import Bool, Int, by_index, csr
from placeopt.model.problem import Problem

LARGEST = 1 << 60
"""All capacities of a network add up to less, apart from those that are never cut."""

UNCUT = 1 << 61
"""Capacity of arcs that no minimum cut contains."""


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """Data that may move between groups: one output, or the payload of one edge with a separate transfer."""

    producer: Int
    payload: Int
    """(x,) group that produces it, and its bytes, the fewest of its edges."""
    start: Int
    consumer: Int
    """(x + 1,) and (c,) groups other than the producer that consume it, as CSR; at least one for each item."""


def items_of(problem: Problem) -> Items:
    """The items of a problem, without those that stay within a group."""
    source, target = problem.group[problem.edge_source], problem.group[problem.edge_target]
    between = np.flatnonzero(source != target)
    key = np.where(problem.shared, problem.edge_source, problem.n_tasks + np.arange(problem.n_edges))[between]
    _, first, item = np.unique(key, return_index=True, return_inverse=True)
    payload = by_index(np.minimum, item, problem.payload[between], len(first), np.iinfo(np.int64).max)
    return Items(source[between[first]], payload, *csr(len(first), np.stack((item, target[between]), axis=1)))


def least_ticks(classes: Classes, items: Items, c: int) -> Int:
    """(x,) least ticks of each item on a link of a device of class c; zero without links."""
    problem, d = classes.problem, int(classes.leader[c])
    others = sorted({*classes.target[c].tolist(), *classes.source[:, c].tolist()} - {d})
    ways = [problem.transfer(items.payload, *pair) for o in others for pair in ((d, o), (o, d))]
    return np.asarray(np.minimum.reduce(ways)) if ways else np.zeros(len(items.payload), dtype=np.int64)


class Network:
    """The items that take time, as a graph whose cuts cost what a set of groups moves across its border."""

    def __init__(self, n_groups: int, items: Items, ticks: Int) -> None:
        self._groups = n_groups
        moving = np.flatnonzero(ticks)
        sizes = np.diff(items.start)[moving]
        self.ticks, self._moving = ticks[moving], moving.tolist()
        self._producer = items.producer[moving]
        self._item = np.repeat(np.arange(len(moving)), sizes)
        self._start = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64)
        place = np.repeat(items.start[:-1][moving] - self._start, sizes) + np.arange(len(self._item))
        self._consumer = items.consumer[place]
        # Node `leaving` of an item is in the set if its producer is, or the item counts as sent; all its consumers are
        # in the set if `leaving` is. If a consumer is in the set, `entering` is, and then so is the producer, or the
        # item counts as received.
        leaving = n_groups + np.arange(len(moving))
        entering = leaving + len(moving)
        self._size = n_groups + 2 * len(moving)
        self._tail = np.concatenate((self._producer, entering, leaving[self._item], self._consumer))
        self._head = np.concatenate((leaving, self._producer, self._consumer, entering[self._item]))
        self._uncut = np.full(2 * len(self._item), UNCUT)

    def crossings(self) -> Iterator[tuple[int, int, list[int]]]:
        """Each item, its ticks, and its groups, the producer first."""
        consumers = np.split(self._consumer, self._start[1:]) if len(self.ticks) else []
        producers = self._producer.tolist()
        for item, ticks, first, others in zip(self._moving, self.ticks.tolist(), producers, consumers, strict=True):
            yield item, ticks, [first, *others.tolist()]

    def border(self, members: Bool) -> int:
        """The ticks of all items that have their producer or a consumer in a set (g,), but not all of them."""
        if not len(self.ticks):
            return 0
        inside = members[self._consumer]
        some = np.logical_or.reduceat(inside, self._start)
        every = np.logical_and.reduceat(inside, self._start)
        return int(self.ticks[np.where(members[self._producer], ~every, some)].sum())

    def most(self, members: Bool, excluded: Bool, factor: int, worth: Int) -> tuple[int, Bool]:
        """The most of worth(S) - factor border(S) over sets S, and a set (g,) that has it.

        All sets contain `members` (g,), which are not empty, and none of the groups `excluded` (g,). `worth` is (g,),
        perhaps negative.
        """
        source, sink = self._size, self._size + 1
        anchor, *others = np.flatnonzero(members).tolist()
        losses = np.flatnonzero((worth < 0) & ~excluded & ~members)
        gains = np.flatnonzero((worth > 0) & ~excluded & ~members)
        outside = np.flatnonzero(excluded)
        ticks = factor * self.ticks
        flow = max_flow.SimpleMaxFlow()
        flow.add_arcs_with_capacity(
            np.concatenate(
                (
                    self._tail, losses, outside, np.full(len(gains) + 2, source),
                    np.full(len(others), anchor, dtype=np.int64),
                )
            ),
            np.concatenate(
                (
                    self._head, np.full(len(losses) + len(outside), sink), gains, [sink, anchor],
                    np.array(others, dtype=np.int64),
                )
            ),
            np.concatenate(
                (
                    ticks, ticks, self._uncut, -worth[losses], np.full(len(outside), UNCUT), worth[gains],
                    [0, UNCUT], np.full(len(others), UNCUT),
                )
            ),
        )  # fmt: skip
        if flow.solve(source, sink) != flow.OPTIMAL:
            raise ArithmeticError("a network whose capacities are limited has no largest flow")
        found = np.zeros(self._size + 2, dtype=np.bool_)
        found[flow.get_source_side_min_cut()] = True
        value = int(worth[gains].sum()) + int(worth[members].sum()) - int(flow.optimal_flow())
        return value, found[: self._groups] | members
