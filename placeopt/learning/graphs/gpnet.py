"""gpNet: the graph of all placement options of all tasks, kept up to date move by move.

Y. Hu et al., "GiPH: Generalizable placement learning for adaptive heterogeneous computing", MLSys 2023,
arXiv:2305.14562, section 4.2.1 and algorithm B.1. A node (i, k) is task i on a feasible device k. The nodes of the
current placement are the pivots. For each edge (i, j) of the task graph, each node of i is connected to the pivot of
j, and the pivot of i to each node of j: sum_i |D_i| |E_i| - |E| edges for the degrees |E_i| and the numbers of devices
|D_i|.

A move changes the edges of one task only, so `GpNet.move` writes these alone. The number of edges never changes, and
neither does the position of those that belong to one edge of the task graph: first the edges into the nodes of j, then
those from the nodes of i other than its pivot.
"""

from __future__ import annotations

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Float, Int
from placeopt.model.graph import path_lengths
from placeopt.model.native import native
from placeopt.model.problem import Problem
from placeopt.policies.critical import Links

EDGE_DATA = 4
"""Rows of `GpNet.data`: bytes, ticks per byte, latency, transfer ticks."""


class GpNet:
    """The gpNet of a placement of one problem.

    Attributes
    ----------
    task, device
        (N,) task and device of each node, sorted by task, then by device.
    first
        (n + 1,) the nodes of task i are first[i]..first[i + 1].
    block
        (e + 1,) the edges for edge k of the task graph are block[k]..block[k + 1].
    pivot
        (n,) the node of each task in the current placement.
    source, target
        (E,) nodes of each edge.
    data
        (4, E) of each edge: bytes, ticks per byte (the inverse bandwidth, which is 0 and not infinite on one device),
        latency in ticks, and transfer ticks. A transfer within a colocation group takes no time.
    depth, height
        (N,) edges on the longest path to, and from, the node's task in the task graph. As every node has edges from,
        or to, a node of each neighbour of its task, these are also the node's levels in gpNet.
    """

    def __init__(self, problem: Problem, device: Int) -> None:
        """Build the gpNet of a placement (n,)."""
        self.problem = problem
        self.task, self.device = (np.ascontiguousarray(each) for each in np.nonzero(problem.feasible))
        self.n_nodes = len(self.task)
        options = np.bincount(self.task, minlength=problem.n_tasks)
        self.first = np.concatenate(([0], np.cumsum(options)))
        self._node = np.full(problem.feasible.shape, -1, dtype=np.int64)
        self._node[self.task, self.device] = np.arange(self.n_nodes)
        i, j = problem.edge_source, problem.edge_target
        self.block = np.concatenate(([0], np.cumsum(options[j] + options[i] - 1)))
        self.n_edges = int(self.block[-1])
        ones = np.ones(problem.n_tasks, dtype=np.int64)
        self.depth = path_lengths(problem.order, problem.out_start, j, ones)[self.task]
        producer = problem.edge_source[problem.in_edge]
        self.height = path_lengths(problem.order[::-1], problem.in_start, producer, ones)[self.task]
        pivot = self._node[np.arange(problem.n_tasks), device]
        self._net = engine.GpNet(native(problem), self.first, self.device, self.block, pivot)
        self.pivot, self.source, self.target, self.data = (
            self._net.pivot, self._net.source, self._net.target, self._net.data
        )  # fmt: skip

    def node(self, task: int, device: int) -> int:
        """The node of a task on a feasible device."""
        return int(self._node[task, device])

    def move(self, tasks: Int, device: int) -> None:
        """Put tasks on a feasible device."""
        self._net.move(tasks, self._node[tasks, device])

    def potential(self, start: Int, end: Int) -> Float:
        """(N,) start-time potential of each node in ticks, if the tasks start and end at these ticks."""
        return self._net.potential(start, end)

    def insertion(self, potential: Float, start: Int, end: Int, links: Links) -> Float:
        """(N,) ticks by which each task would end later if it moved to each node, into the first sufficient gap.

        The other tasks keep their times (n,). Inputs arrive as the start-time potential says.
        """
        return self._net.insertion(potential, start, end, links.head, links.following, engine.current_stop())
