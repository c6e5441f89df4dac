"""Shapes that onnx does not infer: operators of ONNX Runtime and of ai.onnx.ml, and old versions of standard ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from placeopt.bridges.onnx_models.sizes import shape_of, tensor_type
from placeopt.bridges.onnx_models.view import attribute

if TYPE_CHECKING:
    from onnx import NodeProto, TypeProto

_RUNTIME = ("com.microsoft", "com.microsoft.nchwc")
"""Domains of ONNX Runtime."""

Shape = tuple[int, ...]
Results = list[Shape]

_FLOAT, _UINT8, _INT32, _INT64, _STRING, _BOOL = 1, 2, 6, 7, 8, 9  # of TensorProto.DataType


class _Inputs:
    """Shapes of the inputs of a node."""

    def __init__(self, node: NodeProto, types: Mapping[str, TypeProto]) -> None:
        self.node = node
        self._types = types

    def has(self, place: int) -> bool:
        """Whether the node has this input."""
        return place < len(self.node.input) and bool(self.node.input[place])

    def shape(self, place: int) -> Shape:
        """The shape of an input; raises a LookupError if it is unknown."""
        found = shape_of(self._types[self.node.input[place]])
        if found is None:
            raise LookupError(place)
        return found

    def element(self, place: int) -> int:
        """The type of the elements of an input, as a number of TensorProto.DataType."""
        return self._types[self.node.input[place]].tensor_type.elem_type


def own_types(node: NodeProto, types: Mapping[str, TypeProto]) -> dict[str, TypeProto]:
    """Types of the outputs of an operator; empty if it is not listed here or a shape is unknown."""
    table, elements = _TABLES.get(node.domain, ({}, {}))
    rule = table.get(node.op_type)
    if rule is None:
        return {}
    inputs = _Inputs(node, types)
    try:
        shapes = rule(inputs)
        element = elements[node.op_type](inputs) if node.op_type in elements else inputs.element(0)
    except (LookupError, ValueError, TypeError, ArithmeticError):
        return {}
    return {
        name: tensor_type(_LATER.get((node.op_type, place), element), shape)
        for place, (name, shape) in enumerate(zip(node.output, shapes, strict=False))
        if name
    }


def _labels(inputs: _Inputs) -> Sequence[object]:
    found: Sequence[object] = attribute(inputs.node, "classlabels_int64s") or attribute(
        inputs.node, "classlabels_strings", ()
    )
    return found


def _classifier(inputs: _Inputs) -> Results:
    """The label of each row, and its score for each class."""
    return [(inputs.shape(0)[0],), (inputs.shape(0)[0], len(_labels(inputs)))]


def _regressor(key: str) -> Callable[[_Inputs], Results]:
    """The targets of each row; the attribute `key` is their number."""
    return lambda inputs: [(inputs.shape(0)[0], attribute(inputs.node, key, 1))]


def _picked(inputs: _Inputs) -> Results:
    """The elements at the indices of the second input, along the last dimension."""
    return [(*(inputs.shape(0)[:-1] or (1,)), math.prod(inputs.shape(1)))]


def _features(inputs: _Inputs) -> Results:
    """The features of all inputs side by side."""
    return [(inputs.shape(0)[0], sum(attribute(inputs.node, "inputdimensions", ())))]


def _same(inputs: _Inputs) -> Results:
    """Every output is like the first input."""
    return [inputs.shape(0)] * len(inputs.node.output)


def _first(inputs: _Inputs) -> Results:
    """The first output is like the first input; others are those of training."""
    return [inputs.shape(0)]


def _broadcast(left: int, right: int) -> Callable[[_Inputs], Results]:
    return lambda inputs: [np.broadcast_shapes(inputs.shape(left), inputs.shape(right))]


def _product(left: int, right: int) -> Callable[[_Inputs], Results]:
    """A product of matrices, with the attributes transA and transB."""

    def rule(inputs: _Inputs) -> Results:
        a, b = inputs.shape(left), inputs.shape(right)
        a = (*a[:-2], a[-1], a[-2]) if attribute(inputs.node, "transA", 0) and len(a) > 1 else a
        b = (*b[:-2], b[-1], b[-2]) if attribute(inputs.node, "transB", 0) and len(b) > 1 else b
        rows = a[-2:-1]
        columns = b[-1:] if len(b) > 1 else ()
        return [(*np.broadcast_shapes(a[:-2], b[:-2]), *rows, *columns)]

    return rule


def _blocks(inputs: _Inputs) -> Results:
    return [(*inputs.shape(0)[:-1], attribute(inputs.node, "N", 0))]


def _convolution(data: int, weight: int, *, last: bool | None = False) -> Callable[[_Inputs], Results]:
    """A convolution; `last` is whether channels are last, None if the attribute channels_last says so."""

    def rule(inputs: _Inputs) -> Results:
        shape, kernel = inputs.shape(data), inputs.shape(weight)
        channels_last = bool(attribute(inputs.node, "channels_last", 0)) if last is None else last
        space = _windows(inputs, shape[1:-1] if channels_last else shape[2:], kernel[2:])
        return [(shape[0], *space, kernel[0]) if channels_last else (shape[0], kernel[0], *space)]

    return rule


def _pooling(*, last: bool | None) -> Callable[[_Inputs], Results]:
    def rule(inputs: _Inputs) -> Results:
        shape = inputs.shape(0)
        channels_last = bool(attribute(inputs.node, "channels_last", 0)) if last is None else last
        kernel = tuple(attribute(inputs.node, "kernel_shape", ()))
        space = _windows(inputs, shape[1:-1] if channels_last else shape[2:], kernel)
        return [(shape[0], *space, shape[-1]) if channels_last else (*shape[:2], *space)]

    return rule


def _windows(inputs: _Inputs, space: Shape, kernel: Shape) -> Shape:
    """Positions of a window along each dimension, as Conv and MaxPool define them."""
    node, rank = inputs.node, len(space)
    strides = attribute(node, "strides", None) or [1] * rank
    dilations = attribute(node, "dilations", None) or [1] * rank
    pads = attribute(node, "pads", None) or [0] * (2 * rank)
    padding = attribute(node, "auto_pad", b"NOTSET").decode()
    up = attribute(node, "ceil_mode", 0)
    found = []
    for axis, length in enumerate(space):
        extent = dilations[axis] * (kernel[axis] - 1) + 1
        if padding.startswith("SAME"):
            found.append(-(-length // strides[axis]))
            continue
        free = length - extent + (pads[axis] + pads[axis + rank] if padding == "NOTSET" else 0)
        found.append((-(-free // strides[axis]) if up else free // strides[axis]) + 1)
    return tuple(found)


def _global_pooling(inputs: _Inputs) -> Results:
    shape = inputs.shape(0)
    if attribute(inputs.node, "channels_last", 0):
        return [(shape[0], *(1 for _ in shape[1:-1]), shape[-1])]
    return [(*shape[:2], *(1 for _ in shape[2:]))]


def _reshape(inputs: _Inputs) -> Results:
    """The attribute `shape`: 0 keeps a size, -1 takes the rest."""
    shape = inputs.shape(0)
    target = [shape[axis] if size == 0 else size for axis, size in enumerate(attribute(inputs.node, "shape", ()))]
    if -1 in target:
        known = math.prod(size for size in target if size != -1)
        target[target.index(-1)] = math.prod(shape) // known
    return [tuple(target)]


def _join(inputs: _Inputs) -> Results:
    shapes = [inputs.shape(place) for place in range(len(inputs.node.input))]
    axis = attribute(inputs.node, "axis", 1) % len(shapes[0])
    total = sum(shape[axis] for shape in shapes)
    return [tuple(total if place == axis else size for place, size in enumerate(shapes[0]))]


def _split(inputs: _Inputs) -> Results:
    shape, count = inputs.shape(0), len(inputs.node.output)
    axis = attribute(inputs.node, "axis", 0) % len(shape)
    lengths = attribute(inputs.node, "split", None) or [shape[axis] // count] * count
    return [tuple(length if place == axis else size for place, size in enumerate(shape)) for length in lengths]


def _pad(inputs: _Inputs) -> Results:
    shape = inputs.shape(0)
    pads = attribute(inputs.node, "paddings", ())
    return [tuple(size + pads[axis] + pads[axis + len(shape)] for axis, size in enumerate(shape))]


def _upsample(inputs: _Inputs) -> Results:
    batch, channels, height, width = inputs.shape(0)
    scales = [attribute(inputs.node, f"{side}_scale", 1.0) for side in ("height", "width")]
    return [(batch, channels, int(height * scales[0]), int(width * scales[1]))]


def _gru(inputs: _Inputs) -> Results:
    steps, batch, _ = inputs.shape(0)
    directions, _, hidden = inputs.shape(2)
    return [(steps, directions, batch, hidden), (directions, batch, hidden)]


def _quantised_lstm(inputs: _Inputs) -> Results:
    """All states, the last one and the last cell; the weights are transposed."""
    steps, batch, _ = inputs.shape(0)
    directions, hidden, _ = inputs.shape(2)
    return [(steps, directions, batch, hidden), *[(directions, batch, hidden)] * 2]


def _element_of_cast(inputs: _Inputs) -> int:
    """The attribute `to`, which was a name before version 6."""
    from onnx import TensorProto

    number: int = TensorProto.DataType.Value(attribute(inputs.node, "to", b"FLOAT").decode())
    return number


def _reduction(inputs: _Inputs) -> Results:
    shape = inputs.shape(0)
    axes = attribute(inputs.node, "axes", None) or range(len(shape))
    reduced = {axis % len(shape) for axis in axes}
    kept = attribute(inputs.node, "keepdims", 1)
    return [tuple(1 if axis in reduced else size for axis, size in enumerate(shape) if kept or axis not in reduced)]


def _concatenation(inputs: _Inputs) -> Results:
    shapes = [inputs.shape(place) for place in range(2, len(inputs.node.input), 3)]
    axis = attribute(inputs.node, "axis", 0) % len(shapes[0])
    total = sum(shape[axis] for shape in shapes)
    return [tuple(total if place == axis else size for place, size in enumerate(shapes[0]))]


def _skip_norm(inputs: _Inputs) -> Results:
    shape = inputs.shape(0)
    means = (*shape[:-1], 1)
    return [shape, means, means, shape]


def _embedding(inputs: _Inputs) -> Results:
    batch, length = inputs.shape(0)
    whole = (batch, length, inputs.shape(2)[1])
    return [whole, (batch,), whole]


def _gather(inputs: _Inputs) -> Results:
    """Rows of quantised values; a byte has several elements unless the type is of less than a byte."""
    shape, chosen = inputs.shape(0), inputs.shape(1)
    rank = len(shape)
    if inputs.element(0) == _UINT8:
        packed = 8 // attribute(inputs.node, "bits", 4)
        axis = attribute(inputs.node, "quantize_axis", 1) % rank
        shape = tuple(size * packed if place == axis else size for place, size in enumerate(shape))
    axis = attribute(inputs.node, "gather_axis", 0) % rank
    return [(*shape[:axis], *chosen, *shape[axis + 1 :])]


def _projected_attention(inputs: _Inputs) -> Results:
    batch, length, _ = inputs.shape(0)
    heads, projected = attribute(inputs.node, "num_heads", 1), inputs.shape(1)[1]
    queries, _, values = attribute(inputs.node, "qkv_hidden_sizes", None) or [projected // 3] * 3
    place = 8 if inputs.node.op_type == "QAttention" else 4
    past = inputs.shape(place)[3] if inputs.has(place) else 0
    return [(batch, length, values), (2, batch, heads, past + length, queries // heads)]


def _multi_head_attention(inputs: _Inputs) -> Results:
    node, queries = inputs.node, inputs.shape(0)
    heads = attribute(node, "num_heads", 1)
    place = 5 if node.op_type == "DecoderMaskedMultiHeadAttention" else 6
    past = inputs.shape(place)[2] if inputs.has(place) else 0
    if len(queries) == 5:
        batch, length, _, _, size = queries
        kept, value_size = length, size
    else:
        batch, length, width = queries
        size, keys = width // heads, inputs.shape(1)
        kept = keys[2] if len(keys) == 4 else keys[1]
        values = inputs.shape(2) if inputs.has(2) else (batch, kept, width)
        value_size = values[3] if len(values) == 4 else values[2] // heads
    total = kept + past
    return [
        (batch, length, heads * value_size),
        (batch, heads, total, size),
        (batch, heads, total, value_size),
        (batch, heads, length, total),
    ]


def _group_query_attention(inputs: _Inputs) -> Results:
    """The cache has the length of the earlier one and the new tokens: buffers are taken as not shared."""
    batch, length, width = inputs.shape(0)
    heads, kept = attribute(inputs.node, "num_heads", 1), attribute(inputs.node, "kv_num_heads", 1)
    size = width // heads if inputs.has(1) else width // (heads + 2 * kept)
    past = inputs.shape(3)[2] if inputs.has(3) else 0
    cache = (batch, kept, past + length, size)
    return [(batch, length, heads * size), cache, cache, (batch, heads, length, past + length)]


def _half(inputs: _Inputs) -> Results:
    shape = inputs.shape(0)
    return [(*shape[:-1], shape[-1] // 2)]


_SHAPES: Mapping[str, Callable[[_Inputs], Results]] = {
    **dict.fromkeys(
        (
            "BiasAdd",
            "BiasGelu",
            "BiasSoftmax",
            "ComplexMul",
            "DequantizeLinear",
            "FastGelu",
            "Gelu",
            "GroupNorm",
            "Inverse",
            "MoE",
            "QLinearLeakyRelu",
            "QLinearSigmoid",
            "QLinearSoftmax",
            "QMoE",
            "QuantizeLinear",
            "QuickGelu",
            "RotaryEmbedding",
            "SkipGroupNorm",
            "Trilu",
        ),
        _same,
    ),
    "Attention": _projected_attention,
    "BiasSplitGelu": _half,
    "Conv": _convolution(0, 1),
    "DecoderMaskedMultiHeadAttention": _multi_head_attention,
    "DecoderMaskedSelfAttention": _projected_attention,
    "DynamicQuantizeLSTM": _quantised_lstm,
    "DynamicQuantizeMatMul": _product(0, 1),
    "EmbedLayerNormalization": _embedding,
    "FusedConv": _convolution(0, 1),
    "FusedGemm": _product(0, 1),
    "FusedMatMul": _product(0, 1),
    "FusedMatMulActivation": _product(0, 1),
    "GatherBlockQuantized": _gather,
    "GemmFastGelu": _product(0, 1),
    "GroupQueryAttention": _group_query_attention,
    "MatMulBnb4": _blocks,
    "MatMulInteger16": _product(0, 1),
    "MatMulIntegerToFloat": _product(0, 1),
    "MatMulNBits": _blocks,
    "MulInteger": _broadcast(0, 2),
    "MultiHeadAttention": _multi_head_attention,
    "NhwcConv": _convolution(0, 1, last=True),
    "NhwcFusedConv": _convolution(0, 1, last=True),
    "NhwcMaxPool": _pooling(last=True),
    "QAttention": _projected_attention,
    "QGemm": _product(0, 3),
    "QLinearAdd": _broadcast(0, 3),
    "QLinearAveragePool": _pooling(last=None),
    "QLinearConcat": _concatenation,
    "QLinearConv": _convolution(0, 3, last=None),
    "QLinearGlobalAveragePool": _global_pooling,
    "QLinearMul": _broadcast(0, 3),
    "QLinearReduceMean": _reduction,
    "ReduceSumInteger": _reduction,
    "SkipLayerNormalization": _skip_norm,
    "SkipSimplifiedLayerNormalization": _skip_norm,
    "TransposeMatMul": _product(0, 1),
}

_ELEMENTS: Mapping[str, Callable[[_Inputs], int]] = {
    "DequantizeLinear": lambda inputs: inputs.element(1),
    "EmbedLayerNormalization": lambda inputs: inputs.element(2),
    "GatherBlockQuantized": lambda inputs: inputs.element(2),
    "MatMulInteger16": lambda _inputs: _INT32,
    "MatMulIntegerToFloat": lambda inputs: inputs.element(2),
    "MulInteger": lambda _inputs: _INT32,
    "QAttention": lambda inputs: inputs.element(3),
    "QGemm": lambda inputs: inputs.element(0) if inputs.has(8) else _FLOAT,
    "QLinearConcat": lambda inputs: inputs.element(2),
    "QuantizeLinear": lambda inputs: inputs.element(2) if inputs.has(2) else _UINT8,
    "ReduceSumInteger": lambda _inputs: _INT32,
}
"""The type of the elements of the outputs, where it is not that of the first input."""

_LATER = {("EmbedLayerNormalization", 1): _INT32, ("TreeEnsembleClassifier", 1): _FLOAT}
"""The type of the elements of outputs that differ from the first one, by operator and place."""

_OLD: Mapping[str, Callable[[_Inputs], Results]] = {
    **dict.fromkeys(
        """
        Abs Add BatchNormalization Cast Ceil Clip Div Dropout Elu Exp Floor GroupNormalization HardSigmoid
        InstanceNormalization LeakyRelu Log Max Mean MeanVarianceNormalization Min Mul Neg PRelu Reciprocal Relu Selu
        Sigmoid Sqrt Sub Sum Tanh
        """.split(),  # noqa: SIM905
        _first,
    ),
    "Concat": _join,
    "GRU": _gru,
    "Gemm": _product(0, 1),
    "GlobalLpPool": _global_pooling,
    "GreaterOrEqual": _broadcast(0, 1),
    "LessOrEqual": _broadcast(0, 1),
    "LpPool": _pooling(last=False),
    "Pad": _pad,
    "Reshape": _reshape,
    "Split": _split,
    "Upsample": _upsample,
}
"""Versions of standard operators whose shapes onnx does not infer."""

_OLD_ELEMENTS: Mapping[str, Callable[[_Inputs], int]] = {
    "Cast": _element_of_cast,
    "GreaterOrEqual": lambda _inputs: _BOOL,
    "LessOrEqual": lambda _inputs: _BOOL,
}

_LEARNED: Mapping[str, Callable[[_Inputs], Results]] = {
    **dict.fromkeys(("Imputer", "Normalizer", "Scaler"), _first),
    "ArrayFeatureExtractor": _picked,
    "FeatureVectorizer": _features,
    "LinearRegressor": _regressor("targets"),
    "SVMRegressor": lambda inputs: [(inputs.shape(0)[0], 1)],
    "TreeEnsembleClassifier": _classifier,
    "TreeEnsembleRegressor": _regressor("n_targets"),
}

_LEARNED_ELEMENTS: Mapping[str, Callable[[_Inputs], int]] = {
    **dict.fromkeys(
        ("FeatureVectorizer", "LinearRegressor", "Normalizer", "SVMRegressor", "Scaler", "TreeEnsembleRegressor"),
        lambda _inputs: _FLOAT,
    ),
    "TreeEnsembleClassifier": lambda inputs: _INT64 if isinstance(_labels(inputs)[0], int) else _STRING,
}

_TABLES = {
    **dict.fromkeys(("", "ai.onnx"), (_OLD, _OLD_ELEMENTS)),
    **dict.fromkeys(_RUNTIME, (_SHAPES, _ELEMENTS)),
    "ai.onnx.ml": (_LEARNED, _LEARNED_ELEMENTS),
}
"""Rules of shapes and of types by the domain of an operator."""
