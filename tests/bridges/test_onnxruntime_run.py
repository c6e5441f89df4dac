"""Plans run with ONNX Runtime: equal outputs, sound times, and clear errors when a process fails."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import yaml
from rich.console import Console

import placeopt as po

onnx = pytest.importorskip("onnx", reason="pip install 'placeopt[onnxruntime]'")
pytest.importorskip("onnxruntime", reason="pip install 'placeopt[onnxruntime]'")

from commandline import run  # noqa: E402
from onnx_cases import hand_made, inputs_of, light_model, problem_of  # noqa: E402
from trace_format import breaches  # noqa: E402

from placeopt.bounding.engines.children import Child  # noqa: E402
from placeopt.bridges.onnx_models import read_model  # noqa: E402
from placeopt.bridges.onnx_models.submodels import split_model  # noqa: E402
from placeopt.bridges.profiling import TransferModel  # noqa: E402
from placeopt.bridges.running import fitting, measurement  # noqa: E402
from placeopt.bridges.running.measurement import stream_orders  # noqa: E402
from placeopt.bridges.running.pool import Job, Pool, Segment, Settings, core_shares  # noqa: E402
from placeopt.bridges.running.prediction import Costs, Fit, execute, predict, predict_fitted  # noqa: E402
from placeopt.bridges.running.tensors import difference, random_inputs, read_inputs  # noqa: E402
from placeopt.bridges.running.worker import SocketLink, write_array  # noqa: E402
from placeopt.cli.terminal.running import print_run  # noqa: E402
from placeopt.io.formats.documents import to_yaml  # noqa: E402
from placeopt.model.documents import problem_document  # noqa: E402
from placeopt.model.period import period  # noqa: E402

pytestmark = pytest.mark.skipif(os.name != "posix", reason="workers inherit connected sockets")

CASES = hand_made()
COPIES = [Job(name, (Segment("whole.onnx", (), ()),), {}) for name in ("first", "second")]
FUNCTIONS = "functions of the model"


def saved(name: str, folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(CASES[name].SerializeToString())
    return path


def files(model: Path, folder: Path, device: list[int] | None = None) -> tuple[Path, Path]:
    """A problem file and a plan file for a model."""
    problem = problem_of(model)
    result = po.solve(problem, "heft")
    schedule = result.schedule if device is None else po.simulate(problem, device)
    paths = folder / "problem.yaml", folder / "plan.json"
    paths[0].write_text(to_yaml(problem_document(problem)))
    po.write_plan(paths[1], po.plan_document(problem, schedule, solver="by-hand"))
    return paths


@pytest.mark.parametrize("name", CASES)
def test_outputs_of_hand_made_models_are_equal(name: str, tmp_path: Path) -> None:
    model = saved(name, tmp_path)
    problem = problem_of(model, 3)
    schedule = po.simulate(problem, np.random.default_rng(2).integers(0, 3, problem.n_tasks))
    report = po.run_onnx(problem, schedule, model, runs=2)
    outputs = [each for each in read_model(model).outputs if each not in read_model(model).inputs]
    assert [each.output for each in report.differences] == outputs
    assert report.equal
    assert report.largest_difference <= 1e-6


def test_the_report_of_a_light_model() -> None:
    model = light_model("squeezenet")
    problem = problem_of(model)
    schedule = po.simulate(problem, np.arange(problem.n_tasks) % 7 // 4)
    report = po.run_onnx(problem, schedule, model, runs=3, fit=True)
    assert report.equal
    assert report.start.shape == report.end.shape == (3, len(report.segment_device))
    assert (report.start >= 0).all()
    assert (report.start <= report.end).all()
    assert sorted(task for tasks in report.segment_tasks for task in tasks) == sorted(problem.task_names)
    assert report.fit is not None
    assert report.fitted is not None
    assert (report.fit.measured_tasks, report.fit.problem.n_tasks) == (66, 66)
    assert report.fit.slowdown[0] == 1
    assert report.fitted.busy.min() > 0
    assert report.predicted.one_device == pytest.approx(66e-6)
    for device in range(2):  # a device runs one segment at a time
        own = np.flatnonzero(report.segment_device == device)
        assert (report.start[:, own[1:]] >= report.end[:, own[:-1]]).all()
    data = report.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_a_segment_starts_after_its_inputs(tmp_path: Path) -> None:
    model = saved("weights that several nodes read, one of them also an input", tmp_path)
    problem = problem_of(model)
    report = po.run_onnx(problem, po.simulate(problem, [0, 1, 0, 1, 0]), model, runs=4)
    assert report.segment_device.tolist() == [0, 1, 0, 1, 0]
    assert (report.start[:, 1:] >= report.end[:, :-1]).all()
    assert report.predicted.busy.tolist() == pytest.approx([1e-6] * 5)
    assert report.predicted.makespan == pytest.approx(5e-6)


def test_a_segment_waits_for_all_its_inputs_in_the_prediction(tmp_path: Path) -> None:
    """Split, then Neg on device 0 and Exp on device 1, then Concat on device 0."""
    model = saved("several outputs of a node", tmp_path)
    base = problem_of(model)
    problem = po.build_problem(
        task_names=base.task_names,
        device_names=base.device_names,
        duration=np.array([[2], [3], [10], [1]]) * np.ones((1, 2), dtype=np.int64),
        edges=np.column_stack((base.edge_source, base.edge_target)),
        payload=base.payload,
        latency=[[0, 5], [5, 0]],
    )
    assert problem.task_names == ("Split_a", "Neg_c", "Exp_d", "Concat_y")
    schedule = po.simulate(problem, [0, 0, 1, 0])
    report = po.run_onnx(problem, schedule, model, runs=1, few_segments=True)
    # {Split, Neg} end at 5, the transfer at 10, {Exp} at 20, the transfer at 25, {Concat} at 26; the plan: Exp from 7.
    assert list(report.segment_tasks) == [("Split_a", "Neg_c"), ("Exp_d",), ("Concat_y",)]
    assert report.predicted.makespan == pytest.approx(26e-9)
    assert report.predicted.tasks == pytest.approx(23e-9)
    assert (report.predicted.start * 1e9).round().tolist() == [0, 10, 25]
    report = po.run_onnx(problem, schedule, model, runs=1)
    assert list(report.segment_tasks) == [("Split_a",), ("Neg_c",), ("Exp_d",), ("Concat_y",)]
    assert report.predicted.makespan == report.predicted.tasks == pytest.approx(23e-9)


@pytest.mark.parametrize(
    ("moved", "sizes"),
    [([], [4, 16]), ([4], [4, 16]), ([1000], [4, 1000]), ([400, 802, 4000], [4, 400, 600, 800, 2400, 4000])],
)
def test_transfers_of_a_number_and_of_sizes_of_the_plan_are_measured(moved: list[int], sizes: list[int]) -> None:
    """The copy of a number is a segment without work."""
    assert fitting.measured_sizes(moved) == sizes


def test_durations_of_nodes_exclude_the_work_of_the_profiler(tmp_path: Path) -> None:
    """Runs of 100 us with two nodes of 10 and 20 us; the first run is slower."""
    events = []
    for start, scale in ((0, 5), (1000, 1), (2000, 1)):
        for category, name, offset, length in (
            ("Session", "model_run", 0, 100),
            ("Node", "a_kernel_time", 20, 10),
            ("Node", "b_kernel_time", 60, 20),
        ):
            times = {"ts": start + offset * scale, "dur": length * scale}
            events.append({"cat": category, "pid": 1, "tid": 1, "ph": "X", "name": name, "args": {}, **times})
    profile = tmp_path / "profile.json"
    profile.write_text(json.dumps(events))

    class Profiled(Pool):
        def profiles(self) -> list[Path]:
            return [profile]

    def opened(jobs: Sequence[Job], *, profile: bool) -> Pool:
        assert profile
        return Profiled(jobs, tmp_path, Settings())

    turns = fitting.Turns()
    assert fitting.NodeTimes(opened, turns, COPIES).seconds(2) == {"a": 10e-6, "b": 20e-6}


def test_costs_of_transfers(tmp_path: Path) -> None:
    """A copy ends at 10 us, and the next one begins 1 us later, or 2 us later after it has sent a tensor."""
    turns = fitting.Turns()
    transfers = fitting.Transfers(
        lambda jobs: Pool(jobs, tmp_path, Settings()), turns, [1000], tmp_path, Settings(), ("cpu", "cpu")
    )
    sent = [np.array([[[0, 10], [12 + k, 20], [30 + k, 40]]] * 3) * 1e-6 for k in range(2)]
    plain = np.array([[[0, 10], [11, 14]]] * 3) * 1e-6
    costs = fitting.Transfers.costs({"cpu": transfers}, [*sent, plain], ["cpu"])
    assert (*costs.segment, costs.pause) == pytest.approx((3e-6, 1e-6))
    assert costs.transfer.seconds(np.array([4, 1000])).tolist() == pytest.approx([20e-6, 21e-6])
    assert costs.sending.seconds(np.array([4, 1000])).tolist() == pytest.approx([1e-6, 2e-6])
    # From the other kind of device, a transfer takes twice as long, and a segment without work 7 us instead of 3.
    opposite = fitting.Transfers(
        lambda jobs: Pool(jobs, tmp_path, Settings()), turns, [1000], tmp_path, Settings(), ("gpu", "cpu")
    )
    later = [np.array([[[0, 10], [12 + k, 20], [50 + k, 60]]] * 3) * 1e-6 for k in range(2)]
    slower = np.array([[[0, 10], [11, 18]]] * 3) * 1e-6
    times = [*sent, plain, *later, slower]
    costs = fitting.Transfers.costs({"cpu": transfers, "gpu": opposite}, times, ["gpu", "cpu", "gpu"])
    assert costs.segment == pytest.approx((7e-6, 3e-6, 7e-6))
    assert costs.transfer.seconds(np.array([4, 1000])).tolist() == pytest.approx([30e-6, 31e-6])


def test_contention_is_measured_by_the_number_of_busy_processes(tmp_path: Path) -> None:
    found = fitting.Contention(lambda jobs: Pool(jobs, tmp_path, Settings()), fitting.Turns(), COPIES)
    alone = np.array([[[0.0, 10.0]], [[0.0, 10.0]], [[0.0, 20.0]]])
    together = np.array([[[0.0, 15.0], [1.0, 16.0]]] * 3)
    assert found.slowdown([alone, together], 3) == pytest.approx((1, 1.5, 2.25))
    assert found.slowdown([together[:, :1], together], 2) == (1, 1)


def test_a_profile_states_contention_once_for_equal_devices() -> None:
    problem = po.compile(TWO)
    costs = fit_of(problem, (1.0, 1.25)).costs
    fit = Fit(problem, {"t": (2.0, 2.0), "u": (4.0, None)}, costs, (1.0, 1.25))
    assert fit.profile()["tasks"] == {"t": {"time": "2.5 s"}, "u": {"time": {"a": "5 s"}}}


def test_a_profile_has_no_times_of_a_core_that_stands_for_a_gpu() -> None:
    problem = po.compile(TWO)
    costs = fit_of(problem, (1.0, 1.0)).costs
    fit = Fit(problem, {"t": (2.0, 2.0)}, costs, (1.0, 1.0), ("b",))
    assert fit.profile()["tasks"] == {"t": {"time": {"a": "2 s"}}}
    assert "links" not in fit.profile()
    with pytest.raises(po.UsageError, match="a profile of a, b needs this hardware: a CPU core stands for each device"):
        dataclasses.replace(fit, stand_ins=("a", "b")).profile()


TWO = {
    "placeopt": 1,
    "devices": {"a": {}, "b": {}},
    "tasks": {"t": {"time": "1 s"}, "u": {"time": "1 s"}},
}


def fit_of(problem: po.Problem, slowdown: tuple[float, ...], **costs: Any) -> Fit:
    """Measurements that change only what is stated."""
    free = TransferModel(0.0, 0.0, 0.0, 1)
    known = {"transfer": free, "sending": free, "segment": (0.0,) * problem.n_devices, "pause": 0.0, **costs}
    return Fit(problem, {}, Costs(**known), slowdown)


@pytest.mark.parametrize("device", [0, 1])
def test_a_plan_on_one_device_has_no_contention(tmp_path: Path, device: int) -> None:
    model = saved("several outputs of a node", tmp_path)
    problem = problem_of(model)
    schedule = po.simulate(problem, [device] * problem.n_tasks)
    split = split_model(problem, schedule, read_model(model))
    found = predict_fitted(problem, schedule, split, fit_of(problem, (1.0, 1.77)))
    assert found.tasks == pytest.approx(found.makespan)


def test_segments_that_run_at_the_same_time_slow_each_other_down() -> None:
    """Until 8, each of the segments of 10 and 4 proceeds at half the speed; then 6 are left."""
    problem = po.build_problem(task_names="ab", device_names=["cpu0", "cpu1"], duration=[[10, 10], [4, 4]])
    start, end = execute(problem, np.array([0, 1]), fit_of(problem, (1.0, 2.0)))
    assert (start.tolist(), end.tolist()) == ([0, 0], [14, 8])


def test_devices_that_send_and_receive_do_nothing_else() -> None:
    """A transfer of 5 ns, of which the sender works 2: the next segment of each device begins later."""
    problem = po.build_problem(
        task_names="abc",
        device_names=["cpu0", "cpu1"],
        duration=[[10, 10]] * 3,
        edges=[(0, 1)],
        payload=[8],
        resolution=Fraction(1, 10**9),
    )
    transfer, sending = (TransferModel(0.0, seconds, 0.0, 1) for seconds in (5e-9, 2e-9))
    fit = fit_of(problem, (1.0, 1.0), transfer=transfer, sending=sending, pause=1e-9)
    start, end = execute(problem, np.array([0, 1, 0]), fit)
    assert start == pytest.approx([0, 15, 13])
    assert end == pytest.approx([10, 25, 23])


@pytest.mark.parametrize("name", ["shufflenet", "inception_v1"])
def test_without_contention_segments_run_as_simulated(name: str) -> None:
    view = read_model(light_model(name))
    problem = problem_of(light_model(name), 3)
    latency = float(problem.latency.max()) * float(problem.resolution)
    per_byte = float(problem.byte_ticks_num.max() / problem.byte_ticks_den.max()) * float(problem.resolution)
    fit = fit_of(problem, (1.0,) * 3, transfer=TransferModel(per_byte, latency, 0.0, 1))
    schedule = po.simulate(problem, np.random.default_rng(0).integers(0, 3, problem.n_tasks))
    split = split_model(problem, schedule, view)
    found, expected = predict_fitted(problem, schedule, split, fit), predict(problem, schedule, split)
    assert found.makespan == pytest.approx(expected.makespan, rel=0.02)
    assert found.start == pytest.approx(expected.start, rel=0.02, abs=2e-6)


@pytest.mark.parametrize("name", ["shufflenet", "inception_v1"])
def test_segments_cut_at_transfers_run_at_the_times_of_the_plan(name: str) -> None:
    view = read_model(light_model(name))
    problem = problem_of(light_model(name), 3)
    random = np.random.default_rng(0)
    for _ in range(10):
        schedule = po.simulate(problem, random.integers(0, 3, problem.n_tasks))
        found = predict(problem, schedule, split_model(problem, schedule, view))
        assert found.makespan == found.tasks
        few = predict(problem, schedule, split_model(problem, schedule, view, few_segments=True))
        assert few.makespan > few.tasks


@pytest.mark.parametrize("optimization", ["basic", "extended", "all"])
def test_optimized_segments(optimization: str) -> None:
    model = light_model("squeezenet")
    problem = problem_of(model)
    schedule = po.simulate(problem, np.arange(problem.n_tasks) // 40)
    report = po.run_onnx(problem, schedule, model, runs=1, warmup=0, optimization=optimization)
    assert report.equal


def test_inputs_of_a_file_and_of_a_mapping(tmp_path: Path) -> None:
    model = saved(FUNCTIONS, tmp_path)
    problem = problem_of(model)
    schedule = po.simulate(problem, [0, 1, 0, 1])
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    np.savez(tmp_path / "inputs.npz", x=x)
    for inputs in (tmp_path / "inputs.npz", {"x": x}):
        assert po.run_onnx(problem, schedule, model, runs=1, inputs=inputs).equal


def test_random_inputs_depend_on_the_seed_alone() -> None:
    from onnx import TensorProto, helper

    kinds = {"f": "FLOAT", "d": "DOUBLE", "h": "FLOAT16", "i": "INT64", "b": "BOOL", "s": "STRING"}
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.DataType.Value(kind), [3]) for name, kind in kinds.items()
    ]
    nodes = [helper.make_node("Identity", [name], [f"{name}2"]) for name in kinds]
    outputs = [
        helper.make_tensor_value_info(f"{name}2", TensorProto.DataType.Value(kind), [3]) for name, kind in kinds.items()
    ]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    made = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    view = read_model(made)
    first, again, other = (random_inputs(inputs_of(view), seed) for seed in (1, 1, 2))
    assert {name: value.dtype.name for name, value in first.items()} == {
        "f": "float32", "d": "float64", "h": "float16", "i": "int64", "b": "bool", "s": "object",
    }  # fmt: skip
    for name in kinds:
        assert (first[name] == again[name]).all()
    assert (first["f"] != other["f"]).any()
    assert first["i"].tolist() == [0, 0, 0]
    assert first["b"].all()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "x: the input is missing; the file has none"),
        ({"X": np.zeros((4, 8), np.float32)}, "X: the model has no such input; did you mean x?"),
        ({"x": np.zeros((4, 8))}, "x: has elements of type float64; expected float"),
        ({"x": np.zeros((8, 4), np.float32)}, r"x: has the shape \[8, 4\]; expected \[4, 8\]"),
        ({"x": np.array(["a", None], dtype=object)}, "is not an .npz file of arrays: Object arrays cannot be loaded"),
    ],
)
def test_wrong_inputs(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    model = read_model(saved(FUNCTIONS, tmp_path))
    np.savez(tmp_path / "inputs.npz", **arrays)
    with pytest.raises(po.DocumentError, match=message):
        read_inputs(tmp_path / "inputs.npz", inputs_of(model))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 short", b"hello", b"\x93NUMPY"])
def test_files_of_inputs_that_are_broken(content: bytes, tmp_path: Path) -> None:
    model = read_model(saved(FUNCTIONS, tmp_path))
    (tmp_path / "inputs.npz").write_bytes(content)
    with pytest.raises(po.DocumentError, match=r"inputs\.npz: is not an \.npz file of arrays"):
        read_inputs(tmp_path / "inputs.npz", inputs_of(model))


@pytest.mark.parametrize("place", [6, 8], ids=["encrypted", "unknown compression"])
def test_archives_of_inputs_that_cannot_be_unpacked(place: int, tmp_path: Path) -> None:
    model = read_model(saved(FUNCTIONS, tmp_path))
    path = tmp_path / "inputs.npz"
    np.savez(path, x=np.zeros((4, 8), np.float32))
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x03\x04") + place] = 99
    content[content.index(b"PK\x01\x02") + place + 2] = 99
    path.write_bytes(content)
    with pytest.raises(po.DocumentError, match=r"inputs\.npz: is not an \.npz file of arrays"):
        read_inputs(path, inputs_of(model))


def test_a_pipe_of_inputs_is_rejected(tmp_path: Path) -> None:
    model = read_model(saved(FUNCTIONS, tmp_path))
    os.mkfifo(tmp_path / "inputs.npz")
    with pytest.raises(po.DocumentError, match=r"inputs\.npz: .* it is not a file"):
        read_inputs(tmp_path / "inputs.npz", inputs_of(model))


@pytest.mark.parametrize(
    ("found", "reference", "absolute", "relative"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0, 0),
        ([0.0, 101.0], [0.001, 100.0], 1, 0.01),  # below 1, the relative difference is the absolute one
        ([np.nan, np.inf, -np.inf], [np.nan, np.inf, -np.inf], 0, 0),
        ([np.nan], [1.0], np.inf, np.inf),
        ([np.inf], [-np.inf], np.inf, np.inf),
        ([1.0], [1.0, 2.0], np.inf, np.inf),
        ([1], [1.0], np.inf, np.inf),
        ([True, False], [True, True], 1, 1),
        ([3, 200], [3, 100], 100, 100),  # an index is not almost right
        ([20001], [20000], 1, 1),
        ([2**53 + 1], [2**53], 1, 1),  # equal as doubles
        (["a"], ["b"], np.inf, np.inf),
        (["a"], ["a"], 0, 0),
        (2.5, 2.0, 0.5, 0.25),
        ([], [], 0, 0),
    ],
)
def test_differences(found: Any, reference: Any, absolute: float, relative: float) -> None:
    compared = difference("y", np.array(found), np.array(reference))
    assert (compared.absolute, compared.relative) == pytest.approx((absolute, relative))


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.arange(6, dtype=np.int64).reshape(3, 2).T,  # not contiguous
        np.float64(2.5),
        np.zeros((0, 4), dtype=np.float16),
        np.array([True, False]),
        np.array([1 + 2j], dtype=np.complex64),
        np.array([["a", "größer"], ["", "中"]], dtype=object),
        np.array([], dtype=object),
        np.random.default_rng(0).random(1 << 20),
    ],
    ids=lambda value: f"{value.dtype}{list(value.shape)}",
)
def test_tensors_travel_through_sockets(value: Any) -> None:
    left, right = socket.socketpair()
    with left, right:
        sender = threading.Thread(target=lambda: (send(left, 7, "näme", value), left.close()))
        sender.start()
        received = SocketLink(right).receive()
        with pytest.raises(ConnectionResetError):
            SocketLink(right).receive()
        sender.join()
    run, name, found = received
    assert (run, name) == (7, "näme")
    assert found.dtype == value.dtype
    assert np.array_equal(found, value)
    assert found.shape == value.shape


def test_a_stream_that_ends_within_a_tensor() -> None:
    left, right = socket.socketpair()
    with left, right:
        send(left, 0, "x", np.arange(10))
        whole = right.recv(1 << 16)
        for length in (3, 20, len(whole) - 1):
            one, other = socket.socketpair()
            with one, other:
                one.sendall(whole[:length])
                one.close()
                with pytest.raises(ConnectionResetError):
                    SocketLink(other).receive()


def test_a_link_sends_what_fits_at_once() -> None:
    value = np.random.default_rng(0).random(1 << 20)
    left, right = socket.socketpair()
    with left, right:
        link, other = SocketLink(left), SocketLink(right)
        assert other.poll() is None
        rest = link.offer(link.pack(1, "x", value))
        assert 0 < sum(map(len, rest)) < value.nbytes
        assert other.poll() is None
        sender = threading.Thread(target=link.send, args=(rest,))
        sender.start()
        assert np.array_equal(other.receive()[2], value)
        sender.join()


def send(end: socket.socket, run: int, name: str, value: Any) -> None:
    link = SocketLink(end)
    link.send(link.pack(run, name, value))


def copies(folder: Path) -> list[Job]:
    """Two workers, each with a model that copies a tensor."""
    from onnx import TensorProto, helper

    for k, (source, target) in enumerate(("xy", "yz")):
        graph = helper.make_graph(
            [helper.make_node("Identity", [source], [target])],
            "copy",
            [helper.make_tensor_value_info(source, TensorProto.FLOAT, [2])],
            [helper.make_tensor_value_info(target, TensorProto.FLOAT, [2])],
        )
        made = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
        (folder / f"{k}.onnx").write_bytes(made.SerializeToString())
    write_array(folder / "x.npy", np.float32([1, 2]))
    first = Segment("0.onnx", ("x",), ("y",), {"y": (1,)})
    second = Segment("1.onnx", ("y",), ("z",), results=("z",))
    cores = core_shares(2, 1)
    return [Job("left", (first,), {"x": "x.npy"}, cores[0]), Job("right", (second,), {}, cores[1])]


def test_a_pool_leaves_no_process(tmp_path: Path) -> None:
    with Pool(copies(tmp_path), tmp_path, Settings()) as pool:
        pool.run()
        assert pool.outputs()["z"].tolist() == [1, 2]
        pids = [child.process.pid for child in pool._children]
        assert all(psutil.pid_exists(pid) for pid in pids)
    assert not any(psutil.pid_exists(pid) for pid in pids)


@pytest.mark.parametrize("killed", [0, 1])
def test_a_worker_that_dies_is_an_error(killed: int, tmp_path: Path) -> None:
    with Pool(copies(tmp_path), tmp_path, Settings(timeout=60)) as pool:
        pool.run()
        os.kill(pool._children[killed].process.pid, signal.SIGKILL)
        message = f"worker of {('left', 'right')[killed]}: the process died of SIGKILL"
        with pytest.raises(po.ExecutionError, match=message):
            pool.run()


def test_a_worker_that_dies_while_it_answers_is_an_error(tmp_path: Path) -> None:
    pool = Pool(copies(tmp_path), tmp_path, Settings(timeout=60))
    pool._log(0).write_text("")
    script = tmp_path / "torn.py"
    script.write_text("import os, sys; sys.stdout.write('[1, 2'); sys.stdout.flush(); os.kill(os.getpid(), 9)")
    pool._children.append(Child(script, partial(pool._hear, 0)))
    with pytest.raises(po.ExecutionError, match=r"worker of left: the process died of SIGKILL \(out of memory\?\)"):
        pool._answers()
    pool._close()


def test_a_worker_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    with Pool(copies(tmp_path), tmp_path, Settings()) as pool:
        pool._timeout = 1.0
        os.kill(pool._children[1].process.pid, signal.SIGSTOP)
        with pytest.raises(
            po.ExecutionError,
            match=r"no answer within 1 s from the worker of right; a longer timeout \(--timeout\) may help",
        ):
            pool.run()


def test_a_model_that_cannot_be_loaded_names_its_file(tmp_path: Path) -> None:
    jobs = copies(tmp_path)
    (tmp_path / "1.onnx").write_bytes(b"nothing")
    with (
        pytest.raises(po.ExecutionError, match=r"worker of right, 1\.onnx: .*"),
        Pool(jobs, tmp_path, Settings()),
    ):
        raise AssertionError("not reached")


def test_an_operator_that_fails_names_the_model(tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Gather", ["a", "i"], ["y"])],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [3]),
            helper.make_tensor_value_info("i", TensorProto.INT64, [1]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
    )
    model = tmp_path / "model.onnx"
    made = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    model.write_bytes(made.SerializeToString())
    problem = problem_of(model)
    inputs = {"x": np.zeros(3, np.float32), "i": np.int64([7])}
    message = "worker of the unsplit model, .*model.onnx: .*Gather.*indices element out of data bounds"
    with pytest.raises(po.ExecutionError, match=message):
        po.run_onnx(problem, po.simulate(problem, [0, 1]), model, inputs=inputs)


def test_a_batch_size_that_the_file_fixes(tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    node, value = helper.make_node, helper.make_tensor_value_info
    graph = helper.make_graph(
        [node("Relu", ["x"], ["a"], name="first"), node("Exp", ["a"], ["y"], name="second")],
        "g",
        [value("x", TensorProto.FLOAT, [1, 3])],
        [value("y", TensorProto.FLOAT, [1, 3])],
    )
    model = tmp_path / "model.onnx"
    made = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    model.write_bytes(made.SerializeToString())
    problem = po.compile(po.from_onnx(model, batch=4).document)
    report = po.run_onnx(problem, po.simulate(problem, [0, 1]), model, runs=1, batch=4, fit=True)
    assert report.equal
    assert report.fit is not None
    assert report.fit.measured_tasks == 2
    assert report.notes == ()
    assert po.run_onnx(problem, po.simulate(problem, [0, 1]), model, runs=1).notes == ()  # the batch of the import
    (note,) = po.run_onnx(problem, po.simulate(problem, [0, 1]), model, runs=1, batch=1).notes
    assert note.endswith("state the --batch and --dim of the import")


def test_values_that_processes_cannot_exchange(tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    node = helper.make_node
    nodes = [node("SequenceConstruct", ["x", "x"], ["s"]), node("ConcatFromSequence", ["s"], ["y"], axis=0)]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, [2])], [value("y", TensorProto.FLOAT, [4])])
    model = tmp_path / "model.onnx"
    made = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    model.write_bytes(made.SerializeToString())
    problem = problem_of(model)
    with pytest.raises(
        po.UsageError, match="processes cannot exchange s, because NumPy has no arrays of type sequence"
    ):
        po.run_onnx(problem, po.simulate(problem, [0, 1]), model)
    assert po.run_onnx(problem, po.simulate(problem, [1, 1]), model, runs=1).equal


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"runs": 0}, "runs: 0 is out of range; expected a whole number from 1 to 100,000"),
        ({"runs": True}, "runs: True is out of range"),
        ({"warmup": -1}, "warmup: -1 is out of range"),
        ({"threads": 0}, "threads: 0 is out of range"),
        ({"seed": -1}, "seed: -1 is out of range"),
        ({"tolerance": -0.1}, "tolerance: -0.1 is out of range; expected a number from 0"),
        ({"tolerance": float("nan")}, "tolerance: nan is out of range"),
        ({"timeout": 0.0}, "timeout: 0.0 is not a time"),
        ({"timeout": float("nan")}, "timeout: nan is not a time"),
        ({"optimization": "al"}, "optimization: al is not a level; did you mean all?"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    model = saved(FUNCTIONS, tmp_path)
    problem = problem_of(model)
    with pytest.raises(po.UsageError, match=message):
        po.run_onnx(problem, po.simulate(problem, [0, 0, 0, 0]), model, **options)


def test_more_devices_than_cores_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("processes cannot be pinned on this system")
    core = min(os.sched_getaffinity(0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {core})
    model = saved(FUNCTIONS, tmp_path)
    problem = problem_of(model)
    report = po.run_onnx(problem, po.simulate(problem, [0, 1, 0, 1]), model, runs=1)
    assert report.cores == {"cpu0": (core,), "cpu1": (core,)}
    assert report.one_session is None
    assert report.notes == (
        "2 devices share 1 core, so segments that the plan runs at the same time slow each other down",
    )


def pipeline(model: Path, device: Sequence[int]) -> tuple[po.Problem, po.Schedule]:
    imported = po.from_onnx(model, devices="xeon-core:2", objective="period")
    imported.document["pipeline"] = {"stages": "free"}
    problem = po.compile(imported.document)
    return problem, po.simulate(problem, np.array(device))


def test_results_of_a_pipeline_follow_each_other(tmp_path: Path) -> None:
    model = saved(FUNCTIONS, tmp_path)
    problem, schedule = pipeline(model, [0, 1, 0, 1])
    report = po.run_onnx(problem, schedule, model, runs=4)
    assert report.equal
    assert report.results is not None
    assert report.results.shape == (5,)
    assert (np.diff(report.results) > 0).all()
    assert report.period == pytest.approx((report.results[-1] - report.results[0]) / 4)
    assert report.predicted.period == pytest.approx(period(problem, schedule) * float(problem.resolution))
    assert report.to_dict()["period"]["measured"] == report.period
    assert report.alternatives["the plan"] == report.period
    console = Console(file=io.StringIO(), width=140)
    print_run(console, report)
    assert "\nperiod " in console.file.getvalue()  # type: ignore[attr-defined]


def test_runs_of_a_pipeline_are_executed_by_the_starts_of_the_plan(tmp_path: Path) -> None:
    """Run k starts k periods later, so that the first device begins the next run between its two segments."""
    model = saved(FUNCTIONS, tmp_path)
    problem, schedule = pipeline(model, [0, 1, 1, 0])
    split = split_model(problem, schedule, read_model(model))
    start = split.segments.tasks(0)[0], split.segments.tasks(len(split.segments) - 1)[0]
    ticks = period(problem, schedule)
    assert schedule.start[start[0]] + ticks < schedule.start[start[1]]
    orders = stream_orders(problem, schedule, split, [0, 1], 3)
    assert sorted(orders[0]) == [(run, k) for run in range(3) for k in range(2)]
    assert orders[1] == [(run, 0) for run in range(3)]
    assert orders[0].index((1, 0)) < orders[0].index((0, 1))


@pytest.mark.parametrize(
    ("session", "shown"),
    [
        (0.5, "the unsplit model with 2 threads: 500 ms, against 1 s for the plan"),
        (5.0, "the plan: 1 s, against 2 s for the unsplit model"),
    ],
)
def test_the_fastest_way_to_run_the_model_is_named(session: float, shown: str, tmp_path: Path) -> None:
    model = saved(FUNCTIONS, tmp_path)
    problem = problem_of(model)
    report = po.run_onnx(problem, po.simulate(problem, [0, 1, 0, 1]), model, runs=1)
    ones = np.ones(report.end.shape)
    known = {"start": 0 * ones, "end": ones, "one_device": np.array([2.0]), "session_threads": 2}
    report = dataclasses.replace(report, one_session=np.array([session]), **known)
    console = Console(file=io.StringIO(), width=140)
    print_run(console, report)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert f"speedup    2.00 over the unsplit model, {session:.2f} over the unsplit model with 2 threads" in text
    assert shown in text
    assert "unsplit model, 2 threads" in text
    assert report.to_dict()["one_session"] == {"threads": 2, "measured": session}


def test_outputs_that_are_not_finite_are_a_note(tmp_path: Path) -> None:
    model = saved(FUNCTIONS, tmp_path)
    problem = problem_of(model)
    x = np.full((4, 8), np.inf, dtype=np.float32)
    report = po.run_onnx(problem, po.simulate(problem, [0, 0, 1, 0]), model, runs=1, inputs={"x": x})
    assert report.notes == ("outputs contain values that are not finite: y; state --inputs",)


def test_random_outputs_are_a_note(tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
    nodes = [helper.make_node("RandomNormalLike", ["x"], ["a"]), helper.make_node("Add", ["a", "x"], ["y"])]
    made = helper.make_model(
        helper.make_graph(nodes, "random", [x], [y]), ir_version=9, opset_imports=[helper.make_opsetid("", 17)]
    )
    model = tmp_path / "model.onnx"
    model.write_bytes(made.SerializeToString())
    problem = problem_of(model)
    report = po.run_onnx(problem, po.simulate(problem, [0, 1]), model, runs=1)
    assert not report.equal
    assert report.notes == ("outputs differ between runs of the unsplit model, too, perhaps at random: y",)


def test_a_core_that_stands_for_a_gpu_is_a_note(tmp_path: Path) -> None:
    model = saved(FUNCTIONS, tmp_path)
    base = problem_of(model)
    problem = po.build_problem(
        task_names=base.task_names,
        device_names=["gpu0", "cpu"],
        device_types=["gpu", "cpu"],
        duration=base.duration,
        edges=np.column_stack((base.edge_source, base.edge_target)),
    )
    report = po.run_onnx(problem, po.simulate(problem, [0, 0, 1, 0]), model, runs=1)
    assert report.notes[0].startswith("gpu0 runs on a CPU core here: predicted times are not those of this machine")
    assert po.run_onnx(problem, po.simulate(problem, [1, 1, 1, 1]), model, runs=1).notes == ()


def test_the_command_prints_tables_and_writes_a_trace(tmp_path: Path) -> None:
    model = light_model("squeezenet")
    problem, plan = files(model, tmp_path)
    done = run("run", problem, plan, "--model", model, "--runs", 2, "--fit", "--trace", tmp_path / "trace.json")
    assert done.code == 0, done.err
    header = done.out.splitlines()[0].split()
    assert header == ["segment", "device", "tasks", "predicted", "fitted", "measured", "off"]
    assert "whole run, segments" in done.out
    assert "equal: largest difference" in done.out
    assert max(len(line.rstrip()) for line in done.out.splitlines()) <= 140
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert breaches((tmp_path / "trace.json").read_text()) == []
    titles = [each["args"]["name"] for each in trace["traceEvents"] if each["name"] == "process_name"]
    assert titles == ["predicted", "fitted", "measured"]
    slices = [each for each in trace["traceEvents"] if each["ph"] == "X"]
    assert sum(each["args"]["tasks"] for each in slices) == 3 * 66
    assert [each["ts"] for each in slices] == sorted(each["ts"] for each in slices)


def test_a_fit_is_a_profile_that_applies_to_the_problem(tmp_path: Path) -> None:
    model = saved(FUNCTIONS, tmp_path)
    problem, plan = files(model, tmp_path, [0, 1, 0, 1])
    measured, better = tmp_path / "measured.yaml", tmp_path / "better.yaml"
    refused = run("run", problem, plan, "--model", model, "--profile", measured)
    assert (refused.code, refused.err) == (2, "placeopt: --profile needs --fit, which measures the times\n")
    done = run("run", problem, plan, "--model", model, "--runs", 2, "--fit", "--profile", measured, "--json")
    assert done.code == 0, done.err
    fit = json.loads(done.out)["fit"]
    assert run("profile", "apply", measured, problem, "--out", better).code == 0
    before, after = po.load(problem), po.load(better)
    assert fit["measured_tasks"] == len(after.task_names)
    assert after.task_names == before.task_names
    assert (after.duration[:, 1] == after.duration[:, 0]).all()
    expected = fit["transfer"]["latency"] + fit["overhead"] + fit["pause"]
    assert after.resolution * int(after.latency[0, 1]) == pytest.approx(expected, abs=1e-9)
    tasks = yaml.safe_load(measured.read_text())["tasks"]
    assert list(tasks) == list(before.task_names)
    assert all(set(task) == {"time"} for task in tasks.values())


def test_times_of_a_core_that_stands_for_a_gpu_are_not_compared(tmp_path: Path) -> None:
    model = saved(FUNCTIONS, tmp_path)
    problem, plan = files(model, tmp_path, [0, 1, 0, 1])
    document = yaml.safe_load(problem.read_text())
    names = list(document["devices"])
    document["devices"][names[1]] = {"type": "gpu"}
    problem.write_text(to_yaml(document))
    given = ("run", problem, plan, "--model", model, "--runs", 2)
    done = run(*given)
    assert done.code == 0, done.err
    assert f"{names[1]} runs on a CPU core here: predicted times are not those" in done.err
    table = done.out.partition("\n\n")[0].splitlines()[1:]
    assert [line.rstrip().endswith(("%", ",000")) for line in table] == [names[0] in line for line in table]
    measured = tmp_path / "measured.yaml"
    done = run(*given, "--fit", "--profile", measured)
    assert done.code == 0, done.err
    assert f"{names[1]} runs on a CPU core here: fitted times are those of this machine" in done.err
    assert f"the profile has no times of {names[1]} and no link" in done.err
    profile = yaml.safe_load(measured.read_text())
    assert all(list(task["time"]) == [names[0]] for task in profile["tasks"].values())
    assert "links" not in profile


def test_a_fit_in_the_plan_measures_every_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Celeritas's step 2: the times come from the processes of the plan."""
    profiled = []

    class Watched(Pool):
        def __init__(self, jobs: Sequence[Job], *rest: Any, profile: bool = False) -> None:
            profiled.extend(job.name for job in jobs if profile)
            super().__init__(jobs, *rest, profile=profile)

    monkeypatch.setattr(measurement, "Pool", Watched)
    model = saved(FUNCTIONS, tmp_path)
    problem = problem_of(model)
    schedule = po.simulate(problem, [0, 1, 0, 1])
    report = po.run_onnx(problem, schedule, model, runs=2, fit=True, in_plan=True)
    assert len(report.segment_tasks) > 1
    assert report.fit is not None
    assert set(report.fit.seconds) == set(problem.task_names)
    assert profiled == [problem.device_names[d] for d in (0, 1)]
    with pytest.raises(po.UsageError, match="in_plan needs fit, which measures the times"):
        po.run_onnx(problem, schedule, model, in_plan=True)


