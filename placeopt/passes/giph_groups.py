"""GiPH's grouping of operators: the cheapest task with a single producer joins this producer, repeatedly.

Y. Hu, C. Zhang, E. Andert, H. Singh, A. Shrivastava, J. Laudon, Y. Zhou, B. Iannucci, C. Joe-Wong: GiPH: Generalizable
placement learning for adaptive heterogeneous computing. MLSys 2023, arXiv:2305.14562, section 5.2: "The grouping is
done by iteratively merging the operator with in-degree one and lowest cost into its sole predecessor until the graph
size is reduced to 40 nodes." The sequence follows Placeto (Addanki et al. 2019, arXiv:1906.08879).

A merged group is an operator again: its in-degree is the number of other groups with an edge to it, and its cost is the
sum of its tasks. A group with a single producing group has no other path from it, so merging them creates no cycle.
`placeopt.passes.contraction` defines the fused task.

Details that the paper leaves open, and departures:

- The cost of a task is its mean duration over the devices that may run it. Among equal costs, the group whose first
  task has the lowest index is merged.
- If no group has a single producer, the pass ends with more tasks. Tasks without producers are never merged into
  others, so a graph with many entries keeps as many groups.
- Two groups of tasks are merged only if some device may run both colocation groups together and has enough memory for
  them, and no separation forbids it. The colocation groups are united. A task that cannot join its producer now cannot
  later, because groups only grow.

O(e log n), plus the time for devices and separations of each merge.
"""

from __future__ import annotations

from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import ClassVar

import numpy as np
from pydantic import Field

from placeopt.model.arrays import Int
from placeopt.model.building import by_first_appearance
from placeopt.model.levels import mean_durations
from placeopt.model.problem import Problem
from placeopt.passes.contraction import clusters, contraction, initial_unions
from placeopt.passes.protocol import Reduction
from placeopt.passes.rebuilding import contradictory
from placeopt.protocol import Settings
from placeopt.protocol.citations import bibtex


class GiphGroups(Settings):
    """Merges the cheapest tasks with a single producer into this producer."""

    name: ClassVar[str] = "giph-groups"
    exact: ClassVar[bool] = False
    summary: ClassVar[str] = "merges the cheapest task with a single producer into it until a given number is left"
    gives_up: ClassVar[str] = "schedules that split a group, run other tasks in between, or send data before it ends"
    citation: ClassVar[str] = bibtex("hu2023giph")

    tasks: int = Field(default=40, ge=1)
    """Number of tasks at which merging ends."""

    def apply(self, problem: Problem) -> Reduction | None:
        """The problem of the groups."""
        if problem.n_tasks <= self.tasks or contradictory(problem):
            return None
        label, group = merged(problem, self.tasks)
        left = int(label.max()) + 1
        if left == problem.n_tasks:
            return None
        found = contraction(problem, clusters(label, problem.order), group)
        if left > self.tasks:
            return replace(found, explanation=f"{found.explanation}; no other task can join a single producer")
        return found


def merged(problem: Problem, most: int) -> tuple[Int, Int]:
    """(n,) the cluster of each task, in order of first appearance, and (n,) the united colocation groups."""
    n, cost = problem.n_tasks, mean_durations(problem).tolist()
    producers: list[set[int]] = [set() for _ in range(n)]
    consumers: list[set[int]] = [set() for _ in range(n)]
    for source, target in zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True):
        producers[target].add(source)
        consumers[source].add(target)
    groups, group = initial_unions(problem), problem.group.tolist()
    into = np.arange(n)
    candidates = [(cost[i], i) for i in range(n) if len(producers[i]) == 1]
    heapify(candidates)
    left = n
    while left > most and candidates:
        price, task = heappop(candidates)
        if into[task] != task or price != cost[task]:  # merged since, or it has grown and is listed again
            continue
        (producer,) = producers[task]
        if not groups.join(group[producer], group[task]):
            continue
        into[task] = producer
        left -= 1
        cost[producer] += price
        consumers[producer].discard(task)
        for consumer in sorted(consumers[task]):
            several = len(producers[consumer]) > 1
            producers[consumer].discard(task)
            producers[consumer].add(producer)
            consumers[producer].add(consumer)
            if several and len(producers[consumer]) == 1:
                heappush(candidates, (cost[consumer], consumer))
        if len(producers[producer]) == 1:
            heappush(candidates, (cost[producer], producer))
    for task in problem.order.tolist():  # a producer comes before its consumers
        into[task] = into[into[task]]
    return by_first_appearance(into), groups.parent[problem.group]
