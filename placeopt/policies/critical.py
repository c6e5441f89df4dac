"""The critical path of an execution: each task starts when an input arrives or its device becomes free."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem


class Links(NamedTuple):
    """The tasks of each device in the order of their starts; -1 at the ends."""

    head: Int  # (m,) first task of each device
    following: Int  # (n,) next task on the same device
    before: Int  # (n,) previous task on the same device


@kernel(allocates=False)
def trace(
    in_start: Int, in_edge: Int, edge_source: Int, start: Int, end: Int, edge_ticks: Int, before: Int, path: Int
) -> int:
    """Write the critical path, last to first, and return its length; there must be a task."""
    i = 0
    for j in range(len(end)):
        if end[j] > end[i]:
            i = j
    count = 0
    while i >= 0:
        path[count] = i
        count += 1
        latest, cause = -1, before[i]
        if cause >= 0:
            latest = end[cause]
        for place in range(in_start[i], in_start[i + 1]):
            k = in_edge[place]
            u = edge_source[k]
            if end[u] + edge_ticks[k] > latest:
                latest, cause = end[u] + edge_ticks[k], u
        if latest < start[i]:  # it waits for its release time or, with ports, for another transfer
            cause = -1
        i = cause
    return count


class CriticalPaths:
    """Finds the critical paths of executions of one problem; `executions` is their expected number."""

    def __init__(self, problem: Problem, executions: int = 1) -> None:
        n = problem.n_tasks
        self._problem = problem
        self._position = np.empty(n, dtype=np.int64)
        self._position[problem.order] = np.arange(n)
        self._path = np.empty(n, dtype=np.int64)
        self._trace = trace.select(executions * (n + problem.n_edges), chunked=True)

    def links(self, device: Int, start: Int, end: Int) -> Links:
        """The tasks of each device, if they start and end at these ticks; ties in topological order."""
        order = np.lexsort((self._position, end, start, device))
        on = device[order]
        first = np.ones(len(on), dtype=np.bool_)
        first[1:] = on[1:] != on[:-1]
        head = np.full(self._problem.n_devices, -1)
        head[on[first]] = order[first]
        following, before = np.full((2, len(order)), -1)
        earlier, later = order[:-1][~first[1:]], order[1:][~first[1:]]
        following[earlier], before[later] = later, earlier
        return Links(head, following, before)

    def path(self, start: Int, end: Int, edge_ticks: Int, before: Int) -> Int:
        """The critical path, first to last, of an execution with these times; `before` as in `Links`."""
        problem = self._problem
        if not problem.n_tasks:
            return self._path
        graph = problem.in_start, problem.in_edge, problem.edge_source
        count = self._trace(*graph, start, end, edge_ticks, before, self._path)
        return self._path[:count][::-1].copy()
