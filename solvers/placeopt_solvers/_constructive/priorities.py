"""Ranks of tasks, and orders of tasks by rank that do not depend on the schedule."""

from __future__ import annotations

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Float, Int
from placeopt.model.levels import bottom_levels, comparable, falling, mean_transfers
from placeopt.model.native import native
from placeopt.model.problem import Problem


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
    ways = engine.longest_paths(native(problem), work.astype(np.float64), transfer.astype(np.float64), backwards=True)
    return ways.astype(np.int64)


def priority_list(problem: Problem, rank: Float) -> Int:
    """Return the tasks (n,) by decreasing rank in a topological order; ties go by index unless tasks are linked.

    Ranks that differ by less than a thousandth of a tick are equal: floats depend on the order of their sums.
    """
    sequence = falling(rank)
    rank = comparable(rank)
    producer, consumer = rank[problem.edge_source], rank[problem.edge_target]
    if (producer < consumer).any():  # ranks above 2^53 are rounded
        return ready_order(problem, rank)
    if not (producer == consumer).any():
        return sequence
    # A successor's rank can equal its predecessor's: such tasks are sorted by the number of equals that precede them.
    return np.lexsort((engine.tied_depths(native(problem), rank), -rank))


def ready_order(problem: Problem, priority: Float) -> Int:
    """Return the tasks (n,) in the order in which the ready task with the highest priority (n,) comes next.

    It is a topological order for any priorities. Priorities that differ by less than a thousandth of a tick are equal;
    ties go by index. O(n log n + e).
    """
    return engine.highest_first(native(problem), falling(priority))


def optimistic_costs(problem: Problem) -> Int:
    """Return the optimistic cost table of PEFT (n, m) in ticks; `list_scheduling/peft.py` defines it."""
    transfer = np.rint(mean_transfers(problem)).astype(np.int64)
    return engine.optimistic_costs(native(problem), problem.feasible, transfer, engine.current_stop())


def mean_costs(problem: Problem, table: Int) -> Float:
    """Return the mean (n,) of each row of the optimistic cost table over feasible devices; 0 for a task without any."""
    count = problem.feasible.sum(axis=1)
    total = np.where(problem.feasible, table, 0).sum(axis=1)
    return np.asarray(total / np.maximum(count, 1), dtype=np.float64)
