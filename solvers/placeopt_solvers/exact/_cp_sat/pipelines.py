"""Solve pipelines with CP-SAT: its parameters for the model of `placeopt_solvers.pipelines._exact`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from placeopt.model.problem import Problem
from placeopt.protocol import Answer, Options

from ...pipelines._exact.engines import Limits, Outcome, run_cp_sat
from ...pipelines._exact.run import PeriodRun
from .run import CpSatSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..._runs.linear import Linear
    from ...pipelines._exact.system import System


def solved_pipeline(problem: Problem, options: Options, settings: CpSatSettings) -> Answer:
    """Return the best placement found and the bound proved within the limits."""
    run = PeriodRun(problem, options)
    if options.workers > 1 and not settings.deterministic:
        run.varies_by = "threads"
    engine = partial(_minimised, options, settings)
    return run.answer(
        "cp-sat", engine, exact=True, most=settings.max_size, starts=settings.hint, symmetry=settings.symmetry
    )


def _minimised(
    options: Options, settings: CpSatSettings, system: System, period: Linear, limits: Limits, hint: Mapping[int, int]
) -> Outcome:
    parameters: dict[str, object] = {"interleave_search": settings.deterministic}
    if settings.linearization_level is not None:
        parameters["linearization_level"] = settings.linearization_level
    if settings.work is not None:
        parameters["max_deterministic_time"] = settings.work
    if options.gap_limit is not None:
        parameters["relative_gap_limit"] = options.gap_limit
    return run_cp_sat(
        system, period, 1 if settings.deterministic else options.workers, options.seed, limits, parameters, hint
    )
