"""Graphs of TensorFlow 1.x: operations, their tensors, and the rules by which they share a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from placeopt.model.graph import components


class Unknown(int):
    """A size that the graph does not state.

    TensorFlow computes with sizes while it builds the graph where it knows them, and with operations of the graph
    otherwise. Costs need all sizes, so that these have a value as well.
    """


Shape = tuple[int, ...]

WIDTHS = {"float": 4, "int": 4, "bool": 1, "resource": 0}
"""Bytes of an element by type; that of `float` is an option of the model."""


def stated(*sizes: int) -> bool:
    """Whether the graph states all these sizes."""
    return not any(isinstance(size, Unknown) for size in sizes)


def agreed(*sizes: int) -> int:
    """A size that several tensors share, stated if one of them states it."""
    return next((size for size in sizes if stated(size)), sizes[0])


def product(shape: Shape) -> int:
    """The number of values of a shape, stated if all sizes are."""
    return prod(shape) if stated(*shape) else Unknown(prod(shape))


@dataclass(slots=True, eq=False, repr=False)
class Tensor:
    """An output of an operation."""

    node: Node
    index: int
    shape: Shape
    type: str

    @property
    def graph(self) -> Graph:
        """The graph of the tensor."""
        return self.node.graph

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def elements(self) -> int:
        """Number of values."""
        return prod(self.shape)

    @property
    def static(self) -> bool:
        """Whether the graph states all sizes."""
        return stated(*self.shape)

    @property
    def bytes(self) -> int:
        """Size of the values."""
        return self.graph.widths[self.type] * prod(self.shape)


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """An operation: `op` is its type, as in `tf.Operation.type`."""

    graph: Graph
    number: int
    name: str
    op: str
    inputs: tuple[Tensor, ...]
    colocated: tuple[Node, ...]
    forward: Node | None
    """The operation whose gradient this one helps to compute."""
    flops: int = 0
    value: Any = None
    """What the gradient needs to know: the value of a constant, or an attribute."""
    controls: tuple[Node, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    resident: int = 0


class Graph:
    """Operations in the order of their creation, which is topological."""

    def __init__(self, width: int = 4) -> None:
        self.nodes: list[Node] = []
        self.widths = {**WIDTHS, "float": width}
        self.variables: list[Tensor] = []
        """References to the trainable variables."""
        self.colocated: tuple[Node, ...] = ()
        self.forward: Node | None = None
        self._waits: tuple[tuple[int, tuple[Node, ...]], ...] = ()
        """For each enclosing context of `after`, the number of operations before it, and what it waits for."""
        self._prefix = ""
        self._names: dict[str, int] = {}

    def add(
        self,
        op: str,
        inputs: Sequence[Tensor],
        *shapes: Shape,
        type: str = "float",
        name: str | None = None,
        flops: int = 0,
        value: Any = None,
    ) -> Node:
        """Add an operation with an output of each shape."""
        title = self._unique(self._prefix + (name or op))
        node = Node(self, len(self.nodes), title, op, tuple(inputs), self.colocated, self.forward, flops, value)
        if self._waits:
            read = [tensor.node.number for tensor in inputs]
            latest = max(read, default=-1)
            waits = [other for start, others in self._waits if latest < start for other in others]
            node.controls = tuple([other for other in waits if other.number not in read])
        node.outputs = tuple([Tensor(node, i, shape, type) for i, shape in enumerate(shapes)])
        self.nodes.append(node)
        return node

    def tensor(self, op: str, inputs: Sequence[Tensor], shape: Shape, **attributes: Any) -> Tensor:
        """Add an operation with one output, and return the output; see `add` for the attributes."""
        return self.add(op, inputs, shape, **attributes).outputs[0]

    def scope(self, name: str) -> AbstractContextManager[None]:
        """Put a prefix before the names of operations."""
        return self._with(_prefix=f"{self._prefix}{name}/")

    def colocate_with(self, node: Node, *, alone: bool = False) -> AbstractContextManager[None]:
        """Put operations on the device of a node (`tf.colocate_with`), and unless `alone` of the enclosing ones."""
        return self._with(colocated=(node,) if alone else (*self.colocated, node))

    def anywhere(self) -> AbstractContextManager[None]:
        """Let operations run on any device, regardless of the enclosing contexts."""
        return self._with(colocated=())

    def after(self, *nodes: Node) -> AbstractContextManager[None]:
        """Let operations start only after some nodes (`tf.control_dependencies`).

        Operations that read one of these nodes, or one of the context, start after them anyway.
        """
        return self._with(_waits=(*self._waits, (len(self.nodes), nodes)))

    def gradient_of(self, node: Node, scope: str = "") -> AbstractContextManager[None]:
        """Add operations that compute the gradient of a node, on its device."""
        return self._with(colocated=(*self.colocated, node), forward=node, _prefix=f"gradients/{scope}")

    @contextmanager
    def _with(self, **values: Any) -> Iterator[None]:
        """Set attributes for the operations of a `with` block."""
        before = {name: getattr(self, name) for name in values}
        for name, value in values.items():
            setattr(self, name, value)
        try:
            yield
        finally:
            for name, value in before.items():
                setattr(self, name, value)

    def groups(self) -> list[int]:
        """Return for each node the number of the first node with which it must share a device."""
        pairs = [(node.number, other.number) for node in self.nodes for other in node.colocated]
        left, right = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        group, _ = components(len(self.nodes), left, right)
        first: list[int] = np.unique(group, return_index=True)[1][group].tolist()
        return first

    def needed(self, *targets: Node) -> list[bool]:
        """Return for each node whether an execution of the targets runs it; TensorFlow runs no others."""
        found = [False] * len(self.nodes)
        for target in targets:
            found[target.number] = True
        stack = list(targets)
        while stack:
            node = stack.pop()
            for other in (*(tensor.node for tensor in node.inputs), *node.controls):
                if not found[other.number]:
                    found[other.number] = True
                    stack.append(other)
        return found

    def _unique(self, name: str) -> str:
        count = self._names.get(name)
        if count is None:
            self._names[name] = 0
            return name
        while True:
            count += 1
            changed = f"{name}_{count}"
            if changed not in self._names:
                self._names[name] = count
                self._names[changed] = 0
                return changed
