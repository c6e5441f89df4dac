"""One solve by CP-SAT: the start, the model, and one level of the objective after the other; see `cp_sat.py`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from placeopt.bounding.quick import best_bound
from placeopt.errors import InternalError
from placeopt.model.objective import Value
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.solver import Answer, Options, Settings, Termination

from ..._runs.solve_run import ExactRun
from ..._runs.time_scaling import coarsened
from ..._starts.warm_start import annealed_start, best_start

if TYPE_CHECKING:
    from placeopt.bounding.engines.cp_sat import Outcome

    from .model import Level, Model

ANNEALED = 40
"""Tasks from which on annealing improves the start: smaller problems are mostly solved before it gets warm."""

AMPLE = 10.0
"""Seconds that the time limit must be: below, proofs need all of it."""

SHARE, LONGEST = 0.1, 4.0
"""Part of the time limit that it gets, and seconds at most."""

PROBED = 6_000
"""Variables above which presolve does not probe: at 40,000 that took 35 s and found next to nothing."""


NEARLY = 0.9
"""Share of the time limit after which CP-SAT is taken to have ended because of it."""


class CpSatSettings(Settings):
    """Settings of cp-sat."""

    hint: bool = True
    """Start from the best of HEFT's schedule and those on single devices."""
    symmetry: bool = True
    """Break the symmetry between interchangeable devices."""
    pool: bool = True
    """Model identical devices with free transfers between them as one that runs several tasks at once."""
    linearization_level: Literal[0, 1, 2] | None = None
    """How much of the model the linear relaxation has: 0 nothing, 2 everything; None chooses by the objective."""
    deterministic: bool = False
    """Same answer for any number of workers: the strategies take turns on one thread, which is slower than a race."""
    work: float | None = Field(default=None, gt=0)
    """CP-SAT's deterministic time for each level of the objective, at most: a unit takes about some seconds. With one
    worker the answer then depends on no clock."""
    max_size: int = 1_000_000
    """Literals, intervals and rows above which no model is built; a million take about 2 GB."""


def solved(problem: Problem, options: Options, settings: CpSatSettings) -> Answer:
    """The best schedule found and the bound proved within the limits, of a problem that has tasks."""
    found = coarsened(problem)
    if found.unit == 1:
        return CpSatRun(problem, options, settings).answer()
    initial = None if options.initial is None else found.coarse(options.initial)
    answer = CpSatRun(found.problem, replace(options, initial=initial), settings).answer()
    return answer if answer.schedule is None else replace(answer, schedule=found.fine(answer.schedule))


