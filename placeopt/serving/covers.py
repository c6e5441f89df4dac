"""Cheapest covers: nodes with a least total size, by dynamic programming."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.model.arrays import Int

NEVER = 2**60
"""Cost of what no nodes cover."""

Nodes = Counter[tuple[int, int, float]]
"""Number of nodes by their group, their number of layers, and the requests of their steps."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way in which a node of a group may take part: with how many layers, its size on the grid, its cost, and the
    requests of its steps."""

    group: int
    layers: int
    size: int
    cost: int
    requests: float = 0.0


class Cover:
    """The least cost of nodes with a total size of at least 0, 1, ..., `target`, and these nodes.

    The table is made in rounds, and each adds at most one node of a group; there are `limits` nodes of each group.
    """

    def __init__(self, ways: Sequence[Way], limits: Sequence[int], target: int) -> None:
        least = np.full(target + 1, NEVER, dtype=np.int64)
        least[0] = 0
        self._steps: list[tuple[list[Way], Int]] = []
        for group, limit in enumerate(limits):
            choices = _useful([way for way in ways if way.group == group])
            for _ in range(limit if choices else 0):
                before = least
                least = np.minimum(before, _with_one(choices, before))
                if np.array_equal(before, least):
                    break
                self._steps.append((choices, before))
        self.least = least

    def nodes(self, size: int) -> Nodes:
        """The nodes of a cheapest cover of a size that has one."""
        found: Nodes = Counter()
        cost = int(self.least[size])
        for choices, before in reversed(self._steps):
            if int(before[size]) != cost:
                size, cost = _taken(choices, before, size, cost, found)
        return found


class CountedCover:
    """The least cost of exactly 1, 2, ... nodes with a total size of at least `target`, without limits of groups."""

    def __init__(self, ways: Sequence[Way], target: int, most: int) -> None:
        self.target = target
        self._choices = _useful(list(ways))
        least = np.full(target + 1, NEVER, dtype=np.int64)
        least[0] = 0
        self._tables = [least]
        while len(self._tables) <= most and self._choices:
            self._tables.append(_with_one(self._choices, self._tables[-1]))

    def cost(self, count: int) -> int:
        """The least cost with this many nodes; NEVER if there are none."""
        return int(self._tables[count][self.target]) if count < len(self._tables) else NEVER

    def nodes(self, count: int) -> Nodes:
        """The nodes of a cheapest cover that exists."""
        found: Nodes = Counter()
        size, cost = self.target, self.cost(count)
        for before in reversed(self._tables[:count]):
            size, cost = _taken(self._choices, before, size, cost, found)
        return found


def _with_one(choices: Sequence[Way], before: Int) -> Int:
    """The least cost of each size with one more node."""
    least, most = np.full_like(before, NEVER), len(before) - 1
    smaller = np.concatenate([np.full(most, before[0]), before])  # a node may be larger than a size
    with_way = np.empty_like(before)
    for way in choices:
        first = most - min(way.size, most)
        np.add(smaller[first : first + most + 1], way.cost, out=with_way)
        np.minimum(least, with_way, out=least)
    return least


def _taken(choices: Sequence[Way], before: Int, size: int, cost: int, found: Nodes) -> tuple[int, int]:
    """Take the node that led to a cost; the size and the cost of the others."""
    way = next(w for w in choices if int(before[max(size - w.size, 0)]) + w.cost == cost)
    found[way.group, way.layers, way.requests] += 1
    return max(size - way.size, 0), cost - way.cost


def _useful(ways: list[Way]) -> list[Way]:
    """The ways without those that another replaces: of at least its size, and at most its cost."""
    found: list[Way] = []
    for way in sorted(ways, key=lambda w: (w.cost, -w.size)):
        if way.size > 0 and (not found or way.size > found[-1].size):
            found.append(way)
    return found
