"""Run a search by windows within the limits of a solve, and build its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pydantic import Field

from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.protocol import Answer, Options, Settings, Termination

from ..._runs.solve_run import SolveRun, nothing_to_place, sufficient
from ..._starts.warm_start import begun

SHARE = 0.85
"""Share of the time limit for which one worker plans its work; it ends by its work, not by the clock."""

START = 0.1, 1e-5
"""Seconds of the time limit for heuristics, and those per task and edge."""


class SweepSettings(Settings):
    """Settings of searches by windows."""

    patience: int = Field(default=2000, gt=0)
    """Windows without a shorter schedule after which the search ends."""


class Search(Protocol):
    """A search that improves a schedule."""

    @property
    def tried(self) -> int:
        """Windows so far."""
        ...

    @property
    def span(self) -> int:
        """The makespan of the best schedule so far."""
        ...

    def run(self, seconds: float, bound: float) -> object:
        """Continue for about `seconds` of work, or until the makespan is at most a bound."""
        ...


MakeSearch = Callable[[Problem, Schedule, int, Callable[[], bool], Callable[[Schedule], object], int], Search]
"""Makes a search from a problem, a schedule, a seed, `stopped`, `on_better` and a number of workers."""


def improved_by(problem: Problem, options: Options, settings: SweepSettings, make: MakeSearch) -> Answer:
    """Improve the best start with a search."""
    if problem.n_tasks == 0:
        return nothing_to_place(problem)
    run = SolveRun(problem, options)
    if (ended := begun(run)) is not None:
        return ended
    best, start, bound = run.best, run.best.schedule, run.best.bound
    assert start is not None
    assert bound is not None
    enough = sufficient(problem, float(bound), options.gap_limit)
    gained = 0  # windows at the last gain

    def better(schedule: Schedule) -> None:
        nonlocal gained
        if best.offer(schedule):
            gained = search.tried

    def stopped() -> bool:
        return run.stopped() or search.tried - gained >= settings.patience

    search = make(problem, start, options.seed, stopped, better, options.workers)
    limit = options.planned_seconds
    if limit is not None and options.workers == 1:
        before = START[0] + START[1] * (problem.n_tasks + problem.n_edges)
        search.run(max(SHARE * limit - before, limit / 2), enough)
    else:
        search.run(float("inf"), enough)
    why = Termination.OPTIMAL if best.values == (bound,) else run.stop_reason() or Termination.COMPLETED
    varies = "threads" if options.workers > 1 else ""
    return Answer(why, best.schedule, best.bound, "", {"windows": search.tried}, varies_by=varies)
