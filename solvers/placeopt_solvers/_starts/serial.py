"""Find the best schedule of all tasks on one device."""

from __future__ import annotations

import numpy as np

from placeopt.errors import listing
from placeopt.model.arrays import Int, inverse
from placeopt.model.graph import path_lengths
from placeopt.model.levels import dfs_topo
from placeopt.model.memory import earliest_starts, used_memory
from placeopt.model.objective import evaluate
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, Transfers, lateness, makespan
from placeopt.model.units import size_text, time_text
from placeopt.simulation import simulate


def best_serial(problem: Problem) -> tuple[Schedule | None, str]:
    """Return the best schedule of all tasks on one device; None and the obstacle of each device if there is none."""
    if len(problem.separation):
        first, second = (problem.task_names[i] for i in problem.separation[0])
        return None, f"no single device can run all tasks: {first} and {second} must be on different devices"
    candidates: list[Schedule] = []
    reasons: list[str] = []
    for d in range(problem.n_devices):
        barred = np.flatnonzero(~problem.feasible[:, d])
        if len(barred):
            reasons.append(f"{problem.device_names[d]} may not run {problem.task_names[barred[0]]}")
            continue
        if not problem.within_budgets(np.full(problem.n_tasks, d)):
            reasons.append(f"all tasks on {problem.device_names[d]} exceed a budget")
            continue
        schedules = _orders(problem, d)
        needs = [int(used_memory(problem, schedule)[d]) for schedule in schedules]
        if min(needs) > problem.capacity[d] and problem.memory_model == "peak":
            # Live memory depends on the order; depth first releases outputs sooner.
            schedules.append(_serial(problem, d, dfs_topo(problem)))
            needs.append(int(used_memory(problem, schedules[-1])[d]))
        fitting = [schedule for schedule, need in zip(schedules, needs, strict=True) if need <= problem.capacity[d]]
        candidates.extend(fitting)
        if not fitting:
            has = size_text(int(problem.capacity[d]))
            reasons.append(f"{problem.device_names[d]} has {has} of the {size_text(min(needs))} needed")
    if not candidates:
        return None, f"no single device can run all tasks: {listing(reasons) if reasons else 'there are no devices'}"
    best = min(candidates, key=lambda schedule: (lateness(problem, schedule), evaluate(problem, schedule)))
    late = lateness(problem, best)
    return best, f"some task misses its deadline by {time_text(late, problem.resolution)}" if late else ""


def _orders(problem: Problem, device: int) -> list[Schedule]:
    """Return schedules on one device; their orders differ only with release times or deadlines.

    The orders are `Problem.order`; that in which tasks become ready, which minimises the makespan because the device
    idles only while no task is ready; and, if that misses a deadline, the earliest deadline first among ready tasks
    (J. R. Jackson's rule), where successors tighten the deadlines of their predecessors.
    """
    schedules = [_serial(problem, device, problem.order)]
    everywhere = np.full(problem.n_tasks, device)
    if problem.release.any():
        schedules.append(simulate(problem, everywhere))
    if lateness(problem, schedules[-1]):
        end = makespan(problem, schedules[-1])
        # Ticks from the end of each task to `end` so that it and its successors meet their deadlines.
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
    """Return the schedule that runs tasks in an order on one device, each as early as possible."""
    everywhere = np.full(problem.n_tasks, device)
    if problem.rules:
        place = inverse(order)
        return simulate(problem, everywhere, order=place, discipline="order")
    ticks, release = problem.duration[order, device], earliest_starts(problem, everywhere)[order]
    start = np.empty(problem.n_tasks, dtype=np.int64)
    before = np.cumsum(ticks) - ticks
    # The latest of all releases so far, each with the work between it and the task.
    start[order] = before + np.maximum.accumulate(release - before)
    nothing = np.empty(0, dtype=np.int64)
    transfers = Transfers(nothing, nothing) if problem.contends else None
    return Schedule(everywhere, start, transfers)
