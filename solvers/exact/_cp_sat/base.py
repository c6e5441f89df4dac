"""A CP-SAT model whose every variable knows its value in a given schedule, so that hints are complete."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from placeopt.model.memory import freed_at, used_memory
from placeopt.model.objective import METRICS
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, arrivals, durations, edge_ticks

Literal = cp_model.IntVar
Expression = cp_model.LinearExpr | int

LARGEST = 2**62
"""No sum in a model may reach this: CP-SAT counts in 64 bits."""

CHECK_EVERY = 1024
"""Variables made between two looks at the clock."""


class BuildStoppedError(Exception):
    """The time ran out, or the caller said stop, before the model was built."""


class TooLargeError(Exception):
    """The numbers of a problem do not fit into CP-SAT's 64 bits; the message names them."""


@dataclass(frozen=True, slots=True)
class View:
    """A schedule as plain lists, with what the values of auxiliary variables follow from.

    Attributes
    ----------
    device, start, end, freed
        Per task: its device, and the ticks at which it starts, ends, and lets go of its output.
    home
        Per colocation group: its device.
    sent, arrival
        Per edge: the ticks at which its data leaves and arrives.
    used
        Per device: bytes that count against its capacity.
    metrics
        The value of each metric.
    """

    device: list[int]
    start: list[int]
    end: list[int]
    freed: list[int]
    home: list[int]
    sent: list[int]
    arrival: list[int]
    used: list[int]
    metrics: dict[str, int]


def view(problem: Problem, schedule: Schedule) -> View:
    """What the hints of a schedule follow from."""
    home = np.zeros(problem.n_groups, dtype=np.int64)
    home[problem.group] = schedule.device
    arrival = arrivals(problem, schedule)
    return View(
        device=schedule.device.tolist(),
        start=schedule.start.tolist(),
        end=(schedule.start + durations(problem, schedule.device)).tolist(),
        freed=freed_at(problem, schedule).tolist(),
        home=home.tolist(),
        sent=(arrival - edge_ticks(problem, schedule.device)).tolist(),
        arrival=arrival.tolist(),
        used=used_memory(problem, schedule).tolist(),
        metrics={metric: METRICS[metric](problem, schedule) for metric in ("makespan", *problem.objective.metrics)},
    )


class Base:
    """A growing model.

    Each variable is made together with the function that gives its value in a schedule.
    """

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
        """A variable in low..high.

        Raises
        ------
        BuildStoppedError
            If the time for building is up.
        """
        if len(self._known) % CHECK_EVERY == 0 and self._stopped():
            raise BuildStoppedError
        variable = self.cp.new_int_var(low, high, "")
        self._known.append((variable, value))
        self._values[variable.index] = value
        return variable

    def literal(self, value: Callable[[View], bool]) -> Literal:
        """A variable that is 0 or 1."""
        return self.integer(0, 1, value)

    def both(self, left: Literal, right: Literal) -> Literal:
        """Whether two literals are true."""
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
    """A weighted sum; terms of weight zero are left out."""
    terms = [(literal, weight) for literal, weight in zip(literals, weights, strict=True) if weight]
    total: Expression = cp_model.LinearExpr.weighted_sum([term[0] for term in terms], [term[1] for term in terms])
    return total
