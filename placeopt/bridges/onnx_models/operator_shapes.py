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
Results = Sequence[Shape | None]

_FLOAT, _UINT8, _INT32, _INT64, _STRING, _BOOL = 1, 2, 6, 7, 8, 9  # of TensorProto.DataType


_BLOCK = 16
"""Largest number of channels in a block of com.microsoft.nchwc."""


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


Rule = Callable[[_Inputs], Results]


def own_types(node: NodeProto, types: Mapping[str, TypeProto], version: int | None = None) -> dict[str, TypeProto]:
    """Types of the outputs of an operator; empty if it is not listed here or a shape is unknown.

    `version` is that of a standard operator, whose later versions may have inference.
    """
    from onnx.checker import ValidationError
    from onnx.shape_inference import InferenceError

    table, elements = _TABLES.get(node.domain, ({}, {}))
    rule = table.get(node.op_type)
    if rule is None and version is not None and node.domain in ("", "ai.onnx"):
        rule = _later(node, version)
    if rule is None:
        return {}
    inputs = _Inputs(node, types)
    try:
        shapes = rule(inputs)
        element = elements[node.op_type](inputs) if node.op_type in elements else inputs.element(0)
    except (LookupError, ValueError, TypeError, ArithmeticError, RuntimeError, InferenceError, ValidationError):
        return {}
    return {
        name: tensor_type(_LATER.get((node.op_type, place), element), shape)
        for place, (name, shape) in enumerate(zip(node.output, shapes, strict=False))
        if name and shape is not None
    }


def _like(op: str, read: slice = slice(2), *, last: bool | None = False, version: int = 14) -> Rule:
    """The shapes that onnx infers for a standard operator with the inputs `read` and the attributes that it knows.

    `last` is whether channels are last in the first input and the outputs, None if the attribute channels_last says so.
    """

    def rule(inputs: _Inputs) -> Results:
        from onnx import AttributeProto, NodeProto, defs
        from onnx.shape_inference import infer_node_outputs

        node, schema = inputs.node, defs.get_schema(op, version)
        types = {
            name: tensor_type(_FLOAT, inputs.shape(place)) for place, name in list(enumerate(node.input))[read] if name
        }
        channels_last = attribute(node, "channels_last", 0) if last is None else last
        if channels_last:
            batch, *space, channels = inputs.shape(0)
            types[node.input[0]] = tensor_type(_FLOAT, (batch, channels, *space))
        name_of = AttributeProto.AttributeType.Name
        allowed = {name: str(each.type) for name, each in schema.attributes.items()}
        known = [each for each in node.attribute if allowed.get(each.name) == f"AttrType.{name_of(each.type)}"]
        made = NodeProto(op_type=op, input=node.input[read], output=node.output, attribute=known)
        found = infer_node_outputs(schema, made, types)
        shapes = [shape_of(found[name]) if name in found else None for name in node.output]
        return [(shape[0], *shape[2:], shape[1]) if channels_last and shape else shape for shape in shapes]

    return rule


def _later(node: NodeProto, version: int) -> Rule | None:
    """The rule of the first later version of an operator whose shapes onnx infers."""
    from onnx import defs

    for later in range(version + 1, defs.onnx_opset_version() + 1):
        if not defs.has(node.op_type, later):  # ONNX Runtime fuses operators to those of later versions
            continue
        if defs.get_schema(node.op_type, later).has_type_and_shape_inference_function:
            return _like(node.op_type, slice(None), version=later)
    return None


def _labels(inputs: _Inputs) -> Sequence[object]:
    keys = ("classlabels_int64s", "classlabels_ints", "classlabels_strings")
    found: Sequence[object] = next(filter(None, (attribute(inputs.node, key) for key in keys)), ())
    return found


def _classifier(inputs: _Inputs) -> Results:
    """The label of each row, and its score for each class."""
    return [(inputs.shape(0)[0],), (inputs.shape(0)[0], len(_labels(inputs)))]


