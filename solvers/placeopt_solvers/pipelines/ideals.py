"""ideals: the dynamic program of Tarnawski et al. (2020) over sets of last stages, for contiguous pipelines.

It proves the least period if every device has one stage (`stages: contiguous`), transfers cost the same on all links,
and no output goes to several other stages unless it is sent once (`multicast`). Backward stages must be able to run in
the opposite order of the forward stages, as they do in training. Where one of these fails, its period is a lower bound
or a schedule, and the message says which.

The number of sets grows with the width of the graph: chains have as many as tasks, operator graphs of networks some
thousands. Tasks that hang and take no time are left out first. With more than `sets`, only the sets of some orders of
the nodes are used: the best divisions of these orders.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, NamedTuple

from pydantic import Field

from placeopt.model.period import period
from placeopt.model.problem import Problem
from placeopt.model.stages import rules
from placeopt.simulation.pipelines import periodic_schedule, stage_numbers
from placeopt.solver import Answer, Info, Options, Settings, Termination

from .._runs.solve_run import SolveRun, nothing_to_place
from ._shared.assessment import assessed, proved_period
from ._shared.contraction import Nodes, contracted, orders
from ._shared.hanging import with_hanging, without_hanging
from ._shared.ideals import INFINITE, TARNAWSKI, Division, StoppedError, costs_of, divided, sets_along, sets_of
from ._shared.start import started


class IdealsSettings(Settings):
    """Settings of ideals."""

    sets: int = Field(default=200_000, ge=1)
    """Maximum number of sets of last stages. Above, one order of the tasks is divided."""


class Found(NamedTuple):
    """The best division into stages, None if none is better than the schedule known before, and the least period."""

    division: Division | None
    period: int
    complete: bool  # whether the period is a lower bound for contiguous stages


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
        warm_start=True,
        metrics=("period",),
        contentions=("none",),
        memory_models=("sum",),
    )
    settings_type: ClassVar[type[Settings]] = IdealsSettings

    def solve(self, problem: Problem, options: Options, settings: IdealsSettings) -> Answer:
        """Return the best division into stages."""
        if problem.n_tasks == 0:
            return nothing_to_place(problem)
        run = IdealsRun(problem, options)
        try:
            return run.answer(settings.sets)
        except StoppedError:
            return run.ended(run.stop_reason() or Termination.TIME_LIMIT)


class IdealsRun(SolveRun):
    """One solve; `least` is the least period of a schedule so far."""

    least: int = INFINITE

    def answer(self, most: int) -> Answer:
        """Return the best division and what it proves, with at most `most` sets of last stages.

        Raises
        ------
        StoppedError
            If the time limit is reached.
        """
        problem, contiguous = self.problem, rules(self.problem).contiguous
        given = None if self.options.initial is None else started(problem, self.options.initial)
        if given is not None:
            self.best.offer(given)
            self.least = period(problem, given)
        nodes = contracted(problem)
        slowest = nodes if nodes.exact else contracted(problem, optimistic=False)
        costs = costs_of(problem, slowest)
        for order in orders(slowest):
            self._offer(divided(problem, slowest, costs, sets_along(order), self.least, self.stopped))
        rest = without_hanging(problem)
        if rest is not None:  # fewer sets, and mostly the same period
            part, kept = rest
            found = self._searched(part, contracted(part), most, "sets without hanging tasks")
            if found is not None:
                self._offer(with_hanging(problem, kept, found.division))
                if contiguous and found.complete and found.period == self.least:
                    return self._proved(found.period)
        found = self._searched(problem, nodes, most, "sets")
        if found is None:
            return self.refusal(f"the graph has more than {most:,} sets of last stages: only some orders were divided")
        self._offer(found.division)
        if not contiguous:
            return self.refusal("devices may have several stages: this is the best division into one stage for each")
        if not found.complete:
            return self.refusal(
                "backward stages may run in another order: this is the best for the opposite order",
            )
        if found.period == self.least:
            return self._proved(found.period)
        self.best.raise_bound(found.period)
        return self.refusal(
            "transfers cost more than the fastest link or one receiver takes, or forward tasks wait for backward tasks"
        )

    def _searched(self, problem: Problem, nodes: Nodes, most: int, counted: str) -> Found | None:
        """Return the best division of a problem; None if there are too many sets."""
        sets = sets_of(nodes, most, self.stopped)
        self.stats |= {"nodes": nodes.count, counted: 0 if sets is None else len(sets.bits)}
        if self.stopped():
            raise StoppedError
        if sets is None:
            return None
        division = divided(problem, nodes, costs_of(problem, nodes), sets, self.least, self.stopped)
        return Found(division, self.least if division is None else division.period, nodes.complete)

    def _proved(self, least: int) -> Answer:
        if least == INFINITE:
            return self.ended(Termination.INFEASIBLE, "no division into stages satisfies all constraints")
        return proved_period(self, least)

    def _offer(self, division: Division | None) -> None:
        """Offer a division, if there is one.

        Forward tasks that wait for backward tasks may need another order of the stages, or allow none.
        """
        if division is None:
            return
        problem, stages = self.problem, division.stages
        if (stages.number[problem.edge_source] > stages.number[problem.edge_target]).any():
            number = stage_numbers(problem, division.device)
            if number is None:
                return
            stages = replace(stages, number=number)
        value = assessed(problem, division.device, stages)
        if value is not None:
            self.least = min(self.least, value)
            self.best.offer(periodic_schedule(problem, division.device, stages))