def test_runs_that_vary_are_stated(tmp_path: Path) -> None:
    model = saved(FUNCTIONS, tmp_path)
    problem = problem_of(model)
    report = po.run_onnx(problem, po.simulate(problem, [0, 1, 0, 1]), model, runs=2)
    shape = report.end.shape
    for longest, stated in ((1.5, False), (3.0, True)):
        end = np.array([[1.0], [longest]]) * np.ones(shape)
        console = Console(file=io.StringIO(), width=140)
        print_run(console, dataclasses.replace(report, start=np.zeros(shape), end=end))
        text = console.file.getvalue()  # type: ignore[attr-defined]
        assert f"2, of 1 s to {longest:g} s" in text
        assert ("; other programs may use the cores" in text) == stated


def test_a_small_deviation_has_no_negative_zero(tmp_path: Path) -> None:
    model = saved(FUNCTIONS, tmp_path)
    problem = problem_of(model)
    report = po.run_onnx(problem, po.simulate(problem, [0, 1, 0, 1]), model, runs=1)
    console = Console(file=io.StringIO(), width=140)
    predicted = dataclasses.replace(report.predicted, busy=report.measured * 0.999)
    print_run(console, dataclasses.replace(report, predicted=predicted))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "+0%" in text
    assert "-0%" not in text


