"""Checks of nodes that onnx does not make in shape inference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from placeopt.bridges.onnx_models.scopes import Scope
from placeopt.bridges.onnx_models.sizes import shape_of
from placeopt.bridges.onnx_models.view import attribute

if TYPE_CHECKING:
    from onnx import NodeProto, TypeProto


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
