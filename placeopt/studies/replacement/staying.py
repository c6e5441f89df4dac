"""Compute the cost of keeping every task that can stay on its device: the baseline of a re-placement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.bounding.quick.classes import by_group
from placeopt.model.arrays import Bool, Int
from placeopt.model.building import simplest, with_changes
from placeopt.model.objective import GONE, Value
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.simulation import retime
from placeopt.solving.pipeline import solve
from placeopt.verifier import verify


@dataclass(frozen=True, slots=True)
class Stay:
    """The best known schedule that moves only the tasks that cannot stay, with its value in each level and makespan."""

    forced: tuple[int, ...]  # tasks that are new, or whose device is gone or may no longer run them or their group
    schedule: Schedule | None = None
    values: tuple[Value, ...] | None = None
    makespan: int | None = None
    reason: str = ""  # why there is no schedule


def staying(problem: Problem, current: Int, start: Int | None) -> Stay:
    """Return the better schedule of a fast heuristic and, if no task must move, of the old order given by `start` (n,).

    The heuristic places the tasks that cannot stay. `current` (n,) is the device of each task, or GONE.
    """
    kept = _kept(problem, current)
    free = np.asarray(~kept.any(axis=1))
    forced = tuple(np.flatnonzero(free).tolist())
    narrowed = with_changes(simplest(problem), feasible=np.where(free[:, None], problem.feasible, kept))
    found = solve(narrowed)
    candidates = [found.schedule]
    if start is not None and not forced:
        candidates.insert(0, retime(problem, Schedule(current, start)))
    best, reason = Stay(forced), found.message
    for schedule in candidates:
        report = None if schedule is None else verify(problem, schedule)
        if report is not None and report.violations:
            reason = reason or report.violations[0].message
        elif report is not None and (best.values is None or (report.objective or ()) < best.values):
            best = Stay(forced, schedule, report.objective, report.makespan)
    return best if best.schedule is not None else Stay(forced, reason=reason or "no such schedule was found")


def _kept(problem: Problem, current: Int) -> Bool:
    """Return (n, m) whether the task can stay on the device with its whole group; no device if it cannot stay."""
    kept = np.zeros((problem.n_tasks, problem.n_devices), dtype=np.bool_)
    here = np.flatnonzero(current != GONE)
    kept[here, current[here]] = problem.feasible[here, current[here]]
    return np.asarray(by_group(problem, kept, np.logical_and)[problem.group])
