"""Variables of TensorFlow 1.12, the layers that hold them, and the optimisers that update them.

A variable is a VariableV2 with its initial value, an Assign and an Identity that reads it, all on one device
(`variables.py`, `init_ops.py`). A session runs the initial value and the Assign once, before the first step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from placeopt.generate.tensorflow.derivatives import Gradient, Slices
from placeopt.generate.tensorflow.gradients import gradients
from placeopt.generate.tensorflow.graph import Graph, Node, Shape, Tensor
from placeopt.generate.tensorflow.operations import (
    bias_add,
    binary,
    concat,
    constant,
    gather,
    identity,
    ints,
    matmul,
    pack,
    pointwise,
    random_uniform,
    reduce,
    reshape,
    reshape_to,
    reversed_binary,
    shape,
    strided_slice,
    transpose,
    zeros,
)

Initial = Literal["uniform", "normal", "zeros", "ones"]
RANDOM: dict[str, str] = {"uniform": "random_uniform", "normal": "truncated_normal"}
"""The random initial values, and their names in TensorFlow."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable."""

    reference: Tensor
    """Output of the VariableV2, which updates refer to."""
    read: Tensor
    """Its value, which operations read."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """What a model gives."""

    results: tuple[Tensor, ...]
    """What an inference computes."""
    loss: Tensor | None = None
    """What a training minimises."""
    step: Variable | None = None
    """The variable that counts the steps, if the model reads it."""
    rate: Tensor | None = None
    """The learning rate, if the model computes it."""


def variable(
    graph: Graph,
    sizes: Shape,
    initial: Initial,
    name: str,
    *,
    trainable: bool = True,
    cached: bool = False,
    type: str = "float",
) -> Variable:
    """`tf.get_variable`: initial values are uniform (Glorot), truncated normal, zeros or ones.

    The read of a `cached` variable may run on another device, as in recurrent cells (`set_caching_device`).
    """
    start = len(graph.nodes)
    with graph.scope(name):
        if initial in RANDOM:
            value = _random(graph, sizes, initial, f"Initializer/{RANDOM[initial]}")
        elif type == "int":
            value = constant(graph, sizes, 0, type, "Initializer/zeros")
        else:
            value = zeros(graph, sizes, f"Initializer/{initial}")
    node = graph.add("VariableV2", (), sizes, type=type, name=name)
    node.resident = node.outputs[0].bytes
    for other in graph.nodes[start : node.number]:
        other.colocated = (*other.colocated, node)
    return _held(graph, node, value, name, trainable, cached)


def free_variable(graph: Graph, sizes: Shape, initial: Initial, *, trainable: bool = True) -> Variable:
    """`tf.Variable` of a random tensor, whose operations may run on any device."""
    value = _random(graph, sizes, initial, RANDOM[initial])
    node = graph.add("VariableV2", (), sizes, name="Variable")
    node.resident = node.outputs[0].bytes
    return _held(graph, node, value, "Variable", trainable)


def _held(graph: Graph, node: Node, value: Tensor, name: str, trainable: bool, cached: bool = False) -> Variable:
    own = node.outputs[0]
    with graph.colocate_with(node):
        graph.add("Assign", (own, value), own.shape, type=own.type, name=f"{name}/Assign")
    with graph.anywhere() if cached else graph.colocate_with(node):
        read = identity(own, f"{name}/read")
    if trainable:
        graph.variables.append(own)
    return Variable(own, read)


def _random(graph: Graph, sizes: Shape, initial: Initial, name: str) -> Tensor:
    to = ints(graph, *sizes, name=f"{name}/shape")
    if initial == "uniform":
        return random_uniform(to, sizes, (True,) * len(sizes), name)
    mean, deviation = (constant(graph, name=f"{name}/{what}") for what in ("mean", "stddev"))
    drawn = graph.add("TruncatedNormal", (to,), sizes, name=f"{name}/TruncatedNormal", flops=20 * prod(sizes))
    return pointwise("Add", pointwise("Mul", drawn.outputs[0], deviation, name=f"{name}/mul"), mean, name=name)


def dense(x: Tensor, width: int, name: str = "dense", bias: bool = True, activation: str | None = None) -> Tensor:
    """`tf.layers.dense`: a product of matrices, or of the last axis of a tensor (`tf.tensordot`)."""
    graph = x.node.graph
    kernel = variable(graph, (x.shape[-1], width), "uniform", f"{name}/kernel")
    offset = variable(graph, (width,), "zeros", f"{name}/bias") if bias else None
    with graph.scope(name):
        y = tensordot(x, kernel.read) if x.rank > 2 else matmul(x, kernel.read)
        if offset is not None:
            y = bias_add(y, offset.read)
        return pointwise(activation, y) if activation else y


def tensordot(x: Tensor, kernel: Tensor) -> Tensor:
    """`tf.tensordot` of the last axis of x and the rows of a matrix."""
    graph, rank, width = x.node.graph, x.rank, kernel.shape[1]
    rows = prod(x.shape[:-1])
    sizes, known = (*x.shape[:-1], width), (*x.known[:-1], True)
    with graph.scope("Tensordot"):
        if x.static:
            left = reshape_to(transpose(x, range(rank)), (rows, x.shape[-1]))
            right = reshape_to(transpose(kernel, (0, 1), name="transpose_1"), kernel.shape, name="Reshape_1")
            to = ints(graph, *sizes, name="Const")
            product = matmul(left, right)
        else:
            axes = ints(graph, rank - 1, name="axes")
            free = ints(graph, *range(rank - 1), name="free")
            own = shape(x)
            outer, inner = gather(own, free), gather(own, axes)
            counts = [reduce("Prod", part, (0,), by=ints(graph, 0)) for part in (outer, inner)]
            order = concat([free, axes], 0)
            to = pack(counts, graph)
            left = reshape(transpose(x, range(rank), order), to, (rows, x.shape[-1]), (False, False))
            right = reshape_to(transpose(kernel, (0, 1), name="transpose_1"), kernel.shape, name="Reshape_1")
            product = matmul(left, right)
            to = concat([outer, ints(graph, width, name="Const_2")], 0, name="concat_1")
    return reshape(product, to, sizes, known, "Tensordot")


def layer_norm(x: Tensor) -> Tensor:
    """A layer normalisation of `tf.nn.moments`, a gain and an offset: gamma (x - mean) / (variance + epsilon)^0.5."""
    graph = x.node.graph
    with graph.scope("ln"):
        mean = reduce("Mean", x, (-1,), keep=True, name="moments/mean")
        centre = pointwise("StopGradient", mean, name="moments/StopGradient")
        squares = pointwise("SquaredDifference", x, centre, name="moments/SquaredDifference")
        variance = reduce("Mean", squares, (-1,), keep=True, name="moments/variance")
        beta = variable(graph, x.shape[-1:], "zeros", "beta")
        gamma = variable(graph, x.shape[-1:], "ones", "gamma")
        shifted = pointwise("Sub", x, mean, name="sub")
        deviation = binary("Pow", binary("Add", variance, 1e-8, name="add"), 0.5, name="pow")
        normed = pointwise("RealDiv", shifted, deviation, name="truediv")
        return pointwise("Add", pointwise("Mul", gamma.read, normed, name="mul"), beta.read, name="add_1")


def batch_norm(x: Tensor, name: str, *, gain: bool, training: bool, slim: bool, channels_first: bool) -> Tensor:
    """`slim.batch_norm` or `tf.layers.batch_normalization`, fused, with the updates of the moving averages."""
    graph, channels = x.node.graph, (x.shape[1],)
    scale = offset = None
    with graph.scope(name):
        fixed = None if gain else constant(graph, channels)
        if slim:
            offset = variable(graph, channels, "zeros", "beta")
            scale = variable(graph, channels, "ones", "gamma") if gain else None
        else:
            scale = variable(graph, channels, "ones", "gamma") if gain else None
            offset = variable(graph, channels, "zeros", "beta")
        mean = variable(graph, channels, "zeros", "moving_mean", trainable=False)
        variance = variable(graph, channels, "ones", "moving_variance", trainable=False)
        factor = scale.read if scale is not None else fixed
        assert factor is not None
        averages = (constant(graph, (0,)), constant(graph, (0,))) if training else (mean.read, variance.read)
        normed = graph.add(
            "FusedBatchNorm",
            (x, factor, offset.read, *averages),
            x.shape,
            *[channels] * 4,
            flops=4 * x.elements,
            value=(training, channels_first),
        )
        if training or not slim:
            decay = constant(graph)
        if training:
            for i, average in enumerate((mean, variance)):
                _moving_average(graph, average, normed.outputs[1 + i], decay)
    return normed.outputs[0]


def _moving_average(graph: Graph, average: Variable, value: Tensor, decay: Tensor) -> None:
    with graph.colocate_with(average.reference.node), graph.scope("AssignMovingAvg"):
        step = reversed_binary("Sub", 1, decay, name="sub")
        change = pointwise("Sub", average.read, value, name="sub_1")
        amount = pointwise("Mul", change, step, name="mul")
        graph.add("AssignSub", (average.reference, amount), average.reference.shape)


def minimize(
    graph: Graph,
    loss: Tensor,
    optimiser: Literal["sgd", "momentum", "adam"],
    step: Variable | None = None,
    rate: Tensor | None = None,
    colocate: bool = True,
) -> Node:
    """`Optimizer.minimize`: the gradients of all trainable variables, and their updates."""
    references = list(graph.variables)
    pairs = [
        (reference, gradient)
        for reference, gradient in zip(references, gradients(loss, references, colocate), strict=True)
        if gradient is not None
    ]
    title = {"sgd": "GradientDescent", "momentum": "Momentum", "adam": "Adam"}[optimiser]
    updater = {"sgd": _descend, "momentum": _momentum, "adam": _adam}[optimiser]
    updates, finish = updater(graph, pairs, rate, title)
    if step is None:
        with graph.after(*updates, *finish):
            return graph.add("NoOp", (), name=title)
    with graph.after(*updates, *finish):
        done = graph.add("NoOp", (), name=f"{title}/update")
    with graph.colocate_with(step.reference.node), graph.after(done):
        one = ints(graph, 1, name=f"{title}/value", scalar=True)
        return graph.add("AssignAdd", (step.reference, one), (), type="int", name=title)


Updates = tuple[list[Node], list[Node]]
Pairs = Sequence[tuple[Tensor, Gradient]]


def _slot(graph: Graph, reference: Tensor, name: str) -> Tensor:
    """A variable of zeros for another one, on its device (`slot_creator.py`)."""
    with graph.colocate_with(reference.node):
        return variable(graph, reference.shape, "zeros", f"{reference.node.name}/{name}", trainable=False).reference


def _apply(graph: Graph, op: str, title: str, reference: Tensor, inputs: Sequence[Tensor], flops: int) -> Node:
    with graph.colocate_with(reference.node):
        name = f"{title}/update_{reference.node.name}/{op}"
        return graph.add(op, (reference, *inputs), reference.shape, name=name, flops=flops * reference.elements)


def _descend(graph: Graph, pairs: Pairs, rate: Tensor | None, title: str) -> Updates:
    rate = constant(graph, name=f"{title}/learning_rate") if rate is None else rate
    updates = []
    for reference, gradient in pairs:
        if isinstance(gradient, Slices):
            with graph.colocate_with(reference.node), graph.scope(f"{title}/update_{reference.node.name}"):
                change = pointwise("Mul", gradient.values, rate, name="mul")
                inputs = (reference, gradient.indices, change)
                updates.append(graph.add("ScatterSub", inputs, reference.shape, flops=change.elements))
        else:
            updates.append(_apply(graph, "ApplyGradientDescent", title, reference, (rate, gradient), 2))
    return updates, []


def _momentum(graph: Graph, pairs: Pairs, rate: Tensor | None, title: str) -> Updates:
    slots = [_slot(graph, reference, "Momentum") for reference, _ in pairs]
    rate = constant(graph, name=f"{title}/learning_rate") if rate is None else rate
    factor = constant(graph, name=f"{title}/momentum")
    updates = []
    for (reference, gradient), slot in zip(pairs, slots, strict=True):
        if isinstance(gradient, Slices):
            values, indices = _unique_rows(graph, reference, gradient, title)
            inputs: tuple[Tensor, ...] = (slot, rate, values, indices, factor)
            updates.append(_apply(graph, "SparseApplyMomentum", title, reference, inputs, 0))
            updates[-1].flops = 4 * values.elements
        else:
            updates.append(_apply(graph, "ApplyMomentum", title, reference, (slot, rate, gradient, factor), 4))
    return updates, []


def _adam(graph: Graph, pairs: Pairs, rate: Tensor | None, title: str) -> Updates:
    first = min((reference for reference, _ in pairs), key=lambda reference: reference.node.name)
    powers = []
    for name in ("beta1_power", "beta2_power"):
        with graph.colocate_with(first.node):
            start = constant(graph, name=f"{name}/initial_value")
            node = graph.add("VariableV2", (), (), name=name)
            node.resident = node.outputs[0].bytes
            powers.append(_held(graph, node, start, name, trainable=False))
    slots = [(_slot(graph, each, "Adam"), _slot(graph, each, "Adam_1")) for each, _ in pairs]
    rate = constant(graph, name=f"{title}/learning_rate") if rate is None else rate
    betas = [constant(graph, name=f"{title}/{name}") for name in ("beta1", "beta2")]
    epsilon = constant(graph, name=f"{title}/epsilon")
    updates = []
    reads = [power.read for power in powers]
    for (reference, gradient), own in zip(pairs, slots, strict=True):
        if isinstance(gradient, Slices):
            updates.append(_adam_rows(graph, reference, gradient, own, reads, rate, betas, epsilon, title))
        else:
            inputs = (*own, *reads, rate, *betas, epsilon, gradient)
            updates.append(_apply(graph, "ApplyAdam", title, reference, inputs, 12))
    finish = []
    with graph.after(*updates):
        products = [
            pointwise("Mul", power.read, beta, name=f"{title}/mul") for power, beta in zip(powers, betas, strict=True)
        ]
        for product, power in zip(products, powers, strict=True):
            product.node.colocated = (first.node,)
            with graph.colocate_with(power.reference.node):
                finish.append(graph.add("Assign", (power.reference, product), (), name=f"{title}/Assign"))
    return updates, finish


def _adam_rows(
    graph: Graph,
    reference: Tensor,
    gradient: Slices,
    slots: tuple[Tensor, Tensor],
    powers: Sequence[Tensor],
    rate: Tensor,
    betas: Sequence[Tensor],
    epsilon: Tensor,
    title: str,
) -> Node:
    """The update of rows (`AdamOptimizer._apply_sparse_shared`); the moments of all rows decay."""
    values, indices = _unique_rows(graph, reference, gradient, title)
    size = reference.elements
    with graph.colocate_with(reference.node), graph.scope(f"{title}/update_{reference.node.name}"):
        root = pointwise("Sqrt", reversed_binary("Sub", 1, powers[1], name="sub"))
        step = pointwise("Mul", rate, root, name="mul")
        step = pointwise("RealDiv", step, reversed_binary("Sub", 1, powers[0], name="sub_1"), name="truediv")
        moments = []
        for slot, beta, part in zip(slots, betas, (values, None), strict=True):
            part = pointwise("Mul", values, values, name="mul_3") if part is None else part
            scaled = pointwise("Mul", part, reversed_binary("Sub", 1, beta, name="sub_2"), name="mul_1")
            own = slot.node
            read = next(node for node in graph.nodes[own.number :] if node.name == f"{own.name}/read").outputs[0]
            decayed = pointwise("Mul", read, beta, name="mul_2")
            assigned = graph.add("Assign", (slot, decayed), slot.shape)
            with graph.after(assigned):
                added = graph.add("ScatterAdd", (slot, indices, scaled), slot.shape, flops=values.elements)
            moments.append(added)
        deviation = pointwise("Sqrt", moments[1].outputs[0], name="Sqrt_1")
        change = pointwise("Mul", step, moments[0].outputs[0], name="mul_5")
        change = pointwise("RealDiv", change, pointwise("Add", deviation, epsilon, name="add"), name="truediv_1")
        update = graph.add("AssignSub", (reference, change), reference.shape, flops=size)
        with graph.after(update, *moments):
            return graph.add("NoOp", (), name="group_deps")


def _unique_rows(graph: Graph, reference: Tensor, gradient: Slices, title: str) -> tuple[Tensor, Tensor]:
    """Add up the gradients of equal rows (`optimizer._deduplicate_indexed_slices`)."""
    values, indices = gradient.values, gradient.indices
    with graph.colocate_with(reference.node), graph.scope(f"{title}/update_{reference.node.name}"):
        rows, places = graph.add(
            "Unique", (indices,), indices.shape, indices.shape, known=[(False,), indices.known], type="int"
        ).outputs
        count = strided_slice(shape(rows), ())
        summed = graph.add(
            "UnsortedSegmentSum",
            (values, places, count),
            values.shape,
            known=[(False, *values.known[1:])],
            flops=values.elements,
        )
    return summed.outputs[0], rows
