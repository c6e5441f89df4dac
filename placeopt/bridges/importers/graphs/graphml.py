"""Import graphs in GraphML; `attributes` states what their attributes mean.

U. Brandes, M. Eiglsperger, I. Herman, M. Himsolt, M. S. Marshall: GraphML progress report, Graph Drawing 2001,
doi:10.1007/3-540-45848-4_59; http://graphml.graphdrawing.org/ defines the format. Keys give attributes their names,
types and defaults. Nodes of nested graphs are nodes of the graph; a node that contains a graph is a group, and dropped.
Ports and extensions, such as the graphics of yEd, are ignored. Hyperedges and undirected edges are errors.

The parser is Expat with positions. Document types are rejected, so that entities cannot expand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

from placeopt.bridges.importers.graphs.attributes import AttributedGraph, Edge, Node
from placeopt.bridges.importers.imported import Imported, ImportOptions, Sample
from placeopt.bridges.importers.task_graph import Place
from placeopt.errors import DocumentError, Issue
from placeopt.io.document import reading
from placeopt.io.files import StrPath, read_file
from placeopt.model.units import shown

NAME = "graphml"
DEEPEST = 100
"""Maximum number of levels of elements."""

_NUMBERS = {"int", "long", "float", "double"}
_TYPES = {*_NUMBERS, "boolean", "string"}


def recognises(sample: Sample) -> bool:
    """Whether a file looks like one of this format."""
    return b"<graphml" in sample.start or sample.suffix == ".graphml"


def read(path: StrPath, options: ImportOptions) -> Imported:
    """Read a file in this format.

    Raises a DocumentError if the file cannot be read, has a syntax error, or does not contain one directed graph; it
    lists every issue.
    """
    with reading(path):
        content = read_file(path)
    return _Reader(str(path)).graph(content).imported(options)


@dataclass(slots=True)
class _Key:
    """An attribute: its name in lower case, its type, the elements that have it, and its default."""

    name: str
    type: str
    elements: str
    default: Any = None


@dataclass(slots=True)
class _Element:
    """An open element, with the attributes that its `data` states."""

    tag: str
    stated: dict[str, str]
    line: int
    data: dict[str, Any] = field(default_factory=dict)
    text: list[str] = field(default_factory=list)


class _StopError(Exception):
    """The rest of the file cannot be read."""


class _Reader:
    """Reads one file."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._graph = AttributedGraph(Path(file).stem, f"{Path(file).name}, in GraphML", self._issue)
        self._keys: dict[str, _Key] = {}
        self._open: list[_Element] = []
        self._groups: dict[str, None] = {}
        self._graphs = 0
        self._directed = True
        self._parser: Any = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = lambda text: self._open[-1].text.append(text)
        self._parser.StartDoctypeDeclHandler = self._doctype

    def graph(self, content: bytes) -> AttributedGraph:
        """The graph in a file."""
        try:
            self._parser.Parse(content, True)
        except expat.ExpatError as error:
            message = f"is not valid XML: {expat.errors.messages[error.code]}"
            raise DocumentError([Issue(message, (), self._file, error.lineno, error.offset + 1)]) from None
        except _StopError as error:
            raise DocumentError([self._issue(str(error), self._line)]) from None
        except (LookupError, ValueError) as error:  # an unknown or wrong encoding
            raise DocumentError([self._issue(f"is not valid XML: {error}", None)]) from None
        if not self._graphs:
            self._graph.add("has no graph; expected a graph element", None)
        for group in self._groups:
            self._graph.nodes.pop(group, None)
        defaults = {
            element: {
                key.name: key.default
                for key in self._keys.values()
                if key.default is not None and key.elements in (element, "all")
            }
            for element in ("node", "edge")
        }
        for each in self._graph.nodes.values():
            each.attributes = {**defaults["node"], **each.attributes}
        for edge in self._graph.edges:
            edge.attributes = {**defaults["edge"], **edge.attributes}
        return self._graph

    @property
    def _line(self) -> int:
        return int(self._parser.CurrentLineNumber)

    def _doctype(self, *_: object) -> None:
        raise _StopError("has a document type (<!DOCTYPE ...>), which is not supported; remove it")

    def _start(self, name: str, stated: dict[str, str]) -> None:
        element = _Element(name.rpartition(" ")[2], stated, self._line)
        if not self._open and element.tag != "graphml":
            raise _StopError(f"begins with the element {shown(element.tag)}; expected graphml")
        if len(self._open) == DEEPEST:
            raise _StopError(f"is nested too deeply, more than {DEEPEST} levels")
        self._open.append(element)
        if element.tag == "graph":
            self._start_graph(element)
        elif element.tag == "node":
            self._start_node(element)
        elif element.tag == "edge" and element.stated.get("directed", str(self._directed)).lower() == "false":
            self._graph.add("is an undirected edge; expected a directed graph", element.line)
        elif element.tag == "hyperedge":
            self._graph.add("is a hyperedge; expected edges between two nodes", element.line)

    def _start_graph(self, element: _Element) -> None:
        holders = [each for each in self._open[:-1] if each.tag == "node"]
        if holders:
            self._groups.update(dict.fromkeys(holder.stated.get("id", "") for holder in holders))
            return
        self._graphs += 1
        if self._graphs > 1:
            self._graph.add("is another graph; only files with one graph are supported", element.line)
        self._directed = element.stated.get("edgedefault") != "undirected"
        if element.stated.get("edgedefault") not in ("directed", "undirected"):
            self._graph.add("edgedefault is missing; expected directed", element.line)

    def _start_node(self, element: _Element) -> None:
        number = element.stated.get("id")
        if not number:
            self._graph.add("the id of the node is missing", element.line)
        elif number in self._graph.nodes:
            first = self._graph.nodes[number].place
            self._graph.add(f"node {shown(number)} is stated twice, first in line {first}", element.line)
        else:
            self._graph.nodes[number] = Node({}, element.line)

    def _end(self, _name: str) -> None:
        element = self._open.pop()
        holder = self._open[-1] if self._open else None
        if element.tag == "key":
            self._end_key(element)
        elif element.tag == "default" and holder is not None:
            holder.data["default"] = "".join(element.text)
        elif element.tag == "data" and holder is not None and holder.tag in ("node", "edge"):
            self._end_data(element, holder)
        elif element.tag == "node" and element.stated.get("id") in self._graph.nodes:
            node = self._graph.nodes[element.stated["id"]]
            if node.place == element.line:
                node.attributes = element.data
        elif element.tag == "edge":
            ends = [element.stated.get(end) for end in ("source", "target")]
            if ends[0] and ends[1]:
                self._graph.edges.append(Edge(ends[0], ends[1], element.data, element.line))
            else:
                self._graph.add("the edge has no source or no target", element.line)

    def _end_key(self, element: _Element) -> None:
        number = element.stated.get("id")
        kind = element.stated.get("attr.type", "string")
        if not number:
            self._graph.add("the id of the key is missing", element.line)
        elif kind not in _TYPES:
            self._graph.add(
                f"{shown(kind)} is not a type of attributes; expected {', '.join(sorted(_TYPES))}", element.line
            )
        else:
            name = element.stated.get("attr.name", number).lower()
            key = self._keys[number] = _Key(name, kind, element.stated.get("for", "all"))
            if "default" in element.data:
                key.default = self._value(element.data["default"], key, element.line)

    def _end_data(self, element: _Element, holder: _Element) -> None:
        number = element.stated.get("key", "")
        key = self._keys.get(number)
        if key is None:
            self._graph.add(f"no key has the id {shown(number)}", element.line)
        else:
            holder.data[key.name] = self._value("".join(element.text), key, element.line)

    def _value(self, text: str, key: _Key, line: int) -> Any:
        """The value of an attribute; a number stays a text, which has all its digits."""
        text = text.strip()
        if key.type in _NUMBERS and text:
            try:
                float(text)
            except ValueError:
                self._graph.add(f"{key.name}: {shown(text)} is not a number ({key.type})", line)
                return None
        return text or None

    def _issue(self, message: str, place: Place) -> Issue:
        return Issue(message, (), self._file, place if isinstance(place, int) else None)
