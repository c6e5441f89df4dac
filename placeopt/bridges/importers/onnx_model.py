"""Import ONNX models: each live node becomes a task with its FLOP, memory traffic, weights and outputs.

Nodes that depend on no input of the model are folded into constants; nodes that no output needs are dropped. A task has
the name of its node (see `placeopt.bridges.onnx_models`). Its duration follows from the roofline of the device.

- The constants that a node reads are its `resident` memory. A constant that several nodes read is needed on each of
  their devices. From `SHARED` bytes on, the nodes are colocated and the first one holds the constant. Each of the nodes
  has its own copy of a smaller one.
- A node of `ai.onnx.ml`, such as a tree ensemble, has its model in its attributes, which are `resident` memory, too.
- Nodes that exchange sequences or maps are colocated: runtimes send only tensors to other devices.
- With addresses, a task states which outputs may share bytes: views, and elementwise results in place of an input.
- The outputs that other nodes or the caller read are the `output` of the task. An edge has a payload of its own if its
  consumer reads only some of them.
- A node with control flow is one task, with the cost of all iterations, or of its most expensive branch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placeopt.bridges.costs.onnx_nodes import SizedNode
from placeopt.bridges.costs.onnx_rules import cost_of, in_place, keeps_bytes
from placeopt.bridges.importers.imported import Imported, ImportOptions, Sample, check_precision
from placeopt.bridges.importers.operator_graph import OperatorGraph
from placeopt.bridges.networks import network_of
from placeopt.bridges.onnx_models import LiveNode, OnnxModel, Tensor, read_model
from placeopt.bridges.onnx_models.dims import sizes_text
from placeopt.bridges.onnx_models.sizes import size
from placeopt.bridges.onnx_models.submodels import inferred_types, value_type
from placeopt.bridges.operators import Operator, pipeline_rules
from placeopt.errors import DocumentError, Issue, UsageError, counted, listing, visible
from placeopt.io.document import collection_paused
from placeopt.io.files import StrPath
from placeopt.model.units import size_text

if TYPE_CHECKING:
    from onnx import ModelProto

NAME, TARGET = "onnx", "onnxruntime"

SHARED = 2**20
"""Bytes from which on the readers of a shared constant are colocated."""
_NOTES = 3
"""Statements of a model that do not hold and are quoted."""

PRECISIONS: Mapping[str, str] = {
    "double": "fp64",
    "float": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8e4m3fn": "fp8",
    "float8e4m3fnuz": "fp8",
    "float8e5m2": "fp8",
    "float8e5m2fnuz": "fp8",
    "float4e2m1": "fp4",
    "int8": "int8",
    "uint8": "int8",
    "int4": "int4",
    "uint4": "int4",
}
"""The number format of the work on elements of each type. Other integers have that of the problem."""

_CONVERTED = {"fp64": "double", "fp32": "float", "tf32": "float", "fp16": "float16", "bf16": "bfloat16"}
"""The type of the elements of a model that is converted to a number format."""
_FLOATS = frozenset({"double", "float", "float16", "bfloat16"})
_QUANTISED = frozenset(
    """
    ConvInteger DynamicQuantizeMatMul DynamicQuantizeLSTM MatMulInteger MatMulInteger16 MatMulIntegerToFloat QAttention
    QGemm QLinearAdd QLinearAveragePool QLinearConv QLinearGlobalAveragePool QLinearLeakyRelu QLinearMatMul QLinearMul
    QLinearReduceMean QLinearSigmoid QLinearSoftmax
    """.split()  # noqa: SIM905
)
"""Operators that compute with 8-bit integers."""


def recognises(sample: Sample) -> bool:
    """Whether a file looks like an ONNX model: the fields of a ModelProto message."""
    return _is_model(sample.start)


def read(source: StrPath | ModelProto, options: ImportOptions) -> Imported:
    """Read a model file, or a model, as a problem document; see `from_onnx` for the errors."""
    check_precision(options.precision, _CONVERTED)
    if options.target not in (None, TARGET):
        raise UsageError(f"{visible(str(options.target))} is not a runtime of this import; expected {TARGET}")
    network, notes = network_of(options.network)
    with collection_paused():
        model = read_model(source, batch=options.batch, dims=options.dims)
        if options.target is not None:
            _check_types(model)
        converter = _Converter(model, options.precision)
        graph = OperatorGraph(
            name=options.name or (model.name if model.file is None else Path(model.file).stem),
            source=_source(model, options),
            operators=converter.operators(),
        )
        rules = pipeline_rules() if options.pipelined else None
        return graph.imported(
            network, options.resolution, model.file, (*notes, *converter.notes()), rules, options.addresses
        )


def from_onnx(
    model: StrPath | ModelProto,
    *,
    devices: Mapping[str, Any] | StrPath | None = None,
    batch: int | None = None,
    dims: Mapping[str, int] | None = None,
    precision: str | None = None,
    name: str | None = None,
    resolution: str | None = None,
    objective: str = "makespan",
    target: str | None = None,
    addresses: str | None = None,
) -> Imported:
    """Convert an ONNX model to a problem document.

    Parameters
    ----------
    model
        The path of a model file, or a model. External data is not read, and a model is not changed.
    devices
        The devices and links: a mapping with `devices` and perhaps `links`, the path of a network file, or devices of
        the catalogue such as `a100-40gb:2`. Default: two processor cores.
    batch
        Size of the first dimension of the inputs.
    dims
        Sizes of symbolic dimensions, such as {"seq": 128}; `data[2]` is axis 2 of the input `data`.
    precision
        Number format to which the floating-point tensors are converted: fp64, fp32, tf32, fp16 or bf16.
    name
        Name of the problem. Default: the name of the file, or of the graph.
    resolution
        Length of a tick, such as `10 ns`.
    objective
        `makespan`, or `period` for a pipeline with contiguous stages.
    target
        `onnxruntime`: check that every plan of the problem can be exported as segments.
    addresses
        Alignment such as `"64 B"`: plans have offsets, and tasks state which outputs may share bytes.

    Returns
    -------
    Imported
        The problem document for `placeopt.compile`, and notes about folded, guessed and shared parts.

    Raises
    ------
    DocumentError
        If the model cannot be read or is not valid; lists every issue with the name of its node.
    SpecError
        If the devices are not valid.
    UsageError
        If an argument does not fit the model.
    MissingExtraError
        If onnx is not installed: pip install 'placeopt[onnx]'.
    """
    for key, number in (("batch", batch), *(dims or {}).items()):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise UsageError(f"{key} is {number!r}; expected a positive whole number")
    options = ImportOptions(
        name=name,
        resolution=resolution,
        network=devices,
        batch=batch,
        dims=dims or {},
        precision=precision,
        objective=objective,
        target=target,
        addresses=addresses,
    )
    return read(model, options)


def _source(model: OnnxModel, options: ImportOptions) -> str:
    """The origin of the problem, for readers."""
    what = f"ONNX model {model.name if model.file is None else Path(model.file).name}"
    stated = sizes_text(options.batch, options.dims)
    stated += [options.precision] if options.precision is not None else []
    return ", ".join([what, *stated])


class _Converter:
    """Makes operators of the live nodes of a model."""

    def __init__(self, model: OnnxModel, precision: str | None) -> None:
        self._model = model
        self._precision = precision
        self._tensors = model.tensors if precision is None else dict(self._converted(_CONVERTED[precision]))
        self._colocated: list[str] = []
        self._copied: list[str] = []
        self._together = frozenset(
            name
            for name, tensor in model.tensors.items()
            if tensor.shape is None and name in model.producers and name in model.readers
        )
        """Values between operators that are not tensors."""
        self._extra = 0
        """Bytes of copies of shared constants beyond the first."""

    def operators(self) -> list[Operator]:
        """The operators in topological order."""
        holders: dict[str, str] = {}
        """The task that holds each large shared constant."""
        operators = []
        for node, shares in zip(self._model.nodes, self._shares(), strict=True):
            cost = cost_of(self._sized(node))
            operator = Operator(
                name=node.task,
                op=node.op,
                flops=cost.flops,
                traffic=cost.traffic,
                output=sum(self._tensors[name].bytes for name in node.writes),
                resident=sum(body.weights for body in node.bodies.values()) + _attribute_bytes(node),
                precision=self._number_format(node),
                after=self._edges(node),
                guessed=cost.guessed,
                shares=shares,
            )
            labels = [name for name in (*node.reads, *node.writes) if name in self._together]
            for name in node.constants:
                readers = self._model.readers[name]
                amount = self._stored(name)
                if len(readers) == 1:
                    operator.resident += amount
                elif amount >= SHARED:
                    labels.append(name)
                    if name not in holders:
                        holders[name] = node.task
                        operator.resident += amount
                        self._colocated.append(name)
                else:
                    operator.resident += amount
                    if readers[0] is node:
                        self._copied.append(name)
                        self._extra += amount * (len(readers) - 1)
            if labels:
                operator.keys["colocate"] = labels[0] if len(labels) == 1 else labels
            operators.append(operator)
        return operators

    def _sized(self, node: LiveNode) -> SizedNode:
        return SizedNode(node.proto, self._tensors, self._model.values, node.bodies)

    def _shares(self) -> Iterator[dict[str, Any]]:
        """The key `view` or `in_place` of each node.

        Both name tasks with a single output, of the size of that of the node. Nothing overwrites an output of the
        model, a tensor of which an output is a view, or a view of an output.
        """
        model, tensors, homes = self._model, self._tensors, dict[str, str]()
        found = [self._bases(node) for node in model.nodes]
        views = [keeps_bytes(self._sized(node)) for node in model.nodes]
        for node, bases, view in zip(model.nodes, found, views, strict=True):
            if view and bases and bases[0] == node.proto.input[0]:
                homes[node.writes[0]] = homes.get(bases[0], bases[0])
        kept = {homes.get(name, name) for name in model.outputs}
        for node, bases, view in zip(model.nodes, found, views, strict=True):
            if view:
                viewed = bool(bases) and node.writes[0] in homes
                yield {"view": model.producers[bases[0]]} if viewed else {}
                continue
            free = [name for name in bases if homes.get(name, name) not in kept and in_place(self._sized(node))]
            alike = [name for name in free if tensors[name].element == tensors[node.writes[0]].element]
            yield {"in_place": [model.producers[name] for name in alike]} if alike else {}

    def _bases(self, node: LiveNode) -> list[str]:
        """The inputs of a node whose bytes its only output may take by their size: the only outputs of their tasks."""
        size = self._tensors[node.writes[0]].bytes if len(node.writes) == 1 else 0
        producers = {name: self._model.producers[name] for name in node.proto.input if name in self._model.producers}
        return [
            name
            for name, task in producers.items()
            if size == self._tensors[name].bytes > 0 and len(self._model.tasks[task].writes) == 1
        ]

    def notes(self) -> Iterator[str]:
        """What was folded, shared or assumed."""
        model = self._model
        yield from model.notes[:_NOTES]
        if len(model.notes) > _NOTES:
            yield f"{len(model.notes) - _NOTES} more statements of the model do not hold and are ignored"
        if model.folded:
            yield f"{counted(len(model.folded), 'node')} without an input of the model among their ancestors are folded"
        if model.unused:
            yield f"{counted(len(model.unused), 'node')} that no output of the model needs are dropped"
        if self._colocated:
            amount = sum(self._stored(name) for name in self._colocated)
            yield (
                f"several operators read {counted(len(self._colocated), 'weight')} of {size_text(amount)} "
                f"({listing(self._colocated, 3)}); they are colocated, and the first one holds the weight"
            )
        if self._together:
            yield (
                f"{counted(len(self._together), 'value')} between operators ({listing(sorted(self._together), 3)}) "
                "are sequences or maps, which no runtime sends to another device; the operators are colocated"
            )
        if self._extra >= SHARED:
            yield (
                f"several operators read {counted(len(self._copied), 'constant')} of less than {size_text(SHARED)}; "
                f"each counts its own copy, {size_text(self._extra)} more in all"
            )
        assumed = [name for node in model.nodes for name in node.writes if self._tensors[name].assumed]
        if assumed:
            yield (
                f"the size of {counted(len(assumed), 'tensor')} ({listing(assumed, 3)}) is assumed, "
                f"since it depends on data or on an unknown operator"
            )

    def _edges(self, node: LiveNode) -> dict[str, int | None]:
        """The producers of a node, each with its payload unless the node reads all outputs of the producer."""
        read: dict[str, list[str]] = {}
        for name in node.reads:
            if name in self._model.producers:
                read.setdefault(self._model.producers[name], []).append(name)
        tasks = self._model.tasks
        return {
            producer: None if len(names) == len(tasks[producer].writes) else sum(self._tensors[n].bytes for n in names)
            for producer, names in read.items()
        }

    def _stored(self, name: str) -> int:
        """Bytes of a constant as runtimes hold it: dequantised weights in their quantised form."""
        return sum(self._tensors[source].bytes for source in self._model.stored(name))

    def _number_format(self, node: LiveNode) -> str | None:
        """The number format of the work of a node; None for the default of problems."""
        if node.proto.op_type in _QUANTISED:
            return "int8"
        inputs = [self._tensors[name].element for name in node.proto.input if name in self._tensors]
        found = next((element for element in inputs if element in _FLOATS), None)
        if found is None:
            found = next((element for element in inputs if element in PRECISIONS), "float")
        elif self._precision is not None:
            return None if self._precision == "fp32" else self._precision
        return None if PRECISIONS[found] == "fp32" else PRECISIONS[found]

    def _converted(self, element: str) -> Iterator[tuple[str, Tensor]]:
        """The tensors, with floating-point numbers of another format."""
        for name, tensor in self._model.tensors.items():
            if tensor.element in _FLOATS and tensor.shape is not None:
                yield name, dataclasses.replace(tensor, element=element, bytes=size(element, tensor.elements))
            else:
                yield name, tensor


def _check_types(model: OnnxModel) -> None:
    """Check that a segment can end at each tensor; lists the tensors of unknown type."""
    types = inferred_types(model)
    crossing = [name for node in model.nodes for name in node.writes if name in model.readers]
    unknown = [name for name in crossing if value_type(model, types, name) is None]
    if unknown:
        raise DocumentError([
            Issue(
                f"the type of {counted(len(unknown), 'tensor')} ({listing(unknown)}) is unknown, so no segment of "
                f"{TARGET} can end there; state the types as value_info of the model, or import without --for",
                ("value_info",),
                model.file,
            )
        ])  # fmt: skip


def _attribute_bytes(node: LiveNode) -> int:
    """Bytes of the trees, vectors and labels that a node of ai.onnx.ml has as attributes."""
    if node.proto.domain != "ai.onnx.ml":
        return 0
    return sum(4 * len(each.floats) + 8 * len(each.ints) + sum(map(len, each.strings)) for each in node.proto.attribute)


def _is_model(start: bytes) -> bool:
    """Whether bytes begin with the fields of a ModelProto message, up to its graph."""
    at = 0
    version = False
    while at < len(start):
        key, at = _varint(start, at)
        field, wire = key >> 3, key & 7
        if _WIRES.get(field) != wire or at < 0:
            return False
        value, at = _varint(start, at)
        if at < 0:
            return False
        if wire == 0:
            version |= field == 1 and 1 <= value <= _NEWEST
            continue
        content = start[at : at + value]
        if field == 7:
            return version and value > 0 and (not content or content[0] in _GRAPH_TAGS)
        if field in _TEXTS and not _is_text(content, whole=at + value <= len(start)):
            return False
        at += value
    return False


_WIRES = {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2, 26: 2}
"""The wire type of each field of ModelProto: 0 for a number, 2 for text or a message."""
_TEXTS = frozenset({2, 3, 4, 6})
_GRAPH_TAGS = frozenset(field << 3 | 2 for field in (1, 2, 5, 10, 11, 12, 13, 14, 15, 16))
"""The first bytes of the fields of GraphProto."""
_NEWEST = 1000
"""Largest version of the format that is plausible."""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number in the encoding of protobuf and the place after it; the place is -1 without one."""
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        number |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return number, at
    return 0, -1


def _is_text(content: bytes, *, whole: bool) -> bool:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        if whole or error.start < len(content) - 3:
            return False
        text = content[: error.start].decode()
    return all(c.isprintable() or c in "\t\r\n" for c in text)
