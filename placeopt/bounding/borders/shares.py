"""The least load, for each unit of computing, of a device that runs a certain group.

A device of class c, or the leader of a team of them, runs a set S of groups. In ticks,

    x(S)    computing of its groups
    h(S)    moving(S) + gradient(S), and the launch of one stage where the device does not overlap

where moving(S) is what crosses the border of S (`placeopt.bounding.borders.network`), halved for full duplex: the larger
of sent and received is at least half of both. gradient(S) is what a team of two moves to synchronise, without latency;
larger teams move more. So h(S) is at most what the device does beside x(S), and its load is at least

    x + h                    and at most `cap`, if the device does not overlap
    max(x + launch, h)       and at most `cap`, if it does

where cap = period r for a team of r devices. Let S contain group i. A minimum cut gives k with

    q h(S) + p x(S) + v memory(S) >= k       for all sets S that contain i, and integers p, v >= 0, q > 0

so q h >= (k - v capacity) - p x for those that fit in memory. Let K be the bracket. If the device does not overlap,
q (cap - x) >= q h >= K - p x limits x to X = (q cap - K) / (q - p) if q > p, and excludes all x <= cap if q <= p and
K > p cap. On what is left, (K / x - p) / q falls with x if K >= 0. Hence

    load / x >= 1 + (K / X - p) / q          or max(1 + launch / X, (K / X - p) / q) if the device overlaps

Each p, v, q proves a ratio. The best ones are those of the edge of the convex hull of all (x, h) at which the load
exceeds `cap`; Dinkelbach's method finds it in a few cuts: the slope between a set that the device can run and one that
it cannot run, then a set below this slope, which replaces one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from placeopt.bounding.borders.network import Network
from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import UNLIMITED

LARGEST = 1 << 60
"""Sums of capacities of a network, apart from those that are never cut, stay below this."""

FINEST = 1 << 16
"""The smaller one of p and q is about this, unless the numbers are too large."""

CUTS = 12
"""Most cuts for one group and one period."""

NEAR = Fraction(1, 10_000)
"""Relative distance of a cut from the slope at which the search ends."""


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """A class of devices as the leader of a team; all times are in ticks times a common factor.

    Attributes
    ----------
    network
        What sets of groups move across their borders.
    computing, gradient, memory
        (g,) of each group; gradient is zero without a team.
    excluded
        (g,), whether the class may not run the group.
    apart
        (s, 2) separated groups, sorted.
    launch
        Ticks of one launch.
    overlap
        Whether the device computes while it sends and receives.
    capacity
        Bytes, or UNLIMITED.
    """

    network: Network
    computing: Int
    gradient: Int
    memory: Int
    excluded: Bool
    apart: Int
    launch: int
    overlap: bool
    capacity: int

    def without(self, group: int) -> Bool:
        """The excluded groups (g,), and those that are separated from a group."""
        first, last = np.searchsorted(self.apart[:, 0], (group, group + 1))
        if first == last:
            return self.excluded
        found = self.excluded.copy()
        found[self.apart[first:last, 1]] = True
        return found


@dataclass(frozen=True, slots=True)
class Slope:
    """The factors p, q and v."""

    time: int
    border: int
    memory: int = 0


class Search:
    """The ratios of one device for one largest load, group by group."""

    def __init__(self, device: Device, cap: int) -> None:
        self.device, self.cap = device, cap
        self.cuts = 0
        self._limits = device.capacity != UNLIMITED
        network = device.network
        self._total = int(network.ticks.sum()) * 2 + int(device.gradient.sum()) + 1
        self._last: dict[bool, Slope] = {}

    def ratio(self, group: int) -> Fraction | None:
        """A lower bound of load / computing of all devices that run a group with computing; None if none can."""
        found = Fraction(1)
        for by_memory in (False, True) if self._limits else (False,):
            ratio = self._search(group, by_memory)
            if ratio is None:
                return None
            found = max(found, ratio)
        return found

    def _search(self, group: int, by_memory: bool) -> Fraction | None:
        """The best ratio of slopes of time, or of memory."""
        device = self.device
        excluded = device.without(group)
        size = device.memory if by_memory else device.computing
        alone, all_of_them = np.zeros(len(size), dtype=np.bool_), ~excluded
        alone[group] = True
        low, high = self._point(alone, size), self._point(all_of_them, size)
        best = self._proved(group, 0, Slope(0, 1))
        if self._possible(all_of_them, by_memory):
            return best
        guess = self._last.get(by_memory)
        for _ in range(CUTS):
            slope = self._slope(low, high, size, by_memory) if guess is None else guess
            if slope is None:
                break
            p = slope.memory if by_memory else slope.time
            weight = p * size + slope.border * device.gradient
            value, members = device.network.least(group, slope.border, weight, excluded)
            self.cuts += 1
            ratio = self._proved(group, value, slope)
            if ratio is None:
                return None
            assert best is not None
            if ratio > best:
                best, self._last[by_memory] = ratio, slope
            point = self._point(members, size)
            line = min(p * x + slope.border * h for x, h in (low, high))
            if guess is None and (point in (low, high) or value >= line - NEAR * line):
                break
            guess = None
            if self._possible(members, by_memory):
                low = point
            else:
                high = point
        return best

    def _point(self, members: Bool, size: Int) -> tuple[int, int]:
        """Size, and what moves; without the launch, which is the same for all sets."""
        moved = self.device.network.border(members) + int(self.device.gradient[members].sum())
        return int(size[members].sum()), moved

    def _possible(self, members: Bool, by_memory: bool) -> bool:
        """Whether the load, or the memory, of a set is within its limit."""
        device = self.device
        if by_memory:
            return int(device.memory[members].sum()) <= device.capacity
        x, h = self._point(members, device.computing)
        if device.overlap:
            return max(x + device.launch, h) <= self.cap
        return x + h + device.launch <= self.cap

    def _slope(self, low: tuple[int, int], high: tuple[int, int], size: Int, by_memory: bool) -> Slope | None:
        """The slope between two points, in integers that leave room for the sums of a network."""
        wide, fall = high[0] - low[0], low[1] - high[1]
        if wide <= 0 or fall <= 0:
            return None
        most = int(size.sum()) * fall // wide + self._total
        q = min(LARGEST // (most + 1), FINEST * max(1, wide // fall))
        if q == 0:
            return None
        p = q * fall // wide
        return Slope(0, q, p) if by_memory else Slope(p, q)

    def _proved(self, group: int, value: int, slope: Slope) -> Fraction | None:
        """The ratio that a cut proves; None if no set with the group is within the limits."""
        device, cap = self.device, self.cap
        launch = device.launch
        p, q = slope.time, slope.border
        least = value - slope.memory * device.capacity if slope.memory else value  # K
        most = Fraction(cap - launch)
        if device.overlap:
            if least > p * (cap - launch) + q * cap:
                return None
        else:
            least += q * launch
            if q > p:
                most = min(most, Fraction(q * cap - least, q - p))
            elif least > p * cap:
                return None
        if most < int(device.computing[group]):
            return None
        beside = (least / most - p) / q if least > 0 else Fraction(0)
        if device.overlap:
            return max(1 + launch / most, beside)
        return 1 + max(launch / most, beside)
