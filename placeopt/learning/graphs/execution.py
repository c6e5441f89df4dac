"""Two features of an execution that GiPH does not have: critical tasks, and finish times by insertion.

GiPH's start-time potential ignores which tasks decide the makespan and whether a device is busy. Both are known from
the execution.
"""

from __future__ import annotations

import numpy as np

from placeopt.kernels import kernel
from placeopt.learning.graphs.gpnet import GpNet, Tables
from placeopt.model.arrays import Bool, Float, Int
from placeopt.policies.simulator import Run


@kernel(allocates=False)
def write_successors(by_start: Int, device: Int, head: Int, following: Int, before: Int) -> None:
    """Link the tasks of each device in the order of their starts; -1 at the ends."""
    for d in range(len(head)):
        head[d] = -1
    for place in range(len(by_start) - 1, -1, -1):
        i = by_start[place]
        d = device[i]
        following[i] = head[d]
        before[i] = -1
        if head[d] >= 0:
            before[head[d]] = i
        head[d] = i


@kernel(allocates=False)
def write_insertion(
    tables: Tables, duration: Int, start: Int, end: Int, head: Int, following: Int, potential: Float, gain: Float
) -> None:
    """Write for each node how much later its task ends if it moves there, into the first sufficient gap.

    The other tasks keep their times. Inputs arrive as the start-time potential says.
    """
    for i in range(len(start)):
        for node in range(tables.first[i], tables.first[i + 1]):
            d = tables.device[node]
            ticks = duration[i, d]
            ready = potential[node] + start[i]
            j = head[d]
            while j >= 0:
                if j != i:
                    if start[j] - ready >= ticks:
                        break
                    ready = max(ready, end[j])
                j = following[j]
            gain[node] = ready + ticks - end[i]


@kernel(allocates=False)
def mark_critical(tables: Tables, start: Int, end: Int, edge_ticks: Int, before: Int, critical: Bool) -> None:
    """Mark the tasks of the critical path: each starts when an input arrives or its device becomes free."""
    i = 0
    for j in range(len(end)):
        critical[j] = False
        if end[j] > end[i]:
            i = j
    while i >= 0:
        critical[i] = True
        latest, cause = -1, before[i]
        if cause >= 0:
            latest = end[cause]
        for place in range(tables.in_start[i], tables.in_start[i + 1]):
            k = tables.in_edge[place]
            u = tables.edge_source[k]
            if end[u] + edge_ticks[k] > latest:
                latest, cause = end[u] + edge_ticks[k], u
        if latest < start[i]:  # it waits for its release time or, with ports, for another transfer
            cause = -1
        i = cause


class Execution:
    """Computes both features for the nodes of a gpNet."""

    def __init__(self, net: GpNet, steps: int = 1) -> None:
        problem = net.problem
        n = problem.n_tasks
        self._net, self._duration = net, problem.duration
        self._position = np.empty(n, dtype=np.int64)
        self._position[problem.order] = np.arange(n)
        self._head = np.empty(problem.n_devices, dtype=np.int64)
        self._following, self._before = np.empty((2, n), dtype=np.int64)
        work = steps * (n + problem.n_edges)
        self._link = write_successors.select(work, chunked=True)
        self._mark = mark_critical.select(work, chunked=True)
        self._insert = write_insertion.select(steps * net.n_nodes * (1 + n // problem.n_devices), chunked=True)

    def features(self, device: Int, run: Run, potential: Float) -> tuple[Float, Float]:
        """(N,) each: 1 for critical tasks and -1 for others; the ticks by which the task would end later.

        Parameters
        ----------
        device
            (n,) the placement.
        potential
            (N,) start-time potential of each node.
        """
        net, n = self._net, len(device)
        by_start = np.lexsort((self._position, run.end, run.start))
        self._link(by_start, device, self._head, self._following, self._before)
        gain, critical = np.empty(net.n_nodes), np.empty(n, dtype=np.bool_)
        self._insert(net.tables, self._duration, run.start, run.end, self._head, self._following, potential, gain)
        self._mark(net.tables, run.start, run.end, run.edge_ticks, self._before, critical)
        return np.where(critical[net.task], 1.0, -1.0), gain
