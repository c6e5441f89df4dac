"""ideals: the dynamic program of Tarnawski et al. (2020) over sets of last stages, for contiguous pipelines.

It proves the least period if every device has one stage (`stages: contiguous`), transfers cost the same on all links,
and no output goes to several other stages unless it is sent once (`multicast`). Backward stages must be able to run in
the opposite order of the forward stages, as they do in training. Where one of these fails, its period is a lower bound
or a schedule, and the message says which.

The number of sets grows with the width of the graph: chains have as many as tasks, operator graphs of networks some
thousands. With more than `sets`, only the sets of some orders of
the nodes are used: the best divisions of these orders.

Tasks that hang on a pipeline and take no time are left out, and placed afterwards.
Constants and results without work make many sets of last stages, because nothing fixes their place. A pipeline without
them has a period that is at most that of the whole, since each placement of the whole is one of the rest with no larger
loads and no more memory. So its least period is a lower bound, and if the tasks can be added to its placement without
increasing the period, that is optimal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from placeopt.engine import StoppedError
from placeopt.model.arrays import Int
from placeopt.model.period import period
from placeopt.model.problem import Problem
from placeopt.model.stages import backward, forward_in_training, rules
from placeopt.passes.rebuilding import edges_of, rebuilt
from placeopt.protocol import Answer, Info, Options, Settings, Termination
from placeopt.protocol.citations import bibtex
from placeopt.simulation.pipelines import periodic_schedule, stage_numbers

from .._runs.solve_run import SolveRun, nothing_to_place
from ._shared.assessment import assessed, pipeline_info, proved_period, started
from ._shared.contraction import Nodes, contracted, orders
from ._shared.ideals import INFINITE, Division, costs_of, divided, sets_along, sets_of


def without_hanging(problem: Problem) -> tuple[Problem, Int] | None:
    """Return the problem without hanging tasks that take no time, and the indices of the others; None if none hang.

    Tasks of training, of groups and of separations stay. Where outputs may be computed again, those without producers
    stay too: their consumers would lose the input that a device keeps instead of an output.
    """
    n, source, target = problem.n_tasks, problem.edge_source, problem.edge_target
    free = (problem.duration == 0).all(axis=1) & (np.bincount(problem.group)[problem.group] == 1)
    free &= ~backward(problem) & ~forward_in_training(problem)
    free[problem.separation.reshape(-1)] = False
    stays = np.ones(n, dtype=np.bool_)
    while True:
        there = stays[source] & stays[target]
        hanging = np.bincount(source[there], minlength=n) == 0
        if not rules(problem).recompute:
            hanging |= np.bincount(target[there], minlength=n) == 0
        hanging &= free & stays
        if not hanging.any():
            break
        stays &= ~hanging
    kept = np.flatnonzero(stays)
    if len(kept) in (0, n):
        return None
    return rebuilt(problem, edges=edges_of(problem).kept(there), tasks=kept)[0], kept


def with_hanging(problem: Problem, kept: Int, division: Division | None) -> Division | None:
    """Return a division of the whole: each further task joins the first stage after it, or the last one before it."""
    if division is None:
        return None
    device = np.full(problem.n_tasks, -1, dtype=np.int64)
    number = device.copy()
    device[kept], number[kept] = division.device, division.stages.number
    source, target = problem.edge_source, problem.edge_target
    for forwards in (True, False):
        for i in (problem.order if forwards else problem.order[::-1]).tolist():
            if device[i] >= 0:
                continue
            near = source[target == i] if forwards else target[source == i]
            near = near[device[near] >= 0]
            if len(near):
                at = near[number[near].argmax() if forwards else number[near].argmin()]
                device[i], number[i] = device[at], number[at]
    if (device < 0).any() or not problem.feasible[np.arange(problem.n_tasks), device].all():
        return None
    found = stage_numbers(problem, device)
    return None if found is None else replace(division, device=device, stages=replace(division.stages, number=found))


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
    info: ClassVar[Info] = pipeline_info(
        summary="dynamic program over sets of last stages (Tarnawski et al. 2020)",
        guarantee="optimal for contiguous stages and equal links",
        complexity="O(s^2 m) for s sets",
        citation=bibtex("tarnawski2020efficient"),
        warm_start=True,
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

        Raises a StoppedError if the time limit is reached.
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
            return self.refusal("backward stages may run in another order: this is the best for the opposite order")
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
