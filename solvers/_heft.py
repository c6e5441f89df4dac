"""HEFT as a function, for the solvers that start from its schedule; see `placeopt_solvers.heft`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import listing
from placeopt.ir import UNLIMITED, Int, Problem
from placeopt.kernels import kernel
from placeopt.schedule import Schedule, makespan
from placeopt.simulation import retime
from placeopt.units import size_text

from ._insertion import scheduled, work_steps
from ._placement import Groups, grouped, packings

Float = NDArray[np.float64]


def heft(problem: Problem) -> tuple[Schedule | None, str]:
    """HEFT's schedule without contention, and what is worth knowing of it; None and why if there is none."""
    groups = grouped(problem)
    if groups.stuck is not None:
        return None, _no_room(problem, groups, groups.stuck, groups.room)
    sequence = priority_list(problem, upward_ranks(problem))
    plan = scheduled(problem, groups, sequence)
    if plan.placed == problem.n_tasks:
        return plan.schedule, ""
    packed = [scheduled(problem, groups, sequence, home).schedule for home in packings(problem, groups)]
    if packed:
        best = min(packed, key=lambda schedule: makespan(problem, schedule))
        note = "the devices filled up before every task was placed: the groups were packed by memory first"
        return best, note
    k = int(problem.group[sequence[plan.placed]])
    return None, _no_room(problem, groups, k, plan.room)


def on_placement(problem: Problem, home: Int) -> Schedule:
    """HEFT's schedule with the groups on given devices (g,), ready for the problem's contention."""
    sequence = priority_list(problem, upward_ranks(problem))
    schedule = scheduled(problem, grouped(problem), sequence, home).schedule
    return retime(problem, schedule) if problem.contention == "port" else schedule


def _no_room(problem: Problem, groups: Groups, k: int, room: Int) -> str:
    """Why group k found no device; `room` (m,) is what was left."""
    members = np.flatnonzero(problem.group == k)
    task = problem.task_names[members[0]]
    devices = np.flatnonzero(problem.group_feasible()[k]).tolist()
    share = f" and the {len(members) - 1} others of its group" if len(members) > 1 else ""
    if not devices:
        return f"no device may run {task}{share}"
    left = listing(
        [
            f"{problem.device_names[d]} "
            + (size_text(max(int(room[d]), 0)) if problem.capacity[d] != UNLIMITED else "unlimited")
            for d in devices
        ]
    )
    return (
        f"no device left for {task}{share}: needed {size_text(int(groups.memory[k]))}, left {left}; "
        "the solver cp-sat can decide whether there is a placement"
    )


def upward_ranks(problem: Problem) -> Float:
    """(n,) length of the longest path from each task to an exit, its own duration included, in mean ticks.

    rank(i) = mean duration of i + max over successors j of (mean transfer of (i, j) + rank(j)).
    """
    allowed = problem.feasible.sum(axis=1)
    work = np.asarray(problem.duration.sum(axis=1) / np.maximum(allowed, 1), dtype=np.float64)
    pairs = ~np.eye(problem.n_devices, dtype=np.bool_)
    latency = rate = 0.0
    if pairs.any():
        latency = float(problem.latency[pairs].mean())
        rate = float((problem.byte_ticks_num[pairs] / problem.byte_ticks_den[pairs]).mean())
    transfer = np.asarray(latency + problem.payload * rate, dtype=np.float64)
    rank = np.empty(problem.n_tasks, dtype=np.float64)
    _ranks.select(work_steps(problem))(problem.order, problem.out_start, problem.edge_target, transfer, work, rank)
    return rank


@kernel()
def _ranks(order: Int, out_start: Int, edge_target: Int, transfer: Float, work: Float, rank: Float) -> None:
    for position in range(len(order) - 1, -1, -1):
        i = order[position]
        tail = 0.0
        for k in range(out_start[i], out_start[i + 1]):
            tail = max(tail, transfer[k] + rank[edge_target[k]])
        rank[i] = work[i] + tail


def priority_list(problem: Problem, rank: Float) -> Int:
    """(n,) the tasks by falling rank: a topological order; ties go by index unless they are linked.

    Ranks less than a thousandth of a tick apart are equal: floats differ by the order of their sums.
    """
    source, target = problem.edge_source, problem.edge_target
    rank = np.rint(rank * 1000)
    sequence = np.argsort(-rank, kind="stable")
    if not (rank[source] == rank[target]).any():
        return sequence
    # A successor's rank is never above its predecessor's but can equal it: among equals, count the
    # equals that lead to a task.
    depth = np.zeros(problem.n_tasks, dtype=np.int64)
    _tied_depths.select(work_steps(problem))(problem.order, problem.out_start, target, rank, depth)
    return np.lexsort((depth, -rank))


@kernel()
def _tied_depths(order: Int, out_start: Int, edge_target: Int, rank: Float, depth: Int) -> None:
    for i in order:
        for k in range(out_start[i], out_start[i + 1]):
            j = edge_target[k]
            if rank[j] == rank[i]:
                depth[j] = max(depth[j], depth[i] + 1)
