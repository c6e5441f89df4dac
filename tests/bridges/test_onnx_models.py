"""The light view of ONNX models: which nodes are tasks, their names, and the sizes of tensors."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, defs, helper
from onnx_graphs import LIGHT, constant, light, model, node, weight

import placeopt as po
from placeopt.bridges.onnx_models import OnnxModel, inlined, read_model
from placeopt.bridges.onnx_models.reading import task_names
from placeopt.errors import DocumentError, UsageError


def shapes(found: OnnxModel) -> dict[str, tuple[int, ...] | None]:
    return {name: tensor.shape for name, tensor in found.tensors.items()}


class TestLightModels:
    @pytest.mark.parametrize(
        ("name", "live", "folded"),
        [
            # The counts of inception_v1, resnet50 and densenet121 were measured independently of this code.
            ("inception_v1", 143, 94),
            ("resnet50", 176, 239),
            ("densenet121", 668, 1078),
            ("bvlc_alexnet", 24, 16),
            ("inception_v2", 371, 545),
            ("shufflenet", 203, 243),
            ("squeezenet", 66, 39),
            ("vgg19", 46, 36),
            ("zfnet512", 22, 16),
        ],
    )
    def test_nodes_without_a_live_ancestor_are_folded(self, name: str, live: int, folded: int) -> None:
        found = read_model(light(name))
        assert (len(found.nodes), len(found.folded), found.unused) == (live, folded, ())
        assert live + folded == len(onnx.load(light(name)).graph.node)

    def test_there_are_nine(self) -> None:
        assert len(list(LIGHT.glob("*.onnx"))) == 9

    def test_producers_come_first(self) -> None:
        found = read_model(light("inception_v1"))
        done: set[str] = set()
        for each in found.nodes:
            assert {found.producers[name] for name in each.reads if name in found.producers} <= done
            done.add(each.task)


class TestNames:
    def test_a_unique_name_is_kept(self) -> None:
        nodes = [node("Relu", ["a"], ["b"], name="first"), node("Relu", ["b"], ["c"], name="second")]
        assert task_names(nodes) == ["first", "second"]

    def test_other_names_are_made_of_operator_and_output(self) -> None:
        nodes = [
            node("Relu", ["a"], ["b"]),
            node("Relu", ["b"], ["c"], name="twice"),
            node("Exp", ["c"], ["d"], name="twice"),
            node("Abs", ["d"], ["e"], name="Relu_b"),
            node("Split", ["e"], ["", "f"]),
        ]
        assert task_names(nodes) == ["Relu_b_2", "Relu_c", "Exp_d", "Relu_b", "Split_f"]

    @given(st.lists(st.sampled_from(["", "x", "y", "Relu_1", "Relu_2", "Relu_2_2"]), max_size=8))
    @settings(max_examples=60, deadline=None)
    def test_names_are_distinct_and_not_empty(self, given_names: list[str]) -> None:
        nodes = [node("Relu", ["a"], [f"{place}"], name=name) for place, name in enumerate(given_names)]
        found = task_names(nodes)
        assert len(set(found)) == len(found)
        assert all(found)
        assert all(
            mine == own for mine, own in zip(found, given_names, strict=True) if given_names.count(own) == 1 and own
        )

    def test_names_do_not_depend_on_the_hash_seed(self) -> None:
        code = (
            "import sys; from placeopt.bridges.onnx_models import read_model; m = read_model(sys.argv[1]);"
            "print([(n.task, n.reads, n.constants, n.writes) for n in m.nodes], list(m.tensors), m.outputs)"
        )
        runs = [
            subprocess.run(
                [sys.executable, "-c", code, str(light("shufflenet"))],
                env=os.environ | {"PYTHONHASHSEED": seed},
                capture_output=True,
                check=True,
            ).stdout
            for seed in ("1", "2")
        ]
        assert runs[0] == runs[1]


class TestLiveness:
    def test_dead_and_folded_nodes(self) -> None:
        found = read_model(
            model(
                [
                    node("Identity", ["w"], ["v"], name="fold"),
                    node("Add", ["x", "v"], ["y"], name="live"),
                    node("Exp", ["x"], ["unused"], name="dead"),
                    node("Relu", ["y"], ["z"], name="last"),
                ],
                {"x": [4]},
                ["z"],
                [weight("w", 4)],
            )
        )
        assert [each.task for each in found.nodes] == ["live", "last"]
        assert (found.folded, found.unused) == ((0,), (2,))
        assert found.nodes[0].reads == ("x",)
        assert found.nodes[0].constants == ("v",)
        assert found.constants == {"w", "v"}
        assert found.readers["v"] == (found.nodes[0],)

    def test_a_random_node_is_a_task(self) -> None:
        found = read_model(
            model([node("RandomNormal", [], ["r"], shape=[2]), node("Add", ["r", "x"], ["y"])], {"x": [2]}, ["y"])
        )
        assert [each.op for each in found.nodes] == ["RandomNormal", "Add"]

    def test_nodes_in_any_order(self) -> None:
        found = read_model(
            model([node("Exp", ["b"], ["c"], name="2"), node("Relu", ["a"], ["b"], name="1")], {"a": [3]}, ["c"])
        )
        assert [each.task for each in found.nodes] == ["1", "2"]

    def test_an_unused_output_is_not_written(self) -> None:
        found = read_model(model([node("Dropout", ["x"], ["y", "mask"])], {"x": [3]}, ["y"]))
        assert found.nodes[0].writes == ("y",)

    def test_missing_inputs_are_skipped(self) -> None:
        found = read_model(
            model([node("Clip", ["x", "", "high"], ["y"])], {"x": [3]}, ["y"], [constant("high", 6, np.float32)])
        )
        assert found.nodes[0].reads == ("x",)
        assert found.nodes[0].constants == ("high",)

    def test_an_output_that_is_an_input(self) -> None:
        found = read_model(model([node("Relu", ["x"], ["y"])], {"x": [3]}, {"x": [3], "y": [3]}))
        assert found.outputs == ("x", "y")

    def test_initializers_that_are_inputs_too(self) -> None:
        made = model([node("Add", ["x", "w"], ["y"])], {"x": [3], "w": [3]}, ["y"], [weight("w", 3)], ir=3)
        assert read_model(made).inputs == ("x",)

    def test_a_sparse_weight_counts_as_dense(self) -> None:
        made = model([node("MatMul", ["x", "w"], ["y"])], {"x": [2, 100]}, ["y"])
        sparse = made.graph.sparse_initializer.add()
        sparse.dims.extend([100, 50])
        sparse.values.CopyFrom(weight("w", 3))
        sparse.indices.CopyFrom(constant("i", [0, 1, 2]))
        found = read_model(made)
        assert (found.nodes[0].constants, found.tensors["w"].bytes) == (("w",), 20_000)

    @pytest.mark.parametrize("attribute", [{"value": weight("v", 2, 3)}, {"value_floats": [1.0] * 6}])
    def test_constant_nodes(self, attribute: dict[str, object]) -> None:
        found = read_model(
            model([node("Constant", [], ["c"], **attribute), node("Add", ["x", "c"], ["y"])], {"x": [2, 6]}, ["y"])
            if "value_floats" in attribute
            else model([node("Constant", [], ["c"], **attribute), node("Add", ["x", "c"], ["y"])], {"x": [2, 3]}, ["y"])
        )
        assert [each.op for each in found.nodes] == ["Add"]
        assert found.tensors["c"].bytes == 24


class TestShapes:
    def test_shapes_that_are_computed(self) -> None:
        """The chain Shape, Gather, Concat, Reshape of exporters is followed with concrete sizes."""
        made = model(
            [
                node("Shape", ["x"], ["s"]),
                node("Gather", ["s", "zero"], ["n"], axis=0),
                node("Gather", ["s", "one"], ["c"], axis=0),
                node("Div", ["c", "heads"], ["d"]),
                node("Unsqueeze", ["n", "axes"], ["n1"]),
                node("Unsqueeze", ["d", "axes"], ["d1"]),
                node("Concat", ["n1", "rest", "d1"], ["target"], axis=0),
                node("Reshape", ["x", "target"], ["y"]),
            ],
            {"x": ["batch", "width"]},
            ["y"],
            [
                constant("zero", 0),
                constant("one", 1),
                constant("heads", 4),
                constant("axes", [0]),
                constant("rest", [-1]),
            ],
        )
        found = read_model(made, dims={"batch": 3, "width": 32})
        assert found.tensors["y"].shape == (3, 4, 8)
        assert not found.tensors["y"].assumed
        assert found.values["target"].tolist() == [3, -1, 8]

    def test_sizes_of_small_elements(self) -> None:
        made = model([node("Cast", ["x"], ["y"], to=TensorProto.INT4)], {"x": [3, 3]}, ["y"], opset=21, ir=10)
        assert read_model(made).tensors["y"].bytes == 5

    def test_a_result_that_depends_on_data_has_its_largest_size(self) -> None:
        made = model([node("NonZero", ["x"], ["y"])], {"x": [3, 4]}, {"y": None}, elements={"y": TensorProto.INT64})
        tensor = read_model(made).tensors["y"]
        assert (tensor.shape, tensor.assumed) == ((2, 12), True)

    @pytest.mark.parametrize(("stated", "bins"), [({}, 201), ({"onesided": 1}, 201), ({"onesided": 0}, 400)])
    def test_an_attribute_that_a_node_does_not_state_has_its_default(self, stated: dict[str, int], bins: int) -> None:
        """onnx infers two sides if an STFT does not state onesided, whose default is 1."""
        spectrum = node("STFT", ["x", "step", "window"], ["y"], **stated)
        constants = [constant("step", 160), weight("window", 400)]
        found = read_model(model([spectrum], {"x": [1, 1000, 1]}, ["y"], constants))
        assert shapes(found)["y"] == (1, 4, bins, 2)

    def test_an_unknown_operator_has_the_shape_that_the_model_states(self) -> None:
        nodes = [node("Magic", ["x"], ["y"], domain="my"), node("Relu", ["y"], ["z"])]
        stated = read_model(model(nodes, {"x": [3]}, {"z": [5, 7]}, domains={"my": 1}))
        assert stated.tensors["y"].shape == (3,)
        assert stated.tensors["y"].assumed
        assert (stated.tensors["z"].shape, stated.tensors["z"].assumed) == ((5, 7), False)

    def test_external_data_is_not_read(self, tmp_path: Path) -> None:
        large = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[40_000, 40_000], data_location=1)
        large.external_data.add(key="location", value="missing.bin")
        path = tmp_path / "large.onnx"
        path.write_bytes(
            model([node("MatMul", ["x", "w"], ["y"])], {"x": [1, 40_000]}, ["y"], [large]).SerializeToString()
        )
        found = read_model(path)
        assert found.tensors["w"].bytes == 6_400_000_000
        assert found.tensors["y"].shape == (1, 40_000)

    def test_weights_are_dropped_and_the_given_model_is_not_changed(self) -> None:
        made = model([node("Add", ["x", "w"], ["y"])], {"x": [1000]}, ["y"], [weight("w", 1000)])
        before = made.SerializeToString()
        found = read_model(made)
        assert made.SerializeToString() == before
        assert len(found.proto.SerializeToString()) < 300

    def test_functions_are_inlined(self) -> None:
        function = helper.make_function(
            "my",
            "Twice",
            ["a"],
            ["c"],
            [node("Add", ["a", "a"], ["b"], name="sum"), node("Relu", ["b"], ["c"])],
            [helper.make_opsetid("", 17)],
        )
        made = model(
            [node("Twice", ["x"], ["y"], domain="my"), node("Twice", ["y"], ["z"], domain="my")],
            {"x": [3]},
            ["z"],
            domains={"my": 1},
            functions=[function],
        )
        found = read_model(made)
        assert [each.op for each in found.nodes] == ["Add", "Relu"] * 2
        assert [each.name for each in inlined(made).graph.node] == [each.name for each in found.proto.graph.node]


class TestDims:
    MADE = model(
        [node("MatMul", ["x", "w"], ["y"])], {"x": ["batch", "seq", 8], "mask": ["batch"]}, ["y"], [weight("w", 8, 4)]
    )

    def test_batch_sets_the_symbol_everywhere(self) -> None:
        found = read_model(self.MADE, batch=3, dims={"seq": 5})
        assert shapes(found) == {"x": (3, 5, 8), "mask": (3,), "w": (8, 4), "y": (3, 5, 4)}

    def test_unknown_sizes_are_listed_with_their_options(self) -> None:
        with pytest.raises(
            DocumentError,
            match=r"are unknown: batch, seq; state --dim batch=SIZE --dim seq=SIZE \(or --batch SIZE for batch\)",
        ):
            read_model(self.MADE)

    def test_a_wrong_name_has_a_near_miss(self) -> None:
        with pytest.raises(UsageError, match="--dim sec: the model has no such dimension; did you mean seq"):
            read_model(self.MADE, dims={"sec": 3})

    def test_an_axis_without_a_name(self) -> None:
        made = model([node("Relu", ["x"], ["y"])], {"x": [None, 3, None]}, ["y"])
        with pytest.raises(DocumentError, match=r"unknown: x\[0\], x\[2\]; state --dim x\[0\]=SIZE --dim x\[2\]=SIZE"):
            read_model(made)
        assert read_model(made, batch=2, dims={"x[2]": 9}).tensors["y"].shape == (2, 3, 9)

    def test_a_contradiction(self) -> None:
        with pytest.raises(UsageError, match="--dim batch=2 and --batch 3 state different sizes"):
            read_model(self.MADE, batch=3, dims={"batch": 2})

    def test_several_names_of_first_dimensions(self) -> None:
        made = model([node("Add", ["a", "b"], ["y"])], {"a": ["rows", 3], "b": ["lines", 3]}, ["y"])
        with pytest.raises(UsageError, match="first dimensions of the inputs have the names rows, lines; state --dim"):
            read_model(made, batch=3)
        named = model([node("Relu", ["a"], ["y"])], {"a": ["batch_size", 3], "b": ["rows", 3]}, ["y"])
        assert read_model(named, batch=4, dims={"rows": 1}).tensors["y"].shape == (4, 3)

    def test_a_fixed_batch_changes_if_the_model_allows_it(self) -> None:
        found = read_model(light("densenet121"), batch=8)
        assert found.tensors[found.outputs[0]].shape == (8, 1000, 1, 1)

    def test_a_fixed_batch_that_the_model_needs(self) -> None:
        with pytest.raises(
            DocumentError, match=r"nodes\.n173: Reshape: the shapes \[8, 2048, 1, 1\] and \[1, 2048\] differ"
        ):
            read_model(light("resnet50"), batch=8)

    def test_an_output_that_keeps_its_batch(self) -> None:
        made = model(
            [node("Reshape", ["x", "shape"], ["y"])], {"x": [1, 6]}, {"y": [1, 6]}, [constant("shape", [1, -1])]
        )
        with pytest.raises(
            DocumentError, match=r"output\.y: the first dimension of the output remains 1 \(the model does"
        ):
            read_model(made, batch=2)

    def test_no_dimension(self) -> None:
        with pytest.raises(UsageError, match="--batch: no input of the model has a dimension"):
            read_model(model([node("Relu", ["x"], ["y"])], {"x": []}, ["y"]), batch=2)


class TestControlFlow:
    def loop(self, count: int | None) -> onnx.ModelProto:
        body = helper.make_graph(
            [
                node("MatMul", ["state", "w"], ["next"]),
                node("Add", ["next", "own"], ["sum"]),
                node("Identity", ["go_in"], ["go"]),
            ],
            "body",
            [
                helper.make_tensor_value_info("i", TensorProto.INT64, []),
                helper.make_tensor_value_info("go_in", TensorProto.BOOL, []),
                helper.make_tensor_value_info("state", TensorProto.FLOAT, None),
            ],
            [
                helper.make_tensor_value_info("go", TensorProto.BOOL, []),
                helper.make_tensor_value_info("sum", TensorProto.FLOAT, None),
                helper.make_tensor_value_info("next", TensorProto.FLOAT, None),
            ],
            [weight("own", 4)],
        )
        return model(
            [node("Loop", ["count", "yes", "x"], ["last", "all"], body=body)],
            {"x": [2, 4]} | ({} if count is not None else {"count": []}),
            ["last", "all"],
            [weight("w", 4, 4), constant("yes", True, np.bool_)]
            + ([] if count is None else [constant("count", count)]),
            elements={"count": TensorProto.INT64},
        )

    def test_a_loop_is_one_task(self) -> None:
        found = read_model(self.loop(5))
        (task,) = found.nodes
        assert task.reads == ("x",)
        assert set(task.constants) == {"w", "yes", "count"}
        body = task.bodies["body"]
        assert body.repeats == 5
        assert body.weights == 16
        assert body.tensors["next"].shape == (2, 4)
        assert found.tensors["all"].shape == (5, 2, 4)
        assert not found.tensors["last"].assumed

    @pytest.mark.parametrize("count", [None, 2**63 - 1])
    def test_a_loop_whose_length_depends_on_data(self, count: int | None) -> None:
        found = read_model(self.loop(count))
        assert found.nodes[0].bodies["body"].repeats is None
        assert found.tensors["all"].assumed

    def test_an_if_reads_what_its_branches_read(self) -> None:
        def branch(name: str, *nodes: onnx.NodeProto) -> onnx.GraphProto:
            return helper.make_graph(
                list(nodes), name, [], [helper.make_tensor_value_info("r", TensorProto.FLOAT, None)]
            )

        made = model(
            [
                node("Relu", ["x"], ["h"]),
                node(
                    "If",
                    ["c"],
                    ["y"],
                    then_branch=branch("then", node("Add", ["h", "w"], ["r"])),
                    else_branch=branch("else", node("Concat", ["h", "h"], ["r"], axis=0)),
                ),
            ],
            {"x": [3], "c": []},
            ["y"],
            [weight("w", 3)],
            elements={"c": TensorProto.BOOL},
        )
        found = read_model(made)
        assert found.nodes[1].reads == ("c", "h")
        assert found.nodes[1].constants == ("w",)
        assert found.tensors["y"].shape == (6,)
        assert found.tensors["y"].assumed  # the branches have different shapes

    def test_a_size_in_a_branch_that_depends_on_data(self) -> None:
        def branch(name: str) -> onnx.GraphProto:
            nodes = [node("NonZero", ["x"], [f"{name}r"])]
            return helper.make_graph(
                nodes, name, [], [helper.make_tensor_value_info(f"{name}r", TensorProto.INT64, None)]
            )

        choice = node("If", ["c"], ["y"], then_branch=branch("then"), else_branch=branch("else"))
        found = read_model(model([choice], {"x": [3], "c": []}, ["y"], elements={"c": TensorProto.BOOL}))
        assert found.tensors["y"].shape == (1, 3)
        assert found.tensors["y"].assumed


@pytest.fixture(scope="module")
def corpus() -> list[onnx.backend.test.case.test_case.TestCase]:
    """The models by which the onnx package tests its operators, with inputs and outputs."""
    from onnx.backend.test.loader import load_node_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_node_model_tests()


def test_inferred_shapes_are_those_of_the_outputs(corpus: list[onnx.backend.test.case.test_case.TestCase]) -> None:
    """Every shape that is not assumed is that of the expected output."""
    compared = 0
    refused: list[str] = []
    for case in corpus:
        try:
            found = read_model(case.model)
        except DocumentError as error:
            refused.append(str(error))
            continue
        for name, value in zip(found.outputs, case.data_sets[0][1], strict=True):
            tensor = found.tensors[name]
            if isinstance(value, np.ndarray) and not tensor.assumed:
                assert tensor.shape == value.shape, case.name
                compared += 1
    assert compared > 1800
    assert all("dimensions are unknown" in text or "nothing to place" in text for text in refused)


def test_the_operators_of_the_standard_can_be_imported(corpus: list[onnx.backend.test.case.test_case.TestCase]) -> None:
    """Models become problems, up to four for each set of operators; most operators have rules for their costs."""
    imported, guessed, seen = 0, set(), Counter[frozenset[str]]()
    for case in corpus:
        ops = frozenset(each.op_type for each in case.model.graph.node)
        seen[ops] += 1
        if seen[ops] > 4:
            continue
        try:
            found = po.from_onnx(case.model)
        except DocumentError:
            continue  # the test of inferred shapes checks the reasons
        imported += 1
        assert all(task["bytes"] >= 0 for task in found.document["tasks"].values())
        if any("no rule covers" in note for note in found.notes) and len(ops) == 1:
            guessed |= ops
    assert imported > 800
    standard = {schema.name for schema in defs.get_all_schemas() if schema.domain == ""}
    assert len(standard & frozenset().union(*seen)) > 180
    assert len(standard & guessed) < 25
