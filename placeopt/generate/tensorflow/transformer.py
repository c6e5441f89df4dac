"""The Transformer as a graph of TensorFlow 1.12, with the structure of github.com/Kyubyong/transformer.

Batch and lengths are not known while the graph is built, so that operations compute all shapes. The projections of
queries, keys and values have biases; heads are split along the last axis and joined along the batch; there is no
projection after the heads, and no dropout besides that of embeddings and attention weights. The embedding, whose first
row is zero, is shared by encoder, decoder and output layer. In training, the graph ends with label smoothing,
cross-entropy, and Adam's learning rate with warm-up.
"""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.generate.tensorflow import operations as tf
from placeopt.generate.tensorflow.graph import Graph, Tensor, Unknown, product
from placeopt.generate.tensorflow.variables import Outputs, Variable, dense, layer_norm, variable
from placeopt.generate.transformer import TransformerOptions

PADDING = -(2**32) + 1
"""Score of a position that attention must not read."""


def transformer(graph: Graph, options: TransformerOptions) -> Outputs:
    """Add the Transformer."""
    size = Unknown if options.dynamic_shapes else int
    source, labels, target = (
        tf.placeholder(graph, (size(options.batch), size(length)))
        for length in (options.source_length, options.target_length, options.target_length)
    )
    with graph.scope("shared_weight_matrix"):
        weights = variable(graph, (options.vocabulary, options.width), "uniform", "weight_mat")
        first = tf.zeros(graph, (1, options.width))
        rest = tf.strided_slice(weights.read, (options.vocabulary - 1, options.width))
        table = tf.concat([first, rest], 0)
    with graph.scope("encoder"):
        source_mask = tf.pointwise("Equal", source, 0, type="bool")
        memory = _embed(options, table, source)
        for layer in range(options.layers):
            with graph.scope(f"num_blocks_{layer}"):
                memory = _attention(options, memory, memory, source_mask, "multihead_attention")
                memory = _feed_forward(options, memory)
    with graph.scope("decoder"):
        target_mask = tf.pointwise("Equal", target, 0, type="bool")
        x = _embed(options, table, target)
        for layer in range(options.layers):
            with graph.scope(f"num_blocks_{layer}"):
                x = _attention(options, x, x, target_mask, "self_attention", causal=True)
                x = _attention(options, x, memory, source_mask, "vanilla_attention")
                x = _feed_forward(options, x)
    logits = _logits(x, table)
    axis = tf.ints(graph, -1, name="ArgMax/dimension", scalar=True)
    best = graph.tensor("ArgMax", (logits, axis), logits.shape[:2], type="int")
    best = tf.pointwise("Cast", best, type="int", name="ToInt32")
    if not options.training:
        return Outputs((best,))
    loss = _loss(logits, labels, options.vocabulary)
    step = variable(graph, (), "zeros", "global_step", trainable=False, type="int")
    return Outputs((best,), loss, step, _learning_rate(step))


def _embed(options: TransformerOptions, table: Tensor, tokens: Tensor) -> Tensor:
    graph = table.graph
    x = tf.pointwise("Mul", tf.embedding_lookup(table, tokens), options.width**0.5, name="mul")
    batch, length = (_size(x) for _ in range(2))
    positions = tf.arange(length, x.shape[1])
    positions = tf.expand_dims(positions, 0)
    by = tf.pack([batch, 1], graph, "Tile/multiples")
    positions = tf.tile(positions, by, x.shape[:2])
    encoding = tf.constant(graph, (max(options.source_length, options.target_length), options.width))
    found = tf.embedding_lookup(encoding, positions)
    empty = tf.pointwise("Equal", x, 0, type="bool")
    found = tf.pointwise("Select", empty, x, found, type="float")
    x = tf.pointwise("Add", x, found, name="add")
    return _dropout(options, x)


def _dropout(options: TransformerOptions, x: Tensor) -> Tensor:
    """`tf.layers.dropout`, which is an identity in inference."""
    return tf.dropout(x, "dropout/dropout") if options.training else tf.identity(x, "dropout/Identity")


