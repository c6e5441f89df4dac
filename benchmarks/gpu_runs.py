"""Place two PyTorch models on a CPU and a GPU by measured times, run the plans, and read traces of the GPU.

    python benchmarks/gpu_runs.py [plans|traces] [resnet50] [transformer] [--gpu cuda:0] [--threads 8] [--runs 15]
        [--share 0.6] [--time-limit 20] [--json FILE] [--keep FOLDER]

`plans`: the models are resnet50 of torchvision with 8 images, and a Llama-shaped transformer with 6 layers, 38 million
parameters and 512 tokens, both with random weights in fp32. A first run measures the nodes on the CPU and on the GPU,
and transfers between their processes (`placeopt run --fit`), and the measurements are applied to the problem. It is
then solved by cp-sat (seed 0), with the memory of the GPU and with `--share` of what the model takes on it. The table
compares predicted with measured times of both plans, and with the unsplit model on the GPU and on the CPU. Times are
medians; outputs must equal those of the CPU. The last column has the times of the parts of the plan in one process
(`SplitCallback.move`), one after the other.

`traces`: torch.profiler records each model on the GPU, with a copy on a second stream. The sum of the times that
placeopt reads must equal the work of the GPU in the trace. The nodes that `profile_torch` measures are compared with
the run without the profiler, and the memory of the model in the problem with what PyTorch allocates. A profile of ONNX
Runtime on the CPU is read, too.

On a machine without a GPU, `--gpu cpu` runs everything with a second CPU in the place of the GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from rich.console import Console
from rich.table import Table
from torch.export.passes import move_to_device_pass

import placeopt as po
from placeopt.bridges import profiling
from placeopt.model.memory import used_memory

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from torch_models import Llama, Mlp

MODELS = ("resnet50", "transformer")
STEPS = 5


def main() -> None:
    """Run the benchmarks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", nargs="*", metavar="NAME", help="plans, traces, resnet50, transformer; default: all")
    parser.add_argument("--gpu", default="cuda:0", help="the GPU, a device of PyTorch")
    parser.add_argument("--threads", type=int, default=8, help="threads of each process")
    parser.add_argument("--runs", type=int, default=15, help="measured runs")
    parser.add_argument("--share", type=float, default=0.6, help="memory of the GPU relative to that of the model")
    parser.add_argument("--time-limit", type=float, default=20, help="seconds of cp-sat")
    parser.add_argument("--json", type=Path, help="write all figures to this file, after each of them")
    parser.add_argument("--keep", type=Path, help="write the trace of a small model to this folder")
    asked = parser.parse_args()
    known = ("plans", "traces", *MODELS)
    if unknown := [name for name in asked.what if name not in known]:
        sys.exit(f"unknown {unknown[0]}; known are {', '.join(known)}")
    models = [name for name in MODELS if name in asked.what] or MODELS
    parts = [name for name in known[:2] if name in asked.what] or known[:2]
    found: dict[str, Any] = {"machine": machine(asked.gpu)}
    print(found["machine"])
    torch.set_num_threads(asked.threads)
    for part in parts:
        for name in models:
            torch.manual_seed(0)
            begin = time.perf_counter()
            with tempfile.TemporaryDirectory() as folder, torch.no_grad():
                measured = (plans if part == "plans" else traces)(name, asked, Path(folder))
            found[f"{part} {name}"] = measured
            print(f"{part}, {name}: {time.perf_counter() - begin:.0f} s", flush=True)
            write(asked.json, found)
    if "traces" in parts:
        found["onnxruntime"] = onnx_profile(asked.threads)
        write(asked.json, found)
        if asked.keep:
            small(asked.gpu, asked.keep)
    if "plans" in parts:
        Console(width=120).print(table([row for name in models for row in found[f"plans {name}"]["plans"]]))


def write(path: Path | None, found: dict[str, Any]) -> None:
    """Write all figures so far."""
    if path:
        path.write_text(json.dumps(found, indent=1) + "\n")


