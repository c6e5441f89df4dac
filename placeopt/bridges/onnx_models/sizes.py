"""Types of values as protobuf messages, and their sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from placeopt.bridges.onnx_models.view import Tensor

if TYPE_CHECKING:
    from onnx import TensorShapeProto, TypeProto

_BITS = {
    "bool": 8,
    "string": 64,  # a pointer
    "bfloat16": 16,
    "double": 64,
    "float": 32,
    "float16": 16,
    "complex64": 64,
    "complex128": 128,
    "float8e4m3fn": 8,
    "float8e4m3fnuz": 8,
    "float8e5m2": 8,
    "float8e5m2fnuz": 8,
    "float8e8m0": 8,
    "float6e2m3": 6,
    "float6e3m2": 6,
    "float4e2m1": 4,
} | {f"{sign}int{bits}": bits for sign in ("", "u") for bits in (2, 4, 8, 16, 32, 64)}


@cache
def element_name(number: int) -> str:
    """The type of elements by its number in TensorProto.DataType; empty if unknown."""
    from onnx import TensorProto

    names: dict[int, str] = {value: name.lower() for name, value in TensorProto.DataType.items() if value}
    return names.get(number, "")


def size(element: str, elements: int) -> int:
    """Bytes of a dense tensor; elements of less than a byte are packed."""
    return -(-_BITS.get(element, 32) * elements // 8)


def tensor_type(number: int, shape: Sequence[int]) -> TypeProto:
    """The type of a dense tensor."""
    from onnx import TypeProto

    found = TypeProto()
    found.tensor_type.elem_type = number
    found.tensor_type.shape.SetInParent()
    for length in shape:
        found.tensor_type.shape.dim.add().dim_value = length
    return found


def shapes(kind: TypeProto) -> Iterator[TensorShapeProto]:
    """The shapes in a type: that of a tensor, or of the elements of a sequence or an optional value."""
    which = kind.WhichOneof("value")
    if which in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(kind, which)
        if tensor.HasField("shape"):
            yield tensor.shape
    elif which in ("sequence_type", "optional_type"):
        yield from shapes(getattr(kind, which).elem_type)


def shape_of(kind: TypeProto) -> tuple[int, ...] | None:
    """The shape of a tensor; None if the rank or a size is unknown, or the value is not a tensor."""
    while kind.WhichOneof("value") == "optional_type":
        kind = kind.optional_type.elem_type
    which = kind.WhichOneof("value")
    if which not in ("tensor_type", "sparse_tensor_type"):
        return None
    tensor = getattr(kind, which)
    if not tensor.HasField("shape"):
        return None
    lengths = tuple(dim.dim_value if dim.HasField("dim_value") else -1 for dim in tensor.shape.dim)
    return None if any(length < 0 for length in lengths) else lengths


def with_stated_sizes(kind: TypeProto, stated: TypeProto) -> TypeProto:
    """A type in which the sizes of another one of the same rank replace its own, which are assumed."""
    from onnx import TypeProto

    found = TypeProto()
    found.CopyFrom(kind)
    for shape, other in zip(shapes(found), shapes(stated), strict=False):
        for dim, length in zip(shape.dim, other.dim, strict=False) if len(shape.dim) == len(other.dim) else ():
            if length.HasField("dim_value"):
                dim.dim_value = length.dim_value
    return found


def element_of(kind: TypeProto) -> str:
    """The type of the elements of a tensor, or of the tensors in a sequence."""
    which = kind.WhichOneof("value")
    if which in ("tensor_type", "sparse_tensor_type"):
        return element_name(getattr(kind, which).elem_type)
    if which in ("sequence_type", "optional_type"):
        return element_of(getattr(kind, which).elem_type)
    return ""


def tensor_of(name: str, kind: TypeProto, sequence: int = 0) -> Tensor:
    """The tensor of a type. `sequence` is the size of a value that is not a tensor."""
    shape, element = shape_of(kind), element_of(kind)
    if shape is None:
        return Tensor(name, element, None, sequence, assumed=True)
    return Tensor(name, element, shape, size(element, math.prod(shape)))
