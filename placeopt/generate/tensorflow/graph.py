"""Graphs of TensorFlow 1.x: operations, their tensors, and the rules by which they share a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

Shape = tuple[int, ...]
Known = tuple[bool, ...]

WIDTHS = {"float": 4, "int": 4, "bool": 1, "resource": 0}
"""Bytes of an element by type; that of `float` is an option of the model."""


class Tensor:
    """An output of an operation.

    `known` says for each axis whether the graph states its size. TensorFlow computes with the sizes while it builds
    the graph where it knows them, and with operations of the graph otherwise. Costs need all sizes, so `shape` has
    them in both cases.
    """

    __slots__ = ("index", "known", "node", "shape", "type")

    def __init__(self, node: Node, index: int, shape: Shape, known: Known, type: str) -> None:
        self.node = node
        self.index = index
        self.shape = shape
        self.known = known
        self.type = type

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
        return all(self.known)

    @property
    def bytes(self) -> int:
        """Size of the values."""
        return self.graph.widths[self.type] * prod(self.shape)


class Node:
    """An operation: `op` is its type, as in `tf.Operation.type`."""

    __slots__ = (
        "colocated", "controls", "flops", "forward", "graph", "inputs", "name", "number", "op", "outputs", "resident",
        "value",
    )  # fmt: skip

    def __init__(self, graph: Graph, number: int, name: str, op: str, inputs: Sequence[Tensor]) -> None:
        self.graph = graph
        self.number = number
        self.name = name
        self.op = op
        self.inputs = tuple(inputs)
        self.controls: tuple[Node, ...] = ()
        self.outputs: tuple[Tensor, ...] = ()
        self.flops = 0
        self.resident = 0
        self.value: Any = None
        """What the gradient needs to know: the value of a constant, or an attribute."""
        self.colocated: tuple[Node, ...] = graph.colocated
        self.forward: Node | None = graph.forward
        """The operation whose gradient this one helps to compute."""


class Graph:
    """Operations in the order of their creation, which is topological."""

    def __init__(self, width: int = 4) -> None:
        self.nodes: list[Node] = []
        self.widths = {**WIDTHS, "float": width}
        self.variables: list[Tensor] = []
        """References to the trainable variables."""
        self.colocated: tuple[Node, ...] = ()
        self.forward: Node | None = None
        self._waits: list[tuple[int, tuple[Node, ...]]] = []
        """For each enclosing context of `after`, the number of operations before it, and what it waits for."""
        self._prefix = ""
        self._names: dict[str, int] = {}

    def add(
        self,
        op: str,
        inputs: Sequence[Tensor],
        *shapes: Shape,
        known: Sequence[Known] | None = None,
        type: str = "float",
        name: str | None = None,
        flops: int = 0,
        value: Any = None,
    ) -> Node:
        """Add an operation with an output of each shape; without `known`, the graph states all sizes."""
        node = Node(self, len(self.nodes), self._unique(self._prefix + (name or op)), op, inputs)
        node.flops = flops
        node.value = value
        if self._waits:
            latest = max([tensor.node.number for tensor in inputs], default=-1)
            node.controls = tuple([other for start, others in self._waits if latest < start for other in others])
        if known is None:
            node.outputs = tuple([Tensor(node, i, shape, (True,) * len(shape), type) for i, shape in enumerate(shapes)])
        else:
            pairs = enumerate(zip(shapes, known, strict=True))
            node.outputs = tuple([Tensor(node, i, shape, sizes, type) for i, (shape, sizes) in pairs])
        self.nodes.append(node)
        return node

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Put a prefix before the names of operations."""
        before, self._prefix = self._prefix, f"{self._prefix}{name}/"
        try:
            yield
        finally:
            self._prefix = before

    @contextmanager
    def colocate_with(self, node: Node, *, alone: bool = False) -> Iterator[None]:
        """Put operations on the device of a node (`tf.colocate_with`), and unless `alone` of the enclosing ones."""
        before = self.colocated
        self.colocated = (node,) if alone else (*before, node)
        try:
            yield
        finally:
            self.colocated = before

    @contextmanager
    def anywhere(self) -> Iterator[None]:
        """Let operations run on any device, regardless of the enclosing contexts."""
        before, self.colocated = self.colocated, ()
        try:
            yield
        finally:
            self.colocated = before

    @contextmanager
    def after(self, *nodes: Node) -> Iterator[None]:
        """Let operations start only after some nodes (`tf.control_dependencies`).

        Operations that read one of the context start after it anyway, and get no further edge.
        """
        self._waits.append((len(self.nodes), nodes))
        try:
            yield
        finally:
            self._waits.pop()

    @contextmanager
    def gradient_of(self, node: Node, colocate: bool) -> Iterator[None]:
        """Add operations that compute the gradient of a node, on its device if requested."""
        before, prefix, self.forward = self.colocated, self._prefix, node
        if colocate:
            self.colocated = (*before, node)
        self._prefix = f"gradients/{node.name}_grad/"
        try:
            yield
        finally:
            self.colocated, self._prefix, self.forward = before, prefix, None

    def groups(self) -> list[int]:
        """Return for each node the number of the first node with which it must share a device."""
        root = list(range(len(self.nodes)))

        def find(i: int) -> int:
            while root[i] != i:
                root[i] = root[root[i]]
                i = root[i]
            return i

        for node in self.nodes:
            for other in node.colocated:
                one, two = find(node.number), find(other.number)
                if one != two:
                    root[max(one, two)] = min(one, two)
        return [find(i) for i in range(len(root))]

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
