"""`placeopt import model.onnx` and `po.from_onnx`: published figures, edges, weights, number formats, recognition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from commandline import run
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx_graphs import LIGHT, constant, light, model, node, weight

import placeopt as po
from placeopt.bridges.importers import onnx_model
from placeopt.bridges.importers.imported import ImportOptions, Sample
from placeopt.bridges.importers.registry import IMPORTERS, import_file
from placeopt.verifier import verify

DEVICES = {
    "devices": {"cpu": {"count": 2, "memory": "8 GiB", "speed": "50 GFLOP/s", "memory_bandwidth": "10 GB/s"}},
    "links": {"default": {"bandwidth": "5 GB/s"}},
}
Tasks = dict[str, dict[str, Any]]


def tasks_of(source: Any, **options: Any) -> Tasks:
    found: Tasks = po.from_onnx(source, devices=DEVICES, **options).document["tasks"]
    return found


def resident(tasks: Tasks) -> int:
    return sum(task.get("memory", {}).get("resident", 0) for task in tasks.values())


class TestPublishedFigures:
    """Multiply-adds of convolutions and fully connected layers, and parameters, within 1% of published figures.

    - ResNet-50: 4.09 G multiply-adds and 25.56 M parameters (torchvision, "V1.5"). The light model is this variant, in
      which the 3x3 convolutions have the strides. He et al. 2016 (arXiv:1512.03385, table 1) state 3.8 G for strides
      in the 1x1 convolutions; `test_resnet50_by_hand` counts both.
    - VGG-19: 143.67 M parameters and 19.6 G multiply-adds (Simonyan and Zisserman 2015, arXiv:1409.1556, table 2:
      144 M; torchvision: 143,667,240 and 19.63 G).
    - GoogLeNet: 7 M weights and 1.43 G multiply-adds (Sze et al. 2017, arXiv:1703.09039, table II). The light model
      rounds the sizes of pooled grids down: they are 55, 27, 13 and 6 instead of 56, 28, 14 and 7 as in table 1 of
      Szegedy et al. 2015 (arXiv:1409.4842). `test_googlenet_by_hand` counts both.
    - DenseNet-121: 7,978,856 parameters and 2.83 G multiply-adds (torchvision).

    Parameters exclude the means and variances of batch normalisation. The constants of the light model of DenseNet-121
    contain scales and offsets of batch normalisation twice: once as ones and zeros, and once in a Mul and an Add.
    """

    @pytest.mark.parametrize(
        ("name", "multiply_adds", "parameters"),
        [
            ("resnet50", 4.09e9, 25_557_032),
            ("vgg19", 19.63e9, 143_667_240),
            ("inception_v1", 1.43e9, 7.0e6),
            ("densenet121", 2.83e9, 7_978_856),
        ],
    )
    def test_light_models(self, name: str, multiply_adds: float, parameters: float) -> None:
        tasks = tasks_of(light(name))
        products = sum(task["flops"] for task in tasks.values() if task["op"] in ("Conv", "Gemm"))
        assert products / 2 == pytest.approx(multiply_adds, rel=0.01)
        scaled = "Mul" in {task["op"] for task in tasks.values()}
        weights = 0
        for task in tasks.values():
            amount = task.get("memory", {}).get("resident", 0) / 4
            if task["op"] == "BatchNormalization":
                amount = 0 if scaled else amount / 2
            weights += amount
        assert weights == pytest.approx(parameters, rel=0.01)

    def test_exact_numbers_of_parameters(self) -> None:
        """With the weights of Reshape, whose 16 bytes are a shape."""
        assert resident(tasks_of(light("vgg19"))) == 4 * 143_667_240 + 16
        # 53,120 means and variances of 26,560 channels.
        assert resident(tasks_of(light("resnet50"))) == 4 * (25_557_032 + 53_120) + 16

    def test_resnet50_by_hand(self) -> None:
        """Table 1 of He et al. 2016, with the strides in the 1x1 or in the 3x3 convolutions."""

        def multiply_adds(*, strides_in_1x1: bool) -> int:
            total, channels, size = 64 * 112 * 112 * 3 * 49, 64, 56
            for stage, (width, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
                for block in range(blocks):
                    after = size // 2 if stage and not block else size
                    first = after if strides_in_1x1 else size
                    total += width * first**2 * channels
                    total += width * after**2 * width * 9
                    total += 4 * width * after**2 * width
                    if not block:
                        total += 4 * width * after**2 * channels
                    channels, size = 4 * width, after
            return total + 2048 * 1000

        assert multiply_adds(strides_in_1x1=True) == pytest.approx(3.86e9, rel=0.001)
        tasks = tasks_of(light("resnet50"))
        products = sum(task["flops"] for task in tasks.values() if task["op"] in ("Conv", "Gemm"))
        assert products == 2 * multiply_adds(strides_in_1x1=False)

    def test_googlenet_by_hand(self) -> None:
        """Table 1 of Szegedy et al. 2015: the filters of each inception module, and the sizes of the grids.

        The column "ops" of that table adds up to 1.50 G. It has 34 M for the first convolution, which has 118 M.
        """
        modules = [
            (1, 64, 96, 128, 16, 32, 32),
            (1, 128, 128, 192, 32, 96, 64),
            (2, 192, 96, 208, 16, 48, 64),
            (2, 160, 112, 224, 24, 64, 64),
            (2, 128, 128, 256, 24, 64, 64),
            (2, 112, 144, 288, 32, 64, 64),
            (2, 256, 160, 320, 32, 128, 128),
            (3, 256, 160, 320, 32, 128, 128),
            (3, 384, 192, 384, 48, 128, 128),
        ]

        def count(*grids: int) -> tuple[int, int]:
            """Multiply-adds and parameters."""
            products = 112**2 * 64 * 3 * 49 + grids[0] ** 2 * (64 * 64 + 192 * 64 * 9)
            parameters = 64 * 3 * 49 + 64 + 64 * 64 + 64 + 192 * 64 * 9 + 192
            channels = 192
            for grid, ones, before3, threes, before5, fives, pooled in modules:
                weights = channels * (ones + before3 + before5 + pooled) + 9 * before3 * threes + 25 * before5 * fives
                products += grids[grid] ** 2 * weights
                parameters += weights + ones + before3 + threes + before5 + fives + pooled
                channels = ones + threes + fives + pooled
            return products + channels * 1000, parameters + channels * 1000 + 1000

        assert count(56, 28, 14, 7)[0] == pytest.approx(1.502e9 + 118e6 - 34e6, rel=0.003)
        products, parameters = count(55, 27, 13, 6)
        tasks = tasks_of(light("inception_v1"))
        assert sum(task["flops"] for task in tasks.values() if task["op"] in ("Conv", "Gemm")) == 2 * products
        assert resident(tasks) == 4 * parameters + 16  # the shape of a Reshape


@pytest.mark.parametrize("path", sorted(LIGHT.glob("*.onnx")), ids=lambda path: path.stem)
def test_light_models_compile_and_can_be_placed(path: Path) -> None:
    found = po.from_onnx(path)
    problem = po.compile(found.document)
    assert problem.name == path.stem
    assert not any("no rule covers" in note for note in found.notes)
    result = po.solve(problem, "heft")
    assert result.schedule is not None
    assert verify(problem, result.schedule).feasible


class TestTasks:
    def test_a_task(self) -> None:
        made = model(
            [node("Gemm", ["x", "w", "b"], ["y"], name="dense"), node("Relu", ["y"], ["z"], name="relu")],
            {"x": [2, 3]},
            ["z"],
            [weight("w", 3, 5), weight("b", 5)],
        )
        assert tasks_of(made) == {
            "dense": {
                "op": "Gemm",
                "flops": 60,
                "bytes": 4 * (6 + 15 + 5 + 10),
                "output": 40,
                "memory": {"resident": 80},
            },
            "relu": {"op": "Relu", "flops": 10, "bytes": 80, "output": 40, "after": ["dense"]},
        }

    def test_an_edge_has_a_payload_if_it_takes_only_some_outputs(self) -> None:
        made = model(
            [
                node("Split", ["x"], ["a", "b"], name="split", axis=1),
                node("Relu", ["a"], ["p"], name="left"),
                node("Exp", ["b"], ["q"], name="right"),
                node("Concat", ["a", "b"], ["r"], name="both", axis=1),
            ],
            {"x": [2, 6]},
            ["p", "q", "r"],
            opset=11,
        )
        tasks = tasks_of(made)
        assert tasks["split"]["output"] == 48
        assert tasks["left"]["after"] == {"split": 24}
        assert tasks["right"]["after"] == {"split": 24}
        assert tasks["both"]["after"] == ["split"]

    def test_a_large_shared_weight_keeps_its_readers_together(self) -> None:
        made = model(
            [node("MatMul", ["x", "w"], ["y"], name="one"), node("MatMul", ["y", "w"], ["z"], name="two")],
            {"x": [1, 1024]},
            ["z"],
            [weight("w", 1024, 1024)],
        )
        found = po.from_onnx(made, devices=DEVICES)
        tasks = found.document["tasks"]
        assert [task.get("memory") for task in tasks.values()] == [{"resident": 4 * 2**20}, None]
        assert {task["colocate"] for task in tasks.values()} == {"w"}
        assert any("read 1 weight of 4 MiB (w); they are colocated" in note for note in found.notes)
        assert len(po.compile(found.document).task_names) == 2

    def test_each_reader_has_its_own_copy_of_a_small_shared_weight(self) -> None:
        made = model(
            [node("Add", ["x", "w"], ["y"], name="one"), node("Add", ["y", "w"], ["z"], name="two")],
            {"x": [256]},
            ["z"],
            [weight("w", 256)],
        )
        tasks = tasks_of(made)
        assert [task["memory"] for task in tasks.values()] == [{"resident": 1024}] * 2
        assert not any("colocate" in task for task in tasks.values())

    def test_dequantised_weights_are_stored_in_their_quantised_form(self) -> None:
        made = model(
            [
                node("DequantizeLinear", ["q", "s"], ["w"], axis=0),
                node("MatMul", ["x", "w"], ["y"], name="dense"),
            ],
            {"x": [1, 64]},
            ["y"],
            [weight("q", 64, 32, element=TensorProto.INT8), constant("s", [1.0] * 64, np.float32)],
        )
        assert tasks_of(made)["dense"]["memory"] == {"resident": 64 * 32 + 4 * 64}

    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.integers(1, 40), min_size=1, max_size=6))
    def test_residents_are_the_weights_that_are_used(self, widths: list[int]) -> None:
        nodes, weights, last, width = [], [weight("unused", 9)], "x", 3
        for place, wide in enumerate(widths):
            weights.append(weight(f"w{place}", width, wide))
            nodes.append(node("MatMul", [last, f"w{place}"], [f"y{place}"]))
            last, width = f"y{place}", wide
        used = sum(4 * a * b for a, b in zip([3, *widths], widths, strict=False))
        assert resident(tasks_of(model(nodes, {"x": [2, 3]}, [last], weights))) == used


class TestAddresses:
    """Which outputs may share bytes, in problems with addresses."""

    def shares(self, nodes: list[Any], outputs: list[str], **options: Any) -> dict[str, Any]:
        made = model(nodes, {"x": [2, 3]}, outputs, [constant("shape", [6]), constant("row", [1, 2, 3], np.float32)])
        document = po.from_onnx(made, devices=DEVICES, addresses="64 B", **options).document
        assert document["addresses"] == {"alignment": "64 B"}
        problem = po.compile(document)
        schedule = po.solve(problem, "heft", time_limit=5).schedule
        assert schedule is not None
        assert po.verify(problem, schedule).feasible
        tasks = document["tasks"].items()
        return {
            name: task.get("in_place", task.get("view")) for name, task in tasks if {"in_place", "view"} & set(task)
        }

    def test_views_and_elementwise_operators(self) -> None:
        nodes = [
            node("Neg", ["x"], ["a"]), node("Reshape", ["a", "shape"], ["b"]), node("Relu", ["b"], ["c"]),
            node("Add", ["c", "c"], ["d"]), node("Mul", ["d", "b"], ["e"]),
        ]  # fmt: skip
        shares = self.shares(nodes, ["e"])
        assert shares == {
            "Reshape_b": "Neg_a", "Relu_c": ["Reshape_b"], "Add_d": ["Relu_c"], "Mul_e": ["Add_d", "Reshape_b"],
        }  # fmt: skip

    def test_nothing_overwrites_what_the_model_returns(self) -> None:
        """Neither an output, nor what an output is a view of, nor a view of an output."""
        nodes = [node("Neg", ["x"], ["a"]), node("Identity", ["a"], ["b"]), node("Relu", ["a"], ["c"])]
        assert self.shares([*nodes, node("Neg", ["b"], ["d"])], ["b", "c", "d"]) == {"Identity_b": "Neg_a"}
        assert self.shares([*nodes, node("Neg", ["b"], ["d"])], ["a", "c", "d"]) == {"Identity_b": "Neg_a"}

    def test_sizes_types_and_numbers_of_outputs_differ(self) -> None:
        nodes = [
            node("Neg", ["x"], ["a"]), node("Cast", ["a"], ["b"], to=TensorProto.INT32), node("Abs", ["b"], ["c"]),
            node("Softmax", ["a"], ["d"]), node("Split", ["d"], ["e", "f"], axis=1), node("Neg", ["e"], ["g"]),
            node("ReduceSum", ["a"], ["h"]), node("Add", ["h", "row"], ["i"]), node("Dropout", ["i"], ["j"]),
        ]  # fmt: skip
        nodes[4] = node("Split", ["d", "parts"], ["e", "f"], axis=1)
        nodes.insert(0, node("Constant", [], ["parts"], value_ints=[2, 1]))
        assert self.shares(nodes, ["c", "f", "g", "j"]) == {"Abs_c": ["Cast_b"], "Dropout_j": "Add_i"}

    def test_only_with_addresses(self) -> None:
        made = model([node("Neg", ["x"], ["a"]), node("Relu", ["a"], ["b"])], {"x": [2]}, ["b"])
        assert not any("in_place" in task for task in tasks_of(made).values())
        with pytest.raises(po.DocumentError, match="addresses are not supported with the objective period"):
            po.from_onnx(made, devices=DEVICES, addresses="64 B", objective="period")
        with pytest.raises(po.DocumentError, match=r'addresses\.alignment: "0 B" is not an alignment'):
            po.from_onnx(made, devices=DEVICES, addresses="0 B")


class TestNumberFormats:
    def product(self, element: int) -> onnx.ModelProto:
        return model(
            [node("MatMul", ["x", "w"], ["y"], name="dense")],
            {"x": [2, 8]},
            ["y"],
            [weight("w", 8, 4, element=element)],
            element=element,
        )

    @pytest.mark.parametrize(
        ("element", "precision", "size"),
        [
            (TensorProto.FLOAT, None, 4),
            (TensorProto.FLOAT16, "fp16", 2),
            (TensorProto.BFLOAT16, "bf16", 2),
            (TensorProto.DOUBLE, "fp64", 8),
        ],
    )
    def test_it_follows_from_the_elements(self, element: int, precision: str | None, size: int) -> None:
        task = tasks_of(self.product(element))["dense"]
        assert (task.get("precision"), task["memory"]["resident"]) == (precision, 32 * size)

    @pytest.mark.parametrize(("precision", "size"), [("fp16", 2), ("bf16", 2), ("tf32", 4), ("fp64", 8)])
    def test_a_model_is_converted(self, precision: str, size: int) -> None:
        task = tasks_of(self.product(TensorProto.FLOAT), precision=precision)["dense"]
        assert (task["precision"], task["memory"]["resident"]) == (precision, 32 * size)
        assert task["bytes"] == size * (16 + 32 + 8)

    def test_an_unknown_one(self) -> None:
        with pytest.raises(
            po.UsageError, match="precision int8 is not a number format of this import; known are fp64, fp32"
        ):
            po.from_onnx(self.product(TensorProto.FLOAT), precision="int8")

    def test_integers(self) -> None:
        made = model(
            [node("MatMulInteger", ["x", "w"], ["y"], name="dense")],
            {"x": [2, 8]},
            ["y"],
            [weight("w", 8, 4, element=TensorProto.INT8)],
            elements={"x": TensorProto.UINT8, "y": TensorProto.INT32},
        )
        assert tasks_of(made)["dense"]["precision"] == "int8"


OVERHEAD = {"devices": {"gpu": {"like": "t4", "overhead": "10 us"}}}


class TestNotes:
    @pytest.mark.parametrize(
        ("devices", "free"),
        [
            ("rtx-4070:2,xeon-core", "rtx-4070 states"),
            ("t4,l4", "t4, l4 state"),
            ("xeon-core:2", ""),
            (DEVICES, ""),
            (OVERHEAD, ""),
        ],
    )
    def test_accelerators_without_overhead(self, devices: Any, free: str) -> None:
        made = model([node("Relu", ["x"], ["y"])], {"x": [2, 4]}, {"y": [2, 4]})
        notes = [note for note in po.from_onnx(made, devices=devices).notes if "overhead" in note]
        assert len(notes) == bool(free)
        assert all(note.startswith(f"{free} no `overhead`, so that a kernel starts in no time") for note in notes)

    def test_guessed_operators_and_their_share(self) -> None:
        made = model(
            [node("Magic", ["x"], ["y"], domain="my", name="m"), node("Relu", ["y"], ["z"])],
            {"x": [1000, 1000]},
            ["z"],
            domains={"my": 1},
        )
        notes = po.from_onnx(made, devices=DEVICES).notes
        assert any("no rule covers 1 operator (my.Magic)" in note and "50.0% of the time" in note for note in notes)
        assert any(note.startswith("the size of 2 tensors (y, z) is assumed") for note in notes)
        notes = po.from_onnx(made, devices={"devices": {"cpu": {}}}).notes  # no speed, so the share is unknown
        assert "no rule covers 1 operator (my.Magic): only memory traffic counts" in notes

    def test_folded_and_unused_nodes(self) -> None:
        made = model(
            [
                node("Identity", ["w"], ["v"]),
                node("Add", ["x", "v"], ["y"]),
                node("Exp", ["x"], ["e"]),
            ],
            {"x": [3]},
            ["y"],
            [weight("w", 3)],
        )
        notes = po.from_onnx(made, devices=DEVICES).notes
        assert any(note.startswith("1 node without an input of the model among their ancestors") for note in notes)
        assert any(note.startswith("1 node that no output of the model needs") for note in notes)


@pytest.mark.parametrize("opset", [1, 6, 7, 9, 11, 13, 17, 21, onnx.defs.onnx_opset_version()])
def test_versions_of_the_standard(opset: int) -> None:
    """A small network in the form that each version requires: the same products, weights and shapes."""
    old, legacy = opset < 7, {"consumed_inputs": [0, 0]} if opset < 6 else {}
    add = node("Add", ["c", "b"], ["d"], name="add", **(legacy | ({"broadcast": 1, "axis": 1} if old else {})))
    bias = weight("b", 8) if old else weight("b", 1, 8, 1, 1)
    if opset < 5:
        reshape = node("Reshape", ["p"], ["r"], name="reshape", shape=[0, -1], consumed_inputs=[0])
        shape = []
    else:
        reshape = node("Reshape", ["p", "shape"], ["r"], name="reshape")
        shape = [constant("shape", [0, -1])]
    relu = node("Relu", ["d"], ["e"], name="relu", **({"consumed_inputs": [0]} if opset < 6 else {}))
    nodes = [
        node("Conv", ["x", "k"], ["c"], name="conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        add,
        relu,
        node("GlobalAveragePool", ["e"], ["p"], name="pool"),
        reshape,
        node("Gemm", ["r", "w", "g"], ["y"], name="dense", **({"broadcast": 1} if old else {})),
    ]
    made = model(
        nodes,
        {"x": [2, 3, 8, 8]},
        ["y"],
        [weight("k", 8, 3, 3, 3), bias, weight("w", 8, 10), weight("g", 10), *shape],
        opset=opset,
        ir=3 if opset < 9 else 8,
    )
    if opset < 9:  # initializers had to be inputs
        for tensor in made.graph.initializer:
            made.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    found = po.from_onnx(made, devices=DEVICES)
    tasks = found.document["tasks"]
    assert list(tasks) == ["conv", "add", "relu", "pool", "reshape", "dense"]
    assert tasks["conv"]["flops"] == 2 * (2 * 8 * 64) * 27
    assert tasks["dense"]["flops"] == 2 * 2 * 10 * 8
    assert tasks["reshape"]["output"] == 2 * 8 * 4
    assert not any("assumed" in note for note in found.notes if "links" not in note)


class TestRecognition:
    @pytest.mark.parametrize("path", sorted(LIGHT.glob("*.onnx")), ids=lambda path: path.stem)
    def test_models_under_any_name(self, path: Path, tmp_path: Path) -> None:
        other = tmp_path / "model.bin"
        other.write_bytes(path.read_bytes())
        assert [name for name, each in IMPORTERS.items() if each.recognises(Sample(other))] == ["onnx"]

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"{}",
            b'{"nodes": []}',
            b"placeopt: 1\n",
            b"GGUF\x03\x00\x00\x00",
            b"PK\x03\x04",
            b"\x08\x07",
            b"\x08\x01\x12\x04\x0a\x02\x08\x01",  # a TensorFlow SavedModel: a message in place of a text
            b"\x0a\x05hello",  # another protobuf message
            b"\x08\x03\x10\x01\x22\x04data",  # a TensorProto
            b"\x80\x04\x95",
            b"\x00" * 100,
            b"\x08\x07\x3a",
            b"\x08" * 50,
            b"digraph { a -> b }",
        ],
    )
    def test_other_files(self, content: bytes, tmp_path: Path) -> None:
        path = tmp_path / "file.onnx"
        path.write_bytes(content)
        assert not onnx_model.recognises(Sample(path))

    @given(st.binary(max_size=200))
    @settings(max_examples=200, deadline=None)
    def test_noise(self, content: bytes) -> None:
        assert onnx_model._is_model(content) in (True, False)
        assert not onnx_model._is_model(b"text: " + content)

    def test_a_truncated_model_is_recognised(self, tmp_path: Path) -> None:
        path = tmp_path / "file.onnx"
        path.write_bytes(light("squeezenet").read_bytes()[:2000])
        with pytest.raises(po.DocumentError, match=r"file\.onnx: is not an ONNX model, or is truncated"):
            import_file(path)


class TestCommand:
    def test_a_model_becomes_a_problem_file(self, tmp_path: Path) -> None:
        out = tmp_path / "problem.yaml"
        found = run("import", light("squeezenet"), "--batch", 4, "--devices", "xeon-core:2", "--out", out)
        assert found.code == 0
        assert "39 nodes without an input of the model among their ancestors are folded" in found.err
        problem = po.load(out)
        assert (problem.name, len(problem.task_names)) == ("light_squeezenet", 66)
        assert 'source: "ONNX model light_squeezenet.onnx, batch 4"' in out.read_text()

    def test_named_dimensions(self, tmp_path: Path) -> None:
        path = tmp_path / "small.onnx"
        onnx.save(model([node("Relu", ["x"], ["y"])], {"x": ["batch", "seq"]}, ["y"]), path)
        found = run("import", path, "--batch", 2, "--dim", "seq=64")
        assert found.code == 0
        assert "flops: 128" in found.out
        missing = run("import", path, "--batch", 2)
        assert missing.code == 2
        assert f"{path}: the sizes of these dimensions are unknown: seq; state --dim seq=SIZE" in missing.err

    def test_the_same_file_gives_the_same_document(self) -> None:
        one, two = (import_file(light("shufflenet"), options=ImportOptions()) for _ in range(2))
        assert one == two

    def test_an_option_of_another_format(self) -> None:
        found = run("import", light("squeezenet"), "--context", 4)
        assert found.code == 2
        assert "the format onnx takes no --context" in found.err


class TestArguments:
    @pytest.mark.parametrize("batch", [0, -1, True, 1.5])
    def test_a_wrong_batch(self, batch: Any) -> None:
        with pytest.raises(po.UsageError, match=r"batch is .*; expected a positive whole number"):
            po.from_onnx(light("squeezenet"), batch=batch)

    def test_a_wrong_dimension(self) -> None:
        with pytest.raises(po.UsageError, match="seq is 0; expected a positive whole number"):
            po.from_onnx(light("squeezenet"), dims={"seq": 0})

    def test_something_else(self) -> None:
        with pytest.raises(po.UsageError, match="the path of a file is a int"):
            po.from_onnx(3)  # type: ignore[arg-type]

    def test_devices_of_the_catalogue(self) -> None:
        found = po.from_onnx(light("squeezenet"), devices="xeon-core:2")
        assert found.document["devices"] == {"xeon-core": {"like": "xeon-core", "count": 2}}
        assert any(note.startswith("the links are assumed") for note in found.notes)

    def test_name_and_resolution(self) -> None:
        found = po.from_onnx(light("squeezenet"), name="net", resolution="10 ns").document
        assert (found["name"], found["resolution"]) == ("net", "10 ns")


class TestSizesThatModelsState:
    """ONNX Runtime runs all of these models."""

    @pytest.mark.parametrize("stated", [(1, 9, 4), (2, 8), (-1, 8)])
    def test_wrong_ones_are_ignored(self, stated: tuple[int, ...]) -> None:
        made = model([node("Relu", ["x"], ["r"]), node("Exp", ["r"], ["y"])], {"x": [2, 4]}, {"y": [2, 4]})
        made.graph.value_info.append(helper.make_tensor_value_info("r", TensorProto.FLOAT, stated))
        found = po.from_onnx(made, devices=DEVICES)
        assert [task["output"] for task in found.document["tasks"].values()] == [32, 32]
        shown = ", ".join("?" if size < 0 else str(size) for size in stated)
        assert f"r has the shape [2, 4]; the model states [{shown}], which is ignored" in found.notes

    def test_a_negative_size_of_an_output_is_open(self) -> None:
        made = model([node("Relu", ["x"], ["y"])], {"x": [1, 2]}, {"y": [-1, 2]})
        found = po.from_onnx(made, devices=DEVICES)
        assert found.notes == ()

    def test_dimensions_with_the_name_of_paddle_differ(self) -> None:
        made = model([node("Relu", ["x"], ["y"])], {"x": ["?", 3, "?"]}, {"y": ["?", 3, "?"]})
        with pytest.raises(po.DocumentError, match=r"unknown: x\[0\], x\[2\]; state --dim x\[0\]=SIZE --dim x\[2\]="):
            po.from_onnx(made)
        (task,) = tasks_of(made, dims={"x[0]": 2, "x[2]": 5}).values()
        assert task["output"] == 4 * 2 * 3 * 5


class TestControlFlow:
    def branch(self, *nodes: onnx.NodeProto) -> onnx.GraphProto:
        return helper.make_graph(nodes, "branch", [], [onnx.ValueInfoProto(name="b")])

    def squeezed_if_it_has_one_column(self, condition: list[onnx.NodeProto]) -> onnx.ModelProto:
        """What PyTorch exports for `x.squeeze(1)`."""
        then = self.branch(node("Squeeze", ["x", "axis"], ["b"], name="squeeze"))
        other = self.branch(node("Identity", ["x"], ["b"]))
        chosen = node("If", ["c"], ["y"], name="if", then_branch=then, else_branch=other)
        return model([*condition, chosen], {"x": ["n", "m"]}, ["y"], [constant("axis", [1]), constant("one", [1])])

    def test_a_branch_that_does_not_fit_is_left_out(self) -> None:
        data = [node("ReduceMax", ["x"], ["top"], keepdims=0), node("Cast", ["top"], ["c"], to=TensorProto.BOOL)]
        made = self.squeezed_if_it_has_one_column(data)
        found = po.from_onnx(made, devices=DEVICES, dims={"n": 6, "m": 4})
        assert found.document["tasks"]["if"]["output"] == 4 * 6 * 4
        (note,) = [note for note in found.notes if "left out" in note]
        assert note.startswith("if: then_branch cannot run with these sizes and is left out: Squeeze: ")
        assert not any("left out" in note for note in po.from_onnx(made, dims={"n": 6, "m": 1}).notes)

    def test_a_model_whose_branches_all_do_not_fit(self) -> None:
        made = self.squeezed_if_it_has_one_column([node("Cast", ["one"], ["c"], to=TensorProto.BOOL)])
        with pytest.raises(po.DocumentError, match=r"nodes\.if: Squeeze: "):
            po.from_onnx(made, dims={"n": 6, "m": 4})

    @pytest.mark.parametrize(("columns", "size"), [(1, 4 * 6), (4, 4 * 6 * 4)])
    def test_the_branch_of_a_condition_on_sizes_is_known(self, columns: int, size: int) -> None:
        asked = [
            node("Shape", ["x"], ["s"], start=1),
            node("Equal", ["s", "one"], ["c"]),
        ]
        made = self.squeezed_if_it_has_one_column(asked)
        found = po.from_onnx(made, devices=DEVICES, dims={"n": 6, "m": columns})
        assert found.document["tasks"]["if"]["output"] == size
        assert not any("assumed" in note or "left out" in note for note in found.notes if "links" not in note)

    def test_a_body_states_what_is_assumed_outside(self) -> None:
        """The state of an LSTM that TensorFlow exports as a loop: its size depends on data, and the body states it."""
        body = helper.make_graph(
            [node("MatMul", ["h", "w"], ["h2"]), node("Identity", ["go"], ["go2"])],
            "body",
            [
                helper.make_tensor_value_info("i", TensorProto.INT64, []),
                helper.make_tensor_value_info("go", TensorProto.BOOL, []),
                helper.make_tensor_value_info("h", TensorProto.FLOAT, ["k", 8]),
            ],
            [onnx.ValueInfoProto(name="go2"), onnx.ValueInfoProto(name="h2")],
        )
        made = model(
            [
                node("NonZero", ["x"], ["places"]),
                node("Cast", ["places"], ["sizes"], to=TensorProto.INT64),
                node("Gather", ["sizes", "one"], ["size"], axis=1),
                node("Reshape", ["size", "two"], ["flat"]),
                node("Expand", ["zero", "flat"], ["state"]),
                node("Loop", ["times", "", "state"], ["y"], name="loop", body=body),
            ],
            {"x": [3, 3]},
            ["y"],
            [weight("w", 8, 8), weight("zero", 1, 1), constant("one", [1]), constant("two", [2]), constant("times", 5)],
        )
        assert tasks_of(made)["loop"]["flops"] == 5 * 2 * 8 * 8


def test_sizes_computed_by_old_operators_are_known() -> None:
    """Shape, Gather, Unsqueeze and Concat: before version 13, the axes of Unsqueeze are an attribute."""
    made = model(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "first"], ["n"]),
            node("Unsqueeze", ["n"], ["n1"], axes=[0]),
            node("Concat", ["n1", "rest"], ["to"], axis=0),
            node("Reshape", ["x", "to"], ["y"]),
            node("Relu", ["y"], ["z"]),
        ],
        {"x": [20, 2, 4]},
        ["z"],
        [constant("first", 0), constant("rest", [-1])],
        opset=12,
    )
    found = po.from_onnx(made, devices=DEVICES)
    assert not any("assumed" in note for note in found.notes)
