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
from placeopt.model.arrays import Int, csr
from placeopt.model.problem import Problem, devices_by_class, transfer_ticks
from placeopt.model.stages import backward, rules

from .amounts import Amounts, amounts_of, moved


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
class Nodes(Amounts):
    """Nodes, classes of devices, and what nodes take of them."""

    node: Int
    """(n,) node of each task."""
    before: Int
    after: Int
    """(p,) pairs of nodes in the order of their stages."""
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
    def leaders(self) -> Int:
        """(c,) the first device of each class."""
        return np.array([members[0] for members in self.devices])

    @property
    def size(self) -> Int:
        """(c,) the number of devices of each class."""
        return np.array([len(members) for members in self.devices], dtype=np.int64)


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
    pairs = np.unique(np.stack((node[a], node[b]), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    devices = devices_by_class(problem)
    amounts = amounts_of(problem, node, np.array([members[0] for members in devices]))
    items, single = _items(problem, node, optimistic=optimistic)
    crossing = bool((behind[source] & ~behind[target]).any())
    exact = single and (opposite or same) and not crossing and len(_links(problem)) <= 1
    return Nodes(
        **amounts, node=node, before=pairs[:, 0], after=pairs[:, 1], items=items, devices=devices,
        opposite=not same, complete=opposite or same, exact=exact,
    )  # fmt: skip


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


def _items(problem: Problem, node: Int, *, optimistic: bool) -> tuple[Items, bool]:
    """Return the items between nodes, and whether each is sent once however its consumers are placed."""
    edge, consumers, entering = moved(problem, node)
    start, consumer = csr(len(edge), consumers)
    payload = problem.payload[edge]
    ticks = _ticks(problem, payload, optimistic=optimistic)
    entered = csr(len(edge), consumers[entering])
    found = Items(node[problem.edge_source[edge]], start, consumer, *entered, ticks, payload)
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
    pairs = np.stack((component[a], component[b]), axis=1)
    start, target = csr(k, pairs[pairs[:, 0] != pairs[:, 1]])
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
