"""Control flow: the types of the inputs of bodies, and of the outputs of the nodes that run them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from placeopt.bridges.onnx_models.sizes import shape_of, tensor_of, tensor_type
from placeopt.bridges.onnx_models.view import Tensor, Values, attribute
from placeopt.errors import counted

if TYPE_CHECKING:
    from onnx import NodeProto, TypeProto

Types = Mapping[str, "TypeProto"]
Known = Mapping[str, Values]
Argument = tuple[str, "TypeProto | None"]
"""What an input of a body is: the tensor that it comes from, empty without one, and its type, None if unknown."""

_BOOL, _INT64 = 9, 7  # of TensorProto.DataType

_BATCHED_SCAN = 8
"""The version in which the inputs of a Scan have a batch dimension; its bodies keep the types that the model states."""

_MOST_ITERATIONS = 10**6
"""Largest trip count that is taken literally: exporters state the largest integer for a while loop."""


def is_known(node: NodeProto, version: int) -> bool:
    """Whether the types of the bodies of a node follow from its inputs."""
    return node.domain in ("", "ai.onnx") and node.op_type in _INPUTS and version != _BATCHED_SCAN


def inputs_of_bodies(node: NodeProto, types: Types, values: Known) -> tuple[list[Argument], int | None]:
    """Return the inputs of the bodies, and how often a body runs; None if unknown.

    Raises a ValueError if the node is not valid.
    """
    return _INPUTS[node.op_type](node, types, values)


def outputs_of_bodies(node: NodeProto, results: list[list[TypeProto]], repeats: int | None) -> Iterable[TypeProto]:
    """Return the types of the outputs of a node from those of the outputs of each body."""
    return _OUTPUTS[node.op_type](node, results, repeats)


def open_outputs(node: NodeProto, written: list[list[Tensor]], repeats: int | None) -> list[str]:
    """Return the outputs of a node whose sizes depend on data.

    The number of iterations is unknown, branches have different shapes, or a size in a body depends on data. `written`
    are the outputs of each body.
    """
    if repeats is None:
        return list(filter(None, node.output))
    condition = node.op_type == "Loop"  # the first output of its body
    results = zip(node.output, *(each[condition:] for each in written), strict=False)
    return [
        name
        for name, *found in results
        if name and (any(each.assumed for each in found) or len({each.shape for each in found}) > 1)
    ]


def _branches(_node: NodeProto, _types: Types, _values: Known) -> tuple[list[Argument], int | None]:
    """The inputs of the bodies of an If, and how often they run."""
    return [], 1


def _loop(node: NodeProto, types: Types, values: Known) -> tuple[list[Argument], int | None]:
    """The same for a Loop, whose body reads a counter, a condition and the carried values."""
    count = values.get(node.input[0]) if node.input else None
    carried = [(name, types.get(name)) for name in node.input[2:]]
    repeats = None if count is None or count.size != 1 else max(int(count.reshape(-1)[0]), 0)
    if repeats is not None and repeats > _MOST_ITERATIONS:
        repeats = None
    return [("", tensor_type(_INT64, ())), ("", tensor_type(_BOOL, ())), *carried], repeats


def _scan(node: NodeProto, types: Types, _values: Known) -> tuple[list[Argument], int | None]:
    """The same for a Scan, whose body reads the states and a slice of each scanned input."""
    count = attribute(node, "num_scan_inputs", 1)
    inputs = list(node.input)
    if not 0 < count <= len(inputs) or "" in inputs:
        raise ValueError(f"num_scan_inputs is {count}, and the node has {counted(sum(map(bool, inputs)), 'input')}")
    axes = attribute(node, "scan_input_axes", [0] * count)
    states, scanned = inputs[: len(inputs) - count], inputs[len(inputs) - count :]
    arguments: list[Argument] = [(name, types.get(name)) for name in states]
    repeats = None
    for name, axis in zip(scanned, axes, strict=False):
        kind = types[name]
        shape = shape_of(kind)
        if shape is None or not -len(shape) <= axis < len(shape):
            arguments.append((name, None))
            continue
        repeats = shape[axis]
        rest = [length for place, length in enumerate(shape) if place != axis % len(shape)]
        arguments.append((name, tensor_type(kind.tensor_type.elem_type, rest)))
    return arguments, repeats


def _result_of_branches(_node: NodeProto, results: list[list[TypeProto]], _repeats: int | None) -> Iterable[TypeProto]:
    """Types of the outputs of an If: those of the branch with the larger output."""
    return [max(kinds, key=lambda kind: tensor_of("", kind).bytes) for kinds in zip(*results, strict=False)]


def _result_of_loop(node: NodeProto, results: list[list[TypeProto]], repeats: int | None) -> Iterable[TypeProto]:
    """The same for a Loop: the carried values, and one element of a scan output for each iteration."""
    carried = max(len(node.input) - 2, 0)
    kinds = results[0][1:]
    return kinds[:carried] + [_stacked(kind, repeats, 0) for kind in kinds[carried:]]


def _result_of_scan(node: NodeProto, results: list[list[TypeProto]], repeats: int | None) -> Iterable[TypeProto]:
    """The same for a Scan: the states, and the scan outputs."""
    states = len(node.input) - attribute(node, "num_scan_inputs", 1)
    kinds = results[0]
    axes = attribute(node, "scan_output_axes", [0] * len(kinds))
    return kinds[:states] + [_stacked(kind, repeats, axis) for kind, axis in zip(kinds[states:], axes, strict=False)]


def _stacked(kind: TypeProto, repeats: int | None, axis: int) -> TypeProto:
    """The type of many tensors of one type, stacked along an axis."""
    shape = shape_of(kind)
    if shape is None:
        return kind
    place = axis % (len(shape) + 1)
    return tensor_type(kind.tensor_type.elem_type, (*shape[:place], 1 if repeats is None else repeats, *shape[place:]))


_INPUTS = {"If": _branches, "Loop": _loop, "Scan": _scan}
_OUTPUTS = {"If": _result_of_branches, "Loop": _result_of_loop, "Scan": _result_of_scan}
