"""Whole-number columns and linear rows, some of which hold only under conditions; engines translate them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from placeopt.engine import StoppedError

from ..._runs.exact_run import TooLargeError
from ..._runs.linear import Linear, total

CHECK_EVERY = 1024
"""Columns and rows between two checks whether to stop."""

Condition = tuple[Linear, int]
"""A binary column, and the value that it has."""


class Row(NamedTuple):
    """expression >= 0, or = 0, where all binary columns in `when` have the given values."""

    expression: Linear
    when: tuple[tuple[int, int], ...]
    equation: bool


class System:
    """A growing system of columns and rows.

    Raises
    ------
    StoppedError
        If `stopped` returned true.
    TooLargeError
        If there are more than `most` columns and rows.
    """

    def __init__(self, stopped: Callable[[], bool], most: int) -> None:
        self.lower: list[int] = []
        self.upper: list[int] = []
        self.implied: list[bool] = []
        self.rows: list[Row] = []
        self._stopped, self._most = stopped, most

    def column(self, low: int, high: int, *, implied: bool = False) -> Linear:
        """Add a whole number in low..high; `implied` if rows make the best one whole where the others are."""
        if low > high:
            self.at_least(0, 1)
        self.lower.append(low)
        self.upper.append(max(low, high))
        self.implied.append(implied)
        self._check()
        return Linear({len(self.lower) - 1: 1})

    def binary(self, *, implied: bool = False) -> Linear:
        """Add a column that is 0 or 1."""
        return self.column(0, 1, implied=implied)

    def at_least(self, left: Linear | int, right: Linear | int, when: Iterable[Condition] = ()) -> None:
        """Require left >= right where all conditions hold."""
        difference = total((left, -1 * right))
        conditions = tuple((column_of(literal), value) for literal, value in when)
        if difference.terms or difference.constant < 0:
            common = math.gcd(*difference.terms.values()) or 1
            terms = {c: a // common for c, a in difference.terms.items()}
            self.rows.append(Row(Linear(terms, difference.constant // common), conditions, False))
            self._check()

    def equal(self, left: Linear | int, right: Linear | int) -> None:
        """Require left = right."""
        difference = total((left, -1 * right))
        if difference.terms or difference.constant:
            self.rows.append(Row(difference, (), True))
            self._check()

    def any_of(self, columns: Iterable[Linear]) -> Linear:
        """Add a binary column that is at least each of some columns."""
        found = self.binary(implied=True)
        for column in columns:
            self.at_least(found, column)
        return found

    def least(self, expression: Linear) -> int:
        """Return the smallest value of an expression within the bounds of its columns."""
        return expression.constant + sum(min(a * self.lower[c], a * self.upper[c]) for c, a in expression.terms.items())

    def most(self, expression: Linear) -> int:
        """Return the largest value of an expression within the bounds of its columns."""
        return -self.least(-1 * expression)

    @property
    def magnitude(self) -> int:
        """The largest absolute value that any term, row or column may have."""
        rows = (max(abs(self.least(row.expression)), abs(self.most(row.expression))) for row in self.rows)
        return max((*rows, *map(abs, self.lower), *map(abs, self.upper)), default=0)

    def _check(self) -> None:
        size = len(self.lower) + len(self.rows)
        if size > self._most:
            raise TooLargeError(f"more than {self._most:,} columns and rows, which max_size allows")
        if size % CHECK_EVERY == 0 and self._stopped():
            raise StoppedError


def column_of(literal: Linear) -> int:
    """Return the column of an expression that is a column."""
    (column,) = literal.terms
    return column
