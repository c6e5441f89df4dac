"""Top and bottom levels of tasks, and topological orders in which placement heuristics process the tasks.

Levels are lengths of longest paths to and from each task, with times averaged over devices. H. Xu, Y. Liao, H. Xie, P.
Zhou: Celeritas: Fast optimizer for large dataflow graphs, 2022, arXiv:2208.00184, section 5.1.3, equations 2 and 3; the
bottom level is the upward rank of HEFT (H. Topcuoglu, S. Hariri, M.-Y. Wu, IEEE TPDS 13, 2002, doi:10.1109/71.993206,
equation 8). The papers' symbols: w_i the duration of task i, c_ij the transfer time of edge (i, j), tlevel and blevel
the levels, cpath their sum.

Departures: w_i is the mean over the devices that may run the task, and c_ij the mean over all ordered pairs of distinct
devices, before rounding up to ticks; 0 with one device. This averages times, where HEFT's paper divides by the mean
bandwidth, which favours fast links. Release times are ignored. O(n m + e).

Orders, in O(n log n + e); ties, which the papers leave open, go to the smaller index:

    m-topo    breadth first: ready tasks in a first-in-first-out queue (Kahn); this is `Problem.order`
    dfs-topo  depth first: the task that became ready last comes first
    cpd-topo  likewise; of tasks that become ready together, the one on the longest path comes first

B. Jeon et al.: Baechi: Fast device placement of machine learning graphs, SoCC 2020, doi:10.1145/3419111.3421302,
section 2.2 (m-topo); Celeritas, section 4.2.2 (dfs-topo), section 5.1.3 and Algorithm 1 (cpd-topo).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Float, Int
from placeopt.model.native import native
from placeopt.model.problem import Problem

PARTS_OF_A_TICK = 1000
"""Levels are compared in thousandths of a tick, because floats depend on the order of summation."""


def mean_durations(problem: Problem) -> Float:
    """(n,) mean ticks of each task over its feasible devices; 0 for a task without one."""
    total = np.einsum("id->i", problem.duration)  # three times as fast as `sum` over short rows
    if problem.feasible.all():
        return np.asarray(total / max(problem.n_devices, 1), dtype=np.float64)
    return np.asarray(total / np.maximum(problem.feasible.sum(axis=1), 1), dtype=np.float64)


def mean_transfers(problem: Problem) -> Float:
    """(e,) mean ticks of each edge's transfer over ordered pairs of distinct devices; 0 with a single device."""
    distinct = ~np.eye(problem.n_devices, dtype=np.bool_)
    if not distinct.any():
        return np.zeros(problem.n_edges)
    latency = float(problem.latency[distinct].mean())
    rate = float((problem.byte_ticks_num[distinct] / problem.byte_ticks_den[distinct]).mean())
    return np.asarray(latency + problem.payload * rate, dtype=np.float64)


def top_levels(problem: Problem) -> Float:
    """(n,) length of the longest path from a source to each task, its own duration excluded (equation 2)."""
    return engine.longest_paths(native(problem), mean_durations(problem), mean_transfers(problem), backwards=False)


def bottom_levels(problem: Problem, after: Float | None = None) -> Float:
    """(n,) length of the longest path from each task to a sink, its own duration included (equation 3).

    `after` (n,) are ticks that follow each task at least.
    """
    return _levels_from_sinks(problem, mean_transfers(problem), after)


def static_levels(problem: Problem) -> Float:
    """(n,) length of the longest path from each task to a sink, its own duration included, transfers ignored."""
    return _levels_from_sinks(problem, np.zeros(problem.n_edges))


def _levels_from_sinks(problem: Problem, transfer: Float, after: Float | None = None) -> Float:
    work = mean_durations(problem)
    behind = engine.longest_paths(native(problem), work, transfer, backwards=True, before=after)
    return np.asarray(work + behind, dtype=np.float64)


def critical_paths(problem: Problem) -> Float:
    """(n,) cpath: length of the longest path through each task."""
    return top_levels(problem) + bottom_levels(problem)


def comparable(level: Float) -> Float:
    """Levels rounded to thousandths of a tick, so that paths of one length have equal levels."""
    return np.rint(level * PARTS_OF_A_TICK)


def falling(level: Float) -> Int:
    """(n,) the tasks sorted by decreasing `comparable` level (n,), ties by index."""
    level = comparable(level)
    depth = level.max(initial=0) - level
    deepest = depth.max(initial=0)
    if deepest >= 2**62:
        return np.argsort(depth, kind="stable")
    # NumPy sorts 16-bit numbers in linear time, so a radix sort takes half as long as one sort.
    key = depth.astype(np.int64)
    order = np.argsort(key.astype(np.uint16), kind="stable")
    for shift in range(16, int(deepest).bit_length(), 16):
        order = order[np.argsort((key[order] >> shift).astype(np.uint16), kind="stable")]
    return order


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
    return engine.last_ready_first(native(problem), preference)


OrderName = Literal["cpd-topo", "dfs-topo", "m-topo"]

ORDERS: dict[OrderName, Callable[[Problem], Int]] = {"m-topo": m_topo, "dfs-topo": dfs_topo, "cpd-topo": cpd_topo}
"""The orders by their names in the papers."""
