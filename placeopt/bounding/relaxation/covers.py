"""Memory covers: cuts from trees and chains of groups that do not fit on one device.

**Definitions.** Let L be a number of bytes. A kind is *small* if none of its devices holds more than L. A pair on
different devices has an *end* on a small kind for each of its two groups that is on one. Let T be a tree of pairs.

**Tree covers.** If the groups of T need more than L bytes,

    sum over pairs of (ends of the pair) + sum over leaves of [the leaf is on a kind that is not small] >= 2.

Proof. Remove the pairs of T that are on different devices. Each remaining component is on one device. A component on a
small kind holds at most L bytes, so it is not all of T. If there are two or more such components, each has an outgoing
pair with an end in it: two ends. If there is one, it has such a pair: one end; behind this pair lies a part of T
without small components, which contains a leaf of T on a kind that is not small. If there is none, all leaves count,
and T has at least two. This also holds for a pool, which counts as one device and is not small. ∎

Trees are grown from every group along the pairs with the fewest ends in the given point (ties: large payloads), and
then pruned.

**Chain covers** count the devices that a whole path of pairs takes. Let the path visit distinct groups, h_g their
bytes, H the bytes of all, and u_g = [g is not on a small kind]. Then, for N = ceil(H / L) and r = H - (N - 1) L,

    ends + leaves not on small kinds + 2 sum_g f(h_g) u_g >= 2 N - 2,    f(h) = floor(h / L) + min(1, (h mod L) / r).

Proof. Remove the pairs on different devices; let b components on small kinds remain. Each has two ends, and one fewer
for each of the path's two leaves that it contains. If k of the two leaves are on small kinds,

    ends + leaves not on small kinds = (2 b - k) + (2 - k) >= 2 b - 2.

Each of the b components holds at most L bytes, so L b + sum_g h_g u_g >= H. Mixed-integer rounding gives b + sum_g
f(h_g) u_g >= N. ∎

For N = 2 a tree cover is stronger, for larger N a chain cover is stronger than several tree covers. Chains are parts of
the longest path in the given point. 2 f is rounded up to a multiple of 1 / GRAIN to keep integers small.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from placeopt.bounding.engines.linear_program import Row, row
from placeopt.bounding.relaxation.model import GroupGraph, Relaxation, longest_paths
from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.problem import UNLIMITED

ENOUGH = 2.0
"""Right-hand side of a tree cover."""

LEVELS = 3
"""Number of capacities tried as L, the smallest first."""

SMALLEST = 0.02
"""Least violation of a cut that is added."""

MOST_GROUPS = 256
"""Maximum number of groups of a tree."""

GRAIN = 16
"""Rows of chains are multiplied by this."""

DEVICES = 32
"""Maximum number of devices that a chain takes."""

MEMORY_BITS = 50
"""Maximum number of bits for amounts of memory; larger ones are counted in larger units."""

FURTHER = 4
"""Number of groups by which a chain is extended after it starts to take another device."""


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """A limit L in bytes, the small kinds (k,), and the ends of each move (v,)."""

    limit: int
    small: Bool
    ends: Int


class CoverCuts:
    """Finds violated tree covers."""

    def __init__(self, relaxation: Relaxation, network: GroupGraph) -> None:
        self.relaxation, self.network = relaxation, network
        kinds = relaxation.kinds
        self.memory = kinds.classes.group_memory
        limited = kinds.capacity[(kinds.capacity > 0) & (kinds.capacity < UNLIMITED)]
        limits = np.unique(limited)[:LEVELS].tolist()
        self.levels: list[Level] = []
        for limit in limits:
            if self.memory.sum() > limit:
                small = kinds.capacity <= limit
                self.levels.append(Level(limit, small, np.asarray(small[kinds.moves].sum(axis=1), dtype=np.int64)))

    def violated(self, x: Float) -> list[tuple[float, Row]]:
        """Violated covers, without duplicates, and their violation."""
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
                network.start, network.neighbour, network.pair, ends, network.appeal, outside, self.memory, level.limit,
                member, parent, pair, size, value,
            )  # fmt: skip
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
    """The leaves of a tree; `parent` holds positions in `member`, the first has none."""
    degree = np.zeros(len(member), dtype=np.int64)
    degree[1:] += 1
    np.add.at(degree, parent[1:], 1)
    return np.asarray(member[degree == 1])


@kernel()
def grown_trees(
    start: Int, neighbour: Int, pair: Int, ends: Float, appeal: Float, outside: Float, memory: Int, limit: int,
    member: Int, parent: Int, via: Int, size: Int, value: Float,
) -> None:  # fmt: skip
    """Grow a tree from every group until it needs more than `limit` bytes, then prune it.

    Row g of `member`, `parent` and `via` becomes the tree from group g: its groups, the position of each parent, and
    the pair to it. `size` is the number of groups, 0 if no tree was found; `value` is the left-hand side of its cover.
    A tree is abandoned once its value is 2 without the leaves.
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
        inside = 2 * seed + 1  # stamp of members; 2 * seed is the stamp of their neighbours
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
        # Remove dispensable leaves, the most expensive first; the seed may be one.
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
        # Compact the rest, in order; the parent of the first may be gone.
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
            degree[place] = kept  # its new position, for its children
            kept += 1
        size[seed], value[seed] = kept, left


