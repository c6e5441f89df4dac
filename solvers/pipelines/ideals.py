"""ideals: the dynamic program of Tarnawski et al. (2020) over sets of last stages, for contiguous pipelines.

It proves the least period if every device has one stage (`stages: contiguous`), transfers cost the same on all links,
and no output goes to several other stages unless it is sent once (`multicast`). Backward stages must be able to run in
the opposite order of the forward stages, as they do in training. Where one of these fails, its period is a lower bound
or a schedule, and the message says which.

The number of sets grows with the width of the graph: chains have as many as tasks, operator graphs of networks some
thousands. With more than `sets`, only the sets of one order of the nodes are used: the best division of that order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from placeopt.model.problem import Problem
from placeopt.simulation.pipelines import periodic_schedule, stage_numbers
from placeopt.solver import Answer, Info, Options, Settings, Termination

from .._runs.solve_run import SolveRun, nothing_to_place
from ._shared.assessment import assessed, proved_period
from ._shared.contraction import contracted, orders
from ._shared.ideals import INFINITE, TARNAWSKI, Division, costs_of, divided, sets_along, sets_of


class IdealsSettings(Settings):
    """Settings of ideals."""

    sets: int = Field(default=200_000, ge=1)
    """Most sets of last stages. Above, one order of the tasks is divided."""


class Ideals:
    """Divides pipelines into contiguous stages."""

    name: ClassVar[str] = "ideals"
    info: ClassVar[Info] = Info(
        summary="dynamic program over sets of last stages (Tarnawski et al. 2020)",
        family="pipelines",
        guarantee="optimal for contiguous stages and equal links",
        complexity="O(s^2 m) for s sets",
        citation=TARNAWSKI,
        anytime=True,
        metrics=("period",),
        contentions=("none",),
        memory_models=("sum",),
    )
    settings_type: ClassVar[type[Settings]] = IdealsSettings

    def solve(self, problem: Problem, options: Options, settings: IdealsSettings) -> Answer:
        """Return the best division into stages."""
        if problem.n_tasks == 0:
            return nothing_to_place(problem)
        run = SolveRun(problem, options)
        nodes = contracted(problem)
        costs = costs_of(problem, nodes)
        slowest = nodes if nodes.exact else contracted(problem, optimistic=False)
        slow = costs if nodes.exact else costs_of(problem, slowest)
        best = INFINITE
        for order in orders(nodes):
            best = min(best, self._offer(run, divided(problem, slowest, slow, sets_along(order), INFINITE)))
        sets = sets_of(nodes, settings.sets, run.stopped)
        run.stats = {"nodes": nodes.count, "sets": 0 if sets is None else len(sets.bits)}
        contiguous = bool((problem.pipeline is not None) and problem.pipeline.contiguous)
        if run.stopped():
            return run.ended(run.stop_reason() or Termination.TIME_LIMIT)
        if sets is None:
            why = f"the graph has more than {settings.sets:,} sets of last stages: only some orders were divided"
            return run.ended(Termination.COMPLETED if run.best.schedule is not None else Termination.FAILED, why)
        found = divided(problem, nodes, costs, sets, best)
        best = min(best, self._offer(run, found))
        least = best if found is None else found.period
        if not contiguous or not nodes.complete:
            return run.ended(
                Termination.COMPLETED if run.best.schedule is not None else Termination.FAILED,
                "devices may have several stages: this is the best division into one stage for each"
                if not contiguous
                else "backward stages may run in another order: this is the best for the opposite order",
            )
        if least == INFINITE:
            return run.ended(Termination.INFEASIBLE, "no division into stages satisfies all constraints")
        if best == least:
            return proved_period(run, least)
        run.best.raise_bound(least)
        return run.ended(
            Termination.COMPLETED if run.best.schedule is not None else Termination.FAILED,
            "transfers cost more than the fastest link or one receiver takes, or forward tasks wait for backward tasks",
        )

    @staticmethod
    def _offer(run: SolveRun, division: Division | None) -> int:
        """Offer a division; return its period, INFINITE if there is none.

        Forward tasks that wait for backward tasks may need another order of the stages, or allow none.
        """
        if division is None:
            return INFINITE
        problem, stages = run.problem, division.stages
        if (stages.number[problem.edge_source] > stages.number[problem.edge_target]).any():
            number = stage_numbers(problem, division.device)
            if number is None:
                return INFINITE
            stages = replace(stages, number=number)
        value = assessed(problem, division.device, stages)
        if value is None:
            return INFINITE
        run.best.offer(periodic_schedule(problem, division.device, stages))
        return value
