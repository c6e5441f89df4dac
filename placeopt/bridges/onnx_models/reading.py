"""Read a model: live nodes, folded nodes, names of tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from placeopt.bridges.extras import require
from placeopt.bridges.onnx_models.dims import state_dims
from placeopt.bridges.onnx_models.inference import RANDOM, Inference
from placeopt.bridges.onnx_models.loading import inlined, load_proto, read_by, without_weights
from placeopt.bridges.onnx_models.view import LiveNode, OnnxModel
from placeopt.errors import DocumentError, Issue, counted, listing
from placeopt.io.document import collection_paused
from placeopt.io.files import StrPath
from placeopt.model.graph import find_cycle

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_INTEGERS = 2**31
"""Limit of the integers with which onnx infers shapes."""


def read_model(
    source: StrPath | ModelProto, *, batch: int | None = None, dims: Mapping[str, int] | None = None
) -> OnnxModel:
    """Read a model as a light view, without external data.

    Parameters
    ----------
    source
        The path of a model file, or a model, which is not changed.
    batch
        Size of the first dimension of the inputs.
    dims
        Sizes of symbolic dimensions; `data[2]` is axis 2 of the input `data`.

    Raises
    ------
    DocumentError
        If the file cannot be read or is not a valid model; lists every issue with the name of its node.
    UsageError
        If `batch` or a name in `dims` does not fit the model.
    MissingExtraError
        If onnx is not installed.
    """
    require("onnx", "onnx", "ONNX models")
    from onnx import ModelProto

    file = None
    if not isinstance(source, ModelProto):
        file = str(source)
        source = load_proto(source)
    proto = inlined(without_weights(source), file)
    with collection_paused():
        return _Reader(proto, file).read(batch, dims or {})


class _Reader:
    def __init__(self, proto: ModelProto, file: str | None) -> None:
        self._proto = proto
        self._graph = proto.graph
        self._file = file
        self._labels = task_names(proto.graph.node)
        self._issues: list[Issue] = []

    def read(self, batch: int | None, dims: Mapping[str, int]) -> OnnxModel:
        graph, file = self._graph, self._file
        opsets = self._opsets()
        initial = {t.name for t in graph.initializer} | {s.values.name for s in graph.sparse_initializer}
        inputs = [value for value in graph.input if value.name not in initial]
        writers = self._writers(initial | {value.name for value in inputs})
        reads = [list(dict.fromkeys(read_by(node))) for node in graph.node]
        self._check_reads(reads, writers, initial | {value.name for value in inputs})
        order = self._order(reads, writers)
        if self._issues:
            raise DocumentError(self._issues)
        changed = state_dims(graph, inputs, batch, dims, file)
        inference = Inference(self._proto, opsets, self._labels, file)
        inference.run(inputs, order, reads, changed)
        every = list(graph.node)
        live_tensors = {value.name for value in inputs}
        live: set[int] = set()
        for index in order:
            node = every[index]
            if node.op_type in RANDOM or any(name in live_tensors for name in reads[index]):
                live.add(index)
                live_tensors.update(name for name in node.output if name)
        needed_tensors = {value.name for value in graph.output}
        needed: set[int] = set()
        for index in reversed(order):
            if any(name in needed_tensors for name in every[index].output):
                needed.add(index)
                needed_tensors.update(reads[index])
        constants = frozenset(initial | {name for i in order if i not in live for name in every[i].output if name})
        nodes = tuple(
            LiveNode(
                self._labels[i],
                i,
                every[i],
                tuple(name for name in reads[i] if name in live_tensors),
                tuple(name for name in reads[i] if name in constants),
                tuple(name for name in every[i].output if name and name in needed_tensors),
                inference.bodies.get(i, {}),
            )
            for i in order
            if i in live and i in needed
        )
        if not nodes:
            raise DocumentError([Issue("no node of the model depends on an input: it has nothing to place", (), file)])
        return OnnxModel(
            name=graph.name or (Path(file).stem if file else "model"),
            file=file,
            proto=self._proto,
            nodes=nodes,
            inputs=tuple(value.name for value in inputs),
            outputs=tuple(value.name for value in graph.output),
            tensors=inference.tensors(),
            producers={name: node.task for node in nodes for name in node.proto.output if name},
            constants=constants,
            folded=tuple(i for i in range(len(graph.node)) if i not in live),
            unused=tuple(i for i in range(len(graph.node)) if i in live and i not in needed),
            opsets=opsets,
            values=inference.values,
            notes=tuple(inference.notes),
        )

    def _opsets(self) -> dict[str, int]:
        """Version of each operator set by domain."""
        from onnx import __version__, defs

        found = {"" if each.domain == "ai.onnx" else each.domain: each.version for each in self._proto.opset_import}
        if not self._proto.opset_import and self._proto.ir_version < 3:
            found[""] = 1
        for domain, number in found.items():
            if domain and not abs(number) < _INTEGERS:
                self._add(f"{number} is not the version of an operator set", ("opset_import", domain))
        if not abs(self._proto.ir_version) < _INTEGERS:
            self._add(f"{self._proto.ir_version} is not a version of the format", ("ir_version",))
        newest = defs.onnx_opset_version()
        version = found.get("")
        if version is None and any(node.domain in ("", "ai.onnx") for node in self._graph.node):
            self._add("the version of the standard operators is missing", ("opset_import",))
        if version is not None and not 1 <= version <= newest:
            self._add(
                f"operator set {version} is not supported; onnx {__version__} supports 1 to {newest}", ("opset_import",)
            )
        return found

    def _writers(self, given: set[str]) -> dict[str, int]:
        """The node that writes each tensor."""
        found: dict[str, int] = {}
        for index, node in enumerate(self._graph.node):
            if not node.op_type:
                self._add("the node has no operator", self._place(index))
            for name in node.output:
                if not name:
                    continue
                if name in found:
                    self._add(f"writes {name}, which {self._labels[found[name]]} writes too", self._place(index))
                elif name in given:
                    self._add(f"writes {name}, which is an input or initializer of the model", self._place(index))
                else:
                    found[name] = index
        for value in self._graph.output:
            if value.name not in found and value.name not in given:
                self._add("no node writes this output of the model", ("output", value.name))
        return found

    def _check_reads(self, reads: Sequence[Sequence[str]], writers: Mapping[str, int], given: set[str]) -> None:
        for index, names in enumerate(reads):
            missing = [name for name in names if name not in writers and name not in given]
            if missing:
                self._add(
                    f"reads {listing(missing)}, which no node writes and which is not an input of the model",
                    self._place(index),
                )

    def _order(self, reads: Sequence[Sequence[str]], writers: Mapping[str, int]) -> list[int]:
        """Indices of the nodes in topological order, nodes of the file's order first."""
        successors: list[list[int]] = [[] for _ in reads]
        missing = [0] * len(reads)
        for index, names in enumerate(reads):
            for producer in {writers[name] for name in names if name in writers}:
                successors[producer].append(index)
                missing[index] += 1
        ready = [index for index, count in enumerate(missing) if not count]
        heapify(ready)
        order = []
        while ready:
            index = heappop(ready)
            order.append(index)
            for successor in successors[index]:
                missing[successor] -= 1
                if not missing[successor]:
                    heappush(ready, successor)
        if len(order) < len(reads):
            edges = [(writers[name], index) for index, names in enumerate(reads) for name in names if name in writers]
            cycle = find_cycle(np.array(edges, dtype=np.int64), len(reads))
            names = listing([self._labels[i] for i in cycle], 12)
            self._add(f"closes a cycle of {counted(len(cycle), 'node')}: {names}", self._place(cycle[0]))
        return order

    def _place(self, index: int) -> tuple[str, str]:
        return ("nodes", self._labels[index])

    def _add(self, message: str, path: tuple[str | int, ...]) -> None:
        self._issues.append(Issue(message, path, self._file))


def task_names(nodes: Sequence[NodeProto]) -> list[str]:
    """A distinct name for each node: its own if it is unique, else its operator and first output, such as `Conv_x1`."""
    count = Counter(node.name for node in nodes)
    taken = {name for name, times in count.items() if name and times == 1}
    names = []
    for index, node in enumerate(nodes):
        name = node.name
        if not name or count[name] > 1:
            output = next(filter(None, node.output), str(index))
            base = name = f"{node.op_type}_{output}"
            suffix = 2
            while name in taken:
                name = f"{base}_{suffix}"
                suffix += 1
            taken.add(name)
        names.append(name)
    return names
