"""Gradients as `tf.gradients` of TensorFlow 1.12 adds them (`gradients_impl.py`, `*_grad.py`).

The operations between the loss and the variables are visited breadth first, each after all operations that read it.
Several gradients of a tensor are added up (AddN). The gradient function of an operation adds its operations; if it
has several results, a NoOp waits for all of them, and an Identity passes each on (`GATE_OP`, the default of
`Optimizer.compute_gradients`). With `colocate_gradients_with_ops`, they share the device of the operation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from placeopt.errors import InternalError
from placeopt.generate.tensorflow.derivatives import FUNCTIONS, Gradient, Slices
from placeopt.generate.tensorflow.graph import Graph, Node, Tensor
from placeopt.generate.tensorflow.operations import (
    arange,
    concat,
    constant,
    identity,
    ints,
    pointwise,
    shape,
    strided_slice,
)


def gradients(loss: Tensor, variables: Sequence[Tensor], colocate: bool = True) -> list[Gradient | None]:
    """Add the gradients of a loss, and return that of each variable; None if the loss does not depend on it."""
    graph = loss.node.graph
    with graph.colocate_with(loss.node) if colocate else graph.anywhere():
        to = ints(graph, *loss.shape, name="gradients/Shape")
        one = constant(graph, (), 1, name="gradients/grad_ys_0")
        start = graph.add("Fill", (to, one), loss.shape, name="gradients/Fill").outputs[0]
    pending = _pending(loss.node, variables)
    found: dict[tuple[int, int], list[Gradient]] = {(loss.node.number, loss.index): [start]}
    queue = deque([loss.node])
    while queue:
        node = queue.popleft()
        own = [
            _added_up(graph, found[node.number, i], node, colocate) if (node.number, i) in found else None
            for i in range(len(node.outputs))
        ]
        function = FUNCTIONS.get(node.op)
        if node.inputs and any(each is not None for each in own):
            if function is None:
                raise InternalError(f"{node.op} has no gradient")
            for i, each in enumerate(own):
                if each is None and node.outputs[i].type == "float":
                    with graph.gradient_of(node, colocate):
                        own[i] = pointwise("ZerosLike", node.outputs[i], name="zeros_like")
            with graph.gradient_of(node, colocate):
                results = list(function(node, *own))
                if sum(each is not None for each in results) > 1:
                    results = _gated(graph, results)
            for tensor, each in zip(node.inputs, results, strict=False):
                if each is not None:
                    if isinstance(each, Tensor) and each.known != tensor.known and each.rank == tensor.rank:
                        each.known = tuple(one or two for one, two in zip(each.known, tensor.known, strict=True))
                    found.setdefault((tensor.node.number, tensor.index), []).append(each)
        for tensor in node.inputs:
            number = tensor.node.number
            if number in pending:
                pending[number] -= 1
                if not pending[number]:
                    queue.append(tensor.node)
    return [
        _added_up(graph, found[each.node.number, 0], each.node, colocate) if (each.node.number, 0) in found else None
        for each in variables
    ]


def _pending(target: Node, variables: Sequence[Tensor]) -> dict[int, int]:
    """Return the number of reads of each operation by operations between the variables and the target."""
    graph = target.graph
    reached = [False] * (target.number + 1)
    for variable in variables:
        if variable.node.number <= target.number:
            reached[variable.node.number] = True
    for node in graph.nodes[: target.number + 1]:
        if not reached[node.number]:
            reached[node.number] = any(reached[tensor.node.number] and tensor.type == "float" for tensor in node.inputs)
    between = {target.number}
    pending: dict[int, int] = {}
    stack = [target]
    while stack:
        node = stack.pop()
        for tensor in node.inputs:
            number = tensor.node.number
            if reached[number]:
                pending[number] = pending.get(number, 0) + 1
                if number not in between:
                    between.add(number)
                    stack.append(tensor.node)
    return pending


def _added_up(graph: Graph, parts: list[Gradient], node: Node, colocate: bool) -> Gradient:
    if len(parts) == 1:
        return parts[0]
    dense = [part for part in parts if isinstance(part, Tensor)]
    if len(dense) < len(parts):
        return _joined(graph, parts, node, colocate)
    first = dense[0]
    with graph.colocate_with(first.node, alone=True):
        known = tuple(any(part.known[i] for part in dense) for i in range(first.rank))
        flops = (len(dense) - 1) * first.elements
        summed = graph.add("AddN", dense, first.shape, known=[known], name="gradients/AddN", flops=flops)
    summed.forward = node
    parts[:] = summed.outputs
    return summed.outputs[0]


def _joined(graph: Graph, parts: list[Gradient], node: Node, colocate: bool) -> Slices:
    """Join gradients of rows; a dense one is one of all rows."""
    before = graph.colocated
    graph.colocated = (*before, node) if colocate else before
    graph.forward = node
    try:
        rows: list[Slices] = []
        for part in parts:
            if isinstance(part, Tensor):
                sizes = shape(part, name="gradients/Shape")
                length = strided_slice(sizes, (), name="gradients/strided_slice")
                part = Slices(part, arange(graph, length, part.shape[0], name="gradients/range"), sizes, part)
            rows.append(part)
        values = concat([part.values for part in rows], 0, name="gradients/concat")
        indices = concat([part.indices for part in rows], 0, name="gradients/concat_1")
    finally:
        graph.colocated, graph.forward = before, None
    joined = Slices(values, indices, rows[0].sizes, rows[0].like)
    parts[:] = [joined]
    return joined


def _gated(graph: Graph, results: list[Gradient | None]) -> list[Gradient | None]:
    """Let each result wait for all of them (`control_flow_ops.tuple`)."""
    gates = [each.values.node if isinstance(each, Slices) else each.node for each in results if each is not None]
    unique = sorted({node.number: node for node in gates}.items())
    with graph.scope("tuple"), graph.anywhere():
        with graph.after(*(node for _, node in unique)):
            gate = graph.add("NoOp", (), name="group_deps")
        gated: list[Gradient | None] = []
        for each in results:
            if each is None:
                gated.append(None)
                continue
            tensor = each.values if isinstance(each, Slices) else each
            with graph.colocate_with(tensor.node), graph.after(gate):
                passed = identity(tensor, "control_dependency")
                if isinstance(each, Slices):
                    gated.append(Slices(passed, each.indices, each.sizes, each.like))
                else:
                    gated.append(passed)
    return gated
