"""Load the protobuf message of a model without its weights."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from placeopt.bridges.extras import require
from placeopt.bridges.onnx_models.sizes import shapes
from placeopt.errors import DocumentError, Issue, listing, visible
from placeopt.io.document import reading
from placeopt.io.files import StrPath, read_file

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

LARGEST = 2**31
"""Size limit of model files in bytes: that of protobuf. Larger models have external data."""

SMALL = 256
"""Maximum number of elements of a constant whose values are kept: shapes, axes, scales."""

MOST_NODES = 10**6
"""Maximum number of nodes of a model whose functions are inlined: one that calls another twice, and so on, doubles
them."""

_DATA = ("raw_data", "float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")


def load_proto(path: StrPath) -> ModelProto:
    """Read a model file, without external data.

    Raises
    ------
    DocumentError
        If the file cannot be read or is not an ONNX model.
    MissingExtraError
        If onnx is not installed.
    """
    require("onnx", "onnx", "ONNX models")
    from google.protobuf.message import DecodeError
    from onnx import ModelProto

    with reading(path):
        content = read_file(path, lambda _start: LARGEST)
    try:
        model: ModelProto = ModelProto.FromString(content)
    except DecodeError:
        message = "is not an ONNX model, or is truncated: its protobuf message cannot be decoded"
        raise DocumentError([Issue(message, (), str(path))]) from None
    if not model.HasField("graph"):
        raise DocumentError([Issue("is not an ONNX model: it has no graph", (), str(path))])
    issues = text_issues(model, str(path))
    if issues:
        raise DocumentError(issues)
    return model


def text_issues(model: ModelProto, file: str) -> list[Issue]:
    """Report names that are not UTF-8 text, which the format requires."""
    places = [("opset_import", each.domain) for each in model.opset_import]
    places += [("functions", text) for each in model.functions for text in (each.name, each.domain)]
    graphs = [model.graph]
    while graphs:
        graph = graphs.pop()
        places.append(("graph", graph.name))
        for value in (*graph.input, *graph.output, *graph.value_info):
            places.append(("values", value.name))
            places += [("values", dim.dim_param) for shape in shapes(value.type) for dim in shape.dim]
        places += [("initializers", tensor.name) for tensor in graph.initializer]
        places += [("initializers", sparse.values.name) for sparse in graph.sparse_initializer]
        for node in graph.node:
            texts = (node.name, node.op_type, node.domain, *node.input, *node.output)
            places += [("nodes", text) for text in texts]
            places += [("nodes", each.name) for each in node.attribute]
            graphs += [body for _, body in bodies(node)]
    for function in model.functions:
        for node in function.node:
            places += [("nodes", text) for text in (node.name, node.op_type, node.domain, *node.input, *node.output)]
    wrong = list(dict.fromkeys((where, text) for where, text in places if isinstance(text, bytes)))
    return [Issue(f"a name is not UTF-8 text: {visible(repr(text)[1:])}", (where,), file) for where, text in wrong]


def inlined(model: ModelProto, file: str | None = None) -> ModelProto:
    """Return the model with its local functions inlined; the model itself if it has none.

    `file` is the name of the model for messages.

    Raises
    ------
    DocumentError
        If a function cannot be inlined, or the model would have more than `MOST_NODES` nodes.
    """
    if not model.functions:
        return model
    from onnx import checker, inliner

    try:
        count = _nodes_when_inlined(model)
    except CycleError as error:
        names = listing([name for _, name, _ in error.args[1]])
        raise DocumentError(
            [Issue(f"the functions of the model cannot be inlined: they call each other: {names}", (), file)]
        ) from None
    if count > MOST_NODES:
        message = f"the model has {count:.3g} nodes once its functions are inlined; the limit is {MOST_NODES:,}"
        raise DocumentError([Issue(message, (), file)])

    try:
        return inliner.inline_local_functions(model)
    except (RuntimeError, ValueError, checker.ValidationError) as error:
        raise DocumentError([Issue(f"the functions of the model cannot be inlined: {error}", (), file)]) from None


def _nodes_when_inlined(model: ModelProto) -> int:
    """Number of nodes without functions; raises a CycleError if functions call each other."""

    def calls(nodes: Iterable[NodeProto]) -> Counter[tuple[str, str, str]]:
        found: Counter[tuple[str, str, str]] = Counter()
        for node in nodes:
            found[node.domain, node.op_type, node.overload] += 1
            for _, body in bodies(node):
                found += calls(body.node)
        return found

    made = {(each.domain, each.name, each.overload): calls(each.node) for each in model.functions}
    total: dict[tuple[str, str, str], int] = {}
    for key in TopologicalSorter({key: found.keys() & made.keys() for key, found in made.items()}).static_order():
        total[key] = sum(number * total.get(called, 1) for called, number in made[key].items())
    return sum(number * total.get(called, 1) for called, number in calls(model.graph.node).items())


def without_weights(model: ModelProto) -> ModelProto:
    """Return a copy without the values of constants of more than `SMALL` elements; their shapes remain."""
    from onnx import ModelProto

    light = ModelProto()
    light.ir_version = model.ir_version
    light.opset_import.extend(model.opset_import)
    light.metadata_props.extend(model.metadata_props)
    light.functions.extend(model.functions)
    graph = model.graph
    light.graph.name = graph.name
    light.graph.doc_string = graph.doc_string
    light.graph.node.extend(graph.node)
    light.graph.input.extend(graph.input)
    light.graph.output.extend(graph.output)
    light.graph.value_info.extend(graph.value_info)
    for tensor in graph.initializer:
        _copy_light(tensor, light.graph.initializer.add())
    for sparse in graph.sparse_initializer:
        stored = light.graph.sparse_initializer.add()
        stored.dims.extend(sparse.dims)
        _copy_light(sparse.values, stored.values)
    for node in light.graph.node:
        _lighten(node)
    for function in light.functions:
        for node in function.node:
            _lighten(node)
    return light


def bodies(node: NodeProto) -> Iterator[tuple[str, GraphProto]]:
    """The graphs in the attributes of a node, with the names of the attributes."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.name, attribute.g
        for place, graph in enumerate(attribute.graphs):
            yield f"{attribute.name}[{place}]", graph


