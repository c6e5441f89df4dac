"""cp-sat: an exact solver that models the whole problem in CP-SAT.

A task has one start, shared by one optional interval per feasible device. A literal per pair of groups says whether
they are on different devices, and implies the transfers between them (`_cp_sat.placement`, `timing`, `transfers`).
Memory is a knapsack or a cumulative resource (`_cp_sat.memory`), like other resources (`_cp_sat.resources`). With
addresses, buffers are rectangles of ticks and bytes that do not overlap (`_cp_sat.addresses`). CP-SAT is that of
OR-Tools (L. Perron, F. Didier, S. Gay: The CP-SAT-LP solver, CP 2023, doi:10.4230/LIPIcs.CP.2023.3). Complete hints,
symmetry breaking between interchangeable devices, and heads, tails and bounds from `placeopt.bounding.quick` make it
fast.

Forks, joins and fork-joins have a model of their own (`_forks`): with the devices of the source and the sink fixed, the
other tasks are independent. It runs first, for most of the time limit at most.

The best schedule ever seen is returned, including that of the heuristics at the start. A lexicographic objective is
minimised level by level, each with the values of the levels before as limits and the incumbent as hint.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from placeopt.model.problem import Problem
from placeopt.protocol import ALL_METRICS, RETIMED, Answer, Info, Options, Settings
from placeopt.protocol.citations import bibtex

from .._runs.solve_run import nothing_to_place
from ..pipelines._exact.engines import Limits, Outcome, run_cp_sat
from ..pipelines._exact.run import PeriodRun
from ._cp_sat.run import CpSatSettings, solved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._runs.linear import Linear
    from ..pipelines._exact.system import System


class CpSat:
    """Proves optimality and infeasibility; anytime."""

    name: ClassVar[str] = "cp-sat"
    info: ClassVar[Info] = Info(
        summary="exact: constraint programming with OR-Tools' CP-SAT",
        family="exact",
        rules=(*RETIMED, "machines", "budgets", "limits"),
        guarantee="optimal",
        complexity="exponential; a model of O((n + e) m) literals and rows",
        citation=bibtex("perron2023cpsat"),
        exact=True,
        anytime=True,
        warm_start=True,
        metrics=(*ALL_METRICS, "period"),
        combined=True,
        distributed=True,
        addresses=True,
    )
    settings_type: ClassVar[type[Settings]] = CpSatSettings

    def solve(self, problem: Problem, options: Options, settings: CpSatSettings) -> Answer:
        """Return the best schedule found and the bound proved within the limits."""
        if problem.n_tasks == 0:
            return nothing_to_place(problem)
        if problem.pipeline is not None:
            return solved_pipeline(problem, options, settings)
        return solved(problem, options, settings)


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
