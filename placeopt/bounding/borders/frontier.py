"""The most that a device can hold where few items wait for consumers at any time, by dynamic programming.

Groups are decided in an order in which each item's producer precedes its consumers. What the decisions so far mean for
the rest is the code of each item that waits for consumers: outside the device, not received or received; or inside,
sent 0, 1, .. times. A set with a certain worth and these codes is best if its load is least, so that one load for each
worth and state is enough (R. Bellman: Dynamic programming, 1957, for knapsacks). An item is received with its first
consumer inside, and sent with its first consumer outside. Each further one outside may have a copy of its own.

The result is exact for one rule of `placeopt.bounding.borders.shares`: amounts that add up to at most a limit still do
so if all are divided by a power of two and rounded down. The others must hold for all groups together.

The order is depth first from the deepest groups, deepest producers first: what is needed late is computed late.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placeopt import engine
from placeopt.bounding.borders.shares import Device
from placeopt.model.arrays import Bool, Int

CELLS = 1 << 26
"""Maximum number of states of all groups times the sum of all worths."""

FINEST, COARSEST = 20_000, 16
"""The largest sum of all worths, and the smallest for each group: worths are whole numbers."""

LINKS = 1 << 16
"""Maximum number of decisions that lead from all states of a group to the next ones."""

ITEMS, COPIES = 16, 13
"""Maximum numbers of items that wait for consumers, and of times that a device sends one."""

SETS = 20
"""Number of sets that a run returns."""

SUM = 1 << 29
"""All amounts are divided so that they add up to less."""


@dataclass(frozen=True, slots=True, eq=False)
class Frontier:
    """What `engine.hold_most` needs, and `total`, the sum of all worths to round to."""

    order: Int
    amount: Int
    excluded: Bool
    items: Int
    """(y,) the items that take time."""
    producer: Int
    start: Int
    consumer: Int
    ticks: Int
    linked: Bool
    copies: Int
    limit: int
    total: int

    def most(self, worths: Int, should_stop: Callable[[], bool], seconds: float | None) -> tuple[int, Int]:
        """The most that a set is worth, and (s, g + x) sets; `worths` is (g + x,). Raises StoppedError."""
        groups = len(self.order)
        gain = np.where(self.linked, worths[groups:][self.items], 0)
        most, found = engine.hold_most(
            self.order, self.amount, worths[:groups].copy(), self.excluded, self.producer, self.start, self.consumer,
            self.ticks, gain, np.where(gain > 0, self.copies, 1), self.limit, SETS, engine.Stop(should_stop, seconds),
        )  # fmt: skip
        balance = np.zeros((len(found), len(worths)), dtype=np.int64)
        balance[:, :groups] = found[:, :groups]
        balance[:, groups + self.items] = found[:, groups:]
        return most, balance


def frontier_of(device: Device, linked: Bool, others: int) -> Frontier | None:
    """The dynamic program of a device; None if it would be too large, or if several rules or separated groups count.

    `linked` is (x,) whether an item has a worth, with `others` devices to send it to.
    """
    crossings = list(device.network.crossings())
    position = device.position
    ends = [each for _, _, each in crossings]
    if len(device.apart) or any(position[each[1:]].min() <= position[each[0]] for each in ends):
        return None
    items = np.array([item for item, _, _ in crossings], dtype=np.int64)
    ticks = np.array([each for _, each, _ in crossings], dtype=np.int64)
    copies = np.array([max(min(others, len(each) - 1), 1) for each in ends], dtype=np.int64)
    copies = np.where(linked[items], copies, 1)
    totals = [int(rule.amount.sum()) + rule.borders * int(ticks @ copies) for rule in device.rules]
    binding = [pair for pair in zip(device.rules, totals, strict=True) if pair[0].borders or pair[1] > pair[0].limit]
    if len(binding) != 1:
        return None
    ((rule, most),) = binding
    if not rule.borders or rule.limit < 0:
        return None
    order = _order(ends, position)
    rows = _rows(order, ends, copies.tolist())
    total = min(FINEST, CELLS // rows) if rows else 0
    if total < COARSEST * len(order):
        return None
    shift = max(most.bit_length() - SUM.bit_length() + 1, 0)
    return Frontier(
        order=np.array(order, dtype=np.int64),
        amount=rule.amount >> shift,
        excluded=device.excluded,
        items=items,
        producer=np.array([each[0] for each in ends], dtype=np.int64),
        start=np.cumsum([0, *(len(each) - 1 for each in ends)], dtype=np.int64),
        consumer=np.array([other for each in ends for other in each[1:]], dtype=np.int64),
        ticks=ticks >> shift,
        linked=linked[items],
        copies=copies,
        limit=min(rule.limit, most) >> shift,
        total=total,
    )


def _order(ends: list[list[int]], position: Int) -> list[int]:
    """All groups, depth first."""
    producers: list[list[int]] = [[] for _ in position]
    for first, *others in ends:
        for other in others:
            producers[other].append(first)
    depth = [0] * len(position)
    for group in np.argsort(position).tolist():
        depth[group] = max((depth[each] + 1 for each in producers[group]), default=0)
    order: dict[int, None] = {}
    for last in sorted(range(len(depth)), key=lambda group: -depth[group]):
        path = [last]
        while path:
            todo = [each for each in producers[path[-1]] if each not in order]
            if todo:
                path.append(max(todo, key=lambda group: depth[group]))
            else:
                order[path.pop()] = None
    return list(order)


def _rows(order: list[int], ends: list[list[int]], copies: list[int]) -> int:
    """At least the number of states after all groups together; 0 if some are too many."""
    codes = [2 if len(each) == 2 else 3 + most for each, most in zip(ends, copies, strict=True)]
    place = {group: k for k, group in enumerate(order)}
    made, used = [0] * len(order), [0] * len(order)
    factor, divisor = [1] * len(order), [1] * len(order)
    ended = [0] * len(order)
    for (first, *others), code in zip(ends, codes, strict=True):
        last = max(place[other] for other in others)
        made[place[first]] += 1
        factor[place[first]] *= code
        ended[last] += 1
        divisor[last] *= code
        for other in others:
            used[place[other]] += 1
    rows, states, waiting = 0, 1, 0
    for k in range(len(order)):
        waiting += made[k]
        if waiting > ITEMS or states << (used[k] + 1) >= LINKS:
            return 0
        waiting -= ended[k]
        states = states * factor[k] // divisor[k]
        rows += states
    return rows if max(copies, default=1) <= COPIES else 0
