"""A linear programme in integers: what the relaxation is written in, whichever engine solves it.

    minimise    c x
    subject to  A x >= b, or = b where a row is an equation
                lower <= x <= upper, x integral where said so

Rows are only ever added. Everything is an integer, so that a bound can be worked out exactly from any multipliers of
the rows (`proved`), and the floating-point numbers of an engine for linear programmes need not be trusted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from placeopt.bounding.engines.certificate import certified
from placeopt.model.arrays import Float, Int

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
    """A lower bound of the objective, which is integral, whatever the multipliers (r,) of the rows are."""
    rows = (
        (zip(entry.columns.tolist(), entry.coefficients.tolist(), strict=True), entry.low, entry.equation)
        for entry in programme.rows
    )
    return math.ceil(certified(programme.objective, rows, multipliers.tolist(), programme.lower, programme.upper))
