"""Gradient functions of TensorFlow 1.12 (`array_grad.py`, `math_grad.py`, `nn_grad.py`).

Each function adds the operations that the gradient of one operation needs, and returns the gradients of its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from placeopt.generate.tensorflow import operations as tf
from placeopt.generate.tensorflow.graph import Graph, Node, Tensor, Unknown, product


@dataclass(frozen=True, slots=True)
class Slices:
    """A gradient of some rows of a tensor (`tf.IndexedSlices`)."""

    values: Tensor
    indices: Tensor
    sizes: Tensor
    """The shape of the tensor, as a tensor."""
    like: Tensor


Gradient = Tensor | Slices
Gradients = Sequence[Gradient | None]
Function = Callable[..., Gradients]

FUNCTIONS: dict[str, Function] = {}
"""The gradient function of each type of operation."""


def _gradient_of(*ops: str) -> Callable[[Function], Function]:
    """Register the gradient function of some types of operations (`ops.RegisterGradient`)."""

    def register(function: Function) -> Function:
        FUNCTIONS.update(dict.fromkeys(ops, function))
        return function

    return register


def dense(graph: Graph, gradient: Gradient) -> Tensor:
    """Return a gradient of rows as a tensor."""
    if isinstance(gradient, Tensor):
        return gradient
    inputs = (gradient.values, gradient.indices, tf.strided_slice(gradient.sizes, ()))
    return graph.tensor("UnsortedSegmentSum", inputs, gradient.like.shape, flops=gradient.values.elements)


def _exact(node: Node, grad: Tensor) -> bool:
    """Whether the graph states that neither operand was repeated."""
    x, y = node.inputs
    return x.shape == y.shape == grad.shape and x.static and y.static and grad.static


@dataclass(frozen=True, slots=True)
class _Operand:
    """An operand that broadcasting may have repeated."""

    x: Tensor
    sizes: Tensor
    axes: Tensor
    """The axes along which it was repeated."""
    name: str

    def summed(self, grad: Tensor) -> Tensor:
        """The sum of a gradient over these axes."""
        flops = 0 if grad.shape == self.x.shape else grad.elements
        return grad.graph.tensor("Sum", (grad, self.axes), self.x.shape, name=self.name, flops=flops)

    def shaped(self, grad: Tensor) -> Tensor:
        """The sum in the shape of the operand."""
        return tf.reshape(grad, self.sizes, self.x.shape)

    def gradient(self, grad: Tensor) -> Tensor:
        """The gradient of the operand, from that of the repeated one."""
        return self.shaped(self.summed(grad))


def _operands(node: Node) -> tuple[_Operand, _Operand]:
    x, y = node.inputs
    sizes = tf.shape(x), tf.shape(y, "Shape_1")
    ranks = (Unknown(x.rank),), (Unknown(y.rank),)
    one, other = node.graph.add("BroadcastGradientArgs", sizes, *ranks, type="int").outputs
    return _Operand(x, sizes[0], one, "Sum"), _Operand(y, sizes[1], other, "Sum_1")


@_gradient_of("Add")
def _add(node: Node, grad: Tensor) -> Gradients:
    if _exact(node, grad):
        return grad, grad
    left, right = _operands(node)
    return left.gradient(grad), right.gradient(grad)


@_gradient_of("Sub")
def _sub(node: Node, grad: Tensor) -> Gradients:
    if _exact(node, grad):
        return grad, tf.pointwise("Neg", grad)
    left, right = _operands(node)
    return left.gradient(grad), right.shaped(tf.pointwise("Neg", right.summed(grad)))


@_gradient_of("Mul")
def _mul(node: Node, grad: Tensor) -> Gradients:
    x, y = node.inputs
    if _exact(node, grad):
        return tf.pointwise("Mul", grad, y), tf.pointwise("Mul", grad, x)
    left, right = _operands(node)
    return left.gradient(tf.pointwise("Mul", grad, y)), right.gradient(tf.pointwise("Mul", x, grad))


@_gradient_of("RealDiv")
def _real_div(node: Node, grad: Tensor) -> Gradients:
    x, y = node.inputs
    left, right = _operands(node)
    first = left.gradient(tf.pointwise("RealDiv", grad, y))
    ratio = tf.pointwise("RealDiv", tf.pointwise("RealDiv", tf.pointwise("Neg", x), y), y)
    return first, right.gradient(tf.pointwise("Mul", grad, ratio, name="mul"))


@_gradient_of("Pow")
def _pow(node: Node, grad: Tensor) -> Gradients:
    x, y = node.inputs
    left, right = _operands(node)
    power = tf.pointwise("Pow", x, tf.pointwise("Sub", y, 1, name="sub"))
    first = left.gradient(tf.pointwise("Mul", tf.pointwise("Mul", grad, y, name="mul"), power, name="mul_1"))
    positive = tf.pointwise("Greater", x, 0, type="bool")
    log = tf.pointwise("Select", positive, tf.pointwise("Log", x), tf.zeros_like(x), type="float")
    scaled = tf.pointwise("Mul", grad, node.outputs[0], name="mul_2")
    return first, right.gradient(tf.pointwise("Mul", scaled, log, name="mul_3"))


@_gradient_of("SquaredDifference")
def _squared_difference(node: Node, grad: Tensor) -> Gradients:
    left, right = _operands(node)
    with node.graph.after(grad.node):
        scaled = tf.pointwise("Mul", tf.constant(node.graph, (), 2, name="scalar"), grad)
        both = tf.pointwise("Mul", scaled, tf.pointwise("Sub", *node.inputs, name="sub"), name="mul")
    return left.gradient(both), tf.pointwise("Neg", right.gradient(both))


@_gradient_of("Sum")
def _sum(node: Node, grad: Tensor) -> Gradients:
    return (_repeated(node, grad),)


def _repeated(node: Node, grad: Tensor) -> Tensor:
    """Repeat the gradient of a sum along the axes of the sum."""
    x, graph = node.inputs[0], node.graph
    if node.value == tuple(range(x.rank)):
        grad = tf.reshape_to(grad, (1,) * x.rank)
        return tf.tile(grad, tf.ints(graph, *x.shape) if x.static else tf.shape(x), x.shape)
    to = tf.shape(x)
    with graph.colocate_with(to.node):
        rank = tf.ints(graph, x.rank, name="Size", scalar=True)
        axes = tf.pointwise("Add", node.inputs[1], rank, name="add")
        axes = tf.pointwise("FloorMod", axes, rank, name="mod")
        axes_shape = tf.shape(axes)
        every = tf.arange(rank, x.rank)
        ones = tf.fill(graph, axes_shape, axes.shape, 1, "int")
        stitched = graph.tensor("DynamicStitch", (every, axes, to, ones), (Unknown(x.rank),), type="int")
        divisor = tf.pointwise("Maximum", stitched, 1)
        scaling = tf.pointwise("FloorDiv", to, divisor, name="floordiv")
    kept = tuple(1 if i in node.value else size for i, size in enumerate(x.shape))
    return tf.tile(tf.reshape(grad, stitched, kept), scaling, x.shape)


@_gradient_of("Mean")
def _mean(node: Node, grad: Tensor) -> Gradients:
    x, y, graph = node.inputs[0], node.outputs[0], node.graph
    repeated = _repeated(node, grad)
    if x.static and y.static:
        factor = tf.constant(graph)
    else:
        before, after = tf.shape(x), tf.shape(y)
        one = tf.reduce("Prod", before, None)
        two = tf.reduce("Prod", after, None)
        factor = tf.pointwise("FloorDiv", one, tf.pointwise("Maximum", two, 1), name="floordiv")
        factor = tf.pointwise("Cast", factor, type="float")
    return (tf.pointwise("RealDiv", repeated, factor, name="truediv"),)


@_gradient_of("MatMul", "BatchMatMul")
def _matmul(node: Node, grad: Tensor) -> Gradients:
    x, y = node.inputs
    if node.value[1]:
        return tf.matmul(grad, y), tf.matmul(grad, x, left=True)
    return tf.matmul(grad, y, right=True), tf.matmul(x, grad, left=True)


@_gradient_of("BiasAdd")
def _bias_add(node: Node, grad: Tensor) -> Gradients:
    return grad, node.graph.tensor("BiasAddGrad", (grad,), node.inputs[1].shape, flops=grad.elements)


@_gradient_of("Conv2D")
def _conv2d(node: Node, grad: Tensor) -> Gradients:
    x, kernel = node.inputs
    image, filters = tf.shape_n([x, kernel])
    back = node.graph.tensor("Conv2DBackpropInput", (image, kernel, grad), x.shape, flops=node.flops)
    return back, node.graph.tensor("Conv2DBackpropFilter", (x, filters, grad), kernel.shape, flops=node.flops)


@_gradient_of("Relu")
def _relu(node: Node, grad: Tensor) -> Gradients:
    return (tf.pointwise("ReluGrad", grad, node.outputs[0]),)


@_gradient_of("Sigmoid", "Tanh")
def _activation(node: Node, grad: Tensor) -> Gradients:
    with node.graph.after(grad.node):
        return (tf.pointwise(f"{node.op}Grad", node.outputs[0], grad),)


@_gradient_of("Sin")
def _sin(node: Node, grad: Tensor) -> Gradients:
    with node.graph.after(grad.node):
        return (tf.pointwise("Mul", grad, tf.pointwise("Cos", node.inputs[0]), name="mul"),)


@_gradient_of("Cos")
def _cos(node: Node, grad: Tensor) -> Gradients:
    with node.graph.after(grad.node):
        other = tf.pointwise("Sin", node.inputs[0])
        return (tf.pointwise("Mul", tf.pointwise("Neg", grad), other, name="mul"),)


@_gradient_of("Atan2")
def _atan2(node: Node, grad: Tensor) -> Gradients:
    y, x = node.inputs
    with node.graph.after(grad.node):
        squares = tf.pointwise("Add", tf.pointwise("Square", x), tf.pointwise("Square", y), name="add")
        inverse = tf.pointwise("RealDiv", grad, squares, name="truediv")
        left = tf.pointwise("Mul", x, inverse, name="mul")
        return left, tf.pointwise("Mul", tf.pointwise("Neg", y), inverse, name="mul_1")


@_gradient_of("Abs")
def _abs(node: Node, grad: Tensor) -> Gradients:
    return (tf.pointwise("Mul", grad, tf.pointwise("Sign", node.inputs[0]), name="mul"),)


@_gradient_of("Square")
def _square(node: Node, grad: Tensor) -> Gradients:
    with node.graph.after(grad.node):
        double = tf.pointwise("Mul", node.inputs[0], tf.constant(node.graph, (), 2))
        return (tf.pointwise("Mul", grad, double),)


@_gradient_of("Neg")
def _neg(_: Node, grad: Tensor) -> Gradients:
    return (tf.pointwise("Neg", grad),)


@_gradient_of("Cast")
def _cast(node: Node, grad: Tensor) -> Gradients:
    return (tf.pointwise("Cast", grad) if node.inputs[0].type == "float" else None,)


@_gradient_of("Softmax")
def _softmax(node: Node, grad: Tensor) -> Gradients:
    y = node.outputs[0]
    summed = tf.reduce("Sum", tf.pointwise("Mul", grad, y, name="mul"), (-1,), keep=True)
    return (tf.pointwise("Mul", tf.pointwise("Sub", grad, summed, name="sub"), y, name="mul_1"),)


@_gradient_of("Select")
def _select(node: Node, grad: Tensor) -> Gradients:
    which, x = node.inputs[:2]
    nothing = tf.zeros_like(x)
    left = tf.pointwise("Select", which, grad, nothing, type="float")
    return None, left, tf.pointwise("Select", which, nothing, grad, type="float")


@_gradient_of("Reshape", "ExpandDims", "Squeeze")
def _reshape(node: Node, grad: Tensor) -> Gradients:
    x = node.inputs[0]
    return (tf.reshape(grad, tf.shape(x), x.shape),)


@_gradient_of("Transpose")
def _transpose(node: Node, grad: Tensor) -> Gradients:
    perm = node.inputs[1]
    inverse = node.graph.tensor("InvertPermutation", (perm,), perm.shape, type="int")
    order = sorted(range(len(node.value)), key=node.value.__getitem__)
    return (tf.transpose(grad, order, inverse),)


@_gradient_of("ConcatV2")
def _concat(node: Node, grad: Gradient) -> Gradients:
    graph, axis, parts = node.graph, node.inputs[-1], node.inputs[:-1]
    rank = tf.ints(graph, parts[0].rank, name="Rank", scalar=True)
    positive = tf.pointwise("FloorMod", axis, rank, name="mod")
    if isinstance(grad, Slices):
        return _rows_of_concat(graph, parts, grad, positive)
    if len(parts) == 1:
        return (grad,)
    sizes: list[Tensor] = []
    for x in parts:
        # TensorFlow stops at the first shape that is not known, and has added the operation for it by then.
        sizes.append(tf.shape(x))
        if not x.static:
            sizes = list(tf.shape_n(parts))
            break
    if len(sizes) > 16:
        stacked = tf.stack(sizes, 1)
        begin = tf.pack([positive, 0], graph, "Slice/begin")
        row = tf.slice_(stacked, begin, tf.ints(graph, 1, -1, name="Slice/size"), (1, len(sizes)))
        inputs = (grad, tf.squeeze(row, (0,)), positive)
        return graph.add("SplitV", inputs, *(x.shape for x in parts), name="split").outputs
    offsets = graph.add("ConcatOffset", (positive, *sizes), *((x.rank,) for x in parts), type="int").outputs
    return [tf.slice_(grad, begin, size, x.shape) for x, begin, size in zip(parts, offsets, sizes, strict=True)]


def _rows_of_concat(graph: Graph, parts: Sequence[Tensor], grad: Slices, axis: Tensor) -> Gradients:
    """The gradients of parts that were concatenated along the rows, from that of some rows."""
    sizes = [tf.shape(x) for x in parts]
    start = tf.ints(graph, 0, scalar=True)
    results: list[Gradient | None] = []
    for x, size in zip(parts, sizes, strict=True):
        length = tf.gather(size, axis)
        end = tf.pointwise("Add", start, length, name="add")
        above = tf.pointwise("GreaterEqual", grad.indices, start, type="bool")
        below = tf.pointwise("Less", grad.indices, end, type="bool")
        both = tf.pointwise("LogicalAnd", above, below)
        which = graph.tensor("Where", (both,), (Unknown(both.elements), 1), type="int")
        chosen = tf.squeeze(which, (1,))
        indices = tf.pointwise("Sub", tf.gather(grad.indices, chosen), start, name="sub")
        values = tf.gather(grad.values, chosen)
        results.append(Slices(values, indices, size, x))
        start = end
    return results


@_gradient_of("Split")
def _split(node: Node, *grads: Tensor) -> Gradients:
    return None, tf.concat(grads, node.value, node.inputs[0])


@_gradient_of("Pack")
def _pack(node: Node, grad: Tensor) -> Gradients:
    return tf.unstack(grad, node.value)


@_gradient_of("Unpack")
def _unpack(node: Node, *grads: Tensor) -> Gradients:
    return (tf.stack(grads, node.value),)


@_gradient_of("StridedSlice")
def _strided_slice(node: Node, grad: Gradient) -> Gradients:
    x = node.inputs[0]
    to = tf.shape(x)
    inputs = (to, *node.inputs[1:], dense(node.graph, grad))
    return node.graph.add("StridedSliceGrad", inputs, x.shape).outputs


@_gradient_of("GatherV2")
def _gather(node: Node, grad: Tensor) -> Gradients:
    graph, (params, indices) = node.graph, node.inputs[:2]
    with graph.colocate_with(params.node):
        sizes = tf.pointwise("Cast", tf.shape(params), type="int", name="ToInt32")
    if indices.static:
        count = tf.ints(graph, indices.elements, name="Size", scalar=True)
    else:
        count = graph.tensor("Size", (indices,), (), type="int")
    count = tf.expand_dims(count, 0)
    tail = tf.strided_slice(sizes, (params.rank - 1,))
    rows = product(indices.shape)
    values = tf.reshape(grad, tf.concat([count, tail], 0), (rows, *params.shape[1:]))
    return (Slices(values, tf.reshape(indices, count, (rows,)), sizes, params),)


@_gradient_of("Tile")
def _tile(node: Node, grad: Tensor) -> Gradients:
    graph, (x, multiples) = node.graph, node.inputs
    sizes = tf.shape(x)
    stacked = tf.stack([multiples, sizes], 0)
    both = tf.reshape_to(tf.transpose(stacked, (1, 0)), (2 * x.rank,))
    axes = tf.arange(tf.ints(graph, 2 * x.rank, name="Size", scalar=True), x.rank, 2)
    pairs = [(every // own, own) for own, every in zip(x.shape, grad.shape, strict=True)]
    wide = tf.reshape(grad, both, tuple(Unknown(size) for pair in pairs for size in pair))
    return (_Operand(x, sizes, axes, "Sum").summed(wide),)


@_gradient_of("FusedBatchNorm")
def _batch_norm(node: Node, grad: Tensor, *_: Tensor) -> Gradients:
    x, scale = node.inputs[:2]
    training, channels_first = node.value
    saved = node.outputs[3:5] if training else node.inputs[3:5]
    if not training and channels_first:
        x, grad = tf.transpose(x, (0, 2, 3, 1)), tf.transpose(grad, (0, 2, 3, 1))
    shapes = (x.shape, scale.shape, scale.shape, (0,), (0,))
    found = node.graph.add("FusedBatchNormGrad", (grad, x, scale, *saved), *shapes, flops=2 * node.flops)
    back = found.outputs[0]
    if not training and channels_first:
        back = tf.transpose(back, (0, 3, 1, 2))
    # In training, the gate passes on the two reserved outputs as well.
    return back, *found.outputs[1 : 5 if training else 3]


@_gradient_of("MaxPool")
def _max_pool(node: Node, grad: Tensor) -> Gradients:
    x = node.inputs[0]
    return node.graph.add("MaxPoolGrad", (x, node.outputs[0], grad), x.shape, flops=node.flops).outputs


@_gradient_of("AvgPool")
def _avg_pool(node: Node, grad: Tensor) -> Gradients:
    x = node.inputs[0]
    return node.graph.add("AvgPoolGrad", (tf.shape(x), grad), x.shape, flops=node.flops).outputs


@_gradient_of("Pad")
def _pad(node: Node, grad: Tensor) -> Gradients:
    graph, (x, paddings) = node.graph, node.inputs
    rank = tf.ints(graph, x.rank, name="Rank", scalar=True)
    size = tf.pack([rank, 1], graph)
    before = tf.slice_(paddings, tf.ints(graph, 0, 0, name="Slice/begin"), size, (x.rank, 1))
    begin = tf.reshape_to(before, (x.rank,))
    return (tf.slice_(grad, begin, tf.shape(x), x.shape, "Slice_1"),)


@_gradient_of("SoftmaxCrossEntropyWithLogits")
def _cross_entropy(node: Node, grad: Tensor, _: Tensor) -> Gradients:
    left = tf.pointwise("Mul", tf.expand_dims(grad, -1), node.outputs[1], name="mul")
    logits = tf.pointwise("Neg", tf.pointwise("LogSoftmax", node.inputs[0]))
    return left, tf.pointwise("Mul", tf.expand_dims(grad, -1), logits, name="mul_1")


@_gradient_of("SparseSoftmaxCrossEntropyWithLogits")
def _sparse_cross_entropy(node: Node, grad: Tensor, _: Tensor) -> Gradients:
    other = tf.pointwise("PreventGradient", node.outputs[1])
    return tf.pointwise("Mul", tf.expand_dims(grad, -1), other, name="mul"), None


@_gradient_of("Fill")
def _fill(_: Node, grad: Tensor) -> Gradients:
    return None, tf.reduce("Sum", grad, None)


@_gradient_of("Identity")
def _pass(_: Node, grad: Gradient) -> Gradients:
    return (grad,)


@_gradient_of("Equal", "Floor", "NotEqual", "OneHot", "Shape", "StopGradient")
def _stop(node: Node, *_: Gradient) -> Gradients:
    return (None,) * len(node.inputs)
