"""Models of ai.onnx.ml, as scikit-learn and LightGBM make them: imported, exported, run; a quantised LSTM."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import placeopt as po

onnx = pytest.importorskip("onnx", reason="pip install 'placeopt[onnxruntime]'")

from commandline import run  # noqa: E402
from onnx_graphs import node, weight  # noqa: E402

from placeopt.bridges.importers.onnx_model import from_onnx  # noqa: E402
from placeopt.bridges.onnx_models import read_model  # noqa: E402

ROWS, FEATURES, TREES = 8, 3, 5
LEAVES = 4


def trees(scores: str) -> dict[str, Any]:
    """The attributes of balanced trees of 3 comparisons and 4 leaves; `scores` is `class` or `target`."""
    structure = [(0, 1, 2, "BRANCH_LEQ"), (1, 3, 4, "BRANCH_LEQ"), (2, 5, 6, "BRANCH_LEQ")]
    structure += [(leaf, 0, 0, "LEAF") for leaf in range(3, 7)]
    every = [(tree, *entry) for tree in range(TREES) for entry in structure]
    leaves = [(tree, leaf) for tree in range(TREES) for leaf in range(3, 7)]
    return {
        "nodes_treeids": [tree for tree, *_ in every],
        "nodes_nodeids": [number for _, number, *_ in every],
        "nodes_truenodeids": [true for _, _, true, *_ in every],
        "nodes_falsenodeids": [false for *_, false, _ in every],
        "nodes_modes": [mode for *_, mode in every],
        "nodes_featureids": [(tree + number) % FEATURES for tree, number, *_ in every],
        "nodes_values": [0.1 + 0.1 * number for _, number, *_ in every],
        f"{scores}_treeids": [tree for tree, _ in leaves],
        f"{scores}_nodeids": [leaf for _, leaf in leaves],
        f"{scores}_ids": [(tree + leaf) % 2 for tree, leaf in leaves],
        f"{scores}_weights": [0.05 * leaf / TREES for _, leaf in leaves],
    }


def saved(folder: Path, nodes: list[Any], outputs: list[Any]) -> Path:
    from onnx import TensorProto, helper

    rows = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, FEATURES])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    made = helper.make_model(helper.make_graph(nodes, "g", [rows], outputs), ir_version=8, opset_imports=imports)
    path = folder / "trees.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def classifier(folder: Path, *, texts: bool = False) -> Path:
    """Two forests, the mean of their scores, and a ZipMap: labels, and a map from classes to scores for each row."""
    from onnx import TensorProto, helper

    labels: dict[str, Any] = {"classlabels_strings": ["no", "yes"]} if texts else {"classlabels_int64s": [0, 1]}
    ml = {"domain": "ai.onnx.ml", **labels}
    nodes = [
        node("TreeEnsembleClassifier", ["x"], ["label", "scores"], name="a", **trees("class"), **ml),
        node("TreeEnsembleClassifier", ["x"], ["unused", "others"], name="b", **trees("class"), **ml),
        node("Mean", ["scores", "others"], ["mean"], name="mean"),
        node("ZipMap", ["mean"], ["probabilities"], name="zip", **ml),
        node("Identity", ["label"], ["chosen"], name="labels"),
    ]
    keys = TensorProto.STRING if texts else TensorProto.INT64
    score = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(keys, score))
    outputs = [helper.make_tensor_value_info("chosen", keys, [None]), helper.make_value_info("probabilities", maps)]
    return saved(folder, nodes, outputs)


def regressor(folder: Path) -> Path:
    from onnx import TensorProto, helper

    nodes = [
        node("TreeEnsembleRegressor", ["x"], ["y"], name="a", domain="ai.onnx.ml", n_targets=2, **trees("target")),
        node("Scaler", ["y"], ["z"], name="s", domain="ai.onnx.ml", offset=[0.0, 1.0], scale=[2.0, 3.0]),
        node("LinearRegressor", ["z"], ["w"], name="l", domain="ai.onnx.ml", coefficients=[1.0, 2.0]),
    ]
    return saved(folder, nodes, [helper.make_tensor_value_info("w", TensorProto.FLOAT, [None, 1])])


def split_plan(problem: po.Problem) -> Any:
    """A plan that moves to the other device from each group of colocated tasks to the next one."""
    first: dict[int, int] = {}
    for index, group in enumerate(problem.group.tolist()):
        first.setdefault(group if group >= 0 else -2 - index, len(first) % 2)
    return po.simulate(problem, [first[g if g >= 0 else -2 - i] for i, g in enumerate(problem.group.tolist())])


def test_sizes_and_costs_of_trees(tmp_path: Path) -> None:
    path = classifier(tmp_path)
    model = read_model(path, batch=ROWS)
    found = {name: (model.tensors[name].element, model.tensors[name].shape) for name in ("label", "scores", "mean")}
    assert found == {"label": ("int64", (ROWS,)), "scores": ("float", (ROWS, 2)), "mean": ("float", (ROWS, 2))}
    (tmp_path / "texts").mkdir()
    assert read_model(classifier(tmp_path / "texts", texts=True), batch=ROWS).tensors["label"].element == "string"
    imported = from_onnx(path, batch=ROWS)
    tasks = imported.document["tasks"]
    assert tasks["a"]["flops"] == ROWS * TREES * (2 + 1)  # two levels, and the sum of the leaves
    assert tasks["a"]["memory"]["resident"] > TREES * (7 * (5 * 8 + 4) + LEAVES * (3 * 8 + 4))
    assert not any("colocate" in task for task in tasks.values())
    assert not any("no rule" in note for note in imported.notes), imported.notes

    regressed = read_model(regressor(tmp_path), batch=ROWS)
    assert [regressed.tensors[name].shape for name in "yzw"] == [(ROWS, 2), (ROWS, 2), (ROWS, 1)]


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("probabilities", [False, True])
def test_support_vectors_have_the_sizes_of_the_runtime(tmp_path: Path, classes: int, probabilities: bool) -> None:
    """Without probabilities, there is a score for each pair of more than two classes."""
    import numpy as np
    from onnx import TensorProto, helper

    runtime = pytest.importorskip("onnxruntime", reason="pip install 'placeopt[onnxruntime]'")
    pairs, vectors = classes * (classes - 1) // 2, 5 * classes
    values = np.random.default_rng(0).random(vectors * FEATURES)
    curves = {"prob_a": [-1.0] * pairs, "prob_b": [0.1] * pairs} if probabilities else {}
    machine = node(
        "SVMClassifier", ["x"], ["label", "scores"], name="svm", domain="ai.onnx.ml", kernel_type="RBF",
        kernel_params=[0.5, 0.0, 3.0], support_vectors=values, vectors_per_class=[5] * classes, rho=[0.1] * pairs,
        coefficients=values[: vectors * (classes - 1)], classlabels_ints=range(classes), **curves,
    )  # fmt: skip
    outputs = [
        helper.make_tensor_value_info("label", TensorProto.INT64, None),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, None),
    ]
    path = saved(tmp_path, [machine], outputs)
    found = read_model(path, batch=ROWS).tensors
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    results = session.run(None, {"x": np.ones((ROWS, FEATURES), np.float32)})
    for name, value in zip(("label", "scores"), results, strict=True):
        assert (found[name].shape, found[name].bytes, found[name].assumed) == (value.shape, value.nbytes, False)
    imported = from_onnx(path, batch=ROWS)
    kernel = 3 * FEATURES + 22 + 1  # squared distances, and an exponential
    products = 2 * vectors * (classes - 1)
    assert imported.document["tasks"]["svm"]["flops"] == ROWS * (vectors * kernel + products)
    assert not any("no rule" in note for note in imported.notes), imported.notes


def test_operators_that_exchange_sequences_are_colocated(tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    nodes = [
        node("Relu", ["x"], ["r"], name="r"),
        node("SequenceConstruct", ["r", "x"], ["s"], name="s"),
        node("ConcatFromSequence", ["s"], ["y"], name="y", axis=0),
        node("Neg", ["y"], ["z"], name="z"),
    ]
    path = saved(tmp_path, nodes, [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)])
    imported = from_onnx(path, batch=ROWS)
    labels = {name: task.get("colocate") for name, task in imported.document["tasks"].items()}
    assert labels == {"r": None, "s": "s", "y": "s", "z": None}
    assert any("(s) are sequences or maps" in note for note in imported.notes), imported.notes


@pytest.mark.skipif(os.name != "posix", reason="workers inherit connected sockets")
@pytest.mark.parametrize("kind", ["integers", "texts", "regression"])
def test_trees_are_exported_and_run_on_two_devices(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("onnxruntime", reason="pip install 'placeopt[onnxruntime]'")
    path = regressor(tmp_path) if kind == "regression" else classifier(tmp_path, texts=kind == "texts")
    problem = po.compile(from_onnx(path, batch=ROWS).document)
    plan = split_plan(problem)
    report = po.run_onnx(problem, plan, path, batch=ROWS, runs=1, warmup=0)
    assert report.equal
    assert len(set(report.segment_device.tolist())) == 2
    keys = {"integers": "01", "texts": ["no", "yes"], "regression": ()}[kind]
    expected = [f"probabilities[{key}]" for key in keys]
    assert [each.output for each in report.differences] == (["chosen", *expected] if expected else ["w"])


def test_the_command_exports_segments_with_their_domains(tmp_path: Path) -> None:
    path = classifier(tmp_path)
    problem, plan = tmp_path / "problem.yaml", tmp_path / "plan.json"
    run("import", str(path), "--batch", str(ROWS), "--out", str(problem))
    po.write_plan(plan, po.plan_document(po.load(problem), split_plan(po.load(problem))))
    folder = tmp_path / "out"
    run("export", str(problem), str(plan), "--to", "onnxruntime", "--model", str(path), "--batch", str(ROWS),
        "--out", str(folder))  # fmt: skip
    manifest = json.loads((folder / "manifest.json").read_text())
    assert len(manifest["segments"]) > 1
    for segment in manifest["segments"]:
        model = onnx.load(folder / segment["file"])
        onnx.checker.check_model(model)
        used = {each.domain for each in model.graph.node}
        assert used <= {each.domain for each in model.opset_import}


def test_a_quantised_lstm_has_known_sizes() -> None:
    from onnx import TensorProto, helper

    steps, batch, inputs, hidden = 7, 2, 5, 6
    weights = [
        weight("w", 1, inputs, 4 * hidden, element=TensorProto.INT8),
        weight("r", 1, hidden, 4 * hidden, element=TensorProto.INT8),
        *(weight(name, 1) for name in ("ws", "rs")),
        *(weight(name, 1, element=TensorProto.INT8) for name in ("wz", "rz")),
    ]
    lstm = node(
        "DynamicQuantizeLSTM", ["x", "w", "r", "", "", "", "", "", "ws", "wz", "rs", "rz"], ["y", "h", "c"],
        name="lstm", domain="com.microsoft", hidden_size=hidden, direction="forward",
    )  # fmt: skip
    graph = helper.make_graph(
        [lstm, node("Relu", ["y"], ["z"]), node("Add", ["h", "c"], ["s"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, batch, inputs])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "zs"],
        weights,
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, ir_version=8, opset_imports=imports)
    found = read_model(model).tensors
    assert [found[name].shape for name in "zs"] == [(steps, 1, batch, hidden), (1, batch, hidden)]
    assert not any(found[name].assumed for name in "yhczs")
    assert from_onnx(model).document["tasks"]["lstm"]["flops"] >= steps * batch * 2 * 4 * hidden * (inputs + hidden)


def test_a_model_for_onnxruntime_states_the_types_that_inference_lacks(tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    nodes = [
        node("Sin", ["x"], ["s"], name="sin"),
        node("Odd", ["s"], ["o"], name="odd", domain="my.own"),
        node("Concat", ["o", "s"], ["y"], name="join", axis=0),
        node("Cos", ["y"], ["z"], name="cos"),
    ]
    rows = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    result = helper.make_tensor_value_info("z", TensorProto.FLOAT, [4, 3])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("my.own", 1)]
    made = helper.make_model(helper.make_graph(nodes, "g", [rows], [result]), ir_version=8, opset_imports=imports)
    path = tmp_path / "odd.onnx"
    path.write_bytes(made.SerializeToString())
    message = r"value_info: the type of 2 tensors \(o, y\) is unknown, so no segment of onnxruntime can end there"
    with pytest.raises(po.DocumentError, match=message):
        from_onnx(path, target="onnxruntime")
    made.graph.value_info.append(helper.make_tensor_value_info("o", TensorProto.FLOAT, None))
    path.write_bytes(made.SerializeToString())
    problem, plan = tmp_path / "problem.yaml", tmp_path / "plan.json"
    assert run("import", str(path), "--for", "onnxruntime", "--out", str(problem)).code == 0
    po.write_plan(plan, po.plan_document(po.load(problem), split_plan(po.load(problem))))
    export = ("--to", "onnxruntime", "--model", str(path), "--out", str(tmp_path / "out"))
    assert run("export", str(problem), str(plan), *export).code == 0
    with pytest.raises(po.UsageError, match="device-map is not a runtime of this import; expected onnxruntime"):
        from_onnx(path, target="device-map")
