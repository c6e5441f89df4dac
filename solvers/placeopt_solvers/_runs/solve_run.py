"""The run of an exact solver, a search or the portfolio: its clock, its incumbent, and how it ends."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

from placeopt.errors import InternalError
from placeopt.model.objective import Value, evaluate
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.protocol import Answer, Clock, Options, Progress, Termination
from placeopt.simulation import retime
from placeopt.simulation.pipelines import periodic_schedule

OVERDUE = 0.02
"""Seconds after the time limit at which an engine that is still running is stopped: HiGHS may look at the time too
seldom. Its last reported bound and solution count then."""


def nothing_to_place(problem: Problem) -> Answer:
    """Return the answer to a problem without tasks."""
    nothing = np.empty(0, dtype=np.int64)
    if problem.pipeline is not None:
        return Answer(Termination.OPTIMAL, periodic_schedule(problem, nothing), bound=0)
    return Answer(Termination.OPTIMAL, retime(problem, Schedule(nothing, nothing)), bound=0)


def gap_reached(value: Value, bound: Value, gap_limit: float | None) -> Termination | None:
    """Return OPTIMAL if a value equals its bound, COMPLETED if it is within the gap limit, else None."""
    if value == bound:
        return Termination.OPTIMAL
    return Termination.COMPLETED if gap_limit is not None and value - bound <= gap_limit * value else None


def sufficient(problem: Problem, bound: float, gap_limit: float | None = None) -> float:
    """Return the value at which a search may end; -inf if the objective has several levels."""
    if len(problem.objective.levels) > 1:
        return -math.inf
    return bound if gap_limit is None else bound / (1 - gap_limit) if gap_limit < 1 else math.inf


class Incumbent:
    """The best schedule and the best bound so far; reports both, and may be called from several threads.

    `found_by` is the message that came with the best schedule, `bound_by` the source of the bound.
    """

    def __init__(self, problem: Problem, options: Options, clock: Clock) -> None:
        self.problem = problem
        self.schedule: Schedule | None = None
        self.values: tuple[Value, ...] | None = None
        self.bound: Value | None = None
        self.found_by, self.bound_by = "", ""
        self._on_progress, self._clock = options.on_progress, clock
        self._lock = threading.Lock()

    def offer(self, schedule: Schedule, message: str = "") -> bool:
        """Keep a schedule if it is better than the best; return whether it is."""
        values = evaluate(self.problem, schedule)
        with self._lock:
            if self.values is not None and values >= self.values:
                return False
            self.schedule, self.values, self.found_by = schedule, values, message
            self._report(message)
            return True

    def raise_bound(self, bound: Value, source: str = "") -> None:
        """Keep a proved lower bound of the first level if it is better than the best."""
        with self._lock:
            if self.bound is None or bound > self.bound:
                self.bound, self.bound_by = bound, source
                self._report("")

    def _report(self, message: str) -> None:
        if self._on_progress is not None:
            objective = self.values[0] if self.values else None
            self._on_progress(Progress(self._clock.elapsed, objective, self.bound, message, self.schedule))


class SolveRun:
    """One solve of a problem that has tasks; `name` is that of the solver."""

    name: str

    def __init__(self, problem: Problem, options: Options) -> None:
        self.problem, self.options = problem, options
        self.clock = Clock(options.time_limit)
        self.best = Incumbent(problem, options, self.clock)
        self.stats: dict[str, Any] = {}
        self.message = ""
        self.varies_by = ""

    def stop_reason(self) -> Termination | None:
        """Return why to stop now; None to continue."""
        if self.options.should_stop():
            return Termination.INTERRUPTED
        return Termination.TIME_LIMIT if self.clock.over else None

    def stopped(self) -> bool:
        """Return whether to stop now."""
        return self.stop_reason() is not None

    def overdue(self) -> bool:
        """Return whether an engine that has the time limit itself must be stopped."""
        limit = self.options.time_limit
        return self.options.should_stop() or (limit is not None and self.clock.elapsed > limit + OVERDUE)

    def contradiction(self, text: str) -> InternalError:
        """Return the error for a result that cannot be right."""
        return InternalError(f"{self.name}: {text} (problem {self.problem.fingerprint()}, seed {self.options.seed})")

    def first_level_reached(self, bound: Value | None) -> Termination | None:
        """Return how to end if the incumbent is good enough for a bound; None with several levels."""
        values = self.best.values
        if values is None or bound is None or len(values) > 1:
            return None
        return gap_reached(values[0], bound, self.options.gap_limit)

    def refusal(self, why: str) -> Answer:
        """Return the answer of a solver that cannot continue."""
        return self.ended(Termination.FAILED if self.best.schedule is None else Termination.COMPLETED, why)

    def ended(self, termination: Termination, message: str = "") -> Answer:
        """Return the answer with the incumbent."""
        bound = None if termination is Termination.INFEASIBLE else self.best.bound
        return Answer(
            termination,
            self.best.schedule,
            bound,
            message or self.message,
            self.stats,
            bound_source=self.best.bound_by,
            varies_by=self.varies_by,
        )
