"""Types and values of tensors while shapes are inferred."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from placeopt.bridges.onnx_models.sizes import tensor_of
from placeopt.bridges.onnx_models.view import Tensor, Values

if TYPE_CHECKING:
    from onnx import TensorProto, TypeProto


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
