"""The graph of a pipeline whose devices have one stage each: tasks that must share a stage are one node.

Nodes are the colocation groups, joined where they depend on each other in a circle: a stage that such a circle leaves
would be entered again. The order of nodes is that of their forward stages. It comes from the edges between forward
tasks, and from those between backward tasks, reversed: backward stages run in the opposite order. Some files state the
edges between backward tasks in the direction of the forward edges; backward stages then run in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import Problem, devices_by_class, transfer_ticks
from placeopt.model.stages import backward, forward_in_training, rules


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """Data that may move between nodes: one output, or the payload of one edge.

    Attributes
    ----------
    producer
        (x,) node.
    consumers, entering
        Nodes that consume it, and those that consume it with a forward task of training, as CSR: start (x + 1,) and
        node.
    ticks
        (x,) ticks that it takes on a device that sends or receives it.
    payload
        (x,) bytes.
    """

    producer: Int
    consumer_start: Int
    consumer: Int
    entering_start: Int
    entering: Int
    ticks: Int
    payload: Int


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """Nodes, classes of devices, and what nodes take of them."""

    node: Int
    """(n,) node of each task."""
    before: Int
    after: Int
    """(p,) pairs of nodes in the order of their stages."""
    computing: Int
    again: Int
    """(k, c) ticks of a node on a class, and of its forward tasks that have backward tasks."""
    forbidden: Bool
    """(k, c), whether the class may not run the node."""
    fixed: Int
    kept: Int
    source: Int
    gradient: Int
    """(k,) bytes: held once, outputs of forward tasks, those that are kept even if outputs are computed again, and
    gradients."""
    directions: Bool
    """(k, 2), whether the node has forward tasks, and backward tasks."""
    items: Items
    devices: list[list[int]]
    """The devices of each class."""
    opposite: bool
    """Whether backward stages run in the opposite order of the forward stages."""
    complete: bool
    """Whether every placement with one stage per device is a sequence of sets of nodes, which costs no less than its
    nodes and items say."""
    exact: bool
    """Whether such a sequence is also a placement, which costs no more."""

    @property
    def count(self) -> int:
        """Number of nodes."""
        return len(self.fixed)

    def rings(self, problem: Problem) -> Int:
        """Latency, and the fraction of ticks per byte, (3, c) between two devices of each class; 0, 0 / 1 for one."""
        ring = np.zeros((3, len(self.devices)), dtype=np.int64)
        ring[2] = 1
        for c, members in enumerate(self.devices):
            if len(members) > 1:
                a, b = members[:2]
                ring[:, c] = problem.latency[a, b], problem.byte_ticks_num[a, b], problem.byte_ticks_den[a, b]
        return ring


def contracted(problem: Problem, *, optimistic: bool = True) -> Nodes:
    """Return the nodes of a problem; transfers take the ticks of the fastest link, or of the slowest."""
    behind = backward(problem)
    source, target = problem.edge_source, problem.edge_target
    ahead_edge = ~behind[source] & ~behind[target]
    behind_edge = behind[source] & behind[target]
    group, g = problem.group, problem.n_groups
    reach = _reachable(g, group[source[ahead_edge]], group[target[ahead_edge]])
    first, second = group[source[behind_edge]].tolist(), group[target[behind_edge]].tolist()
    opposite = all(reach[b] >> a & 1 for a, b in zip(first, second, strict=True))
    same = not opposite and all(reach[a] >> b & 1 for a, b in zip(first, second, strict=True))
    turned = (source[behind_edge], target[behind_edge])[:: 1 if same else -1]
    a, b = np.concatenate((source[ahead_edge], turned[0])), np.concatenate((target[ahead_edge], turned[1]))
    node = _components(g, group[a], group[b])[group]
    k = int(node.max(initial=-1)) + 1
    pairs = np.unique(np.stack((node[a], node[b]), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    devices = devices_by_class(problem)
    leaders = [members[0] for members in devices]
    computing = np.zeros((k, len(devices)), dtype=np.int64)
    again = np.zeros_like(computing)
    trained = forward_in_training(problem)
    np.add.at(computing, node, problem.duration[:, leaders])
    np.add.at(again, node, problem.duration[:, leaders] * trained[:, None])
    allowed = np.ones(computing.shape, dtype=np.bool_)
    np.logical_and.at(allowed, node, problem.feasible[:, leaders])
    left, right = problem.separation.T
    allowed[node[left[node[left] == node[right]]]] = False
    stored = ~behind & (~trained | (np.diff(problem.in_start) == 0))
    columns = [problem.memory, problem.output * ~behind, problem.output * stored, rules(problem).gradient]
    fixed, kept, first, gradient = (_sums(node, column, k) for column in columns)
    directions = np.zeros((k, 2), dtype=np.bool_)
    directions[node, behind.astype(np.int64)] = True
    items, single = _items(problem, node, trained, optimistic=optimistic)
    crossing = bool((behind[source] & ~behind[target]).any())
    exact = single and (opposite or same) and not crossing and len(_links(problem)) <= 1
    return Nodes(
        node=node, before=pairs[:, 0], after=pairs[:, 1], computing=computing, again=again, forbidden=~allowed,
        fixed=fixed, kept=kept,
        source=first, gradient=gradient, directions=directions, items=items, devices=devices,
        opposite=not same, complete=opposite or same, exact=exact,
    )  # fmt: skip


def _sums(node: Int, amount: Int, k: int) -> Int:
    total = np.zeros(k, dtype=np.int64)
    np.add.at(total, node, amount)
    return total


def _components(size: int, a: Int, b: Int) -> Int:
    """(size,) strongly connected components, numbered by their first member."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(range(size))
    graph.add_edges_from(zip(a.tolist(), b.tolist(), strict=True))
    label = np.empty(size, dtype=np.int64)
    for component in nx.strongly_connected_components(graph):
        members = sorted(component)
        label[members] = members[0]
    return np.unique(label, return_inverse=True)[1].astype(np.int64)


