"""A linear programme in integers: what the relaxation is written in, whichever engine solves it.

    minimise    c x
    subject to  A x >= b, or = b where a row is an equation
                lower <= x <= upper, x integral where said so

Rows are only ever added. Everything is an integer, so that a bound can be worked out exactly from any multipliers of
the rows (`proved`), and the engines' floating-point numbers need not be trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from placeopt.ir import Int

Float = NDArray[np.float64]

BITS = 40
"""Binary places that multipliers are rounded to."""


CHECK_EVERY = 1024
"""Rows made between two looks at whether to stop."""


class BuildStoppedError(Exception):
    """The time ran out, or the caller said stop, before the programme was built."""


@dataclass(frozen=True, slots=True)
class Row:
    """One constraint: sum of coefficients times columns >= low, or = low for an equation."""

    columns: Int
    coefficients: Int
    low: int
    equation: bool = False


@dataclass(slots=True)
class Programme:
    """Columns, rows and an objective.

    Attributes
    ----------
    lower, upper
        Bounds of each column.
    integral
        Whether each column must be a whole number; the others are counted in ticks and the like.
    rows
        The constraints.
    objective
        Coefficient of each column that has one.
    should_stop
        Asked now and then while rows are made.
    """

    lower: list[int] = field(default_factory=list)
    upper: list[int] = field(default_factory=list)
    integral: list[bool] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    objective: dict[int, int] = field(default_factory=dict)
    should_stop: Callable[[], bool] = lambda: False

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.lower)

    @property
    def n_entries(self) -> int:
        """Number of coefficients that are not zero."""
        return sum(len(row.columns) for row in self.rows)

    def add_columns(self, upper: Int | Sequence[int], *, integral: bool) -> Int:
        """New columns from 0 to `upper`, in an array of the same shape."""
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
        """A constraint; a column may be named several times.

        Raises
        ------
        BuildStoppedError
            If it is time to stop.
        """
        if len(self.rows) % CHECK_EVERY == 0 and self.should_stop():
            raise BuildStoppedError
        self.rows.append(row(columns, coefficients, low, equation=equation))


def row(columns: Sequence[int] | Int, coefficients: Sequence[int] | Int, low: int, *, equation: bool = False) -> Row:
    """A constraint, with the coefficients of each column added up."""
    named, places = np.unique(np.asarray(columns, dtype=np.int64), return_inverse=True)
    total = np.zeros(len(named), dtype=np.int64)
    np.add.at(total, places, np.asarray(coefficients, dtype=np.int64))
    kept = total != 0
    return Row(named[kept], total[kept], low, equation)


def proved(programme: Programme, multipliers: Float) -> int:
    """A lower bound of the objective that holds whatever the multipliers (r,) of the rows are.

    With y the multipliers, negative ones of inequalities set to 0, every feasible x has

        c x >= y b + sum_j min over [lower_j, upper_j] of (c - y A)_j x_j.

    y is rounded to multiples of 2^-BITS and the rest is worked out in integers of any length; the objective is
    integral, so the result is rounded up (A. Neumaier, O. Shcherbina: Safe bounds in linear and mixed-integer linear
    programming, Mathematical Programming 99 (2004), doi:10.1007/s10107-003-0433-3, with fixed-point numbers in place of
    directed rounding). Good multipliers, such as an engine's dual solution, give a good bound.
    """
    unit = 1 << BITS
    left = [0] * programme.n_columns
    for column, coefficient in programme.objective.items():
        left[column] = coefficient * unit
    total = 0
    for entry, value in zip(programme.rows, multipliers.tolist(), strict=True):
        y = round(value * unit)
        if y == 0 or (y < 0 and not entry.equation):
            continue
        total += y * entry.low
        for column, coefficient in zip(entry.columns.tolist(), entry.coefficients.tolist(), strict=True):
            left[column] -= y * coefficient
    for reduced, low, high in zip(left, programme.lower, programme.upper, strict=True):
        total += reduced * (low if reduced > 0 else high)
    return -(-total // unit)
