"""The light view of a model: live, folded and unused nodes, and tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

Values = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a model."""

    name: str
    element: str
    """Type of the elements in lower case, such as `float`, `float16` or `int64`; empty if unknown."""
    shape: tuple[int, ...] | None
    """None if the rank or a size is unknown, or if the value is a sequence or a map."""
    bytes: int
    """Size in bytes."""
    assumed: bool = False
    """Whether the size is assumed, since shape inference finds none."""

    @property
    def elements(self) -> int:
        """The number of elements; 0 if the shape is unknown."""
        return 0 if self.shape is None else math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Body:
    """A graph in an attribute of a control-flow node, such as the body of a Loop."""

    nodes: tuple[NodeProto, ...]
    """All nodes in topological order."""
    tensors: Mapping[str, Tensor]
    """Tensors of the body and of the graphs around it."""
    values: Mapping[str, Values]
    """Values of small constants."""
    constants: frozenset[str]
    """Names of the constants of the body."""
    bodies: Mapping[int, Mapping[str, Body]]
    """Bodies of control-flow nodes in this body, by index in `nodes` and attribute."""
    repeats: int | None
    """Number of iterations; None if it depends on data."""

    @property
    def weights(self) -> int:
        """Bytes of the constants of the body and of those inside it."""
        inner = (body for found in self.bodies.values() for body in found.values())
        return sum(self.tensors[name].bytes for name in self.constants) + sum(body.weights for body in inner)


@dataclass(frozen=True, slots=True)
class LiveNode:
    """A node that depends on an input of the model and that an output of the model needs: a task."""

    task: str
    """Name of the task: the node's name if it is unique, else the operator and the first output."""
    index: int
    """Index in `OnnxModel.proto.graph.node`."""
    proto: NodeProto
    reads: tuple[str, ...]
    """Live tensors that the node reads, also in the bodies of control flow; each once."""
    constants: tuple[str, ...]
    """Initializers and folded tensors that the node reads, also in the bodies of control flow; each once."""
    writes: tuple[str, ...]
    """Outputs that a live node reads or that are outputs of the model."""
    bodies: Mapping[str, Body] = field(default_factory=dict)
    """Bodies of control flow by attribute."""

    @property
    def op(self) -> str:
        """The operator, with its domain unless that is the standard one: `Conv`, `com.microsoft.Gelu`."""
        return operator_name(self.proto)


@dataclass(frozen=True)
class OnnxModel:
    """A model without weights, in which functions are inlined and every tensor has a size."""

    name: str
    """Name of the graph, else that of the file."""
    file: str | None
    proto: ModelProto
    """The model without the values of its weights, with functions inlined."""
    nodes: tuple[LiveNode, ...]
    """Live nodes in topological order."""
    inputs: tuple[str, ...]
    """Inputs of the graph that are not initializers."""
    outputs: tuple[str, ...]
    """Outputs of the graph."""
    tensors: Mapping[str, Tensor]
    """All tensors of the graph by name."""
    producers: Mapping[str, str]
    """The task that writes each output of a live node."""
    constants: frozenset[str]
    """Names of the initializers and folded tensors."""
    folded: tuple[int, ...]
    """Indices of the nodes that have no live ancestor and therefore are not tasks."""
    unused: tuple[int, ...]
    """Indices of the other nodes that no output needs and that therefore are not tasks."""
    opsets: Mapping[str, int]
    """Version of each operator set by domain; the standard domain is empty."""
    values: Mapping[str, Values]
    """Values of small tensors that do not depend on the values of the inputs, such as the shape of a Reshape."""

    notes: tuple[str, ...] = ()
    """What the model states and does not hold."""

    @cached_property
    def tasks(self) -> dict[str, LiveNode]:
        """Live nodes by the name of their task."""
        return {node.task: node for node in self.nodes}

    @cached_property
    def readers(self) -> dict[str, tuple[LiveNode, ...]]:
        """The live nodes that read each tensor or constant, in topological order."""
        found: dict[str, list[LiveNode]] = {}
        for node in self.nodes:
            for name in (*node.reads, *node.constants):
                found.setdefault(name, []).append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    def stored(self, name: str) -> tuple[str, ...]:
        """The constants in memory for a constant: dequantised weights are stored in their quantised form."""
        node = self._dequantised.get(name)
        return (name,) if node is None else tuple(dict.fromkeys(filter(None, node.input)))

    @cached_property
    def _dequantised(self) -> dict[str, NodeProto]:
        """The folded nodes that dequantise weights, by output."""
        nodes = (self.proto.graph.node[index] for index in self.folded)
        return {node.output[0]: node for node in nodes if node.op_type == "DequantizeLinear"}


def operator_name(node: NodeProto) -> str:
    """The operator of a node, with its domain unless that is the standard one."""
    return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"


def attribute(node: NodeProto, name: str, default: Any = None) -> Any:
    """The value of an attribute of a node."""
    from onnx import helper

    return next((helper.get_attribute_value(each) for each in node.attribute if each.name == name), default)
