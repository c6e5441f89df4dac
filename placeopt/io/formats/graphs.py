"""Convert NetworkX graphs to problems and back.

graph = po.to_networkx(problem)                        # all of the problem, in ticks and bytes
po.from_networkx(graph)                                # the same problem again
po.from_networkx(graph, objective="communication")     # with another objective
po.from_networkx(graph, {"gpu": {"count": 4}})         # your own graph, or other devices
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from placeopt.errors import UsageError, suggestion
from placeopt.io.compiler import compile_spec
from placeopt.io.document import Files
from placeopt.io.files import StrPath
from placeopt.model.documents import problem_header, task_entry
from placeopt.model.problem import Problem, check_problem
from placeopt.model.units import shown

if TYPE_CHECKING:
    import networkx as nx


KEPT = "placeopt"
"""The attribute of a graph that contains devices, links, objective and other sections."""


def from_networkx(
    graph: nx.DiGraph[Any],
    devices: Mapping[str, Any] | None = None,
    *,
    links: Mapping[str, Any] | None = None,
    folder: StrPath | None = None,
    files: Files | None = None,
    **header: Any,
) -> Problem:
    """Compile a directed graph whose node attributes are task keys of the spec.

    Parameters
    ----------
    graph
        Nodes are tasks, named by their text. Node attributes are the keys of a task (`time`, `flops`, `memory`,
        `release`, `devices`, ...). The edge attribute `payload` is the payload of that edge only; without it, the edge
        carries the producer's `output`. Numbers are ticks and bytes unless `units` states a unit: for times in seconds
        pass `units={"time": "s"}`.
    devices, links
        The spec's sections of those names. They replace those of a graph from `to_networkx`.
    folder, files
        Which files the header may name, such as `placement={"file": "plan.json"}`; by default none, as in
        `placeopt.compile`.
    **header
        Further top-level keys of the spec: name, resolution, objective, contention, memory_model, operations, units,
        placement, current.

    Raises
    ------
    UsageError
        If the graph is undirected, has parallel edges, two nodes of one name, an attribute `after`, or no devices.
    SpecError
        If the described problem is not valid; lists every issue.
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
                "this graph has no devices, unlike those from to_networkx; pass devices as in a spec, such as "
                '{"gpu": {"count": 4, "memory": "16 GiB"}}'
            )
    tasks: dict[str, dict[str, Any]] = {}
    for node, attributes in graph.nodes(data=True):
        if str(node) in tasks:
            raise UsageError(f"two nodes of the graph are called {shown(str(node))}")
        if "after" in attributes:
            raise UsageError(f"node {shown(str(node))} has the attribute after; expected edges instead")
        after = {str(producer): graph.edges[producer, node].get("payload") for producer in graph.predecessors(node)}
        for producer in graph.predecessors(node):
            for key in graph.edges[producer, node]:
                if key != "payload" and (meant := suggestion(key, ["payload"])):
                    raise UsageError(
                        f"the edge from {shown(str(producer))} to {shown(str(node))} has {shown(key)}{meant}"
                    )
        tasks[str(node)] = {**attributes, "after": after}
    document = {**kept, "placeopt": 1, "tasks": tasks, **header}
    for key, section in (("devices", devices), ("links", links)):
        if section is not None:
            if not isinstance(section, Mapping):
                raise UsageError(f"{key} is a {type(section).__name__}; expected a dict, as in a problem file")
            document[key] = dict(section)
    return compile_spec(document, folder=folder, files=files)


def to_networkx(problem: Problem) -> nx.DiGraph[str]:
    """Convert a problem to its task graph, with the attributes that `from_networkx` reads.

    Nodes have `time` (ticks per feasible device) and `memory` (bytes: resident, output, scratch). If the task has them,
    also `output` (bytes, if edges share it), `release`, `deadline` (ticks), `migration` (relocation, as ticks to start
    up), `backward_of` (a task), and `colocate` and `separate` labels. Edges have `payload` (bytes) unless shared. The
    graph's attribute `placeopt` contains the rest of the problem as a spec document: devices, links, resolution,
    objective. All of it is plain data for JSON (`networkx.node_link_data`). Of parallel edges only the last is kept.
    """
    import networkx as nx

    check_problem("to_networkx", problem)
    graph: nx.DiGraph[str] = nx.DiGraph(name=problem.name, **{KEPT: problem_header(problem)})
    names = problem.task_names
    labels = problem.group.tolist()
    sizes = Counter(labels)
    for i, name in enumerate(names):
        graph.add_node(name, **task_entry(problem, i))
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
