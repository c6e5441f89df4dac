"""Brute force: every placement and every order of a tiny problem, for what nobody has to believe.

Nothing but a depth-first search that gives up what cannot be better than the best;
`placeopt_solvers.exact._enumeration` tells why what it leaves is complete. It shares no bound and no model with
`cp-sat` and `milp`. Like theirs, its problem has been through the exact passes unless they are turned off.

The number of combinations is that of placements, the product over colocation groups of the devices that they may use,
times the orders of all operations: n! for n tasks, (n + e)! with the transfers of e edges where ports contend. Of more
than `limit` the problem is refused, for the search may then take long: cp-sat is meant for those. Of the metrics it
knows makespan and relocation, which a part of a placement and an order bounds from below.
"""

from __future__ import annotations

import math
from typing import ClassVar

from pydantic import Field

from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options, Settings, Termination

from .._runs.solve_run import ExactRun, nothing_to_place
from .._starts.warm_start import best_start
from ._enumeration import COUNTED, Enumeration, StoppedError


class BruteForceSettings(Settings):
    """Settings of brute-force."""

    limit: int = Field(default=100_000_000, ge=1)
    """Combinations of placements and orders above which a problem is refused."""


class BruteForce:
    """Proves optimality and infeasibility of tiny problems by trying everything."""

    name: ClassVar[str] = "brute-force"
    info: ClassVar[Info] = Info(
        summary="exact, for tiny problems: every placement and every order",
        family="exact",
        guarantee="optimal",
        complexity="O(m^n n!), (n + e)! with ports",
        exact=True,
        anytime=True,
        warm_start=True,
        metrics=COUNTED,
        memory_models=("sum",),
        combined=True,
    )
    settings_type: ClassVar[type[Settings]] = BruteForceSettings

    def solve(self, problem: Problem, options: Options, settings: BruteForceSettings) -> Answer:
        """The best schedule there is, or what was found of it when the time was up."""
        if problem.n_tasks == 0:
            return nothing_to_place(problem)
        run = ExactRun(problem, options)
        start = best_start(problem, options.initial, heuristics=False)
        if start is not None:
            run.best.offer(start, "start")
        number = combinations(problem)
        if number > math.log10(settings.limit):
            return run.refusal(
                f"brute-force: {problem.n_tasks} tasks on {problem.n_devices} devices make {magnitude(number)} "
                f"placements and orders, more than the limit of {magnitude(math.log10(settings.limit))}; use cp-sat, "
                "or raise the setting limit"
            )
        search = Enumeration(problem, start, lambda: run.halted() is not None, run.best.offer)
        ending: Termination | None = None
        try:
            search.run()
        except StoppedError:
            ending = run.halted() or Termination.TIME_LIMIT
        run.stats = {"placements": search.placements, "steps": search.steps}
        if ending is not None:
            return run.ended(ending)
        if search.least is None:
            return run.ended(Termination.INFEASIBLE, "no placement and order keeps every rule")
        run.best.raise_bound(search.bound)
        return run.ended(Termination.OPTIMAL)


def combinations(problem: Problem) -> float:
    """Logarithm, to base 10, of the placements times the orders, before anything is given up."""
    operations = problem.n_tasks + (problem.n_edges if problem.contention == "port" else 0)
    options = problem.group_feasible().sum(axis=1)
    orders = math.lgamma(operations + 1) / math.log(10)
    return orders + sum(math.log10(count) for count in options.tolist()) if options.all() else 0.0


def magnitude(logarithm: float) -> str:
    """10 to this power for people: in full up to ten million."""
    return f"{10**logarithm:,.0f}" if logarithm < 7 else f"{10 ** (logarithm % 1):.1f}e{int(logarithm)}"
