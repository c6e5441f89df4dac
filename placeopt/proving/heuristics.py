"""Schedules from the installed heuristics for any objective, to check claims and bounds against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from placeopt.model.building import simplest
from placeopt.model.objective import Value
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.passes import apply_passes
from placeopt.protocol import Options, unsupported
from placeopt.protocol.registry import find_solver, solver_names
from placeopt.verifier import verify

HEURISTICS = ("heft", "single", "dpl")
"""Fast solvers that find a schedule of nearly any problem; the last one of pipelines."""


def heuristic_schedules(problem: Problem, seed: int = 0) -> Iterator[tuple[str, Schedule]]:
    """The name and the schedule, feasible or not, of each heuristic that finds one."""
    # Any schedule will do, so heuristics that do not support the objective run too.
    simpler = simplest(problem)
    for name in HEURISTICS:
        if name in solver_names():
            solver = find_solver(name)
            if unsupported(solver.info, simpler) is None:
                schedule = solver.solve(simpler, Options(seed=seed), solver.settings_type()).schedule
                if schedule is not None:
                    yield name, schedule


def heuristic_schedule(
    name: str, problem: Problem, options: Options, passes: Sequence[str] = (), **settings: Any
) -> Schedule | None:
    """The schedule of a heuristic after passes, mapped back; None if there is none or the problem is unsupported.

    `settings` are those of the heuristic. A heuristic that does not support the objective minimises the makespan, or
    the period of a pipeline. The placement is feasible; times may break rules.
    """
    chain = apply_passes(problem, passes)
    if passes and not chain.steps:
        return None  # the passes change nothing: the caller also runs the heuristic without them
    solver = find_solver(name)
    for reduced in (chain.problem, simplest(chain.problem)):
        if unsupported(solver.info, reduced) is None:
            schedule = solver.solve(reduced, options, solver.settings_type(**settings)).schedule
            return None if schedule is None else chain.restore(schedule)
    return None


def best_heuristic_value(problem: Problem) -> Value | None:
    """The best first level of the objective among the feasible schedules of the heuristics; None if there is none."""
    reports = (verify(problem, schedule) for _, schedule in heuristic_schedules(problem))
    return min((report.objective[0] for report in reports if report.feasible and report.objective), default=None)
