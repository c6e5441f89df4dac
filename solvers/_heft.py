"""HEFT as a function, for the solvers that start from its schedule; see `placeopt_solvers.heft`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import listing
from placeopt.ir import UNLIMITED, Int, Problem
from placeopt.kernels import kernel
from placeopt.schedule import Schedule, lateness, makespan
from placeopt.simulation import retime
from placeopt.units import size_text, time_text

from ._insertion import Plan, scheduled, work_steps
from ._placement import Groups, grouped, packings

Float = NDArray[np.float64]


def heft(problem: Problem) -> tuple[Schedule | None, str]:
    """HEFT's schedule under the problem's contention and what is worth knowing of it; None and why there is none."""
    groups = grouped(problem)
    if groups.stuck is not None:
        return None, _no_room(problem, groups, groups.stuck, groups.room)
    sequence = priority_list(problem, upward_ranks(problem))
    plan = scheduled(problem, groups, sequence)
    found = _completed(problem, groups, sequence, plan)
    if not found:
        k = int(problem.group[sequence[plan.placed]])
        return None, _no_room(problem, groups, k, plan.room)
    packed, schedule = best = _best(problem, found)
    if lateness(problem, schedule):
        sequence = priority_list(problem, deadline_ranks(problem, makespan(problem, schedule)))
        plan = scheduled(problem, groups, sequence)
        packed, schedule = _best(problem, [best, *_completed(problem, groups, sequence, plan)])
    notes = []
    if packed:
        notes.append("the devices filled up before every task was placed: the groups were packed by memory first")
    if late := lateness(problem, schedule):
        time = time_text(late, problem.resolution)
        notes.append(f"some task misses its deadline by {time}; the solver cp-sat can decide whether all can be kept")
    return schedule, "; ".join(notes)


def on_placement(problem: Problem, home: Int) -> Schedule:
    """HEFT's schedule with the groups on given devices (g,), ready for the problem's contention."""
    groups = grouped(problem)

    def ordered(rank: Float) -> tuple[bool, Schedule]:
        return False, _timed(problem, scheduled(problem, groups, priority_list(problem, rank), home).schedule)

    ranked = ordered(upward_ranks(problem))
    if not lateness(problem, ranked[1]):
        return ranked[1]
    return _best(problem, [ranked, ordered(deadline_ranks(problem, makespan(problem, ranked[1])))])[1]


def _completed(problem: Problem, groups: Groups, sequence: Int, plan: Plan) -> list[tuple[bool, Schedule]]:
    """The plan's schedule; where the devices filled up, one for each packing by memory: whether packed, and it."""
    if plan.placed == problem.n_tasks:
        return [(False, _timed(problem, plan.schedule))]
    homes = packings(problem, groups)
    return [(True, _timed(problem, scheduled(problem, groups, sequence, home).schedule)) for home in homes]


def _best(problem: Problem, found: list[tuple[bool, Schedule]]) -> tuple[bool, Schedule]:
    """The one with the least lateness, then the least makespan; the first of equals."""
    return min(found, key=lambda each: (lateness(problem, each[1]), makespan(problem, each[1])))


def _timed(problem: Problem, schedule: Schedule) -> Schedule:
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


def upward_ranks(problem: Problem, after: Float | None = None) -> Float:
    """(n,) length of the longest path from each task to an exit, its own duration included, in mean ticks.

    rank(i) = mean duration of i + max over successors j of (mean transfer of (i, j) + rank(j)). No less than
    `after` (n,) ticks follow each task, if that is given.
    """
    allowed = problem.feasible.sum(axis=1)
    work = np.asarray(problem.duration.sum(axis=1) / np.maximum(allowed, 1), dtype=np.float64)
    pairs = ~np.eye(problem.n_devices, dtype=np.bool_)
    latency = rate = 0.0
    if pairs.any():
        latency = float(problem.latency[pairs].mean())
        rate = float((problem.byte_ticks_num[pairs] / problem.byte_ticks_den[pairs]).mean())
    transfer = np.asarray(latency + problem.payload * rate, dtype=np.float64)
    after = np.zeros(problem.n_tasks) if after is None else after
    rank = np.empty(problem.n_tasks, dtype=np.float64)
    run = _ranks.select(work_steps(problem))
    run(problem.order, problem.out_start, problem.edge_target, transfer, work, after, rank)
    return rank


def deadline_ranks(problem: Problem, end: int) -> Float:
    """(n,) upward ranks against deadlines: `end` less the latest start in time for all deadlines that follow.

    A task without a deadline is due at `end`, and so is one with a later deadline.
    """
    return upward_ranks(problem, (end - np.minimum(problem.deadline, end)).astype(np.float64))


@kernel()
def _ranks(
    order: Int, out_start: Int, edge_target: Int, transfer: Float, work: Float, after: Float, rank: Float
) -> None:
    for position in range(len(order) - 1, -1, -1):
        i = order[position]
        tail = after[i]
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
