"""NetworkX graphs as problems and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from placeopt.compiler import compile_spec
from placeopt.errors import UsageError
from placeopt.ir import Problem

if TYPE_CHECKING:
    import networkx as nx


def from_networkx(
    graph: nx.DiGraph[Any], devices: Mapping[str, Any], *, links: Mapping[str, Any] | None = None, **header: Any
) -> Problem:
    """The problem of a directed graph whose node attributes are task keys of the spec.

    Parameters
    ----------
    graph
        Nodes are tasks, named by their text; a node's attributes are the keys of a task (`time`, `flops`, `memory`,
        `devices`, ...), an edge's attribute `payload` is the payload of that edge alone. Without it the edge
        carries the producer's `output`.
    devices, links
        The spec's sections of those names.
    **header
        Further top-level keys of the spec: name, resolution, objective, contention, memory_model, operations, units.

    Raises
    ------
    UsageError
        If the graph is undirected, has parallel edges, or two nodes of one name.
    SpecError
        If what it describes is no sound problem; lists every issue.
    """
    if not graph.is_directed() or graph.is_multigraph():
        raise UsageError("from_networkx takes a directed graph without parallel edges (networkx.DiGraph)")
    tasks: dict[str, dict[str, Any]] = {}
    for node, attributes in graph.nodes(data=True):
        if str(node) in tasks:
            raise UsageError(f'two nodes of the graph are called "{node}"')
        after = {str(producer): graph.edges[producer, node].get("payload") for producer in graph.predecessors(node)}
        tasks[str(node)] = {**attributes, "after": after}
    document = {"placeopt": 1, "devices": dict(devices), "tasks": tasks, **header}
    if links is not None:
        document["links"] = dict(links)
    return compile_spec(document)


def to_networkx(problem: Problem) -> nx.DiGraph[str]:
    """The task graph: nodes by name with `duration` (ticks per device name), `memory` (bytes); edges with `payload`."""
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph(name=problem.name)
    for i, name in enumerate(problem.task_names):
        duration = {
            device: int(problem.duration[i, d])
            for d, device in enumerate(problem.device_names)
            if problem.feasible[i, d]
        }
        graph.add_node(name, duration=duration, memory=int(problem.memory[i]))
    names = problem.task_names
    for edge in range(problem.n_edges):
        producer, consumer = names[problem.edge_source[edge]], names[problem.edge_target[edge]]
        graph.add_edge(producer, consumer, payload=int(problem.payload[edge]))
    return graph
