"""What the runs of exact solvers have in common: a clock, an incumbent, and how they end."""

from __future__ import annotations

from typing import Any

import numpy as np

from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.simulation import retime
from placeopt.solver import Answer, Clock, Options, Termination

from .incumbent import Incumbent


def nothing_to_place(problem: Problem) -> Answer:
    """The answer to a problem without tasks."""
    nothing = np.empty(0, dtype=np.int64)
    return Answer(Termination.OPTIMAL, retime(problem, Schedule(nothing, nothing)), bound=0)


class ExactRun:
    """One solve of a problem that has tasks."""

    def __init__(self, problem: Problem, options: Options) -> None:
        self.problem, self.options = problem, options
        self.clock = Clock(options.time_limit)
        self.best = Incumbent(problem, options, self.clock)
        self.stats: dict[str, Any] = {}
        self.message = ""
        self.varies_by = ""

    def halted(self) -> Termination | None:
        """Why to stop now, None to go on."""
        if self.options.should_stop():
            return Termination.INTERRUPTED
        return Termination.TIME_LIMIT if self.clock.over else None

    def refusal(self, why: str) -> Answer:
        """The best schedule held, where nothing more can be proved."""
        return self.ended(Termination.FAILED if self.best.schedule is None else Termination.COMPLETED, why)

    def ended(self, termination: Termination, message: str = "") -> Answer:
        """The answer with what is held."""
        bound = None if termination is Termination.INFEASIBLE else self.best.bound
        return Answer(
            termination, self.best.schedule, bound, message or self.message, self.stats, varies_by=self.varies_by
        )
