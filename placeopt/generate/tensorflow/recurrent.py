"""The LSTM translator as a graph of TensorFlow 1.12, unrolled in time.

Layers are `tf.nn.static_rnn` with a `tf.nn.rnn_cell.BasicLSTMCell` for each, over one lookup of all tokens of a
sentence. The architecture is that of `placeopt.generate.recurrent`; a cell is always several operations.
"""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.generate.recurrent import LstmOptions
from placeopt.generate.tensorflow import operations as tf
from placeopt.generate.tensorflow.graph import Graph, Tensor
from placeopt.generate.tensorflow.variables import Outputs, Variable, dense, variable

State = tuple[Tensor, Tensor]


def lstm_nmt(graph: Graph, options: LstmOptions) -> Outputs:
    """Add the LSTM translator."""
    batch, width = options.batch, options.width
    source, target = (
        tf.placeholder(graph, (batch, length)) for length in (options.source_length, options.target_length)
    )
    with graph.scope("encoder"):
        xs = _embed(graph, options, source)
        states: list[State] = []
        if options.bidirectional:
            ahead, last = _layers(graph, options, xs, [_zero_state(graph, batch, width, "fw")], "fw")
            back, _ = _layers(graph, options, xs[::-1], [_zero_state(graph, batch, width, "bw")], "bw")
            xs = [tf.concat(pair, 1) for pair in zip(ahead, back[::-1], strict=True)]
            states += last
        rest = options.layers - options.bidirectional
        if rest:
            start = [_zero_state(graph, batch, width, "rnn") for _ in range(rest)]
            xs, last = _layers(graph, options, xs, start, "rnn")
            states += last
    with graph.scope("decoder"):
        ys, _ = _layers(graph, options, _embed(graph, options, target), states, "rnn")
        if options.attention:
            ys = _attend(graph, options, xs, ys)
        y = tf.stack(ys, 1)
    logits = dense(y, options.vocabulary, "output_projection")
    if not options.training:
        return Outputs((tf.pointwise("Softmax", logits),))
    labels = tf.placeholder(graph, (batch, options.target_length))
    return Outputs((logits,), tf.reduce("Mean", tf.sparse_softmax_cross_entropy(logits, labels), None))


def _embed(graph: Graph, options: LstmOptions, tokens: Tensor) -> list[Tensor]:
    table = variable(graph, (options.vocabulary, options.width), "uniform", "embedding")
    return list(tf.unstack(tf.embedding_lookup(table.read, tokens), 1))


def _zero_state(graph: Graph, batch: int, width: int, name: str) -> State:
    """`BasicLSTMCell.zero_state`: the cell, the output."""
    parts = []
    with graph.scope(f"{name}/BasicLSTMCellZeroState"):
        for _ in range(2):
            shape = tf.concat([tf.ints(graph, batch), tf.ints(graph, width)], 0)
            parts.append(tf.fill(graph, shape, (batch, width), name="zeros"))
            tf.ints(graph, batch)
            tf.ints(graph, width)
    return parts[0], parts[1]


def _layers(
    graph: Graph, options: LstmOptions, xs: Sequence[Tensor], states: Sequence[State], name: str
) -> tuple[list[Tensor], list[State]]:
    """Add layers of cells over the steps; return the outputs of the last layer, and the last states."""
    weights: list[tuple[Variable, Variable] | None] = [None] * len(states)
    current, outputs = list(states), []
    for x in xs:
        for layer, state in enumerate(current):
            with graph.scope(f"{name}/cell_{layer}"):
                held = weights[layer] or _weights(graph, x.shape[1] + options.width, options.width)
                weights[layer] = held
                current[layer] = _cell(graph, x, state, *held)
                x = current[layer][1]
        outputs.append(x)
    return outputs, current


def _weights(graph: Graph, fan_in: int, width: int) -> tuple[Variable, Variable]:
    kernel = variable(graph, (fan_in, 4 * width), "uniform", "basic_lstm_cell/kernel", cached=True)
    return kernel, variable(graph, (4 * width,), "zeros", "basic_lstm_cell/bias", cached=True)


def _cell(graph: Graph, x: Tensor, state: State, kernel: Variable, bias: Variable) -> State:
    """`BasicLSTMCell.call`: the new cell and output."""
    cell, output = state
    with graph.scope("basic_lstm_cell"):
        one = tf.ints(graph, 1, scalar=True)
        gates = tf.bias_add(tf.matmul(tf.concat([x, output], 1), kernel.read), bias.read)
        tf.constant(graph, (), 4, "int")
        write, candidate, keep, show = tf.split(gates, 4, 1, by=one)
        kept = tf.pointwise("Sigmoid", tf.pointwise("Add", keep, tf.constant(graph)))
        kept = tf.pointwise("Mul", cell, kept)
        written = tf.pointwise("Mul", tf.pointwise("Sigmoid", write), tf.pointwise("Tanh", candidate))
        cell = tf.pointwise("Add", kept, written)
        return cell, tf.pointwise("Mul", tf.pointwise("Tanh", cell), tf.pointwise("Sigmoid", show))


def _attend(graph: Graph, options: LstmOptions, sources: Sequence[Tensor], targets: Sequence[Tensor]) -> list[Tensor]:
    """Global attention with the `general` score: an attentional vector per step."""
    width = options.width
    with graph.scope("attention"):
        memory = tf.stack(sources, 1)
        keys = dense(memory, width, "memory_layer", bias=False)
        kernel: Variable | None = None
        vectors = []
        for hidden in targets:
            scores = tf.squeeze(tf.matmul(tf.expand_dims(hidden, 1), keys, right=True), (1,))
            weights = tf.pointwise("Softmax", scores)
            context = tf.squeeze(tf.matmul(tf.expand_dims(weights, 1), memory), (1,))
            joined = tf.concat([context, hidden], 1)
            kernel = kernel or variable(graph, (joined.shape[1], width), "uniform", "attention_layer/kernel")
            vectors.append(tf.pointwise("Tanh", tf.matmul(joined, kernel.read, name="attention_layer/MatMul")))
    return vectors