def test_a_plan_of_one_segment_is_the_unsplit_model(tmp_path: Path) -> None:
    model = saved(FUNCTIONS, tmp_path)
    problem = problem_of(model)
    report = po.run_onnx(problem, po.simulate(problem, [0] * 4), model, runs=1)
    console = Console(file=io.StringIO(), width=140)
    print_run(console, report)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    line = next(line for line in text.splitlines() if line.startswith("speedup"))
    assert line.split(maxsplit=1)[1].rstrip() == "none: the plan has one segment, which is the unsplit model"


def test_the_command_prints_json(tmp_path: Path) -> None:
    model = saved(FUNCTIONS, tmp_path)
    problem, plan = files(model, tmp_path, [0, 1, 0, 1])
    done = run("run", problem, plan, "--model", model, "--runs", 3, "--json")
    assert done.code == 0, done.err
    data = json.loads(done.out)
    assert data["equal"] is True
    assert [each["device"] for each in data["segments"]] == ["cpu0", "cpu1", "cpu0", "cpu1"]
    assert len(data["segments"][0]["start"]) == 3
    assert data["outputs"] == [{"name": "y", "absolute": 0.0, "relative": 0.0}]


def test_different_outputs_have_exit_code_1(tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    nodes = [helper.make_node("RandomNormalLike", ["x"], ["a"]), helper.make_node("Add", ["a", "x"], ["y"])]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, [9])], [value("y", TensorProto.FLOAT, [9])])
    model = tmp_path / "model.onnx"
    made = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    model.write_bytes(made.SerializeToString())
    problem, plan = files(model, tmp_path, [0, 1])
    done = run("run", problem, plan, "--model", model)
    assert done.code == 1
    assert "different: largest difference" in done.out
    assert "an output differs from that of the unsplit model by more than 0.0001" in done.err
    done = run("run", problem, plan, "--model", model, "--tolerance", "1e9")
    assert (done.code, "the limit is 1e+09" in done.out) == (0, True)


