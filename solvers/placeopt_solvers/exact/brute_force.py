"""brute-force: a reference solver for tiny problems that enumerates every placement and every order.

It is a depth-first search that prunes what cannot improve the incumbent; `placeopt_solvers.exact._enumeration` states
why it is complete. It shares no bound and no model with `cp-sat` and `milp`. Like theirs, its problem has been through
the exact passes unless they are turned off.

The number of combinations is the number of placements, a product over colocation groups of the devices that they may
use, times the orders of all operations: n! for n tasks, (n + e)! with the transfers of e edges under port contention. A
problem with more than `limit` is refused, because the search may then take long. The objective may contain makespan and
relocation, for which a partial placement and a partial order give lower bounds.
"""

from __future__ import annotations

import math
from typing import ClassVar

from pydantic import Field

from placeopt.engine import StoppedError
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.model.schedule import Stages
from placeopt.protocol import RETIMED, Answer, Info, Options, Settings, Termination
from placeopt.simulation.pipelines import periodic_schedule

from .._runs.solve_run import SolveRun, nothing_to_place
from .._starts.warm_start import best_start
from ..pipelines._shared.assessment import proved_period
from ..pipelines._shared.enumeration import best_pipeline
from ._enumeration import COUNTED, Enumeration


class BruteForceSettings(Settings):
    """Settings of brute-force."""

    limit: int = Field(default=100_000_000, ge=1)
    """Combinations of placements and orders above which a problem is refused."""


class BruteForce:
    """Proves optimality and infeasibility of tiny problems by enumeration."""

    name: ClassVar[str] = "brute-force"
    info: ClassVar[Info] = Info(
        summary="exact, for tiny problems: every placement and every order",
        family="exact",
        rules=(*RETIMED, "machines", "budgets"),
        guarantee="optimal",
        complexity="O(m^n n!), (n + e)! with ports",
        exact=True,
        anytime=True,
        warm_start=True,
        metrics=(*COUNTED, "period"),
        memory_models=("sum",),
        combined=True,
    )
    settings_type: ClassVar[type[Settings]] = BruteForceSettings

    def solve(self, problem: Problem, options: Options, settings: BruteForceSettings) -> Answer:
        """Return the best schedule, or the best one found within the limits."""
        if problem.n_tasks == 0:
            return nothing_to_place(problem)
        run = SolveRun(problem, options)
        if problem.pipeline is not None:
            return _solved_pipeline(run, settings)
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
        search = Enumeration(problem, start, run.stopped, run.best.offer)
        ending: Termination | None = None
        try:
            search.run()
        except StoppedError:
            ending = run.stop_reason() or Termination.TIME_LIMIT
        run.stats = {"placements": search.placements, "steps": search.steps}
        if ending is not None:
            return run.ended(ending)
        if search.least is None:
            return run.ended(Termination.INFEASIBLE, "no placement and order satisfies all constraints")
        run.best.raise_bound(search.bound)
        return run.ended(Termination.OPTIMAL)


def _solved_pipeline(run: SolveRun, settings: BruteForceSettings) -> Answer:
    """Enumerate the placements of a pipeline."""
    problem = run.problem
    options = problem.group_feasible().sum(axis=1)
    number = sum(math.log10(count) for count in options.tolist()) if options.all() else 0.0
    if number > math.log10(settings.limit):
        return run.refusal(
            f"brute-force: {problem.n_tasks} tasks on {problem.n_devices} devices make {magnitude(number)} placements, "
            f"more than the limit of {magnitude(math.log10(settings.limit))}; raise the setting limit"
        )
    placements = 0

    def step() -> None:
        nonlocal placements
        placements += 1
        if run.stopped():
            raise StoppedError

    def offer(device: Int, stages: Stages, period: int) -> None:  # noqa: ARG001 - as `best_pipeline` calls it
        run.best.offer(periodic_schedule(problem, device, stages))

    try:
        least = best_pipeline(problem, step, offer)
    except StoppedError:
        return run.ended(run.stop_reason() or Termination.TIME_LIMIT)
    finally:
        run.stats = {"placements": placements}
    if least is None:
        return run.ended(Termination.INFEASIBLE, "no placement satisfies all constraints")
    return proved_period(run, least)


def combinations(problem: Problem) -> float:
    """Return the decimal logarithm of the number of placements times the number of orders, before pruning."""
    operations = problem.n_tasks + (problem.n_edges if problem.contends else 0)
    options = problem.group_feasible().sum(axis=1)
    orders = math.lgamma(operations + 1) / math.log(10)
    return orders + sum(math.log10(count) for count in options.tolist()) if options.all() else 0.0


def magnitude(logarithm: float) -> str:
    """Return 10 to a power as text, in full up to ten million."""
    return f"{10**logarithm:,.0f}" if logarithm < 7 else f"{10 ** (logarithm % 1):.1f}e{int(logarithm)}"