def _size(x: Tensor) -> Tensor:
    """`tf.shape(x)[i]`."""
    return tf.strided_slice(tf.shape(x), ())


def _attention(
    options: TransformerOptions, queries: Tensor, keys: Tensor, mask: Tensor, name: str, causal: bool = False
) -> Tensor:
    """Add multi-head attention, the residual sum and the normalisation."""
    graph, width, heads = queries.graph, options.width, options.heads
    with graph.scope(name):
        q, k, v = (dense(x, width, f"dense{tail}") for x, tail in ((queries, ""), (keys, "_1"), (keys, "_2")))
        parts = [tf.split(x, heads, 2) for x in (q, k, v)]
        # The parts of a tensor are joined right after its split.
        q, k, v = (tf.concat(part, 0) for part in parts)
        y = _scaled_dot_product(options, q, k, v, mask, causal)
        y = tf.concat(tf.split(y, heads, 0), 2)
        return layer_norm(tf.pointwise("Add", y, queries, name="add"))


def _scaled_dot_product(
    options: TransformerOptions, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, causal: bool
) -> Tensor:
    graph = q.graph
    with graph.scope("scaled_dot_product_attention"):
        y = tf.matmul(q, tf.transpose(k, (0, 2, 1)))
        y = tf.pointwise("RealDiv", y, q.shape[-1] ** 0.5, name="truediv")
        y = _without_padding(y, mask)
        if causal:
            y = _without_future(y)
        y = tf.pointwise("Softmax", y)
        _summary(y)
        return tf.matmul(_dropout(options, y), v, name="MatMul_1")


def _without_padding(y: Tensor, mask: Tensor) -> Tensor:
    graph = y.graph
    keys = tf.pointwise("Cast", mask, type="float", name="ToFloat")
    times = tf.pointwise("FloorDiv", _size(y), _size(keys), name="floordiv")
    by = tf.pack([times, 1], graph, "Tile/multiples")
    keys = tf.tile(keys, by, (y.shape[0], keys.shape[1]))
    keys = tf.pointwise("Mul", tf.expand_dims(keys, 1), PADDING, name="mul")
    return tf.pointwise("Add", y, keys, name="add")


def _without_future(y: Tensor) -> Tensor:
    graph = y.graph
    one = tf.strided_slice(y, y.shape[1:], bounds=3)
    ones = tf.ones_like(one)
    with graph.scope("LinearOperatorLowerTriangular"):
        lower, upper = (tf.ints(graph, i, name=f"MatrixBandPart/num_{what}", scalar=True) for i, what in
                        ((-1, "lower"), (0, "upper")))  # fmt: skip
        band = graph.tensor("MatrixBandPart", (ones, lower, upper), ones.shape)
        graph.add("MatrixDiagPart", (band,), band.shape[:1])
    allowed = tf.expand_dims(band, 0)
    by = tf.pack([_size(y), 1, 1], graph, "Tile_1/multiples")
    allowed = tf.tile(allowed, by, y.shape, "Tile_1")
    nothing = tf.pointwise("Mul", tf.ones_like(allowed), PADDING, name="mul_1")
    future = tf.pointwise("Equal", allowed, 0, type="bool")
    return tf.pointwise("Select", future, nothing, y, type="float")


def _summary(weights: Tensor) -> None:
    """Add the picture of the attention weights that the implementation logs; a step of training does not run it."""
    graph = weights.graph
    turned = tf.transpose(weights, (0, 2, 1), name="transpose_1")
    first = tf.strided_slice(turned, (1, *turned.shape[1:]))
    image = tf.expand_dims(first, -1)
    tag = tf.constant(graph, name="attention/tag")
    graph.add("ImageSummary", (tag, image), (), name="attention")


def _feed_forward(options: TransformerOptions, x: Tensor) -> Tensor:
    with x.graph.scope("positionwise_feedforward"):
        y = dense(x, options.ff_width, activation="Relu")
        y = dense(y, options.width, "dense_1")
        return layer_norm(tf.pointwise("Add", y, x, name="add"))