@pytest.mark.parametrize(
    ("element", "op", "tolerance"),
    [("FLOAT16", "Exp", 0.01), ("DOUBLE", "Exp", 1e-4), ("UINT8", "Identity", 0.01)],
)
def test_the_tolerance_follows_the_number_format(element: str, op: str, tolerance: float, tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=getattr(TensorProto, element)),
        helper.make_node(op, ["a"], ["b"]),
        helper.make_node("Cast", ["b"], ["y"], to=TensorProto.FLOAT),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, [9])], [value("y", TensorProto.FLOAT, [9])])
    made = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    problem = problem_of(tmp_path / "model.onnx")
    report = po.run_onnx(problem, po.simulate(problem, [0, 1, 0]), tmp_path / "model.onnx", runs=1)
    assert report.equal
    assert (report.tolerance, report.to_dict()["tolerance"]) == (tolerance, tolerance)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "missing.onnx"), "placeopt: missing.onnx: no such file"),
        (("--runs", "0"), "--runs: 0 is out of range; expected a whole number from 1 to 100,000"),
        (("--dim", "x"), "--dim x: expected NAME=SIZE"),
        (("--dim", "x=3"), "--dim x: the model has no such dimension; all of its dimensions have sizes"),
        (("--batch", "0"), "--batch is 0; expected a whole number from 1"),
        (("--timeout", "0s"), '--timeout: "0s" is zero'),
        (("--inputs", "missing.npz"), "missing.npz: no such file"),
        (("--optimization", "much"), "--optimization: much is not a level; known are none, basic, extended, all"),
        (("--tolerance", "-1"), "--tolerance: -1.0 is out of range; expected a number from 0"),
        (("--trace", "no/such/folder.json"), "there is no folder"),
        (("--in-plan",), "--in-plan needs --fit, which measures the times"),
    ],
)
def test_the_command_with_wrong_arguments(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    model = saved(FUNCTIONS, tmp_path)
    problem, plan = files(model, tmp_path, [0, 1, 0, 1])
    given = arguments if arguments[0] == "--model" else ("--model", str(model), *arguments)
    done = run("run", problem, plan, *given)
    assert done.code == 2, done.out
    assert message in f"\n{done.err}"


def test_the_command_with_another_model_or_plan(tmp_path: Path) -> None:
    model = saved(FUNCTIONS, tmp_path)
    problem, plan = files(model, tmp_path, [0, 1, 0, 1])
    done = run("run", problem, plan, "--model", light_model("squeezenet"))
    assert done.code == 2
    assert "light_squeezenet.onnx is not the model of the problem: it has no nodes for 4 tasks" in done.err
    (tmp_path / "other").mkdir()
    _, other = files(light_model("squeezenet"), tmp_path / "other")
    done = run("run", problem, other, "--model", model)
    assert done.code == 2
    assert "plan.json" in done.err


def test_ctrl_c_ends_all_processes(tmp_path: Path) -> None:
    model = saved(FUNCTIONS, tmp_path)
    problem, plan = files(model, tmp_path, [0, 1, 0, 1])
    command = [sys.executable, "-m", "placeopt", "run", problem, plan, "--model", model, "--runs", "100000"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        list(map(str, command)), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        own = psutil.Process(process.pid)
        workers: list[psutil.Process] = []
        latest = time.monotonic() + 60
        while not workers and time.monotonic() < latest:
            time.sleep(0.05)
            workers = own.children()
        assert workers
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert "interrupted" in err
    _, alive = psutil.wait_procs(workers, timeout=60)  # one that was just being started ends with its input
    assert not alive
    assert not list(tmp_path.glob("placeopt-run-*"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_is_stated_for_arrays_too() -> None:
    with pytest.raises(OSError, match="No space left on device"):
        write_array(Path("/dev/full"), np.zeros(100_000))