class ChainCuts:
    """Finds violated chain covers."""

    def __init__(self, relaxation: Relaxation, covers: CoverCuts) -> None:
        self.relaxation = relaxation
        self.levels, self.memory = covers.levels, covers.memory
        pairs = zip(relaxation.low.tolist(), relaxation.high.tolist(), strict=True)
        self.pair = {ends: q for q, ends in enumerate(pairs)}

    def violated(self, x: Float) -> list[tuple[float, Row]]:
        """Violated chains, and the violation per device beyond the first."""
        if not self.levels or not self.relaxation.timed:
            return []
        groups = self._longest_path(x)
        pairs = np.array([self.pair[min(ends), max(ends)] for ends in itertools.pairwise(groups)], np.int64)
        visited = np.array(groups, dtype=np.int64)
        moving = np.maximum(x[self.relaxation.w[pairs]], 0.0)
        return [cut for level in self.levels for cut in self._of_level(x, level, visited, pairs, moving @ level.ends)]

    def _of_level(self, x: Float, level: Level, groups: Int, pairs: Int, ends: Float) -> list[tuple[float, Row]]:
        limit = level.limit
        outside = x[self.relaxation.y[np.ix_(groups, np.flatnonzero(~level.small))]].sum(axis=1)
        held = np.concatenate(([0], np.cumsum(self.memory[groups])))
        before = np.concatenate(([0.0], np.cumsum(ends)))
        found = []
        for first, stop in enumerate(_distinct(groups.tolist())):
            most = min(DEVICES, -(-int(held[stop] - held[first]) // limit))
            for devices in range(3, most + 1):
                start = int(np.searchsorted(held, held[first] + (devices - 1) * limit, side="right")) - 1
                for last in range(start, min(start + FURTHER, stop)):
                    total = int(held[last + 1] - held[first])
                    if total > devices * limit:
                        break
                    chain = slice(first, last + 1)
                    weight = _weights(self.memory[groups[chain]], limit, total - (devices - 1) * limit)
                    value = GRAIN * float(before[last] - before[first] + outside[first] + outside[last])
                    value += float(weight @ outside[chain])
                    excess = (GRAIN * (2 * devices - 2) - value) / (GRAIN * (devices - 1))
                    if excess > SMALLEST:
                        found.append((excess, self._row(level, groups[chain], pairs[first:last], weight, devices)))
        return found

    def _row(self, level: Level, groups: Int, pairs: Int, weight: Int, devices: int) -> Row:
        relaxation = self.relaxation
        moves, others = np.flatnonzero(level.ends), np.flatnonzero(~level.small)
        leaves = relaxation.y[np.ix_(groups[[0, -1]], others)].reshape(-1)
        crossing, outside = (
            relaxation.w[np.ix_(pairs, moves)].reshape(-1),
            relaxation.y[np.ix_(groups, others)].reshape(-1),
        )
        ends, weights = np.tile(GRAIN * level.ends[moves], len(pairs)), np.repeat(weight, len(others))
        columns = np.concatenate((crossing, outside, leaves))
        coefficients = np.concatenate((ends, weights, np.full(len(leaves), GRAIN)))
        return row(columns, coefficients, GRAIN * (2 * devices - 2))

    def _longest_path(self, x: Float) -> list[int]:
        """The groups along the longest path in a point, consecutive duplicates removed."""
        relaxation, problem = self.relaxation, self.relaxation.problem
        running = (x[relaxation.y][problem.group] * relaxation.kinds.duration).sum(axis=1)
        sources = np.flatnonzero(np.diff(problem.in_start) == 0).tolist()
        length, last = longest_paths(problem, problem.order.tolist(), sources, running, relaxation.transfer_times(x))
        task = max(range(problem.n_tasks), key=lambda i: length[i] + running[i])
        path = [task]
        while task in last:
            task = int(problem.edge_source[last[task]])
            path.append(task)
        return [group for group, _ in itertools.groupby(problem.group[path[::-1]].tolist())]


def _weights(memory: Int, limit: int, rest: int) -> Int:
    """2 f of the groups in units of 1 / GRAIN, rounded up; a little more for large numbers, which is valid too."""
    part = np.minimum(memory % limit, rest)
    shift = max(0, rest.bit_length() - MEMORY_BITS)
    part, rest = -(-part >> shift), rest >> shift
    return np.asarray(2 * GRAIN * (memory // limit) - (-2 * GRAIN * part // rest))


def _distinct(groups: list[int]) -> list[int]:
    """For each position, the end of the longest run of distinct groups that starts there."""
    last: dict[int, int] = {}
    stops, stop = [0] * len(groups), len(groups)
    for place in range(len(groups) - 1, -1, -1):
        stop = min(stop, last.get(groups[place], stop))
        last[groups[place]] = place
        stops[place] = stop
    return stops
