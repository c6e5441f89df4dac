"""Lower bounds of the period that count what devices send and receive.

A period of T limits the load of every device, hence the sets of groups that it can run: no set takes longer, and none is
without a border unless it is a whole component of the graph. `shares` proves, for group i on a device of class c, a least
ratio of load to computing of all these sets that contain i. Let y[i, c] be the computing of i times this ratio. For every
set S that a device of class c runs within a period of T,

    sum_(i in S) y[i, c] <= sum_(i in S) computing[i, c] load(S) / computing(S) = load(S)

So y takes the place of the computing time in every bound by loads:

    borders     the ideal division of all y over the devices     `placeopt.bounding.quick.loads`
    division    the best division of whole groups                 `placeopt.bounding.borders.division`

A team of r devices has r times the load of each of them. Both the ratio for one device and that for the largest team are
computed; the smaller one holds for teams of any size. Devices with free transfers have the ratio 1.

If a bound by T is B, then the period is at least min(T, B): it is T or longer, or T was an upper bound of it. The largest
such minimum is found by bisection.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from placeopt.bounding.borders.network import Items, Network, items_of, least_ticks
from placeopt.bounding.borders.shares import LARGEST, Device, Search
from placeopt.bounding.quick import Bound
from placeopt.bounding.quick.classes import Classes, Subset, by_group
from placeopt.bounding.quick.loads import Sharing, candidate_prices, least, price_bound, sharing_of
from placeopt.model.arrays import Int
from placeopt.model.units import time_text

CLOSE = 1 / 2000
"""Relative width of the interval at which the bisection ends."""

FACTOR = 1 << 10
"""Most parts of a tick in which times are counted."""


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """Amounts y for one T.

    Attributes
    ----------
    sharing
        The groups with y as their amounts, in 1 / `factor` ticks.
    factor
        Parts of a tick.
    """

    sharing: Sharing
    factor: int


class Borders:
    """Computes y, and the bounds of it, for any T."""

    def __init__(self, classes: Classes, should_stop: Callable[[], bool]) -> None:
        problem = classes.problem
        assert problem.pipeline is not None
        self.classes, self.should_stop, self.cuts = classes, should_stop, 0
        everything = Subset(np.ones(classes.n_classes, dtype=np.bool_), np.ones(len(classes.allowed), dtype=np.bool_))
        self.plain = sharing_of(classes, everything, classes.duration, loads=True)
        items = items_of(problem)
        self.ticks = [least_ticks(classes, items, c) for c in range(classes.n_classes)]
        gradient = by_group(problem, problem.pipeline.gradient, np.add)
        largest = int(self.plain.amount.max(axis=1).sum()) + 2 * sum(int(each.sum()) for each in self.ticks)
        largest += int(gradient.sum()) + 1
        self.factor = min(FACTOR, LARGEST // largest // (1 << 8) & ~1)
        self.teams = [min(int(size), problem.pipeline.replicas) for size in classes.size]
        self._devices = [self._of_class(c, items, gradient) for c in range(classes.n_classes)] if self.factor else []
        self._latest: tuple[int, Shares | None] | None = None

    def _of_class(self, c: int, items: Items, gradient: Int) -> list[Device]:
        """The leader of a class alone, and with a team; none if its transfers are free."""
        classes, factor = self.classes, self.factor
        problem, d = classes.problem, int(classes.leader[c])
        pipeline = problem.pipeline
        assert pipeline is not None
        if pipeline.free_transfers[d]:
            return []
        halves = factor // 2 if pipeline.full_duplex[d] else factor
        pairs = problem.group[problem.separation]
        pairs = np.concatenate((pairs, pairs[:, ::-1]))
        alone = Device(
            network=Network(problem.n_groups, items, self.ticks[c] * halves),
            computing=self.plain.amount[:, c] * factor,
            gradient=np.zeros(problem.n_groups, dtype=np.int64),
            memory=self.plain.memory,
            excluded=~self.plain.allowed[:, c],
            apart=pairs[np.argsort(pairs[:, 0], kind="stable")],
            launch=int(pipeline.launch[d]) * factor,
            overlap=bool(pipeline.overlap[d]),
            capacity=int(classes.capacity[c]),
        )
        if self.teams[c] == 1:
            return [alone]
        num, den = int(classes.num[c, c]), int(classes.den[c, c])
        moved = [each * num * factor // den for each in gradient.tolist()]
        most = LARGEST // (1 << 8) // max(len(moved), 1)
        return [alone, replace(alone, gradient=np.array([min(each, most) for each in moved], dtype=np.int64))]

    def shares(self, period: int) -> Shares | None:
        """The amounts if the period is at most this; None if some group then has no device."""
        if self._latest is None or self._latest[0] != period:
            self._latest = period, self._shares(period)
        return self._latest[1]

    def _shares(self, period: int) -> Shares | None:
        plain = self.plain
        amount, allowed = plain.amount * max(self.factor, 1), plain.allowed.copy()
        for c, devices in enumerate(self._devices):
            if not devices:
                continue
            searches = [
                Search(device, period * team * self.factor)
                for device, team in zip(devices, (1, self.teams[c]), strict=False)
            ]
            for i in np.flatnonzero(plain.allowed[:, c] & (plain.amount[:, c] > 0)).tolist():
                if self.should_stop():
                    break
                found = [each.ratio(i) for each in searches]
                ratios = [ratio for ratio in found if ratio is not None]
                if ratios:
                    amount[i, c] = math.floor(int(plain.amount[i, c]) * self.factor * min(ratios))
                else:
                    allowed[i, c] = False
            self.cuts += sum(each.cuts for each in searches)
        if not allowed.any(axis=1).all():
            return None
        return Shares(replace(plain, amount=amount, allowed=allowed), max(self.factor, 1))

    def bound(self, period: int) -> int:
        """A lower bound of all periods that are at most `period`; more than it if there are none."""
        shares = self.shares(period)
        if shares is None:
            return period + 1
        found = max((price_bound(shares.sharing, each) for each in candidate_prices(shares.sharing)), default=0)
        return math.ceil(found / Fraction(shares.factor))

    def search(self, least: int, known: int | None) -> int:
        """The best bound by bisection between a bound and a known period, or any."""
        low, high = least, known
        most = 2 * (int(self.plain.amount.sum()) + 2 * sum(int(each.sum()) for each in self.ticks) + 1)
        trial = max(least, 1) * 5 // 4 if known is None else known
        while not self.should_stop():
            found = self.bound(trial)
            if found >= trial:
                low = max(low, trial)
            else:
                low, high = max(low, found), trial
            if low > most or (high is not None and high - low <= max(1, int(CLOSE * low))):
                break
            trial = 2 * low if high is None else (low + high) // 2
        return low
