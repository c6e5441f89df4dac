"""Lower bounds of the period that count what devices send and receive.

A period T is refuted as follows. Each group has some worth on each class. `shares` proves, for each group i and class
c, the most worth u[i, c] that a device of this class can hold together with i within the period T, for each device of
its team. Let

    y[i, c] = T worth[i, c] / u[i, c]

For every set S that a team of r devices of class c runs within the period T, and every i in S, u[i, c] is at least
worth(S) / r, so

    sum_(i in S) y[i, c] <= r T sum_(i in S) worth[i, c] / worth(S) = r T

So y takes the place of the computing times in bounds by loads, and what a set sends and receives is part of it: if the
groups, with y as their times, do not fit on the devices within T, the period is more than T. The first worth is the
computing time; in further rounds, it is the y of the round before, which is larger where sets have room.

    borders     the ideal division of all y over the devices     `placeopt.bounding.quick.loads`
    division    the best division of whole groups                 `placeopt.bounding.borders.division`

Other worths of groups, and sets by CP-SAT:

    configurations                                                `placeopt.bounding.borders.configurations`

Groups without computing time have y = 0. Devices with free transfers have y = computing time.

If time ends in a round, some y are those of the round before, y'. They keep the inequality: y'(S) <= r T, so that
y'[i] <= r T y'[i] / y'(S) for these i, too.

The largest T that is refuted is found by bisection, first with cuts alone, then with more and more branches for each
group, and more rounds. All pipelines obey these limits: those with free or contiguous stages, memory, replicas,
recomputation and any links. A transfer counts with the least ticks on any link of the device, an output that goes to
several devices counts once, and what is computed again does not count.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from placeopt.bounding.borders.network import LARGEST, Network, items_of, least_ticks
from placeopt.bounding.borders.shares import UNIT, Device, Rule, Search
from placeopt.bounding.quick.classes import Classes, Subset, by_group
from placeopt.bounding.quick.loads import Sharing, best_price_bound, sharing_of
from placeopt.model.arrays import Bool
from placeopt.model.problem import UNLIMITED

EFFORTS = ((1, 1), (4, 2), (16, 3), (64, 4), (256, 5))
"""Branches for each group and rounds, turn by turn."""

STEP, CLOSE = 0.02, 0.002
"""Relative distance of the first trial from the best bound, and of two trials at which the bisection ends."""

FACTOR = 1 << 10
"""Maximum number of parts of a tick in which times are counted."""


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """The groups with y as their amounts, in 1 / `factor` ticks."""

    sharing: Sharing
    factor: int

    def load(self) -> int:
        """The period if the groups are divided ideally, in ticks, rounded up."""
        found = best_price_bound(self.sharing)
        return math.ceil(found / Fraction(self.factor))


class Borders:
    """Refutes periods of a problem."""

    def __init__(self, classes: Classes, should_stop: Callable[[], bool] = lambda: False) -> None:
        problem = classes.problem
        assert problem.pipeline is not None
        self.classes, self.should_stop, self.cuts = classes, should_stop, 0
        self._pipeline = problem.pipeline
        everything = Subset(np.ones(classes.n_classes, dtype=np.bool_), np.ones(len(classes.allowed), dtype=np.bool_))
        self.plain = sharing_of(classes, everything, classes.duration, loads=True)
        self._items = items_of(problem)
        self._ticks = [least_ticks(classes, self._items, c) for c in range(classes.n_classes)]
        self._gradient = by_group(problem, problem.pipeline.gradient, np.add).tolist()
        pairs = problem.group[problem.separation]
        pairs = np.concatenate((pairs, pairs[:, ::-1]))
        self._apart = pairs[np.argsort(pairs[:, 0], kind="stable")]
        self._position = by_group(problem, np.argsort(problem.order), np.minimum)
        self.most = sum(self.plain.amount.max(axis=1).tolist()) + 2 * sum(sum(each.tolist()) for each in self._ticks)
        self._factor = min(FACTOR, LARGEST // (8 * UNIT) // (self.most + 1) // 2 * 2)

    @property
    def variables(self) -> int:
        """Number of groups and items of a device."""
        return len(self.plain.memory) + len(self._items.payload)

    @property
    def linked(self) -> Bool:
        """(x,) whether an item may be sent several times by each device."""
        several = np.diff(self._items.start) > 1
        moving = [
            (ticks > 0) & (not self._pipeline.free_transfers[d])
            for ticks, d in zip(self._ticks, self.classes.leader.tolist(), strict=True)
        ]
        found: Bool = np.logical_and.reduce([several, *moving])
        return np.zeros_like(found) if self._pipeline.multicast else found

    @property
    def counted(self) -> bool:
        """Whether the times are small enough to count what crosses borders."""
        return bool(self._factor > 0)

    def shares(self, period: int, branches: int, rounds: int = 1) -> Shares | None:
        """The amounts for a period; None if it leaves a group without a device.

        Rounds end once the ideal division takes longer. Once `should_stop` returns true, the amounts of further groups
        are those of the round before.
        """
        if not self.counted or period > self.most:
            return Shares(self.plain, 1)
        found: Shares | None = Shares(replace(self.plain, amount=self.plain.amount * self._factor), self._factor)
        for _ in range(rounds):
            assert found is not None
            found = self._round(found.sharing, period, branches)
            if found is None or found.load() > period or self.should_stop():
                break
        return found

    def _round(self, before: Sharing, period: int, branches: int) -> Shares | None:
        """The amounts from those of the round before."""
        classes = self.classes
        amount, allowed = before.amount.copy(), before.allowed.copy()
        for c in range(classes.n_classes):
            if self._pipeline.free_transfers[classes.leader[c]]:
                continue
            worth = np.where(before.allowed[:, c], before.amount[:, c], 0)
            teams = range(1, min(int(classes.size[c]), self._pipeline.replicas) + 1)
            devices = [self.device(c, r, period, ~before.allowed[:, c], self._factor) for r in teams]
            searches = [Search(device, worth, self.should_stop) for device in devices]
            for i in np.flatnonzero(worth).tolist():
                if self.should_stop():
                    break
                least = int(worth[i])
                found = [(r, search.most(i, branches)) for r, search in zip(teams, searches, strict=True)]
                most = max((-(-value // r) for r, value in found if value >= least), default=None)
                if most is None:
                    allowed[i, c] = False
                else:
                    amount[i, c] = period * self._factor * least // most
            self.cuts += sum(search.cuts for search in searches)
            if amount[allowed[:, c], c].sum() < worth[allowed[:, c]].sum():
                amount[:, c] = before.amount[:, c]
        return (
            Shares(replace(before, amount=amount, allowed=allowed), self._factor) if allowed.any(axis=1).all() else None
        )

    def device(self, c: int, team: int, period: int, excluded: Bool, factor: int) -> Device:
        """The leader of a team of class c within a period, in 1 / `factor` ticks; it runs none of the groups `excluded`
        (g,)."""
        classes, pipeline = self.classes, self._pipeline
        d = int(classes.leader[c])
        num, den = int(classes.num[c, c]), int(classes.den[c, c])
        computing, limit = self.plain.amount[:, c] * factor, period * team * factor
        ring = [2 * (team - 1) * each * num * factor // (team * den) for each in self._gradient]
        gradient = np.array([min(each, limit + 1) for each in ring], dtype=np.int64)
        idle = limit - int(pipeline.launch[d]) * factor
        if pipeline.overlap[d]:
            rules = [Rule(gradient, True, limit), Rule(computing, False, idle)]
        else:
            rules = [Rule(computing + gradient, True, idle)]
        memory, capacity = self.plain.memory, int(classes.capacity[c])
        if capacity != UNLIMITED:
            shift = max(int(memory.sum()).bit_length() - self.most.bit_length() - factor.bit_length(), 0)
            rules.append(Rule(memory >> shift, False, capacity >> shift))
        halves = factor // 2 if pipeline.full_duplex[d] else factor
        ticks = self._ticks[c] * (0 if pipeline.free_transfers[d] else halves)
        network = Network(len(computing), self._items, ticks)
        return Device(network, rules, excluded, self._apart, self._position)


def highest_refuted(
    refutes: Callable[[int], bool],
    least: int,
    known: int | None,
    should_stop: Callable[[], bool],
    most: int,
    *,
    cautious: bool = False,
) -> int:
    """A lower bound of the period, at least `least`: the largest refuted period that was found, plus 1.

    `known` is the period of a schedule. Nothing above `most` is tried. If `cautious`, the first trials go at most a
    third of the way from the bound to `known`, for a `refutes` that takes long where it fails.
    """
    low, high, step = least, most + 1 if known is None else min(known, most + 1), STEP
    steps = True
    while low < high and not should_stop():
        most_first = low + (high - low) // 3 if cautious else high - 1
        trial = min(low + max(1, int(step * low)), most_first) if steps else (low + high) // 2
        if trial < low:
            break
        if refutes(trial):
            low, step = trial + 1, 2 * step
        else:
            high, steps = trial, False
        if high - low <= CLOSE * low:
            break
    return low
