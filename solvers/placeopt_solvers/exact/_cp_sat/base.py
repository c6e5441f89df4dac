"""A CP-SAT model in which the value of every variable follows from a schedule, so that hints are complete."""

from __future__ import annotations

from collections.abc import Callable

from ortools.sat.python import cp_model

from placeopt.engine import StoppedError
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule

from ..._runs.exact_run import View, view

Literal = cp_model.IntVar
Expression = cp_model.LinearExpr | int

CHECK_EVERY = 1024
"""Variables between two checks whether to stop."""


class Base:
    """A growing model; each variable is added together with the function that gives its value in a schedule."""

    def __init__(self, problem: Problem, stopped: Callable[[], bool]) -> None:
        self.problem = problem
        self.cp = cp_model.CpModel()
        self.true = self.cp.new_constant(1)
        self.false = self.cp.new_constant(0)
        self._stopped = stopped
        self._known: list[tuple[cp_model.IntVar, Callable[[View], int]]] = []
        self._values: dict[int, Callable[[View], int]] = {}

    @property
    def size(self) -> int:
        """Number of variables."""
        return len(self._known)

    def integer(self, low: int, high: int, value: Callable[[View], int]) -> cp_model.IntVar:
        """Add a variable in low..high; raises a StoppedError if `stopped` returned true."""
        if len(self._known) % CHECK_EVERY == 0 and self._stopped():
            raise StoppedError
        variable = self.cp.new_int_var(low, high, "")
        self._known.append((variable, value))
        self._values[variable.index] = value
        return variable

    def alike(self, variable: cp_model.IntVar, high: int) -> cp_model.IntVar:
        """Add a variable in 0..high that has the value of another one in schedules."""
        return self.integer(0, high, self._values[variable.index])

    def literal(self, value: Callable[[View], bool]) -> Literal:
        """Add a variable that is 0 or 1."""
        return self.integer(0, 1, value)

    def both(self, left: Literal, right: Literal) -> Literal:
        """Return the conjunction of two literals."""
        if left is self.true or right is self.true:
            return right if left is self.true else left
        one, other = self._values[left.index], self._values[right.index]
        literal = self.literal(lambda view: bool(one(view) and other(view)))
        self.cp.add_implication(literal, left)
        self.cp.add_implication(literal, right)
        self.cp.add_bool_or(~left, ~right, literal)
        return literal

    def hint(self, schedule: Schedule) -> None:
        """Start the next search from a schedule."""
        seen = view(self.problem, schedule)
        self.cp.clear_hints()  # type: ignore[no-untyped-call]
        for variable, value in self._known:
            self.cp.add_hint(variable, int(value(seen)))


def weighted(literals: list[Literal], weights: list[int]) -> Expression:
    """Return a weighted sum without the terms of weight zero."""
    terms = [(literal, weight) for literal, weight in zip(literals, weights, strict=True) if weight]
    total: Expression = cp_model.LinearExpr.weighted_sum([term[0] for term in terms], [term[1] for term in terms])
    return total
