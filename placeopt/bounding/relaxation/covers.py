"""Memory covers: groups too many for one device are not all on one.

Let T be a tree of pairs over groups that together need more than L bytes, and call a kind *small* if none of its
devices holds more than L. Each pair of T that is on different devices has an *end* on a small kind for each of its two
groups that is on one. Then

    sum over pairs of (ends of the pair) + sum over leaves of [the leaf is on a kind that is not small] >= 2.

Proof. Take the pairs of T that are on different devices away; what is left are components, each on one device.
Components on small kinds hold at most L bytes, so none of them is all of T. If there are two or more, each has a pair
that leads out of it, which ends in it: two ends. If there is one, it has such a pair, one end; behind that pair lies a
part of T without small components, which contains a leaf of T that is not on a small kind. If there is none,
all leaves count, and T has at least two. So it holds for a pool too, which counts as one device and is not small.

Trees are grown from every group along the pairs with the fewest ends in the point at hand, those with large payloads
first among equals, and then lose what they do not need.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.bounding.engines.linear_program import Row, row
from placeopt.bounding.relaxation.model import Relaxation
from placeopt.bounding.relaxation.network import Network
from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.problem import UNLIMITED

ENOUGH = 2.0
"""Right-hand side of a cover."""

LEVELS = 3
"""Capacities tried as L, the smallest first."""

SMALLEST = 0.02
"""Violation from which on a cover is worth a row."""

MOST_GROUPS = 256
"""Groups of a tree, at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """A limit L in bytes and what follows from it: small kinds (k,), ends of each move (v,)."""

    limit: int
    small: Bool
    ends: Int


class Covers:
    """Finds the covers that a point violates."""

    def __init__(self, relaxation: Relaxation, network: Network) -> None:
        self.relaxation, self.network = relaxation, network
        kinds = relaxation.kinds
        self.memory = kinds.classes.group_memory
        limited = kinds.capacity[(kinds.capacity > 0) & (kinds.capacity < UNLIMITED)]
        limits = np.unique(limited)[:LEVELS].tolist()
        self.levels = [self._level(limit) for limit in limits if self.memory.sum() > limit]

    def _level(self, limit: int) -> Level:
        small = self.relaxation.kinds.capacity <= limit
        return Level(limit, small, np.asarray(small[self.relaxation.kinds.moves].sum(axis=1), dtype=np.int64))

    def violated(self, x: Float) -> list[tuple[float, Row]]:
        """Violated covers and by how much; none twice."""
        found: dict[tuple[int, ...], tuple[float, Row]] = {}
        relaxation = self.relaxation
        moving = np.maximum(x[relaxation.w], 0.0)
        network = self.network
        for place, level in enumerate(self.levels):
            ends = moving @ level.ends.astype(np.float64)
            outside = x[relaxation.y[:, ~level.small]].sum(axis=1)
            groups = len(self.memory)
            parent = np.empty((groups, MOST_GROUPS), dtype=np.int64)
            member, pair = np.empty_like(parent), np.empty_like(parent)
            size, value = np.zeros(groups, dtype=np.int64), np.zeros(groups)
            grow = grown_trees.select(groups * MOST_GROUPS * MOST_GROUPS)
            grow(
                network.start,
                network.neighbour,
                network.pair,
                ends,
                network.appeal,
                outside,
                self.memory,
                level.limit,
                member,
                parent,
                pair,
                size,
                value,
            )
            for seed in np.flatnonzero((size > 1) & (value < ENOUGH - SMALLEST)).tolist():
                count = int(size[seed])
                pairs = pair[seed, 1:count]
                leaves = _leaves(member[seed, :count], parent[seed, :count])
                key = (place, *sorted(pairs.tolist()))
                if key not in found:
                    found[key] = (ENOUGH - float(value[seed]), self._row(level, pairs, leaves))
        return list(found.values())

    def _row(self, level: Level, pairs: Int, leaves: Int) -> Row:
        relaxation = self.relaxation
        moves = np.flatnonzero(level.ends)
        columns = relaxation.w[np.ix_(pairs, moves)].reshape(-1)
        ends = np.tile(level.ends[moves], len(pairs))
        outside = relaxation.y[np.ix_(leaves, np.flatnonzero(~level.small))].reshape(-1)
        return row(np.concatenate([columns, outside]), np.concatenate([ends, np.ones(len(outside), np.int64)]), 2)


