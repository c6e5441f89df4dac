"""Topological orders in which placement heuristics process the tasks.

    m-topo    breadth first: ready tasks in a first-in-first-out queue (Kahn); this is `Problem.order`
    dfs-topo  depth first: the task that became ready last comes first
    cpd-topo  likewise; of tasks that become ready together, the one on the longest path comes first

B. Jeon et al.: Baechi: Fast device placement of machine learning graphs, SoCC 2020, doi:10.1145/3419111.3421302,
section 2.2 (m-topo). H. Xu, Y. Liao, H. Xie, P. Zhou: Celeritas: Fast optimizer for large dataflow graphs, 2022,
arXiv:2208.00184, section 4.2.2 (dfs-topo), section 5.1.3 and Algorithm 1 (cpd-topo). `placeopt.model.levels` computes
the paths, with the departures stated there. The papers leave ties open: here the smaller index comes first.
O(n log n + e).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.levels import comparable, critical_paths
from placeopt.model.problem import Problem


def m_topo(problem: Problem) -> Int:
    """(n,) the tasks breadth first."""
    return problem.order


def dfs_topo(problem: Problem) -> Int:
    """(n,) the tasks depth first, smaller indices first."""
    return depth_first(problem, np.arange(problem.n_tasks))


def cpd_topo(problem: Problem) -> Int:
    """(n,) the tasks depth first, those on longer paths first."""
    return depth_first(problem, np.argsort(-comparable(critical_paths(problem)), kind="stable"))


def depth_first(problem: Problem, preference: Int) -> Int:
    """(n,) the topological order in which the task that became ready last comes first.

    Tasks that become ready together are ordered as in `preference` (n,), which lists all tasks.
    """
    order = np.empty(problem.n_tasks, dtype=np.int64)
    run = last_ready_first.select(4 * (problem.n_tasks + problem.n_edges))
    run(problem.out_start, problem.in_start, problem.edge_source[problem.in_edge], preference, order)
    return order


OrderName = Literal["cpd-topo", "dfs-topo", "m-topo"]

ORDERS: dict[OrderName, Callable[[Problem], Int]] = {"m-topo": m_topo, "dfs-topo": dfs_topo, "cpd-topo": cpd_topo}
"""The orders by their names in the papers."""


@kernel()
def last_ready_first(out_start: Int, in_start: Int, producer: Int, preference: Int, order: Int) -> None:
    """Fill `order` (n,); the producers of task i are producer[in_start[i]:in_start[i + 1]]."""
    n = len(order)
    # Consumers of each task from least to most preferred: the order in which they are pushed.
    consumer = np.empty(len(producer), dtype=np.int64)
    end = out_start.copy()
    for position in range(n - 1, -1, -1):
        j = preference[position]
        for k in range(in_start[j], in_start[j + 1]):
            i = producer[k]
            consumer[end[i]] = j
            end[i] += 1
    waiting = np.empty(n, dtype=np.int64)
    head = np.empty(n, dtype=np.int64)  # a stack
    top = 0
    for position in range(n - 1, -1, -1):
        i = preference[position]
        waiting[i] = in_start[i + 1] - in_start[i]
        if waiting[i] == 0:
            head[top] = i
            top += 1
    done = 0
    while top > 0:
        top -= 1
        i = head[top]
        order[done] = i
        done += 1
        for k in range(out_start[i], out_start[i + 1]):
            j = consumer[k]
            waiting[j] -= 1
            if waiting[j] == 0:
                head[top] = j
                top += 1
