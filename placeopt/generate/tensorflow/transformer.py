"""The Transformer as a graph of TensorFlow 1.12, with the structure of github.com/Kyubyong/transformer.

Batch and lengths are not known while the graph is built, so that operations compute all shapes. The projections of
queries, keys and values have biases; heads are split along the last axis and joined along the batch; there is no
projection after the heads, and no dropout besides that of embeddings and attention weights. The embedding, whose first
row is zero, is shared by encoder, decoder and output layer. In training, the graph ends with label smoothing,
cross-entropy, and Adam's learning rate with warm-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from placeopt.generate.tensorflow.graph import Graph, Tensor
from placeopt.generate.tensorflow.operations import (
    arange,
    batch_matmul,
    binary,
    concat,
    constant,
    dropout,
    embedding_lookup,
    expand_dims,
    ints,
    matmul,
    ones_like,
    pack,
    placeholder,
    pointwise,
    reduce,
    reshape,
    reshape_to,
    reversed_binary,
    shape,
    softmax_cross_entropy,
    split,
    strided_slice,
    tile,
    transpose,
    zeros,
)
from placeopt.generate.tensorflow.variables import Outputs, Variable, dense, layer_norm, variable
from placeopt.generate.transformer import TransformerOptions

PADDING = -(2**32) + 1
"""Score of a position that attention must not read."""


def transformer(graph: Graph, options: TransformerOptions) -> Outputs:
    """Add the Transformer."""
    known = (not options.dynamic_shapes,) * 2
    source, labels, target = (
        placeholder(graph, (options.batch, length), known)
        for length in (options.source_length, options.target_length, options.target_length)
    )
    with graph.scope("shared_weight_matrix"):
        weights = variable(graph, (options.vocabulary, options.width), "uniform", "weight_mat")
        first = zeros(graph, (1, options.width))
        rest = strided_slice(weights.read, (options.vocabulary - 1, options.width))
        table = concat([first, rest], 0)
    with graph.scope("encoder"):
        source_mask = binary("Equal", source, 0, type="bool")
        memory = _embed(options, table, source)
        for layer in range(options.layers):
            with graph.scope(f"num_blocks_{layer}"):
                memory = _attention(options, memory, memory, source_mask, "multihead_attention")
                memory = _feed_forward(options, memory)
    with graph.scope("decoder"):
        target_mask = binary("Equal", target, 0, type="bool")
        x = _embed(options, table, target)
        for layer in range(options.layers):
            with graph.scope(f"num_blocks_{layer}"):
                x = _attention(options, x, x, target_mask, "self_attention", causal=True)
                x = _attention(options, x, memory, source_mask, "vanilla_attention")
                x = _feed_forward(options, x)
    logits = _logits(x, table)
    axis = ints(graph, -1, name="ArgMax/dimension", scalar=True)
    best = graph.add("ArgMax", (logits, axis), logits.shape[:2], known=[known], type="int").outputs[0]
    best = pointwise("Cast", best, type="int", name="ToInt32")
    if not options.training:
        return Outputs((best,))
    loss = _loss(logits, labels, options.vocabulary)
    step = variable(graph, (), "zeros", "global_step", trainable=False, type="int")
    return Outputs((best,), loss, step, _learning_rate(step))


def _embed(options: TransformerOptions, table: Tensor, tokens: Tensor) -> Tensor:
    graph = table.graph
    x = binary("Mul", embedding_lookup(table, tokens), options.width**0.5, name="mul")
    batch, length = (_size(x) for _ in range(2))
    positions = arange(graph, length, x.shape[1], x.known[1])
    positions = expand_dims(positions, 0)
    by = pack([batch, 1], graph, "Tile/multiples")
    positions = tile(positions, by, x.shape[:2], x.known[:2])
    encoding = constant(graph, (max(options.source_length, options.target_length), options.width))
    found = embedding_lookup(encoding, positions)
    empty = binary("Equal", x, 0, type="bool")
    found = pointwise("Select", empty, x, found, type="float")
    x = pointwise("Add", x, found, name="add")
    return dropout(x, "dropout/dropout") if options.training else _no_dropout(x)


def _no_dropout(x: Tensor) -> Tensor:
    """What `tf.layers.dropout` adds in inference."""
    return x.graph.add("Identity", (x,), x.shape, known=[x.known], name="dropout/Identity").outputs[0]


def _size(x: Tensor) -> Tensor:
    """`tf.shape(x)[i]`."""
    return strided_slice(shape(x), ())


def _attention(
    options: TransformerOptions, queries: Tensor, keys: Tensor, mask: Tensor, name: str, causal: bool = False
) -> Tensor:
    """Add multi-head attention, the residual sum and the normalisation."""
    graph, width, heads = queries.graph, options.width, options.heads
    with graph.scope(name):
        q, k, v = (dense(x, width, f"dense{tail}") for x, tail in ((queries, ""), (keys, "_1"), (keys, "_2")))
        parts = [split(x, heads, 2) for x in (q, k, v)]
        # The parts of a tensor are joined right after its split.
        q, k, v = (concat(part, 0) for part in parts)
        y = _scaled_dot_product(options, q, k, v, mask, causal)
        y = concat(split(y, heads, 0), 2)
        return layer_norm(pointwise("Add", y, queries, name="add"))


def _scaled_dot_product(
    options: TransformerOptions, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, causal: bool
) -> Tensor:
    graph = q.graph
    with graph.scope("scaled_dot_product_attention"):
        y = batch_matmul(q, transpose(k, (0, 2, 1)))
        y = binary("RealDiv", y, q.shape[-1] ** 0.5, name="truediv")
        y = _without_padding(y, mask)
        if causal:
            y = _without_future(y)
        y = pointwise("Softmax", y)
        _summary(y)
        y = dropout(y, "dropout/dropout") if options.training else _no_dropout(y)
        return batch_matmul(y, v, name="MatMul_1")


def _without_padding(y: Tensor, mask: Tensor) -> Tensor:
    graph = y.graph
    keys = pointwise("Cast", mask, type="float", name="ToFloat")
    times = pointwise("FloorDiv", _size(y), _size(keys), name="floordiv")
    by = pack([times, 1], graph, "Tile/multiples")
    keys = tile(keys, by, (y.shape[0], keys.shape[1]), keys.known)
    keys = binary("Mul", expand_dims(keys, 1), PADDING, name="mul")
    return pointwise("Add", y, keys, name="add")


def _without_future(y: Tensor) -> Tensor:
    graph = y.graph
    one = strided_slice(y, y.shape[1:], y.known[1:], bounds=3)
    ones = ones_like(one)
    with graph.scope("LinearOperatorLowerTriangular"):
        lower, upper = (ints(graph, i, name=f"MatrixBandPart/num_{what}", scalar=True) for i, what in
                        ((-1, "lower"), (0, "upper")))  # fmt: skip
        band = graph.add("MatrixBandPart", (ones, lower, upper), ones.shape, known=[ones.known]).outputs[0]
        graph.add("MatrixDiagPart", (band,), band.shape[:1], known=[band.known[:1]])
    allowed = expand_dims(band, 0)
    by = pack([_size(y), 1, 1], graph, "Tile_1/multiples")
    allowed = tile(allowed, by, y.shape, y.known, "Tile_1")
    nothing = binary("Mul", ones_like(allowed), PADDING, name="mul_1")
    future = binary("Equal", allowed, 0, type="bool")
    return pointwise("Select", future, nothing, y, type="float")


def _summary(weights: Tensor) -> None:
    """Add the picture of the attention weights that the implementation logs; a step of training does not run it."""
    graph = weights.graph
    turned = transpose(weights, (0, 2, 1), name="transpose_1")
    first = strided_slice(turned, (1, *turned.shape[1:]), (True, *turned.known[1:]))
    image = expand_dims(first, -1)
    tag = constant(graph, name="attention/tag")
    graph.add("ImageSummary", (tag, image), (), name="attention")


def _feed_forward(options: TransformerOptions, x: Tensor) -> Tensor:
    with x.graph.scope("positionwise_feedforward"):
        y = dense(x, options.ff_width, activation="Relu")
        y = dense(y, options.width, "dense_1")
        return layer_norm(pointwise("Add", y, x, name="add"))


def _logits(x: Tensor, table: Tensor) -> Tensor:
    """`tf.einsum("ntd,dk->ntk")` with the transposed embedding."""
    graph, (vocabulary, width) = x.graph, table.shape
    with graph.scope("transpose"):
        rank = graph.add("Rank", (table,), (), type="int").outputs[0]
        last = binary("Sub", rank, 1, name="sub")
        start, delta = (ints(graph, i, name=f"Range/{what}", scalar=True) for i, what in ((0, "start"), (1, "delta")))
        axes = graph.add("Range", (start, rank, delta), (2,), known=[(False,)], type="int").outputs[0]
        perm = pointwise("Sub", last, axes, name="sub_1")
    turned = transpose(table, (1, 0), perm)
    with graph.scope("einsum"):
        left = transpose(x, (0, 1, 2))
        right = transpose(turned, (0, 1))
        flat, wide = (prod(x.shape[:2]), width), (*x.shape[:2], vocabulary)
        if x.static:
            y = reshape_to(matmul(reshape_to(left, flat), right), wide, name="Reshape_1")
        else:
            own = shape(left)
            batch, length = (strided_slice(own, ()) for _ in range(2))
            rows = pointwise("Mul", reversed_binary("Mul", 1, batch, name="mul"), length, name="mul_1")
            to = pack([rows, width], graph, "Reshape/shape")
            y = matmul(reshape(left, to, flat, (False, True)), right)
            to = pack([batch, length, vocabulary], graph, "Reshape_1/shape")
            y = reshape(y, to, wide, (*x.known[:2], True), "Reshape_1")
        return transpose(y, (0, 1, 2), name="transpose_2")


def _loss(logits: Tensor, labels: Tensor, vocabulary: int) -> Tensor:
    graph = logits.graph
    on, off = (constant(graph, name=f"one_hot/{what}_value") for what in ("on", "off"))
    depth = ints(graph, vocabulary, name="one_hot/depth", scalar=True)
    known = (*labels.known, True)
    hot = graph.add("OneHot", (labels, depth, on, off), logits.shape, known=[known], name="one_hot").outputs[0]
    smooth = binary("Add", reversed_binary("Mul", 0.9, hot, name="mul"), 0.1 / vocabulary, name="add")
    losses = softmax_cross_entropy(logits, smooth)
    counted = pointwise("Cast", binary("NotEqual", labels, 0, type="bool"), type="float", name="ToFloat")
    total = reduce("Sum", pointwise("Mul", losses, counted, name="mul_1"), None)
    number = reduce("Sum", counted, None)
    return pointwise("RealDiv", total, binary("Add", number, 1e-7, name="add_1"), name="truediv")


def _learning_rate(step: Variable) -> Tensor:
    """init * warmup^0.5 * min(step * warmup^-1.5, step^-0.5)."""
    now = binary("Add", step.read, 1, name="add_2")
    now = pointwise("Cast", now, type="float")
    early = binary("Mul", now, 4000.0**-1.5, name="mul_2")
    late = binary("Pow", now, -0.5, name="pow")
    return reversed_binary("Mul", 4000.0**0.5, pointwise("Minimum", early, late), name="mul_3")


def summaries(values: Sequence[Tensor]) -> None:
    """Add the scalars that the implementation logs, and the operation that merges all summaries."""
    graph = values[0].graph
    pictures = [node.outputs[0] for node in graph.nodes if node.op == "ImageSummary"]
    scalars = []
    for value, name in zip(values, ("lr", "loss", "global_step"), strict=True):
        tag = constant(graph, name=f"{name}_1/tags")
        scalars.append(graph.add("ScalarSummary", (tag, value), (), name=f"{name}_1").outputs[0])
    graph.add("MergeSummary", (*pictures, *scalars), (), name="Merge/MergeSummary")
