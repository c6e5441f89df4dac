"""auto: a portfolio of heuristics, an exact solver, searches and bounds, which take turns.

The best solver differs from problem to problem, and so does the best bound (B. A. Huberman, R. M. Lukose, T. Hogg: An
economics approach to hard computational problems, Science 275, 1997, doi:10.1126/science.275.5296.51: the case for
portfolios of algorithms). The order is:

1. The exact passes make the problem smaller.
2. Where no transfer takes time, CP-SAT runs for up to 1.5 seconds. It proves most small shops.
3. Heuristics run, alone and after passes that join tasks, as far as the time limit allows; `single` always runs.
4. Up to 64 tasks on identical devices are appended by their starts (`exact._chronological`), and again after CP-SAT.
   Where single tasks cut the graph, the blocks between them are solved (`series`).
5. Annealing runs for a short time from each of the best schedules; in shops, memetic search and large neighbourhood
   search run instead, as long as each gains.
6. CP-SAT runs if its model is small enough, from the best schedule so far. It may prove the optimum or infeasibility.
7. Annealing and local search (neither in shops), memetic search, large neighbourhood search and a sweep of windows take
   turns; those with a higher gain get more. CP-SAT runs once more after the prover has ended.

With two or more workers, a prover proves bounds in parallel; with one, bounds use the remaining time. The run ends as
soon as the gap limit is reached. With one worker, turns are measured in moves and in CP-SAT's deterministic time, so
the same seed gives the same schedule; the clock ends a run only on machines that are too slow for the plan. Without a
time limit the run plans for a minute.

With a pool, its slots solve the blocks, and then run short searches that exchange schedules (`_restarts`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import ClassVar

from placeopt.model.problem import Problem
from placeopt.protocol import ALL_METRICS, BOOKED, Answer, Clock, Info, Options, Settings

from .._runs.solve_run import nothing_to_place

DELAY = 0.5
"""Seconds after which the prover begins; most small problems are solved sooner."""


class AutoSettings(Settings):
    """Settings of auto."""

    series: bool = True
    """Where single tasks cut the graph, solve the blocks between them first, each with the cuts on given devices."""


class Auto:
    """Combines solvers; proves optimality and infeasibility if time allows."""

    name: ClassVar[str] = "auto"
    info: ClassVar[Info] = Info(
        summary="portfolio of heuristics, CP-SAT, searches and bounds",
        family="portfolio",
        rules=(*BOOKED, "machines"),
        guarantee="optimal, as far as time allows; else never worse than any of its members",
        complexity="anytime, after the time of the heuristics",
        exact=True,
        anytime=True,
        warm_start=True,
        metrics=(*ALL_METRICS, "period"),
        combined=True,
        distributed=True,
        bounding=True,
    )
    settings_type: ClassVar[type[Settings]] = AutoSettings

    def solve(self, problem: Problem, options: Options, settings: AutoSettings) -> Answer:
        """Return the best schedule and the best bound of all members."""
        if problem.n_tasks == 0:
            return nothing_to_place(problem)
        # Loading OR-Tools counts towards the time limit, up to half of it.
        clock = Clock(options.time_limit)
        from placeopt.proving.bound_prover import BoundProver

        from ._pipelines import PipelineRun
        from ._run import Run

        if clock.limit is not None and clock.remaining is not None:
            options = replace(options, time_limit=max(clock.remaining, clock.limit / 2))
        make = partial(Run, series=settings.series) if problem.pipeline is None else PipelineRun
        if options.workers == 1:
            return make(problem, options, None).answer()
        prover = BoundProver(problem, options, delay=DELAY, workers=max(options.workers // 2, 1))
        answer = make(problem, prover.options, prover).answer()
        return prover.with_bound(answer)
