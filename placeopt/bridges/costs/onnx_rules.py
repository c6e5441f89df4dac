"""Costs of the operators of ONNX.

`FLOPS` has a rule for each operator with known work; the operators in `MOVES` have no work. Every other operator is
guessed: only its traffic counts. The traffic is all inputs and outputs, unless `TRAFFIC` has another rule.
"""

from __future__ import annotations

import math

from placeopt.bridges.costs import Cost, formulas, onnx_contrib
from placeopt.bridges.costs.formulas import ELEMENTWISE, EXP, alike
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
from placeopt.bridges.onnx_models import Body, operator_name

_IOU = 16
"""FLOP for the intersection over union of two boxes: 4 comparisons, 4 differences, 2 clips, 3 products and so on."""


def cost_of(node: SizedNode) -> Cost:
    """The FLOP and the memory traffic of a node."""
    name = operator_name(node.proto)
    if node.bodies and name not in FLOPS:
        return _control(node)
    rule = FLOPS.get(name)
    guessed = rule is None and name not in MOVES
    flops, moved = 0, _all(node)
    try:
        if rule is not None:
            flops = rule(node)
        if name in TRAFFIC:
            moved = TRAFFIC[name](node)
    except (UnknownSizeError, ArithmeticError, LookupError, TypeError, ValueError):
        guessed = True  # a size is unknown, or the node has a form that the rule does not expect
    return Cost(flops, moved, guessed)


def _all(node: SizedNode) -> int:
    return node.read + node.written


def _control(node: SizedNode) -> Cost:
    """The cost of control flow: that of all iterations, or of the most expensive branch."""
    costs = [_body(body) for body in node.bodies.values()]
    return Cost(
        max(cost.flops for cost in costs), max(cost.traffic for cost in costs), any(cost.guessed for cost in costs)
    )


def _body(body: Body) -> Cost:
    times = 1 if body.repeats is None else body.repeats
    costs = [
        cost_of(SizedNode(node, body.tensors, body.values, body.bodies.get(place, {})))
        for place, node in enumerate(body.nodes)
    ]
    return Cost(
        times * sum(cost.flops for cost in costs),
        times * sum(cost.traffic for cost in costs),
        body.repeats is None or any(cost.guessed for cost in costs),
    )


def _transposed_convolution(node: SizedNode) -> int:
    data, kernel = node.shape(0), node.shape(1)
    return formulas.transposed_convolution(data[0], data[1], math.prod(data[2:]), kernel[1], math.prod(kernel[2:]))


def _deformable_convolution(node: SizedNode) -> int:
    """A convolution of samples, each interpolated from four points for every input channel."""
    kernel, result = node.shape(1), node.result()
    samples = result[0] * math.prod(result[2:]) * math.prod(kernel[2:]) * node.shape(0)[1]
    return convolution(node) + formulas.interpolation(samples, 4)


def _matmul(node: SizedNode) -> int:
    """A product of matrices: the last dimension of the first one is summed."""
    return formulas.matmul(1, node.shape(0)[-1], node.results)


def _gemm(node: SizedNode) -> int:
    """A product of two matrices, perhaps transposed."""
    return formulas.matmul(1, node.shape(0)[0 if node.attribute("transA", 0) else 1], node.results)


def _einsum(node: SizedNode) -> int:
    equation = node.attribute("equation", b"").decode().replace(" ", "")
    given, arrow, kept = equation.partition("->")
    operands = []
    for place, term in enumerate(given.split(",")):
        head, dots, tail = term.partition("...")
        shape = node.shape(place)
        broadcast = len(shape) - len(head) - len(tail)
        # Indices of an ellipsis count from its right end.
        indices = [*head, *(f"...{broadcast - each}" for each in range(broadcast if dots else 0)), *tail]
        sizes: dict[str, int] = {}
        for index, size in zip(indices, shape, strict=False):
            sizes[index] = max(size, sizes.get(index, 1))
        operands.append(sizes)
    letters = [index for operand in operands for index in operand]
    if arrow:
        result = {*kept.replace("...", ""), *(index for index in letters if index.startswith("..."))}
    else:
        text = given.replace(".", "").replace(",", "")
        result = {index for index in letters if index.startswith("...") or text.count(index) == 1}
    return formulas.contraction(operands, result)


