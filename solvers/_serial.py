"""Serial schedules on one device, for the solver that returns them and those that start from them."""

from __future__ import annotations

import numpy as np

from placeopt.errors import listing
from placeopt.ir import Int, Problem
from placeopt.kernels import kernel
from placeopt.memory import used_memory
from placeopt.objective import evaluate
from placeopt.schedule import Schedule, Transfers
from placeopt.units import size_text


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
        # Memory under `peak` depends on the order alone; depth first frees outputs sooner.
        schedules = [_serial(problem, d, problem.order)]
        needs = [int(used_memory(problem, schedules[0])[d])]
        if needs[0] > problem.capacity[d] and problem.memory_model == "peak":
            schedules.append(_serial(problem, d, _depth_first(problem)))
            needs.append(int(used_memory(problem, schedules[1])[d]))
        fitting = [schedule for schedule, need in zip(schedules, needs, strict=True) if need <= problem.capacity[d]]
        candidates.extend(fitting)
        if not fitting:
            has = size_text(int(problem.capacity[d]))
            reasons.append(f"{problem.device_names[d]} has {has} of the {size_text(min(needs))} needed")
    if not candidates:
        reason = listing(reasons) if reasons else "there is none"
        return None, f"no single device will do: {reason}"
    return min(candidates, key=lambda schedule: evaluate(problem, schedule)), ""


def _serial(problem: Problem, device: int, order: Int) -> Schedule:
    """One task after the other on one device, without idle time."""
    ticks = problem.duration[order, device]
    start = np.empty(problem.n_tasks, dtype=np.int64)
    start[order] = np.cumsum(ticks) - ticks
    nothing = np.empty(0, dtype=np.int64)
    transfers = Transfers(nothing, nothing) if problem.contention == "port" else None
    return Schedule(np.full(problem.n_tasks, device), start, transfers)


def _depth_first(problem: Problem) -> Int:
    order = np.empty(problem.n_tasks, dtype=np.int64)
    run = _last_ready_first.select(problem.n_tasks + problem.n_edges)
    run(problem.out_start, problem.edge_target, np.diff(problem.in_start), order)
    return order


@kernel()
def _last_ready_first(out_start: Int, edge_target: Int, in_degree: Int, order: Int) -> None:
    """Fill `order` with the topological order in which the task that became ready last comes first."""
    waiting = in_degree.copy()
    stack = np.empty(len(waiting), dtype=np.int64)
    top = 0
    for i in range(len(waiting) - 1, -1, -1):
        if waiting[i] == 0:
            stack[top] = i
            top += 1
    position = 0
    while top > 0:
        top -= 1
        i = stack[top]
        order[position] = i
        position += 1
        for k in range(out_start[i + 1] - 1, out_start[i] - 1, -1):
            j = edge_target[k]
            waiting[j] -= 1
            if waiting[j] == 0:
                stack[top] = j
                top += 1
