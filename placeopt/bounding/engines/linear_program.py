"""Linear programs in integers, independent of the engine that solves them.

    minimise    c x + c0
    subject to  A x >= b, or = b where a row is an equation
                lower <= x <= upper, x integral where required

Rows are only ever added. All numbers are integers, so any multipliers y of the rows give an exact bound, where negative
ones of inequalities count as 0:

    c x >= y b + sum_j min over the bounds of column j of (c - y A)_j x_j.

So the floating-point numbers of an engine need not be trusted (A. Neumaier, O. Shcherbina: Safe bounds in linear and
mixed-integer linear programming, Mathematical Programming 99, 2004, doi:10.1007/s10107-003-0433-3; integers of any
length replace directed rounding).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placeopt.engine import StoppedError
from placeopt.model.arrays import Int, by_index

BITS = 80
"""Multipliers are rounded to multiples of 2^-BITS, which is fine enough for rows with numbers up to 2^40."""

CHECK_EVERY = 1024
"""Columns and rows between two calls of `should_stop`."""


@dataclass(frozen=True, slots=True)
class Row:
    """One constraint: sum of coefficients times columns >= low, or = low for an equation.

    Coefficients are int64, or Python integers in an array of objects.
    """

    columns: Int
    coefficients: NDArray[Any]
    low: int
    equation: bool = False


@dataclass(slots=True)
class LinearProgram:
    """Columns, rows and an objective."""

    # Bounds of each column, and whether it must be a whole number
    lower: list[int] = field(default_factory=list)
    upper: list[int] = field(default_factory=list)
    integral: list[bool] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    objective: dict[int, int] = field(default_factory=dict)  # coefficients by column; 0 for absent columns
    constant: int = 0  # added to the objective
    should_stop: Callable[[], bool] = lambda: False  # called regularly while the program is built

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.lower)

    def add_columns(self, upper: Int | Sequence[int], *, integral: bool) -> Int:
        """Add columns from 0 to `upper`; their numbers are in an array of the same shape."""
        shape = np.shape(upper)
        most = np.asarray(upper, dtype=object).reshape(-1).tolist()
        first = self.n_columns
        self.lower += [0] * len(most)
        self.upper += most
        self.integral += [integral] * len(most)
        return np.arange(first, first + len(most)).reshape(shape)

    def add_row(
        self, columns: Sequence[int] | Int, coefficients: Sequence[int] | Int, low: int = 0, *, equation: bool = False
    ) -> None:
        """Add a constraint; a column may occur several times.

        Raises a StoppedError if `should_stop` returned true.
        """
        self._check_stop()
        self.rows.append(row(columns, coefficients, low, equation=equation))

    def _check_stop(self) -> None:
        if (self.n_columns + len(self.rows)) % CHECK_EVERY == 0 and self.should_stop():
            raise StoppedError

    def safe_dual_bound(self, multipliers: Iterable[float]) -> Fraction:
        """Return a lower bound of the objective over all points that satisfy the rows, in exact arithmetic.

        It is valid for any multipliers (rows,), and good for an engine's dual values. Infinite ones and NaN count as 0.
        """
        one = 1 << BITS
        reduced = {column: coefficient * one for column, coefficient in self.objective.items()}
        bound = self.constant * one
        for row, multiplier in zip(self.rows, multipliers, strict=True):
            y = round(multiplier * one) if math.isfinite(multiplier) else 0
            if y > 0 or (y < 0 and row.equation):
                bound += y * row.low
                for column, coefficient in zip(row.columns.tolist(), row.coefficients.tolist(), strict=True):
                    reduced[column] = reduced.get(column, 0) - y * coefficient
        bound += sum(d * (self.lower[column] if d > 0 else self.upper[column]) for column, d in reduced.items())
        return Fraction(bound, one)


def row(columns: Sequence[int] | Int, coefficients: Sequence[int] | Int, low: int, *, equation: bool = False) -> Row:
    """Return a constraint in which the coefficients of each column are added up."""
    named, places = np.unique(np.asarray(columns, dtype=np.int64), return_inverse=True)
    total = by_index(np.add, places, np.asarray(coefficients, dtype=np.int64), len(named))
    kept = total != 0
    return Row(named[kept], total[kept], low, equation)
