"""A mixed-integer programme with whole coefficients, whose every column knows its value in a given schedule."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from ortools.math_opt import model_pb2

from placeopt.bounding.engines.certificate import certified

from .view import View

CHECK_EVERY = 256
"""Columns and rows made between two looks at the clock."""


class BuildStoppedError(Exception):
    """The time ran out, or the caller said stop, before the programme was built."""


class Linear:
    """constant + the sum of coefficient * column; never changed once made."""

    __slots__ = ("constant", "terms")

    def __init__(self, terms: Mapping[int, int] | None = None, constant: int = 0) -> None:
        self.terms: Mapping[int, int] = terms or {}
        self.constant = constant

    def __add__(self, other: Linear | int) -> Linear:
        return total((self, other))

    def __radd__(self, other: int) -> Linear:
        return total((other, self))

    def __sub__(self, other: Linear | int) -> Linear:
        return total((self, -1 * other))

    def __rsub__(self, other: int) -> Linear:
        return total((other, -1 * self))

    def __mul__(self, factor: int) -> Linear:
        return Linear({c: factor * a for c, a in self.terms.items() if factor}, factor * self.constant)

    __rmul__ = __mul__

    def at(self, values: list[float]) -> float:
        """Its value, given that of every column."""
        return self.constant + sum(a * values[c] for c, a in self.terms.items())


def total(parts: Iterable[Linear | int]) -> Linear:
    """A sum in one pass."""
    terms: dict[int, int] = {}
    constant = 0
    for part in parts:
        if isinstance(part, int):
            constant += part
            continue
        constant += part.constant
        for column, coefficient in part.terms.items():
            terms[column] = terms.get(column, 0) + coefficient
    return Linear({c: a for c, a in terms.items() if a}, constant)


@dataclass(frozen=True, slots=True)
class Column:
    """A variable in low..high, whole or not, and the function that gives its value in a schedule."""

    low: int
    high: int
    whole: bool
    value: Callable[[View], float]


@dataclass(frozen=True, slots=True)
class Row:
    """The sum of coefficient * column >= low, or = low for an equation, in lowest terms."""

    terms: tuple[tuple[int, int], ...]
    low: int
    equation: bool


class Programme:
    """Columns and rows, growing."""

    def __init__(self, stopped: Callable[[], bool]) -> None:
        self.columns: list[Column] = []
        self.rows: list[Row] = []
        self._stopped = stopped

    def column(self, low: int, high: int, value: Callable[[View], float], *, whole: bool = False) -> Linear:
        """A new variable.

        Bounds that cross leave no solution: a row says so, for engines take crossed bounds for a mistake.

        Raises
        ------
        BuildStoppedError
            If the time for building is up.
        """
        self._look_up()
        if low > high:
            self.at_least(0, 1)
        self.columns.append(Column(low, max(low, high), whole, value))
        return Linear({len(self.columns) - 1: 1})

    def binary(self, value: Callable[[View], bool]) -> Linear:
        """A new variable that is 0 or 1."""
        return self.column(0, 1, value, whole=True)

    def at_least(self, left: Linear | int, right: Linear | int) -> None:
        """Require left >= right."""
        self._require(total((left, -1 * right)), equal=False)

    def equal(self, left: Linear | int, right: Linear | int) -> None:
        """Require left = right."""
        self._require(total((left, -1 * right)), equal=True)

    def _require(self, difference: Linear, *, equal: bool) -> None:
        self._look_up()
        terms = sorted(difference.terms.items())
        common = math.gcd(difference.constant, *(a for _, a in terms)) or 1
        low = -difference.constant // common
        self.rows.append(Row(tuple((c, a // common) for c, a in terms), low, equal))

    def _look_up(self) -> None:
        if (len(self.columns) + len(self.rows)) % CHECK_EVERY == 0 and self._stopped():
            raise BuildStoppedError

    @property
    def magnitude(self) -> int:
        """The largest number in any row or bound."""
        sides = (abs(row.low) for row in self.rows)
        coefficients = (abs(a) for row in self.rows for _, a in row.terms)
        return max([0, *sides, *coefficients, *(max(abs(c.low), abs(c.high)) for c in self.columns)])

    def most(self, expression: Linear) -> int:
        """The largest value of an expression within the bounds of its columns."""
        return expression.constant + sum(
            max(a * self.columns[c].low, a * self.columns[c].high) for c, a in expression.terms.items()
        )

    def values(self, view: View) -> list[float] | None:
        """The value of every column in a schedule; None if some bound excludes it."""
        found = [float(column.value(view)) for column in self.columns]
        inside = all(c.low <= value <= c.high for c, value in zip(self.columns, found, strict=True))
        return found if inside else None

    def proto(self, objective: Linear, *, relaxed: bool = False) -> model_pb2.ModelProto:
        """The programme as OR-Tools' MathOpt reads it, with an expression to minimise."""
        model = model_pb2.ModelProto()
        variables, rows, matrix = model.variables, model.linear_constraints, model.linear_constraint_matrix
        variables.ids.extend(range(len(self.columns)))
        variables.lower_bounds.extend(float(column.low) for column in self.columns)
        variables.upper_bounds.extend(float(column.high) for column in self.columns)
        variables.integers.extend(column.whole and not relaxed for column in self.columns)
        model.objective.offset = float(objective.constant)
        for c, a in sorted(objective.terms.items()):
            model.objective.linear_coefficients.ids.append(c)
            model.objective.linear_coefficients.values.append(float(a))
        rows.ids.extend(range(len(self.rows)))
        rows.lower_bounds.extend(float(row.low) for row in self.rows)
        rows.upper_bounds.extend(float(row.low) if row.equation else math.inf for row in self.rows)
        for r, row in enumerate(self.rows):
            for c, a in row.terms:
                matrix.row_ids.append(r)
                matrix.column_ids.append(c)
                matrix.coefficients.append(float(a))
        return model

    def certified(self, objective: Linear, duals: list[float]) -> Fraction:
        """A lower bound of the objective over the linear relaxation, exact for any dual values at all."""
        rows = ((row.terms, row.low, row.equation) for row in self.rows)
        lower, upper = [column.low for column in self.columns], [column.high for column in self.columns]
        return objective.constant + certified(objective.terms, rows, duals, lower, upper)
