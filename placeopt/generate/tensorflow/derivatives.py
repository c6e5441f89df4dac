"""Gradient functions of TensorFlow 1.12 (`array_grad.py`, `math_grad.py`, `nn_grad.py`).

Each function adds the operations that the gradient of one operation needs, and returns the gradients of its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from placeopt.generate.tensorflow.graph import Graph, Node, Tensor
from placeopt.generate.tensorflow.operations import (
    batch_matmul,
    binary,
    concat,
    constant,
    expand_dims,
    fill,
    gather,
    ints,
    matmul,
    pack,
    pointwise,
    reduce,
    reshape,
    reshape_like,
    reshape_to,
    shape,
    shape_n,
    slice_,
    squeeze,
    stack,
    strided_slice,
    tile,
    transpose,
    unstack,
)


@dataclass(frozen=True, slots=True)
class Slices:
    """A gradient of some rows of a tensor (`tf.IndexedSlices`)."""

    values: Tensor
    indices: Tensor
    sizes: Tensor
    """The shape of the tensor, as a tensor."""
    like: Tensor
    """The tensor."""


Gradient = Tensor | Slices
Gradients = Sequence[Gradient | None]


def dense(graph: Graph, gradient: Gradient) -> Tensor:
    """Return a gradient of rows as a tensor."""
    if isinstance(gradient, Tensor):
        return gradient
    count = strided_slice(gradient.sizes, ())
    like = gradient.like
    node = graph.add(
        "UnsortedSegmentSum",
        (gradient.values, gradient.indices, count),
        like.shape,
        known=[like.known],
        flops=gradient.values.elements,
    )
    return node.outputs[0]


def _zeros_like(x: Tensor) -> Tensor:
    return pointwise("ZerosLike", x, name="zeros_like")


def _exact(x: Tensor, y: Tensor, grad: Tensor) -> bool:
    return x.shape == y.shape == grad.shape and all(x.known) and all(y.known) and all(grad.known)


def _broadcast_args(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    sx, sy = shape(x), shape(y, "Shape_1")
    rx, ry = x.node.graph.add(
        "BroadcastGradientArgs", (sx, sy), (x.rank,), (y.rank,), known=[(False,), (False,)], type="int"
    ).outputs
    return sx, sy, rx, ry


def _sum_to(grad: Tensor, like: Tensor, axes: Tensor, name: str) -> Tensor:
    """Sum over the axes along which a tensor was repeated."""
    flops = 0 if grad.shape == like.shape else grad.elements
    node = grad.node.graph.add("Sum", (grad, axes), like.shape, known=[like.known], name=name, flops=flops)
    return node.outputs[0]


def _add(node: Node, grad: Tensor) -> Gradients:
    x, y = node.inputs
    if _exact(x, y, grad):
        return grad, grad
    sx, sy, rx, ry = _broadcast_args(x, y)
    left = reshape(_sum_to(grad, x, rx, "Sum"), sx, x.shape, x.known)
    return left, reshape(_sum_to(grad, y, ry, "Sum_1"), sy, y.shape, y.known)


def _sub(node: Node, grad: Tensor) -> Gradients:
    x, y = node.inputs
    if _exact(x, y, grad):
        return grad, pointwise("Neg", grad)
    sx, sy, rx, ry = _broadcast_args(x, y)
    left = reshape(_sum_to(grad, x, rx, "Sum"), sx, x.shape, x.known)
    return left, reshape(pointwise("Neg", _sum_to(grad, y, ry, "Sum_1")), sy, y.shape, y.known)


def _mul(node: Node, grad: Tensor) -> Gradients:
    x, y = node.inputs
    if _exact(x, y, grad):
        return pointwise("Mul", grad, y), pointwise("Mul", grad, x)
    sx, sy, rx, ry = _broadcast_args(x, y)
    left = reshape(_sum_to(pointwise("Mul", grad, y), x, rx, "Sum"), sx, x.shape, x.known)
    return left, reshape(_sum_to(pointwise("Mul", x, grad), y, ry, "Sum_1"), sy, y.shape, y.known)


def _real_div(node: Node, grad: Tensor) -> Gradients:
    x, y = node.inputs
    sx, sy, rx, ry = _broadcast_args(x, y)
    left = reshape(_sum_to(pointwise("RealDiv", grad, y), x, rx, "Sum"), sx, x.shape, x.known)
    ratio = pointwise("RealDiv", pointwise("RealDiv", pointwise("Neg", x), y), y)
    right = reshape(_sum_to(pointwise("Mul", grad, ratio, name="mul"), y, ry, "Sum_1"), sy, y.shape, y.known)
    return left, right


def _pow(node: Node, grad: Tensor) -> Gradients:
    x, y = node.inputs
    sx, sy, rx, ry = _broadcast_args(x, y)
    power = pointwise("Pow", x, binary("Sub", y, 1, name="sub"))
    product = pointwise("Mul", pointwise("Mul", grad, y, name="mul"), power, name="mul_1")
    left = reshape(_sum_to(product, x, rx, "Sum"), sx, x.shape, x.known)
    positive = binary("Greater", x, 0, type="bool")
    log = pointwise("Select", positive, pointwise("Log", x), _zeros(x), type="float")
    product = pointwise("Mul", pointwise("Mul", grad, node.outputs[0], name="mul_2"), log, name="mul_3")
    return left, reshape(_sum_to(product, y, ry, "Sum_1"), sy, y.shape, y.known)


def _zeros(x: Tensor) -> Tensor:
    """`tf.zeros_like` of a tensor: a constant if the graph states all sizes."""
    if not all(x.known):
        return _zeros_like(x)
    if x.elements < 1000:
        return constant(x.node.graph, x.shape, 0, name="zeros_like")
    return fill(x.node.graph, ints(x.node.graph, *x.shape, name="zeros_like/shape_as_tensor"), x.shape, x.known,
                name="zeros_like")  # fmt: skip


def _squared_difference(node: Node, grad: Tensor) -> Gradients:
    x, y = node.inputs
    sx, sy, rx, ry = _broadcast_args(x, y)
    with node.graph.after(grad.node):
        scaled = pointwise("Mul", constant(node.graph, (), 2, name="scalar"), grad)
        both = pointwise("Mul", scaled, pointwise("Sub", x, y, name="sub"), name="mul")
    left = reshape(_sum_to(both, x, rx, "Sum"), sx, x.shape, x.known)
    return left, pointwise("Neg", reshape(_sum_to(both, y, ry, "Sum_1"), sy, y.shape, y.known))


def _sum(node: Node, grad: Tensor) -> Gradients:
    return (_repeated(node, grad),)


def _repeated(node: Node, grad: Tensor) -> Tensor:
    """Repeat the gradient of a sum along the axes of the sum."""
    x, graph = node.inputs[0], node.graph
    if node.value == tuple(range(x.rank)):
        grad = reshape_to(grad, (1,) * x.rank)
        to = ints(graph, *x.shape) if x.static else shape(x)
        return tile(grad, to, x.shape, x.known)
    to = shape(x)
    with graph.colocate_with(to.node):
        rank = ints(graph, x.rank, name="Size", scalar=True)
        axes = node.inputs[1]
        axes = pointwise("FloorMod", pointwise("Add", axes, rank, name="add"), rank, name="mod")
        axes_shape = shape(axes)
        every = _range(graph, rank, x.rank)
        ones = fill(graph, axes_shape, axes.shape, axes.known, 1, "int")
        stitched = graph.add("DynamicStitch", (every, axes, to, ones), (x.rank,), known=[(False,)], type="int").outputs[
            0
        ]
        divisor = binary("Maximum", stitched, 1)
        scaling = pointwise("FloorDiv", to, divisor, name="floordiv")
    kept = tuple(1 if i in node.value else size for i, size in enumerate(x.shape))
    known = tuple(i in node.value or sure for i, sure in enumerate(x.known))
    return tile(reshape(grad, stitched, kept, known), scaling, x.shape, x.known)


def _range(graph: Graph, limit: Tensor, length: int) -> Tensor:
    start, delta = (ints(graph, i, name=f"range/{what}", scalar=True) for i, what in enumerate(("start", "delta")))
    return graph.add("Range", (start, limit, delta), (length,), type="int", name="range").outputs[0]


def _mean(node: Node, grad: Tensor) -> Gradients:
    x, y, graph = node.inputs[0], node.outputs[0], node.graph
    repeated = _repeated(node, grad)
    if x.static and y.static:
        factor = constant(graph)
    else:
        before, after = shape(x), shape(y)
        one = reduce("Prod", before, None)
        two = reduce("Prod", after, None)
        factor = pointwise("FloorDiv", one, binary("Maximum", two, 1), name="floordiv")
        factor = pointwise("Cast", factor, type="float")
    return (pointwise("RealDiv", repeated, factor, name="truediv"),)


def _matmul(node: Node, grad: Tensor) -> Gradients:
    x, y = node.inputs
    return matmul(grad, y, right=True), matmul(x, grad, left=True)


def _batch_matmul(node: Node, grad: Tensor) -> Gradients:
    x, y = node.inputs
    if node.value[1]:
        return batch_matmul(grad, y), batch_matmul(grad, x, left=True)
    return batch_matmul(grad, y, right=True), batch_matmul(x, grad, left=True)


def _bias_add(node: Node, grad: Tensor) -> Gradients:
    bias = node.inputs[1]
    summed = node.graph.add("BiasAddGrad", (grad,), bias.shape, flops=grad.elements)
    return grad, summed.outputs[0]


def _conv2d(node: Node, grad: Tensor) -> Gradients:
    x, kernel = node.inputs
    image, filters = shape_n([x, kernel])
    macs = node.flops
    back = node.graph.add("Conv2DBackpropInput", (image, kernel, grad), x.shape, known=[x.known], flops=macs)
    own = node.graph.add("Conv2DBackpropFilter", (x, filters, grad), kernel.shape, flops=macs)
    return back.outputs[0], own.outputs[0]


def _with_output(op: str) -> Callable[[Node, Tensor], Gradients]:
    """The gradient of an activation, from the gradient and the output."""

    def gradient(node: Node, grad: Tensor) -> Gradients:
        if op == "ReluGrad":
            return (pointwise(op, grad, node.outputs[0]),)
        with node.graph.after(grad.node):
            return (pointwise(op, node.outputs[0], grad),)

    return gradient


def _trigonometric(op: str) -> Callable[[Node, Tensor], Gradients]:
    def gradient(node: Node, grad: Tensor) -> Gradients:
        with node.graph.after(grad.node):
            if op == "Sin":
                return (pointwise("Mul", grad, pointwise("Cos", node.inputs[0]), name="mul"),)
            other = pointwise("Sin", node.inputs[0])
            return (pointwise("Mul", pointwise("Neg", grad), other, name="mul"),)

    return gradient


def _atan2(node: Node, grad: Tensor) -> Gradients:
    y, x = node.inputs
    with node.graph.after(grad.node):
        squares = pointwise("Add", pointwise("Square", x), pointwise("Square", y), name="add")
        inverse = pointwise("RealDiv", grad, squares, name="truediv")
        left = pointwise("Mul", x, inverse, name="mul")
        return left, pointwise("Mul", pointwise("Neg", y), inverse, name="mul_1")


def _abs(node: Node, grad: Tensor) -> Gradients:
    return (pointwise("Mul", grad, pointwise("Sign", node.inputs[0]), name="mul"),)


def _square(node: Node, grad: Tensor) -> Gradients:
    with node.graph.after(grad.node):
        double = binary("Mul", node.inputs[0], constant(node.graph, (), 2))
        return (pointwise("Mul", grad, double),)


def _neg(_: Node, grad: Tensor) -> Gradients:
    return (pointwise("Neg", grad),)


def _cast(node: Node, grad: Tensor) -> Gradients:
    return (pointwise("Cast", grad) if node.inputs[0].type == "float" else None,)


def _softmax(node: Node, grad: Tensor) -> Gradients:
    y = node.outputs[0]
    summed = reduce("Sum", pointwise("Mul", grad, y, name="mul"), (-1,), keep=True)
    return (pointwise("Mul", pointwise("Sub", grad, summed, name="sub"), y, name="mul_1"),)


def _select(node: Node, grad: Tensor) -> Gradients:
    which, x = node.inputs[:2]
    nothing = _zeros(x)
    left = pointwise("Select", which, grad, nothing, type="float")
    return None, left, pointwise("Select", which, nothing, grad, type="float")


def _reshape(node: Node, grad: Tensor) -> Gradients:
    return (reshape_like(grad, node.inputs[0]),)


def _transpose(node: Node, grad: Tensor) -> Gradients:
    perm = node.inputs[1]
    inverse = node.graph.add("InvertPermutation", (perm,), perm.shape, type="int").outputs[0]
    order = sorted(range(len(node.value)), key=node.value.__getitem__)
    return (transpose(grad, order, inverse),)


def _concat(node: Node, grad: Gradient) -> Gradients:
    graph, axis, parts = node.graph, node.inputs[-1], node.inputs[:-1]
    rank = ints(graph, parts[0].rank, name="Rank", scalar=True)
    positive = pointwise("FloorMod", axis, rank, name="mod")
    if isinstance(grad, Slices):
        return _rows_of_concat(graph, parts, grad, positive)
    if len(parts) == 1:
        return (grad,)
    sizes: list[Tensor] = []
    for x in parts:
        # TensorFlow stops at the first shape that is not known, and has added the operation for it by then.
        sizes.append(shape(x))
        if not all(x.known):
            sizes = list(shape_n(parts))
            break
    if len(sizes) > 16:
        stacked = stack(sizes, 1)
        begin = pack([positive, 0], graph, "Slice/begin")
        row = slice_(stacked, begin, ints(graph, 1, -1, name="Slice/size"), (1, len(sizes)), (True, True))
        lengths = squeeze(row, (0,))
        shapes, known = [x.shape for x in parts], [x.known for x in parts]
        return graph.add("SplitV", (grad, lengths, positive), *shapes, known=known, name="split").outputs
    offsets = graph.add("ConcatOffset", (positive, *sizes), *((x.rank,) for x in parts), type="int").outputs
    return [slice_(grad, begin, size, x.shape, x.known) for x, begin, size in zip(parts, offsets, sizes, strict=True)]


def _rows_of_concat(graph: Graph, parts: Sequence[Tensor], grad: Slices, axis: Tensor) -> Gradients:
    """The gradients of parts that were concatenated along the rows, from that of some rows."""
    sizes = [shape(x) for x in parts]
    start = ints(graph, 0, scalar=True)
    results: list[Gradient | None] = []
    rows = grad.indices.shape
    for x, size in zip(parts, sizes, strict=True):
        length = gather(size, axis)
        end = pointwise("Add", start, length, name="add")
        above = pointwise("GreaterEqual", grad.indices, start, type="bool")
        below = pointwise("Less", grad.indices, end, type="bool")
        both = pointwise("LogicalAnd", above, below)
        which = graph.add("Where", (both,), (*rows, 1), known=[(False, True)], type="int").outputs[0]
        chosen = squeeze(which, (1,))
        indices = pointwise("Sub", gather(grad.indices, chosen), start, name="sub")
        values = gather(grad.values, chosen)
        results.append(Slices(values, indices, size, x))
        start = end
    return results


def _split(node: Node, *grads: Tensor) -> Gradients:
    return None, concat(grads, node.value, node.inputs[0])


def _pack(node: Node, grad: Tensor) -> Gradients:
    return unstack(grad, node.value)


def _unpack(node: Node, *grads: Tensor) -> Gradients:
    return (stack(grads, node.value),)


def _strided_slice(node: Node, grad: Gradient) -> Gradients:
    x = node.inputs[0]
    to = shape(x)
    whole = dense(node.graph, grad)
    inputs = (to, *node.inputs[1:], whole)
    return node.graph.add("StridedSliceGrad", inputs, x.shape, known=[x.known]).outputs


def _gather(node: Node, grad: Tensor) -> Gradients:
    graph, (params, indices) = node.graph, node.inputs[:2]
    with graph.colocate_with(params.node):
        sizes = pointwise("Cast", shape(params), type="int", name="ToInt32")
    count = ints(graph, indices.elements, name="Size", scalar=True) if indices.static else (
        graph.add("Size", (indices,), (), type="int").outputs[0]
    )  # fmt: skip
    count = expand_dims(count, 0)
    tail = strided_slice(sizes, (params.rank - 1,))
    to = concat([count, tail], 0)
    rows = indices.elements
    known = (indices.static, *params.known[1:])
    values = reshape(grad, to, (rows, *params.shape[1:]), known)
    flat = reshape(indices, count, (rows,), (indices.static,))
    return (Slices(values, flat, sizes, params),)


def _tile(node: Node, grad: Tensor) -> Gradients:
    graph, (x, multiples) = node.graph, node.inputs
    sizes = shape(x)
    stacked = stack([multiples, sizes], 0)
    both = reshape_to(transpose(stacked, (1, 0)), (2 * x.rank,))
    count = ints(graph, 2 * x.rank, name="Size", scalar=True)
    start, delta = (ints(graph, i, name=f"range/{what}", scalar=True) for i, what in ((0, "start"), (2, "delta")))
    axes = graph.add("Range", (start, count, delta), (x.rank,), type="int", name="range").outputs[0]
    wide = reshape(grad, both, tuple(
        size for own, every in zip(x.shape, grad.shape, strict=True) for size in (every // own, own)
    ), (False,) * (2 * x.rank))  # fmt: skip
    return (_sum_to(wide, x, axes, "Sum"),)


def _batch_norm(node: Node, grad: Tensor, *_: Tensor) -> Gradients:
    x, scale = node.inputs[:2]
    training, channels_first = node.value
    saved = node.outputs[3:5] if training else node.inputs[3:5]
    if not training and channels_first:
        x, grad = transpose(x, (0, 2, 3, 1)), transpose(grad, (0, 2, 3, 1))
    shapes = (x.shape, scale.shape, scale.shape, (0,), (0,))
    found = node.graph.add("FusedBatchNormGrad", (grad, x, scale, *saved), *shapes, flops=2 * node.flops)
    back = found.outputs[0]
    if not training and channels_first:
        back = transpose(back, (0, 3, 1, 2))
    # In training, the gate passes on the two reserved outputs as well.
    return back, *found.outputs[1 : 5 if training else 3]


def _max_pool(node: Node, grad: Tensor) -> Gradients:
    x = node.inputs[0]
    return node.graph.add("MaxPoolGrad", (x, node.outputs[0], grad), x.shape, flops=node.flops).outputs


def _avg_pool(node: Node, grad: Tensor) -> Gradients:
    x = node.inputs[0]
    return node.graph.add("AvgPoolGrad", (shape(x), grad), x.shape, flops=node.flops).outputs


def _pad(node: Node, grad: Tensor) -> Gradients:
    graph, (x, paddings) = node.graph, node.inputs
    rank = ints(graph, x.rank, name="Rank", scalar=True)
    size = pack([rank, 1], graph)
    before = slice_(paddings, ints(graph, 0, 0, name="Slice/begin"), size, (x.rank, 1), (True, True))
    begin = reshape_to(before, (x.rank,))
    return (slice_(grad, begin, shape(x), x.shape, x.known, "Slice_1"),)


def _cross_entropy(node: Node, grad: Tensor, _: Tensor) -> Gradients:
    left = pointwise("Mul", expand_dims(grad, -1), node.outputs[1], name="mul")
    logits = pointwise("Neg", pointwise("LogSoftmax", node.inputs[0]))
    return left, pointwise("Mul", expand_dims(grad, -1), logits, name="mul_1")


def _sparse_cross_entropy(node: Node, grad: Tensor, _: Tensor) -> Gradients:
    other = pointwise("PreventGradient", node.outputs[1])
    return pointwise("Mul", expand_dims(grad, -1), other, name="mul"), None


def _fill(_: Node, grad: Tensor) -> Gradients:
    return None, reduce("Sum", grad, None)


def _pass(_: Node, grad: Gradient) -> Gradients:
    return (grad,)


def _stop(node: Node, *_: Gradient) -> Gradients:
    return (None,) * len(node.inputs)


FUNCTIONS: dict[str, Callable[..., Gradients]] = {
    "Abs": _abs,
    "Add": _add,
    "Atan2": _atan2,
    "AvgPool": _avg_pool,
    "BatchMatMul": _batch_matmul,
    "BiasAdd": _bias_add,
    "Cast": _cast,
    "ConcatV2": _concat,
    "Conv2D": _conv2d,
    "Cos": _trigonometric("Cos"),
    "Equal": _stop,
    "ExpandDims": _reshape,
    "Fill": _fill,
    "Floor": _stop,
    "FusedBatchNorm": _batch_norm,
    "GatherV2": _gather,
    "Identity": _pass,
    "MatMul": _matmul,
    "MaxPool": _max_pool,
    "Mean": _mean,
    "Mul": _mul,
    "Neg": _neg,
    "NotEqual": _stop,
    "OneHot": _stop,
    "Pack": _pack,
    "Pad": _pad,
    "Pow": _pow,
    "RealDiv": _real_div,
    "Relu": _with_output("ReluGrad"),
    "Reshape": _reshape,
    "Select": _select,
    "Shape": _stop,
    "Sigmoid": _with_output("SigmoidGrad"),
    "Sin": _trigonometric("Sin"),
    "Softmax": _softmax,
    "SoftmaxCrossEntropyWithLogits": _cross_entropy,
    "SparseSoftmaxCrossEntropyWithLogits": _sparse_cross_entropy,
    "Split": _split,
    "Square": _square,
    "SquaredDifference": _squared_difference,
    "Squeeze": _reshape,
    "StopGradient": _stop,
    "StridedSlice": _strided_slice,
    "Sub": _sub,
    "Sum": _sum,
    "Tanh": _with_output("TanhGrad"),
    "Tile": _tile,
    "Transpose": _transpose,
    "Unpack": _unpack,
}
"""The gradient function of each type of operation."""
