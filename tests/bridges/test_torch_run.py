"""Plans of PyTorch models, run: equal outputs, pipelines, and clear errors when a process fails."""

from __future__ import annotations

import json
import os
import signal
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from commandline import run

import placeopt as po

pytest.importorskip("torch", reason="PyTorch models need torch: pip install 'placeopt[torch]'")

import torch
from torch import Tensor, nn
from torch_models import ConvNet, Mlp, small_llama

from placeopt.bridges.running import torch_execution
from placeopt.bridges.running.pool import Job, Pool, Segment, Settings
from placeopt.bridges.running.torch_files import write_values
from placeopt.io.formats.documents import to_yaml
from placeopt.model.period import period

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="workers inherit connected sockets"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),  # of PyTorch, in its own modules
]

NETWORK = {
    "devices": {"cpu": {"count": 3, "speed": "10 GFLOP/s", "memory_bandwidth": "10 GB/s"}},
    "links": {"default": {"bandwidth": "1 GB/s"}},
}


class Mixed(nn.Module):
    """Operators in place, views, a buffer that changes, constants, control flow, and outputs in a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: Tensor, *, scale: Tensor) -> dict[str, Any]:
        self.count.add_(1)
        y = self.a(x)
        early = y.sin()
        y.relu_()
        first, second = self.b(y).chunk(2, 1)
        z = torch.cond(first.sum() > 0, lambda t: t.exp(), lambda t: t - 1, (first.clone(),))
        values, places = (z + early[:, :3] + torch.arange(3) * scale).max(1)
        x.mul_(2)
        return {"sum": values * second.sum(1) + self.count, "places": (places, None, 3), "x": x + y}


def saved(folder: Path, model: nn.Module, *args: Any, kwargs: dict[str, Any] | None = None, **options: Any) -> Path:
    torch.manual_seed(0)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch about control flow
        program = torch.export.export(model, args, kwargs, strict=False, **options)
    torch.export.save(program, folder / "model.pt2")
    return folder / "model.pt2"


def placed(model: Path, devices: int, **options: Any) -> tuple[po.Imported, po.Problem, po.Schedule]:
    """A random placement, in which tasks that share a weight share a device."""
    program = torch.export.load(model)
    network = {**NETWORK, "devices": {"cpu": {**NETWORK["devices"]["cpu"], "count": devices}}}
    imported = po.from_torch(program, devices=network, **options)
    problem = po.compile(imported.document)
    drawn = np.random.default_rng(1).integers(0, devices, problem.n_groups)
    drawn[:devices] = np.arange(devices)
    return imported, problem, po.simulate(problem, drawn[problem.group])


IDS = torch.arange(32).reshape(4, 8)

THREADS = 2
"""On two cores, the unsplit model need not run again with the threads of all devices: a process less, with PyTorch."""


@pytest.mark.parametrize("name", ["training mode", "mixed"])
def test_outputs_are_equal(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, args, kwargs = {
        "training mode": (ConvNet(8), (torch.randn(2, 3, 16, 16),), None),  # batch norm changes its buffers
        "mixed": (Mixed(), (torch.randn(5, 6),), {"scale": torch.tensor(0.5)}),
    }[name]
    path = saved(tmp_path, model, *args, kwargs=kwargs)
    imported, problem, schedule = placed(path, 3 if name == "mixed" else 2)
    report = po.run_torch(problem, schedule, imported, path, runs=2, threads=THREADS)
    assert report.equal
    assert report.largest_difference <= 1e-5
    assert len(report.differences) == (3 if name == "mixed" else 1)
    assert len(report.segment_tasks) > 1
    assert sorted(task for tasks in report.segment_tasks for task in tasks) == sorted(problem.task_names)
    assert (report.start <= report.end).all()
    assert report.period is None


def test_sizes_and_short_floats_pass_between_processes(tmp_path: Path) -> None:
    class Sizes(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            y = x.relu()
            return y.reshape(y.shape[0] * 2, -1).exp() * y.shape[0]

    batch = torch.export.Dim("batch", min=2, max=64)
    x = torch.rand(4, 6).bfloat16()
    path = saved(tmp_path, Sizes(), x, dynamic_shapes=({0: batch},))
    imported, problem, schedule = placed(path, 2, batch=5)
    report = po.run_torch(problem, schedule, imported, path, runs=1, batch=5, threads=THREADS)
    assert report.equal
    assert report.tolerance == 0.05
    with pytest.raises(po.UsageError, match="the model has symbolic sizes; state a value for each: --dim x"):
        po.run_torch(problem, schedule, imported, path)
    with pytest.raises(po.DocumentError, match=r"x: has the shape \[2, 6\]; expected \[5, 6\]"):
        po.run_torch(problem, schedule, imported, path, batch=5, inputs={"x": np.zeros((2, 6), np.float32)})


def test_tensors_travel_through_gloo(tmp_path: Path) -> None:
    values = [
        torch.arange(6.0).reshape(2, 3),
        torch.tensor([1.5, -2], dtype=torch.bfloat16),
        torch.tensor(2.5, dtype=torch.float64),
        torch.zeros(0, 4),
        torch.tensor([True, False]),
        torch.tensor([1 + 2j]),
        torch.arange(6, dtype=torch.int8).reshape(2, 3).T,
        torch.rand(1 << 18),
    ]
    inputs = write_values({f"x{k}": value for k, value in enumerate(values)}, tmp_path)
    first = [Segment("copy", (f"x{k}",), (f"y{k}",), {f"y{k}": (1,)}) for k in range(len(values))]
    second = [Segment("copy", (f"y{k}",), (f"z{k}",), results=(f"z{k}",)) for k in range(len(values))]
    jobs = [Job("left", tuple(first), inputs), Job("right", tuple(second), {})]
    with Pool(jobs, tmp_path, Settings(runtime="torch")) as pool:
        pool.run()
        found = pool.outputs()
        os.kill(pool._children[0].process.pid, signal.SIGKILL)
        with pytest.raises(po.ExecutionError, match="worker of left: the process died of SIGKILL"):
            pool.run()
        pids = [child.process.pid for child in pool._children]
    assert not any(psutil.pid_exists(pid) for pid in pids)
    for k, value in enumerate(values):
        assert found[f"z{k}"].shape == tuple(value.shape)
        expected = value.float() if value.dtype == torch.bfloat16 else value
        assert np.array_equal(found[f"z{k}"], expected.numpy())


def test_a_pipeline_of_a_transformer_measures_its_period(tmp_path: Path) -> None:
    path = saved(tmp_path, small_llama(1), IDS)
    imported, problem, _ = placed(path, 2, objective="period")
    schedule = po.solve(problem, "dpl").schedule
    assert schedule is not None
    assert schedule.stages is not None
    (tmp_path / "problem.yaml").write_text(to_yaml(imported.document))
    po.write_plan(tmp_path / "plan.json", po.plan_document(problem, schedule, solver="dpl"))
    given = ("run", tmp_path / "problem.yaml", tmp_path / "plan.json", "--model", path)
    done = run(*given, "--runs", 6, "--threads", THREADS, "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["equal"]
    assert max(each["relative"] for each in found["outputs"]) <= 1e-5
    assert found["period"]["predicted"] == pytest.approx(period(problem, schedule) * float(problem.resolution))
    assert found["period"]["measured"] > 0
    assert found["period"]["fitted"] is None


def test_the_command_measures_nodes_and_writes_a_profile(tmp_path: Path) -> None:
    path = saved(tmp_path, Mlp(8, 16, 4).eval(), kwargs={"x": torch.randn(3, 8)})
    imported, problem, schedule = placed(path, 2)
    (tmp_path / "problem.yaml").write_text(to_yaml(imported.document))
    po.write_plan(tmp_path / "plan.json", po.plan_document(problem, schedule, solver="by-hand"))
    given = ("run", tmp_path / "problem.yaml", tmp_path / "plan.json", "--model", path)
    wrong = run(*given, "--optimization", "all")
    assert wrong.code == 2
    assert "--optimization all: only for ONNX models; " in wrong.err
    done = run(*given, "--runs", 2, "--fit", "--profile", tmp_path / "measured.yaml")
    assert done.code == 0, done.err
    for text in ("equal: largest difference", "whole run, segments", "unsplit model, one device", "fastest"):
        assert text in done.out
    assert f"{problem.n_tasks} of {problem.n_tasks} tasks; a transfer takes" in done.out
    tasks = po.load(tmp_path / "problem.yaml").task_names
    assert all(f"{task}:" in (tmp_path / "measured.yaml").read_text() for task in tasks)


def test_an_operator_that_fails_names_the_segment(tmp_path: Path) -> None:
    path = saved(tmp_path, small_llama(1), IDS)
    imported, problem, schedule = placed(path, 2)
    with pytest.raises(
        po.ExecutionError, match=r"worker of the unsplit model, .*model\.pt2: index out of range in self"
    ):
        po.run_torch(problem, schedule, imported, path, inputs={"ids": np.full((4, 8), 99)})


def test_another_program_is_a_usage_error(tmp_path: Path) -> None:
    imported, problem, schedule = placed(saved(tmp_path, Mlp(4, 4, 4), torch.zeros(1, 4)), 2)
    other = saved(tmp_path, Mlp(4, 4), torch.zeros(1, 4))
    with pytest.raises(po.UsageError, match="the graph has no node"):
        po.run_torch(problem, schedule, imported, other)
    meta = saved(tmp_path, Mlp(4, 4).to("meta"), torch.zeros(1, 4, device="meta"))
    with pytest.raises(po.UsageError, match=r"model\.pt2: its weights are on meta; expected a program on the CPU"):
        po.run_torch(problem, schedule, imported, meta)
    (tmp_path / "broken.pt2").write_bytes(b"PK")
    with pytest.raises(po.DocumentError, match=r"broken\.pt2: cannot be read as a zip archive"):
        po.run_torch(problem, schedule, imported, tmp_path / "broken.pt2")


def test_devices_of_two_kinds_are_measured_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second name of the CPU stands for a GPU."""

    class Clock(nn.Module):
        """Creates tensors on the device of its input: the exported graph names it."""

        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(6, 8), nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            y = self.one(x).relu() + torch.arange(8, device=x.device)
            return self.two(y) * torch.ones(3, device=x.device)

    path = saved(tmp_path, Clock(), torch.randn(4, 6))
    rates = {"speed": "1 GFLOP/s", "memory_bandwidth": "1 GB/s"}
    network = {**NETWORK, "devices": {name: {"type": name[:3], **rates} for name in ("cpu0", "gpu0")}}
    imported = po.from_torch(torch.export.load(path), devices=network)
    problem = po.compile(imported.document)
    halves = np.zeros(problem.n_tasks, dtype=np.int64)
    halves[problem.order] = np.arange(problem.n_tasks) * 2 >= problem.n_tasks
    schedule = po.simulate(problem, halves)
    with pytest.raises(po.UsageError, match=r"devices gpu0=cuda:99: this machine runs plans on cpu"):
        po.run_torch(problem, schedule, imported, path, devices={"gpu0": "cuda:99"})
    monkeypatch.setattr(torch_execution, "_places", lambda *_: ["cpu", "cpu:0"])
    with pytest.raises(po.UsageError, match="in-plan measures each task only where the plan runs it, but cpu, cpu:0"):
        po.run_torch(problem, schedule, imported, path, fit=True, in_plan=True)
    report = po.run_torch(problem, schedule, imported, path, runs=2, threads=THREADS, fit=True)
    assert report.equal
    assert report.places == {"cpu0": "cpu", "gpu0": "cpu:0"}
    assert list(report.elsewhere) == ["cpu:0"]
    assert "the unsplit model on cpu:0" in report.alternatives
    assert report.fit is not None
    assert report.fit.slowdown == (1, 1)
    assert all(len(seconds) == 2 and None not in seconds for seconds in report.fit.seconds.values())
    times = [each["time"] for each in report.fit.profile()["tasks"].values()]
    assert all(set(each) == {"cpu0", "gpu0"} for each in times)
