"""Traces of ONNX Runtime and of torch.profiler: real ones, GPU work written by hand, and broken files."""

from __future__ import annotations

import gzip
import json
import math
import re
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from broken import broken_files
from commandline import run

import placeopt as po
from placeopt.bridges.profiling import (
    apply_profile,
    device_efficiency,
    fit_profile,
    profile_document,
    profile_torch,
    read_kineto_trace,
    read_measurements,
    read_onnxruntime_profile,
)
from placeopt.errors import DocumentError, UsageError
from placeopt.io.files import size_limit

PID = {"pid": 1, "tid": 1}


def node(name: str, start: int, duration: int, **args: str) -> dict[str, Any]:
    times = {"ts": start, "dur": duration, "ph": "X"}
    return {"cat": "Node", **PID, **times, "name": f"{name}_kernel_time", "args": {"op_name": "Conv", **args}}


def session(name: str, start: int, duration: int) -> dict[str, Any]:
    return {"cat": "Session", **PID, "ts": start, "dur": duration, "ph": "X", "name": name, "args": {}}


def event(category: str, name: str, start: float, duration: float, tid: int = 1, **args: Any) -> dict[str, Any]:
    times = {"ts": start, "dur": duration, "ph": "X"}
    return {"cat": category, "name": name, "pid": 1, "tid": tid, **times, "args": args}


def saved(folder: Path, data: Any, name: str = "trace.json") -> Path:
    path = folder / name
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def kineto(folder: Path, *events: dict[str, Any], name: str = "trace.json") -> Path:
    return saved(folder, {"schemaVersion": 1, "traceEvents": list(events)}, name)


def operators(found: Any) -> list[str]:
    return [name for name, _ in found.series]


