"""Memory covers of whole chains, rounded to the number of devices that they take.

Let a path of pairs visit distinct groups, h_g their bytes, H the bytes of all, and L, *small*, and the *ends* of a pair
be as in `placeopt.bounding.relaxation.covers`; u_g = [g is not on a small kind]. Take the pairs on different devices
away and let b be the number of components on small kinds that are left. Each has two ends, but for those at the ends of
the path (a leaf), which have one. So, if k of the two leaves are on small kinds,

    ends + leaves not on small kinds = (2 b - k) + (2 - k) >= 2 b - 2.

Each of the b components holds L bytes at most: L b + sum_g h_g u_g >= H. By mixed-integer rounding, with N =
ceil(H / L) and r = H - (N - 1) L,

    b + sum_g f(h_g) u_g >= N,   f(h) = floor(h / L) + min(1, (h mod L) / r),

and hence  ends + leaves not on small kinds + 2 sum_g f(h_g) u_g >= 2 N - 2.  For N = 2 a cover says more; from N = 3 on
this is what several covers side by side do not know. Chains are taken from the path that takes longest in the point at
hand; 2 f is rounded up to a multiple of 1 / GRAIN, to keep numbers whole and small.
"""

from __future__ import annotations

import itertools

import numpy as np

from placeopt.bounding.engines.linear_program import Row, row
from placeopt.bounding.relaxation.covers import Covers, Level
from placeopt.bounding.relaxation.model import Relaxation
from placeopt.model.arrays import Float, Int

GRAIN = 16
"""Rows are multiplied by this."""

SMALLEST = 0.02
"""Violation, for each device beyond the first, from which on a chain is worth a row."""

DEVICES = 32
"""Chains that take more devices than this are left to shorter ones."""

MEMORY_BITS = 50
"""Bytes are counted in larger units where they take more bits."""

FURTHER = 4
"""Groups by which a chain is drawn out, one by one, after it has begun to take another device."""


class Chains:
    """Finds the rounded covers that a point violates."""

    def __init__(self, relaxation: Relaxation, covers: Covers) -> None:
        self.relaxation = relaxation
        self.levels, self.memory = covers.levels, covers.memory
        pairs = zip(relaxation.low.tolist(), relaxation.high.tolist(), strict=True)
        self.pair = {ends: q for q, ends in enumerate(pairs)}

    def violated(self, x: Float) -> list[tuple[float, Row]]:
        """Violated chains, and by how much for each device that they take beyond the first."""
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
        columns = (
            relaxation.w[np.ix_(pairs, moves)].reshape(-1),
            relaxation.y[np.ix_(groups, others)].reshape(-1),
            leaves,
        )
        coefficients = (
            np.tile(GRAIN * level.ends[moves], len(pairs)),
            np.repeat(weight, len(others)),
            np.full(len(leaves), GRAIN),
        )
        return row(np.concatenate(columns), np.concatenate(coefficients), GRAIN * (2 * devices - 2))

    def _longest_path(self, x: Float) -> list[int]:
        """The groups along the path that takes longest, each run of one group once."""
        relaxation, problem = self.relaxation, self.relaxation.problem
        running = (x[relaxation.y][problem.group] * relaxation.kinds.duration).sum(axis=1)
        transfer = relaxation.transfer_times(x)
        reached, came = np.zeros(problem.n_tasks), np.full(problem.n_tasks, -1)
        for i in problem.order.tolist():
            end = reached[i] + running[i]
            for e in range(int(problem.out_start[i]), int(problem.out_start[i + 1])):
                j = int(problem.edge_target[e])
                if came[j] < 0 or end + transfer[e] > reached[j]:
                    reached[j], came[j] = end + transfer[e], e
        task = int((reached + running).argmax())
        groups = [int(problem.group[task])]
        while came[task] >= 0:
            task = int(problem.edge_source[came[task]])
            if problem.group[task] != groups[-1]:
                groups.append(int(problem.group[task]))
        return groups[::-1]


def _weights(memory: Int, limit: int, rest: int) -> Int:
    """2 f of the groups, in units of 1 / GRAIN, rounded up; with large numbers a little more, which is right too."""
    part = np.minimum(memory % limit, rest)
    shift = max(0, rest.bit_length() - MEMORY_BITS)
    part, rest = -(-part >> shift), rest >> shift
    return np.asarray(2 * GRAIN * (memory // limit) - (-2 * GRAIN * part // rest))


def _distinct(groups: list[int]) -> list[int]:
    """For each place, where the longest run of distinct groups from there stops."""
    last: dict[int, int] = {}
    stops, stop = [0] * len(groups), len(groups)
    for place in range(len(groups) - 1, -1, -1):
        stop = min(stop, last.get(groups[place], stop))
        last[groups[place]] = place
        stops[place] = stop
    return stops
