"""Run milp: the model, its linear relaxation, and one level of the objective after the other; see `milp.py`."""

from __future__ import annotations

import math

from placeopt.bounding.engines import EngineError
from placeopt.bounding.engines.mathopt import Outcome, mathopt_model, run_glop, run_retried
from placeopt.engine import StoppedError
from placeopt.model.objective import evaluate
from placeopt.model.problem import Problem
from placeopt.protocol import Answer, Options, Termination

from ..._runs.exact_run import ExactRun, Level, LevelOutcome, TooLargeError
from ..._runs.linear import Linear
from ..._runs.validity import valid_forms
from .model import Model, model_size
from .settings import MilpSettings
from .timing import successors, times_of

CHEAP = 20_000
"""Columns and rows up to which the linear relaxation is solved on its own first."""

ENOUGH = 0.8
"""Difference of value and bound at which an engine may stop. Together with `SLACK` it is less than 1, which proves an
integer objective."""

SLACK = 0.1
"""What is subtracted from a reported bound before it is rounded up; see `proved`."""


def proved(reported: float) -> int:
    """Round up the bound of an integer objective that an engine reports as a float.

    The engine's bound is the minimum of linear programs whose rows and reduced costs are right within tolerances. A
    tenth is subtracted for that, which is not proved to be enough.
    """
    return math.ceil(reported - SLACK)


class MilpRun(ExactRun[Linear]):
    """One solve."""

    def __init__(self, problem: Problem, options: Options, settings: MilpSettings) -> None:
        super().__init__(problem, options, "milp", settings.engine)
        self.settings = settings

    def answer(self) -> Answer:
        """Return the best schedule and bound beyond the incumbent, and why the run ended."""
        allowed = self.problem.group_feasible()
        after = successors(self.problem)
        size, most = model_size(self.problem, after), self.settings.max_size
        if size > most:
            return self.refusal(
                f"too large for a mixed-integer program: about {size:,} columns, rows and products, where max_size "
                f"allows {most:,}; cp-sat can solve larger problems"
            )
        times = times_of(self.problem, allowed, after, self.best.values[0] if self.best.values else None)
        try:
            self.model = Model(self.problem, allowed, times, self.settings.symmetry, self.stopped)
            self.stats.update(columns=self.model.program.n_columns, rows=len(self.model.program.rows))
            return self.ended(self._relax() or self.descend(self.model.levels))
        except TooLargeError as error:
            return self.refusal(
                f"the numbers are not safe in floating point: {error}; a coarser resolution would help, and cp-sat "
                "computes in integers"
            )
        except StoppedError:
            return self.ended(self.stop_reason() or Termination.TIME_LIMIT)
        except EngineError as error:
            return self.refusal(str(error))

    def _relax(self) -> Termination | None:
        """Bound the first level by the linear relaxation; return why to stop, None to continue."""
        alone = self.settings.relaxation
        if not alone and self.stats["columns"] + self.stats["rows"] > CHEAP:
            return None
        level, program = self.model.levels[0], self.model.program
        program.set_objective(level.expression)
        found = run_glop(mathopt_model(program, relaxed=True), seconds=self.clock.remaining, should_stop=self.overdue)
        if found.status == "infeasible" and alone:  # else the engine has to confirm it
            return self.no_solution(0, "GLOP")
        if found.duals is not None:
            bound = program.safe_dual_bound(found.duals)
            self.stats["lp_bound"] = float(level.value(bound))
            self.best.raise_bound(level.value(math.ceil(bound)))
            if len(self.model.levels) == 1 and self.best.values == (self.best.bound,):
                return Termination.OPTIMAL
        stopped = self.stop_reason()
        if stopped is None and alone:
            self.message = "only the linear relaxation was solved: a bound, and the schedule that the run started from"
            return Termination.COMPLETED
        return stopped

    def limit(self, level: Level[Linear], value: int) -> None:
        """Require a level to be at most a value, in its steps."""
        self.model.program.at_least(value, level.expression)

    def minimise(self, depth: int, level: Level[Linear]) -> LevelOutcome:
        """Minimise a level."""

        def on_bound(reported: float) -> None:
            if depth == 0 and math.isfinite(reported):
                self.best.raise_bound(level.value(proved(reported)))

        self.model.program.set_objective(level.expression)
        outcome = run_retried(
            mathopt_model(self.model.program),
            self.settings.engine,
            seconds=self.clock.remaining,
            seed=self.options.seed,
            should_stop=self.overdue,
            gap=self.options.gap_limit or 0.0,
            absolute_gap=ENOUGH,
            workers=self.options.workers,
            hint=None if self.best.schedule is None else self.model.hint(self.best.schedule),
            on_values=lambda values: self._solution(values, depth),
            on_bound=on_bound,
        )
        if outcome.values is not None:
            self._solution(outcome.values, depth)
        self.stats["nodes"] = self.stats.get("nodes", 0) + outcome.nodes
        bound = 0 if outcome.bound is None else proved(outcome.bound)
        if depth == 0 and outcome.status != "infeasible":
            if self.best.values is not None:
                self.best.raise_bound(level.value(bound))
            bound = bound if self.best.bound is None else max(bound, level.scaled(self.best.bound))
        return LevelOutcome(outcome.status == "infeasible", bound, lambda: self._why(outcome))

    def _solution(self, values: list[float], depth: int) -> None:
        """Offer the schedule of a solution, or the one with the earliest starts in its order, if valid and better."""
        schedule = self.model.schedule(values)
        forms = valid_forms(self.problem, schedule)
        best = min(forms, key=lambda each: evaluate(self.problem, each), default=None)
        if best is not None:
            self.found(best, depth)

    def _why(self, outcome: Outcome) -> Termination:
        """Return why an engine ended, if it did so without a proof."""
        stopped = self.stop_reason() or (Termination.INTERRUPTED if outcome.stopped else None)
        if stopped is not None:
            return stopped
        self.message = f"{self.engine} ended without a proof: {outcome.message or outcome.status}"
        return Termination.FAILED if self.best.schedule is None else Termination.COMPLETED