class TestOnnxRuntime:
    RUNS = (
        session("session_initialization", 0, 50),
        node("a", 101, 10), node("b", 111, 5), session("SequentialExecutor::Execute", 100, 19),
        session("model_run", 100, 20),
        node("a", 201, 14), node("b", 215, 7), session("model_run", 200, 30),
    )  # fmt: skip

    def test_nodes_in_order_with_their_runs(self, tmp_path: Path) -> None:
        found = read_onnxruntime_profile(saved(tmp_path, list(self.RUNS)), 8)
        assert found.series == (("a", None), ("b", None))
        assert found.member.tolist() == [0, 1, 0, 1]
        assert found.seconds.tolist() == [10e-6, 5e-6, 14e-6, 7e-6]
        assert found.batch.tolist() == [8] * 4
        assert found.bytes is None
        (runs,) = found.runs
        assert (runs.batch, runs.seconds.tolist(), runs.operators.tolist()) == (8, [20e-6, 30e-6], [15e-6, 21e-6])
        assert not found.seconds.flags.writeable

    def test_averages_after_warm_up_and_the_time_outside_of_operators(self, tmp_path: Path) -> None:
        measured = read_onnxruntime_profile(saved(tmp_path, list(self.RUNS)))
        profile = fit_profile(measured, 1)
        assert [estimate.best.seconds for estimate in profile.estimates] == pytest.approx([12e-6, 6e-6])
        (runs,) = profile.runs
        assert (runs.count, runs.seconds, runs.operators) == (2, 25e-6, 18e-6)
        assert runs.outside == pytest.approx(7e-6)
        (runs,) = fit_profile(measured, 1, discard=1).runs
        assert (runs.count, runs.seconds, runs.operators) == (1, 30e-6, 21e-6)
        assert profile_document(profile)["tasks"] == {"a": {"time": "12 us"}, "b": {"time": "6 us"}}

    def test_nodes_inside_of_control_flow_are_part_of_it(self, tmp_path: Path) -> None:
        # Times are truncated to microseconds: "short" ends before "if" starts, at the same time stamp.
        events = [
            node("short", 10, 0),
            node("inner", 12, 3),
            node("inner2", 16, 5),
            node("if", 10, 10),
            node("z", 20, 4),
        ]
        found = read_onnxruntime_profile(saved(tmp_path, events))
        assert operators(found) == ["short", "if", "z"]
        assert found.runs == ()

    def test_kernels_replace_the_time_of_their_launch(self, tmp_path: Path) -> None:
        def kernel(parent: str, start: int, duration: int) -> dict[str, Any]:
            args = {"parent_name": f"{parent}_kernel_time", "op_name": "Conv"}
            return {"cat": "Kernel", **PID, "ts": start, "dur": duration, "ph": "X", "name": "sgemm", "args": args}

        cuda, cpu = {"provider": "CUDAExecutionProvider"}, {"provider": "CPUExecutionProvider"}
        events = [
            node("a", 1, 2, **cuda), kernel("a", 9, 100), kernel("a", 110, 50), node("b", 4, 3, **cpu),
            node("a", 401, 2, **cuda), kernel("a", 409, 90), kernel("gone", 500, 5),
        ]  # fmt: skip
        found = read_onnxruntime_profile(saved(tmp_path, events))
        assert [(found.series[s][0], round(t * 1e6)) for s, t in zip(found.member, found.seconds, strict=True)] == [
            ("a", 150), ("b", 3), ("a", 90),
        ]  # fmt: skip
        (note,) = found.notes
        assert note.endswith("several execution providers: CUDAExecutionProvider (2), CPUExecutionProvider (1)")

    def test_a_real_profile_of_a_model_with_control_flow(self, tmp_path: Path) -> None:
        onnx = pytest.importorskip("onnx", reason="pip install 'placeopt[onnxruntime]'")
        pytest.importorskip("onnxruntime", reason="pip install 'placeopt[onnxruntime]'")
        import onnxruntime as ort
        from onnx.parser import parse_model

        model = parse_model(
            """<ir_version: 8, opset_import: ["" : 17]>
            small (float[N, 64] x, bool choice) => (float[N, 64] y) {
                [first] a = Relu(x)
                [choose] b = If (choice) <then_branch = yes () => (float[N, 64] t) { [inside] t = Exp(a) },
                                          else_branch = no () => (float[N, 64] e) { [other] e = Neg(a) }>
                [product] y = MatMul(b, w)
            }"""
        )
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.eye(64, dtype=np.float32), "w"))
        options = ort.SessionOptions()
        options.enable_profiling = True
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.profile_file_prefix = str(tmp_path / "ort")
        opened = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        for _ in range(3):
            opened.run(None, {"x": np.ones((8, 64), np.float32), "choice": np.array(True)})
        path = opened.end_profiling()
        found = read_measurements(path, batch=8)
        assert operators(found) == ["first", "choose", "product"]
        assert found.member.tolist() == [0, 1, 2] * 3
        (runs,) = found.runs
        assert len(runs.seconds) == 3
        assert (runs.operators <= runs.seconds).all()
        assert runs.operators.sum() == pytest.approx(found.seconds.sum())

    def test_each_task_of_an_imported_model_is_measured(self, tmp_path: Path) -> None:
        onnx = pytest.importorskip("onnx", reason="pip install 'placeopt[onnxruntime]'")
        ort = pytest.importorskip("onnxruntime", reason="pip install 'placeopt[onnxruntime]'")
        model = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_squeezenet.onnx"
        options = ort.SessionOptions()
        options.enable_profiling = True
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.profile_file_prefix = str(tmp_path / "ort")
        opened = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        opened.run(None, {opened.get_inputs()[0].name: np.ones(opened.get_inputs()[0].shape, np.float32)})
        profile = fit_profile(read_onnxruntime_profile(opened.end_profiling()), 1)
        document = po.from_onnx(model).document
        applied = apply_profile(document, profile_document(profile))
        assert (applied.by_name, applied.by_op, applied.left) == (len(document["tasks"]), 0, ())
        assert all(name.startswith("ConstantOfShape_") for name in applied.unused)
        assert 0 < (applied.unused_share or 0) < 1
        problem = po.compile(applied.document)
        whole = sum(each.best.seconds for each in profile.estimates if each.operator not in applied.unused)
        assert float(problem.duration[:, 0].sum() * problem.resolution) == pytest.approx(whole, rel=1e-3)