def read_by(node: NodeProto) -> Iterator[str]:
    """Tensors that a node reads, also those of the surrounding graph that the bodies of control flow read."""
    yield from filter(None, node.input)
    for _, graph in bodies(node):
        yield from captured(graph)


def captured(graph: GraphProto) -> Iterator[str]:
    """Tensors of surrounding graphs that a body reads."""
    own = {value.name for value in graph.input}
    own.update(tensor.name for tensor in graph.initializer)
    own.update(sparse.values.name for sparse in graph.sparse_initializer)
    own.update(name for node in graph.node for name in node.output)
    for node in graph.node:
        yield from (name for name in read_by(node) if name not in own)
    yield from (value.name for value in graph.output if value.name not in own)


def is_small(tensor: TensorProto) -> bool:
    """Whether the values of a tensor are kept."""
    return tensor.data_location != tensor.EXTERNAL and math.prod(tensor.dims) <= SMALL


def _copy_light(tensor: TensorProto, target: TensorProto) -> None:
    if is_small(tensor):
        target.CopyFrom(tensor)
    else:
        target.name = tensor.name
        target.data_type = tensor.data_type
        target.dims.extend(tensor.dims)
        target.data_location = tensor.EXTERNAL


def _strip(tensor: TensorProto) -> None:
    if not is_small(tensor):
        for field in _DATA:
            tensor.ClearField(field)
        tensor.data_location = tensor.EXTERNAL


def _lighten(node: NodeProto) -> None:
    for attribute in node.attribute:
        for tensor in tensors_of(attribute):
            _strip(tensor)
    for _, graph in bodies(node):
        for tensor in graph.initializer:
            _strip(tensor)
        for inner in graph.node:
            _lighten(inner)


def tensors_of(attribute: AttributeProto) -> Iterator[TensorProto]:
    """The tensors in the value of an attribute, without those of bodies; of a sparse tensor, those of its values."""
    if attribute.HasField("t"):
        yield attribute.t
    yield from attribute.tensors
    if attribute.HasField("sparse_tensor"):
        yield attribute.sparse_tensor.values
