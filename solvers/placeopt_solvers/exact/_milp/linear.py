"""A mixed-integer linear program in which the value of every column follows from a schedule."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from placeopt.bounding.engines.linear_program import LinearProgram, Row

from ..._runs.exact_run import View
from ..._runs.linear import Linear, total


class Program(LinearProgram):
    """A linear program built from expressions; each column is added with the function of its value in a schedule."""

    def __init__(self, stopped: Callable[[], bool]) -> None:
        super().__init__(should_stop=stopped)
        self._value: list[Callable[[View], float]] = []

    def column(self, low: int, high: int, value: Callable[[View], float], *, whole: bool = False) -> Linear:
        """Add a variable in low..high.

        If low > high, a row makes the program infeasible, because engines reject crossed bounds.

        Raises a StoppedError if `stopped` returned true.
        """
        self._check_stop()
        if low > high:
            self.at_least(0, 1)
        self.lower.append(low)
        self.upper.append(max(low, high))
        self.integral.append(whole)
        self._value.append(value)
        return Linear({self.n_columns - 1: 1})

    def binary(self, value: Callable[[View], bool]) -> Linear:
        """Add a variable that is 0 or 1."""
        return self.column(0, 1, value, whole=True)

    def at_least(self, left: Linear | int, right: Linear | int) -> None:
        """Require left >= right."""
        self._require(total((left, -1 * right)), equal=False)

    def equal(self, left: Linear | int, right: Linear | int) -> None:
        """Require left = right."""
        self._require(total((left, -1 * right)), equal=True)

    def _require(self, difference: Linear, *, equal: bool) -> None:
        """Add a row in lowest terms."""
        self._check_stop()
        terms = sorted(difference.terms.items())
        common = math.gcd(difference.constant, *(a for _, a in terms)) or 1
        columns = np.array([c for c, _ in terms], dtype=np.int64)
        coefficients = np.array([a // common for _, a in terms], dtype=object)  # may exceed 64 bits
        self.rows.append(Row(columns, coefficients, -difference.constant // common, equal))

    @property
    def magnitude(self) -> int:
        """The largest absolute number in any row or bound."""
        rows = (abs(a) for row in self.rows for a in (row.low, *row.coefficients.tolist()))
        return max((*rows, *map(abs, self.lower), *map(abs, self.upper)), default=0)

    def most(self, expression: Linear) -> int:
        """Return the largest value of an expression within the bounds of its columns."""
        return expression.constant + sum(max(a * self.lower[c], a * self.upper[c]) for c, a in expression.terms.items())

    def values(self, view: View) -> list[float] | None:
        """Return the value of every column in a schedule; None if some bound excludes it."""
        found = [float(value(view)) for value in self._value]
        inside = all(low <= value <= high for low, value, high in zip(self.lower, found, self.upper, strict=True))
        return found if inside else None

    def set_objective(self, expression: Linear) -> None:
        """Minimise an expression."""
        self.objective, self.constant = dict(expression.terms), expression.constant
