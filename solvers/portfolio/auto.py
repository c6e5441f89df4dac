"""The portfolio: heuristics, exact solver, searches and bounds take turns, and the best of all is the answer.

Which solver is best differs from problem to problem, and so does which bound is (B. A. Huberman, R. M. Lukose, T. Hogg:
An economics approach to hard computational problems, Science 275, 1997, doi:10.1126/science.275.5296.51: the case for
portfolios of algorithms). In this order:

1. The exact passes make the problem smaller.
2. Heuristics, alone and behind passes that unite tasks, each that the time limit has room for; `single` always.
3. Annealing for a while from each of the best schedules.
4. CP-SAT where its model is small enough, from the best schedule so far: it proves the optimum, or that there is none.
5. Annealing, local search, large neighbourhood search and a sweep of windows in turn, more turns for whoever gains
   more; CP-SAT once more when the bounds beside it are done.

With two workers or more a prover proves bounds beside all that; with one they are proved in the time that is left.
It ends as soon as the gap is as small as wanted. One worker's turns are counted in moves and CP-SAT's deterministic
time, so the same seed gives the same schedule, whatever the clock says; it is only there for machines too slow for the
plan. Without a time limit it plans for a minute.
"""

from __future__ import annotations

from typing import ClassVar

from placeopt.bounding.bound_prover import BoundProver
from placeopt.model.problem import Problem
from placeopt.solver import ALL_METRICS, Answer, Info, Options, Settings

from .._runs.solve_run import nothing_to_place
from ._run import Run

DELAY = 0.5
"""Seconds after which the prover begins: most small problems are solved by then."""


class Auto:
    """Proves optimality and infeasibility where that can be done in time; anytime."""

    name: ClassVar[str] = "auto"
    info: ClassVar[Info] = Info(
        summary="portfolio: heuristics, CP-SAT, searches by moves and by parts, and bounds together",
        family="portfolio",
        guarantee="optimal, as far as time allows; else never worse than any of its members",
        complexity="anytime; heuristics in their own time",
        exact=True,
        anytime=True,
        warm_start=True,
        metrics=ALL_METRICS,
        combined=True,
        bounding=True,
    )
    settings_type: ClassVar[type[Settings]] = Settings

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        """The best schedule that any member found, and the best bound that any proved."""
        if problem.n_tasks == 0:
            return nothing_to_place(problem)
        if options.workers == 1:
            return Run(problem, options, None).answer()
        with BoundProver(problem, options, delay=DELAY, workers=max(options.workers // 2, 1)) as prover:
            answer = Run(problem, prover.options, prover).answer()
        return prover.with_bound(answer)
