"""The best divisions of some orders into stages, few positions first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .division import INFINITE, STEPS, Line, divide, lines
from .orders import orders
from .placements import Point, View, divided_point
from .units import Units

FIRST = 300
"""Positions where stages may end when all orders are compared."""

FINE = 4000
"""Most positions for the best order."""


def division_points(view: View, stopped: Callable[[], bool]) -> Iterator[Point]:
    """Yield placements, each with a smaller period than those before: all orders coarsely, then the best one finely."""
    best: Point | None = None
    chosen = None
    for _, order in orders(view.units):
        for line, devices in lines(view.problem):
            if stopped():
                return
            below = INFINITE if best is None else best.period
            found = divide(view.units, order, line, devices, below, positions(view.units, line, FIRST))
            point = None if found is None else divided_point(view, found)
            if point is not None and (best is None or point.period < best.period):
                best, chosen = point, (order, line, devices)
                yield point
    if best is None or chosen is None or stopped():
        return
    order, line, devices = chosen
    most = positions(view.units, line, FINE)
    if len(order) + 1 > FIRST and most > FIRST:
        found = divide(view.units, order, line, devices, best.period, most)
        point = None if found is None else divided_point(view, found)
        if point is not None and point.period < best.period:
            yield point


def positions(units: Units, line: Line, most: int) -> int:
    """Return how many positions a division may use so that it takes about STEPS steps."""
    states, classes, teams = line.then.shape
    stages = max(min(len(units.label), len(units.fixed)), 1)
    pairs = 2.0 / stages * states * classes * teams * (2 if units.recompute else 1)  # times positions squared
    scans = 2.0 / stages * len(units.touched)  # times positions
    able = (-scans + (scans**2 + 4 * pairs * STEPS) ** 0.5) / (2 * pairs)
    return max(min(most, int(able)), 20)
