"""Import graphs in JSON: JSON Graph Format and the node-link data of NetworkX; `attributes` states what they mean.

- JSON Graph Format (https://jsongraphformat.info): `graph` with `nodes`, an object by id (version 2) or a list
  (version 1), and `edges` with `source` and `target`. Attributes are the `metadata` of nodes and edges; the `label` of
  an edge counts as one, too.
- Node-link data (`networkx.node_link_data`): `nodes` with `id`, `edges` or `links` with `source` and `target`. All
  other keys are attributes. Data of `placeopt.to_networkx` becomes the same problem again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from placeopt.bridges.importers.graphs.attributes import AttributedGraph, Edge, Node
from placeopt.bridges.importers.imported import Imported, ImportOptions, Sample
from placeopt.bridges.importers.json_file import JsonFile
from placeopt.bridges.importers.task_graph import Place
from placeopt.bridges.networks import network_of
from placeopt.errors import DocumentError, SpecError, in_file_order
from placeopt.io.compiler import compile_spec
from placeopt.io.files import StrPath
from placeopt.model.units import is_real, shown

NAME = "json-graph"
KEPT = "placeopt"
"""The graph attribute of `placeopt.to_networkx` with devices, links and other sections."""

_NODES = re.compile(rb'"nodes"\s*:')
_GRAPH = re.compile(rb'"(?:graphs?|directed|multigraph)"\s*:')


def recognises(sample: Sample) -> bool:
    """Whether a file looks like one of this format."""
    return _NODES.search(sample.json) is not None and _GRAPH.search(sample.json) is not None


def read(path: StrPath, options: ImportOptions) -> Imported:
    """Read a file in one of these formats.

    Raises a DocumentError if the file cannot be read, or does not contain one directed graph; it lists every issue with
    its position.
    """
    file = JsonFile(path, "an object with graph, or with nodes and edges")
    if "nodes" in file.data:
        return _NodeLink(file).imported(options)
    return _json_graph(file).imported(options)


def _graph_of(file: JsonFile, name: Any) -> AttributedGraph:
    path = Path(file.name)
    title = name if isinstance(name, str) and name else path.stem
    return AttributedGraph(title, f"{path.name}, in JSON", file.issue, issues=file.issues)


def _lower(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {key.lower(): value for key, value in attributes.items()}


def _json_graph(file: JsonFile) -> AttributedGraph:
    """A graph in JSON Graph Format."""
    at: tuple[str | int, ...] = ("graph",)
    data = file.data.get("graph")
    if "graphs" in file.data:
        graphs = file.list(file.data["graphs"], "graphs")
        if len(graphs) != 1:
            file.add(f"contains {len(graphs)} graphs; only files with one graph are supported", "graphs")
            file.fail()
        at, data = ("graphs", 0), graphs[0]
    data = file.mapping(data, *at)
    if not isinstance(data.get("nodes"), list | dict):
        file.add("nodes is missing; expected an object or a list", *at)
    graph = _graph_of(file, data.get("label") or data.get("id"))
    stated = data.get("nodes")
    if isinstance(stated, dict):
        entries = [(name, entry, (*at, "nodes", name)) for name, entry in stated.items()]
    else:
        entries = [
            (file.mapping(entry, *at, "nodes", k).get("id"), entry, (*at, "nodes", k))
            for k, entry in enumerate(file.list(stated, *at, "nodes"))
        ]
    for name, entry, place in entries:
        node = file.mapping(entry, *place)
        text = file.text(name, *place, *(() if isinstance(stated, dict) else ("id",)))
        if text is not None and text in graph.nodes:
            file.add(f"node {shown(text)} is stated twice", *place)
        elif text is not None:
            graph.nodes[text] = Node(_lower(file.mapping(node.get("metadata"), *place, "metadata")), place)
    if data.get("hyperedges"):
        file.add("hyperedges are not supported; expected edges between two nodes", *at, "hyperedges")
    directed = data.get("directed", True)
    for k, entry in enumerate(file.list(data.get("edges"), *at, "edges")):
        place = (*at, "edges", k)
        edge = file.mapping(entry, *place)
        if edge.get("directed", directed) is not True:
            file.add("is an undirected edge; expected a directed graph", *place)
        ends = [file.text(edge.get(end), *place, end) for end in ("source", "target")]
        attributes = _lower(file.mapping(edge.get("metadata"), *place, "metadata"))
        if edge.get("label") is not None:
            attributes.setdefault("label", edge["label"])
        if ends[0] is not None and ends[1] is not None:
            graph.edges.append(Edge(ends[0], ends[1], attributes, place))
    return graph


class _NodeLink:
    """Converts node-link data."""

    def __init__(self, file: JsonFile) -> None:
        self._file = file
        data = file.data
        self._kept = file.mapping(data.get("graph"), "graph")
        self._graph = _graph_of(file, self._kept.get("name"))
        if data.get("directed") is not True:
            file.add("directed is not true; expected a directed graph", *(("directed",) if "directed" in data else ()))
        self._key = "edges" if "edges" in data or "links" not in data else "links"
        self._read_nodes(data["nodes"])
        self._read_edges(data.get(self._key))

    def imported(self, options: ImportOptions) -> Imported:
        """The problem."""
        if isinstance(self._kept.get(KEPT), dict):
            return self._own(options)
        for node in self._graph.nodes.values():
            node.attributes = _lower(node.attributes)
        for edge in self._graph.edges:
            edge.attributes = _lower(edge.attributes)
        return self._graph.imported(options)

    def _read_nodes(self, value: Any) -> None:
        file = self._file
        for k, entry in enumerate(file.list(value, "nodes")):
            node = file.mapping(entry, "nodes", k)
            name = self._name(node.get("id"), "nodes", k, "id")
            if name is None:
                continue
            if name in self._graph.nodes:
                file.add(f"node {shown(name)} is stated twice", "nodes", k, "id")
            else:
                attributes = {key: each for key, each in node.items() if key != "id"}
                self._graph.nodes[name] = Node(attributes, ("nodes", k))

    def _read_edges(self, value: Any) -> None:
        file = self._file
        for k, entry in enumerate(file.list(value, self._key)):
            place = (self._key, k)
            edge = file.mapping(entry, *place)
            source, target = (self._name(edge.get(end), *place, end) for end in ("source", "target"))
            if source is not None and target is not None:
                attributes = {key: each for key, each in edge.items() if key not in ("source", "target", "key")}
                self._graph.edges.append(Edge(source, target, attributes, place))

    def _name(self, value: Any, *path: str | int) -> str | None:
        """The name of a node: a text, or a number or a list (a tuple in Python) as Python shows it."""
        if isinstance(value, list):
            return str(_tuple(value))
        if is_real(value):
            return str(value)
        return self._file.text(value, *path)

    def _own(self, options: ImportOptions) -> Imported:
        """A problem that `placeopt.to_networkx` wrote."""
        file, nodes = self._file, self._graph.nodes
        tasks: dict[str, dict[str, Any]] = {
            name: {**node.attributes, "after": dict[str, Any]()} for name, node in nodes.items()
        }
        places: dict[tuple[str, str], Place] = {}
        for edge in self._graph.edges:
            if edge.target in tasks:
                tasks[edge.target]["after"][edge.source] = edge.attributes.get("payload")
                places[edge.source, edge.target] = edge.place
            else:
                self._graph.add(f"no node has the id {shown(edge.target)}", edge.place)
        file.check()
        document = {**self._kept[KEPT], "placeopt": 1, "tasks": tasks}
        network, notes = ({}, ()) if options.network is None else network_of(options.network)
        document |= network
        document |= {key: value for key in ("name", "resolution") if (value := getattr(options, key)) is not None}
        try:
            compile_spec(document)
        except SpecError as error:
            raise DocumentError(
                in_file_order(file.issue(each.message, self._place(each.path, places)) for each in error.issues)
            ) from None
        return Imported(document, notes)

    def _place(self, path: tuple[str | int, ...], places: Mapping[tuple[str, str], Place]) -> Place:
        """The path in the file of a path in the document."""
        if path[:1] != ("tasks",) or len(path) < 2:
            return ("graph", KEPT, *path)
        name = str(path[1])
        if len(path) > 3 and path[2] == "after":
            return places.get((str(path[3]), name))
        place = self._graph.nodes[name].place
        assert isinstance(place, tuple)
        return (*place, *path[2:])


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
