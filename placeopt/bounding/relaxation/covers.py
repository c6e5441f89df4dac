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

from placeopt import engine
from placeopt.bounding.engines.linear_program import Row, row
from placeopt.bounding.relaxation.model import GroupGraph, Relaxation, longest_paths
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
        network, stop = self.network, engine.Stop(relaxation.program.should_stop)
        for place, level in enumerate(self.levels):
            ends = moving @ level.ends.astype(np.float64)
            outside = x[relaxation.y[:, ~level.small]].sum(axis=1)
            start, member, parent, pair, value = engine.grow_trees(
                network.start, network.neighbour, network.pair, ends, network.appeal, outside, self.memory, level.limit,
                MOST_GROUPS, stop,
            )  # fmt: skip
            for seed in np.flatnonzero((np.diff(start) > 1) & (value < ENOUGH - SMALLEST)).tolist():
                tree = slice(start[seed], start[seed + 1])
                pairs = pair[tree][1:]
                leaves = _leaves(member[tree], parent[tree])
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
