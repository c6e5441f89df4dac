"""Types and values of tensors while shapes are inferred, and checks of nodes by them that onnx does not make."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from placeopt.bridges.onnx_models.sizes import shape_of, tensor_of
from placeopt.bridges.onnx_models.view import Tensor, Values, attribute

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto, TypeProto


@dataclass(slots=True)
class Scope:
    """What is known about the tensors of a graph and of the graphs around it."""

    types: MutableMapping[str, TypeProto] = field(default_factory=dict)
    values: MutableMapping[str, Values] = field(default_factory=dict)
    data: MutableMapping[str, TensorProto] = field(default_factory=dict)
    """The same values as messages."""
    sequences: MutableMapping[str, int] = field(default_factory=dict)
    """Bytes of sequences."""
    assumed: MutableMapping[str, None] = field(default_factory=dict)
    """Tensors whose size is assumed."""

    def child(self) -> Scope:
        """The scope of a body."""
        return Scope(
            ChainMap({}, self.types),
            ChainMap({}, self.values),
            ChainMap({}, self.data),
            ChainMap({}, self.sequences),
            ChainMap({}, self.assumed),
        )

    def tensor(self, name: str) -> Tensor:
        """The size of a tensor."""
        found = tensor_of(name, self.types[name], self.sequences.get(name, 0))
        if name in self.assumed and not found.assumed:
            return Tensor(name, found.element, found.shape, found.bytes, assumed=True)
        return found

    def tensors(self) -> dict[str, Tensor]:
        """The sizes of all tensors."""
        return {name: self.tensor(name) for name in self.types}


def unsafe(node: NodeProto, scope: Scope) -> str | None:
    """State why a node would end the process: onnx does not check these attributes and reads beyond an array."""
    if node.op_type not in ("GatherND", "LayerNormalization") or not node.input:
        return None
    rank = len(shape_of(scope.types[node.input[0]]) or ()) if node.input[0] else 0
    if node.op_type == "GatherND":
        batch = attribute(node, "batch_dims", 0)
        return None if 0 <= batch <= rank else f"batch_dims is {batch}, and the data has {rank} dimensions"
    axis = attribute(node, "axis", -1)
    return None if -rank <= axis < max(rank, 1) else f"axis is {axis}, and the input has {rank} dimensions"


def contradiction(node: NodeProto, found: Mapping[str, TypeProto], scope: Scope) -> str | None:
    """State why shapes do not fit each other in a way that onnx does not check."""
    if node.op_type not in ("Conv", "Reshape") or any(name in scope.assumed for name in node.input):
        return None
    shapes_read = [shape_of(scope.types[name]) for name in node.input[:2] if name]
    written = shape_of(found[node.output[0]]) if node.output[0] in found else None
    if node.op_type == "Reshape" and shapes_read[0] is not None and written is not None:
        if math.prod(shapes_read[0]) != math.prod(written):
            return f"the shapes {list(shapes_read[0])} and {list(written)} differ in their number of elements"
    elif node.op_type == "Conv" and len(shapes_read) == 2:
        data, kernel = shapes_read
        if data is None or kernel is None:
            return None
        if len(data) != len(kernel) or len(data) < 3:
            return f"the input has {len(data)} dimensions, and the weights have {len(kernel)}"
        channels = kernel[1] * attribute(node, "group", 1)
        if data[1] != channels:
            return f"the input has {data[1]} channels, and the weights are for {channels}"
    return None