class TestKineto:
    def test_innermost_annotations_are_the_operators(self, tmp_path: Path) -> None:
        path = kineto(
            tmp_path,
            event("user_annotation", "ProfilerStep#0", 0, 100), event("user_annotation", "forward", 1, 90),
            event("user_annotation", "linear", 2.0015, 10.25), event("cpu_op", "aten::addmm", 3, 8),
            event("user_annotation", "relu", 20, 5), event("user_annotation", "relu", 30, 7, tid=2),
            event("python_function", "nn.Module: Linear_0", 1, 80),
            event("user_annotation", "ProfilerStep#1", 100, 60), event("user_annotation", "linear", 110, 12),
        )  # fmt: skip
        found = read_kineto_trace(path, 4)
        assert operators(found) == ["linear", "relu"]
        assert found.seconds.tolist() == pytest.approx([10.25e-6, 5e-6, 7e-6, 12e-6])
        (runs,) = found.runs
        assert runs.seconds.tolist() == pytest.approx([100e-6, 60e-6])
        assert runs.operators.tolist() == pytest.approx([22.25e-6, 12e-6])
        assert found.notes == (f"{path}: 1 annotation around others: not operators: forward",)

    def test_outermost_operations_without_annotations(self, tmp_path: Path) -> None:
        path = kineto(
            tmp_path, event("cpu_op", "aten::linear", 0, 10), event("cpu_op", "aten::addmm", 1, 8),
            event("cpu_op", "aten::relu_", 11, 2), event("cpu_op", "aten::linear", 20, 14),
        )  # fmt: skip
        found = read_kineto_trace(path)
        assert operators(found) == ["linear", "relu"]
        assert found.seconds.tolist() == pytest.approx([10e-6, 2e-6, 14e-6])
        assert "no annotations; the operators are operations of PyTorch" in found.notes[0]

    def test_time_on_a_gpu_is_that_of_the_launched_work(self, tmp_path: Path) -> None:
        path = kineto(
            tmp_path,
            event("user_annotation", "linear", 0, 20), event("cuda_runtime", "cudaLaunchKernel", 5, 1, correlation=7),
            event("cuda_driver", "cuLaunchKernel", 9, 1, correlation=8), event("user_annotation", "view", 20, 5),
            event("user_annotation", "copy", 30, 5), event("cuda_runtime", "cudaMemcpyAsync", 31, 1, correlation=9),
            event("cuda_runtime", "cudaLaunchKernel", 50, 1, correlation=10),
            event("cuda_runtime", "cudaLaunchKernel", 6, 1, tid=2, correlation=11),
            event("kernel", "sgemm", 100, 300, tid=7, correlation=7),
            event("kernel", "bias", 400, 20, tid=7, correlation=8),
            event("gpu_memcpy", "HtoD", 500, 40, tid=8, correlation=9), event("kernel", "x", 600, 1, correlation=10),
            event("kernel", "y", 610, 1, correlation=11), event("gpu_user_annotation", "linear", 100, 999, tid=7),
        )  # fmt: skip
        found = read_kineto_trace(path)
        assert operators(found) == ["linear", "view", "copy"]
        assert found.seconds.tolist() == pytest.approx([320e-6, 0, 40e-6])

    def test_a_real_trace_compressed_with_steps(self, tmp_path: Path) -> None:
        torch = pytest.importorskip("torch", reason="pip install 'placeopt[torch]'")
        from torch.profiler import ProfilerActivity, profile, record_function

        weights = torch.ones(32, 32)
        path = tmp_path / "trace.json.gz"
        with profile(
            activities=[ProfilerActivity.CPU], schedule=lambda _: torch.profiler.ProfilerAction.RECORD
        ) as found:
            for _ in range(2):
                with record_function("product"):
                    data = weights @ weights
                with record_function("relu"):
                    torch.relu(data)
                found.step()
        found.export_chrome_trace(str(path))
        measured = read_measurements(path, batch=32, device="cpu")
        assert measured.series == (("product", "cpu"), ("relu", "cpu"))
        assert measured.member.tolist() == [0, 1, 0, 1]
        assert (measured.seconds > 0).all()
        (runs,) = measured.runs
        assert (runs.operators[:2] <= runs.seconds[:2]).all()


