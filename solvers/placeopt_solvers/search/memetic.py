"""memetic: a population of schedules, each improved by tabu search over critical paths.

`placeopt_solvers._local_search.memetic` states the population and its sources, the engine's `critical.hpp` the moves.
With one worker, seconds are converted to steps of work, so the same seed gives the same schedule.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from placeopt.model.problem import Problem
from placeopt.protocol import Answer, Info, Options, Settings, Termination
from placeopt.protocol.citations import bibtex

from .._local_search.memetic import PATIENCE, Memetic
from .._runs.solve_run import SolveRun, nothing_to_place, sufficient
from .._starts.warm_start import begun
from ._anytime import DEFAULT, SHARE


class MemeticSettings(Settings):
    """Settings of memetic."""

    patience: int = Field(default=PATIENCE, gt=0)
    """Moves without a gain after which a tabu search ends."""
    populations: int | None = Field(default=None, gt=0)
    """Populations after which the search ends; by default the time limit ends it, or about ten seconds without one."""


class MemeticSearch:
    """Improves a schedule anytime; the result is never longer than the start."""

    name: ClassVar[str] = "memetic"
    info: ClassVar[Info] = Info(
        summary="populations improved by tabu search over critical paths (Mastrolilli, Gambardella 2000)",
        family="search",
        guarantee="none",
        complexity="at most O(n + e) per move, as many moves as time allows",
        citation=bibtex("peng2015tabu"),
        anytime=True,
        warm_start=True,
        contentions=("none",),
        memory_models=("sum",),
    )
    settings_type: ClassVar[type[MemeticSettings]] = MemeticSettings

    def solve(self, problem: Problem, options: Options, settings: MemeticSettings) -> Answer:
        """Return the best schedule found within the limits."""
        if problem.n_tasks == 0:
            return nothing_to_place(problem)
        run = SolveRun(problem, options)
        if (ended := begun(run)) is not None:
            return ended
        best, start, bound = run.best, run.best.schedule, run.best.bound
        assert start is not None
        assert bound is not None

        def stopped() -> bool:
            return run.stopped() or (settings.populations is not None and search.populations >= settings.populations)

        search = Memetic(problem, [start], options.seed, stopped, best.offer, options.workers, settings.patience)
        limit = options.planned_seconds
        seconds = float("inf")
        if settings.populations is None and (limit is None or options.workers == 1):
            seconds = DEFAULT if limit is None else SHARE * limit
        search.run(seconds, sufficient(problem, float(bound), options.gap_limit))
        why = Termination.OPTIMAL if best.values == (bound,) else run.stop_reason() or Termination.COMPLETED
        run.stats["evaluated"] = search.evaluated
        run.varies_by = "threads" if options.workers > 1 else ""
        return run.ended(why)
