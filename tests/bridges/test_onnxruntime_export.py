"""Models of segments: run in this process, in topological order, their outputs are those of the whole model."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.bridges.exporters.exported import ExportRequest
from placeopt.bridges.exporters.onnxruntime import export_segments, export_session, provider_of
from placeopt.bridges.hardware import Device

onnx = pytest.importorskip("onnx", reason="pip install 'placeopt[onnxruntime]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="pip install 'placeopt[onnxruntime]'")

from commandline import run  # noqa: E402
from onnx_cases import hand_made, inputs_of, light_model, problem_of  # noqa: E402

from placeopt.bridges.onnx_models import read_model  # noqa: E402
from placeopt.bridges.onnx_models.submodels import Writer  # noqa: E402
from placeopt.bridges.running.tensors import difference, random_inputs  # noqa: E402
from placeopt.io.formats.documents import to_yaml  # noqa: E402
from placeopt.model.documents import problem_document  # noqa: E402

CASES = hand_made()
SHARED = "weights that several nodes read, one of them also an input"


def save(name: str, path: Path, **options: Any) -> None:
    """Save a hand-made model; `onnx.save` changes a model whose weights become external."""
    copy = onnx.ModelProto()
    copy.CopyFrom(CASES[name])
    onnx.save(copy, path, **options)


def session(path: Path, **entries: str) -> Any:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def manifest_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "manifest.json").read_text())


def run_segments(folder: Path, inputs: dict[str, Any]) -> dict[str, Any]:
    """The outputs of an exported folder, from its manifest alone."""
    manifest = manifest_of(folder)
    values = dict(inputs)
    for segment in manifest["segments"]:
        names = [each["name"] for each in segment["outputs"]]
        feed = {each["name"]: values[each["name"]] for each in segment["inputs"]}
        for each, value in zip(segment["outputs"], session(folder / segment["file"]).run(names, feed), strict=True):
            array = np.asarray(value)
            assert each["shape"] is None or list(array.shape) == each["shape"]
            values[each["name"]] = value
    return {each["name"]: values[each["name"]] for each in manifest["outputs"]}


def check_export(
    model: Path, problem: po.Problem, schedule: po.Schedule, folder: Path, expected: dict[str, Any]
) -> None:
    """Export a plan and check that its segments compute the outputs of the whole model."""
    folder.mkdir()
    export_segments(ExportRequest(problem, schedule, model), folder)
    manifest = manifest_of(folder)
    tasks = [task for segment in manifest["segments"] for task in segment["tasks"]]
    assert sorted(tasks) == sorted(problem.task_names)
    number = {name: i for i, name in enumerate(problem.task_names)}
    for segment in manifest["segments"]:
        onnx.checker.check_model(folder / segment["file"])
        assert {int(schedule.device[number[t]]) for t in segment["tasks"]} == {
            problem.device_names.index(segment["device"])
        }
        assert all(source < segment["segment"] for source in segment["after"])
    found = run_segments(folder, random_inputs(inputs_of(read_model(model)), 1))
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert difference(name, found[name], value).relative <= 1e-6, name


def outputs_of(model: Path) -> dict[str, Any]:
    whole = session(model)
    inputs = random_inputs(inputs_of(read_model(model)), 1)
    names = [each.name for each in whole.get_outputs()]
    return dict(zip(names, whole.run(names, inputs), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_hand_made_models(name: str, tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    save(name, model)
    onnx.checker.check_model(model)
    problem = problem_of(model, 3)
    expected = outputs_of(model)
    random = np.random.default_rng(0)
    for k in range(8):
        schedule = po.simulate(problem, random.integers(0, 3, problem.n_tasks))
        check_export(model, problem, schedule, tmp_path / str(k), expected)


@pytest.mark.parametrize(("name", "placements"), [("squeezenet", 10), ("shufflenet", 3), ("resnet50", 1)])
def test_light_models_at_random_placements(name: str, placements: int, tmp_path: Path) -> None:
    """benchmarks/onnx_bridges.py checks all light models with 50 placements each."""
    model = light_model(name)
    problem = problem_of(model)
    expected = outputs_of(model)
    random = np.random.default_rng(0)
    for k in range(placements):
        schedule = po.simulate(problem, random.integers(0, 2, problem.n_tasks))
        check_export(model, problem, schedule, tmp_path / str(k), expected)


def test_the_manifest_states_order_devices_tensors_and_times(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    save(SHARED, model)
    problem = problem_of(model)
    schedule = po.simulate(problem, [0, 0, 1, 0, 0])
    (tmp_path / "out").mkdir()
    exported = export_segments(ExportRequest(problem, schedule, model), tmp_path / "out")
    manifest = manifest_of(tmp_path / "out")
    first, second, third = manifest["segments"]
    assert [each["file"] for each in manifest["segments"]] == [f"segment-00{k}.onnx" for k in range(3)]
    assert (first["device"], first["position"], first["after"]) == ("cpu0", 0, [])
    assert (third["device"], third["position"], third["after"]) == ("cpu0", 1, [1])
    assert second["inputs"] == [{"name": "b", "type": "float", "shape": [4, 8], "bytes": 128, "from": 0}]
    assert second["outputs"] == [{"name": "c", "type": "float", "shape": [4, 8], "bytes": 128, "to": [2]}]
    assert [(each["start"], each["end"]) for each in manifest["segments"]] == [(0, 2e-6), (2e-6, 3e-6), (3e-6, 5e-6)]
    assert manifest["inputs"] == [{"name": "x", "type": "float", "shape": [4, 8], "bytes": 128, "to": [0]}]
    assert manifest["outputs"] == [{"name": "y", "type": "float", "shape": [4, 8], "bytes": 128, "from": 2}]
    assert manifest["devices"][0] == {"name": "cpu0", "type": "cpu", "provider": "CPUExecutionProvider"}
    assert manifest["problem"]["fingerprint"] == problem.fingerprint()
    assert manifest["duplicated_weight_bytes"] == 256  # w, 8 x 8 floats, in two segments
    assert "256 B more than in the model" in exported.notes[0]
    assert exported.text.startswith("3 segments on 2 devices, 2 tensors between segments")


def test_external_weights_are_copied_to_the_segments_that_read_them(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    model = source / "model.onnx"
    save(SHARED, model, save_as_external_data=True, location="weights.bin", size_threshold=0)
    expected = outputs_of(model)
    problem = problem_of(model)
    schedule = po.simulate(problem, [0, 0, 1, 0, 0])
    check_export(model, problem, schedule, tmp_path / "out", expected)
    data = {path.name: path.stat().st_size for path in (tmp_path / "out").glob("*.data")}
    assert data["segment-000.onnx.data"] == 256
    assert data["segment-001.onnx.data"] == 256


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"length": "100"}, "it states 100 bytes, and the weight has 256"),
        ({"location": "short.bin", "length": None}, "ends 2[0-9]{2} bytes early"),
        ({"location": "../weights.bin"}, "must be in the folder of the model"),
        ({"location": "missing.bin"}, "No such file"),
        ({"location": "pipe"}, "it is not a file"),
        ({"location": "short.bin"}, "ends 2[0-9]{2} bytes early"),
    ],
)
def test_external_weights_that_cannot_be_read(changed: dict[str, str | None], message: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    model = source / "model.onnx"
    save(SHARED, model, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").write_bytes((source / "weights.bin").read_bytes())
    (source / "short.bin").write_bytes(b"1234")
    os.mkfifo(source / "pipe")
    made = onnx.load(model, load_external_data=False)
    for tensor in made.graph.initializer:
        stated = {entry.key: entry.value for entry in tensor.external_data} | changed
        del tensor.external_data[:]
        for key, value in stated.items():
            if value is not None:
                tensor.external_data.add(key=key, value=value)
    model.write_bytes(made.SerializeToString())
    problem = problem_of(model)
    (tmp_path / "out").mkdir()
    request = ExportRequest(problem, po.simulate(problem, [0] * 5), model)
    with pytest.raises(po.DocumentError, match=message):
        export_segments(request, tmp_path / "out")


def test_a_function_that_calls_itself(tmp_path: Path) -> None:
    from onnx import helper

    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    call = helper.make_node("F", ["x"], ["y"], domain="own")
    value = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    result = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    made = helper.make_model(
        helper.make_graph([call], "g", [value], [result]),
        functions=[helper.make_function("own", "F", ["x"], ["y"], [call], opsets)],
        opset_imports=opsets,
        ir_version=9,
    )
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(po.DocumentError, match=r"model\.onnx: the functions of the model cannot be inlined"):
        Writer(tmp_path / "model.onnx")


def test_the_dimensions_of_the_import_hold(tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "length"]) for name in "xy"]
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["y"])]
    made = helper.make_model(helper.make_graph(nodes, "g", value[:1], value[1:]), ir_version=9)
    model = tmp_path / "model.onnx"
    onnx.save(made, model)
    problem = po.compile(po.from_onnx(model, batch=3, dims={"length": 5}).document)
    (tmp_path / "out").mkdir()
    schedule = po.simulate(problem, [0, 1])
    for sizes in ({"batch": 3, "dims": {"length": 5}}, {}):  # by default those that the source of the problem states
        export_segments(ExportRequest(problem, schedule, model, **sizes), tmp_path / "out")
        assert manifest_of(tmp_path / "out")["segments"][1]["inputs"][0]["shape"] == [3, 5]
    elsewhere = po.compile({**problem.to_document(), "source": "by hand, batch of 3"})
    with pytest.raises(po.DocumentError, match="the sizes of these dimensions are unknown: batch, length"):
        export_segments(ExportRequest(elsewhere, schedule, model), tmp_path / "out")


def test_a_model_of_another_problem(tmp_path: Path) -> None:
    problem = problem_of(light_model("squeezenet"))
    request = ExportRequest(problem, po.simulate(problem, [0] * problem.n_tasks), light_model("vgg19"))
    message = r"light_vgg19.onnx is not the model of the problem: it has no nodes for 20 tasks \(n46, n47, "
    with pytest.raises(po.UsageError, match=message):
        export_segments(request, tmp_path)


def test_a_problem_without_an_edge_of_the_model(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    save("several outputs of a node", model)
    full = problem_of(model)
    problem = po.build_problem(
        task_names=full.task_names, device_names=full.device_names, duration=full.duration, edges=[(0, 1)]
    )
    request = ExportRequest(problem, po.simulate(problem, [0, 0, 1, 0]), model)
    with pytest.raises(po.UsageError, match="the problem lacks the edge Split_a -> Exp_d, on which the model moves b"):
        export_segments(request, tmp_path)


def typed(model: Path) -> po.Problem:
    """A problem with a CPU and two GPUs."""
    base = problem_of(model, 3)
    return po.build_problem(
        task_names=base.task_names,
        device_names=["cpu", "gpu0", "gpu1"],
        device_types=["cpu", "gpu", "gpu"],
        duration=base.duration,
        edges=np.column_stack((base.edge_source, base.edge_target)),
    )


def test_one_session_with_annotated_nodes(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    save("folded chains that several nodes read", model)
    problem = typed(model)
    device = [0, 2, 0, 2]
    out = tmp_path / "out"
    out.mkdir()
    exported = export_session(ExportRequest(problem, po.simulate(problem, device), model), out)
    onnx.checker.check_model(out / "model.onnx")
    options = json.loads((out / "session.json").read_text())
    assert options["providers"] == ["CUDAExecutionProvider", "CPUExecutionProvider"]
    entries = options["session_config_entries"]
    assert entries["session.layer_assignment_settings"] == "cpu(=device0);cuda(=device2)"
    annotated = {
        node.name: next(entry.value for entry in node.metadata_props if entry.key == "layer_ann")
        for node in onnx.load(out / "model.onnx").graph.node
        if node.name
    }
    assert annotated == {
        name: options["devices"][problem.device_names[d]]["annotation"]
        for name, d in zip(problem.task_names, device, strict=True)
    }
    assert "gpu1 on CUDAExecutionProvider" in exported.text
    # Without a GPU, all nodes run on the CPU; the runtime accepts the model and the settings.
    entries["session.layer_assignment_settings"] = "cpu(=device0);CPUExecutionProvider(=device2)"
    single = session(out / "model.onnx", **entries)
    found = dict(zip(["y"], single.run(["y"], random_inputs(inputs_of(read_model(model)), 1)), strict=True))
    assert difference("y", found["y"], outputs_of(model)["y"]).relative <= 1e-6
    if hasattr(single, "get_provider_graph_assignment_info"):
        assigned = [node.name for part in single.get_provider_graph_assignment_info() for node in part.get_nodes()]
        assert set(problem.task_names) <= set(assigned)


def test_two_devices_of_one_provider_need_segments(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    save("nodes without names", model)
    problem = typed(model)
    schedule = po.simulate(problem, [1, 2, 0, 1])
    with pytest.raises(po.UsageError, match="gpu0, gpu1 share CUDAExecutionProvider, and a session has one instance"):
        export_session(ExportRequest(problem, schedule, model), tmp_path)
    stated = {"gpu1": "OpenVINOExecutionProvider"}
    out = tmp_path / "out"
    out.mkdir()
    export_session(ExportRequest(problem, schedule, model, providers=stated), out)
    settings = json.loads((out / "session.json").read_text())["session_config_entries"]
    assert settings["session.layer_assignment_settings"] == (
        "cpu(=device0);cuda(=device1);OpenVINOExecutionProvider(=device2)"
    )


@pytest.mark.parametrize(
    ("providers", "message"),
    [
        ({}, "no execution provider is known for the device tpu; state --provider tpu=NAME"),
        ({"gpu": "X"}, "--provider gpu: the problem has no such device or type"),
        ({"tpu": "a(b)"}, r"--provider tpu=a\(b\): expected an execution provider, such as CUDAExecutionProvider"),
        ({"tpu": "cuda:0"}, "--provider tpu=cuda:0: expected an execution provider"),
    ],
)
def test_devices_without_a_provider(providers: dict[str, str], message: str, tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    save("nodes without names", model)
    base = problem_of(model, 1)
    problem = po.build_problem(
        task_names=base.task_names,
        device_names=["tpu"],
        duration=base.duration,
        edges=np.column_stack((base.edge_source, base.edge_target)),
    )
    request = ExportRequest(problem, po.simulate(problem, [0] * 4), model, providers=providers)
    with pytest.raises(po.UsageError, match=message):
        export_session(request, tmp_path)


def test_values_other_than_tensors_cross_with_their_type(tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    node = helper.make_node
    nodes = [node("SequenceConstruct", ["x", "x"], ["s"]), node("ConcatFromSequence", ["s"], ["y"], axis=0)]
    made = helper.make_model(
        helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
        ),
        ir_version=9,
        opset_imports=[helper.make_opsetid("", 17)],
    )
    model = tmp_path / "model.onnx"
    onnx.save(made, model)
    problem = problem_of(model)
    (tmp_path / "out").mkdir()
    export_segments(ExportRequest(problem, po.simulate(problem, [0, 1]), model), tmp_path / "out")
    found = run_segments(tmp_path / "out", {"x": np.float32([1, 2])})
    assert found["y"].tolist() == [1, 2, 1, 2]


@pytest.mark.parametrize(
    ("name", "kind", "provider"),
    [
        ("gpu0", "gpu", "CUDAExecutionProvider"),
        ("big", "h100-sxm", "CUDAExecutionProvider"),
        ("xeon-core1", "xeon-core", "CPUExecutionProvider"),
        ("Worker", "CPU", "CPUExecutionProvider"),
        ("mi300x-0", "accelerator", "MIGraphXExecutionProvider"),
        ("npu", "npu", "QNNExecutionProvider"),
        ("tpu", "tpu", None),
    ],
)
def test_providers_by_the_words_of_a_name(name: str, kind: str, provider: str | None) -> None:
    assert provider_of(Device(name, kind), {}) == provider
    assert provider_of(Device(name, kind), {kind: "A", name: "B"}) == "B"


@pytest.mark.parametrize("name", po.device_names())
def test_gpus_of_the_catalogue_have_the_provider_of_their_vendor(name: str) -> None:
    vendors = {"NVIDIA": "CUDAExecutionProvider", "AMD Instinct": "MIGraphXExecutionProvider"}
    title = po.device_info(name).title
    for vendor, provider in vendors.items():
        if title.startswith(vendor):
            assert provider_of(Device(name, name), {}) == provider
    if name.endswith("-core") or name.startswith("raspberry-pi"):
        assert provider_of(Device(name, name), {}) == "CPUExecutionProvider"


def test_a_tensor_of_unknown_rank_between_segments(tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    def value(name: str, *shape: int, kind: int = TensorProto.FLOAT) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    flat = helper.make_tensor("flat", TensorProto.INT64, [1], [6])
    same = helper.make_graph([helper.make_node("Neg", ["a"], ["n"])], "same", [], [value("n", 2, 3)])
    other = helper.make_graph([helper.make_node("Reshape", ["a", "flat"], ["r"])], "other", [], [value("r", 6)])
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("If", ["c"], ["b"], then_branch=same, else_branch=other),
        helper.make_node("Reshape", ["b", "flat"], ["y"]),
    ]
    inputs = [value("x", 2, 3), value("c", kind=TensorProto.BOOL)]
    graph = helper.make_graph(nodes, "choice", inputs, [value("y", 6)], [flat])
    model, out = tmp_path / "model.onnx", tmp_path / "out"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), model)
    onnx.checker.check_model(model)
    problem = problem_of(model)
    schedule = po.simulate(problem, [0, 1, 0])
    out.mkdir()
    assert export_segments(ExportRequest(problem, schedule, model), out).notes[-1] == (
        "the rank of b depends on data: ONNX Runtime runs these segments, but the checker of onnx rejects them"
    )
    with pytest.raises(onnx.checker.ValidationError, match="Field 'shape' of 'type' is required"):
        onnx.checker.check_model(out / "segment-001.onnx")
    for condition in (True, False):
        given = {"x": np.ones((2, 3), np.float32), "c": np.array(condition)}
        assert po.run_onnx(problem, schedule, model, runs=1, inputs=given).equal


def test_the_command(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    save(SHARED, model)
    problem = problem_of(model)
    (tmp_path / "problem.yaml").write_text(to_yaml(problem_document(problem)))
    schedule = po.simulate(problem, [0, 0, 1, 0, 0])
    po.write_plan(tmp_path / "plan.json", po.plan_document(problem, schedule, solver="by-hand"))
    command = ("export", tmp_path / "problem.yaml", tmp_path / "plan.json", "--model", model)
    done = run(*command, "--to", "onnxruntime", "--out", tmp_path / "out", "--provider", "cpu1=DnnlExecutionProvider")
    assert done.code == 0, done.err
    assert "3 segments on 2 devices" in done.out
    assert "note: weights that several segments read are present in each of them: 256 B" in done.err
    assert run(*command, "--to", "onnxruntime", "--out", tmp_path / "few", "--few-segments").code == 0
    devices = manifest_of(tmp_path / "out")["devices"]
    assert [each["provider"] for each in devices] == ["CPUExecutionProvider", "DnnlExecutionProvider"]
    for options, message in {
        ("--to", "onnxruntime"): "writes several files; state the folder with --out",
        ("--to", "onnxruntime", "--out", tmp_path / "out"): "the folder is not empty",
        ("--to", "onnxruntime", "--out", tmp_path / "x", "--provider", "a=b"): "--provider a: the problem has no such",
        ("--to", "onnxruntime", "--out", tmp_path / "x", "--provider", "cpu0"): "expected DEVICE=NAME, such as gpu0=C",
        ("--to", "onnxruntime", "--out", tmp_path / "x", "--provider", "cpu0=CPU"): "expected an execution provider",
        (
            "--to",
            "onnxruntime-session",
            "--out",
            tmp_path / "x",
            "--few-segments",
        ): "--to onnxruntime-session takes no --few-segments; formats with it are onnxruntime",
        ("--to", "onnxruntime-session", "--out", tmp_path / "x"): "cpu0, cpu1 share CPUExecutionProvider",
    }.items():
        done = run(*command, *options)
        assert done.code == 2
        assert message in done.err
    assert not (tmp_path / "x").exists()
