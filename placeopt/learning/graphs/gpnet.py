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

from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel, prepared
from placeopt.model.arrays import Float, Int
from placeopt.model.graph import path_lengths
from placeopt.model.problem import Problem, transfer_ticks

EDGE_DATA = 4
"""Rows of `GpNet.data`: bytes, ticks per byte, latency, transfer ticks."""


class Tables(NamedTuple):
    """The part of a gpNet that no move changes, as one argument of the kernels."""

    first: Int  # (n + 1,) the nodes of task i are first[i]..first[i + 1], by device
    device: Int  # (N,) device of each node
    block: Int  # (e + 1,) gpNet's edges for edge k of the task graph are block[k]..block[k + 1]
    edge_source: Int
    edge_target: Int
    in_start: Int
    in_edge: Int
    release: Int
    group: Int
    payload: Int
    latency: Int
    byte_ticks_num: Int
    byte_ticks_den: Int


@kernel(transfer_ticks, allocates=False)
def write_edges(tables: Tables, edges: Int, pivot: Int, source: Int, target: Int, data: Float) -> None:
    """Write gpNet's edges for the given edges of the task graph."""
    first, device = tables.first, tables.device
    for k in edges:
        i, j = tables.edge_source[k], tables.edge_target[k]
        together = tables.group[i] == tables.group[j]
        size = tables.payload[k]
        slot = tables.block[k]
        inward = first[j + 1] - first[j]
        node = first[i]
        for place in range(tables.block[k + 1] - slot):
            if place < inward:
                u, v = pivot[i], first[j] + place
            else:
                if node == pivot[i]:
                    node += 1
                u, v = node, pivot[j]
                node += 1
            source[slot], target[slot] = u, v
            a, b = device[u], device[v]
            data[0, slot] = size
            if a == b:
                data[1, slot], data[2, slot], data[3, slot] = 0.0, 0.0, 0.0
            else:
                num, den, latency = tables.byte_ticks_num[a, b], tables.byte_ticks_den[a, b], tables.latency[a, b]
                data[1, slot], data[2, slot], data[3, slot] = num / den, latency, 0.0
                if not together:
                    data[3, slot] = transfer_ticks(size, latency, num, den)
            slot += 1


@kernel(allocates=False)
def write_potential(tables: Tables, start: Int, end: Int, ticks: Float, potential: Float) -> None:
    """Write the start-time potential of each node: the last arrival of an input there, minus the actual start.

    `ticks` are the transfer ticks of gpNet's edges, `start` and `end` those of the tasks.
    """
    for i in range(len(start)):
        low, high = tables.first[i], tables.first[i + 1]
        for node in range(low, high):
            potential[node] = tables.release[i]
        for place in range(tables.in_start[i], tables.in_start[i + 1]):
            k = tables.in_edge[place]
            done = end[tables.edge_source[k]]
            slot = tables.block[k] - low
            for node in range(low, high):
                potential[node] = max(potential[node], done + ticks[slot + node])
        for node in range(low, high):
            potential[node] -= start[i]


class GpNet:
    """The gpNet of a placement of one problem.

    Attributes
    ----------
    task, device
        (N,) task and device of each node, sorted by task, then by device.
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

    def __init__(self, problem: Problem, device: Int, steps: int = 1) -> None:
        """Build the gpNet of a placement (n,); `steps` is the expected number of moves."""
        self.problem = problem
        self.task, self.device = (np.ascontiguousarray(each) for each in np.nonzero(problem.feasible))
        self.n_nodes = len(self.task)
        options = np.bincount(self.task, minlength=problem.n_tasks)
        first = np.concatenate(([0], np.cumsum(options)))
        self._node = np.full(problem.feasible.shape, -1, dtype=np.int64)
        self._node[self.task, self.device] = np.arange(self.n_nodes)
        i, j = problem.edge_source, problem.edge_target
        block = np.concatenate(([0], np.cumsum(options[j] + options[i] - 1)))
        self.n_edges = int(block[-1])
        self.tables = Tables(first, self.device, block, **{name: getattr(problem, name) for name in Tables._fields[3:]})
        ones = np.ones(problem.n_tasks, dtype=np.int64)
        self.depth = path_lengths(problem.order, problem.out_start, j, ones)[self.task]
        self.height = _heights(problem)[self.task]
        self.pivot = self._node[np.arange(problem.n_tasks), device]
        self.source, self.target = np.empty((2, self.n_edges), dtype=np.int64)
        self.data = np.empty((EDGE_DATA, self.n_edges))
        work = (self.n_edges + self.n_nodes) * (steps + 1)
        self._write = write_edges.select(work, chunked=True)
        self._write_potential = write_potential.select(work, chunked=True)
        self._prepared = prepared(self._write, self.tables), prepared(self._write_potential, self.tables)
        self._update(np.arange(problem.n_edges))

    def node(self, task: int, device: int) -> int:
        """The node of a task on a feasible device."""
        return int(self._node[task, device])

    def move(self, tasks: Int, device: int) -> None:
        """Put tasks on a feasible device."""
        problem = self.problem
        self.pivot[tasks] = self._node[tasks, device]
        edges = [np.arange(problem.out_start[i], problem.out_start[i + 1]) for i in tasks.tolist()]
        edges += [problem.in_edge[problem.in_start[i] : problem.in_start[i + 1]] for i in tasks.tolist()]
        self._update(np.concatenate(edges))

    def _update(self, edges: Int) -> None:
        self._write(self._prepared[0], edges, self.pivot, self.source, self.target, self.data)

    def potential(self, start: Int, end: Int) -> Float:
        """(N,) start-time potential of each node in ticks, if the tasks start and end at these ticks."""
        found = np.empty(self.n_nodes)
        self._write_potential(self._prepared[1], start, end, self.data[3], found)
        return found


def _heights(problem: Problem) -> Int:
    """(n,) edges on the longest path from each task."""
    height = np.zeros(problem.n_tasks, dtype=np.int64)
    for i in problem.order[::-1].tolist():
        consumers = problem.edge_target[problem.out_start[i] : problem.out_start[i + 1]]
        height[i] = height[consumers].max(initial=-1) + 1
    return height
