"""Costs of the operators of ONNX Runtime in the domain com.microsoft: fused, quantised and attention operators."""

from __future__ import annotations

import math

from placeopt.bridges.costs import formulas
from placeopt.bridges.costs.formulas import ELEMENTWISE, alike
from placeopt.bridges.costs.onnx_nodes import (
    DEQUANTISE,
    REQUANTISE,
    Rule,
    SizedNode,
    UnknownSizeError,
    by_input,
    convolution,
    elementwise,
    pooling,
)


def _fused_convolution(*, channels_last: bool) -> Rule:
    """A rule for a convolution with an activation, and perhaps a sum."""

    def rule(node: SizedNode) -> int:
        fused = bool(node.attribute("activation", b"")) + node.has(3)
        return convolution(node, channels_last=channels_last) + node.results * fused

    return rule


def _quantised_convolution(node: SizedNode) -> int:
    channels_last = bool(node.attribute("channels_last", 0))
    return convolution(node, 3, channels_last=channels_last) + REQUANTISE * node.results


def _matmul(more: int = 0) -> Rule:
    """A rule for a product, with `more` FLOP for each element of the result."""

    def rule(node: SizedNode) -> int:
        left = node.shape(0)
        inner = left[-2 if node.attribute("transA", 0) and len(left) > 1 else -1]
        return formulas.matmul(1, inner, node.results) + more * node.results

    return rule


def _weights_in_blocks(node: SizedNode) -> int:
    """A product with weights that are dequantised as they are read."""
    inner: int = node.attribute("K", 0)
    columns: int = node.attribute("N", 0)
    return formulas.matmul(1, inner, node.results) + DEQUANTISE * inner * columns