def _leaves(member: Int, parent: Int) -> Int:
    """The groups of a tree with one pair; `parent` holds places in `member`, the first has none."""
    degree = np.zeros(len(member), dtype=np.int64)
    degree[1:] += 1
    np.add.at(degree, parent[1:], 1)
    return np.asarray(member[degree == 1])


@kernel()
def grown_trees(
    start: Int,
    neighbour: Int,
    pair: Int,
    ends: Float,
    appeal: Float,
    outside: Float,
    memory: Int,
    limit: int,
    member: Int,
    parent: Int,
    via: Int,
    size: Int,
    value: Float,
) -> None:
    """Grow a tree from every group until it needs more than `limit` bytes, and take off what it does not need.

    Row g of `member`, `parent` and `via` becomes the tree from group g: its groups, the place of the group that each
    hangs on, and the pair between; `size` their number, 0 where none was found, and `value` the left side of its cover.
    Nothing is grown on once its value is 2 without the leaves.
    """
    groups = len(start) - 1
    most = member.shape[1]
    stamp = np.full(groups, -1, dtype=np.int64)
    cost = np.zeros(groups)
    by_place = np.zeros(groups, dtype=np.int64)
    by_pair = np.zeros(groups, dtype=np.int64)
    waiting = np.zeros(groups, dtype=np.int64)
    degree = np.zeros(most, dtype=np.int64)
    gone = np.zeros(most, dtype=np.int64)
    for seed in range(groups):
        size[seed] = 0
        inside = 2 * seed + 1  # stamp of members; 2 * seed is that of the groups next to them
        stamp[seed] = inside
        member[seed, 0], parent[seed, 0], via[seed, 0] = seed, -1, -1
        count, frontier, held, total = 1, 0, memory[seed], 0.0
        newest = seed
        while held <= limit and count < most and total < 2.0:
            for position in range(start[newest], start[newest + 1]):
                g, q = neighbour[position], pair[position]
                weight = ends[q] - appeal[q]
                if stamp[g] == inside:
                    continue
                if stamp[g] != inside - 1:
                    stamp[g] = inside - 1
                    waiting[frontier] = g
                    frontier += 1
                elif weight >= cost[g]:
                    continue
                cost[g], by_place[g], by_pair[g] = weight, count - 1, q
            if frontier == 0:
                break
            chosen = 0
            for place in range(1, frontier):
                if cost[waiting[place]] < cost[waiting[chosen]]:
                    chosen = place
            newest = waiting[chosen]
            frontier -= 1
            waiting[chosen] = waiting[frontier]
            stamp[newest] = inside
            member[seed, count], parent[seed, count], via[seed, count] = newest, by_place[newest], by_pair[newest]
            held += memory[newest]
            total += ends[by_pair[newest]]
            count += 1
        if held <= limit or total >= 2.0 or count < 2:
            continue
        # Leaves that the tree can do without, the most expensive first; the seed may be one.
        degree[:count] = 0
        gone[:count] = 0
        for place in range(1, count):
            degree[place] += 1
            degree[parent[seed, place]] += 1
        while True:
            worst, most_saved = -1, -1.0
            for place in range(count):
                if gone[place] == 0 and degree[place] == 1 and held - memory[member[seed, place]] > limit:
                    saved = outside[member[seed, place]]
                    if place > 0 and gone[parent[seed, place]] == 0:
                        saved += ends[via[seed, place]]
                    else:
                        for child in range(1, count):
                            if gone[child] == 0 and parent[seed, child] == place:
                                saved += ends[via[seed, child]]
                    if saved > most_saved:
                        worst, most_saved = place, saved
            if worst < 0:
                break
            gone[worst] = 1
            held -= memory[member[seed, worst]]
            if worst > 0 and gone[parent[seed, worst]] == 0:
                degree[parent[seed, worst]] -= 1
            else:
                for child in range(1, count):
                    if gone[child] == 0 and parent[seed, child] == worst:
                        degree[child] -= 1
        # What is left, in order; the first has lost its parent, if it had one.
        kept = 0
        left = 0.0
        for place in range(count):
            if gone[place] == 1:
                continue
            above = parent[seed, place]
            hangs = above >= 0 and gone[above] == 0
            if hangs:
                left += ends[via[seed, place]]
            if degree[place] == 1:
                left += outside[member[seed, place]]
            member[seed, kept] = member[seed, place]
            parent[seed, kept] = degree[above] if hangs else -1
            via[seed, kept] = via[seed, place]
            degree[place] = kept  # its place among what is kept, for those that hang on it
            kept += 1
        size[seed], value[seed] = kept, left
