"""lns: large neighbourhood search, in which CP-SAT optimises one part of a schedule after the other.

P. Shaw: Using constraint programming and local search methods to solve vehicle routing problems, CP 1998, LNCS 1520,
doi:10.1007/3-540-49481-2_30. Kinds and sizes of neighbourhoods adapt to their success, as in P. Laborie, D. Godard:
Self-adapting large neighborhood search: application to single-mode scheduling problems, MISTA 2007.

The schedule is kept as a sequence of the tasks by start. A neighbourhood frees all or some tasks of an interval of the
sequence (`_lns.search`: consecutive tasks, those of two devices, clusters on the critical path); the others keep their
device and their order. CP-SAT gives the free tasks devices and starts (`_lns.search`). Exact heads and tails represent
the rest of the schedule, so CP-SAT minimises the makespan of the whole with a model of the interval's size, and then
its lateness, which reduces the number of critical paths. The times of the whole schedule are then recomputed and
checked, and the schedule is accepted unless it is longer. The size of a kind grows when neighbourhoods that failed
before are solved again without gain, and shrinks when they are not solved. Kinds with a higher gain per second are used
more often. The time per neighbourhood grows with the failures.

With tight memory the search stagnates earlier than annealing.

Feasible devices, colocation, separation, release times, deadlines and memory under the `sum` model are exact in the
subproblems. Departures: under `peak` a subproblem may use the capacity less the peak of the other tasks, and a schedule
that does not fit is discarded. Under port contention, subproblems ignore ports, and transfers are then booked around
the others; this helps if transfers are light, but hardly if ports are the bottleneck. A subproblem contains at most
three identical idle devices.

The start must be feasible. If only deadlines are violated, the search minimises the makespan without deadlines until
they are met.

With one worker, seconds are converted to deterministic work (`_lns.search`), so the same seed gives the same schedule;
the clock ends only what takes far longer than planned. Without a time limit the search ends after `patience` seconds of
work without gain.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from pydantic import Field

from placeopt.bounding.quick import best_bound
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, lateness
from placeopt.protocol import Answer, Info, Options, Settings, Termination
from placeopt.protocol.citations import bibtex

from .._local_search.search import makespan_bound
from .._runs.solve_run import SolveRun, nothing_to_place, sufficient
from .._runs.time_scaling import solve_coarsened
from .._runs.validity import valid
from .._starts.warm_start import best_start
from ._lns.search import TUNING, Search


class LnsSettings(Settings):
    """Settings of lns."""

    patience: float = Field(default=10.0, gt=0)
    """Seconds of work without gain after which the search ends if there is no time limit."""


class Lns:
    """Improves a schedule anytime; the result is never longer than the start."""

    name: ClassVar[str] = "lns"
    info: ClassVar[Info] = Info(
        summary="large neighbourhood search: CP-SAT optimises one part of a schedule after the other",
        family="search",
        guarantee="none",
        complexity="anytime; O(n + e) and a model of a few dozen tasks per step",
        citation=bibtex("shaw1998lns"),
        anytime=True,
        warm_start=True,
    )
    settings_type: ClassVar[type[Settings]] = LnsSettings

    def solve(self, problem: Problem, options: Options, settings: LnsSettings) -> Answer:
        """Return the best schedule found within the limits."""
        if problem.n_tasks == 0:
            return nothing_to_place(problem)
        return solve_coarsened(problem, options, lambda problem, options: _solved(problem, options, settings))


def _planned(problem: Problem, limit: float) -> float:
    """Return seconds of work for a time limit; the same in every run."""
    before = TUNING.start + TUNING.reading * (problem.n_tasks + problem.n_edges)
    return max(limit * TUNING.share - before, limit * TUNING.least)


def _solved(problem: Problem, options: Options, settings: LnsSettings) -> Answer:
    run = SolveRun(problem, options)
    best, value = run.best, best_bound(problem).value
    relaxed = problem
    start = best_start(problem, options.initial, True, run.stopped)
    if start is not None:
        best.offer(start, "start")
        best.raise_bound(value)
    elif (problem.deadline != UNLIMITED).any():
        relaxed = replace(problem, deadline=np.full_like(problem.deadline, UNLIMITED))
        start = best_start(relaxed, options.initial, True, run.stopped)
    if start is None:
        return Answer(Termination.FAILED, message="no schedule to start from: pass one, or use cp-sat")
    if best.schedule is not None and (ended := run.stop_reason()) is not None:
        return run.ended(ended)
    # The makespan and not the objective, which counts original ticks if the problem is coarsened.
    enough = sufficient(problem, makespan_bound(problem), options.gap_limit)

    def stopped() -> bool:
        # Without deadlines, the first schedule that meets them is the start of a second search.
        return run.stopped() or (relaxed is not problem and best.schedule is not None)

    def better(schedule: Schedule) -> None:
        if relaxed is problem or valid(problem, schedule):
            best.offer(schedule)

    def improve(start: Schedule, spent: float) -> Search:
        search = Search(relaxed, start, options.seed, stopped, better, options.workers)
        if options.planned_seconds is None:
            span = None
            while search.state.span != span and not search.complete:
                span = search.state.span
                search.run(settings.patience, enough)
        elif options.workers == 1:
            search.run(_planned(problem, options.planned_seconds) - spent, enough)
        else:
            search.run(float("inf"), enough)
        return search

    search = improve(start, 0.0)
    if relaxed is not problem and best.schedule is not None:
        relaxed = problem
        search = improve(best.schedule, search.spent)
    schedule, message = best.schedule, ""
    if schedule is None:
        schedule = search.state.schedule
        message = f"a deadline is missed by {lateness(problem, schedule)} ticks; cp-sat may prove whether it can be met"
    else:
        best.raise_bound(value)  # bounds of an infeasible problem mean nothing
    stats = {
        "neighbourhoods": search.tried,
        **{f"{kind.name}_{name}": getattr(kind, name) for kind in search.chooser.kinds for name in ("tried", "ticks")},
    }
    why = Termination.OPTIMAL if best.values == (value,) else run.stop_reason() or Termination.COMPLETED
    varies = "threads" if options.workers > 1 else ""
    return Answer(why, schedule, best.bound, message, stats, varies_by=varies)
