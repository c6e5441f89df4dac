"""What the runs of exact solvers and of the portfolio share: a clock, an incumbent, and how they end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from placeopt.model.objective import Value
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.simulation import retime
from placeopt.solver import Answer, Clock, Options, Termination

from .incumbent import Incumbent


def nothing_to_place(problem: Problem) -> Answer:
    """Return the answer to a problem without tasks."""
    nothing = np.empty(0, dtype=np.int64)
    return Answer(Termination.OPTIMAL, retime(problem, Schedule(nothing, nothing)), bound=0)


def gap_reached(value: Value, bound: Value, gap_limit: float | None) -> Termination | None:
    """Return OPTIMAL where a value equals its bound, COMPLETED where it is within the gap limit, else None."""
    if value == bound:
        return Termination.OPTIMAL
    return Termination.COMPLETED if gap_limit is not None and value - bound <= gap_limit * value else None


def sufficient(problem: Problem, bound: float, gap_limit: float | None = None) -> float:
    """Return the value at which a search may end; -inf where the objective has several levels."""
    if len(problem.objective.levels) > 1:
        return -math.inf
    return bound if gap_limit is None else bound / (1 - gap_limit) if gap_limit < 1 else math.inf


class SolveRun:
    """One solve of a problem that has tasks."""

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

    def first_level_reached(self, bound: Value | None) -> Termination | None:
        """Return how to end where the incumbent is good enough for a bound; None with several levels."""
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
            termination, self.best.schedule, bound, message or self.message, self.stats, varies_by=self.varies_by
        )
