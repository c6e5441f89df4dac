"""The programme in coarse units: numbers no larger than GRID, for engines that go wrong with larger ones.

A continuous column x is counted in a unit u, x' = floor(x / u). A row with continuous columns in the same unit,

    sum_j a_j x_j >= sum_i c_i y_i + b     (y whole columns; written with all of them on the left, as -c_i),

gives sum_j a_j x'_j >= sum_i floor(c_i / u) y_i + floor(b / u) if the a_j are 1 and perhaps -1, because floor(p) -
floor(q) >= floor(p - q) >= the sum of floors; else less the sum of the positive a_j, which is what rounding x down can
cost. And a row with numbers still too large is divided by q: every coefficient on the left rounded up, the right-hand
side down, which all x >= 0 of before satisfy. Every point of the programme is one of this, so bounds of this are bounds
of that.

Where a unit divides all numbers in the rows of continuous columns, nothing is lost: with the whole columns given, the
least value of each is a multiple of it, a sum of releases, durations and transfers, or the load of a device in least
durations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from placeopt.bounding.engines.linear_program import LinearProgram, Row
from placeopt.model.arrays import Float, Int

GRID = 10**6
"""The largest number."""


@dataclass(frozen=True, slots=True, eq=False)
class Coarse:
    """A programme in coarse units; its objective is in the units of the original.

    Attributes
    ----------
    programme
        In coarse units.
    unit
        (columns,) what each column is counted in.
    """

    programme: LinearProgram
    unit: Int

    def fine(self, x: Float) -> Float:
        """A point of the original, or nearly one."""
        return np.asarray(x * self.unit)


def coarse(programme: LinearProgram, *, in_ticks: bool) -> Coarse:
    """The programme in coarse units; `in_ticks` says that all its continuous columns count ticks."""
    whole = np.array(programme.integral)
    unit = np.array([1 if w else max(1, -(-high // GRID)) for w, high in zip(whole, programme.upper, strict=True)])
    divisor = _divisor(programme, whole) if in_ticks else 1
    lossless = divisor >= int(unit.max(initial=1))
    if lossless:
        unit = np.where(whole, 1, divisor)
    units = unit.tolist()
    result = LinearProgram(
        lower=list(programme.lower),
        upper=[-(-high // each) for high, each in zip(programme.upper, units, strict=True)],
        integral=list(programme.integral),
        objective={column: c * units[column] for column, c in programme.objective.items()},
    )
    for row in programme.rows:
        result.rows.append(row if row.equation else _smaller(_counted(row, whole, unit, lossless)))
    return Coarse(result, unit)


def _divisor(programme: LinearProgram, whole: np.ndarray) -> int:
    """The largest number that divides all others in the rows of continuous columns."""
    found = 0
    for row in programme.rows:
        counted = ~whole[row.columns]
        if counted.any():
            found = math.gcd(found, row.low, *row.coefficients[~counted].tolist())
    return max(found, 1)


def _counted(row: Row, whole: np.ndarray, unit: Int, lossless: bool) -> Row:
    """A row with its continuous columns in their unit."""
    counted = ~whole[row.columns]
    if not counted.any():
        return row
    each = int(unit[row.columns[counted]].max())
    slopes = row.coefficients[counted]
    tidy = lossless or each == 1 or (sorted(slopes.tolist()) in ([1], [-1, 1]))
    rounding = 0 if tidy else int(slopes[slopes > 0].sum())
    coefficients = np.where(counted, row.coefficients, -(-row.coefficients // each))
    return Row(row.columns, coefficients, row.low // each - rounding)


def _smaller(row: Row) -> Row:
    """A row with no number above GRID."""
    excess = -(-int(np.abs(row.coefficients).max(initial=0)) // GRID)
    if excess <= 1:
        return row
    return Row(row.columns, -(-row.coefficients // excess), row.low // excess)
