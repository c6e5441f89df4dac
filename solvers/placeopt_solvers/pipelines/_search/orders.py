"""Orders of the units of a pipeline whose divisions have few transfers or short stages, and their best divisions."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int

from .division import INFINITE, STEPS, Line, divide, lines
from .placements import Point, View, divided_point
from .units import Units

FIRST = 300
"""Positions where stages may end when all orders are compared."""

FINE = 4000
"""Maximum number of positions for the best order."""


def division_points(view: View, stopped: Callable[[], bool], *, strict: bool = True) -> Iterator[Point]:
    """Yield placements, each with a smaller period than those before: all orders coarsely, then the best one finely.

    If not `strict`, capacities are ignored.
    """
    units = view.units
    if not strict:
        units = units._replace(capacity=np.full_like(units.capacity, INFINITE))
    best: Point | None = None
    chosen = None

    def divided(order: np.ndarray, line: Line, devices: list[list[int]], most: int) -> Point | None:
        try:
            with engine.stopping(stopped):
                found = divide(units, order, line, devices, INFINITE if best is None else best.period, most)
        except engine.StoppedError:
            return None
        point = None if found is None else divided_point(view, found)
        if point is None or (strict and not point.fits) or (best is not None and point.period >= best.period):
            return None
        return point

    for _, order in orders(units):
        for line, devices in lines(view.problem):
            if stopped():
                return
            point = divided(order, line, devices, positions(units, line, FIRST))
            if point is not None:
                best, chosen = point, (order, line, devices)
                yield point
    if chosen is None or stopped():
        return
    most = positions(units, chosen[1], FINE)
    if len(units.fixed) + 1 > FIRST and most > FIRST:
        point = divided(*chosen, most)
        if point is not None:
            yield point


def positions(units: Units, line: Line, most: int) -> int:
    """Return how many positions a division may use so that it takes about STEPS steps."""
    states, classes, teams = line.then.shape
    stages = max(min(len(units.label), len(units.fixed)), 1)
    pairs = 2.0 / stages * states * classes * teams * (2 if units.recompute else 1)  # times positions squared
    scans = 2.0 / stages * len(units.touched)  # times positions
    able = (-scans + (scans**2 + 4 * pairs * STEPS) ** 0.5) / (2 * pairs)
    return max(min(most, int(able)), 20)


def orders(units: Units) -> Iterator[tuple[str, Int]]:
    """Yield names and orders: depth first, breadth first, by the work before and after, and by the data in memory."""
    k = len(units.fixed)
    after_start, after = units.after_start.tolist(), units.after.tolist()
    follows = [after[a:b] for a, b in pairwise(after_start)]
    waiting = np.diff(units.before_start).tolist()
    work = units.computing.min(axis=1).tolist()
    rank = list(range(k))
    yield "depth first", _listed(follows, waiting, _Stack())
    wide = _listed(follows, waiting, _Heap(_arrival()))
    yield "breadth first", wide
    head, tail = [0] * k, [0] * k
    for v in wide.tolist():
        for u in follows[v]:
            head[u] = max(head[u], head[v] + work[v])
    for v in wide[::-1].tolist():
        tail[v] = work[v] + max((tail[u] for u in follows[v]), default=0)
    yield "late", _listed(follows, waiting, _Heap(lambda v: (-tail[v], rank[v])))
    yield "early", _listed(follows, waiting, _Heap(lambda v: (head[v], rank[v])))
    # As late as possible: units that only later ones need are not kept for long.
    yield "last moment", _reversed(units, waiting)
    yield "least data", _least_data(units, follows, waiting)


class _Stack:
    """Ready units, the last one first."""

    def __init__(self) -> None:
        self.items: list[int] = []

    def push(self, v: int) -> None:
        self.items.append(v)

    def pop(self) -> int:
        return self.items.pop()

    def __bool__(self) -> bool:
        return bool(self.items)


class _Heap:
    """Ready units, that with the least key first."""

    def __init__(self, key: Callable[[int], tuple[int, int]]) -> None:
        self.key = key
        self.items: list[tuple[tuple[int, int], int]] = []

    def push(self, v: int) -> None:
        heapq.heappush(self.items, (self.key(v), v))

    def pop(self) -> int:
        return heapq.heappop(self.items)[1]

    def __bool__(self) -> bool:
        return bool(self.items)


def _arrival() -> Callable[[int], tuple[int, int]]:
    """Return a key that grows with each call."""
    number = 0

    def key(v: int) -> tuple[int, int]:
        nonlocal number
        number += 1
        return number, v

    return key


def _listed(follows: list[list[int]], waiting: list[int], ready: _Stack | _Heap) -> Int:
    """Return the order in which units leave the ready list."""
    left, order = waiting.copy(), []
    for v in reversed(range(len(left))) if isinstance(ready, _Stack) else range(len(left)):
        if left[v] == 0:
            ready.push(v)
    while ready:
        v = ready.pop()
        order.append(v)
        for u in reversed(follows[v]) if isinstance(ready, _Stack) else follows[v]:
            left[u] -= 1
            if left[u] == 0:
                ready.push(u)
    return np.array(order, dtype=np.int64)


def _reversed(units: Units, waiting: list[int]) -> Int:
    """Return the reverse of a depth-first order of the reversed graph."""
    start, before = units.before_start.tolist(), units.before.tolist()
    precedes = [before[a:b] for a, b in pairwise(start)]
    left = np.diff(units.after_start).tolist()
    assert len(left) == len(waiting)
    return np.ascontiguousarray(_listed(precedes, left, _Stack())[::-1])


def _least_data(units: Units, follows: list[list[int]], waiting: list[int]) -> Int:
    """Return a greedy order: next is the ready unit after which the least data waits for later units."""
    start, touched = units.touched_start.tolist(), units.touched.tolist()
    producer, payload = units.producer.tolist(), units.payload.tolist()
    open_ends = np.diff(units.consumer_start).tolist()

    def growth(v: int) -> int:
        """Bytes that the unit adds to the data that waits."""
        total = 0
        for x in touched[start[v] : start[v + 1]]:
            if producer[x] == v:
                total += payload[x]
            elif open_ends[x] == 1:
                total -= payload[x]
        return total

    left, order, done = waiting.copy(), [], [False] * len(waiting)
    ready = [(growth(v), 0, v) for v in range(len(left)) if left[v] == 0]
    heapq.heapify(ready)
    number = 0
    while ready:
        old, stamp, v = heapq.heappop(ready)
        if done[v]:
            continue
        now = growth(v)
        if ready and now > old and (now, stamp, v) > ready[0]:
            heapq.heappush(ready, (now, stamp, v))
            continue
        done[v] = True
        order.append(v)
        number -= 1
        for x in touched[start[v] : start[v + 1]]:
            if producer[x] != v:
                open_ends[x] -= 1
        for u in follows[v]:
            left[u] -= 1
            if left[u] == 0:
                heapq.heappush(ready, (growth(u), number, u))
    return np.array(order, dtype=np.int64)
