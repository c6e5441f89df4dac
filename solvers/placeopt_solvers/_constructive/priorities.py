"""Ranks of tasks, and orders of tasks by rank that do not depend on the schedule."""

from __future__ import annotations

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.levels import bottom_levels, comparable, falling, longest_ways, mean_transfers
from placeopt.model.problem import Problem

from .heaps import Heaps, make_heaps, pop, push
from .timeline import NEVER, work_steps


def upward_ranks(problem: Problem, after: Float | None = None) -> Float:
    """Return the length (n,) of the longest path from each task to an exit in mean ticks, its own duration included.

    rank(i) = mean duration of i + max over successors j of (mean transfer of (i, j) + rank(j)). If `after` (n,) is
    given, at least so many ticks follow each task.
    """
    return bottom_levels(problem, after)


def deadline_ranks(problem: Problem, end: int) -> Float:
    """Return upward ranks (n,) against deadlines: `end` minus the latest start that meets all later deadlines.

    A task with no deadline, or a deadline after `end`, is due at `end`.
    """
    return upward_ranks(problem, (end - np.minimum(problem.deadline, end)).astype(np.float64))


def longest_paths_after(problem: Problem, work: Int, transfer: Int) -> Int:
    """Return the longest path (n,) after each task to an exit, over `work` (n,) and `transfer` (e,)."""
    ways = np.zeros(problem.n_tasks)
    edge = problem.in_edge
    run = longest_ways.select(20 * (problem.n_tasks + problem.n_edges))
    run(
        problem.order[::-1].copy(), problem.in_start, problem.edge_source[edge],
        work.astype(np.float64), transfer[edge].astype(np.float64), ways,
    )  # fmt: skip
    return ways.astype(np.int64)


def priority_list(problem: Problem, rank: Float) -> Int:
    """Return the tasks (n,) by decreasing rank in a topological order; ties go by index unless tasks are linked.

    Ranks that differ by less than a thousandth of a tick are equal: floats depend on the order of their sums.
    """
    source, target = problem.edge_source, problem.edge_target
    sequence = falling(rank)
    rank = comparable(rank)
    if not (rank[source] == rank[target]).any():
        return sequence
    # A successor's rank can equal its predecessor's: such tasks are sorted by the number of equals that precede them.
    depth = np.zeros(problem.n_tasks, dtype=np.int64)
    _tied_depths.select(work_steps(problem))(problem.order, problem.out_start, target, rank, depth)
    return np.lexsort((depth, -rank))


def ready_order(problem: Problem, priority: Float) -> Int:
    """Return the tasks (n,) in the order in which the ready task with the highest priority (n,) comes next.

    It is a topological order for any priorities. Priorities that differ by less than a thousandth of a tick are equal;
    ties go by index. O(n log n + e).
    """
    preference = falling(priority)
    rank = np.empty(problem.n_tasks, dtype=np.int64)
    rank[preference] = np.arange(problem.n_tasks)
    order = np.empty(problem.n_tasks, dtype=np.int64)
    _highest_first.select(work_steps(problem))(
        problem.out_start, problem.edge_target, preference, rank, np.diff(problem.in_start),
        make_heaps(problem.n_tasks, 1), order,
    )  # fmt: skip
    return order


@kernel(allocates=False)
def _tied_depths(order: Int, out_start: Int, edge_target: Int, rank: Float, depth: Int) -> None:
    for i in order:
        for k in range(out_start[i], out_start[i + 1]):
            j = edge_target[k]
            if rank[j] == rank[i]:
                depth[j] = max(depth[j], depth[i] + 1)


@kernel(push, pop, allocates=False)
def _highest_first(
    out_start: Int, edge_target: Int, preference: Int, rank: Int, missing: Int, heap: Heaps, order: Int
) -> None:
    """Fill `order` (n,); `preference` (n,) are the tasks by `rank` (n,), `missing` (n,) counts unlisted producers."""
    for i in range(len(order)):
        if missing[i] == 0:
            push(heap, 0, 0, rank[i])
    for position in range(len(order)):
        i = preference[heap.item[0, 0]]
        pop(heap, 0)
        order[position] = i
        for k in range(out_start[i], out_start[i + 1]):
            j = edge_target[k]
            missing[j] -= 1
            if missing[j] == 0:
                push(heap, 0, 0, rank[j])


def optimistic_costs(problem: Problem) -> Int:
    """Return the optimistic cost table of PEFT (n, m) in ticks; `list_scheduling/peft.py` defines it."""
    table = np.zeros((problem.n_tasks, problem.n_devices), dtype=np.int64)
    transfer = np.rint(mean_transfers(problem)).astype(np.int64)
    backwards, producer = problem.order[::-1].copy(), problem.edge_source[problem.in_edge]
    run = look_ahead.select(work_steps(problem))
    run(backwards, problem.in_start, producer, transfer[problem.in_edge], problem.duration, problem.feasible, table)
    return table


def mean_costs(problem: Problem, table: Int) -> Float:
    """Return the mean (n,) of each row of the optimistic cost table over feasible devices; 0 for a task without any."""
    count = problem.feasible.sum(axis=1)
    total = np.where(problem.feasible, table, 0).sum(axis=1)
    return np.asarray(total / np.maximum(count, 1), dtype=np.float64)


@kernel(allocates=False)
def look_ahead(
    backwards: Int, in_start: Int, producer: Int, transfer: Int, duration: Int, feasible: Bool, table: Int
) -> None:
    """Fill `table` (n, m), zero at first, from consumers to producers; `transfer` (e,) is in the order of in-edges."""
    m = table.shape[1]
    for j in backwards:
        if in_start[j] == in_start[j + 1]:
            continue
        # The least time from the start of j on; a task without any device does not count.
        least = NEVER
        for w in range(m):
            if feasible[j, w]:
                least = min(least, table[j, w] + duration[j, w])
        if least == NEVER:
            continue
        for e in range(in_start[j], in_start[j + 1]):
            i = producer[e]
            moved = least + transfer[e]
            for k in range(m):
                cost = moved
                if feasible[j, k]:
                    cost = min(cost, table[j, k] + duration[j, k])
                if cost > table[i, k]:
                    table[i, k] = cost
