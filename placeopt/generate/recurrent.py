"""Build graphs of neural machine translation with LSTMs, unrolled in time.

Sutskever, Vinyals, Le, "Sequence to Sequence Learning with Neural Networks", NeurIPS 2014, arXiv:1409.3215, with the
global attention of Luong, Pham, Manning, "Effective Approaches to Attention-based Neural Machine Translation", EMNLP
2015, DOI 10.18653/v1/D15-1166 (section 3.1), and the bidirectional first layer of GNMT (Wu et al. 2016,
arXiv:1609.08144, section 3.2) as an option. The defaults are the model that Baechi (Jeon et al. 2020, section 1)
places: 4 layers of 512 units, 30,000 tokens, 50 time steps; its batch is 128.

All time steps of a layer read the same weights, which are resident with the first step; a `colocate` label puts all
steps on one device (GNMT places one layer per GPU, its section 3.3). With `granular`, only the two operators that read
weights (matmul, bias) have the layer's labels; the elementwise ones may run on any device.

A graph of more than 36,000 tasks:

    layers=8, source_length=90, target_length=90, granular=True, training=True    39,463 tasks
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from pydantic import Field, model_validator

from placeopt.generate.layers import ELEMENTWISE, Graph, ModelOptions, Tensor, Weights


class LstmOptions(ModelOptions):
    """Options of the LSTM translator."""

    layers: int = Field(default=4, ge=1)
    """Layers of the encoder, and of the decoder."""
    width: int = Field(default=512, ge=1)
    """Units of an LSTM layer, and width of an embedding."""
    vocabulary: int = Field(default=30_000, ge=1)
    """Tokens of each language."""
    source_length: int = Field(default=50, ge=1)
    """Time steps of the encoder."""
    target_length: int = Field(default=50, ge=1)
    """Time steps of the decoder."""
    bidirectional: bool = False
    """Whether the encoder's first layer reads the sentence in both directions, with as many units in each."""
    attention: bool = True
    """Whether the decoder attends to the encoder's outputs, instead of reading only the encoder's last states."""
    granular: bool = False
    """Whether a cell is 13 tasks (matmul, gates, sums, products) instead of one."""

    @model_validator(mode="after")
    def _both_directions_are_used(self) -> Self:
        if self.bidirectional and self.layers == 1 and not self.attention:
            raise ValueError("a bidirectional encoder of 1 layer needs attention: nothing else reads its reverse half")
        return self


@dataclass(frozen=True, slots=True)
class _State:
    """The state that a cell passes to the next time step."""

    hidden: Tensor
    cell: Tensor


def lstm_nmt(options: LstmOptions) -> Graph:
    """Build the LSTM translator, from token ids to the probabilities of every step's next token.

    Departure from Luong et al.: no input feeding (the attentional vector is used only for the output), so that decoder
    layers form a pipeline, as in GNMT.
    """
    graph = Graph(options)
    inputs = _embed(graph, options, "source_embedding", options.source_length)
    zero = Tensor(None, (options.batch, options.width))
    start = _State(zero, zero)
    states = []
    for layer in range(1, options.layers + 1):
        encode = _both_ways if options.bidirectional and layer == 1 else _lstm_layer
        inputs, state = encode(graph, options, f"encoder{layer}", inputs, start)
        states.append(state)
    outputs = _embed(graph, options, "target_embedding", options.target_length)
    for layer, state in enumerate(states, start=1):
        outputs, _ = _lstm_layer(graph, options, f"decoder{layer}", outputs, state)
    if options.attention:
        outputs = _attend(graph, options, inputs, outputs)
    weights = Weights("output", (options.width + 1) * options.vocabulary)
    for step, x in enumerate(outputs, start=1):
        logits = graph.dense(f"output/step{step}/logits", x, options.vocabulary, weights=weights)
        graph.elementwise(f"output/step{step}/softmax", "softmax", logits)
    return graph


def _embed(graph: Graph, options: LstmOptions, name: str, length: int) -> list[Tensor]:
    weights = Weights(name, options.vocabulary * options.width)
    return [
        graph.embedding(f"{name}/step{step}", (options.batch,), options.width, weights, scaled=False)
        for step in range(1, length + 1)
    ]


def _both_ways(
    graph: Graph, options: LstmOptions, name: str, inputs: list[Tensor], start: _State
) -> tuple[list[Tensor], _State]:
    """The concatenated outputs of both directions for each step, and the last state of the forward one."""
    ahead, last = _lstm_layer(graph, options, f"{name}/forward", inputs, start)
    reverse, _ = _lstm_layer(graph, options, f"{name}/reverse", inputs[::-1], start)
    pairs = zip(ahead, reversed(reverse), strict=True)
    return [graph.concat(f"{name}/step{step}/concat", pair, axis=-1) for step, pair in enumerate(pairs, start=1)], last


