"""A transformer as a serving problem: what a layer weighs, keeps for a token, and computes for a token."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any, NamedTuple

from placeopt.bridges.importers.language_models.transformer import Block, Transformer, Weight


class _Layer(NamedTuple):
    """Bytes of the weights, bytes kept for a token, and FLOP for a token."""

    weights: int
    cache: int
    flops: int


def serving_document(
    model: Transformer, network: Mapping[str, Any], *, name: str, source: str, context: int, batch: int | None
) -> dict[str, Any]:
    """The document of a serving problem on a network, for decoding with a context.

    The first layer includes the embedding, and the last one the output matrix. A token uses `active` of the experts of
    a mixture; all of them are in memory.
    """
    layers = [_layer(model, block, context) for block in model.blocks]
    first, last = layers[0], layers[-1]
    tables = sum(weight.size for weight in model.embedding)
    layers[0] = first._replace(weights=first.weights + tables)
    last = layers[-1]
    head = 0 if model.tied and len(layers) == 1 else sum(weight.size for weight in model.head)
    shared = tables if model.tied and len(layers) > 1 else 0  # the output matrix is a copy of the embedding
    work = 2 * (model.hidden * model.vocabulary if model.tied else _work(model.head))
    layers[-1] = last._replace(weights=last.weights + head + shared, flops=last.flops + work)
    groups = [(layer, len(list(alike))) for layer, alike in groupby(layers)]
    serving: dict[str, Any] = {
        "layers": [{"count": count, **layer._asdict()} for layer, count in groups],
        "activation": model.hidden * model.activation,
        "context": context,
        "precision": model.precision,
    }
    if batch is not None:
        serving["batch"] = batch
    return {
        "placeopt": 1, "name": name, "source": source,
        "description": f"{model.parameters:,} parameters; decoding with a context of {context:,} tokens",
        **network, "serving": serving,
    }  # fmt: skip


def _layer(model: Transformer, block: Block, context: int) -> _Layer:
    """The costs of a block."""
    work = 2 * _work(block.attention + block.ffn)
    if block.experts:
        work += 2 * _work(block.experts) * model.active // max(model.experts, 1)
    cache = 0
    if block.shape is not None:
        shape = block.shape
        tokens = context if shape.window is None else min(context, shape.window)
        key, value = shape.latent or (shape.key, shape.value)
        work += 2 * tokens * shape.heads * (key + value)
        cache = shape.cached * model.activation
    return _Layer(sum(weight.size for weight in block.weights), cache, work)


def _work(weights: tuple[Weight, ...]) -> int:
    """Elements of the matrices."""
    return sum(weight.elements for weight in weights if weight.width)