class TestPrograms:
    def test_the_times_of_tasks_of_several_nodes(self) -> None:
        torch = pytest.importorskip("torch", reason="pip install 'placeopt[torch]'")
        layers = [torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)]
        module = torch.nn.Sequential(*layers).eval()
        program = torch.export.export(module, (torch.ones(8, 16),))
        nodes = [node.name for node in program.graph.nodes if node.op == "call_function"]
        assert nodes == ["linear", "relu", "linear_1"]
        tasks = {"ends": {"nodes": ["linear", "linear_1"]}, 'mid"dle\\': {"nodes": ["relu"]}, "back": {"module": ""}}
        document = {"x-torch": {"tasks": tasks, "weights": {}}}
        found = profile_torch(program, (torch.ones(8, 16),), document, runs=3, batch=8, device="cpu")
        assert found.series == (("ends", "cpu"), ('mid"dle\\', "cpu"))
        assert found.member.tolist() == [0, 1] * 3
        assert (found.seconds > 0).all()
        (runs,) = found.runs
        assert runs.operators.tolist() == pytest.approx(found.seconds.reshape(3, 2).sum(axis=1).tolist())
        assert (runs.operators <= runs.seconds).all()
        for wrong, message in (
            ({}, "the problem has no section x-torch"),
            ({"x-torch": {"tasks": {}}}, "the section x-torch is damaged: expected mappings tasks and weights"),
            (
                {"x-torch": {"tasks": {"a": {"nodes": ["conv"]}}, "weights": {}}},
                r"does not have 1 node of the problem \(conv\)",
            ),
        ):
            with pytest.raises(UsageError, match=message):
                profile_torch(program, (torch.ones(8, 16),), wrong)
        with pytest.raises(UsageError, match="0 runs after 1 for warm-up; expected at least 1 run"):
            profile_torch(program, (torch.ones(8, 16),), document, runs=0)


class TestSources:
    def test_several_traces_at_several_batch_sizes(self, tmp_path: Path) -> None:
        small = saved(tmp_path, [node("a", 0, 10), node("b", 10, 5)], "8.json")
        large = saved(tmp_path, [node("a", 0, 18), node("b", 18, 5)], "16.json")
        found = read_measurements(small, large, batch=[8, 16])
        a, b = fit_profile(found, 32).estimates
        assert (a.time.slope, a.best.seconds) == pytest.approx((1e-6, 34e-6))
        assert (b.time.slope, b.best.seconds) == pytest.approx((0, 5e-6))
        assert a.memory is None
        assert a.best.bytes is None
        table = tmp_path / "m.csv"
        table.write_text("operator,batch,milliseconds,bytes\na,8,1,1\n")
        with pytest.raises(UsageError, match=r"8\.json: no bytes, unlike the other files; fit them separately"):
            read_measurements(table, small, batch=8)
        assert read_measurements(table, batch=8).batch.tolist() == [8]

    @pytest.mark.parametrize("batch", [None, [8, 16, 32]])
    def test_each_trace_needs_a_batch_size(self, tmp_path: Path, batch: Any) -> None:
        path = saved(tmp_path, [node("a", 0, 10)])
        with pytest.raises(UsageError, match=r"batch: [03] batch sizes for 2 traces; expected one for each trace"):
            read_measurements(path, path, batch=batch)

    @pytest.mark.parametrize("batch", [0, 10**30])
    def test_a_batch_size_is_positive_and_finite(self, tmp_path: Path, batch: int) -> None:
        with pytest.raises(UsageError, match=r"batch: \d+ is not a batch size; expected a whole number from 1 to"):
            read_measurements(saved(tmp_path, [node("a", 0, 10)]), batch=batch)

    @pytest.mark.parametrize(
        ("data", "messages"),
        [
            ("", [": is empty"]),
            ("[", [":1:2: ", "ends early; expected the end of a trace, which end_profiling()"]),
            ('[{"a": 1},\n', ["ends early"]),
            ('{"traceEvents": [}]}', [":1:18: "]),
            ("[" * 100_000, [": "]),
            ("[]", [":1:1: has no kernel times; expected a profile of at least one run of a session"]),
            ("[1, {}]", [':1:2: [0]: 1 is not an event; expected a mapping']),
            ([node("", 1, 2)], ["has no kernel times"]),
            ({"traceEvents": []}, ["has no operators; expected record_function annotations"]),
            ({"traceEvents": {}}, ["expected a mapping with the list traceEvents"]),
            ({"events": []}, ["expected a mapping with the list traceEvents"]),
            (
                [node("a", 1, 2) | {"ts": -1, "dur": "3"}, node("b", 1, 2) | {"name": 7, "args": [1]}],
                [
                    ":1:44: [0].ts: -1; expected a number of microseconds",
                    ':1:55: [0].dur: "3"; expected a number of microseconds',
                    "[1].name: 7; expected a name",
                    "[1].args: a list; expected a mapping",
                ],
            ),
            ({"traceEvents": [event("cpu_op", "a", math.inf, 1e300)]}, ["[0].ts: inf", "[0].dur: 1e+300"]),
            ({"traceEvents": [{"ph": "X", "cat": "cpu_op"}]}, ["name is missing", "ts is missing", "dur is missing"]),
        ],
    )  # fmt: skip
    def test_broken_files_end_with_every_issue_and_its_place(
        self, tmp_path: Path, data: Any, messages: list[str]
    ) -> None:
        path = saved(tmp_path, data)
        with pytest.raises(DocumentError, match=r"trace\.json") as caught:
            read_measurements(path, batch=1)
        for message in messages:
            assert message in str(caught.value)

    def test_50_mutations_of_each_format_end_in_measurements_or_located_errors(self, tmp_path: Path) -> None:
        valid = {
            "ort.json": list(TestOnnxRuntime.RUNS),
            "kineto.json": {"traceEvents": [event("cpu_op", "a", 0, 5), event("cpu_op", "b", 6, 5)]},
        }
        refused: list[DocumentError] = []
        for name, data in valid.items():
            for mutation, content in broken_files(json.dumps(data, indent=1).encode(), 50):
                path = tmp_path / f"{mutation}-{name}"
                path.write_bytes(content)
                try:
                    measured = read_measurements(path, batch=1)
                except DocumentError as error:
                    refused.append(error)
                else:
                    assert np.isfinite(measured.seconds).all()
        assert len(refused) > 50
        for error in refused:
            assert error.issues
            assert all(Path(issue.file or "").parent == tmp_path and issue.message for issue in error.issues)

    def test_compressed_files(self, tmp_path: Path) -> None:
        path = tmp_path / "trace.json.gz"
        content = gzip.compress(json.dumps([node("a", 0, 10)]).encode())
        path.write_bytes(content)
        assert operators(read_onnxruntime_profile(path)) == ["a"]
        for broken in (content[:-9], content[:20], b"\x1f\x8b", content[:15] + b"\0\0\0" + content[18:]):
            path.write_bytes(broken)
            with pytest.raises(DocumentError, match=r"trace\.json\.gz: is not valid gzip data"):
                read_measurements(path, batch=1)
        path.write_bytes(gzip.compress(b"[" + b" " * 10**6))
        with size_limit(10**5), pytest.raises(DocumentError, match="has more than 100,000 bytes when it is unpacked"):
            read_measurements(path, batch=1)

    def test_the_other_format_is_not_mistaken(self, tmp_path: Path) -> None:
        with pytest.raises(DocumentError, match=r"is not a trace of torch\.profiler; expected a mapping"):
            read_kineto_trace(saved(tmp_path, [node("a", 0, 10)]))
        with pytest.raises(DocumentError, match="is not a profile of ONNX Runtime; expected a list of events"):
            read_onnxruntime_profile(kineto(tmp_path, event("cpu_op", "a", 0, 1)))