def _projected_attention(node: SizedNode) -> int:
    """Attention of which the operator computes the queries, keys and values from its input."""
    batch, length, width = node.shape(0)
    heads, projected = node.attribute("num_heads", 1), node.shape(1)[1]
    queries, _, values = node.attribute("qkv_hidden_sizes", None) or [projected // 3] * 3
    place = 8 if node.proto.op_type == "QAttention" else 4
    past = node.shape(place)[3] if node.has(place) else 0
    return formulas.matmul(batch * length, width, projected) + formulas.attention(
        batch, heads, length, length + past, queries // heads, values // heads
    )


def _multi_head_attention(node: SizedNode) -> int:
    """Attention of queries, keys and values, which may be packed into the first input."""
    heads = node.attribute("num_heads", 1)
    queries = node.shape(0)
    past_place = 5 if node.proto.op_type == "DecoderMaskedMultiHeadAttention" else 6
    past = node.shape(past_place)[2] if node.has(past_place) else 0
    if len(queries) == 5:  # batch, length, heads, 3, head size
        batch, length, _, _, size = queries
        return formulas.attention(batch, heads, length, length + past, size)
    batch, length, width = queries
    if not node.has(1):
        raise UnknownSizeError("key")
    keys = node.shape(1)
    if len(keys) == 5:  # batch, length, heads, 2, head size
        return formulas.attention(batch, heads, length, keys[1] + past, keys[4])
    kept = keys[2] if len(keys) == 4 else keys[1]
    values = node.shape(2)
    value_size = values[3] if len(values) == 4 else values[2] // heads
    return formulas.attention(batch, heads, length, kept + past, width // heads, value_size)


def _group_query_attention(node: SizedNode) -> int:
    """Attention in which several heads share keys and values, with a cache of earlier tokens."""
    batch, length, width = node.shape(0)
    heads, kept = node.attribute("num_heads", 1), node.attribute("kv_num_heads", 1)
    size = width // heads if node.has(1) else width // (heads + 2 * kept)
    cached = node.result(1)[2] if len(node.proto.output) > 1 and node.proto.output[1] else 0
    before = node.shape(3)[2] if node.has(3) else 0
    rotary = 3 * batch * length * size * (heads + kept) if node.attribute("do_rotary", 0) else 0
    return formulas.attention(batch, heads, length, max(cached, before, length), size) + rotary


def _expert_sizes(node: SizedNode) -> tuple[int, int, int, int, int]:
    """Tokens, experts per token, experts, columns of the first product, and columns after its activation."""
    experts, columns, _ = node.shape(2)
    inner = columns // 2 if node.attribute("swiglu_fusion", 0) else columns
    return math.prod(node.shape(0)[:-1]), node.attribute("k", 1), experts, columns, inner


def _experts(third: int) -> Rule:
    """A rule for a mixture of experts: each token passes through k of them; the input `third` adds a product."""

    def rule(node: SizedNode) -> int:
        tokens, chosen, _, columns, inner = _expert_sizes(node)
        products = columns + inner + (columns if node.has(third) else 0)
        width = node.shape(0)[-1]
        return tokens * chosen * (formulas.matmul(1, width, products) + inner * ELEMENTWISE["swish"])

    return rule


def _expert_traffic(node: SizedNode) -> int:
    """Traffic of a mixture of experts: the weights of the experts that the tokens are expected to choose are read."""
    tokens, chosen, experts, _, _ = _expert_sizes(node)
    activations = node.bytes(0) + node.bytes(1)
    weights = node.read - activations
    return activations + formulas.experts_read(weights, experts, min(chosen, experts), tokens) + node.written


def _recurrent(node: SizedNode) -> int:
    steps, batch, inputs = node.shape(0)
    directions, hidden = node.shape(2)[0], node.attribute("hidden_size", 0)
    return formulas.recurrent(steps, batch, inputs, hidden, 4, directions)


def _requantised(flops: int) -> Rule:
    """A rule for an operation between dequantisation and quantisation."""
    return lambda node: node.results * (DEQUANTISE + flops + REQUANTISE)


def _embedding(node: SizedNode) -> int:
    """Traffic of an embedding: indices, one row of each table for each token, and the results."""
    tables = sum(node.has(place) for place in (2, 3, 4))
    rows = node.results * node.bytes(2) // max(node.elements(2), 1)
    return node.bytes(0) + node.bytes(1) + tables * rows + node.written


def _rows(node: SizedNode) -> int:
    """Traffic of a selection from quantised rows: the selected rows and the indices are read."""
    rows = node.results * node.bytes(0) // max(node.elements(0), 1)
    return rows + node.bytes(1) + node.written


FLOPS: dict[str, Rule] = {
    **alike("Attention DecoderMaskedSelfAttention QAttention", _projected_attention),
    "BiasAdd": elementwise(2),
    "BiasGelu": elementwise(1 + ELEMENTWISE["gelu"]),
    "BiasSoftmax": lambda node: formulas.softmax_of(node.results) + node.results,
    "BiasSplitGelu": elementwise(3 + ELEMENTWISE["gelu"]),
    **alike("ComplexMul MulInteger RotaryEmbedding", elementwise(3)),
    **alike("DecoderMaskedMultiHeadAttention MultiHeadAttention", _multi_head_attention),
    **alike("DequantizeLinear GatherBlockQuantized", elementwise(DEQUANTISE)),
    "DynamicQuantizeLSTM": _recurrent,
    **alike("DynamicQuantizeMatMul MatMulIntegerToFloat", _matmul(DEQUANTISE)),
    "EmbedLayerNormalization": lambda node: formulas.layer_norm(node.results) + 2 * node.results,
    "FastGelu": elementwise(1 + ELEMENTWISE["gelu_tanh"]),
    "FusedConv": _fused_convolution(channels_last=False),
    **alike("FusedGemm FusedMatMulActivation", _matmul(1)),
    **alike("FusedMatMul MatMulInteger16 TransposeMatMul", _matmul()),
    "Gelu": elementwise(ELEMENTWISE["gelu"]),
    "GemmFastGelu": _matmul(ELEMENTWISE["gelu_tanh"]),
    "GroupNorm": lambda node: formulas.layer_norm(node.results),
    "GroupQueryAttention": _group_query_attention,
    **alike("MatMulBnb4 MatMulNBits", _weights_in_blocks),
    "MoE": _experts(6),
    **alike("NhwcConv NhwcFusedConv", _fused_convolution(channels_last=True)),
    **alike("NhwcMaxPool QLinearAveragePool", pooling),
    "QGemm": _matmul(REQUANTISE),
    **alike("QLinearAdd QLinearMul", _requantised(1 + DEQUANTISE)),
    "QLinearConv": _quantised_convolution,
    **alike("QLinearGlobalAveragePool QLinearReduceMean ReduceSumInteger", by_input(1)),
    "QLinearLeakyRelu": _requantised(ELEMENTWISE["leaky_relu"]),
    "QLinearSigmoid": _requantised(ELEMENTWISE["sigmoid"]),
    "QLinearSoftmax": lambda node: formulas.softmax_of(node.results) + node.results * (DEQUANTISE + REQUANTISE),
    "QMoE": _experts(8),
    "QuantizeLinear": elementwise(REQUANTISE),
    "QuickGelu": elementwise(ELEMENTWISE["swish"]),
    **alike("SkipGroupNorm SkipLayerNormalization", elementwise(formulas.layer_norm(1) + 1)),
    "SkipSimplifiedLayerNormalization": elementwise(formulas.rms_norm(1) + 1),
}
"""The FLOP of each operator."""

MOVES = frozenset({"ExpandDims", "Pad", "QLinearConcat", "Range", "Trilu"})
"""Operators that only move data."""

TRAFFIC: dict[str, Rule] = {
    "EmbedLayerNormalization": _embedding,
    "ExpandDims": lambda _node: 0,
    "GatherBlockQuantized": _rows,
    "MoE": _expert_traffic,
    "QMoE": _expert_traffic,
}
"""The traffic of operators that read less than their inputs."""
