"""Solve pipelines with HiGHS or SCIP: the model is that of `placeopt_solvers.pipelines._exact`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from placeopt.model.problem import Problem
from placeopt.solver import Answer, Options

from ...pipelines._exact.engines import Limits, Outcome, run_milp, run_relaxation
from ...pipelines._exact.run import PeriodRun
from .settings import MilpSettings

if TYPE_CHECKING:
    from ..._runs.linear import Linear
    from ...pipelines._exact.system import System


def solved_pipeline(problem: Problem, options: Options, settings: MilpSettings) -> Answer:
    """Return the best placement found and the bound proved within the limits."""

    def minimised(system: System, period: Linear, limits: Limits, hint: Mapping[int, int]) -> Outcome:  # noqa: ARG001
        if settings.relaxation:
            return run_relaxation(system, period, limits)
        return run_milp(system, period, options, limits, settings.engine)

    run = PeriodRun(problem, options)
    return run.answer(
        "milp", minimised, exact=False, most=settings.max_size, starts=settings.hint, symmetry=settings.symmetry
    )
