"""Build graphs of the encoder-decoder Transformer.

Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser, Polosukhin, "Attention Is All You Need", NeurIPS 2017,
arXiv:1706.03762. The defaults are its base model (table 3).

With `split_heads`, every attention head is a separate chain of tasks: query, key and value projections, then figure 2
of the paper (scores, scale, mask in the decoder's self-attention, softmax, context). A graph of the size that Celeritas
reports for its Transformer (36,352 nodes; Celeritas 2022, table 2):

    layers=12, heads=64, width=4096, ff_width=16384, split_heads=True, training=True    41,515 tasks

The configuration of its section 6.2.1 (layers=12, heads=16, width=2048, ff_width=8192) has 10,987 tasks here:
TensorFlow's graph also has constants, reshapes and variable reads as nodes.
"""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from placeopt.generate.layers import Graph, ModelOptions, Tensor, Weights


class TransformerOptions(ModelOptions):
    """Options of the Transformer."""

    layers: int = Field(default=6, ge=1)
    """Layers of the encoder, and of the decoder (N in the paper)."""
    heads: int = Field(default=8, ge=1)
    """Attention heads (h); must divide the width."""
    width: int = Field(default=512, ge=1)
    """Width of the model (d_model)."""
    ff_width: int = Field(default=2048, ge=1)
    """Width inside the feed-forward blocks (d_ff)."""
    vocabulary: int = Field(default=37_000, ge=1)
    """Tokens of the common vocabulary of both languages."""
    source_length: int = Field(default=64, ge=1)
    """Tokens of a source sentence."""
    target_length: int = Field(default=64, ge=1)
    """Tokens of a target sentence."""
    split_heads: bool = False
    """Whether each attention head has separate tasks."""
    shared_embedding: bool = True
    """Whether both embeddings and the output layer share one matrix (section 3.4); they then share a device. False by
    default with the objective `period`, because contiguous stages would put all tasks on that device."""

    dynamic_shapes: bool = True
    """With a style of TensorFlow: whether the batch and the lengths are not known while TensorFlow builds the graph,
    so that operations compute the shapes."""

    @model_validator(mode="before")
    @classmethod
    def _pipelines_copy_the_embedding(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("objective") == "period":
            return {**data, "shared_embedding": data.get("shared_embedding", False)}
        return data

    @model_validator(mode="after")
    def _heads_divide_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        return self

    @model_validator(mode="after")
    def _tensorflow_has_one_structure(self) -> Self:
        if self.style != "kernels" and (self.split_heads or not self.shared_embedding):
            raise ValueError(f"the style {self.style} joins the heads and shares the embedding")
        return self


def transformer(options: TransformerOptions) -> Graph:
    """Build the Transformer, from token ids to the probabilities of every position's next token.

    As in the paper's equations, attention projections have no bias, and feed-forward layers do. Dropout (section 5.4)
    is added only in training.
    """
    graph = Graph(options)
    tables = ("encoder/embedding", "decoder/embedding", "logits")
    size = options.vocabulary * options.width
    embedding, target_embedding, output = (
        Weights("embedding" if options.shared_embedding else table, size) for table in tables
    )
    memory = _embed(graph, options, "encoder", options.source_length, embedding)
    for layer in range(1, options.layers + 1):
        name = f"encoder{layer}"
        memory = _attention_block(graph, options, f"{name}/self_attention", memory, memory)
        memory = _feed_forward_block(graph, options, f"{name}/feed_forward", memory)
    x = _embed(graph, options, "decoder", options.target_length, target_embedding)
    for layer in range(1, options.layers + 1):
        name = f"decoder{layer}"
        x = _attention_block(graph, options, f"{name}/self_attention", x, x, masked=True)
        x = _attention_block(graph, options, f"{name}/cross_attention", x, memory)
        x = _feed_forward_block(graph, options, f"{name}/feed_forward", x)
    x = graph.dense("logits", x, options.vocabulary, bias=False, weights=output)
    graph.elementwise("softmax", "softmax", x)
    return graph


def _embed(graph: Graph, options: TransformerOptions, name: str, length: int, weights: Weights) -> Tensor:
    tokens = (options.batch, length)
    x = graph.embedding(f"{name}/embedding", tokens, options.width, weights, scaled=True)
    positions = Tensor(None, (length, options.width))
    x = graph.elementwise(f"{name}/position", "add", x, positions)
    return _dropout(graph, f"{name}/dropout", x)


def _attention_block(
    graph: Graph, options: TransformerOptions, name: str, x: Tensor, memory: Tensor, masked: bool = False
) -> Tensor:
    """Add multi-head attention (section 3.2.2) of x to the memory, residual sum and normalisation."""
    if options.split_heads:
        heads = [
            _attention(graph, options, f"{name}/head{head}", x, memory, 1, masked)
            for head in range(1, options.heads + 1)
        ]
        context = graph.concat(f"{name}/concat", heads, axis=-1)
    else:
        context = _attention(graph, options, name, x, memory, options.heads, masked)
    y = graph.dense(f"{name}/output", context, options.width, bias=False)
    return _add_and_norm(graph, name, x, y)


def _attention(
    graph: Graph, options: TransformerOptions, name: str, x: Tensor, memory: Tensor, heads: int, masked: bool
) -> Tensor:
    """Add scaled dot-product attention (section 3.2.1) of `heads` heads at once."""
    batch, head_width = options.batch, options.width // options.heads
    width = heads * head_width
    query = graph.dense(f"{name}/query", x, width, bias=False)
    key = graph.dense(f"{name}/key", memory, width, bias=False)
    value = graph.dense(f"{name}/value", memory, width, bias=False)
    queries, keys = query.shape[1], key.shape[1]
    y = graph.matmul(f"{name}/scores", query, key, (batch, heads, queries, keys), inner=head_width)
    y = graph.elementwise(f"{name}/scale", "scale", y)
    if masked:
        y = graph.elementwise(f"{name}/mask", "mask", y)
    y = graph.elementwise(f"{name}/softmax", "softmax", y)
    return graph.matmul(f"{name}/context", y, value, (batch, queries, width), inner=keys)


def _feed_forward_block(graph: Graph, options: TransformerOptions, name: str, x: Tensor) -> Tensor:
    """Add the feed-forward network of every position (section 3.3), residual sum and normalisation."""
    y = graph.dense(f"{name}/expand", x, options.ff_width)
    y = graph.elementwise(f"{name}/relu", "relu", y)
    y = graph.dense(f"{name}/contract", y, options.width)
    return _add_and_norm(graph, name, x, y)


def _add_and_norm(graph: Graph, name: str, x: Tensor, y: Tensor) -> Tensor:
    y = _dropout(graph, f"{name}/dropout", y)
    y = graph.elementwise(f"{name}/add", "add", x, y)
    return graph.layer_norm(f"{name}/norm", y)


def _dropout(graph: Graph, name: str, x: Tensor) -> Tensor:
    return graph.elementwise(name, "dropout", x) if graph.options.training else x