class CpSatRun(ExactRun):
    """One solve: what it has, and the steps to better."""

    def __init__(self, problem: Problem, options: Options, settings: CpSatSettings) -> None:
        super().__init__(problem, options)
        self.settings = settings
        if options.workers > 1 and not settings.deterministic:
            self.varies_by = "threads"

    def answer(self) -> Answer:
        """The best schedule and bound, and why there is no better."""
        start = best_start(self.problem, self.options.initial, self.settings.hint)
        if start is not None:
            self.best.offer(start, "start")
        # The bounds of an infeasible problem mean nothing: they are only shown once there is a schedule.
        least = best_bound(self.problem).value
        if self.best.schedule is not None:
            self.best.raise_bound(least)
            ended = self._near_enough(least)
            if ended is not None:
                return self.ended(ended)
        halted = self.halted()
        if halted is not None:
            return self.ended(halted)
        if not self.problem.group_feasible().any(axis=1).all():
            return self.ended(Termination.INFEASIBLE, "some task or group has no device that may run it")
        from .base import BuildStoppedError, TooLargeError
        from .identical_devices import pools
        from .limits import limits, model_size
        from .model import Model

        self.pools = pools(self.problem, self.settings.pool)
        size = model_size(self.pools.problem)
        if size > self.settings.max_size:
            most = self.settings.max_size
            return self.refusal(
                f"too large for an exact model: about {size:,} literals, intervals and rows, where max_size allows "
                f"{most:,} (a million take about 2 GB): set max_size higher, or use heft, which has no such limit"
            )
        if self.settings.hint and self._anneal():
            ended = self._near_enough(least)
            if ended is not None:
                return self.ended(ended)
        try:
            known = limits(self.problem, self.best.values[0] if self.best.values else None)
            if not known.allowed.any(axis=1).all():
                return self.ended(Termination.INFEASIBLE, "some task or group has no device with enough memory")
            model = Model(
                self.pools.problem,
                self.pools.limits(known),
                self.settings.symmetry,
                lambda: self.halted() is not None,
                self.pools.slots,
            )
        except TooLargeError as error:
            return self.refusal(
                f"too large for an exact model: {error} is beyond what 64 bits add up; a coarser resolution would help"
            )
        except BuildStoppedError:
            return self.ended(self.halted() or Termination.TIME_LIMIT)
        first = model.levels[0]
        model.base.cp.add(first.expression >= math.ceil(least * first.scale))
        return self.ended(self._descend(model))

    def _near_enough(self, least: Value) -> Termination | None:
        """How to end where the schedule held is as good as wanted, given a bound of the first level; None to go on."""
        limit, values = self.options.gap_limit, self.best.values
        if values is None or len(values) > 1:
            return None
        if values[0] == least:
            return Termination.OPTIMAL
        return Termination.COMPLETED if limit is not None and values[0] - least <= limit * values[0] else None

    def _anneal(self) -> bool:
        """Whether annealing improved the start; only tried where proofs are not a matter of moments anyway."""
        start, limit = self.best.schedule, self.options.planned_seconds
        makespans = any(term.metric == "makespan" for term in self.problem.objective.levels[0])
        if start is None or not makespans or self.problem.n_tasks < ANNEALED or (limit is not None and limit < AMPLE):
            return False
        share = LONGEST if limit is None else min(LONGEST, limit * SHARE)
        found, cut = annealed_start(self.problem, start, share, self.options.seed, lambda: self.halted() is not None)
        if cut:
            self.varies_by = "clock"
        return found is not None and self.best.offer(found, "annealing")

    def _descend(self, model: Model) -> Termination:
        """Minimise one level after the other."""
        proved = True
        for depth, level in enumerate(model.levels):
            outcome = self._minimise(model, depth, level)
            if outcome.status == "INFEASIBLE" and self.best.schedule is None:
                return Termination.INFEASIBLE
            if outcome.status in ("INFEASIBLE", "MODEL_INVALID"):
                raise InternalError(
                    f"cp-sat: CP-SAT says {outcome.status} of a model that has a solution, problem "
                    f"{self.problem.fingerprint()}: {model.base.cp.validate() or 'the model is well formed'}"
                )
            if self.best.values is None:
                return self._why(outcome)
            bound, value = outcome.bound, level.scaled(self.best.values[depth])
            if bound is None:
                return self._why(outcome)
            if bound < value:
                limit = self.options.gap_limit
                if limit is None or value - bound > limit * value:
                    return self._why(outcome)
                proved = False
            model.base.cp.add(level.expression <= value)
        return Termination.OPTIMAL if proved else Termination.COMPLETED

    def _minimise(self, model: Model, depth: int, level: Level) -> Outcome:
        from placeopt.bounding.engines import cp_sat

        from .placement import relabelled

        cp = model.base.cp
        cp.minimize(level.expression)
        schedule = self.best.schedule
        if schedule is not None:
            pooled = self.pools.pooled(schedule)
            model.base.hint(relabelled(self.pools.problem, pooled) if self.settings.symmetry else pooled)
        parameters: dict[str, object] = {
            "linearization_level": self._linearization(depth),
            "interleave_search": self.settings.deterministic,
        }
        if model.base.size > PROBED:
            parameters["cp_model_probing_level"] = 0
        if self.settings.work is not None:
            parameters["max_deterministic_time"] = self.settings.work
        if self.options.gap_limit is not None:
            parameters["relative_gap_limit"] = self.options.gap_limit
        outcome = cp_sat.run(
            cp,
            largest=model.magnitude,
            seconds=self.clock.remaining,
            seed=self.options.seed,
            # Taking turns on several threads is not the same each time: equally good schedules come in any order.
            workers=1 if self.settings.deterministic else self.options.workers,
            should_stop=self.options.should_stop,
            on_solution=lambda read: self._found(self.pools.spread(model.schedule(read)), depth),
            on_bound=lambda bound: self.best.raise_bound(level.value(bound)) if depth == 0 else None,
            parameters=parameters,
        )
        for name, amount in (("branches", outcome.branches), ("conflicts", outcome.conflicts)):
            self.stats[name] = self.stats.get(name, 0) + amount
        self.stats["variables"] = model.base.size
        return outcome

    def _found(self, schedule: Schedule, depth: int) -> None:
        self.best.offer(schedule, f"level {depth + 1}" if depth else "")

    def _linearization(self, depth: int) -> int:
        """What was fastest in measurements: no linear relaxation for times, a full one for the costs of transfers.

        With several workers CP-SAT tries every level anyway.
        """
        if self.settings.linearization_level is not None:
            return self.settings.linearization_level
        metrics = {term.metric for term in self.problem.objective.levels[depth]}
        if "makespan" in metrics:
            return 0
        return 2 if metrics & {"total_cost", "energy"} else 1

    def _why(self, outcome: Outcome) -> Termination:
        """Why a run of CP-SAT ended without a proof."""
        if outcome.stopped:
            return Termination.INTERRUPTED
        limit = self.options.time_limit
        if limit is not None and self.clock.elapsed > limit * NEARLY:
            return Termination.TIME_LIMIT
        if self.best.schedule is None:
            self.message = "CP-SAT ended without a schedule or a proof"
            return Termination.FAILED
        return Termination.COMPLETED
