"""Prove a lower bound by branching on the devices of clusters.

A node gives a device to each of the first k clusters, in a fixed order: those with the largest shares of the work and
of the memory first. Its children give the next cluster each device that may run it. Of the devices of a class that no
cluster uses yet only the first is tried: they are interchangeable (`Problem.device_class`). A node's bound is the best
quick bound (`placeopt.bounding.quick`) of the problem with only these devices for these clusters, and at least that of
its parent. A node that is proved infeasible is dropped. The node with the least bound is expanded first, the deepest of
equals, until that bound reaches the value of a known schedule.

**Claim.** At any time, no schedule is better than the least bound of the open nodes, or than the known schedule if that
is less. The children of a node contain its schedules, up to swaps of interchangeable devices, which keep feasibility
and objective. So every schedule is in an open node, up to such swaps: none is in a dropped one. ∎

A node with a device for every cluster is bounded by a solver, each time for twice as long as before. A path to such a
node has g nodes with at most m children each, but there are up to m^g: the bound is good for few clusters.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placeopt.bounding.quick import best_bound, prove_infeasible
from placeopt.model.arrays import Int
from placeopt.model.building import with_changes
from placeopt.model.objective import Value
from placeopt.model.problem import Problem, group_memory
from placeopt.model.schedule import Schedule
from placeopt.orchestration.result import Result
from placeopt.protocol import Clock, Termination

NAME = "clusters"
"""The name of the bound."""

FIRST = 0.5
"""Seconds for the first attempt to bound a leaf."""

LeafSolver = Callable[[Problem, float], Result]
"""Solves a problem in which every cluster has one device, within some seconds."""


@dataclass(frozen=True, slots=True, order=True)
class _Node:
    """A node; nodes are compared by bound, then depth, then number."""

    bound: Value
    height: int  # number of clusters without a device
    number: int
    homes: tuple[int, ...]  # the devices of the first clusters
    attempts: int = 0  # attempts to bound a leaf


def branched(
    problem: Problem, known: Value, seconds: float, solve_leaf: LeafSolver, should_stop: Callable[[], bool]
) -> tuple[Value, list[Schedule]]:
    """Return a lower bound of the objective's first level, at most `known`, and the schedules of leaves.

    `known` is the value of a feasible schedule. The colocation groups are the clusters.
    """
    clock, order = Clock(seconds), _order(problem)
    first = best_bound(problem).value
    heap = [_Node(first, len(order), 0, ())]
    made, schedules = 1, []
    while heap and heap[0].bound < known and not (clock.over or should_stop()):
        node = heapq.heappop(heap)
        if node.height == 0:
            remaining = clock.remaining or FIRST
            result = solve_leaf(_restricted(problem, order, node.homes), min(FIRST * 2**node.attempts, remaining))
            if result.schedule is not None and result.feasible and result.objective is not None:
                schedules.append(result.schedule)
                known = min(known, result.objective)
            if result.termination is not Termination.INFEASIBLE:
                bound = node.bound if result.bound is None else max(node.bound, result.bound)
                heapq.heappush(heap, _Node(bound, 0, node.number, node.homes, node.attempts + 1))
            continue
        for device in _choices(problem, order, node.homes):
            homes = (*node.homes, device)
            child = _restricted(problem, order, homes)
            if prove_infeasible(child) is not None:
                continue
            bound = max(node.bound, best_bound(child).value)
            heapq.heappush(heap, _Node(bound, node.height - 1, made, homes))
            made += 1
    return (min(heap[0].bound, known) if heap else known), schedules


def _order(problem: Problem) -> Int:
    """Return the clusters (g,) by decreasing sum of their shares of the work and of the memory."""
    work = np.zeros(problem.n_groups)
    np.add.at(work, problem.group, problem.duration.mean(axis=1))
    memory = group_memory(problem).astype(np.float64)
    return np.argsort(-(work / max(work.sum(), 1.0) + memory / max(memory.sum(), 1.0)), kind="stable")


def _choices(problem: Problem, order: Int, homes: tuple[int, ...]) -> list[int]:
    """Return the devices for the next cluster: all that may run it, unused ones of a class once."""
    allowed = problem.feasible[problem.group == order[len(homes)]].all(axis=0)
    used, fresh = np.isin(np.arange(problem.n_devices), homes), set()
    found = []
    for device in np.flatnonzero(allowed).tolist():
        label = int(problem.device_class[device])
        if used[device] or label not in fresh:
            found.append(device)
        if not used[device]:
            fresh.add(label)
    return found


def _restricted(problem: Problem, order: Int, homes: tuple[int, ...]) -> Problem:
    """Return the problem with the first clusters on their devices."""
    allowed = np.ones((problem.n_groups, problem.n_devices), dtype=np.bool_)
    placed = order[: len(homes)]
    allowed[placed] = False
    allowed[placed, homes] = True
    return with_changes(problem, feasible=problem.feasible & allowed[problem.group])
