"""HEFT as a function, for the solvers that start from its schedule; see `placeopt_solvers.list_scheduling.heft`."""

from __future__ import annotations

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Float, Int
from placeopt.model.levels import bottom_levels, comparable, falling
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, lateness, makespan

from .construction import Build, Built, Constructed, best_of, constructed, timed, with_homes
from .groups import Groups, grouped
from .insertion import inserted
from .timeline import work_steps


def heft(problem: Problem) -> Constructed:
    """HEFT's schedule under the problem's contention."""
    ranked = constructed(problem, by_rank(problem, upward_ranks(problem)))
    if ranked.schedule is None or not lateness(problem, ranked.schedule):
        return ranked
    rank = deadline_ranks(problem, makespan(problem, ranked.schedule))
    return best_of(problem, [ranked, constructed(problem, by_rank(problem, rank))])


def by_rank(problem: Problem, rank: Float) -> Build:
    """List scheduling with insertion by falling rank (n,)."""
    sequence = priority_list(problem, rank)

    def build(groups: Groups) -> Built:
        return inserted(problem, groups, sequence)

    return build


def on_placement(problem: Problem, home: Int) -> Schedule:
    """HEFT's schedule with the groups on given devices (g,), ready for the problem's contention."""
    groups = with_homes(grouped(problem), home)

    def ordered(rank: Float) -> Constructed:
        return Constructed(timed(problem, by_rank(problem, rank)(groups).line))

    ranked = ordered(upward_ranks(problem))
    if ranked.schedule is not None and lateness(problem, ranked.schedule):
        rank = deadline_ranks(problem, makespan(problem, ranked.schedule))
        ranked = best_of(problem, [ranked, ordered(rank)])
    assert ranked.schedule is not None, "every group has its device"
    return ranked.schedule


def upward_ranks(problem: Problem, after: Float | None = None) -> Float:
    """(n,) length of the longest path from each task to an exit, its own duration included, in mean ticks.

    rank(i) = mean duration of i + max over successors j of (mean transfer of (i, j) + rank(j)). No less than
    `after` (n,) ticks follow each task, if that is given.
    """
    return bottom_levels(problem, after)


def deadline_ranks(problem: Problem, end: int) -> Float:
    """(n,) upward ranks against deadlines: `end` less the latest start in time for all deadlines that follow.

    A task without a deadline is due at `end`, and so is one with a later deadline.
    """
    return upward_ranks(problem, (end - np.minimum(problem.deadline, end)).astype(np.float64))


def priority_list(problem: Problem, rank: Float) -> Int:
    """(n,) the tasks by falling rank: a topological order; ties go by index unless they are linked.

    Ranks less than a thousandth of a tick apart are equal: floats differ by the order of their sums.
    """
    source, target = problem.edge_source, problem.edge_target
    sequence = falling(rank)
    rank = comparable(rank)
    if not (rank[source] == rank[target]).any():
        return sequence
    # A successor's rank is never above its predecessor's but can equal it: among equals, count the
    # equals that lead to a task.
    depth = np.zeros(problem.n_tasks, dtype=np.int64)
    _tied_depths.select(work_steps(problem))(problem.order, problem.out_start, target, rank, depth)
    return np.lexsort((depth, -rank))


@kernel(allocates=False)
def _tied_depths(order: Int, out_start: Int, edge_target: Int, rank: Float, depth: Int) -> None:
    for i in order:
        for k in range(out_start[i], out_start[i + 1]):
            j = edge_target[k]
            if rank[j] == rank[i]:
                depth[j] = max(depth[j], depth[i] + 1)
