"""The best divisions of some orders into stages, few positions first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from placeopt.kernels import WaitingStoppedError, impatient

from .division import INFINITE, STEPS, Line, divide, lines
from .orders import orders
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
            with impatient(stopped):
                found = divide(units, order, line, devices, INFINITE if best is None else best.period, most)
        except WaitingStoppedError:
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
