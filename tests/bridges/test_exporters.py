"""Exports of plans: affinities of OpenVINO, node data of Model Explorer, DOT; and every format is documented."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import run

import placeopt as po
from placeopt.bridges.exporters import dot, model_explorer, openvino, table
from placeopt.bridges.exporters.exported import ExportRequest
from placeopt.bridges.exporters.registry import EXPORTERS
from placeopt.bridges.importers.registry import IMPORTERS, import_file
from placeopt.errors import UsageError
from placeopt.io.compiler import compile_spec

ROOT = Path(__file__).parents[2]
NEEDS_OPENVINO = "pip install openvino"
RATES = {"speed": "50 GFLOP/s", "memory_bandwidth": "10 GB/s"}


def request(document: dict[str, Any], device: list[int], start: list[int], **options: Any) -> ExportRequest:
    problem = po.compile(document)
    schedule = po.Schedule(np.array(device), np.array(start))
    return ExportRequest(problem, schedule, **options)


DIAMOND = {
    "placeopt": 1,
    "name": 'dia"mond\\',
    "resolution": "1 us",
    "devices": {"cpu": {"count": 2}, "gpu": {}},
    "links": {"default": {"bandwidth": "1 GB/s"}},
    "tasks": {
        "load\\": {"time": "30 us", "output": "4 kB"},
        'a "b" &lt;': {"time": "7 us", "after": "load\\", "output": "2 kB"},
        "x:y": {"time": "5 us", "after": "load\\"},
        "änd\n": {"time": "1 us", "after": ['a "b" &lt;', "x:y"]},
    },
}
PLAN = ([0, 0, 2, 2], [0, 30, 34, 39])


@pytest.mark.parametrize("format", EXPORTERS)
def test_every_export_format_is_documented(format: str) -> None:
    table = (ROOT / "docs" / "runtimes.md").read_text(encoding="utf-8")
    assert f"| `{format}` |" in table
    pages = (page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md")))
    assert any(re.search(rf"--to {re.escape(format)}\b(?!-)", page) for page in pages)
    exporter = EXPORTERS[format]
    assert (exporter.text is None) != (exporter.folder is None)
    assert format in run("export").out


@pytest.mark.parametrize("format", IMPORTERS)
def test_every_import_format_is_documented(format: str) -> None:
    page = (ROOT / "docs" / "import.md").read_text(encoding="utf-8")
    assert re.search(rf"^#+ .*\b{format}\b|`{format}`", page, re.MULTILINE | re.IGNORECASE)
    assert format in run("import").out


class TestDot:
    def text(self) -> str:
        return dot.export(request(DIAMOND, *PLAN)).text

    @pytest.mark.filterwarnings("ignore")  # of pydot
    def test_pydot_reads_the_graph_again(self) -> None:
        pydot = pytest.importorskip("pydot", reason="pip install pydot")
        (graph,) = pydot.graph_from_dot_data(self.text())
        nodes = {node.get_name(): node.get_attributes() for node in graph.get_nodes()}
        names = [name for name in nodes if name not in ("node", "edge", "graph")]
        assert names == ['"load\\\\"', '"a \\"b\\" &lt;"', '"x:y"', '"änd\n"']
        assert [nodes[name]["device"] for name in names] == ['"cpu0"', '"cpu0"', '"gpu"', '"gpu"']
        assert [nodes[name]["time"] for name in names] == ['"3e-05 s"', '"7e-06 s"', '"5e-06 s"', '"1e-06 s"']
        assert nodes[names[1]]["label"] == '"a \\"b\\" &amp;lt;\\n30 us - 37 us"'
        assert nodes[names[0]]["fillcolor"] == nodes[names[1]]["fillcolor"] != nodes[names[2]]["fillcolor"]
        edges = {(e.get_source(), e.get_destination()): e.get_attributes() for e in graph.get_edges()}
        assert len(edges) == 4
        moved = edges[names[0], names[2]]
        assert (moved["payload"], moved["style"], moved["label"]) == ('"4000 B"', "dashed", '"3.906 KiB"')
        assert "style" not in edges[names[0], names[1]]

    def test_names_are_the_same_after_an_import(self, tmp_path: Path) -> None:
        names = [r"a\b", r"\\share\x", r"c\n", "line\nbreak", "two\\\\\nlines", 'a\\\\"', "$(x)", "{|}", "<b>"]
        problem = po.build_problem(
            task_names=names, device_names=["cpu"], duration=[[1]] * len(names), edges=[(0, 1)], payload=[3]
        )
        text = dot.export(ExportRequest(problem, po.simulate(problem, [0] * len(names)))).text
        (tmp_path / "graph.dot").write_text(text)
        assert compile_spec(import_file(tmp_path / "graph.dot").document).task_names == tuple(names)

    def test_the_legend_has_a_row_for_each_device(self) -> None:
        (legend,) = re.findall(r"label=<(<table.*</table>)>\];", self.text())
        assert re.findall(r'align="left">(\w+)<', legend) == ["cpu0", "cpu1", "gpu"]
        assert "dia&quot;mond\\<" in legend

    def test_no_tasks(self) -> None:
        empty = {"placeopt": 1, "devices": {"cpu": {}}, "tasks": {}}
        assert dot.export(request(empty, [], [])).text.startswith('digraph "plan" {\n')


class TestModelExplorer:
    def test_three_files_with_a_value_for_each_node(self, tmp_path: Path) -> None:
        exported = model_explorer.export(request(DIAMOND, *PLAN), tmp_path)
        assert exported.text == "device.json, start.json and duration.json: 4 nodes"
        found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(tmp_path.iterdir())}
        assert list(found) == ["device", "duration", "start"]
        tasks = list(DIAMOND["tasks"])
        for data in found.values():
            assert list(data["results"]) == tasks
            self.check(data)
        assert [result["value"] for result in found["device"]["results"].values()] == ["cpu0", "cpu0", "gpu", "gpu"]
        assert [result["value"] for result in found["start"]["results"].values()] == [0, 30, 34, 39]
        assert [result["value"] for result in found["duration"]["results"].values()] == [30, 7, 5, 1]

    def check(self, data: dict[str, Any]) -> None:
        """Check a file against `GraphNodeData`, `NodeDataResult` and `GradientItem` of version 0.1.34."""
        keys = {
            "results", "name", "thresholds", "gradient", "hideInAggregatedStatsTable", "hideInChildrenStatsTable",
            "hideAggregatedStats", "showExpandedSummaryOnGroupNode", "showLabelCountColumnsInChildrenStatsTable",
        }  # fmt: skip
        assert set(data) <= keys
        assert isinstance(data["name"], str)
        color = re.compile("#[0-9a-f]{6}")
        for result in data["results"].values():
            assert {"value"} <= set(result) <= {"value", "bgColor", "textColor"}
            assert all(color.fullmatch(result[key]) for key in ("bgColor", "textColor") if key in result)
        stops = [item["stop"] for item in data.get("gradient", [])]
        assert stops in ([], [0, 1])
        assert all(color.fullmatch(item["bgColor"]) for item in data.get("gradient", []))


MODEL = """<ir_version: 8, opset_import: ["" : 17]>
    small (float[1, 3, 8, 8] x, bool choice) => (float[1, 4, 8, 8] y, float[1, 4, 8, 8] z) {
        c = Conv <pads = [1, 1, 1, 1]> (x, w, b)
        [same] r = Relu (c)
        [same] e = Exp (r)
        [drop] d = Dropout (e)
        [split] s1, s2 = Split <axis = 1> (d)
        [join] j = Concat <axis = 1> (s1, s2)
        [choose] z = If (choice) <then_branch = yes () => (float[1, 4, 8, 8] t) { [inside] t = Exp (j) },
                                  else_branch = no () => (float[1, 4, 8, 8] f) { [other] f = Neg (j) }>
        [last] y = Softmax (j)
    }"""
TASKS = ("Conv_c", "Relu_r", "Exp_e", "drop", "split", "join", "choose", "last")
DEVICES = {"cpu": {"count": 2}, "gpu": {"count": 2}}


def small_model(folder: Path) -> Path:
    onnx = pytest.importorskip("onnx", reason="pip install 'placeopt[onnx]'")
    from onnx.parser import parse_model

    model = parse_model(MODEL)
    for name, shape in (("w", (4, 3, 3, 3)), ("b", (4,))):
        values = np.linspace(-0.1, 0.1, int(np.prod(shape)), dtype=np.float32).reshape(shape)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    onnx.checker.check_model(model)
    path = folder / "small.onnx"
    onnx.save(model, path)
    return path


def on_devices(folder: Path, devices: dict[str, Any], device: list[int], **options: Any) -> ExportRequest:
    before = (None, *TASKS[:5], "join", "join")
    tasks = {name: {"time": 1} | ({"after": after} if after else {}) for name, after in zip(TASKS, before, strict=True)}
    document = {"placeopt": 1, "devices": devices, "tasks": tasks}
    return request(document, device, list(range(len(TASKS))), model=small_model(folder), **options)


class TestOpenVino:
    def test_each_tensor_has_the_device_of_its_task(self, tmp_path: Path) -> None:
        exported = openvino.export(on_devices(tmp_path, DEVICES, [0, 1, 3, 2, 3, 2, 1, 2]))
        data = json.loads(exported.text)
        assert data["device"] == "HETERO:GPU.0,GPU.1,CPU"
        assert data["affinity"] == {
            "c": "CPU", "r": "CPU", "e": "GPU.1", "d": "GPU.1", "s1": "GPU.1", "s2": "GPU.1", "j": "GPU.0",
            "z": "CPU", "y": "GPU.0",
        }  # fmt: skip
        removed, same = sorted(exported.notes)
        assert removed == "CPU of OpenVINO stands for 2 devices: cpu0, cpu1"
        assert same.endswith("1 such task would run on another device than the task before: drop")

    def test_devices_by_name_type_or_statement(self, tmp_path: Path) -> None:
        devices = {"xeon-core": {}, "arc": {"type": "gpu"}, "intel-npu": {}, "a100": {}}
        placed = [0, 1, 2, 2, 2, 2, 2, 2]
        assert json.loads(openvino.export(on_devices(tmp_path, devices, placed)).text)["device"] == "HETERO:NPU,GPU,CPU"
        stated = on_devices(tmp_path, devices, [3] * 8, providers={"a100": "NVIDIA"})
        assert json.loads(openvino.export(stated).text)["device"] == "HETERO:NVIDIA"
        with pytest.raises(
            UsageError, match="a100 is not a device of OpenVINO: neither its name nor its type contains"
        ):
            openvino.export(on_devices(tmp_path, devices, [3] * 8))
        with pytest.raises(UsageError, match=r"--provider a100=no good: expected a device such as CPU or GPU\.0"):
            openvino.export(on_devices(tmp_path, devices, [3] * 8, providers={"a100": "no good"}))
        with pytest.raises(UsageError, match="--provider b: the problem has no such device or type"):
            openvino.export(on_devices(tmp_path, devices, placed, providers={"b": "CPU"}))

    def test_another_model_is_an_error(self, tmp_path: Path) -> None:
        small = small_model(tmp_path)
        with pytest.raises(
            UsageError, match=r"small\.onnx is not the model of the problem: it has no nodes for 4 tasks"
        ):
            openvino.export(request(DIAMOND, *PLAN, model=small))

    def test_openvino_runs_the_model_with_these_affinities(self, tmp_path: Path) -> None:
        ov = pytest.importorskip("openvino", reason=NEEDS_OPENVINO)
        exported = on_devices(tmp_path, {"cpu": {"count": 2}}, [0, 1, 0, 1, 0, 1, 0, 1])
        data = json.loads(openvino.export(exported).text)
        core = ov.Core()
        model = core.read_model(exported.model)
        openvino.set_affinities(model, data["affinity"])
        assert all("affinity" in operation.get_rt_info() for operation in model.get_ordered_ops())
        inputs = {"x": np.ones((1, 3, 8, 8), np.float32), "choice": np.array(True)}
        placed = core.compile_model(model, data["device"])(inputs)
        whole = core.compile_model(core.read_model(exported.model), "CPU")(inputs)
        for name in ("y", "z"):
            assert np.abs(placed[name] - whole[name]).max() <= 1e-5
        with pytest.raises(UsageError, match="no operation of the model writes one of the tensors"):
            openvino.set_affinities(core.read_model(exported.model), {"other": "CPU"})

    def test_an_imported_model_runs_with_a_random_placement(self) -> None:
        ov = pytest.importorskip("openvino", reason=NEEDS_OPENVINO)
        onnx = pytest.importorskip("onnx", reason="pip install 'placeopt[onnx]'")
        path = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_squeezenet.onnx"
        problem = po.compile(po.from_onnx(path, devices={"devices": {"gpu": {"count": 2, **RATES}}}).document)
        device = np.random.default_rng(0).integers(0, 2, problem.n_tasks)
        schedule = po.Schedule(device, np.zeros(problem.n_tasks, dtype=np.int64))
        affinity = json.loads(openvino.export(ExportRequest(problem, schedule, path)).text)["affinity"]
        core = ov.Core()
        model = core.read_model(path)
        openvino.set_affinities(model, affinity)
        found = [operation.get_rt_info()["affinity"].astype(str) for operation in model.get_ordered_ops()]
        assert set(found) == {"GPU.0", "GPU.1"}
        openvino.set_affinities(model, dict.fromkeys(affinity, "CPU"))
        inputs = [np.ones([size.get_length() for size in model.input(0).partial_shape], np.float32)]
        placed = core.compile_model(model, "HETERO:CPU")(inputs)[0]
        whole = core.compile_model(core.read_model(path), "CPU")(inputs)[0]
        assert np.abs(placed - whole).max() <= 1e-5

    def test_operations_without_a_tensor_follow_their_reader(self, tmp_path: Path) -> None:
        ov = pytest.importorskip("openvino", reason=NEEDS_OPENVINO)
        exported = on_devices(tmp_path, DEVICES, [2, 0, 3, 3, 2, 0, 3, 2])
        data = json.loads(openvino.export(exported).text)
        model = ov.Core().read_model(exported.model)
        openvino.set_affinities(model, data["affinity"])
        found: dict[str, set[str]] = {}
        for operation in model.get_ordered_ops():
            kind = operation.get_type_name()
            found.setdefault(kind, set()).add(operation.get_rt_info()["affinity"].astype(str))
        convolution = {"Convolution", "Add", "Reshape", "Broadcast", "ShapeOf", "Subtract"}
        assert {kind: found[kind] for kind in convolution & set(found)} == {
            kind: {"GPU.0"} for kind in convolution & set(found)
        }
        assert {"Convolution", "Add"} <= set(found)
        assert (found["Relu"], found["Exp"], found["If"], found["Softmax"]) == (
            {"CPU"},
            {"GPU.1"},
            {"GPU.1"},
            {"GPU.0"},
        )
        assert found["Parameter"] == {"GPU.0", "GPU.1"}
        assert found["Result"] == {"GPU.0", "GPU.1"}


@pytest.mark.parametrize("name", ["heft-10", "inception", "four-stages"])
def test_csv_has_the_columns_of_the_data_frame(name: str, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pip install pandas")
    problem = po.load(ROOT / "problems" / f"{name}.yaml")
    result = po.solve(problem, workers=1)
    result.save(tmp_path / "plan.json")
    done = run("export", ROOT / "problems" / f"{name}.yaml", tmp_path / "plan.json", "--to", "csv")
    assert done.code == 0
    pandas.testing.assert_frame_equal(pandas.read_csv(io.StringIO(done.out)), result.to_frame(unit="s"), rtol=0)


def test_csv_quotes_names() -> None:
    rows = list(csv.reader(io.StringIO(table.export(request(DIAMOND, *PLAN)).text)))
    assert [row[0] for row in rows] == ["task", *DIAMOND["tasks"]]
    assert [row[3] for row in rows[1:]] == ["0.0", "3e-05", "3.4e-05", "3.9e-05"]


def test_the_command_writes_each_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plain = {**DIAMOND, "tasks": {"a": {"time": "1 us"}, "b": {"time": "1 us", "after": "a"}}}
    Path("p.json").write_text(json.dumps(plain))
    assert run("solve", "p.json", "--solver", "heft", "--out", "plan.json").code == 0
    done = run("export", "p.json", "plan.json", "--to", "dot", "--out", "plan.dot")
    assert (done.code, done.out) == (0, "")
    assert '"a" -> "b"' in Path("plan.dot").read_text()
    done = run("export", "p.json", "plan.json", "--to", "model-explorer", "--out", "nodes")
    assert (done.code, done.out) == (0, "device.json, start.json and duration.json: 2 nodes\n")
    assert sorted(path.name for path in Path("nodes").iterdir()) == ["device.json", "duration.json", "start.json"]
    for options, message in (
        (["--to", "openvino"], "--to openvino needs --model FILE"),
        (["--to", "dot", "--model", "p.json"], "--to dot takes no --model"),
        (["--to", "dot", "--provider", "cpu=CPU"], "--to dot takes no --provider; formats with it are device-map, "),
        (["--provider", "cpu=CPU", "--out", "x", "--trace", "t.json"], "--provider, --out: only with --to FORMAT"),
        (["--to", "model-explorer"], "--to model-explorer writes several files; state the folder with --out"),
        (["--to", "model-explorer", "--out", "no/x"], "cannot write no/x: there is no folder no"),
    ):
        done = run("export", "p.json", "plan.json", *options)
        assert done.code == 2
        assert message in done.err
    done = run("export", "--to", "dot")
    assert (done.code, done.out) == (2, "")
    assert "the problem and the plan are missing; expected placeopt export PROBLEM PLAN" in done.err
