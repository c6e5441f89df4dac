"""Lower bounds from a device-free relaxation, as a linear and as an integer program with cuts.

    relaxation-lp     the linear program with the cuts that its optima violate; exact
    relaxation-mip    the integer program, by HiGHS or CP-SAT, whichever finishes first; repeated with the cuts that
                      its optimum violates, until there are none or the time is up

If memory limits force transfers, as on long chains of operators with large weights, these bounds exceed all bounds
without placement (`placeopt.bounding.relaxation.model`). They take seconds to minutes and import OR-Tools. There are
none of the makespan if a device runs several tasks at once: loads and cuts assume one at a time.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from threading import Lock
from typing import TYPE_CHECKING

from placeopt.bounding.engines.linear_program import Row
from placeopt.bounding.quick import Bound, narrowed_classes
from placeopt.bounding.relaxation.covers import ChainCuts, CoverCuts
from placeopt.bounding.relaxation.cycles import CycleCuts
from placeopt.bounding.relaxation.forks import ForkCuts
from placeopt.bounding.relaxation.kinds import MOST, Kinds, kinds_of
from placeopt.bounding.relaxation.model import GroupGraph, Relaxation
from placeopt.engine import StoppedError
from placeopt.model.arrays import Float
from placeopt.model.objective import Value, simplified
from placeopt.model.problem import Problem
from placeopt.protocol import Clock

if TYPE_CHECKING:
    from placeopt.bounding.relaxation.linear import IncrementalLP

LARGEST = 300_000
"""Maximum number of columns of a relaxation. Above this the first linear program alone would take minutes."""

ROWS = 60
"""Maximum number of cuts of one family added at a time."""

ALIKE = 0.9
"""A cut is postponed if it shares more than this part of its columns with a more violated cut of its family."""

PATIENCE = 8
"""Rounds of cuts in which the value must grow by GROWTH; else cutting stops."""

GROWTH = 5e-4

NAMES = {"highs": "HiGHS", "cp-sat": "CP-SAT"}
"""Names of the engines for people."""


def relaxed_bounds(
    problem: Problem,
    *,
    time_limit: float | None = None,
    workers: int = 1,
    known: Value | None = None,
    on_bound: Callable[[Bound], None] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[Bound]:
    """The relaxation's bounds of the objective's first level, one of each kind.

    Parameters as for `placeopt.proving.portfolio.bounds`, but `time_limit` None means unlimited, and the value `known`
    also tightens the relaxation.
    """
    return _Run(problem, Clock(time_limit), workers, known, on_bound or (lambda _: None), should_stop).bounds()


def refusal(problem: Problem) -> str | None:
    """Why there are no such bounds of a problem, regardless of the time; None if there may be some."""
    return _reason(problem) or ("the problem is too large" if _kinds(problem) is None else None)


def _reason(problem: Problem) -> str | None:
    if not problem.n_tasks or not problem.n_devices:
        return "there is nothing to place"
    if "parallel" in problem.rules and any(term.metric == "makespan" for term in problem.objective.levels[0]):
        return "they do not support the makespan of devices that run several tasks at a time"
    return None


def _kinds(problem: Problem) -> Kinds | None:
    """The most kinds whose program is not too large; None if even two are too many."""
    classes = narrowed_classes(problem)
    for most in range(MOST, 1, -1):
        kinds = min(most, classes.n_classes)
        if problem.n_tasks * (kinds + 1) + problem.n_edges * kinds * (kinds + 1) <= LARGEST:
            return kinds_of(classes, most)
    return None


@dataclass(eq=False)
class _Run:
    """One computation of the relaxation's bounds."""

    problem: Problem
    clock: Clock
    workers: int
    known: Value | None
    on_bound: Callable[[Bound], None]
    should_stop: Callable[[], bool]
    found: dict[str, Bound] = field(default_factory=dict)
    least: int = 0  # best proved bound of the program's objective
    lock: Lock = field(default_factory=Lock)

    def bounds(self) -> list[Bound]:
        """All bounds that are proved in time."""
        kinds = _kinds(self.problem) if _reason(self.problem) is None and not self.over else None
        if kinds is not None:
            with contextlib.suppress(StoppedError):
                self.relaxation = Relaxation(kinds, self.known, lambda: self.over)
                self._bound()
        return sorted(self.found.values(), key=lambda bound: -bound.value)

    @property
    def over(self) -> bool:
        """Whether to stop."""
        return self.clock.over or self.should_stop()

    def _bound(self) -> None:
        from placeopt.bounding.relaxation.integer import race
        from placeopt.bounding.relaxation.linear import IncrementalLP

        network = GroupGraph.of(self.relaxation)
        covers, cycles = CoverCuts(self.relaxation, network), CycleCuts(self.relaxation, network)
        self.cuts = (covers, ChainCuts(self.relaxation, covers), cycles, ForkCuts(self.relaxation, network))
        program = self.relaxation.program
        linear = IncrementalLP(program)
        self._improve(linear)
        if self.relaxation.timed:
            self.relaxation.add_windows()
            self._improve(linear)
        while not self.over:
            remaining = self.clock.remaining
            ended = race(
                program, self.least, self.relaxation.in_ticks, 1e9 if remaining is None else remaining, self.workers,
                lambda value, engine: self._prove("relaxation-mip", value, f"an integer program, by {NAMES[engine]}"),
                self.should_stop,
            )  # fmt: skip
            if ended.x is None or not self._cut(ended.x):
                return

    def _improve(self, linear: IncrementalLP) -> None:
        """Solve the linear program and add the cuts that its optimum violates, while the value grows."""
        values: list[float] = []
        while not self.over:
            optimum = linear.solve(self.clock.remaining, self.should_stop)
            if optimum is None:
                return
            if not values or optimum.value > max(values):
                self.least = max(
                    self.least, math.ceil(self.relaxation.program.safe_dual_bound(optimum.multipliers.tolist()))
                )
                self._prove("relaxation-lp", self.least, "a linear program")
            values.append(optimum.value)
            if len(values) > PATIENCE and values[-1] <= values[-1 - PATIENCE] * (1 + GROWTH):
                return
            if not self._cut(optimum.x):
                return

    def _cut(self, x: Float) -> bool:
        """Add the cuts that a point violates; return whether there are any."""
        rows = [row for cuts in self.cuts for row in _chosen(cuts.violated(x))]
        self.relaxation.program.rows.extend(rows)
        return bool(rows)

    def _prove(self, name: str, value: int, how: str) -> None:
        """Report a bound of the program's objective if it improves the best of its name."""
        bound, program = simplified(Fraction(value, self.relaxation.scale)), self.relaxation.program
        size = f"{program.n_columns:,} columns and {len(program.rows):,} rows"
        why = f"no placement on merged device classes is better: {how} with {size}"
        with self.lock:
            if name not in self.found or self.found[name].value < bound:
                self.found[name] = Bound(name, bound, why, self.clock.elapsed)
                self.on_bound(self.found[name])


def _chosen(found: Iterable[tuple[float, Row]]) -> list[Row]:
    """The most violated cuts, without similar ones."""
    chosen: list[Row] = []
    taken: list[set[int]] = []
    for _, row in sorted(found, key=lambda cut: -cut[0]):
        columns = set(row.columns.tolist())
        if all(len(columns & other) <= ALIKE * len(columns) for other in taken):
            taken.append(columns)
            chosen.append(row)
            if len(chosen) == ROWS:
                break
    return chosen
