"""NetworkX graphs as problems and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from placeopt.compiler import compile_spec
from placeopt.errors import UsageError
from placeopt.ir import UNLIMITED, Problem
from placeopt.units import shown

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
        `release`, `devices`, ...), an edge's attribute `payload` is the payload of that edge alone. Without it the edge
        carries the producer's `output`.
    devices, links
        The spec's sections of those names.
    **header
        Further top-level keys of the spec: name, resolution, objective, contention, memory_model, operations, units,
        placement.

    Raises
    ------
    UsageError
        If the graph is undirected, has parallel edges, two nodes of one name, or an attribute that edges decide.
    SpecError
        If what it describes is no sound problem; lists every issue.
    """
    if not graph.is_directed() or graph.is_multigraph():
        raise UsageError("from_networkx takes a directed graph without parallel edges (networkx.DiGraph)")
    if "tasks" in header or "graph" in header:
        raise UsageError("from_networkx takes the tasks from the graph, not from tasks or graph")
    tasks: dict[str, dict[str, Any]] = {}
    for node, attributes in graph.nodes(data=True):
        if str(node) in tasks:
            raise UsageError(f"two nodes of the graph are called {shown(str(node))}")
        if "after" in attributes:
            raise UsageError(f"node {shown(str(node))} has the attribute after; expected edges instead")
        after = {str(producer): graph.edges[producer, node].get("payload") for producer in graph.predecessors(node)}
        tasks[str(node)] = {**attributes, "after": after}
    document = {"placeopt": 1, "devices": dict(devices), "tasks": tasks, **header}
    if links is not None:
        document["links"] = dict(links)
    return compile_spec(document)


def to_networkx(problem: Problem) -> nx.DiGraph[str]:
    """The task graph, with the attributes that `from_networkx` reads.

    Nodes have `time` (ticks per device, the only one where the task is fixed), `memory` (bytes: resident, output,
    scratch), `output` (bytes) where edges share it, `release`, `deadline` (ticks) and `backward_of` (a task) where the
    task has one, and `colocate` and `separate` labels where it has any; edges have `payload` (bytes) unless shared.
    """
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph(name=problem.name)
    names, devices = problem.task_names, problem.device_names
    labels = problem.group.tolist()
    sizes = Counter(labels)
    for i, name in enumerate(names):
        feasible = [d for d, allowed in enumerate(problem.feasible[i].tolist()) if allowed]
        memory = {
            key: int(amounts[i])
            for key, amounts in (
                ("resident", problem.resident),
                ("output", problem.output),
                ("scratch", problem.scratch),
            )
        }
        graph.add_node(name, time={devices[d]: int(problem.duration[i, d]) for d in feasible}, memory=memory)
        if problem.release[i] > 0:
            graph.nodes[name]["release"] = int(problem.release[i])
        if problem.deadline[i] != UNLIMITED:
            graph.nodes[name]["deadline"] = int(problem.deadline[i])
        if problem.forward[i] != i:
            graph.nodes[name]["backward_of"] = names[problem.forward[i]]
        if sizes[labels[i]] > 1:
            graph.nodes[name]["colocate"] = [f"group {labels[i]}"]
    for a, b in problem.separation.tolist():
        for i in (a, b):
            graph.nodes[names[i]].setdefault("separate", []).append(f"{names[a]} and {names[b]}")
    edges = zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True)
    for (a, b), payload, shared in zip(edges, problem.payload.tolist(), problem.shared.tolist(), strict=True):
        if shared:
            graph.nodes[names[a]]["output"] = payload
            graph.add_edge(names[a], names[b])
        else:
            graph.add_edge(names[a], names[b], payload=payload)
    return graph