def _items(problem: Problem, node: Int, trained: Bool, *, optimistic: bool) -> tuple[Items, bool]:
    """Return the items between nodes, and whether each is sent once however its consumers are placed."""
    source, target = problem.edge_source, problem.edge_target
    between = np.flatnonzero(node[source] != node[target])
    key = np.where(problem.shared, source, problem.n_tasks + np.arange(problem.n_edges))[between]
    _, first, item = np.unique(key, return_index=True, return_inverse=True)
    edge = between[first]
    x = len(edge)
    pairs = np.unique(np.stack((item, node[target[between]]), axis=1), axis=0)
    forward = np.flatnonzero(trained[target[between]])
    entering = np.unique(np.stack((item[forward], node[target[between[forward]]]), axis=1), axis=0)
    start = np.searchsorted(pairs[:, 0], np.arange(x + 1)).astype(np.int64)
    found = Items(
        producer=node[source[edge]],
        consumer_start=start,
        consumer=np.ascontiguousarray(pairs[:, 1]),
        entering_start=np.searchsorted(entering[:, 0], np.arange(x + 1)).astype(np.int64),
        entering=np.ascontiguousarray(entering[:, 1]),
        ticks=_ticks(problem, problem.payload[edge], optimistic=optimistic),
        payload=problem.payload[edge],
    )
    return found, rules(problem).multicast or bool((np.diff(start) <= 1).all())


def _links(problem: Problem) -> list[tuple[int, int, int]]:
    """The distinct links whose transfers take time of a device: latency, and num ticks per den bytes."""
    free = rules(problem).free_transfers
    a, b = np.nonzero(~np.eye(problem.n_devices, dtype=np.bool_) & ~(free[:, None] & free[None, :]))
    rows = np.stack((problem.latency[a, b], problem.byte_ticks_num[a, b], problem.byte_ticks_den[a, b]), axis=1)
    return [(x, y, z) for x, y, z in np.unique(rows, axis=0).tolist()]


def _ticks(problem: Problem, payload: Int, *, optimistic: bool) -> Int:
    ways = [transfer_ticks(payload, latency, num, den) for latency, num, den in _links(problem)]
    if not ways:
        return np.zeros(len(payload), dtype=np.int64)
    return np.asarray((np.minimum if optimistic else np.maximum).reduce(ways), dtype=np.int64)


def _reachable(size: int, a: Int, b: Int) -> list[int]:
    """For each node, the bits of all nodes that paths lead to, itself included."""
    component = _components(size, a, b)
    k = int(component.max(initial=-1)) + 1
    pairs = np.unique(np.stack((component[a], component[b]), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    start = np.searchsorted(pairs[:, 0], np.arange(k + 1)).astype(np.int64)
    target = np.ascontiguousarray(pairs[:, 1])
    order = engine.topological_order(start, target)
    below = [0] * k
    for node, c in enumerate(component.tolist()):
        below[c] |= 1 << node
    for c in reversed(order.tolist()):
        for other in target[start[c] : start[c + 1]].tolist():
            below[c] |= below[other]
    return [below[c] for c in component.tolist()]


def orders(nodes: Nodes) -> list[Int]:
    """Return some orders of the nodes, first to last: breadth first, and depth first."""
    k = nodes.count
    after: list[list[int]] = [[] for _ in range(k)]
    waiting = [0] * k
    for a, b in zip(nodes.before.tolist(), nodes.after.tolist(), strict=True):
        after[a].append(b)
        waiting[b] += 1
    found = []
    for last in (False, True):
        left, ready, order = waiting.copy(), [v for v in range(k) if waiting[v] == 0], []
        while ready:
            v = ready.pop() if last else ready.pop(0)
            order.append(v)
            for u in after[v]:
                left[u] -= 1
                if left[u] == 0:
                    ready.append(u)
        found.append(np.array(order, dtype=np.int64))
    return found
