"""Solve a pipeline with an engine: starts, the model, and the proof."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from placeopt.bounding.engines import EngineError
from placeopt.bounding.quick import best_bound
from placeopt.engine import StoppedError
from placeopt.model.arrays import Int
from placeopt.model.building import simplest, with_changes
from placeopt.model.pipeline import UNBOUNDED
from placeopt.model.problem import Problem
from placeopt.model.schedule import Stages
from placeopt.model.stages import rules
from placeopt.protocol import Answer, Termination
from placeopt.simulation.pipelines import periodic_schedule

from ..._runs.exact_run import TooLargeError
from ..._runs.linear import Linear
from ..._runs.solve_run import SolveRun
from .._shared.assessment import accepted, assessed, divisions, first_level_bound, proved_period
from .._shared.contraction import contracted
from .data import Data, data_of
from .engines import Limits, Outcome
from .model import Model, leaders
from .stages import StageRows, stage_rows
from .system import System, column_of

Engine = Callable[[System, Linear, Limits, Mapping[int, int]], Outcome]
"""Minimises a column of a system, with values of some columns to start from."""


RELAXED = 0.7
"""Share of the time for the bound with free stages, where the model of limited stages has no positions."""


class PeriodRun(SolveRun):
    """One solve of a pipeline by an exact solver."""

    exact: bool  # whether the engine computes in integers; otherwise its solutions may be wrong
    least: int | None = None  # the period of the best placement, which is not always that of the incumbent

    def answer(self, name: str, engine: Engine, *, exact: bool, most: int, starts: bool, symmetry: bool) -> Answer:
        """Return the best schedule and bound.

        `exact` states that the engine computes in integers, `most` limits columns and rows, and `starts` allows
        divisions into contiguous stages to start from.
        """
        self.name, self.exact = name, exact
        problem = self.problem
        initial = self.options.initial
        if initial is not None and initial.device.shape == (problem.n_tasks,):
            stages = accepted(problem, initial)
            if stages is not None:
                self.offer(initial.device, stages, "start")
        if not problem.group_feasible().any(axis=1).all():
            return self.ended(Termination.INFEASIBLE, "some task or group has no device that may run it")
        if starts:
            for division in divisions(problem, self.stopped):
                self.offer(division.device, division.stages, "start")
                if self.stopped():
                    break
        stopped = self.stop_reason()
        if stopped is not None:
            return self.ended(stopped)
        alone = simplest(problem)
        least = int(best_bound(alone).value)
        if self.least is not None:
            ended = self.raised(least)
            if self.least == least:
                return proved_period(self, least)
            if ended is not None:
                return self.ended(ended)
        try:
            return self._solved(engine, least, most, symmetry)
        except TooLargeError as error:
            return self.refusal(f"{name}: too large for an exact model: {error}")
        except EngineError as error:
            return self.refusal(str(error))
        except StoppedError:
            return self.ended(self.stop_reason() or Termination.TIME_LIMIT)

    def _solved(self, engine: Engine, least: int, most: int, symmetry: bool) -> Answer:
        if rules(self.problem).machines is not None and rules(self.problem).numbered:
            least = self._with_free_stages(engine, least, most, symmetry)
            if self.least is not None and least >= self.least:
                return proved_period(self, self.least)
        data, system, model, staged, period = self._model(self.problem, least, most, symmetry)
        model.require_memory(staged.kept())
        self.stats.update(columns=len(system.lower), rows=len(system.rows))

        def on_values(values: list[int]) -> None:
            device, stages = solution(model, staged, values)
            if not self.offer(device, stages) and self.exact:
                raise self.contradiction("the engine's solution exceeds the memory of a device, or a budget")

        limits = Limits(
            max(data.team),
            self.clock.remaining,
            self.overdue,
            on_values,
            lambda bound: self._bounded(bound * data.time),
        )
        found = engine(system, period, limits, self._hint(model))
        if found.infeasible:
            if self.least is None:
                return self.ended(Termination.INFEASIBLE, "no placement satisfies all constraints")
            return proved_period(self, self.least)
        if found.bound is not None:
            bound = max(found.bound * data.time, least)
            if self.least is not None and bound >= self.least:
                if bound > self.least + data.time - 1:
                    raise self.contradiction(f"the bound {bound} exceeds the period {self.least} of a placement")
                return proved_period(self, self.least)
            ended = self.raised(bound)
            if ended is not None:
                return self.ended(ended)
        reason = self.stop_reason()
        if reason is None and self.best.schedule is None:
            return self.ended(Termination.FAILED, found.message or "the engine ended without a schedule or a proof")
        return self.ended(reason or Termination.COMPLETED, found.message if reason is None else "")

    def _model(
        self, problem: Problem, least: int, most: int, symmetry: bool
    ) -> tuple[Data, System, Model, StageRows, Linear]:
        """Return a model of a problem without its memory, and the column of its period."""
        data = data_of(problem, contracted(problem))
        system = System(self.stopped, most)
        model = Model(data, system, symmetry=symmetry)
        staged = stage_rows(model)
        return data, system, model, staged, model.require_period(least, None if self.least is None else self.least - 1)

    def _with_free_stages(self, engine: Engine, least: int, most: int, symmetry: bool) -> int:
        """Raise the bound to that of free stages, and return it: without positions, that is a much smaller model."""
        pipeline = rules(self.problem)
        segments = np.full(len(pipeline.launch), UNBOUNDED)
        free = replace(pipeline, segments=segments, launch=0 * pipeline.launch)
        problem = with_changes(self.problem, pipeline=free)
        data, system, _, _, period = self._model(problem, least, most, symmetry)
        remaining = self.clock.remaining
        seconds = None if remaining is None else RELAXED * remaining
        limits = Limits(1, seconds, self.overdue, lambda _: None, lambda bound: self._bounded(bound * data.time))
        found = engine(system, period, limits, {})
        if found.infeasible and self.least is not None:
            return self.least
        bound = least if found.bound is None else max(found.bound * data.time, least)
        self.raised(bound)
        return bound

    def offer(self, device: Int, stages: Stages, source: str = "") -> bool:
        """Offer a placement; return whether its memory suffices."""
        value = assessed(self.problem, device, stages)
        if value is None:
            return False
        more = self.problem.objective.single != "period"  # the others may differ at the same period
        if self.least is None or value < self.least + more:
            self.best.offer(periodic_schedule(self.problem, device, stages), source)
        self.least = value if self.least is None else min(self.least, value)
        return True

    def raised(self, least: int) -> Termination | None:
        """Raise the bound of the objective by one of the period; return how to end if the incumbent is near it."""
        self.best.raise_bound(first_level_bound(self.problem, least))
        return self.first_level_reached(self.best.bound)

    def _bounded(self, bound: int) -> None:
        if self.least is not None and bound <= self.least:
            self.best.raise_bound(first_level_bound(self.problem, bound))

    def _hint(self, model: Model) -> dict[int, int]:
        """Return the units' slots of the incumbent, where slots are devices."""
        schedule = self.best.schedule
        if schedule is None:
            return {}
        home = slots_of(model, schedule.device, schedule.stages)
        return {column_of(x): int(home[g] == a) for g, row in enumerate(model.x) for a, x in row.items()}


