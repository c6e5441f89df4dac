"""Large neighbourhood search: part after part of a schedule is solved anew by CP-SAT, for the true makespan.

P. Shaw: Using constraint programming and local search methods to solve vehicle routing problems, CP 1998, LNCS 1520,
doi:10.1007/3-540-49481-2_30; adapting itself as in P. Laborie, D. Godard: Self-adapting large neighborhood search:
application to single-mode scheduling problems, MISTA 2007.

The schedule is kept as a sequence of the tasks by start. A stretch of the sequence is freed, all or some of its tasks
(`_lns_stretches`: consecutive tasks, those of two devices, clusters on the critical path); the others keep their
device and their order. CP-SAT gives the free ones devices and starts (`_lns_model`): what comes before is in exact
heads, what comes after in exact tails, so that it minimises the makespan of the whole while the model has the size of
the stretch. What it finds is timed anew as a whole, checked, and taken if it is no longer. Sizes grow once stretches
that were tried before are solved to the end in vain, and shrink when they are not solved; kinds that gained more a
second come more often; the longer nothing is gained, the more time a stretch gets.

Measured on one core of a machine with others at work, CPU seconds: layered graphs of six tasks a layer, four equal
devices, durations of 1 to 20 ticks and CCR 1 come 8 to 11% (1,000 tasks, 15 s) and 9% (300 tasks, 8 s) below the best
heuristic, with gaps of 7 to 9%; of eight tasks a layer 10% and 11%, with gaps of 1 to 2%.
Where memory decides, stretches get stuck sooner: the layers of ResNet-50 on small devices end 7% below the best
heuristic, where annealing comes 13% below it in less time.

Feasible devices, colocation, separation, release times, deadlines and memory under the `sum` model are exact in the
parts. Departures where it is not so: under `peak` a part may take what the tasks outside it leave at their worst time,
and a schedule that does not fit is dropped; under port contention parts are solved as if ports were free, and
transfers then booked around the others: that gains where transfers are light, and next to nothing where ports decide.
Of idle devices that are alike in a part, three are offered to it.

A start must keep all rules; where neither the schedule given nor any heuristic's does so but for deadlines, the search
makes the schedule shorter without regard to them until they are kept.

With one worker, seconds become deterministic work (`_lns_search`), so the same seed gives the same schedule; the clock
only ends what takes far longer than it should. Without a time limit it ends after as much work without gain as
`patience` says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from pydantic import Field

from placeopt.bounding.quick import best_bound
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, lateness
from placeopt.solver import Answer, Clock, Info, Options, Settings, Termination

from .._local_search.search import makespan_bound
from .._runs.incumbent import Incumbent
from .._runs.solve_run import nothing_to_place
from .._runs.time_scaling import coarsened
from .._runs.validity import valid
from .._starts.warm_start import best_start
from ._lns.search import Search

SHARE = 0.85
"""Of the time limit that work is planned for with one worker: it ends by its work, not by the clock."""

BEGINNING, READING = 0.8, 2e-5
"""Seconds of it that go into what comes before the search: loading OR-Tools, and heuristics per task and edge."""

LEAST = 0.3
"""Of the time limit that is planned for the search at least."""


class LnsSettings(Settings):
    """Settings of lns."""

    patience: float = Field(default=10.0, gt=0)
    """Without a time limit: end after this many seconds of work without a shorter schedule."""


class Lns:
    """Anytime; the schedule is never longer than the one it starts from."""

    name: ClassVar[str] = "lns"
    info: ClassVar[Info] = Info(
        summary="large neighbourhood search: part after part of a schedule solved anew by CP-SAT",
        family="search",
        guarantee="none",
        complexity="anytime; O(n + e) and a model of some dozen tasks per step",
        citation="""@inproceedings{shaw1998lns,
  author    = {Paul Shaw},
  title     = {Using Constraint Programming and Local Search Methods to Solve Vehicle Routing Problems},
  booktitle = {Principles and Practice of Constraint Programming (CP 1998)},
  series    = {LNCS},
  volume    = {1520},
  pages     = {417--431},
  year      = {1998},
  doi       = {10.1007/3-540-49481-2_30}
}""",
        anytime=True,
        warm_start=True,
    )
    settings_type: ClassVar[type[Settings]] = LnsSettings

    def solve(self, problem: Problem, options: Options, settings: LnsSettings) -> Answer:
        """The best schedule found within the limits."""
        if problem.n_tasks == 0:
            return nothing_to_place(problem)
        found = coarsened(problem)
        if found.unit == 1:
            return _solved(problem, options, settings)
        initial = None if options.initial is None else found.coarse(options.initial)
        answer = _solved(found.problem, replace(options, initial=initial), settings)
        return answer if answer.schedule is None else replace(answer, schedule=found.fine(answer.schedule))


def _planned(problem: Problem, limit: float) -> float:
    """Seconds of work for a time limit; by nothing that differs from run to run."""
    before = BEGINNING + READING * (problem.n_tasks + problem.n_edges)
    return max(limit * SHARE - before, limit * LEAST)


def _solved(problem: Problem, options: Options, settings: LnsSettings) -> Answer:
    clock = Clock(options.time_limit)
    best = Incumbent(problem, options, clock)
    # The objective counts old ticks where the problem is in longer ones; the search counts those of the problem.
    value, bound = best_bound(problem).value, makespan_bound(problem)
    kept = problem
    start = best_start(problem, options.initial, True)
    if start is not None:
        best.offer(start, "start")
        best.raise_bound(value)
    elif (problem.deadline != UNLIMITED).any():
        kept = replace(problem, deadline=np.full_like(problem.deadline, UNLIMITED))
        start = best_start(kept, options.initial, True)
    if start is None:
        return Answer(Termination.FAILED, message="no schedule to start from: give one, or take cp-sat")
    limit = options.gap_limit
    enough = bound if limit is None or limit >= 1 else int(bound / (1 - limit))

    def stopped() -> bool:
        # Deadlines that did not hold are the first goal: the makespan leads there, the first schedule that keeps them
        # starts again with them.
        return options.should_stop() or clock.over or (kept is not problem and best.schedule is not None)

    def better(schedule: Schedule) -> None:
        if kept is problem or valid(problem, schedule):
            best.offer(schedule)

    def run(start: Schedule, spent: float) -> Search:
        search = Search(kept, start, options.seed, stopped, better, options.workers)
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

    search = run(start, 0.0)
    if kept is not problem and best.schedule is not None:
        kept = problem
        search = run(best.schedule, search.spent)
    if best.schedule is not None:
        best.raise_bound(value)  # of an infeasible problem it would mean nothing
    schedule = best.schedule if best.schedule is not None else search.state.schedule
    message = ""
    if best.schedule is None:
        message = f"a deadline is missed by {lateness(problem, schedule)} ticks; cp-sat may find out whether it must be"
    stats = {
        "stretches": search.tried,
        **{f"{kind.name}_{name}": getattr(kind, name) for kind in search.chooser.kinds for name in ("tried", "ticks")},
    }
    if best.values == (value,):
        why = Termination.OPTIMAL
    elif options.should_stop():
        why = Termination.INTERRUPTED
    else:
        why = Termination.TIME_LIMIT if clock.over else Termination.COMPLETED
    varies = "threads" if options.workers > 1 else ""
    return Answer(why, schedule, best.bound, message, stats, varies_by=varies)
