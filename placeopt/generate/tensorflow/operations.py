"""Operations of TensorFlow 1.12 as its Python functions add them: with constants for sizes, axes and permutations.

Each function is named as in TensorFlow, and adds the operations that the function adds there (`array_ops.py`,
`math_ops.py`, `nn_ops.py`, `nn_impl.py`). Where a size is not known while the graph is built, operations compute it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from placeopt.generate.tensorflow.graph import Graph, Known, Shape, Tensor

COSTS = {"Tanh": 5, "Sigmoid": 4, "Softmax": 5, "LogSoftmax": 5, "TanhGrad": 3, "SigmoidGrad": 3, "Pow": 10, "Log": 5}
COSTS |= {"Sin": 5, "Cos": 5, "Atan2": 20, "Exp": 5, "SquaredDifference": 2, "L2Loss": 2, "Rsqrt": 2}
COSTS |= {"RandomUniform": 10, "TruncatedNormal": 20}
"""FLOP per element of the output; 1 for other operations that compute."""

NO_FLOPS = frozenset(
    ("ConcatV2", "Fill", "GatherV2", "Pack", "Pad", "Select", "Slice", "Split", "StridedSlice", "StridedSliceGrad",
     "Tile", "Transpose", "Unpack", "ZerosLike", "OneHot", "ScatterSub", "DynamicStitch")
)  # fmt: skip
"""Operations that only move data."""


def constant(graph: Graph, shape: Shape = (), value: Any = None, type: str = "float", name: str = "Const") -> Tensor:
    """`tf.constant`."""
    return graph.add("Const", (), shape, type=type, name=name, value=value).outputs[0]


def ints(graph: Graph, *values: int, name: str = "Const", scalar: bool = False) -> Tensor:
    """A constant of sizes, axes or indices."""
    value = values[0] if scalar else values
    return constant(graph, () if scalar else (len(values),), value, "int", name)


def placeholder(graph: Graph, shape: Shape, known: Known, type: str = "int", name: str = "Placeholder") -> Tensor:
    """`tf.placeholder`."""
    return graph.add("Placeholder", (), shape, known=[known], type=type, name=name).outputs[0]


def pointwise(op: str, x: Tensor, *others: Tensor, type: str | None = None, name: str | None = None) -> Tensor:
    """An operation on each element, with broadcasting."""
    shape, known = x.shape, x.known
    for other in others:
        shape, known = broadcast((shape, known), (other.shape, other.known))
    type = type or x.type
    flops = 0 if op in NO_FLOPS or type == "int" else COSTS.get(op, 1) * prod(shape)
    inputs = (x, *others)
    return x.node.graph.add(op, inputs, shape, known=[known], type=type, name=name, flops=flops).outputs[0]


def broadcast(one: tuple[Shape, Known], two: tuple[Shape, Known]) -> tuple[Shape, Known]:
    """The shape of a result, and which of its sizes are known."""
    if one == two:
        return one
    (shape, known), (other, others) = (one, two) if len(one[0]) >= len(two[0]) else (two, one)
    skip = len(shape) - len(other)
    sizes, sure = list(shape), list(known)
    for i, (size, sized) in enumerate(zip(other, others, strict=True), start=skip):
        if sizes[i] == 1 and sure[i]:
            sizes[i], sure[i] = size, sized
        elif not (size == 1 and sized):
            sizes[i], sure[i] = max(sizes[i], size), sure[i] or sized
    return tuple(sizes), tuple(sure)


def binary(op: str, x: Tensor, y: Tensor | float, *, type: str | None = None, name: str | None = None) -> Tensor:
    """An operation on two tensors, or on a tensor and a number, which becomes a constant."""
    name = name or op
    if not isinstance(y, Tensor):
        y = constant(x.node.graph, (), y, x.type, f"{name}/y")
    return pointwise(op, x, y, type=type, name=name)


def reversed_binary(op: str, x: float, y: Tensor, *, name: str | None = None) -> Tensor:
    """An operation on a number, which becomes a constant, and a tensor."""
    name = name or op
    return pointwise(op, constant(y.node.graph, (), x, y.type, f"{name}/x"), y, name=name)


def identity(x: Tensor, name: str = "Identity") -> Tensor:
    """`tf.identity`."""
    node = x.node.graph.add("Identity", (x,), x.shape, known=[x.known], type=x.type, name=name, value=x.node.value)
    return node.outputs[0]


def shape(x: Tensor, name: str = "Shape") -> Tensor:
    """`tf.shape`: a constant if the graph states all sizes."""
    if all(x.known):
        return ints(x.node.graph, *x.shape, name=name)
    return x.node.graph.add("Shape", (x,), (len(x.shape),), type="int", name=name).outputs[0]


def shape_n(xs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """`tf.shape_n`."""
    return xs[0].node.graph.add("ShapeN", xs, *((x.rank,) for x in xs), type="int").outputs


def reshape(x: Tensor, to: Tensor, sizes: Shape, known: Known | None = None, name: str = "Reshape") -> Tensor:
    """`tf.reshape` to the sizes in a tensor."""
    known = (True,) * len(sizes) if known is None else known
    return x.node.graph.add("Reshape", (x, to), sizes, known=[known], type=x.type, name=name).outputs[0]


def reshape_to(x: Tensor, sizes: Shape, known: Known | None = None, name: str = "Reshape") -> Tensor:
    """`tf.reshape` to a shape that is a constant."""
    return reshape(x, ints(x.node.graph, *sizes, name=f"{name}/shape"), sizes, known, name)


def reshape_like(x: Tensor, like: Tensor, name: str = "Reshape") -> Tensor:
    """A reshape to the shape of another tensor."""
    return reshape(x, shape(like), like.shape, like.known, name)


def transpose(x: Tensor, perm: Sequence[int], by: Tensor | None = None, name: str = "transpose") -> Tensor:
    """`tf.transpose`; without `by`, the permutation is a constant."""
    by = ints(x.node.graph, *perm, name=f"{name}/perm") if by is None else by
    sizes, known = tuple(x.shape[i] for i in perm), tuple(x.known[i] for i in perm)
    node = x.node.graph.add("Transpose", (x, by), sizes, known=[known], type=x.type, name=name, value=tuple(perm))
    return node.outputs[0]


def concat(xs: Sequence[Tensor], axis: int, by: Tensor | None = None, name: str = "concat") -> Tensor:
    """`tf.concat`; without `by`, the axis is a constant."""
    graph = xs[0].node.graph
    by = ints(graph, axis, name=f"{name}/axis", scalar=True) if by is None else by
    axis %= xs[0].rank
    sizes, known = list(xs[0].shape), list(xs[0].known)
    for x in xs[1:]:
        known = [one or other for one, other in zip(known, x.known, strict=True)]
    sizes[axis], known[axis] = sum(x.shape[axis] for x in xs), all(x.known[axis] for x in xs)
    if xs[0].type == "int" and xs[0].rank == 1:
        known = [True]
    node = graph.add("ConcatV2", (*xs, by), tuple(sizes), known=[tuple(known)], type=xs[0].type, name=name, value=axis)
    return node.outputs[0]


def split(x: Tensor, count: int, axis: int, by: Tensor | None = None, name: str = "split") -> tuple[Tensor, ...]:
    """`tf.split` into equal parts."""
    graph = x.node.graph
    if by is None:
        constant(graph, (), count, "int")
        by = ints(graph, axis, name=f"{name}/split_dim", scalar=True)
    axis %= x.rank
    sizes = tuple(size // count if i == axis else size for i, size in enumerate(x.shape))
    node = graph.add("Split", (by, x), *[sizes] * count, known=[x.known] * count, type=x.type, name=name, value=axis)
    return node.outputs


def pack(xs: Sequence[Tensor | int], graph: Graph, name: str = "stack") -> Tensor:
    """`tf.stack` of scalars, and of numbers, which become constants."""
    found = [x if isinstance(x, Tensor) else ints(graph, x, name=f"{name}/{i}", scalar=True) for i, x in enumerate(xs)]
    return graph.add("Pack", found, (len(xs), *found[0].shape), type=found[0].type, name=name).outputs[0]


def stack(xs: Sequence[Tensor], axis: int, name: str = "stack") -> Tensor:
    """`tf.stack`."""
    sizes, known = list(xs[0].shape), list(xs[0].known)
    sizes.insert(axis, len(xs))
    known.insert(axis, True)
    node = xs[0].node.graph.add("Pack", xs, tuple(sizes), known=[tuple(known)], type=xs[0].type, name=name, value=axis)
    return node.outputs[0]


def unstack(x: Tensor, axis: int, name: str = "unstack") -> tuple[Tensor, ...]:
    """`tf.unstack`."""
    sizes = tuple(size for i, size in enumerate(x.shape) if i != axis)
    known = tuple(sure for i, sure in enumerate(x.known) if i != axis)
    count = x.shape[axis]
    node = x.node.graph.add("Unpack", (x,), *[sizes] * count, known=[known] * count, type=x.type, name=name, value=axis)
    return node.outputs


def strided_slice(
    x: Tensor, sizes: Shape, known: Known | None = None, name: str = "strided_slice", bounds: int | None = None
) -> Tensor:
    """`x[...]`: begin, end and strides are constants of one number for each of the axes that are named."""
    graph = x.node.graph
    length = bounds or 1
    ends = [constant(graph, (length,), None, "int", f"{name}/stack{tail}") for tail in ("", "_1", "_2")]
    known = (True,) * len(sizes) if known is None else known
    return graph.add("StridedSlice", (x, *ends), sizes, known=[known], type=x.type, name=name).outputs[0]


def expand_dims(x: Tensor, axis: int, name: str = "ExpandDims") -> Tensor:
    """`tf.expand_dims`."""
    graph = x.node.graph
    dim = ints(graph, axis, name=f"{name}/dim", scalar=True)
    sizes, known = list(x.shape), list(x.known)
    at = axis if axis >= 0 else x.rank + 1 + axis
    sizes.insert(at, 1)
    known.insert(at, True)
    return graph.add("ExpandDims", (x, dim), tuple(sizes), known=[tuple(known)], type=x.type, name=name).outputs[0]


def squeeze(x: Tensor, axes: Sequence[int], name: str = "Squeeze") -> Tensor:
    """`tf.squeeze`."""
    kept = [i for i in range(x.rank) if i not in axes]
    sizes, known = tuple(x.shape[i] for i in kept), tuple(x.known[i] for i in kept)
    return x.node.graph.add("Squeeze", (x,), sizes, known=[known], type=x.type, name=name).outputs[0]


def fill(graph: Graph, to: Tensor, sizes: Shape, known: Known, value: float = 0, type: str = "float",
         name: str = "Fill") -> Tensor:  # fmt: skip
    """`tf.fill` with a number."""
    number = constant(graph, (), value, type, f"{name}/Const" if name != "Fill" else "Fill/value")
    return graph.add("Fill", (to, number), sizes, known=[known], type=type, name=name).outputs[0]


def zeros(graph: Graph, sizes: Shape, name: str = "zeros") -> Tensor:
    """`tf.zeros` or `tf.ones`: a constant below 1,000 elements."""
    if prod(sizes) < 1000:
        return constant(graph, sizes, 0, name=name)
    to = ints(graph, *sizes, name=f"{name}/shape_as_tensor")
    return fill(graph, to, sizes, (True,) * len(sizes), name=name)


def zeros_like(x: Tensor, name: str = "zeros_like") -> Tensor:
    """`tf.zeros_like`: a constant if the graph states all sizes."""
    if x.static:
        return zeros(x.node.graph, x.shape, name)
    return pointwise("ZerosLike", x, name=name)


def ones_like(x: Tensor, name: str = "ones_like") -> Tensor:
    """`tf.ones_like`."""
    if x.static:
        to = ints(x.node.graph, *x.shape, name=f"{name}/Shape")
    else:
        to = x.node.graph.add("Shape", (x,), (x.rank,), type="int", name=f"{name}/Shape").outputs[0]
    return fill(x.node.graph, to, x.shape, x.known, 1, name=name)


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
    graph = x.node.graph
    name = name or op
    if by is None and axes is None:
        by = ints(graph, *range(x.rank))
    elif by is None:
        assert axes is not None
        by = ints(graph, *axes, name=f"{name}/reduction_indices", scalar=len(axes) == 1)
    found = frozenset(range(x.rank) if axes is None else (i % x.rank for i in axes))
    if keep:
        sizes = tuple([1 if i in found else size for i, size in enumerate(x.shape)])
        known = tuple([i in found or sure for i, sure in enumerate(x.known)])
    else:
        sizes = tuple([size for i, size in enumerate(x.shape) if i not in found])
        known = tuple([sure for i, sure in enumerate(x.known) if i not in found])
    flops = 0 if x.type == "int" else x.elements
    value = tuple(sorted(found))
    return graph.add(op, (x, by), sizes, known=[known], type=x.type, name=name, flops=flops, value=value).outputs[0]


def tile(x: Tensor, by: Tensor, sizes: Shape, known: Known, name: str = "Tile") -> Tensor:
    """`tf.tile`."""
    return x.node.graph.add("Tile", (x, by), sizes, known=[known], type=x.type, name=name).outputs[0]


def slice_(x: Tensor, begin: Tensor, size: Tensor, sizes: Shape, known: Known, name: str = "Slice") -> Tensor:
    """`tf.slice`."""
    return x.node.graph.add("Slice", (x, begin, size), sizes, known=[known], type=x.type, name=name).outputs[0]


def arange(graph: Graph, limit: Tensor | int, length: int, known: bool = False, name: str = "range") -> Tensor:
    """`tf.range` from 0."""
    start = ints(graph, 0, name=f"{name}/start", scalar=True)
    if not isinstance(limit, Tensor):
        limit = ints(graph, limit, name=f"{name}/limit", scalar=True)
    delta = ints(graph, 1, name=f"{name}/delta", scalar=True)
    return graph.add("Range", (start, limit, delta), (length,), known=[(known,)], type="int", name=name).outputs[0]


def gather(params: Tensor, indices: Tensor, name: str = "GatherV2") -> Tensor:
    """`tf.gather` along the first axis."""
    axis = ints(params.node.graph, 0, name=f"{name}/axis", scalar=True)
    sizes, known = (*indices.shape, *params.shape[1:]), (*indices.known, *params.known[1:])
    node = params.node.graph.add("GatherV2", (params, indices, axis), sizes, known=[known], type=params.type, name=name)
    return node.outputs[0]


def embedding_lookup(params: Tensor, ids: Tensor, name: str = "embedding_lookup") -> Tensor:
    """`tf.nn.embedding_lookup` in one table."""
    with params.node.graph.colocate_with(params.node):
        found = gather(params, ids, name)
    return identity(found, f"{name}/Identity")


def matmul(x: Tensor, y: Tensor, left: bool = False, right: bool = False, name: str = "MatMul") -> Tensor:
    """`tf.matmul` of matrices; `left` and `right` say which are transposed."""
    rows, inner = x.shape[::-1] if left else x.shape
    rows_known = x.known[1 if left else 0]
    columns, columns_known = y.shape[0 if right else 1], y.known[0 if right else 1]
    node = x.node.graph.add(
        "MatMul",
        (x, y),
        (rows, columns),
        known=[(rows_known, columns_known)],
        name=name,
        flops=2 * rows * columns * inner,
        value=(left, right),
    )
    return node.outputs[0]


def batch_matmul(x: Tensor, y: Tensor, left: bool = False, right: bool = False, name: str = "MatMul") -> Tensor:
    """`tf.matmul` of batches of matrices."""
    rows, inner = (x.shape[-1], x.shape[-2]) if left else x.shape[-2:]
    rows_known = x.known[-1 if left else -2]
    columns, columns_known = y.shape[-2 if right else -1], y.known[-2 if right else -1]
    node = x.node.graph.add(
        "BatchMatMul",
        (x, y),
        (*x.shape[:-2], rows, columns),
        known=[(*x.known[:-2], rows_known, columns_known)],
        name=name,
        flops=2 * prod(x.shape[:-2]) * rows * columns * inner,
        value=(left, right),
    )
    return node.outputs[0]


def bias_add(x: Tensor, bias: Tensor, axis: int = -1, name: str = "BiasAdd") -> Tensor:
    """`tf.nn.bias_add`; `axis` is that of the channels."""
    node = x.node.graph.add(
        "BiasAdd", (x, bias), x.shape, known=[x.known], name=name, flops=x.elements, value=axis % x.rank
    )
    return node.outputs[0]


def random_uniform(to: Tensor, sizes: Shape, known: Known, name: str = "random_uniform") -> Tensor:
    """`tf.random_uniform`: six operations besides the shape."""
    graph = to.node.graph
    low, high = (constant(graph, name=f"{name}/{bound}") for bound in ("min", "max"))
    node = graph.add("RandomUniform", (to,), sizes, known=[known], name=f"{name}/RandomUniform", flops=10 * prod(sizes))
    scale = pointwise("Sub", high, low, name=f"{name}/sub")
    return pointwise("Add", pointwise("Mul", node.outputs[0], scale, name=f"{name}/mul"), low, name=name)


def dropout(x: Tensor, name: str = "dropout") -> Tensor:
    """`tf.nn.dropout`."""
    with x.node.graph.scope(name):
        keep = constant(x.node.graph, name="keep_prob")
        to = shape(x)
        noise = random_uniform(to, x.shape, x.known)
        mask = pointwise("Floor", pointwise("Add", keep, noise, name="add"))
        return pointwise("Mul", pointwise("RealDiv", x, keep, name="div"), mask, name="mul")


def softmax_cross_entropy(logits: Tensor, labels: Tensor, name: str = "softmax_cross_entropy_with_logits") -> Tensor:
    """`tf.nn.softmax_cross_entropy_with_logits_v2`: matrices of both, and the loss of each row in the outer shape."""
    graph = logits.node.graph
    with graph.scope(name):
        rank = ints(graph, logits.rank, name="Rank", scalar=True)
        outer = shape(logits)
        rows, targets = flat_outer(logits), flat_outer(labels)
    node = graph.add(
        "SoftmaxCrossEntropyWithLogits",
        (rows, targets),
        rows.shape[:1],
        rows.shape,
        known=[rows.known[:1], rows.known],
        name=name,
        flops=7 * rows.elements,
    )
    with graph.scope(name):
        last = binary("Sub", rank, 1, name="Sub_2")
        begin = ints(graph, 0, name="Slice_2/begin")
        size = pack([last], graph, "Slice_2/size")
        to = slice_(outer, begin, size, (logits.rank - 1,), (True,), "Slice_2")
        return reshape(node.outputs[0], to, logits.shape[:-1], logits.known[:-1], "Reshape_2")


def flat_outer(x: Tensor) -> Tensor:
    """A matrix whose rows are the last axis (`nn_ops._flatten_outer_dims`)."""
    graph = x.node.graph
    rank = ints(graph, x.rank, name="Rank", scalar=True)
    sizes = shape(x)
    begin = pack([binary("Sub", rank, 1)], graph, "Slice/begin")
    width = slice_(sizes, begin, ints(graph, 1, name="Slice/size"), (1,), (True,))
    rows = ints(graph, -1, name="concat/values_0")
    flat = (prod(x.shape[:-1]), x.shape[-1])
    return reshape(x, concat([rows, width], 0), flat, (all(x.known[:-1]), x.known[-1]))


def sparse_softmax_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """`tf.nn.sparse_softmax_cross_entropy_with_logits` of known shapes."""
    graph, name = logits.node.graph, "SparseSoftmaxCrossEntropyWithLogits"
    with graph.scope(name):
        outer = shape(labels)
        rows, targets = logits, labels
        if logits.rank > 2:
            sizes, last = (
                shape(logits),
                binary("Sub", ints(graph, logits.rank, name="Rank", scalar=True), 1, name="sub"),
            )
            bounds = [pack([each], graph, "strided_slice/stack") for each in (last, binary("Add", last, 1, name="add"))]
            bounds.append(ints(graph, 1, name="strided_slice/stack_2"))
            classes = graph.add("StridedSlice", (sizes, *bounds), (), type="int", name="strided_slice").outputs[0]
            to = pack([-1, classes], graph, "Reshape/shape")
            rows = reshape(logits, to, (labels.elements, logits.shape[-1]))
            targets = reshape_to(labels, (labels.elements,), name="Reshape_1")
        losses = graph.add(name, (rows, targets), rows.shape[:1], rows.shape, flops=7 * rows.elements).outputs[0]
        return losses if logits.rank == 2 else reshape(losses, outer, labels.shape, name="Reshape_2")
