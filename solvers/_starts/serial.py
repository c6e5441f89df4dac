"""Serial schedules on one device, for the solver that returns them and those that start from them."""

from __future__ import annotations

import numpy as np

from placeopt.errors import listing
from placeopt.model.arrays import Int
from placeopt.model.graph import path_lengths
from placeopt.model.levels import dfs_topo
from placeopt.model.memory import used_memory
from placeopt.model.objective import evaluate
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, Transfers, lateness, makespan
from placeopt.model.units import size_text, time_text
from placeopt.simulation import simulate


def best_serial(problem: Problem) -> tuple[Schedule | None, str]:
    """The best schedule of all tasks on one device; None and what rules out each if there is none."""
    if len(problem.separation):
        first, second = (problem.task_names[i] for i in problem.separation[0])
        return None, f"no single device will do: {first} and {second} must be apart"
    candidates: list[Schedule] = []
    reasons: list[str] = []
    for d in range(problem.n_devices):
        barred = np.flatnonzero(~problem.feasible[:, d])
        if len(barred):
            reasons.append(f"{problem.device_names[d]} may not run {problem.task_names[barred[0]]}")
            continue
        schedules = _orders(problem, d)
        needs = [int(used_memory(problem, schedule)[d]) for schedule in schedules]
        if min(needs) > problem.capacity[d] and problem.memory_model == "peak":
            # What is live at one time depends on the order; depth first frees outputs sooner.
            schedules.append(_serial(problem, d, dfs_topo(problem)))
            needs.append(int(used_memory(problem, schedules[-1])[d]))
        fitting = [schedule for schedule, need in zip(schedules, needs, strict=True) if need <= problem.capacity[d]]
        candidates.extend(fitting)
        if not fitting:
            has = size_text(int(problem.capacity[d]))
            reasons.append(f"{problem.device_names[d]} has {has} of the {size_text(min(needs))} needed")
    if not candidates:
        reason = listing(reasons) if reasons else "there is none"
        return None, f"no single device will do: {reason}"
    best = min(candidates, key=lambda schedule: (lateness(problem, schedule), evaluate(problem, schedule)))
    late = lateness(problem, best)
    return best, f"some task misses its deadline by {time_text(late, problem.resolution)}" if late else ""


def _orders(problem: Problem, device: int) -> list[Schedule]:
    """Schedules on one device in orders that differ where there are release times or deadlines.

    As the tasks stand in `Problem.order`; as they become ready, which no order beats in makespan, for the device only
    idles while nothing that is left can run; and, where that misses a deadline, of those that are ready the one with
    the earliest deadline first (J. R. Jackson's rule), its own or one that leaves it no later for what follows.
    """
    schedules = [_serial(problem, device, problem.order)]
    everywhere = np.full(problem.n_tasks, device)
    if problem.release.any():
        schedules.append(simulate(problem, everywhere))
    if lateness(problem, schedules[-1]):
        end = makespan(problem, schedules[-1])
        # Ticks from the end of each task to `end` if its deadline and those of all that follows are to be kept.
        tail = path_lengths(
            problem.order[::-1].copy(),
            problem.in_start,
            problem.edge_source[problem.in_edge],
            problem.duration[:, device],
            end - np.minimum(problem.deadline, end),
        )
        schedules.append(simulate(problem, everywhere, discipline="priority", priority=tail))
    return schedules


def _serial(problem: Problem, device: int, order: Int) -> Schedule:
    """One task after the other on one device, each as soon as it may."""
    ticks, release = problem.duration[order, device], problem.release[order]
    start = np.empty(problem.n_tasks, dtype=np.int64)
    before = np.cumsum(ticks) - ticks
    # The latest of all releases so far, each with what is done between it and the task.
    start[order] = before + np.maximum.accumulate(release - before)
    nothing = np.empty(0, dtype=np.int64)
    transfers = Transfers(nothing, nothing) if problem.contention == "port" else None
    return Schedule(np.full(problem.n_tasks, device), start, transfers)
