"""What searches share around their loop: where they begin, when they end, and what they answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from pydantic import Field

from placeopt.bounding.quick import best_bound
from placeopt.model.problem import Objective, Problem
from placeopt.model.schedule import Schedule
from placeopt.solver import Answer, Clock, Options, Settings, Termination

from .._local_search.search import Cooling, Search, any_start, rounds_in, searched, sufficient
from .._runs.incumbent import Incumbent
from .._starts.warm_start import best_start

DEFAULT = 10.0
"""Seconds worth of moves where neither a time limit nor a number of rounds is given."""

BRIEF = 1.0
"""Seconds; below such a limit there is no time to load compiled code, and plain code searches."""

SHARE = 0.85
"""Of the time limit that one worker's moves are to take: it ends by their number, not by the clock."""


class SearchSettings(Settings):
    """Settings of every search."""

    rounds: int | None = Field(default=None, gt=0)
    """Moves that each worker tries. Without it, as many as the time limit has room for: with one worker a number that
    depends on the problem and the limit alone, so that the same seed gives the same schedule; with more, until the
    limit. With neither, as many as a core tries in about ten seconds."""


def search(
    problem: Problem,
    options: Options,
    settings: SearchSettings,
    make: Callable[[Problem, Schedule, int, int, int], Search],
    coolings: Callable[[Problem, int, int], Iterator[Cooling]],
) -> Answer:
    """Search with the walkers that `make` gives and with `coolings` of a worker, by its number and its moves."""
    clock = Clock(options.time_limit)
    best = Incumbent(problem, options, clock)
    bound = best_bound(problem).value
    start = best_start(problem, options.initial, True)
    if start is not None:
        best.offer(start, "start" if options.initial is None else "initial")
    begin = start or any_start(problem)
    if begin is None:
        return Answer(Termination.FAILED, message="no placement keeps all groups and separations on feasible devices")
    if problem.n_tasks == 0:
        return Answer(Termination.OPTIMAL, begin, bound)
    limit = options.planned_seconds
    endless = settings.rounds is None and limit is not None and options.workers > 1
    seconds = DEFAULT if limit is None else SHARE * limit
    brief = settings.rounds is None and limit is not None and limit < BRIEF
    rounds = settings.rounds or max(rounds_in(problem, seconds, plain=brief), 1)

    def each(number: int) -> Iterator[Cooling]:
        while True:
            yield from coolings(problem, number, rounds)
            if not endless:
                return

    walked = searched(
        problem,
        begin,
        make,
        each,
        best,
        bound=math.ceil(bound) if problem.objective == Objective() else None,
        enough=sufficient(problem, float(bound), options.gap_limit),
        seed=options.seed,
        workers=options.workers,
        moves=0 if brief else rounds,
        stopped=lambda: options.should_stop() or clock.over,
    )
    message = "" if best.schedule is not None else "no state that was tried keeps all limits of memory and deadlines"
    if best.values is not None and len(best.values) == 1 and best.values[0] == bound:
        why = Termination.OPTIMAL
    elif options.should_stop():
        why = Termination.INTERRUPTED
    elif clock.over:
        why = Termination.TIME_LIMIT
    else:
        why = Termination.COMPLETED if best.schedule is not None else Termination.FAILED
    varies = "threads" if options.workers > 1 else ""
    return Answer(why, best.schedule, bound, message, {"evaluated": walked.evaluated}, varies_by=varies)
