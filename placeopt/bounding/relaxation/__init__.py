"""Lower bounds from a device-free relaxation, as a linear and as an integer programme, with cuts.

    relaxation-lp     the relaxation's linear programme, with the cuts that its points violate; exact
    relaxation-mip    the same as an integer programme, by HiGHS or CP-SAT, whichever is first; and again
                      with the cuts that its optimum violates, until there are none or time is up

Where memory limits force data onto links, as on long chains of operators with large weights, these find what bounds
without placement cannot (`placeopt.bounding.relaxation.model`). They take seconds to minutes, and import OR-Tools.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from placeopt.bounding.engines import BuildStoppedError
from placeopt.bounding.engines.linear_program import Row
from placeopt.bounding.quick import Bound, narrowed_classes
from placeopt.bounding.relaxation.chains import Chains
from placeopt.bounding.relaxation.covers import Covers
from placeopt.bounding.relaxation.cycles import Cycles
from placeopt.bounding.relaxation.forks import Forks
from placeopt.bounding.relaxation.kinds import MOST, Kinds, kinds_of
from placeopt.bounding.relaxation.model import Relaxation
from placeopt.bounding.relaxation.network import Network
from placeopt.model.arrays import Float
from placeopt.model.objective import Value, simplified
from placeopt.model.problem import Problem
from placeopt.solver import Clock

if TYPE_CHECKING:
    from placeopt.bounding.relaxation.integer import Engine
    from placeopt.bounding.relaxation.linear import LinearProgramme

LARGEST = 300_000
"""Columns above which no relaxation is made: the first linear programme alone would take minutes."""

ROWS = 60
"""Cuts of one family added at a time, at most."""

ALIKE = 0.9
"""A cut that shares more of its columns with a more violated one of its family has to wait."""

PATIENCE = 8
"""Rounds of cuts after which the value must have grown by GROWTH, or there are no more."""

GROWTH = 5e-4


def relaxed_bounds(
    problem: Problem,
    *,
    time_limit: float | None = None,
    workers: int = 1,
    known: Value | None = None,
    on_bound: Callable[[Bound], None] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[Bound]:
    """The bounds that the relaxation proves of the objective's first level, one of each kind, as far as it gets.

    Parameters
    ----------
    time_limit
        Seconds; None for no limit.
    workers
        Threads to use.
    known
        The objective's first level of a schedule that exists: leaves the relaxation less to look at.
    on_bound
        Called with every bound, perhaps from another thread, one call at a time.
    should_stop
        Asked now and then; once true, what has been proved so far is returned.
    """
    return _Run(problem, Clock(time_limit), workers, known, on_bound or (lambda _: None), should_stop).bounds()


class _Run:
    """The relaxation of one problem, on its way to better bounds."""

    def __init__(
        self,
        problem: Problem,
        clock: Clock,
        workers: int,
        known: Value | None,
        on_bound: Callable[[Bound], None],
        should_stop: Callable[[], bool],
    ) -> None:
        self.problem, self.clock, self.workers, self.known = problem, clock, workers, known
        self.on_bound, self.should_stop = on_bound, should_stop
        self.found: dict[str, Bound] = {}
        self.least = 0
        self.lock = threading.Lock()

    def bounds(self) -> list[Bound]:
        """All that is proved in time."""
        if self.problem.n_tasks and self.problem.n_devices and not self.over:
            kinds = self._kinds()
            if kinds is not None:
                with contextlib.suppress(BuildStoppedError):
                    self.relaxation = Relaxation(kinds, self.known, lambda: self.over)
                    self._bound()
        return sorted(self.found.values(), key=lambda bound: -bound.value)

    def _kinds(self) -> Kinds | None:
        """As many kinds as leave a programme that is not too large; None if that are not even two."""
        classes = narrowed_classes(self.problem)
        for most in range(MOST, 1, -1):
            kinds = min(most, classes.n_classes)
            if self.problem.n_tasks * (kinds + 1) + self.problem.n_edges * kinds * (kinds + 1) <= LARGEST:
                return kinds_of(classes, most)
        return None

    @property
    def over(self) -> bool:
        """Whether to stop."""
        return self.clock.over or self.should_stop()

    def _bound(self) -> None:
        from placeopt.bounding.relaxation.integer import race
        from placeopt.bounding.relaxation.linear import LinearProgramme

        network = Network.of(self.relaxation)
        covers = Covers(self.relaxation, network)
        self.cuts = (
            covers,
            Chains(self.relaxation, covers),
            Cycles(self.relaxation, network),
            Forks(self.relaxation, network),
        )
        programme = self.relaxation.programme
        linear = LinearProgramme(programme)
        self._improve(linear)
        if self.relaxation.timed:
            self.relaxation.add_windows()
            self._improve(linear)
        while not self.over:
            remaining = self.clock.remaining
            ended = race(
                programme, self.least, self.relaxation.in_ticks, 1e9 if remaining is None else remaining, self.workers,
                self._integer, self.should_stop,
            )  # fmt: skip
            if ended.x is None or not self._cut(ended.x):
                return

    def _improve(self, linear: LinearProgramme) -> None:
        """Solve the linear programme and cut its optimum off, as long as that helps."""
        values: list[float] = []
        while not self.over:
            optimum = linear.solve(self.clock.remaining, self.should_stop)
            if optimum is None:
                return
            if not values or optimum.value > max(values):
                self.least = max(
                    self.least, math.ceil(self.relaxation.programme.safe_dual_bound(optimum.multipliers.tolist()))
                )
                self._prove("relaxation-lp", self.least)
            values.append(optimum.value)
            if len(values) > PATIENCE and values[-1] <= values[-1 - PATIENCE] * (1 + GROWTH):
                return
            if not self._cut(optimum.x):
                return

    def _cut(self, x: Float) -> bool:
        """Whether rows were added that a point violates."""
        rows = [row for cuts in self.cuts for row in _chosen(cuts.violated(x))]
        self.relaxation.programme.rows.extend(rows)
        return bool(rows)

    def _integer(self, value: int, engine: Engine) -> None:
        self._prove("relaxation-mip", value, engine)

    def _prove(self, name: str, value: int, engine: Engine | None = None) -> None:
        """Note a bound of the programme's objective, if it is the best of its name."""
        bound = simplified(Fraction(value, self.relaxation.scale))
        with self.lock:
            if name in self.found and self.found[name].value >= bound:
                return
            self.found[name] = Bound(name, bound, self._explanation(engine), self.clock.elapsed)
            self.on_bound(self.found[name])

    def _explanation(self, engine: Engine | None) -> str:
        how = {
            None: "a linear programme",
            "highs": "an integer programme, by HiGHS",
            "cp-sat": "an integer programme, by CP-SAT",
        }[engine]
        programme = self.relaxation.programme
        return (
            "no placement by kinds of devices, whatever the devices of a kind do, is better: "
            f"{how} of {programme.n_columns:,} columns and {len(programme.rows):,} rows"
        )


def _chosen(found: Iterable[tuple[float, Row]]) -> list[Row]:
    """The most violated cuts that are not much alike."""
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