def machine(gpu: str) -> str:
    """The GPU, the number of cores, and the versions."""
    name = torch.cuda.get_device_name(gpu) if gpu.startswith("cuda") else "no GPU"
    return f"{name}, {torch.get_num_threads()} cores, PyTorch {torch.__version__}"


def model_of(name: str) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """A model with random weights, and its inputs."""
    if name == "resnet50":
        from torchvision.models import resnet50

        return resnet50(weights=None).eval(), (torch.rand(8, 3, 224, 224),)
    model = Llama(layers=6, size=512, heads=8, key_heads=4, inner=2048, vocabulary=16000).eval()
    return model, (torch.randint(0, 16000, (1, 512)),)


def plans(name: str, asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Plans from measured times: predicted and measured."""
    model, inputs = model_of(name)
    path = folder / "model.pt2"
    program = torch.export.export(model, inputs)
    torch.export.save(program, path)
    network = {
        "devices": {
            "cpu0": {"type": "cpu", "speed": "500 GFLOP/s", "memory_bandwidth": "100 GB/s"},
            "gpu0": {"type": "gpu", "speed": "50 TFLOP/s", "memory_bandwidth": "2 TB/s", "memory": "64 GiB"},
        },
        "links": {"default": {"bandwidth": "2 GB/s", "latency": "100 us"}},
    }
    imported = po.from_torch(program, devices=network, name=name)
    given: dict[str, Any] = {"threads": asked.threads, "runs": asked.runs, "warmup": 3, "devices": {"gpu0": asked.gpu}}
    if name == "transformer":
        given["inputs"] = {"ids": inputs[0].numpy()}
    first = po.compile(imported.document)
    halves = np.zeros(first.n_tasks, dtype=np.int64)
    halves[first.order] = np.arange(first.n_tasks) >= first.n_tasks // 2
    for group in range(first.n_groups):  # colocated tasks stay together
        halves[first.group == group] = halves[np.flatnonzero(first.group == group)[0]]
    report = po.run_torch(first, po.simulate(first, halves), imported, path, fit=True, **given)
    assert report.fit is not None
    assert report.fitted is not None
    rows = [row_of(name, "halves", report, report.fitted.makespan, report.fitted.tasks)]
    document = profiling.apply_profile(imported.document, report.fit.profile()).document
    whole = int(used_memory(first, po.simulate(first, np.ones(first.n_tasks, dtype=np.int64)))[1])
    for title, memory in (("free", 64 << 30), (f"{asked.share:.0%} of the memory", int(asked.share * whole))):
        document["devices"]["gpu0"]["memory"] = memory
        problem = po.compile(document)
        result = po.solve(problem, "cp-sat", time_limit=asked.time_limit, seed=0)
        assert result.schedule is not None
        run = po.run_torch(problem, result.schedule, imported, path, **given)
        row = row_of(name, title, run, run.predicted.makespan, run.predicted.tasks)
        row["one_process"] = one_process(po.split_callback(problem, result.schedule, imported), program, inputs, asked)
        on_gpu = result.schedule.device == 1
        print(row, flush=True)
        rows.append(row | {
            "tasks_on_gpu": int(on_gpu.sum()), "tasks": problem.n_tasks, "gap": result.gap,
            "memory": int(used_memory(problem, result.schedule)[1]), "notes": list(run.notes),
        })  # fmt: skip
    return {
        "plans": rows,
        "transfer": [report.fit.costs.transfer.latency, report.fit.costs.transfer.bandwidth],
        "segment": list(report.fit.costs.segment),
        "pause": report.fit.costs.pause,
        "sums": [
            sum(seconds[d] or 0 for seconds in report.fit.seconds.values()) for d in range(2)
        ],
        "memory_of_model": whole,
    }  # fmt: skip


def one_process(
    callback: po.SplitCallback, program: Any, inputs: tuple[torch.Tensor, ...], asked: argparse.Namespace
) -> float:
    """The median time of the parts of a plan in this process, which run one after the other."""
    parts = callback.split(program.module())
    callback.move(parts, {"cpu0": "cpu", "gpu0": asked.gpu})
    seconds = []
    for _ in range(3 + asked.runs):
        begin = time.perf_counter()
        parts(*inputs)
        finish(asked.gpu)
        seconds.append(time.perf_counter() - begin)
    return float(np.median(seconds[3:]))


def row_of(name: str, plan: str, report: po.RunReport, predicted: float, tasks: float) -> dict[str, Any]:
    """The times of a run in seconds, and the largest difference of an output."""
    return {
        "model": name,
        "plan": plan,
        "segments": len(report.segment_device),
        "predicted": predicted,
        "task_by_task": tasks,
        "measured": report.makespan,
        "unsplit": {
            "cpu": float(np.median(report.one_device)),
            **{place: float(np.median(each)) for place, each in report.elsewhere.items()},
        },
        "session": None if report.one_session is None else float(np.median(report.one_session)),
        "equal": report.equal,
        "difference": report.largest_difference,
        "segment_busy": [[int(d), float(p), float(m)] for d, p, m in zip(
            report.segment_device, (report.fitted or report.predicted).busy, report.measured, strict=True
        )][:40],
    }  # fmt: skip


def table(rows: list[dict[str, Any]]) -> Table:
    """Predicted and measured times."""
    made = Table(title="plans from measured times, and the unsplit model, in ms")
    headers = ("model", "plan", "segments", "predicted", "measured", "off", "on the GPU", "on the CPU", "one process")
    for header in headers:
        made.add_column(header, justify="left" if header in ("model", "plan") else "right")
    for row in rows:
        gpu = [seconds for place, seconds in row["unsplit"].items() if place != "cpu"]
        assert row["equal"], f"{row['model']}, {row['plan']}: an output differs by {row['difference']}"
        made.add_row(
            row["model"], row["plan"], str(row["segments"]), f"{row['predicted'] * 1e3:.3f}",
            f"{row['measured'] * 1e3:.3f}", f"{row['predicted'] / row['measured'] - 1:+.1%}",
            *(f"{seconds * 1e3:.3f}" for seconds in gpu or [float("nan")]), f"{row['unsplit']['cpu'] * 1e3:.3f}",
            f"{row['one_process'] * 1e3:.3f}" if "one_process" in row else "-",
        )  # fmt: skip
    return made


def finish(gpu: str) -> None:
    """Wait for the GPU."""
    if gpu.startswith("cuda"):
        torch.cuda.synchronize(gpu)


def recorded(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], gpu: str, path: Path) -> None:
    """Record steps of a model, each with a copy of an input to the GPU, on a second stream if there is one."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    cuda = gpu.startswith("cuda")
    if cuda:
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    moved = [each.to(gpu) for each in inputs]
    host = inputs[0].pin_memory() if cuda else inputs[0].clone()
    side = torch.cuda.Stream(gpu) if cuda else None
    schedule = torch.profiler.schedule(wait=0, warmup=2, active=STEPS, repeat=1)
    with torch.profiler.profile(activities=activities, schedule=schedule) as profile:
        for _ in range(STEPS + 2):
            model(*moved)
            with torch.cuda.stream(side):
                host.to(gpu, non_blocking=True, copy=True)
            finish(gpu)
            profile.step()
    profile.export_chrome_trace(str(path))


def traces(name: str, asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """What placeopt reads from traces, against the work in them and against runs without the profiler."""
    model, inputs = model_of(name)
    program = torch.export.export(model, inputs)
    imported = po.from_torch(program, devices="h100-sxm:1")
    problem = po.compile(imported.document)
    gpu, cuda = asked.gpu, asked.gpu.startswith("cuda")
    model = model.to(gpu)
    moved = tuple(each.to(gpu) for each in inputs)
    if cuda:
        torch.cuda.reset_peak_memory_stats(gpu)
    seconds = []
    for _ in range(3 + asked.runs):
        finish(gpu)
        begin = time.perf_counter()
        model(*moved)
        finish(gpu)
        seconds.append(time.perf_counter() - begin)
    path = folder / "trace.json"
    recorded(model, inputs, gpu, path)
    events = [each for each in json.loads(path.read_text())["traceEvents"] if each.get("ph") == "X"]
    measured = profiling.read_kineto_trace(path)
    kinds = ("kernel", "gpu_memcpy", "gpu_memset") if cuda else ("cpu_op",)
    work = [each for each in events if each.get("cat") in kinds]
    moved_program = move_to_device_pass(program, gpu)
    nodes = profiling.profile_torch(moved_program, moved, imported.document, runs=asked.runs, warm_up=3)
    placed = po.simulate(problem, np.zeros(problem.n_tasks, dtype=np.int64))
    return {
        "unprofiled": float(np.median(seconds[3:])),
        "read": float(measured.seconds.sum()) / STEPS,
        "work": sum(each["dur"] for each in work) / 1e6 / STEPS,
        "work_by_kind": {kind: sum(each["cat"] == kind for each in work) for kind in kinds},
        "streams": sorted({str(each["args"].get("stream")) for each in work}),
        "steps": [each["dur"] for each in events if each["name"].startswith("ProfilerStep#")],
        "longest": longest(measured),
        "notes": list(measured.notes),
        "nodes": float(nodes.seconds.sum()) / asked.runs,
        "nodes_measured": int((nodes.seconds > 0).sum()) // asked.runs,
        "tasks": problem.n_tasks,
        "memory": {
            "problem": int(used_memory(problem, placed)[0]),
            "allocated": torch.cuda.max_memory_allocated(gpu) if cuda else None,
        },
    }


def longest(measured: profiling.Measurements) -> dict[str, float]:
    """The operators with the longest times, in seconds of all steps."""
    total: dict[str, float] = {}
    for member, seconds in zip(measured.member.tolist(), measured.seconds.tolist(), strict=True):
        operator = measured.series[member][0]
        total[operator] = total.get(operator, 0.0) + seconds
    return dict(sorted(total.items(), key=lambda pair: -pair[1])[:8])


def onnx_profile(threads: int) -> dict[str, Any]:
    """The nodes of a profile of ONNX Runtime, against runs without it."""
    import onnxruntime

    path = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_resnet50.onnx"
    seconds, measured = [], None
    for profiled in (False, True):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.enable_profiling = profiled
        with tempfile.TemporaryDirectory() as folder:
            options.profile_file_prefix = str(Path(folder) / "profile")
            session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            feed = {
                each.name: np.random.default_rng(0).random(each.shape, dtype=np.float32)
                for each in session.get_inputs()
            }
            for _ in range(3 + STEPS):
                begin = time.perf_counter()
                session.run(None, feed)
                seconds.append(time.perf_counter() - begin)
            if profiled:
                measured = profiling.read_onnxruntime_profile(session.end_profiling())
    assert measured is not None
    names = set(po.compile(po.from_onnx(path).document).task_names)
    return {
        "version": onnxruntime.__version__,
        "unprofiled": float(np.median(seconds[3 : 3 + STEPS])),
        "nodes": float(measured.seconds.sum()) / (3 + STEPS),
        "matched": sum(name in names for name, _ in measured.series),
        "tasks": len(names),
        "notes": list(measured.notes),
    }


def small(gpu: str, folder: Path) -> None:
    """Record a small model: test data."""
    recorded(Mlp(16, 32, 4).to(gpu), (torch.rand(8, 16),), gpu, folder / "mlp.json")


if __name__ == "__main__":
    main()