def _attention(node: SizedNode) -> int:
    """The operator Attention, with inputs of three or four dimensions."""
    queries, keys, values = node.shape(0), node.shape(1), node.shape(2)
    if len(queries) == 4:
        batch, heads, length, size = queries
        kept, value_size = keys[2], values[3]
    else:
        batch, length, width = queries
        heads = node.attribute("q_num_heads", 1)
        kept, size = keys[1], width // heads
        value_size = values[2] // node.attribute("kv_num_heads", heads)
    past = node.shape(4)[2] if node.has(4) else 0
    return formulas.attention(batch, heads, length, kept + past, size, value_size)


def _flex_attention(node: SizedNode) -> int:
    batch, heads, length, size = node.shape(0)
    return formulas.attention(batch, heads, length, node.shape(1)[2], size, node.shape(2)[3])


def _linear_attention(node: SizedNode) -> int:
    """For each token and head: an outer product with the state, a product with the query; a delta rule has one more."""
    batch, length, width = node.shape(0)
    heads: int = node.attribute("q_num_heads", 1)
    kept: int = node.attribute("kv_num_heads", 1)
    state = (width // heads) * (node.shape(2)[2] // kept)
    rule = node.attribute("update_rule", b"linear").decode()
    updates = 2 + ("gated" in rule) + 2 * ("delta" in rule)
    return batch * length * state * (2 * heads + updates * kept)


def _recurrent(gates: int) -> Rule:
    def rule(node: SizedNode) -> int:
        steps, batch, inputs = node.shape(0)
        if node.attribute("layout", 0):
            steps, batch = batch, steps
        directions, _, hidden = node.shape(2)
        return formulas.recurrent(steps, batch, inputs, hidden, gates, directions)

    return rule


def _points(node: SizedNode, dimensions: int) -> int:
    """Points that the mode of an interpolation reads for each output."""
    mode: str = node.attribute("mode", b"nearest").decode()
    weights: int = {"linear": 2, "bilinear": 2, "cubic": 4, "bicubic": 4}.get(mode, 1) ** dimensions
    return weights


def _resize(node: SizedNode) -> int:
    changed = sum(before != after for before, after in zip(node.shape(0), node.result(), strict=False))
    return formulas.interpolation(node.results, _points(node, changed))


def _grid_sample(node: SizedNode) -> int:
    mode = node.attribute("mode", b"linear").decode()
    dimensions = len(node.result()) - 2
    weights = {"nearest": 1, "cubic": 4, "bicubic": 4}.get(mode, 2) ** dimensions
    return formulas.interpolation(node.results, weights) + 2 * node.elements(1)


def _roi_align(node: SizedNode) -> int:
    """A mean or maximum of samples, each interpolated from four points; a ratio of 0 is adaptive and counts as 2."""
    samples = (node.attribute("sampling_ratio", 0) or 2) ** 2
    return formulas.interpolation(node.results * samples, 4) + formulas.pooling(node.results, samples)


def _top_k(node: SizedNode) -> int:
    axis = node.attribute("axis", -1)
    return formulas.selection(node.elements(0), node.result()[axis])


def _non_max_suppression(node: SizedNode) -> int:
    """Sorting the boxes of each class, and comparing each with all selected boxes."""
    batch, classes, boxes = node.shape(1)
    limit = node.value(2)
    selected = boxes if limit is None or limit.size != 1 else min(boxes, max(int(limit.reshape(-1)[0]), 0))
    return batch * classes * (formulas.selection(boxes, boxes) + boxes * selected * _IOU)


def _fourier(node: SizedNode) -> int:
    """A transform along one axis; the last dimension holds real and imaginary parts."""
    axis = node.attribute("axis", None)
    if axis is None:
        given = node.value(2)
        axis = -2 if given is None else int(given.reshape(-1)[0])
    data = node.shape(0)
    length = max(data[axis], node.result()[axis])
    return formulas.fourier(length, math.prod(data[:-1]) // max(data[axis], 1))


def _short_time_fourier(node: SizedNode) -> int:
    batch, frames = node.result()[:2]
    if node.has(2):
        length = node.elements(2)
    else:
        stated = node.value(3)
        length = 2 * (node.result()[2] - 1) if stated is None else int(stated.reshape(-1)[0])
    return formulas.fourier(length, batch * frames) + batch * frames * length


def _determinant(node: SizedNode) -> int:
    """LU decompositions of n x n matrices: 2/3 n^3."""
    size = node.shape(0)[-1]
    return max(node.results, 1) * (2 * size**3 // 3)


def _linear_model(node: SizedNode) -> int:
    return 2 * node.shape(0)[0] * len(node.attribute("coefficients", ()))


def _support_vectors(node: SizedNode) -> int:
    """The kernel of each row and support vector, and its products with the coefficients; without vectors, linear."""
    rows, features = node.shape(0)
    function = {b"POLY": formulas.POW + 2, b"RBF": features + EXP + 1, b"SIGMOID": formulas.TANH + 2}
    kernel = 2 * features + function.get(node.attribute("kernel_type", b"LINEAR"), 0)
    vectors = len(node.attribute("support_vectors", ())) // features
    return rows * vectors * kernel + _linear_model(node)


def _trees(node: SizedNode) -> int:
    """A comparison for each level of each tree, as if all were balanced, and an addition of what its leaf states."""
    if roots := node.attribute("tree_roots"):
        trees, leaves = len(roots), len(node.attribute("leaf_targetids", ()))
    else:
        trees = len(set(node.attribute("nodes_treeids", ())))
        leaves = node.attribute("nodes_modes", []).count(b"LEAF")
    levels = math.ceil(math.log2(max(leaves, trees, 1) / max(trees, 1)))
    return node.shape(0)[0] * trees * (levels + 1)


def _sum(node: SizedNode) -> int:
    return max(len(node.proto.input) - 1, 0) * node.results


def _power(node: SizedNode) -> int:
    """A power; small whole exponents and the square root are products or a root."""
    exponent = node.value(1)
    if exponent is not None and exponent.size == 1:
        number = float(exponent.reshape(-1)[0])
        if number in (0.5, -1.0, 1.0, 2.0, 3.0):
            return (2 if number == 3 else 1) * node.results
    return ELEMENTWISE["pow"] * node.results


def _gelu(node: SizedNode) -> int:
    kind = "gelu_tanh" if node.attribute("approximate", b"none") == b"tanh" else "gelu"
    return ELEMENTWISE[kind] * node.results


def _causal_convolution(node: SizedNode) -> int:
    activation = ELEMENTWISE["swish"] if node.attribute("activation", b"none") not in (b"none", b"") else 0
    return node.results * (2 * node.shape(1)[2] + activation)


def _dropout(node: SizedNode) -> int:
    return 2 * node.results if _trains(node) else 0


def _trains(node: SizedNode) -> bool:
    """Whether a Dropout is in training mode."""
    mode = node.value(2)
    return mode is not None and bool(mode.reshape(-1)[0])


def _nothing(_node: SizedNode) -> int:
    return 0


def _rows(node: SizedNode) -> int:
    """Traffic of a selection: the selected elements are read and written, and the indices are read."""
    return 2 * node.written + node.bytes(1)


def _selected(node: SizedNode) -> int:
    """Traffic of a slice: the selected elements are read and written."""
    return 2 * node.written


def _dropped(node: SizedNode) -> int:
    return _all(node) if _trains(node) else 0


_ELEMENTWISE = """
    Abs Acos Acosh Add And Asin Asinh Atan Atanh Cast Ceil Celu Clip Cos Cosh Div Elu Erf Exp Floor HardSigmoid
    HardSwish Log Mish Mod Mul Neg Not PRelu Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign
    Sqrt Sub Swish Tan Tanh Where
    """.split()  # noqa: SIM905
_ALIASES = {
    **alike("BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor", "bitwise"),
    "CastLike": "cast",
    **alike("Equal Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual", "compare"),
    "LeakyRelu": "leaky_relu",
    **alike("Or Xor", "and"),
    "ThresholdedRelu": "relu",
}

FLOPS: dict[str, Rule] = {
    **{name: elementwise(ELEMENTWISE[name.lower()]) for name in _ELEMENTWISE},
    **{name: elementwise(ELEMENTWISE[kind]) for name, kind in _ALIASES.items()},
    "Gelu": _gelu,
    **alike("Max Min Sum", _sum),
    "Mean": lambda node: len(node.proto.input) * node.results,
    "Pow": _power,
    "SwiGLU": elementwise(ELEMENTWISE["swish"] + 1),
    # Products
    "Attention": _attention,
    "CausalConvWithState": _causal_convolution,
    **alike("Conv ConvInteger", convolution),
    "ConvTranspose": _transposed_convolution,
    "DeformConv": _deformable_convolution,
    "Det": _determinant,
    "Einsum": _einsum,
    "Gemm": _gemm,
    "GRU": _recurrent(3),
    "LSTM": _recurrent(4),
    "LinearAttention": _linear_attention,
    **alike("MatMul MatMulInteger", _matmul),
    "QLinearConv": lambda node: convolution(node, 3) + REQUANTISE * node.results,
    "QLinearMatMul": lambda node: _matmul(node) + REQUANTISE * node.results,
    "RNN": _recurrent(1),
    **alike("ai.onnx.ml.LinearClassifier ai.onnx.ml.LinearRegressor", _linear_model),
    **alike("ai.onnx.ml.SVMClassifier ai.onnx.ml.SVMRegressor", _support_vectors),
    **alike("ai.onnx.ml.TreeEnsemble ai.onnx.ml.TreeEnsembleClassifier ai.onnx.ml.TreeEnsembleRegressor", _trees),
    "ai.onnx.preview.FlexAttention": _flex_attention,
    # Normalisations
    "BatchNormalization": lambda node: formulas.batch_norm(node.results),
    **alike(
        "GroupNormalization InstanceNormalization LayerNormalization", lambda node: formulas.layer_norm(node.results)
    ),
    **alike("LpNormalization ai.onnx.ml.Normalizer", by_input(3)),
    "LRN": lambda node: formulas.local_response_norm(node.results, node.attribute("size", 1)),
    "MeanVarianceNormalization": lambda node: formulas.layer_norm(node.results, affine=False),
    **alike("RMSNormalization SimplifiedLayerNormalization", lambda node: formulas.rms_norm(node.results)),
    "ai.onnx.ml.Scaler": by_input(2),
    # Softmax and losses
    "Hardmax": by_input(2),
    "LogSoftmax": lambda node: formulas.log_softmax_of(node.results),
    "NegativeLogLikelihoodLoss": by_input(2, 1),
    "Softmax": lambda node: formulas.softmax_of(node.results),
    "SoftmaxCrossEntropyLoss": lambda node: formulas.log_softmax_of(node.elements(0)),
    # Pooling and interpolation
    **alike("AveragePool MaxPool", pooling),
    **alike("GlobalAveragePool GlobalMaxPool", by_input(1)),
    "GlobalLpPool": by_input(2),
    "GridSample": _grid_sample,
    "LpPool": lambda node: 2 * pooling(node),
    **alike("Resize Upsample", _resize),
    "RoiAlign": _roi_align,
    # Reductions, scans and sorting
    **alike(
        "ArgMax ArgMin Col2Im CumProd CumSum NonZero ReduceLogSum ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum",
        by_input(1),
    ),
    "NonMaxSuppression": _non_max_suppression,
    **alike("ReduceL1 ReduceL2 ReduceSumSquare", by_input(2)),
    "ReduceLogSumExp": by_input(EXP + 3),
    "TopK": _top_k,
    "Unique": lambda node: formulas.selection(node.elements(0), node.elements(0)),
    # Quantisation
    "DequantizeLinear": elementwise(DEQUANTISE),
    "DynamicQuantizeLinear": by_input(2 + REQUANTISE),
    "QuantizeLinear": elementwise(REQUANTISE),
    # Others
    "AffineGrid": lambda node: 2 * node.result()[-1] * node.results,
    "DFT": _fourier,
    "Dropout": _dropout,
    "RotaryEmbedding": elementwise(3),
    "STFT": _short_time_fourier,
    **alike(
        "ai.onnx.ml.Binarizer ai.onnx.ml.Imputer com.microsoft.nchwc.GlobalAveragePool "
        "com.microsoft.nchwc.GlobalMaxPool",
        by_input(1),
    ),
    **alike("com.microsoft.nchwc.AveragePool com.microsoft.nchwc.MaxPool", pooling),
    "com.microsoft.nchwc.Conv": convolution,
    "com.microsoft.nchwc.Upsample": _resize,
    **{f"com.microsoft.{name}": rule for name, rule in onnx_contrib.FLOPS.items()},
}
"""The FLOP of each operator with known work."""

VIEWS = frozenset(
    """
    BitCast Flatten Identity Optional OptionalGetElement OptionalHasElement Reshape SequenceLength Shape Size Squeeze
    Unsqueeze
    """.split()  # noqa: SIM905
)
"""Operators that move no data on their device."""


def keeps_bytes(node: SizedNode) -> bool:
    """Whether the result is the first input with another shape or type."""
    if operator_name(node.proto) == "Dropout":
        return not _trains(node)
    return operator_name(node.proto) in ("BitCast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")


def in_place(node: SizedNode) -> bool:
    """Whether each element of the result depends on one element of each input, which the result may overwrite.

    This holds for inputs of the shape of the result.
    """
    return operator_name(node.proto) in _IN_PLACE


_IN_PLACE = frozenset((*_ELEMENTWISE, *_ALIASES, "Gelu", "Max", "Mean", "Min", "Pow", "Sum"))

MOVES = (
    VIEWS
    | {f"com.microsoft.{name}" for name in onnx_contrib.MOVES}
    | frozenset(
        """
    CenterCropPad Compress Concat ConcatFromSequence Constant ConstantOfShape DepthToSpace Expand EyeLike Gather
    GatherElements GatherND MaxUnpool OneHot Pad Range ReverseSequence Scatter ScatterElements ScatterND SequenceAt
    SequenceConstruct SequenceEmpty SequenceErase SequenceInsert Slice SpaceToDepth Split SplitToSequence TensorScatter
    Tile Transpose Trilu ai.onnx.ml.ArrayFeatureExtractor ai.onnx.ml.FeatureVectorizer
    ai.onnx.ml.LabelEncoder ai.onnx.ml.OneHotEncoder ai.onnx.ml.ZipMap com.microsoft.nchwc.ReorderInput
    com.microsoft.nchwc.ReorderOutput
    """.split()  # noqa: SIM905
    )
)
"""Operators that only move data."""

TRAFFIC: dict[str, Rule] = {
    **dict.fromkeys(VIEWS, _nothing),
    **alike("CenterCropPad SequenceAt Slice", _selected),
    **alike("Compress Gather GatherElements GatherND ai.onnx.ml.ArrayFeatureExtractor", _rows),
    "Dropout": _dropped,
    **{f"com.microsoft.{name}": rule for name, rule in onnx_contrib.TRAFFIC.items()},
}
"""The traffic of operators that read less than their inputs."""