def _support_vectors(inputs: _Inputs) -> Results:
    """The label of each row, and a score for each class; without probabilities, for each pair of several classes."""
    classes = len(_labels(inputs))
    pairs = classes > 2 and attribute(inputs.node, "vectors_per_class") and not attribute(inputs.node, "prob_a")
    return [(inputs.shape(0)[0],), (inputs.shape(0)[0], classes * (classes - 1) // 2 if pairs else classes)]


def _regressor(key: str) -> Rule:
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


def _product(inputs: _Inputs) -> Results:
    """A product of matrices, with the attributes transA and transB."""
    a, b = inputs.shape(0), inputs.shape(1)
    a = (*a[:-2], a[-1], a[-2]) if attribute(inputs.node, "transA", 0) and len(a) > 1 else a
    b = (*b[:-2], b[-1], b[-2]) if attribute(inputs.node, "transB", 0) and len(b) > 1 else b
    rows = a[-2:-1]
    columns = b[-1:] if len(b) > 1 else ()
    return [(*np.broadcast_shapes(a[:-2], b[:-2]), *rows, *columns)]


def _blocks(inputs: _Inputs) -> Results:
    return [(*inputs.shape(0)[:-1], attribute(inputs.node, "N", 0))]


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


def _pad(inputs: _Inputs) -> Results:
    shape = inputs.shape(0)
    pads = attribute(inputs.node, "paddings", ())
    return [tuple(size + pads[axis] + pads[axis + len(shape)] for axis, size in enumerate(shape))]


def _upsample(inputs: _Inputs) -> Results:
    batch, channels, height, width = inputs.shape(0)
    scales = [attribute(inputs.node, f"{side}_scale", 1.0) for side in ("height", "width")]
    return [(batch, channels, int(height * scales[0]), int(width * scales[1]))]


def _element_of_cast(inputs: _Inputs) -> int:
    """The attribute `to`, which was a name before version 6."""
    from onnx import TensorProto

    number: int = TensorProto.DataType.Value(attribute(inputs.node, "to", b"FLOAT").decode())
    return number


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


def _to_blocks(inputs: _Inputs) -> Results:
    """Channels second; unknown if they are not whole blocks, since their padding depends on the processor."""
    batch, *rest = inputs.shape(0)
    shape = (batch, rest[-1], *rest[:-1]) if attribute(inputs.node, "channels_last", 0) else (batch, *rest)
    return [None if shape[1] % _BLOCK else shape]


def _from_blocks(inputs: _Inputs) -> Results:
    """Channels without padding, second or last."""
    batch, _, *space = inputs.shape(0)
    channels = attribute(inputs.node, "channels", 1)
    last = attribute(inputs.node, "channels_last", 0)
    return [(batch, *space, channels) if last else (batch, channels, *space)]


def _scaled(inputs: _Inputs) -> Results:
    scales = attribute(inputs.node, "scales", ())
    return [tuple(size * scale for size, scale in zip(inputs.shape(0), scales, strict=True))]


def _half(inputs: _Inputs) -> Results:
    shape = inputs.shape(0)
    return [(*shape[:-1], shape[-1] // 2)]


_SHAPES: Mapping[str, Rule] = {
    **dict.fromkeys(
        """
        BiasAdd BiasGelu BiasSoftmax ComplexMul DequantizeLinear FastGelu Gelu GroupNorm Inverse MoE
        QLinearLeakyRelu QLinearSigmoid QLinearSoftmax QMoE QuantizeLinear QuickGelu RotaryEmbedding SkipGroupNorm
        Trilu
        """.split(),  # noqa: SIM905
        _same,
    ),
    **{name: _like(name, slice(1)) for name in ("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool")},
    "Attention": _projected_attention,
    "BiasSplitGelu": _half,
    "Conv": _like("Conv"),
    "DecoderMaskedMultiHeadAttention": _multi_head_attention,
    "DecoderMaskedSelfAttention": _projected_attention,
    "DynamicQuantizeLSTM": _like("LSTM", slice(3)),
    "DynamicQuantizeMatMul": _like("MatMul"),
    "EmbedLayerNormalization": _embedding,
    "FusedConv": _like("Conv"),
    "FusedGemm": _like("Gemm"),
    "FusedMatMul": _product,
    "FusedMatMulActivation": _product,
    "GatherBlockQuantized": _gather,
    "GemmFastGelu": _like("MatMul"),
    "GroupQueryAttention": _group_query_attention,
    "MatMulBnb4": _blocks,
    "MatMulInteger16": _like("MatMul"),
    "MatMulIntegerToFloat": _like("MatMul"),
    "MatMulNBits": _blocks,
    "MulInteger": _like("Mul", slice(0, 3, 2)),
    "MultiHeadAttention": _multi_head_attention,
    "NhwcConv": _like("Conv", last=True),
    "NhwcFusedConv": _like("Conv", last=True),
    "NhwcMaxPool": _like("MaxPool", slice(1), last=True),
    "QAttention": _projected_attention,
    "QGemm": _like("Gemm", slice(0, 4, 3)),
    "QLinearAdd": _like("Add", slice(0, 4, 3)),
    "QLinearAveragePool": _like("AveragePool", slice(1), last=None),
    "QLinearConcat": _like("Concat", slice(2, None, 3)),
    "QLinearConv": _like("Conv", slice(0, 4, 3), last=None),
    "QLinearGlobalAveragePool": _like("GlobalAveragePool", slice(1), last=None),
    "QLinearMul": _like("Mul", slice(0, 4, 3)),
    "QLinearReduceMean": _like("ReduceMean", slice(1)),
    "ReduceSumInteger": _like("ReduceMean", slice(1)),
    "ReorderInput": _to_blocks,
    "ReorderOutput": _from_blocks,
    "SkipLayerNormalization": _skip_norm,
    "SkipSimplifiedLayerNormalization": _skip_norm,
    "TransposeMatMul": _product,
    "Upsample": _scaled,
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

_LATER = {
    ("EmbedLayerNormalization", 1): _INT32,
    **{(f"{name}Classifier", 1): _FLOAT for name in ("Linear", "SVM", "TreeEnsemble")},
}
"""The type of the elements of outputs that differ from the first one, by operator and place."""

_OLD: Mapping[str, Rule] = {
    **dict.fromkeys(
        ("Cast", "GroupNormalization", "MeanVarianceNormalization", "SimplifiedLayerNormalization"), _first
    ),
    "Concat": _join,
    "Pad": _pad,
    "Reshape": _reshape,
    "Upsample": _upsample,
}
"""Standard operators without a version whose shapes onnx infers from the same attributes, and one of ONNX Runtime."""

_OLD_ELEMENTS: Mapping[str, Callable[[_Inputs], int]] = {
    "Cast": _element_of_cast,
    "GreaterOrEqual": lambda _inputs: _BOOL,
    "LessOrEqual": lambda _inputs: _BOOL,
}

_LEARNED: Mapping[str, Rule] = {
    **dict.fromkeys(("Imputer", "Normalizer", "Scaler"), _first),
    "ArrayFeatureExtractor": _picked,
    "FeatureVectorizer": _features,
    "LinearClassifier": _classifier,
    "LinearRegressor": _regressor("targets"),
    "SVMClassifier": _support_vectors,
    "SVMRegressor": lambda inputs: [(inputs.shape(0)[0], 1)],
    "TreeEnsembleClassifier": _classifier,
    "TreeEnsembleRegressor": _regressor("n_targets"),
}

_LEARNED_ELEMENTS: Mapping[str, Callable[[_Inputs], int]] = {
    **dict.fromkeys(
        ("FeatureVectorizer", "LinearRegressor", "Normalizer", "SVMRegressor", "Scaler", "TreeEnsembleRegressor"),
        lambda _inputs: _FLOAT,
    ),
    **dict.fromkeys(
        ("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier"),
        lambda inputs: _INT64 if isinstance(_labels(inputs)[0], int) else _STRING,
    ),
}

_TABLES = {
    **dict.fromkeys(("", "ai.onnx"), (_OLD, _OLD_ELEMENTS)),
    **dict.fromkeys(_RUNTIME, (_SHAPES, _ELEMENTS)),
    "ai.onnx.ml": (_LEARNED, _LEARNED_ELEMENTS),
}
"""Rules of shapes and of types by the domain of an operator."""
