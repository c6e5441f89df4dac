"""Lists of tasks by priority, for heuristics whose list does not depend on the schedule."""

from __future__ import annotations

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Float, Int
from placeopt.model.levels import falling
from placeopt.model.problem import Problem
from placeopt.simulation.loops import pop, push

from .timeline import work_steps


def ready_order(problem: Problem, priority: Float) -> Int:
    """(n,) the order in which of all tasks whose producers are done the one of highest priority (n,) comes next.

    Unlike sorting by rank it is a topological order whatever the priorities. Those less than a thousandth of a tick
    apart are equal and go by index. O(n log n + e).
    """
    preference = falling(priority)
    position = np.empty(problem.n_tasks, dtype=np.int64)
    position[preference] = np.arange(problem.n_tasks)
    order = np.empty(problem.n_tasks, dtype=np.int64)
    waiting = np.diff(problem.in_start)
    heap = np.empty((2, problem.n_tasks), dtype=np.int64)
    run = most_urgent_first.select(work_steps(problem))
    run(problem.out_start, problem.edge_target, position, waiting, heap[0], heap[1], order)
    return order


@kernel(push, pop, allocates=False)
def most_urgent_first(
    out_start: Int, edge_target: Int, position: Int, waiting: Int, key: Int, task: Int, order: Int
) -> None:
    """Fill `order` (n,); `position` (n,) is each task's place among all by priority, `waiting` its producers."""
    size = 0
    for i in range(len(order)):
        if waiting[i] == 0:
            push(key, task, size, position[i], i)
            size += 1
    done = 0
    while size > 0:
        i = task[0]
        size -= 1
        pop(key, task, size)
        order[done] = i
        done += 1
        for k in range(out_start[i], out_start[i + 1]):
            j = edge_target[k]
            waiting[j] -= 1
            if waiting[j] == 0:
                push(key, task, size, position[j], j)
                size += 1
