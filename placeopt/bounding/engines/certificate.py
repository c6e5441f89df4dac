"""Compute exact lower bounds from an engine's dual values.

A. Neumaier, O. Shcherbina: Safe bounds in linear and mixed-integer linear programming, Mathematical Programming 99
(2004), doi:10.1007/s10107-003-0433-3. Integers of any length replace directed rounding. For rows a x >= b or a x = b,
bounded columns, and any multipliers y of the rows, where negative ones of inequalities count as 0,

    c x >= y b + sum_j min over the bounds of column j of (c - y A)_j x_j.

Good multipliers, such as an engine's dual values, give a good bound. No multipliers give a wrong one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

BITS = 80
"""Multipliers are rounded to multiples of 2^-BITS, which is fine enough for rows with numbers up to 2^40."""

Entries = Iterable[tuple[int, int]]
"""Columns and their coefficients."""


def safe_dual_bound(
    objective: Mapping[int, int],
    rows: Iterable[tuple[Entries, int, bool]],
    multipliers: Iterable[float],
    lower: Sequence[int],
    upper: Sequence[int],
) -> Fraction:
    """Return a lower bound of the objective over all points that satisfy the rows.

    Parameters
    ----------
    objective
        Coefficients of columns; a column that is absent has 0.
    rows
        For each row: its entries, its right-hand side, and whether it is an equation.
    multipliers
        One for each row; infinite ones and NaN count as 0.
    lower, upper
        Bounds of each column.
    """
    one = 1 << BITS
    reduced = {column: coefficient * one for column, coefficient in objective.items()}
    bound = 0
    for (entries, low, equation), multiplier in zip(rows, multipliers, strict=True):
        y = round(multiplier * one) if math.isfinite(multiplier) else 0
        if y > 0 or (y < 0 and equation):
            bound += y * low
            for column, coefficient in entries:
                reduced[column] = reduced.get(column, 0) - y * coefficient
    bound += sum(d * (lower[column] if d > 0 else upper[column]) for column, d in reduced.items())
    return Fraction(bound, one)
