"""Costs of ONNX operators: each rule against a count by hand, and that every operator has a rule or is guessed."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, defs, helper
from onnx_graphs import Shape, constant, model, node, weight

import placeopt as po
from placeopt.bridges.costs import Cost, formulas
from placeopt.bridges.costs.formulas import ELEMENTWISE, EXP, POW, SIGMOID, TANH
from placeopt.bridges.costs.onnx_nodes import SizedNode
from placeopt.bridges.costs.onnx_rules import FLOPS, MOVES, TRAFFIC, VIEWS, cost_of
from placeopt.bridges.onnx_models import read_model

F16, I8, U8, I64 = TensorProto.FLOAT16, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT64


def costs(made: onnx.ModelProto) -> Cost:
    """The cost of the only live node."""
    found = read_model(made)
    (task,) = found.nodes
    return cost_of(SizedNode(task.proto, found.tensors, found.values, task.bodies))


def cost(
    op: str,
    inputs: dict[str, Shape],
    weights: list[TensorProto] | None = None,
    *,
    results: int = 1,
    opset: int = 17,
    domain: str = "",
    elements: dict[str, int] | None = None,
    names: list[str] | None = None,
    **attributes: Any,
) -> Cost:
    """The cost of one operator that reads the inputs and then the weights."""
    weights = weights or []
    reads = names if names is not None else [*inputs, *(each.name for each in weights)]
    outputs = [f"out{place}" for place in range(results)]
    made = node(op, reads, outputs, domain=domain, **attributes)
    domains = {domain: 1} if domain else {}
    return costs(model([made], inputs, outputs, weights, opset=opset, ir=10, domains=domains, elements=elements))


class TestProducts:
    def test_convolution(self) -> None:
        # Each of 2 x 8 x 10 x 10 outputs is a sum of 3 x 5 x 5 products; the bias is its first term.
        found = cost(
            "Conv", {"x": [2, 3, 20, 20]}, [weight("w", 8, 3, 5, 5), weight("b", 8)], strides=[2, 2], pads=[2] * 4
        )
        assert found.flops == 2 * (2 * 8 * 10 * 10) * (3 * 5 * 5)
        assert found.traffic == 4 * (2 * 3 * 20 * 20 + 8 * 3 * 5 * 5 + 8 + 2 * 8 * 10 * 10)

    def test_grouped_convolution(self) -> None:
        found = cost("Conv", {"x": [1, 8, 6, 6]}, [weight("w", 8, 1, 3, 3)], group=8, pads=[1] * 4)
        assert found.flops == 2 * (8 * 36) * 9

    def test_transposed_convolution(self) -> None:
        # Each of 4 x 5 x 5 inputs is multiplied by 6 x 3 x 3 weights.
        found = cost("ConvTranspose", {"x": [1, 4, 5, 5]}, [weight("w", 4, 6, 3, 3)])
        assert found.flops == 2 * (4 * 5 * 5) * (6 * 3 * 3)

    def test_deformable_convolution(self) -> None:
        found = cost(
            "DeformConv", {"x": [1, 2, 4, 4]}, [weight("w", 3, 2, 1, 1), weight("offset", 1, 2, 4, 4)], opset=22
        )
        assert found.flops == 2 * (3 * 16) * 2 + 2 * (16 * 2) * 4

    @pytest.mark.parametrize(("left", "right", "flops"), [((7,), (7, 5), 70), ((6, 7), (7,), 84), ((7,), (7,), 14)])
    def test_vectors(self, left: tuple[int, ...], right: tuple[int, ...], flops: int) -> None:
        assert cost("MatMul", {"a": left, "b": right}).flops == flops

    def test_batched_matmul(self) -> None:
        found = cost("MatMul", {"a": [4, 1, 6, 7], "b": [3, 7, 5]})
        assert found.flops == 2 * (4 * 3) * 6 * 7 * 5
        assert found.traffic == 4 * (4 * 6 * 7 + 3 * 7 * 5 + 12 * 6 * 5)

    @pytest.mark.parametrize("transposed", [0, 1])
    def test_gemm(self, transposed: int) -> None:
        shape = [7, 6] if transposed else [6, 7]
        found = cost("Gemm", {"a": shape}, [weight("b", 7, 5), weight("c", 5)], transA=transposed)
        assert found.flops == 2 * 6 * 7 * 5

    @pytest.mark.parametrize(
        ("equation", "operands", "flops"),
        [
            ("ij,jk->ik", ([6, 7], [7, 5]), 2 * 6 * 7 * 5),
            ("bij, bjk -> bik", ([4, 6, 7], [4, 7, 5]), 2 * 4 * 6 * 7 * 5),
            ("...ij,...jk->...ik", ([2, 3, 6, 7], [1, 3, 7, 5]), 2 * 6 * 6 * 7 * 5),
            ("ij,jk", ([6, 7], [7, 5]), 2 * 6 * 7 * 5),
            ("i,j->ij", ([6], [7]), 42),
            ("ij->ji", ([6, 7],), 0),
            ("ij->i", ([6, 7],), 42),
            ("ij,jk,kl->il", ([6, 7], [7, 5], [5, 3]), 2 * 6 * 7 * 5 + 2 * 6 * 5 * 3),
        ],
    )
    def test_einsum(self, equation: str, operands: tuple[list[int], ...], flops: int) -> None:
        found = cost("Einsum", {f"x{place}": shape for place, shape in enumerate(operands)}, equation=equation)
        assert found.flops == flops

    def test_quantised_convolution(self) -> None:
        scale, zero = constant("s", 1, np.float32), constant("z", 0, np.uint8)
        kernel = weight("w", 8, 3, 3, 3, element=I8)
        found = cost(
            "QLinearConv",
            {"x": [1, 3, 8, 8]},
            [scale, zero, kernel, constant("zw", 0, np.int8)],
            names=["x", "s", "z", "w", "s", "zw", "s", "z"],
            elements={"x": U8, "out0": U8},
        )
        assert found.flops == 2 * (8 * 36) * 27 + 5 * (8 * 36)

    def test_integer_products(self) -> None:
        found = cost(
            "MatMulInteger", {"a": [6, 7], "b": [7, 5]}, elements={"a": U8, "b": I8, "out0": TensorProto.INT32}
        )
        assert (found.flops, found.traffic) == (2 * 6 * 7 * 5, 42 + 35 + 4 * 30)

    @pytest.mark.parametrize(
        ("op", "gates", "others"),
        [
            # Two sums for each gate, its activation, and the update of the state.
            ("LSTM", 4, 4 * 2 + 3 * formulas.SIGMOID + formulas.TANH + 3 + formulas.TANH + 1),
            ("GRU", 3, 3 * 2 + 2 * formulas.SIGMOID + formulas.TANH + 1 + 3),
            ("RNN", 1, 2 + formulas.TANH),
        ],
    )
    def test_recurrent(self, op: str, gates: int, others: int) -> None:
        found = cost(
            op,
            {"x": [5, 2, 16]},
            [weight("w", 2, gates * 8, 16), weight("r", 2, gates * 8, 8)],
            hidden_size=8,
            direction="bidirectional",
            opset=14,
        )
        products = 5 * 2 * 2 * 2 * (gates * 8) * (16 + 8)
        assert found.flops == products + 5 * 2 * 2 * 8 * others


class TestAttention:
    # 2 sequences, 4 heads of size 8, 10 queries, 12 keys: two products, a scale, a softmax.
    FLOPS = 2 * (2 * 4 * 10 * 12) * (8 + 8) + (2 * 4 * 10 * 12) * (1 + EXP + 4)

    def test_four_dimensions(self) -> None:
        shapes = {"q": [2, 4, 10, 8], "k": [2, 4, 12, 8], "v": [2, 4, 12, 8]}
        assert cost("Attention", shapes, opset=23).flops == self.FLOPS

    def test_three_dimensions_with_shared_keys(self) -> None:
        shapes = {"q": [2, 10, 32], "k": [2, 12, 16], "v": [2, 12, 16]}
        assert cost("Attention", shapes, opset=23, q_num_heads=4, kv_num_heads=2).flops == self.FLOPS

    def test_a_cache(self) -> None:
        shapes = {"q": [2, 4, 10, 8], "k": [2, 4, 2, 8], "v": [2, 4, 2, 8], "pk": [2, 4, 10, 8], "pv": [2, 4, 10, 8]}
        found = cost("Attention", shapes, opset=23, results=3, names=["q", "k", "v", "", "pk", "pv"])
        assert found.flops == self.FLOPS

    def test_of_onnx_runtime(self) -> None:
        microsoft = {"domain": "com.microsoft"}
        shapes = {"q": [2, 10, 32], "k": [2, 12, 32], "v": [2, 12, 32]}
        assert cost("MultiHeadAttention", shapes, num_heads=4, **microsoft).flops == self.FLOPS
        grouped = cost(
            "GroupQueryAttention",
            {"q": [2, 10, 32], "k": [2, 10, 16], "v": [2, 10, 16], "pk": [2, 2, 2, 8], "pv": [2, 2, 2, 8]},
            num_heads=4,
            kv_num_heads=2,
            results=3,
            **microsoft,
        )
        assert grouped.flops == self.FLOPS
        projected = cost(
            "Attention", {"x": [2, 12, 20]}, [weight("w", 20, 96), weight("b", 96)], num_heads=4, **microsoft
        )
        assert projected.flops == 2 * (2 * 12) * 20 * 96 + formulas.attention(2, 4, 12, 12, 8)

    def test_of_weights_in_four_bits(self) -> None:
        found = cost(
            "MatMulNBits",
            {"x": [1, 1, 64]},
            [weight("w", 32, 2, 16, element=U8), weight("scales", 32, 2)],
            domain="com.microsoft",
            N=32,
            K=64,
            bits=4,
            block_size=32,
        )
        assert found.flops == 2 * 64 * 32 + 2 * 64 * 32
        assert found.traffic == 4 * 64 + 32 * 2 * 16 + 4 * 64 + 4 * 32

    def test_a_mixture_of_experts(self) -> None:
        found = cost(
            "MoE",
            {"x": [3, 16], "p": [3, 8]},
            [weight("f1", 8, 32, 16), weight("f2", 8, 16, 32)],
            names=["x", "p", "f1", "", "f2"],
            domain="com.microsoft",
            k=2,
        )
        assert found.flops == 3 * 2 * (2 * 16 * 32 * 2 + 32 * ELEMENTWISE["swish"])
        # Three tokens choose two of eight experts each: an expert is read unless none of them chooses it.
        assert found.traffic == 4 * (3 * 16 + 3 * 8 + 2 * 8 * 16 * 32 * (1 - 0.75**3) + 3 * 16)


class TestElementwise:
    @pytest.mark.parametrize(
        ("op", "each"),
        [("Relu", 1), ("Sigmoid", SIGMOID), ("Tanh", TANH), ("Exp", EXP), ("Sqrt", 1), ("HardSwish", 5), ("Erf", EXP)],
    )
    def test_one_input(self, op: str, each: int) -> None:
        found = cost(op, {"x": [3, 5]})
        assert (found.flops, found.traffic, found.guessed) == (15 * each, 2 * 60, False)

    def test_broadcasting(self) -> None:
        found = cost("Add", {"a": [3, 1], "b": [1, 5]})
        assert (found.flops, found.traffic) == (15, 4 * (3 + 5 + 15))

    @pytest.mark.parametrize(("exponent", "each"), [(2, 1), (3, 2), (0.5, 1), (1.7, POW)])
    def test_powers(self, exponent: float, each: int) -> None:
        assert cost("Pow", {"x": [10]}, [constant("e", exponent, np.float32)]).flops == 10 * each

    def test_sums(self) -> None:
        assert cost("Sum", {"a": [10], "b": [10], "c": [10]}).flops == 20

    def test_an_input_that_is_there_twice_is_read_once(self) -> None:
        assert cost("Mul", {"x": [10]}, names=["x", "x"]).traffic == 80

    def test_half_precision_halves_the_traffic(self) -> None:
        assert cost("Relu", {"x": [10]}, elements={"x": F16, "out0": F16}).traffic == 40


class TestNormalisation:
    def test_batch(self) -> None:
        made = cost("BatchNormalization", {"x": [2, 3, 4]}, [weight(name, 3) for name in "abcd"])
        assert (made.flops, made.traffic) == (2 * 24, 4 * (48 + 12))

    def test_layer(self) -> None:
        assert cost("LayerNormalization", {"x": [2, 12]}, [weight("s", 12), weight("b", 12)]).flops == 7 * 24

    def test_root_mean_square(self) -> None:
        assert cost("RMSNormalization", {"x": [2, 12]}, [weight("s", 12)], opset=23).flops == 4 * 24

    def test_local_response(self) -> None:
        assert cost("LRN", {"x": [1, 8, 2, 2]}, size=5).flops == 32 * (1 + 5 + 2 + POW + 1)

    def test_softmax(self) -> None:
        assert cost("Softmax", {"x": [2, 10]}).flops == 20 * (EXP + 4)


class TestPooling:
    def test_windows(self) -> None:
        found = cost("MaxPool", {"x": [1, 3, 8, 8]}, kernel_shape=[2, 2], strides=[2, 2])
        assert (found.flops, found.traffic) == (3 * 16 * 4, 4 * 3 * (64 + 16))

    def test_global(self) -> None:
        assert cost("GlobalAveragePool", {"x": [1, 3, 8, 8]}).flops == 192

    @pytest.mark.parametrize(("mode", "points"), [("nearest", 0), ("linear", 4), ("cubic", 16)])
    def test_resize(self, mode: str, points: int) -> None:
        scales = constant("s", [1, 1, 2, 2], np.float32)
        found = cost("Resize", {"x": [1, 3, 8, 8]}, [scales], names=["x", "", "s"], mode=mode)
        assert found.flops == 2 * points * 3 * 16 * 16

    def test_reduction(self) -> None:
        assert cost("ReduceMean", {"x": [4, 6]}, axes=[1]).flops == 24

    def test_top_k(self) -> None:
        found = cost("TopK", {"x": [4, 100]}, [constant("k", [8])], results=2, elements={"out1": I64})
        assert found.flops == 400 * 3

    def test_non_max_suppression(self) -> None:
        found = cost(
            "NonMaxSuppression",
            {"boxes": [1, 50, 4], "scores": [1, 2, 50]},
            [constant("most", [10])],
            elements={"out0": I64},
        )
        assert found.flops == 2 * (50 * 6 + 50 * 10 * 16)


class TestMoves:
    @pytest.mark.parametrize(
        ("op", "weights", "attributes"),
        [
            ("Reshape", [constant("s", [-1])], {}),
            ("Flatten", [], {}),
            ("Identity", [], {}),
            ("Unsqueeze", [constant("s", [0])], {}),
            ("Dropout", [], {}),
        ],
    )
    def test_views_move_nothing(self, op: str, weights: list[TensorProto], attributes: dict[str, Any]) -> None:
        assert cost(op, {"x": [4, 6]}, weights, **attributes) == Cost(0, 0)

    def test_a_gather_reads_only_its_rows(self) -> None:
        found = cost("Gather", {"i": [2, 3]}, [weight("table", 50_000, 64)], names=["table", "i"], elements={"i": I64})
        assert found == Cost(0, 2 * 4 * 6 * 64 + 8 * 6)

    def test_a_slice_reads_only_its_elements(self) -> None:
        found = cost("Slice", {"x": [100, 4]}, [constant("a", [0]), constant("b", [5])])
        assert found == Cost(0, 2 * 4 * 20)

    def test_a_transposition_and_a_concatenation_copy(self) -> None:
        assert cost("Transpose", {"x": [3, 5]}) == Cost(0, 120)
        assert cost("Concat", {"a": [3], "b": [5]}, axis=0) == Cost(0, 64)

    def test_training_mode_of_dropout(self) -> None:
        found = cost("Dropout", {"x": [10]}, [constant("r", 0.5, np.float32), constant("t", True, np.bool_)])
        assert found == Cost(20, 4 * 20 + 4 + 1)


class TestControlFlow:
    def test_the_body_of_a_loop_counts_for_each_iteration(self) -> None:
        body = helper.make_graph(
            [node("Relu", ["s"], ["t"]), node("Identity", ["c"], ["d"])],
            "body",
            [
                helper.make_tensor_value_info("i", I64, []),
                helper.make_tensor_value_info("c", TensorProto.BOOL, []),
                helper.make_tensor_value_info("s", TensorProto.FLOAT, [10]),
            ],
            [
                helper.make_tensor_value_info("d", TensorProto.BOOL, []),
                helper.make_tensor_value_info("t", TensorProto.FLOAT, [10]),
            ],
        )
        found = cost("Loop", {"x": [10]}, [constant("n", 7)], names=["n", "", "x"], body=body)
        assert found == Cost(70, 7 * 80)
        open_ended = cost("Loop", {"x": [10], "n": []}, names=["n", "", "x"], body=body, elements={"n": I64})
        assert open_ended == Cost(10, 80, guessed=True)

    def test_the_most_expensive_branch_counts(self) -> None:
        def branch(op: str) -> onnx.GraphProto:
            return helper.make_graph(
                [node(op, ["x"], ["r"])], op, [], [helper.make_tensor_value_info("r", TensorProto.FLOAT, [10])]
            )

        made = model(
            [
                node("If", ["c"], ["y"], then_branch=branch("Relu"), else_branch=branch("Exp")),
                node("Exp", ["x"], ["z"]),
            ],
            {"c": [], "x": [10]},
            ["y"],
            elements={"c": TensorProto.BOOL},
        )
        assert costs(made) == Cost(10 * EXP, 80)


def test_an_unknown_operator_is_guessed() -> None:
    assert cost("Magic", {"x": [10]}, domain="my") == Cost(0, 80, guessed=True)


def test_a_form_that_a_rule_does_not_expect_is_guessed() -> None:
    assert cost("MultiHeadAttention", {"q": [2, 3]}, domain="com.microsoft", num_heads=4).guessed


def test_each_rule_is_for_an_operator_of_a_known_version() -> None:
    names = {s.name if s.domain == "" else f"{s.domain}.{s.name}" for s in defs.get_all_schemas_with_history()}
    ours = {name for name in {*FLOPS, *MOVES, *TRAFFIC} if not name.startswith("com.microsoft")}
    assert ours - names == {"SimplifiedLayerNormalization"}  # of ONNX Runtime, without its own domain
    assert not set(FLOPS) & MOVES
    assert VIEWS <= MOVES


def test_rules_for_onnx_runtime_are_for_its_operators() -> None:
    state = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")
    names = {f"{s.domain}.{s.name}" for s in state.get_all_operator_schema()}
    ours = {name for name in {*FLOPS, *MOVES, *TRAFFIC} if name.startswith("com.microsoft")}
    assert ours - names == set()


class TestTorch:
    """Torch counts multiplications and additions of products, without bias and activations."""

    @pytest.mark.parametrize(
        ("inputs", "kernel", "options"),
        [
            ((2, 3, 20, 20), (8, 3, 5, 5), {"stride": 2, "padding": 2}),
            ((1, 8, 6, 6), (8, 1, 3, 3), {"groups": 8}),
            ((1, 4, 9), (6, 4, 3), {"dilation": 2}),
        ],
    )
    def test_convolutions(self, inputs: tuple[int, ...], kernel: tuple[int, ...], options: dict[str, int]) -> None:
        torch = pytest.importorskip("torch")
        counter = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode(display=False)
        convolve = {3: torch.nn.functional.conv1d, 4: torch.nn.functional.conv2d}[len(inputs)]
        with counter:
            result = convolve(torch.zeros(inputs), torch.zeros(kernel), **options)
        ours = formulas.convolution(inputs[0], kernel[0], math.prod(result.shape[2:]), kernel[1], math.prod(kernel[2:]))
        assert ours == counter.get_total_flops()

    def test_attention(self) -> None:
        torch = pytest.importorskip("torch")
        counter = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode(display=False)
        queries, keys, values = torch.zeros(2, 4, 10, 8), torch.zeros(2, 4, 12, 8), torch.zeros(2, 4, 12, 8)
        with counter:
            (queries @ keys.transpose(2, 3)).softmax(-1) @ values
        scores = 2 * 4 * 10 * 12
        softmax = scores + formulas.softmax_of(scores)
        assert formulas.attention(2, 4, 10, 12, 8) - softmax == counter.get_total_flops()

    def test_a_transformer_that_torch_exports(self, tmp_path: Path) -> None:
        """The exporter writes dynamic sizes as chains of Shape, Gather, Concat and Reshape."""
        torch = pytest.importorskip("torch")
        counter = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode(display=False)
        pytest.importorskip("torch.onnx")

        class Network(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.embedding = torch.nn.Embedding(100, 64)
                layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0)
                self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
                self.head = torch.nn.Linear(64, 100)

            def forward(self, tokens: Any) -> Any:
                return self.head(self.encoder(self.embedding(tokens)))

        network, path = Network(), tmp_path / "transformer.onnx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                network.eval(),
                (torch.zeros(2, 16, dtype=torch.long),),
                path,
                input_names=["tokens"],
                dynamic_axes={"tokens": {0: "batch"}},
                dynamo=False,
            )
        with counter, torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            network.train()(torch.zeros(3, 16, dtype=torch.long))
        found = po.from_onnx(path, batch=3)
        products = sum(
            task.get("flops", 0) for task in found.document["tasks"].values() if task["op"] in ("MatMul", "Gemm")
        )
        assert products == counter.get_total_flops()
        assert not any("assumed, since" in note for note in found.notes)