def solution(model: Model, rows: StageRows, values: list[int]) -> tuple[Int, Stages]:
    """Return the placement of a solution."""
    home = [max(row, key=lambda a: values[column_of(row[a])]) for row in model.x]
    leads, leader, again = leaders(model, values, home)
    number = rows.numbers(values, home, leads)
    stages = Stages(number, leader, again, 0 * leader)
    return leads[home][model.data.unit], stages


def slots_of(model: Model, device: Int, stages: Stages | None) -> list[int]:
    """Return a slot of each unit, such as a placement has; used positions of a line come last."""
    data = model.data
    home = {}
    for i, g in enumerate(data.unit.tolist()):
        home[g] = int(device[i])
    if not data.line:
        return [home[g] for g in range(data.count)]
    label = data.problem.device_class.tolist()
    number: dict[int, int] = {}
    for i, g in enumerate(data.unit.tolist()):
        at = 0 if stages is None else int(stages.number[i])
        number[home[g]] = min(number.get(home[g], at), at)
    order = sorted(number, key=lambda d: number[d])
    position = {d: data.positions - len(order) + k for k, d in enumerate(order)}
    slot = {(each.label, each.position): a for a, each in enumerate(data.slots)}
    return [slot[label[home[g]], max(position[home[g]], 0)] for g in range(data.count)]
