"""A transformer as a serving problem: the costs of its layers, instead of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from placeopt.bridges.importers.language_models.transformer import Transformer


class LayerCosts(NamedTuple):
    """Bytes of the weights, bytes kept for a token, and FLOP for a token."""

    weights: int
    cache: int
    flops: int


def serving_document(
    model: Transformer, costs: Sequence[LayerCosts], network: Mapping[str, Any], **keys: Any
) -> dict[str, Any]:
    """The document of a serving problem on a network, with further `keys` of the section `serving`.

    `costs` are those of the embedding, the layers and the head. The first and the last layer include the outer ones.
    The last one has a copy of the table of the vocabulary if that is the output matrix, too.
    """
    before, *layers, after = costs
    table = model.embedding[0].size if model.tied and len(layers) > 1 else 0
    layers[0] = _sum(layers[0], before)
    layers[-1] = _sum(layers[-1], after._replace(weights=after.weights + table))
    alike = [(layer, len(list(group))) for layer, group in groupby(layers)]
    serving = {
        "layers": [{"count": count, **layer._asdict()} for layer, count in alike],
        "activation": model.hidden * model.activation,
        "precision": model.precision,
        **keys,
    }
    return {"placeopt": 1, **network, "serving": serving}


def _sum(one: LayerCosts, other: LayerCosts) -> LayerCosts:
    return LayerCosts(*map(sum, zip(one, other, strict=True)))
