"""Nodes and edges with attributes, as general graph formats state them, and their meaning as tasks and transfers.

Such formats do not say what their attributes mean. The names below are those that schedulers use; they are compared
without case. In each list, the first name that occurs in the graph counts for all nodes, or for all edges:

- times of nodes: `time`, `duration`, `runtime`, `cost`, `weight`; or their work: `flops`, `work`, `size`;
- payloads of edges: `payload`, `bytes`, `data`, `size`; or the time of their transfers: `cost`, `communication`,
  `weight`, and `label` if all labels are numbers;
- further keys of nodes: `memory`, `output`, `op`, `colocate`, with the meaning that they have in a problem file.

A value is a number or a text with a unit, such as `3 ms` or `4 MiB`. Numbers without a unit are seconds, bytes, FLOP.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from placeopt.bridges.importers.imported import Imported, ImportOptions
from placeopt.bridges.importers.task_graph import (
    BANDWIDTHS,
    NANOSECONDS,
    TICKS,
    Place,
    Task,
    TaskGraph,
    costs_text,
    decimals,
    timed_network,
)
from placeopt.bridges.networks import network_of
from placeopt.errors import DocumentError, Issue, counted, in_file_order
from placeopt.model import units
from placeopt.model.units import Dimension, QuantityError, shown

TIMES = ("time", "duration", "runtime", "cost", "weight")
WORK = ("flops", "work", "size")
PAYLOADS = ("payload", "bytes", "data", "size")
COSTS = ("cost", "communication", "weight", "label")
AMOUNTS = ("memory", "output")
TEXTS = ("op", "colocate")
BANDWIDTH = "1 GB/s"
"""Bandwidth of all links if edges state payloads."""


@dataclass(slots=True)
class Node:
    """A node with its attributes, whose names are in lower case."""

    attributes: Mapping[str, Any]
    place: Place = None


@dataclass(slots=True)
class Edge:
    """An edge with its attributes, whose names are in lower case."""

    source: str
    target: str
    attributes: Mapping[str, Any]
    place: Place = None


@dataclass(slots=True)
class AttributedGraph:
    """The nodes of a graph by name, and its edges."""

    name: str
    source: str
    """Origin of the graph, for readers."""
    issue: Callable[[str, Place], Issue]
    """Makes an issue of a message and a position in the file."""
    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    issues: list[Issue] = field(default_factory=list)
    _notes: list[str] = field(default_factory=list)

    def add(self, message: str, place: Place) -> None:
        """Add an issue."""
        self.issues.append(self.issue(message, place))

    def imported(self, options: ImportOptions) -> Imported:
        """Return the problem of the graph.

        Raises a DocumentError if the graph has issues, or its attributes or edges are not valid; it lists every issue
        with its position.
        """
        for edge in self.edges:
            for name in (edge.source, edge.target):
                if name not in self.nodes:
                    self.add(f"no node has the id {shown(name)}", edge.place)
        keys = {name: self._keys(node) for name, node in self.nodes.items()}
        timed, worked = self._tasks()
        joined, costly = self._payloads()
        if self.issues:
            raise DocumentError(in_file_order(self.issues))
        exponent = decimals([*timed.values(), *(joined.values() if costly else ())])
        if worked or (joined and not costly):
            exponent = max(exponent, NANOSECONDS)
        network, exponent = self._network(options, exponent, payloads=bool(joined), costly=costly, worked=worked)
        tasks = {
            name: Task(None if name in worked else timed.get(name, Fraction(0)), node.place, keys=keys[name])
            for name, node in self.nodes.items()
        }
        places: dict[tuple[str, str], Place] = {}
        for edge in self.edges:
            pair = edge.source, edge.target
            amount = joined.get(pair, Fraction(0)) * (10**exponent if costly else 1)
            shared = pair not in joined and "output" in tasks[edge.source].keys
            tasks[edge.target].after[edge.source] = None if shared else math.ceil(amount)
            places.setdefault(pair, edge.place)
        for name, work in worked.items():
            tasks[name].keys["flops"] = math.ceil(work)
        described = costs_text(exponent) if costly else ""
        graph = TaskGraph(options.name or self.name, self.source, tasks, described, edge_places=places)
        return graph.imported(network, options.resolution or TICKS[exponent], self.issue, self._notes)

    def _tasks(self) -> tuple[dict[str, Fraction], dict[str, Fraction]]:
        """The seconds, or else the FLOP, of the nodes that state them."""
        kind = self._chosen((node.attributes for node in self.nodes.values()), (*TIMES, *WORK))
        if kind is None:
            if self.nodes:
                self._notes.append(f"no node states a time ({', '.join((*TIMES, *WORK))}); every task takes 1 s")
            return dict.fromkeys(self.nodes, Fraction(1)), {}
        dimension = units.TIME if kind in TIMES else units.WORK
        found = {
            name: amount
            for name, node in self.nodes.items()
            if (amount := self._amount(node.attributes.get(kind), kind, dimension, node.place)) is not None
        }
        what = "time" if kind in TIMES else "work"
        self._notes.append(f"the {what} of a task is the attribute {kind} of its node")
        if len(found) < len(self.nodes):
            self._notes.append(f"{counted(len(self.nodes) - len(found), 'node')} without {kind}; counted as 0")
        return (found, {}) if kind in TIMES else ({}, dict.fromkeys(self.nodes, Fraction(0)) | found)

    def _payloads(self) -> tuple[dict[tuple[str, str], Fraction], bool]:
        """The payload in bytes of each pair of nodes whose edges state one; or else, with True, the cost in seconds."""
        kind = self._chosen((edge.attributes for edge in self.edges), (*PAYLOADS, *COSTS))
        found: dict[tuple[str, str], Fraction] = {}
        pairs = {(edge.source, edge.target) for edge in self.edges}
        if len(pairs) < len(self.edges):
            self._notes.append(
                f"{counted(len(self.edges) - len(pairs), 'parallel edge')} added to the first of its kind"
            )
        if kind is None:
            return found, False
        dimension = units.PAYLOAD if kind in PAYLOADS else units.TIME
        for edge in self.edges:
            amount = self._amount(edge.attributes.get(kind), kind, dimension, edge.place)
            if amount is not None:
                pair = edge.source, edge.target
                found[pair] = found.get(pair, Fraction(0)) + amount
        what = "payload" if kind in PAYLOADS else "transfer time"
        self._notes.append(f"the {what} of an edge is its attribute {kind}")
        if len(found) < len(pairs):
            self._notes.append(f"{counted(len(pairs) - len(found), 'edge')} without {kind}")
        return found, kind in COSTS

    def _chosen(self, attributes: Iterable[Mapping[str, Any]], kinds: tuple[str, ...]) -> str | None:
        """The first of the names that some node or edge states; `label` counts only if all labels are numbers."""
        numeric = True
        found = set[str]()
        for each in attributes:
            found.update(each)
            numeric &= _is_numeral(each.get("label", "0"))
        return next((kind for kind in kinds if kind in found and (kind != "label" or numeric)), None)

    def _keys(self, node: Node) -> dict[str, Any]:
        """Further keys of a task."""
        keys: dict[str, Any] = {}
        for key in AMOUNTS:
            amount = self._amount(node.attributes.get(key), key, units.MEMORY, node.place)
            if amount is not None:
                keys[key] = math.ceil(amount)
        for key in TEXTS:
            text = node.attributes.get(key)
            if text is not None:
                keys[key] = str(text)
        return keys

    def _amount(self, value: Any, kind: str, dimension: Dimension, place: Place) -> Fraction | None:
        """A value in base units; None, with an issue unless it is missing, if it is not an amount."""
        if value is None or value == "":
            return None
        try:
            return units.parse(value, dimension).value
        except QuantityError as error:
            self.add(f"{kind}: {error}", place)
            return None

    def _network(
        self, options: ImportOptions, exponent: int, *, payloads: bool, costly: bool, worked: Mapping[str, Fraction]
    ) -> tuple[dict[str, Any], int]:
        """The devices and links, and the number of decimals of a tick in seconds."""
        if not worked or options.network is not None:
            network, exponent = timed_network(options, exponent, None, self._notes, costs=costly)
        else:
            network, notes = network_of(None)
            self._notes += notes
            if costly:
                network["links"] = {"default": {"bandwidth": BANDWIDTHS[exponent]}}
        if payloads and not costly and "links" not in network:
            network["links"] = {"default": {"bandwidth": BANDWIDTH}}
            self._notes.append(f"the file states no bandwidth; devices are joined by {BANDWIDTH}")
        return network, exponent


def _is_numeral(value: Any) -> bool:
    try:
        units.parse(value, units.TIME)
    except QuantityError:
        return False
    return True
