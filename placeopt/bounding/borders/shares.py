"""The most that the groups of one device can be worth.

Each group has a worth. A device that runs a set S of groups within the period T obeys, in ticks,

    computing(S) + gradient(S) + border(S) <= r T - launch      if it does not overlap
    computing(S) <= r T - launch, gradient(S) + border(S) <= r T    if it does
    memory(S) <= its capacity

where r is the size of its team, border(S) is what crosses the border of S (`placeopt.bounding.borders.network`), halved
for full duplex, because the larger of sent and received is at least half of both, and gradient(S) is what a team moves
to synchronise, without latency and roundings. Rule k thus limits a_k(S) to b_k. For all prices p >= 0,

    worth(S) <= sum_k p_k b_k + max over S of (worth(S) - sum_k p_k a_k(S))

which is a minimum cut. The best price of a rule, the others fixed, is the slope of the upper hull of the points
(a_k(S), the rest) where it crosses b_k. Dinkelbach's method finds it in a few cuts: the slope between a set within the
limit and one beyond it, then a set above this slope, which replaces one of them.

The two sets at the ends of the slope differ. One branch contains a group of the difference, another excludes it. The
largest value of all open branches remains an upper bound.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placeopt.bounding.borders.network import LARGEST, Network
from placeopt.model.arrays import Bool, Int

UNIT = 1 << 18
"""Prices are multiples of 1 / UNIT."""

CUTS = 8
"""Maximum number of cuts for the price of one rule."""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """amount(S), and border(S) if `borders`, are at most `limit`; amount is (g,)."""

    amount: Int
    borders: bool
    limit: int


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """The leader of a team."""

    network: Network
    rules: list[Rule]
    """At least one."""
    excluded: Bool
    """(g,), whether the device may not run the group."""
    apart: Int
    """(s, 2) separated groups, both ways, sorted."""
    position: Int
    """(g,) place of each group in an order of the graph, to choose branches."""

    def without(self, group: int, excluded: Bool) -> Bool:
        """The excluded groups (g,), and those that are separated from a group."""
        first, last = np.searchsorted(self.apart[:, 0], (group, group + 1))
        if first == last:
            return excluded
        found = excluded.copy()
        found[self.apart[first:last, 1]] = True
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Branch:
    """Sets that contain `members` (g,) and no group of `excluded` (g,).

    None of them within the rules is worth more than `value`; -1 if there are none. `next` divides the branch; None if
    `value` is exact, or as good as branches make it.
    """

    value: int
    members: Bool
    excluded: Bool
    next: int | None


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """A set (g,), its worth, and its amounts by rule."""

    members: Bool
    worth: int
    amounts: tuple[int, ...]


class Search:
    """Upper bounds of the worth of the sets that a device can run; `worth` is (g,), at least 0."""

    def __init__(self, device: Device, worth: Int, should_stop: Callable[[], bool]) -> None:
        self.device, self.worth, self.cuts = device, worth, 0
        self._should_stop = should_stop
        self._prices = [0] * len(device.rules)  # the last ones found, to start from
        room = LARGEST - UNIT * int(worth.sum())
        total = 2 * int(device.network.ticks.sum())
        sums = [int(rule.amount.sum()) + rule.borders * total + 1 for rule in device.rules]
        self._highest = [room // (len(sums) * each) for each in sums]

    def most(self, group: int, branches: int) -> int:
        """At least the worth of every set with this group that the device can run; -1 if there is none.

        `branches` is the most that are opened.
        """
        members = np.zeros(len(self.worth), dtype=np.bool_)
        members[group] = True
        root = self._branch(members, self.device.without(group, self.device.excluded), int(self.worth.sum()))
        heap = [(-root.value, 0, root)]
        count = 1
        while count < branches and heap[0][2].next is not None and not self._should_stop():
            _, _, top = heapq.heappop(heap)
            assert top.next is not None
            inside, outside = top.members.copy(), top.excluded.copy()
            inside[top.next] = outside[top.next] = True
            for child in (
                self._branch(inside, self.device.without(top.next, top.excluded), top.value),
                self._branch(top.members, outside, top.value),
            ):
                heapq.heappush(heap, (-child.value, count, child))
                count += 1
        return heap[0][2].value

    def _branch(self, members: Bool, excluded: Bool, most: int) -> _Branch:
        """A branch whose sets are worth at most `most`."""
        rules = self.device.rules
        low, high = self._point(members), self._point(~excluded)
        if (members & excluded).any():
            return _Branch(-1, members, excluded, None)
        best, prices, ends = min(most, high.worth), [0] * len(rules), (low, high)
        for k, rule in enumerate(rules):
            if high.amounts[k] <= rule.limit:
                continue
            value, found, points = self._priced(k, low, high, prices, excluded)
            if value < best:
                best, prices[k], ends = value, found, points
        if best < low.worth:
            return _Branch(-1, members, excluded, None)
        self._prices = prices
        if all(amount <= rule.limit for amount, rule in zip(high.amounts, rules, strict=True)):
            return _Branch(best, members, excluded, None)
        between = np.flatnonzero(ends[1].members & ~ends[0].members & ~members)
        if not len(between):
            between = np.flatnonzero(~excluded & ~members)
        return _Branch(best, members, excluded, self._middle(between, members) if len(between) else None)

    def _middle(self, groups: Int, members: Bool) -> int:
        """The group in the middle of the worth of some groups, by their distance from members in the order."""
        position = self.device.position
        distance = np.abs(position[groups][:, None] - position[members][None, :]).min(axis=1)
        near = np.argsort(distance, kind="stable")
        total = np.cumsum(self.worth[groups[near]])
        return int(groups[near[np.searchsorted(total, total[-1] / 2)]])

    def _priced(
        self, k: int, low: _Point, high: _Point, prices: list[int], excluded: Bool
    ) -> tuple[int, int, tuple[_Point, _Point]]:
        """The least value over prices of one rule, that price, and the points at the ends of its slope."""
        limit, members = self.device.rules[k].limit, low.members
        tried, ends = prices.copy(), (low, high)
        best: tuple[int, int] | None = None
        # A set without other groups may exceed the limit because of its border: then the highest price comes first.
        guess: int | None = self._highest[k] if low.amounts[k] > limit else self._prices[k] or None
        for _ in range(CUTS):
            price = self._slope(k, *ends, prices) if guess is None else guess
            if price is None or self._should_stop():
                break
            tried[k] = price
            value, point = self._value(tried, members, excluded)
            if best is None or value < best[0]:
                best = value, price
            known = any(point.amounts[k] == end.amounts[k] and point.worth == end.worth for end in ends)
            if known and guess is None:
                break
            guess = None
            ends = (point, ends[1]) if point.amounts[k] <= limit or ends[0].amounts[k] > limit else (ends[0], point)
        if best is None:
            return LARGEST, 0, ends
        return *best, ends

    def _slope(self, k: int, low: _Point, high: _Point, prices: list[int]) -> int | None:
        """The price of rule k at which both points are worth the same; None if there is none."""
        wide = high.amounts[k] - low.amounts[k]
        if wide <= 0:
            return None
        rest = [
            UNIT * each.worth - sum(prices[j] * amount for j, amount in enumerate(each.amounts) if j != k)
            for each in (low, high)
        ]
        return min(max((rest[1] - rest[0]) // wide, 0), self._highest[k])

    def _value(self, prices: list[int], members: Bool, excluded: Bool) -> tuple[int, _Point]:
        """The upper bound that prices prove, and a set that is worth most at these prices."""
        worth, factor, limits = UNIT * self.worth, 0, 0
        for price, rule in zip(prices, self.device.rules, strict=True):
            if price:
                worth = worth - price * rule.amount
                factor += price * rule.borders
                limits += price * rule.limit
        value, found = self.device.network.most(members, excluded, factor, worth)
        self.cuts += 1
        return (value + limits) // UNIT, self._point(found)

    def _point(self, members: Bool) -> _Point:
        border = self.device.network.border(members)
        amounts = tuple(int(rule.amount[members].sum()) + rule.borders * border for rule in self.device.rules)
        return _Point(members, int(self.worth[members].sum()), amounts)