PROBLEM = {
    "placeopt": 1,
    "devices": {
        "cpu": {"count": 2, "speed": "1 GFLOP/s"},
        "fast": {"type": "gpu", "speed": "4 GFLOP/s", "overhead": "1 us"},
        "slow": {"type": "gpu", "speed": "2 GFLOP/s"},
    },
    "tasks": {
        "a": {"op": "Conv", "flops": 8000, "output": "64 B", "memory": {"resident": "1 KiB"}},
        "b": {"op": "Relu", "flops": 4000, "devices": ["cpu", "fast"], "after": "a"},
        "c": {"flops": 2000, "after": "b"},
    },
}


class TestEfficiency:
    DEVICES: ClassVar = {"speed": {"fp32": "100 GFLOP/s", "fp16": "200 GFLOP/s"}, "memory_bandwidth": "10 GB/s"}

    def problem(self, **device: Any) -> dict[str, Any]:
        tasks = {
            "big": {"flops": "4 GFLOP", "bytes": "1 MB"},
            "half": {"flops": "4 GFLOP", "precision": "fp16", "bytes": "1 MB"},
            "copy": {"op": "Copy", "bytes": "100 MB"},
            "both": {"flops": "100 MFLOP", "bytes": "20 MB", "after": "copy"},
            "fixed": {"time": "1 ms"},
            "other": {"flops": "1 GFLOP"},
        }
        return {"placeopt": 1, "devices": {"cpu": {"count": 2, **self.DEVICES, **device}}, "tasks": tasks}

    PROFILE: ClassVar = {
        "placeopt": 1,
        "tasks": {
            "big": {"time": "160 ms"}, "half": {"time": "80 ms"}, "Copy": {"time": "20 ms"}, "both": {"time": "10 ms"},
            "fixed": {"time": "5 ms"},
        },
    }  # fmt: skip

    def test_a_case_worked_by_hand(self) -> None:
        # At the full rates: 40 + 20 ms bound by speed, measured 240 ms; 10 + 2 ms by bandwidth, measured 30 ms.
        (found,) = device_efficiency(self.problem(efficiency=0.9), self.PROFILE)
        assert (found.devices, found.spec()) == ("cpu", {"compute": 0.25, "memory": 0.4})
        assert found.compute is not None
        assert (found.compute.tasks, found.compute.at_peak, found.compute.measured) == (2, 0.06, pytest.approx(0.24))
        assert found.memory is not None
        assert (found.memory.tasks, found.memory.at_peak, found.memory.measured) == (2, 0.012, pytest.approx(0.03))
        # The estimates are 160, 80, 25 and 5 ms; they are off by 0, 0, 25% and 50%.
        assert found.deviation == pytest.approx(0.125)
        assert (found.compute.deviation, found.memory.deviation) == (pytest.approx(0), pytest.approx(0.375))

    def test_overhead_and_another_assignment(self) -> None:
        # With both at 1, `both` is bound by bandwidth (2 ms > 1 ms). If only 1/40 of the speed is reached, by speed.
        profile = {"tasks": {**self.PROFILE["tasks"], "big": {"time": "1601 ms"}, "half": {"time": "801 ms"}}}
        profile["tasks"] |= {"Copy": {"time": "11 ms"}, "both": {"time": "41 ms"}}
        (found,) = device_efficiency(self.problem(overhead="1 ms"), profile)
        assert found.compute is not None
        assert (found.compute.tasks, found.compute.measured) == (3, pytest.approx(2.44))
        assert found.spec() == {"compute": 0.025, "memory": 1.0}
        assert found.deviation == pytest.approx(0)

    def test_the_efficiencies_reproduce_the_measured_total(self) -> None:
        problem = self.problem()
        (found,) = device_efficiency(problem, self.PROFILE)
        compiled = po.compile(self.problem(efficiency=found.spec()))
        estimated = float(compiled.duration[:4, 0].sum() * compiled.resolution)
        assert estimated == pytest.approx(0.27)

    def test_wrong_usage(self) -> None:
        two = self.problem()
        two["devices"]["gpu"] = self.DEVICES
        with pytest.raises(UsageError, match=r"the profile states no device, .* several types \(cpu, gpu\)"):
            device_efficiency(two, self.PROFILE)
        (found,) = device_efficiency(two, {"tasks": {"big": {"time": {"gpu": "80 ms"}}}})
        assert (found.devices, found.spec(), found.memory) == ("gpu", {"compute": 0.5}, None)
        with pytest.raises(UsageError, match="no task with flops or bytes was measured on a device that states rates"):
            device_efficiency(self.problem(), {"tasks": {"fixed": {"time": "1 ms"}}})
        with pytest.raises(UsageError, match="no task with flops or bytes was measured on a device that states rates"):
            device_efficiency({"devices": {"cpu": {}}, "tasks": {"a": {"flops": 5}}}, {"tasks": {"a": {"time": "1 s"}}})

    def test_the_example_of_the_documentation(self, tmp_path: Path) -> None:
        page = (Path(__file__).parents[2] / "docs" / "profile.md").read_text(encoding="utf-8")
        section = page[page.index("### Efficiency of devices") :]
        problem, profile, printed = re.findall(r"```\w+\n(.*?)```", section, re.DOTALL)[:3]
        done = run("profile", "efficiency", saved(tmp_path, profile, "m.yaml"), saved(tmp_path, problem, "p.yaml"))
        assert (done.code, done.out) == (0, printed)

    def test_the_command_line(self, tmp_path: Path) -> None:
        tasks = {**self.PROFILE["tasks"], "Copy": {"time": "16 ms"}}
        profile = saved(tmp_path, {"placeopt": 1, "tasks": tasks}, "profile.json")
        problem = saved(tmp_path, self.problem(), "problem.json")
        done = run("profile", "efficiency", profile, problem)
        assert done.code == 0, done.err
        assert "  cpu: {efficiency: {compute: 0.25, memory: 0.4615}}" in done.out
        assert done.err == ""
        tasks |= {"Copy": {"time": "4 ms"}, "both": {"time": "1 ms"}}
        profile = saved(tmp_path, {"placeopt": 1, "tasks": tasks}, "profile.json")
        done = run("profile", "efficiency", profile, problem, "--json")
        assert json.loads(done.out)["cpu"]["efficiency"] == {"compute": 0.2531, "memory": 1.0}
        assert "note: cpu: tasks reach 2.5 times the stated memory bandwidth; state more" in done.err


