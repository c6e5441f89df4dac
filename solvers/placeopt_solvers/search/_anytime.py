"""Run a search by moves: its start, its limits, and its answer."""

from __future__ import annotations

import math

from pydantic import Field

from placeopt.bounding.quick import best_bound
from placeopt.model.problem import Objective, Problem
from placeopt.protocol import BOOKED, PLACED, Answer, Info, Options, Settings, Termination

from .._local_search.search import Coolings, MakeWalker, any_start, rounds_in, search_from
from .._runs.solve_run import SolveRun, sufficient
from .._starts.warm_start import best_start

DEFAULT = 10.0
"""Planned seconds of a search without a time limit and without a number of rounds."""

SHARE = 0.85
"""Share of the time limit for which one worker plans its moves; it ends by their number, not by the clock."""


class SearchSettings(Settings):
    """Settings of every search."""

    rounds: int | None = Field(default=None, gt=0)
    """Moves that each worker tries. By default, as many as fit into the time limit: with one worker a number that
    depends only on the problem and the limit, so that the same seed gives the same schedule; with more workers, until
    the limit. Without a time limit, as many as a core tries in about ten seconds."""


def search_info(summary: str, citation: str) -> Info:
    """Return the description of a search."""
    return Info(
        summary=summary,
        family="search",
        rules=BOOKED,
        guarantee="none",
        complexity="at most O(n + e) per move, as many moves as time allows",
        citation=citation,
        anytime=True,
        warm_start=True,
        metrics=PLACED,
        combined=True,
    )


def search(
    problem: Problem, options: Options, settings: SearchSettings, make: MakeWalker, coolings: Coolings
) -> Answer:
    """Search with walkers from `make` that follow `coolings`."""
    run = SolveRun(problem, options)
    best, bound = run.best, best_bound(problem).value
    start = best_start(problem, options.initial, True, run.stopped)
    if start is not None:
        best.offer(start, "start" if options.initial is None else "initial")
    begin = start or any_start(problem)
    if begin is None:
        return Answer(Termination.FAILED, message="no placement satisfies feasibility, groups and separations")
    if problem.n_tasks == 0:
        return Answer(Termination.OPTIMAL, begin, bound)
    limit = options.planned_seconds
    seconds = DEFAULT if limit is None else SHARE * limit
    rounds = settings.rounds or max(rounds_in(problem, seconds), 1)
    evaluated = search_from(
        problem,
        begin,
        make,
        coolings,
        best,
        rounds,
        run.stopped,
        bound=math.ceil(bound) if problem.objective == Objective() else None,
        enough=sufficient(problem, float(bound), options.gap_limit),
        seed=options.seed,
        workers=options.workers,
        endless=settings.rounds is None and limit is not None and options.workers > 1,
    )
    found = best.schedule is not None
    limits = "memory limits, budgets" if "budgets" in problem.rules else "memory limits"
    why = Termination.OPTIMAL if best.values == (bound,) else run.stop_reason()
    return Answer(
        why or (Termination.COMPLETED if found else Termination.FAILED),
        best.schedule,
        bound,
        "" if found else f"no state that was tried meets all {limits} and deadlines",
        {"evaluated": evaluated},
        varies_by="threads" if options.workers > 1 else "",
    )
