"""NetworkX graphs as problems and back.

graph = po.to_networkx(problem)                        # all of the problem, in ticks and bytes
po.from_networkx(graph)                                # the same problem again
po.from_networkx(graph, objective="communication")     # with another objective
po.from_networkx(graph, {"gpu": {"count": 4}})         # a graph of your own, or other devices
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from placeopt.errors import UsageError
from placeopt.io.compiler import compile_spec
from placeopt.io.document import Files
from placeopt.io.files import StrPath
from placeopt.io.formats.problems import problem_header, start_ups
from placeopt.model.problem import UNLIMITED, Problem, check_problem
from placeopt.model.units import shown

if TYPE_CHECKING:
    import networkx as nx


KEPT = "placeopt"
"""The attribute of a graph that holds what is not in its nodes and edges: devices, links, objective, ..."""


def from_networkx(
    graph: nx.DiGraph[Any],
    devices: Mapping[str, Any] | None = None,
    *,
    links: Mapping[str, Any] | None = None,
    folder: StrPath | None = None,
    files: Files | None = None,
    **header: Any,
) -> Problem:
    """The problem of a directed graph whose node attributes are task keys of the spec.

    Parameters
    ----------
    graph
        Nodes are tasks, named by their text; a node's attributes are the keys of a task (`time`, `flops`, `memory`,
        `release`, `devices`, ...), an edge's attribute `payload` is the payload of that edge alone. Without it the edge
        carries the producer's `output`. Numbers are ticks and bytes unless `units` states a unit: with times in seconds
        pass `units={"time": "s"}`.
    devices, links
        The spec's sections of those names. Without `devices`, a graph that `to_networkx` made has its own devices,
        links and header; what is given here takes their place.
    folder, files
        What files the header may name, such as `placement={"file": "plan.json"}`; by default none, as in
        `placeopt.compile`.
    **header
        Further top-level keys of the spec: name, resolution, objective, contention, memory_model, operations, units,
        placement, current.

    Raises
    ------
    UsageError
        If the graph is undirected, has parallel edges, two nodes of one name, an attribute that edges decide, or no
        devices of its own where none are given.
    SpecError
        If what it describes is no sound problem; lists every issue.
    """
    directed = getattr(graph, "is_directed", None)
    if directed is None or not directed() or graph.is_multigraph():
        raise UsageError("from_networkx takes a directed graph without parallel edges (networkx.DiGraph)")
    if "tasks" in header or "graph" in header:
        raise UsageError("from_networkx takes the tasks from the graph, not from tasks or graph")
    kept: dict[str, Any] = {}
    if devices is None:
        kept = graph.graph.get(KEPT, {})
        if not isinstance(kept, dict) or "devices" not in kept:
            raise UsageError(
                "this graph has no devices of its own, as those of to_networkx do; from_networkx(graph, devices) takes "
                'them as a spec has them: {"gpu": {"count": 4, "memory": "16 GiB"}}'
            )
    tasks: dict[str, dict[str, Any]] = {}
    for node, attributes in graph.nodes(data=True):
        if str(node) in tasks:
            raise UsageError(f"two nodes of the graph are called {shown(str(node))}")
        if "after" in attributes:
            raise UsageError(f"node {shown(str(node))} has the attribute after; expected edges instead")
        after = {str(producer): graph.edges[producer, node].get("payload") for producer in graph.predecessors(node)}
        tasks[str(node)] = {**attributes, "after": after}
    document = {**kept, "placeopt": 1, "tasks": tasks, **header}
    if devices is not None:
        document["devices"] = dict(devices)
    if links is not None:
        document["links"] = dict(links)
    return compile_spec(document, folder=folder, files=files)


def to_networkx(problem: Problem) -> nx.DiGraph[str]:
    """The task graph, with the attributes that `from_networkx` reads.

    Nodes have `time` (ticks per device, the only one where the task is fixed), `memory` (bytes: resident, output,
    scratch), `output` (bytes) where edges share it, `release`, `deadline` (ticks), `migration` (relocation, as ticks
    to start up) and `backward_of` (a task) where the task has one, and `colocate` and `separate` labels where it has
    any; edges have `payload` (bytes) unless shared. The graph's attribute `placeopt` has the rest of the problem as a
    spec document: devices, links, resolution, objective.
    All of it is plain data, fit for JSON (`networkx.node_link_data`). Of two edges between the same tasks the later
    one stands for both.
    """
    import networkx as nx

    check_problem("to_networkx", problem)
    graph: nx.DiGraph[str] = nx.DiGraph(name=problem.name, **{KEPT: problem_header(problem)})
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
        if problem.relocation[i].any():
            graph.nodes[name]["migration"] = {"startup": start_ups(problem, i)}
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