class TestApplied:
    def test_only_times_change_and_other_devices_keep_their_estimates(self) -> None:
        profile = {"placeopt": 1, "tasks": {"a": {"time": {"gpu": "9 us"}}, "b": {"time": {"cpu": "7 us"}}}}
        applied = apply_profile(PROBLEM, profile)
        tasks = applied.document["tasks"]
        assert tasks["a"] == {
            "op": "Conv", "time": {"cpu": "8 us", "gpu": "9 us"}, "output": "64 B", "memory": {"resident": "1 KiB"},
        }  # fmt: skip
        assert tasks["b"]["time"] == {"fast": "2 us", "cpu": "7 us"}
        assert tasks["c"] == PROBLEM["tasks"]["c"]
        assert (applied.estimated, applied.restricted, applied.uniform) == (("a", "b"), (), ())
        before, after = po.compile(PROBLEM), po.compile(applied.document)
        assert before.device_names == after.device_names == ("cpu0", "cpu1", "fast", "slow")
        micro = [[float(t * problem.resolution) * 1e6 for t in problem.duration[0]] for problem in (before, after)]
        assert micro == [pytest.approx([8, 8, 3, 4]), pytest.approx([8, 8, 9, 9])]
        assert after.feasible[1].tolist() == [True, True, True, False]

    def test_times_without_a_device_on_several_types(self) -> None:
        applied = apply_profile(PROBLEM, {"placeopt": 1, "tasks": {"a": {"time": "9 us"}}})
        assert applied.document["tasks"]["a"]["time"] == "9 us"
        assert applied.uniform == ("cpu", "gpu")
        same = {**PROBLEM, "devices": {"cpu": PROBLEM["devices"]["cpu"]}}
        assert apply_profile(same, {"placeopt": 1, "tasks": {"a": {"time": "9 us"}}}).uniform == ()

    def test_the_share_of_operators_without_a_task(self) -> None:
        tasks = {"a": {"time": "1 us"}, "fused": {"time": {"cpu": "2 us", "gpu": "3 us"}}, "none": {}}
        applied = apply_profile(PROBLEM, {"placeopt": 1, "tasks": tasks})
        assert (applied.unused, applied.unused_share) == (("fused", "none"), pytest.approx(0.75))
        assert apply_profile(PROBLEM, {"tasks": {"a": {"time": 5}, "x": {"time": 7}}}).unused_share is None

    def test_the_command_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        saved(tmp_path, [node("a", 0, 10), node("fused", 12, 30), session("model_run", 0, 50)], "ort.json")
        saved(tmp_path, PROBLEM, "problem.json")
        fitted = run("profile", "fit", "ort.json", "--batch", 8, "--device", "cpu", "--out", "profile.json")
        assert fitted.code == 0, fitted.err
        assert "together 40 us" in fitted.out
        assert "1 run at batch size 8: 50 us on average, operators 40 us, 20.00% outside of operators" in fitted.out
        applied = run("profile", "apply", "profile.json", "problem.json")
        assert applied.code == 0, applied.err
        assert "no task has the name or op of these operators, 75.00% of the measured time: fused" in applied.err
        assert "on devices without measurements, these tasks keep the times from flops and bytes: a" in applied.err
        as_json = json.loads(run("profile", "fit", "ort.json", "-b", 8, "--json").out)["profile"]
        assert as_json["total"]["best"] == {"seconds": 40e-6, "bytes": None}
        assert as_json["runs"][0]["outside"] == pytest.approx(10e-6)
        Path("m.csv").write_text("operator,batch,milliseconds,bytes\na,8,1,1\n")
        for options, message in (
            (["m.csv", "-b", 8, "--device", "cpu"], "--device cpu: no file is a trace"),
            (["m.csv", "-b", 8, "--at", 8], "batch: 1 batch size for 0 traces"),
            (["ort.json"], "--batch is missing"),
        ):
            done = run("profile", "fit", *options)
            assert done.code == 2
            assert message in done.err
