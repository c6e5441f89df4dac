"""Import operator and layer graphs in the format of Tarnawski et al. 2020.

Jakub Tarnawski, Amar Phanishayee, Nikhil R. Devanur, Divya Mahajan, Fanny Nina Paravecino: Efficient Algorithms for
Device Placement of DNN Graph Operators, NeurIPS 2020, arXiv:2006.16423; the files come with
https://github.com/msr-fiddle/dnn-partitioning, whose README describes them. They are JSON objects with

- `maxSizePerFPGA`, the memory of an accelerator in bytes, `maxFPGAs` and `maxCPUs`, the numbers of devices;
- `nodes`: `id`, `supportedOnFpga` (whether an accelerator can run it), `cpuLatency` and `fpgaLatency` (times in ms),
  `size` (bytes on an accelerator), perhaps `colorClass` (nodes of one class share a device) and `name`;
- `edges`: `sourceId`, `destId`, `cost` (ms to move the source's output between an accelerator and CPU memory).

Other keys are for debugging and are skipped. The model: accelerators have limited memory, CPUs do not. Moving an output
takes its cost between an accelerator and a CPU, twice that between accelerators (through CPU memory), and no time
between CPUs. An output moves once to each device that needs it, unless edges of one node differ in cost (which the
format advises against) and then have transfers of their own.

A cost is a time, so payloads represent picoseconds: a link of 1 TB/s takes one picosecond per byte. Times are rounded
to the nearest picosecond (the floats of these files have noise in the sixteenth digit). The compiler rounds them up to
ticks, so that an objective exceeds that of the file by less than a tick per task and transfer.

With the objective `period`, the load of an accelerator counts its computing and the costs of all outputs that it sends
or receives, each output once; a CPU only computes (section 3 of the paper). In training graphs, `isBackwardNode` marks
backward nodes. Their forward node has the same `colorClass`. Edges between backward nodes have the direction of those
between their forward nodes, although gradients flow in the opposite direction. Loads do not depend on it.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from placeopt.bridges.importers.imported import Imported, ImportOptions, Sample
from placeopt.bridges.importers.json_file import JsonFile
from placeopt.errors import listing
from placeopt.io.document import collection_paused
from placeopt.io.files import StrPath
from placeopt.io.spec import MOST_DEVICES
from placeopt.io.syntax import Path as Place
from placeopt.model.graph import find_cycle
from placeopt.model.units import is_number, is_whole, shown

NAME = "dnn-partitioning"
_PS_PER_MS = 10**9
_LONGEST = 2**60 // _PS_PER_MS
"""Maximum number of milliseconds that a payload in picoseconds can represent."""
_LARGEST = 2**60


def recognises(sample: Sample) -> bool:
    """Whether a file looks like one of this format."""
    return b'"maxSizePerFPGA"' in sample.json


def read(path: StrPath, options: ImportOptions) -> Imported:
    """Read a file in this format; see `read_dnn_partitioning`."""
    resolution = options.resolution or "1 ns"
    return Imported(
        read_dnn_partitioning(path, name=options.name, resolution=resolution, objective=options.objective or "makespan")
    )


def read_dnn_partitioning(
    path: StrPath, *, name: str | None = None, resolution: str = "1 ns", objective: str = "makespan"
) -> dict[str, Any]:
    """Read a file in this format as a spec document for `placeopt.compile`.

    Parameters
    ----------
    name
        Name of the problem; by default the file name without its ending.
    resolution
        Length of a tick.
    objective
        `makespan` or `period`.

    Raises
    ------
    DocumentError
        If the file cannot be read or is not a valid graph; lists every issue with its position.
    UsageError
        If the objective is another one.
    """
    pipelined = ImportOptions(objective=objective).pipelined
    with collection_paused():
        file = JsonFile(path, "an object with maxSizePerFPGA, maxFPGAs, maxCPUs, nodes and edges")
        return _Reader(file, pipelined).document(Path(path).stem if name is None else name, resolution)


@dataclass(frozen=True, slots=True)
class _Node:
    """The index of a node and its task."""

    row: int
    name: str
    task: dict[str, Any]


def _rounded(time: float) -> float | int:
    """Milliseconds to the nearest picosecond, an int if whole."""
    near = round(time, 9)
    return int(near) if near == int(near) else near


class _Reader:
    """Converts one file to a document."""

    def __init__(self, file: JsonFile, pipelined: bool) -> None:
        self._file = file
        self._pipelined = pipelined

    def document(self, name: str, resolution: str) -> dict[str, Any]:
        """The document; raises a DocumentError that lists every issue."""
        file, data = self._file, self._file.data
        memory = self._number(data, (), "maxSizePerFPGA", "bytes", _LARGEST)
        counts = [
            self._number(data, (), key, "the number of devices", MOST_DEVICES, whole=True)
            for key in ("maxFPGAs", "maxCPUs")
        ]
        sound = None not in counts
        accelerators, cpus = (count or 0 for count in counts)
        if sound and not 0 < accelerators + cpus <= MOST_DEVICES:
            file.add(f"there are {accelerators + cpus} devices; expected 1 to {MOST_DEVICES}", "maxFPGAs")
        entries, edges = (file.list(self._stated(data, (), key, "a list"), key) for key in ("nodes", "edges"))
        nodes = self._nodes(entries, sound, accelerators, cpus)
        self._edges(edges, nodes)
        pairs = self._backward(entries, nodes) if self._pipelined else {}
        file.check()
        for node, forward in pairs.items():
            nodes[node].task["backward_of"] = nodes[forward].name
        devices: dict[str, Any] = {}
        overrides = []
        if accelerators:
            devices["accelerator"] = {"count": accelerators, "memory": int(memory or 0)}
            overrides.append({"between": ["accelerator", "accelerator"], "bandwidth": "500 GB/s"})
        if cpus:
            devices["cpu"] = {"count": cpus}
        links: dict[str, Any] = {"overrides": overrides}
        rules: dict[str, Any] = {}
        if self._pipelined:
            links = {"default": {"bandwidth": "1 TB/s"}}
            rules = {"objective": "period", "pipeline": {"stages": "contiguous", "multicast": True}}
            if cpus:
                devices["cpu"]["pipeline"] = {"transfers": "free"}
        elif accelerators and cpus:
            overrides.append({"between": ["accelerator", "cpu"], "bandwidth": "1 TB/s"})
        return {
            "placeopt": 1,
            "name": name,
            "description": "A byte of payload stands for a picosecond of transfer between an accelerator and a CPU.",
            "source": f"{Path(file.name).name}, in the format of Tarnawski et al., NeurIPS 2020",
            "resolution": resolution,
            "units": {"time": "ms"},
            "devices": devices,
            "links": links,
            **rules,
            "tasks": {node.name: node.task for node in nodes.values()},
        }

    def _nodes(self, entries: list[Any], sound: bool, accelerators: int, cpus: int) -> dict[int, _Node]:
        """The nodes by id; `sound` is whether the numbers of devices are known."""
        stated = [entry.get("name") for entry in entries if isinstance(entry, dict)]
        names = Counter(name for name in stated if isinstance(name, str) and name)
        by_name = names.total() == len(names) == len(entries)
        colours = Counter(
            entry["colorClass"] for entry in entries if isinstance(entry, dict) and is_whole(entry.get("colorClass"))
        )
        nodes: dict[int, _Node] = {}
        for row, entry in enumerate(entries):
            path = ("nodes", row)
            if not isinstance(entry, dict):
                self._file.add(f"expected a mapping with id, latencies and size, got {shown(entry)}", *path)
                continue
            number = self._id(entry, path, "id")
            supported = self._flag(entry, path, "supportedOnFpga")
            slow = self._number(entry, path, "cpuLatency", "a time in ms", _LONGEST)
            fast = self._number(entry, path, "fpgaLatency", "a time in ms", _LONGEST) if supported else None
            size = self._number(entry, path, "size", "bytes", _LARGEST)
            time: dict[str, float | int] = {}
            if accelerators and fast is not None:
                time["accelerator"] = _rounded(fast)
            if cpus and slow is not None:
                time["cpu"] = _rounded(slow)
            if sound and supported is False and not cpus and accelerators:
                self._file.add("cannot run on an accelerator, and there are no CPUs (maxCPUs is 0)", *path)
            colour = entry.get("colorClass")
            if colour is not None and not is_whole(colour):
                self._file.add(f"{shown(colour)} is not a class; expected a whole number", *path, "colorClass")
                continue
            if number is None:
                continue
            if number in nodes:
                self._file.add(f"duplicate id {number}: nodes[{nodes[number].row}] has it too", *path, "id")
                continue
            task: dict[str, Any] = {"time": time, "memory": {"resident": math.ceil(size or 0), "output": 0}}
            if colour is not None and colours[colour] > 1:
                task["colocate"] = f"class {colour}"
            nodes[number] = _Node(row, entry["name"] if by_name else str(number), task)
        return nodes

    def _backward(self, entries: list[Any], nodes: dict[int, _Node]) -> dict[int, int]:
        """The forward node of each backward node: the first one of its class; none if the class has none."""
        forward: dict[int, int] = {}
        backward: dict[int, int] = {}
        for number, node in nodes.items():
            entry = entries[node.row]
            colour = entry.get("colorClass")
            stated = entry.get("isBackwardNode") is not None
            if stated and self._flag(entry, ("nodes", node.row), "isBackwardNode"):
                backward[number] = colour
            elif colour is not None:
                forward.setdefault(colour, number)
        return {number: forward[colour] for number, colour in backward.items() if colour in forward}

    def _edges(self, entries: list[Any], nodes: dict[int, _Node]) -> None:
        """Set `output` and `after` of the nodes' tasks."""
        found: dict[tuple[int, int], tuple[int, int]] = {}
        for row, entry in enumerate(entries):
            path = ("edges", row)
            if not isinstance(entry, dict):
                self._file.add(f"expected a mapping with sourceId, destId and cost, got {shown(entry)}", *path)
                continue
            ends = [self._id(entry, path, key) for key in ("sourceId", "destId")]
            cost = self._number(entry, path, "cost", "a time in ms", _LONGEST)
            for key, end in zip(("sourceId", "destId"), ends, strict=True):
                if end is not None and end not in nodes:
                    self._file.add(f"no node has the id {end}; known are {listing(list(map(str, nodes)))}", *path, key)
            source, target = ends
            if source not in nodes or target not in nodes:
                continue
            if source == target:
                self._file.add(f"node {source} cannot come after itself", *path)
            elif (source, target) in found:
                self._file.add(f"duplicate edge: edges[{found[source, target][0]}] joins the same nodes", *path)
            else:
                found[source, target] = row, round((cost or 0) * _PS_PER_MS)
        costs: dict[int, set[int]] = {}
        for (source, _), (_, payload) in found.items():
            costs.setdefault(source, set()).add(payload)
        for source, payloads in costs.items():
            if len(payloads) == 1 and payloads != {0}:
                (nodes[source].task["output"],) = payloads
        for (source, target), (_, payload) in found.items():
            after = nodes[target].task.setdefault("after", {})
            after[nodes[source].name] = None if len(costs[source]) == 1 else payload
        self._check_cycle(found, list(nodes))

    def _check_cycle(self, found: dict[tuple[int, int], tuple[int, int]], ids: list[int]) -> None:
        rank = {number: place for place, number in enumerate(ids)}
        pairs = np.array([(rank[a], rank[b]) for a, b in found], dtype=np.int64).reshape(-1, 2)
        cycle = [ids[place] for place in find_cycle(pairs, len(ids))]
        if cycle:
            row, _ = found[cycle[-1], cycle[0]]
            around = listing([str(number) for number in cycle], 12)
            self._file.add(f"closes a cycle of {len(cycle)} nodes: {around}", "edges", row)

    def _number(self, data: dict[str, Any], path: Place, key: str, what: str, most: int, *, whole: bool = False) -> Any:
        """The number at a key if it is from 0 to `most`; else None, with an issue."""
        what = f"{what}, a whole number" if whole else what
        value = self._stated(data, path, key, what)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            problem = "is not valid"
        elif not is_number(value):
            problem = "is not finite"
        elif value < 0:
            problem = "is negative"
        elif value > most:
            problem, what = "is out of range", f"{what}, at most {most}"
        else:
            return value
        self._file.add(f"{shown(value)} {problem}; expected {what}", *path, key)
        return None

    def _id(self, data: dict[str, Any], path: Place, key: str) -> int | None:
        value = self._stated(data, path, key, "the id of a node")
        if is_whole(value):
            return int(value)
        if value is not None:
            self._file.add(f"{shown(value)} is not an id; expected a whole number", *path, key)
        return None

    def _flag(self, data: dict[str, Any], path: Place, key: str) -> bool | None:
        value = self._stated(data, path, key, "true or false")
        if isinstance(value, int) and value in (0, 1):
            return bool(value)
        if value is not None:
            self._file.add(f"{shown(value)} is neither true nor false (1 nor 0)", *path, key)
        return None

    def _stated(self, data: dict[str, Any], path: Place, key: str, what: str) -> Any:
        """The value at a key; None, with an issue, without one."""
        value = data.get(key)
        if value is None:
            self._file.add(f"{key} is missing; expected {what}", *path)
        return value
