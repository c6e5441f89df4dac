"""A node of an ONNX model with the sizes of its tensors, and the rules that several tables of costs share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placeopt.bridges.costs import formulas
from placeopt.bridges.onnx_models import Body, Tensor
from placeopt.bridges.onnx_models.view import Values, attribute

if TYPE_CHECKING:
    from onnx import NodeProto

Shape = tuple[int, ...]

DEQUANTISE = 2
"""FLOP to convert a quantised element: subtract the zero point, scale."""
REQUANTISE = 5
"""FLOP to quantise an element: scale, round, add the zero point, clip at both ends."""


class UnknownSizeError(Exception):
    """A size that a rule needs is unknown."""


@dataclass(frozen=True, slots=True)
class SizedNode:
    """A node with the sizes of its tensors."""

    proto: NodeProto
    tensors: Mapping[str, Tensor]
    values: Mapping[str, Values]
    bodies: Mapping[str, Body]

    def attribute(self, name: str, default: Any = None) -> Any:
        """The value of an attribute."""
        return attribute(self.proto, name, default)

    def has(self, place: int) -> bool:
        """Whether the node has this input."""
        return place < len(self.proto.input) and bool(self.proto.input[place])

    def shape(self, place: int) -> Shape:
        """The shape of an input."""
        return self._shape(self.proto.input[place] if self.has(place) else "")

    def result(self, place: int = 0) -> Shape:
        """The shape of an output."""
        return self._shape(self.proto.output[place] if place < len(self.proto.output) else "")

    def elements(self, place: int) -> int:
        """The number of elements of an input."""
        return math.prod(self.shape(place))

    @property
    def results(self) -> int:
        """The number of elements of the first output that the node writes."""
        return math.prod(self._shape(next(filter(None, self.proto.output), "")))

    def value(self, place: int) -> Values | None:
        """The value of an input, if it is a small constant."""
        return self.values.get(self.proto.input[place]) if self.has(place) else None

    def bytes(self, place: int) -> int:
        """Bytes of an input; 0 without it."""
        return self.tensors[self.proto.input[place]].bytes if self.has(place) else 0

    @property
    def written(self) -> int:
        """Bytes of all outputs."""
        return sum(self.tensors[name].bytes for name in self.proto.output if name in self.tensors)

    @property
    def read(self) -> int:
        """Bytes of all inputs; an input that is there twice is read once."""
        return sum(self.tensors[name].bytes for name in dict.fromkeys(self.proto.input) if name in self.tensors)

    def _shape(self, name: str) -> Shape:
        tensor = self.tensors.get(name)
        if tensor is None or tensor.shape is None:
            raise UnknownSizeError(name)
        return tensor.shape


Rule = Callable[[SizedNode], int]
"""The FLOP or the traffic of a node."""


def elementwise(flops: int) -> Rule:
    """A rule with this number of FLOP for each element of the result."""
    return lambda node: flops * node.results


def by_input(flops: int, place: int = 0) -> Rule:
    """A rule with this number of FLOP for each element of an input."""
    return lambda node: flops * node.elements(place)


def convolution(node: SizedNode, weight: int = 1, *, channels_last: bool = False) -> int:
    """A convolution. A bias takes the place of the first addition of each sum."""
    kernel, result = node.shape(weight), node.result()
    if channels_last:
        result = (result[0], result[-1], *result[1:-1])
    return formulas.convolution(result[0], result[1], math.prod(result[2:]), kernel[1], math.prod(kernel[2:]))


def pooling(node: SizedNode) -> int:
    """A maximum or a mean over the positions of a window."""
    return formulas.pooling(node.results, math.prod(node.attribute("kernel_shape", (1,))))