def _lstm_layer(
    graph: Graph, options: LstmOptions, name: str, inputs: list[Tensor], state: _State
) -> tuple[list[Tensor], _State]:
    cell = _granular_cell if options.granular else _fused_cell
    outputs = []
    for step, x in enumerate(inputs, start=1):
        state = cell(graph, name, step, x, state)
        outputs.append(state.hidden)
    return outputs, state


def _fused_cell(graph: Graph, layer: str, step: int, x: Tensor, state: _State) -> _State:
    """An LSTM cell as one task, like a library kernel (cuDNN), with the costs of `_granular_cell`."""
    batch, width = state.hidden.shape
    fan_in = x.shape[-1] + width
    # Per unit: 4 biases, 3 sigmoids, 2 tanh, 3 products, 1 sum.
    flops = 4 + 3 * ELEMENTWISE["sigmoid"][0] + 2 * ELEMENTWISE["tanh"][0] + 4
    training = graph.options.training
    name = f"{layer}/step{step}"
    graph.add(
        name,
        "lstm_cell",
        (batch, 2 * width),
        (x, state.hidden, state.cell),
        macs=4 * batch * width * fan_in,
        flops=flops * batch * width,
        weights=Weights(layer, 4 * width * (fan_in + 1)),
        # The four gates: workspace, unless the gradient needs them.
        scratch=0 if training else 4 * batch * width,
        reserve=4 * batch * width if training else 0,
        keeps="both",
    )
    half = Tensor(name, (batch, width))
    return _State(half, half)


def _granular_cell(graph: Graph, layer: str, step: int, x: Tensor, state: _State) -> _State:
    """An LSTM cell of 13 tasks.

    [i, f, o, g] = [x, h] W + b;  c' = sigmoid(f) c + sigmoid(i) tanh(g);  h' = sigmoid(o) tanh(c').
    """
    batch, width = state.hidden.shape
    name = f"{layer}/step{step}"
    joined = graph.concat(f"{name}/concat", (x, state.hidden), axis=-1)
    kernel = Weights(f"{layer}/kernel", 4 * width * joined.shape[-1])
    bias = Weights(f"{layer}/bias", 4 * width)
    y = graph.dense(f"{name}/matmul", joined, 4 * width, bias=False, weights=kernel)
    y = graph.add(f"{name}/bias", "bias_add", y.shape, (y,), flops=y.elements, weights=bias)
    y = graph.add(f"{name}/split", "split", y.shape, (y,))
    gate = Tensor(y.task, (batch, width))
    write = graph.elementwise(f"{name}/input_gate", "sigmoid", gate)
    keep = graph.elementwise(f"{name}/forget_gate", "sigmoid", gate)
    show = graph.elementwise(f"{name}/output_gate", "sigmoid", gate)
    candidate = graph.elementwise(f"{name}/candidate", "tanh", gate)
    kept = graph.elementwise(f"{name}/keep", "multiply", keep, state.cell)
    written = graph.elementwise(f"{name}/write", "multiply", write, candidate)
    cell = graph.elementwise(f"{name}/cell", "add", kept, written)
    squashed = graph.elementwise(f"{name}/tanh", "tanh", cell)
    hidden = graph.elementwise(f"{name}/hidden", "multiply", show, squashed)
    return _State(hidden, cell)


def _attend(graph: Graph, options: LstmOptions, sources: list[Tensor], targets: list[Tensor]) -> list[Tensor]:
    """Global attention with the `general` score (Luong et al., equations 5 to 8): an attentional vector per step."""
    batch, width = options.batch, options.width
    length, depth = len(sources), sources[0].shape[-1]
    rows = [Tensor(source.task, (batch, 1, depth)) for source in sources]
    memory = graph.concat("attention/memory", rows, axis=1)
    keys = graph.dense("attention/keys", memory, width, bias=False)
    combine = Weights("attention/combine", (depth + width) * width)
    vectors = []
    for step, hidden in enumerate(targets, start=1):
        name = f"attention/step{step}"
        y = graph.matmul(f"{name}/scores", hidden, keys, (batch, length), inner=width)
        y = graph.elementwise(f"{name}/softmax", "softmax", y)
        context = graph.matmul(f"{name}/context", y, memory, (batch, depth), inner=length)
        y = graph.concat(f"{name}/concat", (context, hidden), axis=-1)
        y = graph.dense(f"{name}/combine", y, width, bias=False, weights=combine)
        vectors.append(graph.elementwise(f"{name}/tanh", "tanh", y))
    return vectors