def _logits(x: Tensor, table: Tensor) -> Tensor:
    """`tf.einsum("ntd,dk->ntk")` with the transposed embedding."""
    graph, (vocabulary, width) = x.graph, table.shape
    with graph.scope("transpose"):
        rank = graph.tensor("Rank", (table,), (), type="int")
        last = tf.pointwise("Sub", rank, 1, name="sub")
        axes = tf.arange(rank, Unknown(2), name="Range")
        perm = tf.pointwise("Sub", last, axes, name="sub_1")
    turned = tf.transpose(table, (1, 0), perm)
    with graph.scope("einsum"):
        left = tf.transpose(x, (0, 1, 2))
        right = tf.transpose(turned, (0, 1))
        flat, wide = (product(x.shape[:2]), width), (*x.shape[:2], vocabulary)
        if x.static:
            y = tf.reshape_to(tf.matmul(tf.reshape_to(left, flat), right), wide, name="Reshape_1")
        else:
            own = tf.shape(left)
            batch, length = (tf.strided_slice(own, ()) for _ in range(2))
            rows = tf.pointwise("Mul", tf.pointwise("Mul", 1, batch, name="mul"), length, name="mul_1")
            to = tf.pack([rows, width], graph, "Reshape/shape")
            y = tf.matmul(tf.reshape(left, to, flat), right)
            to = tf.pack([batch, length, vocabulary], graph, "Reshape_1/shape")
            y = tf.reshape(y, to, wide, "Reshape_1")
        return tf.transpose(y, (0, 1, 2), name="transpose_2")


def _loss(logits: Tensor, labels: Tensor, vocabulary: int) -> Tensor:
    graph = logits.graph
    on, off = (tf.constant(graph, name=f"one_hot/{what}_value") for what in ("on", "off"))
    depth = tf.ints(graph, vocabulary, name="one_hot/depth", scalar=True)
    hot = graph.tensor("OneHot", (labels, depth, on, off), (*labels.shape, vocabulary), name="one_hot")
    smooth = tf.pointwise("Add", tf.pointwise("Mul", 0.9, hot, name="mul"), 0.1 / vocabulary, name="add")
    losses = tf.softmax_cross_entropy(logits, smooth)
    counted = tf.pointwise("Cast", tf.pointwise("NotEqual", labels, 0, type="bool"), type="float", name="ToFloat")
    total = tf.reduce("Sum", tf.pointwise("Mul", losses, counted, name="mul_1"), None)
    number = tf.reduce("Sum", counted, None)
    return tf.pointwise("RealDiv", total, tf.pointwise("Add", number, 1e-7, name="add_1"), name="truediv")


def _learning_rate(step: Variable) -> Tensor:
    """init * warmup^0.5 * min(step * warmup^-1.5, step^-0.5)."""
    now = tf.pointwise("Add", step.read, 1, name="add_2")
    now = tf.pointwise("Cast", now, type="float")
    early = tf.pointwise("Mul", now, 4000.0**-1.5, name="mul_2")
    late = tf.pointwise("Pow", now, -0.5, name="pow")
    return tf.pointwise("Mul", 4000.0**0.5, tf.pointwise("Minimum", early, late), name="mul_3")


def summaries(values: Sequence[Tensor]) -> None:
    """Add the scalars that the implementation logs, and the operation that merges all summaries."""
    graph = values[0].graph
    pictures = [node.outputs[0] for node in graph.nodes if node.op == "ImageSummary"]
    scalars = []
    for value, name in zip(values, ("lr", "loss", "global_step"), strict=True):
        tag = tf.constant(graph, name=f"{name}_1/tags")
        scalars.append(graph.tensor("ScalarSummary", (tag, value), (), name=f"{name}_1"))
    graph.add("MergeSummary", (*pictures, *scalars), (), name="Merge/MergeSummary")
