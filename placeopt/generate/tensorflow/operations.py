"""Operations of TensorFlow 1.12 as its Python functions add them: with constants for sizes, axes and permutations.

Each function is named as in TensorFlow, and adds the operations that the function adds there (`array_ops.py`,
`math_ops.py`, `nn_ops.py`, `nn_impl.py`). Where a size is not known while the graph is built, operations compute it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from math import prod
from typing import Any

from placeopt.generate.tensorflow.graph import Graph, Shape, Tensor, Unknown, agreed, product, stated

COSTS = {"Tanh": 5, "Sigmoid": 4, "Softmax": 5, "LogSoftmax": 5, "TanhGrad": 3, "SigmoidGrad": 3, "Pow": 10, "Log": 5}
COSTS |= {"Sin": 5, "Cos": 5, "Atan2": 20, "Exp": 5, "SquaredDifference": 2, "Select": 0, "ZerosLike": 0}
"""FLOP per element of the output; 1 for other operations on each element."""


def constant(graph: Graph, shape: Shape = (), value: Any = None, type: str = "float", name: str = "Const") -> Tensor:
    """`tf.constant`."""
    return graph.tensor("Const", (), shape, type=type, name=name, value=value)


def ints(graph: Graph, *values: int, name: str = "Const", scalar: bool = False) -> Tensor:
    """A constant of sizes, axes or indices."""
    value = values[0] if scalar else values
    return constant(graph, () if scalar else (len(values),), value, "int", name)


def placeholder(graph: Graph, shape: Shape, type: str = "int", name: str = "Placeholder") -> Tensor:
    """`tf.placeholder`."""
    return graph.tensor("Placeholder", (), shape, type=type, name=name)


def pointwise(op: str, *inputs: Tensor | float, type: str | None = None, name: str | None = None) -> Tensor:
    """An operation on each element, with broadcasting; a number becomes a constant."""
    like = next(x for x in inputs if isinstance(x, Tensor))
    xs = [
        x if isinstance(x, Tensor) else constant(like.graph, (), x, like.type, f"{name or op}/{side}")
        for x, side in zip(inputs, "xyz", strict=False)
    ]
    shape = xs[0].shape
    for x in xs[1:]:
        shape = broadcast(shape, x.shape)
    type = type or xs[0].type
    flops = 0 if type == "int" else COSTS.get(op, 1) * prod(shape)
    return like.graph.tensor(op, xs, shape, type=type, name=name, flops=flops)


def broadcast(one: Shape, other: Shape) -> Shape:
    """The shape of a result of two tensors."""
    pairs = zip_longest(one[::-1], other[::-1], fillvalue=1)
    return tuple([_broadcast_size(*pair) for pair in pairs])[::-1]


def _broadcast_size(one: int, other: int) -> int:
    if one == 1 and stated(one):
        return other
    return one if other == 1 and stated(other) else agreed(one, other)


def identity(x: Tensor, name: str = "Identity") -> Tensor:
    """`tf.identity`."""
    return x.graph.tensor("Identity", (x,), x.shape, type=x.type, name=name, value=x.node.value)


def shape(x: Tensor, name: str = "Shape") -> Tensor:
    """`tf.shape`: a constant if the graph states all sizes."""
    if x.static:
        return ints(x.graph, *x.shape, name=name)
    return x.graph.tensor("Shape", (x,), (x.rank,), type="int", name=name)


def shape_n(xs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """`tf.shape_n`."""
    return xs[0].graph.add("ShapeN", xs, *((x.rank,) for x in xs), type="int").outputs


def reshape(x: Tensor, to: Tensor, sizes: Shape, name: str = "Reshape") -> Tensor:
    """`tf.reshape` to the sizes in a tensor."""
    return x.graph.tensor("Reshape", (x, to), sizes, type=x.type, name=name)


def reshape_to(x: Tensor, sizes: Shape, name: str = "Reshape") -> Tensor:
    """`tf.reshape` to a shape that is a constant."""
    return reshape(x, ints(x.graph, *sizes, name=f"{name}/shape"), sizes, name)


def transpose(x: Tensor, perm: Sequence[int], by: Tensor | None = None, name: str = "transpose") -> Tensor:
    """`tf.transpose`; without `by`, the permutation is a constant."""
    by = ints(x.graph, *perm, name=f"{name}/perm") if by is None else by
    sizes = tuple(x.shape[i] for i in perm)
    return x.graph.tensor("Transpose", (x, by), sizes, type=x.type, name=name, value=tuple(perm))


def concat(xs: Sequence[Tensor], axis: int, by: Tensor | None = None, name: str = "concat") -> Tensor:
    """`tf.concat`; without `by`, the axis is a constant."""
    first, graph = xs[0], xs[0].graph
    by = ints(graph, axis, name=f"{name}/axis", scalar=True) if by is None else by
    axis %= first.rank
    sizes = [agreed(*along) for along in zip(*(x.shape for x in xs), strict=True)]
    lengths = [x.shape[axis] for x in xs]
    vector = first.type == "int" and first.rank == 1
    sizes[axis] = sum(lengths) if vector or stated(*lengths) else Unknown(sum(lengths))
    return graph.tensor("ConcatV2", (*xs, by), tuple(sizes), type=first.type, name=name, value=axis)


def split(x: Tensor, count: int, axis: int, by: Tensor | None = None, name: str = "split") -> tuple[Tensor, ...]:
    """`tf.split` into equal parts."""
    if by is None:
        constant(x.graph, (), count, "int")
        by = ints(x.graph, axis, name=f"{name}/split_dim", scalar=True)
    axis %= x.rank
    part = x.shape[axis] // count
    sizes = (*x.shape[:axis], part if stated(x.shape[axis]) else Unknown(part), *x.shape[axis + 1 :])
    return x.graph.add("Split", (by, x), *[sizes] * count, type=x.type, name=name, value=axis).outputs


def pack(xs: Sequence[Tensor | int], graph: Graph, name: str = "stack") -> Tensor:
    """`tf.stack` of scalars, and of numbers, which become constants."""
    found = [x if isinstance(x, Tensor) else ints(graph, x, name=f"{name}/{i}", scalar=True) for i, x in enumerate(xs)]
    return stack(found, 0, name)


def stack(xs: Sequence[Tensor], axis: int, name: str = "stack") -> Tensor:
    """`tf.stack`."""
    first = xs[0]
    sizes = (*first.shape[:axis], len(xs), *first.shape[axis:])
    return first.graph.tensor("Pack", xs, sizes, type=first.type, name=name, value=axis)


def unstack(x: Tensor, axis: int, name: str = "unstack") -> tuple[Tensor, ...]:
    """`tf.unstack`."""
    sizes = (*x.shape[:axis], *x.shape[axis + 1 :])
    return x.graph.add("Unpack", (x,), *[sizes] * x.shape[axis], type=x.type, name=name, value=axis).outputs


def strided_slice(x: Tensor, sizes: Shape, name: str = "strided_slice", bounds: int = 1) -> Tensor:
    """`x[...]`: begin, end and strides are constants of one number for each of the axes that are named."""
    ends = [constant(x.graph, (bounds,), None, "int", f"{name}/stack{tail}") for tail in ("", "_1", "_2")]
    return x.graph.tensor("StridedSlice", (x, *ends), sizes, type=x.type, name=name)


def expand_dims(x: Tensor, axis: int, name: str = "ExpandDims") -> Tensor:
    """`tf.expand_dims`."""
    dim = ints(x.graph, axis, name=f"{name}/dim", scalar=True)
    at = axis % (x.rank + 1)
    return x.graph.tensor("ExpandDims", (x, dim), (*x.shape[:at], 1, *x.shape[at:]), type=x.type, name=name)


def squeeze(x: Tensor, axes: Sequence[int], name: str = "Squeeze") -> Tensor:
    """`tf.squeeze`."""
    sizes = tuple(size for i, size in enumerate(x.shape) if i not in axes)
    return x.graph.tensor("Squeeze", (x,), sizes, type=x.type, name=name)


def fill(graph: Graph, to: Tensor, sizes: Shape, value: float = 0, type: str = "float", name: str = "Fill") -> Tensor:
    """`tf.fill` with a number."""
    number = constant(graph, (), value, type, f"{name}/Const" if name != "Fill" else "Fill/value")
    return graph.tensor("Fill", (to, number), sizes, type=type, name=name)


def zeros(graph: Graph, sizes: Shape, name: str = "zeros") -> Tensor:
    """`tf.zeros` or `tf.ones`: a constant below 1,000 elements."""
    if prod(sizes) < 1000:
        return constant(graph, sizes, 0, name=name)
    return fill(graph, ints(graph, *sizes, name=f"{name}/shape_as_tensor"), sizes, name=name)


def zeros_like(x: Tensor, name: str = "zeros_like") -> Tensor:
    """`tf.zeros_like`: a constant if the graph states all sizes."""
    return zeros(x.graph, x.shape, name) if x.static else pointwise("ZerosLike", x, name=name)


def ones_like(x: Tensor, name: str = "ones_like") -> Tensor:
    """`tf.ones_like`."""
    return fill(x.graph, shape(x, f"{name}/Shape"), x.shape, 1, name=name)


def reduce(
    op: str,
    x: Tensor,
    axes: Sequence[int] | None,
    *,
    keep: bool = False,
    by: Tensor | None = None,
    name: str | None = None,
) -> Tensor:
    """`tf.reduce_sum` (Sum), `tf.reduce_mean` (Mean), `tf.reduce_prod` (Prod) over axes; None: all."""
    name = name or op
    if axes is None:
        axes = range(x.rank)
        by = ints(x.graph, *axes) if by is None else by
    elif by is None:
        by = ints(x.graph, *axes, name=f"{name}/reduction_indices", scalar=len(axes) == 1)
    found = tuple(sorted(i % x.rank for i in axes))
    sizes = tuple(1 if i in found else size for i, size in enumerate(x.shape) if keep or i not in found)
    flops = 0 if x.type == "int" else x.elements
    return x.graph.tensor(op, (x, by), sizes, type=x.type, name=name, flops=flops, value=found)


def tile(x: Tensor, by: Tensor, sizes: Shape, name: str = "Tile") -> Tensor:
    """`tf.tile`."""
    return x.graph.tensor("Tile", (x, by), sizes, type=x.type, name=name)


def slice_(x: Tensor, begin: Tensor, size: Tensor, sizes: Shape, name: str = "Slice") -> Tensor:
    """`tf.slice`."""
    return x.graph.tensor("Slice", (x, begin, size), sizes, type=x.type, name=name)


def arange(limit: Tensor, length: int, step: int = 1, name: str = "range") -> Tensor:
    """`tf.range` from 0 to a limit, as `length` numbers."""
    start = ints(limit.graph, 0, name=f"{name}/start", scalar=True)
    delta = ints(limit.graph, step, name=f"{name}/delta", scalar=True)
    return limit.graph.tensor("Range", (start, limit, delta), (length,), type="int", name=name)


def gather(params: Tensor, indices: Tensor, name: str = "GatherV2") -> Tensor:
    """`tf.gather` along the first axis."""
    axis = ints(params.graph, 0, name=f"{name}/axis", scalar=True)
    sizes = (*indices.shape, *params.shape[1:])
    return params.graph.tensor("GatherV2", (params, indices, axis), sizes, type=params.type, name=name)


def embedding_lookup(params: Tensor, ids: Tensor, name: str = "embedding_lookup") -> Tensor:
    """`tf.nn.embedding_lookup` in one table."""
    with params.graph.colocate_with(params.node):
        found = gather(params, ids, name)
    return identity(found, f"{name}/Identity")


def matmul(x: Tensor, y: Tensor, left: bool = False, right: bool = False, name: str = "MatMul") -> Tensor:
    """`tf.matmul` of matrices or of batches of them; `left` and `right` say which are transposed."""
    batch, (inner, rows) = x.shape[:-2], x.shape[-2:] if left else x.shape[:-3:-1]
    columns = y.shape[-2 if right else -1]
    return x.graph.tensor(
        "BatchMatMul" if batch else "MatMul",
        (x, y),
        (*batch, rows, columns),
        name=name,
        flops=2 * prod(batch) * rows * columns * inner,
        value=(left, right),
    )


def bias_add(x: Tensor, bias: Tensor, name: str = "BiasAdd") -> Tensor:
    """`tf.nn.bias_add`."""
    return x.graph.tensor("BiasAdd", (x, bias), x.shape, name=name, flops=x.elements)


def random_uniform(to: Tensor, sizes: Shape, name: str = "random_uniform") -> Tensor:
    """`tf.random_uniform`: six operations besides the shape."""
    low, high = (constant(to.graph, name=f"{name}/{bound}") for bound in ("min", "max"))
    drawn = to.graph.tensor("RandomUniform", (to,), sizes, name=f"{name}/RandomUniform", flops=10 * prod(sizes))
    scale = pointwise("Sub", high, low, name=f"{name}/sub")
    return pointwise("Add", pointwise("Mul", drawn, scale, name=f"{name}/mul"), low, name=name)


def dropout(x: Tensor, name: str = "dropout") -> Tensor:
    """`tf.nn.dropout`."""
    with x.graph.scope(name):
        keep = constant(x.graph, name="keep_prob")
        noise = random_uniform(shape(x), x.shape)
        mask = pointwise("Floor", pointwise("Add", keep, noise, name="add"))
        return pointwise("Mul", pointwise("RealDiv", x, keep, name="div"), mask, name="mul")


def softmax_cross_entropy(logits: Tensor, labels: Tensor, name: str = "softmax_cross_entropy_with_logits") -> Tensor:
    """`tf.nn.softmax_cross_entropy_with_logits_v2`: matrices of both, and the loss of each row in the outer shape."""
    graph = logits.graph
    with graph.scope(name):
        rank = ints(graph, logits.rank, name="Rank", scalar=True)
        outer = shape(logits)
        rows, targets = flat_outer(logits), flat_outer(labels)
    op, sizes = "SoftmaxCrossEntropyWithLogits", (rows.shape[:1], rows.shape)
    losses, _ = graph.add(op, (rows, targets), *sizes, name=name, flops=7 * rows.elements).outputs
    with graph.scope(name):
        last = pointwise("Sub", rank, 1, name="Sub_2")
        begin = ints(graph, 0, name="Slice_2/begin")
        size = pack([last], graph, "Slice_2/size")
        to = slice_(outer, begin, size, (logits.rank - 1,), "Slice_2")
        return reshape(losses, to, logits.shape[:-1], "Reshape_2")


def flat_outer(x: Tensor) -> Tensor:
    """A matrix whose rows are the last axis (`nn_ops._flatten_outer_dims`)."""
    graph = x.graph
    rank = ints(graph, x.rank, name="Rank", scalar=True)
    sizes = shape(x)
    begin = pack([pointwise("Sub", rank, 1)], graph, "Slice/begin")
    width = slice_(sizes, begin, ints(graph, 1, name="Slice/size"), (1,))
    rows = ints(graph, -1, name="concat/values_0")
    return reshape(x, concat([rows, width], 0), (product(x.shape[:-1]), x.shape[-1]))


def sparse_softmax_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """`tf.nn.sparse_softmax_cross_entropy_with_logits` of known shapes."""
    graph, name = logits.graph, "SparseSoftmaxCrossEntropyWithLogits"
    with graph.scope(name):
        outer = shape(labels)
        rows, targets = logits, labels
        if logits.rank > 2:
            sizes = shape(logits)
            last = pointwise("Sub", ints(graph, logits.rank, name="Rank", scalar=True), 1, name="sub")
            ends = (last, pointwise("Add", last, 1, name="add"))
            bounds = [pack([each], graph, "strided_slice/stack") for each in ends]
            bounds.append(ints(graph, 1, name="strided_slice/stack_2"))
            classes = graph.tensor("StridedSlice", (sizes, *bounds), (), type="int", name="strided_slice")
            to = pack([-1, classes], graph, "Reshape/shape")
            rows = reshape(logits, to, (labels.elements, logits.shape[-1]))
            targets = reshape_to(labels, (labels.elements,), name="Reshape_1")
        losses = graph.add(name, (rows, targets), rows.shape[:1], rows.shape, flops=7 * rows.elements).outputs[0]
        return losses if logits.rank == 2 else reshape(losses, outer, labels.shape, name="Reshape_2")
