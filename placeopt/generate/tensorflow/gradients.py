"""Gradients as `tf.gradients` of TensorFlow 1.12 adds them (`gradients_impl.py`, `*_grad.py`).

The operations between the loss and the variables are visited breadth first, each after all operations that read it.
Several gradients of a tensor are added up (AddN). The gradient function of an operation adds its operations; if it
has several results, a NoOp waits for all of them, and an Identity passes each on (`GATE_OP`, the default of
`Optimizer.compute_gradients`). With `colocate_gradients_with_ops`, they share the device of the operation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from placeopt.errors import InternalError
from placeopt.generate.tensorflow import operations as tf
from placeopt.generate.tensorflow.derivatives import FUNCTIONS, Gradient, Slices
from placeopt.generate.tensorflow.graph import Graph, Node, Tensor, Unknown, agreed


def gradients(loss: Tensor, variables: Sequence[Tensor]) -> list[Gradient | None]:
    """Add the gradients of a loss, and return that of each variable; None if the loss does not depend on it."""
    graph = loss.node.graph
    with graph.colocate_with(loss.node):
        to = tf.ints(graph, *loss.shape, name="gradients/Shape")
        one = tf.constant(graph, (), 1, name="gradients/grad_ys_0")
        start = graph.tensor("Fill", (to, one), loss.shape, name="gradients/Fill")
    pending = _pending(loss.node, variables)
    found: dict[tuple[int, int], list[Gradient]] = {(loss.node.number, loss.index): [start]}
    queue = deque([loss.node])
    while queue:
        node = queue.popleft()
        own = [
            _added_up(graph, found[node.number, i], node) if (node.number, i) in found else None
            for i in range(len(node.outputs))
        ]
        function = FUNCTIONS.get(node.op)
        if node.inputs and any(each is not None for each in own):
            if function is None:
                raise InternalError(f"{node.op} has no gradient")
            for i, each in enumerate(own):
                if each is None and node.outputs[i].type == "float":
                    with graph.gradient_of(node, f"{node.name}_grad/"):
                        own[i] = tf.pointwise("ZerosLike", node.outputs[i], name="zeros_like")
            with graph.gradient_of(node, f"{node.name}_grad/"):
                results = list(function(node, *own))
                if sum(each is not None for each in results) > 1:
                    results = _gated(graph, results)
            for tensor, each in zip(node.inputs, results, strict=False):
                if each is not None:
                    if isinstance(each, Tensor) and each.rank == tensor.rank:
                        each.shape = tuple(map(agreed, each.shape, tensor.shape))
                    found.setdefault((tensor.node.number, tensor.index), []).append(each)
        for tensor in node.inputs:
            number = tensor.node.number
            if number in pending:
                pending[number] -= 1
                if not pending[number]:
                    queue.append(tensor.node)
    return [
        _added_up(graph, found[each.node.number, 0], each.node) if (each.node.number, 0) in found else None
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


def _added_up(graph: Graph, parts: list[Gradient], node: Node) -> Gradient:
    if len(parts) == 1:
        return parts[0]
    dense = [part for part in parts if isinstance(part, Tensor)]
    if len(dense) < len(parts):
        return _joined(graph, parts, node)
    first = dense[0]
    with graph.colocate_with(first.node, alone=True):
        shape = tuple(map(agreed, *(part.shape for part in dense)))
        flops = (len(dense) - 1) * first.elements
        summed = graph.tensor("AddN", dense, shape, name="gradients/AddN", flops=flops)
    summed.node.forward = node
    parts[:] = [summed]
    return summed


def _joined(graph: Graph, parts: list[Gradient], node: Node) -> Slices:
    """Join gradients of rows; a dense one is one of all rows."""
    with graph.gradient_of(node):
        rows: list[Slices] = []
        for part in parts:
            if isinstance(part, Tensor):
                sizes = tf.shape(part)
                every = tf.arange(tf.strided_slice(sizes, ()), Unknown(part.shape[0]))
                part = Slices(part, every, sizes, part)
            rows.append(part)
        values = tf.concat([part.values for part in rows], 0)
        indices = tf.concat([part.indices for part in rows], 0, name="concat_1")
    joined = Slices(values, indices, rows[0].sizes, rows[0].like)
    parts[:] = [joined]
    return joined


def _gated(graph: Graph, results: list[Gradient | None]) -> list[Gradient | None]:
    """Let each result wait for all of them (`control_flow_ops.tuple`)."""
    tensors = [each.values if isinstance(each, Slices) else each for each in results]
    nodes = {tensor.node.number: tensor.node for tensor in tensors if tensor is not None}
    gated: list[Gradient | None] = []
    with graph.scope("tuple"), graph.anywhere():
        with graph.after(*(node for _, node in sorted(nodes.items()))):
            gate = graph.add("NoOp", (), name="group_deps")
        for each, tensor in zip(results, tensors, strict=True):
            if tensor is None:
                gated.append(None)
                continue
            with graph.colocate_with(tensor.node), graph.after(gate):
                passed = tf.identity(tensor, "control_dependency")
            gated.append(replace(each, values=passed) if isinstance(each, Slices) else passed)
    return gated
