"""Schedules from the installed heuristics, whatever the objective: to hold claims and bounds against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from placeopt.model.objective import Value
from placeopt.model.problem import Objective, Problem
from placeopt.model.schedule import Schedule
from placeopt.passes import apply_passes
from placeopt.solver import Options, unsupported
from placeopt.solver.registry import find_solver, solver_names
from placeopt.verifier import verify

HEURISTICS = ("heft", "single")
"""Solvers that find some schedule of nearly any problem in no time."""


def heuristic_schedules(problem: Problem, seed: int = 0) -> Iterator[tuple[str, Schedule]]:
    """The name and the schedule of each heuristic that has one, feasible or not."""
    # They need not know the objective to find any schedule at all.
    simpler = replace(problem, objective=Objective())
    for name in HEURISTICS:
        if name in solver_names():
            solver = find_solver(name)
            if unsupported(solver.info, simpler) is None:
                schedule = solver.solve(simpler, Options(seed=seed), solver.settings_type()).schedule
                if schedule is not None:
                    yield name, schedule


def heuristic_schedule(name: str, problem: Problem, options: Options, passes: Sequence[str] = ()) -> Schedule | None:
    """The schedule of a heuristic behind passes, mapped back; None if it has none, or does not take the problem.

    It goes for the makespan if it does not know the objective. The placement is feasible, times may break rules.
    """
    chain = apply_passes(problem, passes)
    if passes and not chain.steps:
        return None  # the passes have nothing to do, and without them the heuristic has its own turn
    solver, reduced = find_solver(name), chain.problem
    if unsupported(solver.info, reduced) is not None:
        reduced = replace(reduced, objective=Objective())
    if unsupported(solver.info, reduced) is not None:
        return None
    schedule = solver.solve(reduced, options, solver.settings_type()).schedule
    return None if schedule is None else chain.restore(schedule)


def best_heuristic_value(problem: Problem) -> Value | None:
    """The objective's first level in the best of those that are feasible; None if none is."""
    reports = (verify(problem, schedule) for _, schedule in heuristic_schedules(problem))
    return min((report.objective[0] for report in reports if report.feasible and report.objective), default=None)
