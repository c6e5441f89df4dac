"""Operators of ONNX Runtime: their shapes are those of the runtime, and optimised models can be imported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnx_graphs import Shape, light, model, node

import placeopt as po
from placeopt.bridges.onnx_models import read_model

runtime = pytest.importorskip("onnxruntime")

F, U8, I32 = TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT32
Case = tuple[str, dict[str, tuple[Shape, int]], list[str], int, dict[str, Any]]

SCALE, ZERO = ([], F), ([], U8)
CASES: list[Case] = [
    ("Gelu", {"x": ([2, 3], F)}, ["x"], 1, {}),
    ("FastGelu", {"x": ([2, 3], F), "b": ([3], F)}, ["x", "b"], 1, {}),
    ("BiasGelu", {"x": ([2, 3], F), "b": ([3], F)}, ["x", "b"], 1, {}),
    ("QuickGelu", {"x": ([2, 3], F)}, ["x"], 1, {}),
    ("FusedMatMul", {"a": ([5, 4, 3], F), "b": ([2, 4], F)}, ["a", "b"], 1, {"transA": 1, "transB": 1}),
    ("FusedGemm", {"a": ([4, 3], F), "b": ([4, 2], F)}, ["a", "b"], 1, {"transA": 1, "activation": "Relu"}),
    (
        "FusedConv",
        {"x": ([1, 3, 9, 8], F), "w": ([4, 3, 3, 3], F)},
        ["x", "w"],
        1,
        {"activation": "Relu", "strides": [2, 2], "pads": [1, 0, 1, 1]},
    ),
    (
        "MatMulNBits",
        {"x": ([2, 3, 64], F), "w": ([8, 2, 16], U8), "s": ([16], F)},
        ["x", "w", "s"],
        1,
        {"N": 8, "K": 64, "bits": 4, "block_size": 32},
    ),
    ("DynamicQuantizeMatMul", {"x": ([2, 3], F), "w": ([3, 5], U8), "s": SCALE}, ["x", "w", "s"], 1, {}),
    (
        "MatMulIntegerToFloat",
        {"x": ([2, 3], U8), "w": ([3, 5], U8), "s": SCALE, "t": SCALE},
        ["x", "w", "s", "t"],
        1,
        {},
    ),
    (
        "QLinearAdd",
        {"x": ([4, 1, 3], U8), "s": SCALE, "z": ZERO, "y": ([5, 3], U8)},
        ["x", "s", "z", "y", "s", "z", "s", "z"],
        1,
        {},
    ),
    ("QLinearSigmoid", {"x": ([4, 3], U8), "s": SCALE, "z": ZERO}, ["x", "s", "z", "s", "z"], 1, {}),
    (
        "QLinearGlobalAveragePool",
        {"x": ([2, 3, 5, 5], U8), "s": SCALE, "z": ZERO},
        ["x", "s", "z", "s", "z"],
        1,
        {},
    ),
    (
        "QLinearAveragePool",
        {"x": ([2, 3, 8, 7], U8), "s": SCALE, "z": ZERO},
        ["x", "s", "z", "s", "z"],
        1,
        {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 0, 0], "ceil_mode": 1},
    ),
    (
        "QLinearGlobalAveragePool",
        {"x": ([2, 5, 5, 3], U8), "s": SCALE, "z": ZERO},
        ["x", "s", "z", "s", "z"],
        1,
        {"channels_last": 1},
    ),
    (
        "QLinearConv",
        {"x": ([2, 9, 8, 3], U8), "s": SCALE, "z": ZERO, "w": ([4, 3, 3, 3], U8)},
        ["x", "s", "z", "w", "s", "z", "s", "z"],
        1,
        {"channels_last": 1, "strides": [2, 2], "pads": [1, 0, 1, 1]},
    ),
    ("NhwcMaxPool", {"x": ([2, 9, 8, 3], U8)}, ["x"], 1, {"kernel_shape": [3, 2], "strides": [2, 2]}),
    (
        "QGemm",
        {"x": ([2, 3], U8), "s": SCALE, "z": ZERO, "w": ([5, 3], U8)},
        ["x", "s", "z", "w", "s", "z"],
        1,
        {"transB": 1},
    ),
    (
        "DynamicQuantizeLSTM",
        {"x": ([7, 2, 3], F), "w": ([1, 3, 20], U8), "r": ([1, 5, 20], U8), "s": ([1], F), "z": ([1], U8)},
        ["x", "w", "r", "", "", "", "", "", "s", "z", "s", "z"],
        3,
        {"hidden_size": 5},
    ),
    ("QuantizeLinear", {"x": ([2, 3], F), "s": SCALE, "z": ZERO}, ["x", "s", "z"], 1, {}),
    (
        "QLinearConcat",
        {"s": SCALE, "z": ZERO, "x": ([2, 3], U8), "y": ([2, 4], U8)},
        ["s", "z", "x", "s", "z", "y", "s", "z"],
        1,
        {"axis": 1},
    ),
    (
        "SkipLayerNormalization",
        {"x": ([2, 5, 8], F), "y": ([2, 5, 8], F), "g": ([8], F)},
        ["x", "y", "g"],
        4,
        {"unused": (1, 2)},
    ),
    (
        "EmbedLayerNormalization",
        {"i": ([2, 5], I32), "e": ([9, 8], F), "p": ([7, 8], F), "g": ([8], F)},
        ["i", "", "e", "p", "", "g", "g"],
        2,
        {},
    ),
    (
        "Attention",
        {"x": ([2, 5, 8], F), "w": ([8, 24], F), "b": ([24], F)},
        ["x", "w", "b"],
        2,
        {"num_heads": 2},
    ),
    (
        "MultiHeadAttention",
        {"q": ([2, 5, 8], F), "k": ([2, 7, 8], F), "v": ([2, 7, 12], F)},
        ["q", "k", "v"],
        1,
        {"num_heads": 2},
    ),
    (
        "RotaryEmbedding",
        {"x": ([2, 5, 16], F), "p": ([1], TensorProto.INT64), "c": ([9, 4], F)},
        ["x", "p", "c", "c"],
        1,
        {},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_shapes_are_those_of_the_runtime(case: Case) -> None:
    op, inputs, reads, results, attributes = case
    if op == "RotaryEmbedding":
        attributes = {"num_heads": 2}
    unused = attributes.get("unused", ())
    kept = {key: value for key, value in attributes.items() if key != "unused"}
    written = ["" if place in unused else f"y{place}" for place in range(results)]
    names = [name for name in written if name]
    made = model(
        [node(op, reads, written, domain="com.microsoft", **kept)],
        {name: shape for name, (shape, _) in inputs.items()},
        names,
        domains={"com.microsoft": 1},
        elements={name: element for name, (_, element) in inputs.items()},
    )
    for value in made.graph.output:
        value.ClearField("type")
    found = read_model(made)
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {
        name: np.ones(shape, onnx.helper.tensor_dtype_to_np_dtype(element)) for name, (shape, element) in inputs.items()
    }
    for name, value in zip(names, session.run(None, feeds), strict=True):
        tensor = found.tensors[name]
        assert (tensor.shape, tensor.assumed) == (value.shape, False), name
        assert tensor.bytes == value.nbytes, name


def test_blocks_of_channels() -> None:
    """Channels that are not whole blocks are padded, by an amount that depends on the processor."""

    def found(channels: int) -> tuple[Any, list[bool]]:
        blocked = {"domain": "com.microsoft.nchwc"}
        made = model(
            [
                node("ReorderInput", ["x"], ["a"], channels_last=0, **blocked),
                node("MaxPool", ["a"], ["b"], kernel_shape=[3, 3], strides=[2, 2], **blocked),
                node("Upsample", ["b"], ["c"], scales=[1, 1, 2, 2], **blocked),
                node("ReorderOutput", ["c"], ["y"], channels=channels, channels_last=1, **blocked),
            ],
            {"x": [1, channels, 9, 7]},
            ["y"],
            domains={"com.microsoft.nchwc": 1},
        )
        made.graph.output[0].ClearField("type")
        tensors = read_model(made).tensors
        assert not any("no rule" in note for note in po.from_onnx(made).notes)
        return tensors, [tensors[name].assumed for name in "abcy"]

    tensors, assumed = found(32)
    shapes = [tensors[name].shape for name in "abcy"]
    assert shapes == [(1, 32, 9, 7), (1, 32, 4, 3), (1, 32, 8, 6), (1, 8, 6, 32)]
    assert not any(assumed)
    assert all(found(20)[1])


def test_operators_of_later_versions() -> None:
    """ONNX Runtime fuses a LayerNormalization also in models of versions before 17."""
    made = model(
        [
            node("LayerNormalization", ["x", "g"], ["a"], axis=-1),
            node("SimplifiedLayerNormalization", ["a", "g"], ["y"], axis=-1),
        ],
        {"x": [2, 3, 8], "g": [8]},
        ["y"],
        opset=12,
    )
    made.graph.output[0].ClearField("type")
    tensors = read_model(made).tensors
    assert [(tensors[name].shape, tensors[name].assumed) for name in "ay"] == [((2, 3, 8), False)] * 2


@pytest.mark.parametrize("name", ["squeezenet", "resnet50"])
def test_an_optimised_model(name: str, tmp_path: Path) -> None:
    """Fused operators have the work of the convolutions and matrix products of the model."""
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    options.log_severity_level = 3
    runtime.InferenceSession(str(light(name)), options, providers=["CPUExecutionProvider"])
    before = po.from_onnx(light(name)).document["tasks"]
    found = po.from_onnx(tmp_path / "optimised.onnx")
    after = found.document["tasks"]
    assert "com.microsoft.FusedConv" in {task["op"] for task in after.values()}
    assert not any("no rule covers" in note or "assumed, since" in note for note in found.notes)
    products = [
        sum(task["flops"] for task in tasks.values() if task["op"].endswith(("Conv", "Gemm")))
        for tasks in (before, after)
    ]
    assert products[1] == pytest.approx(products[0], rel=0.01)
