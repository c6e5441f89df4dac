"""Check that plans of ONNX models run, and measure how far predicted times are off.

    python benchmarks/onnx_bridges.py outputs [MODEL ...] [--placements 50] [--time-limit 20]
    python benchmarks/onnx_bridges.py times [MODEL ...] [--runs 15]
    python benchmarks/onnx_bridges.py again [MODEL ...] [--runs 15] [--time-limit 20]

The models are the nine light models of the package onnx; their weights are computed by nodes. The problem is the one
that `placeopt import` makes, on two cores.

`outputs` imports each model, solves it with heft and with cp-sat (seed 0, two workers), and exports and runs both plans
with `po.run_onnx`. It also exports random placements and runs their segments one after the other in one process. The
table shows the largest difference of an output from that of the unsplit model, |x - r| / max(1, |r|). All weights of
most light models are equal, so that their outputs are, too. Therefore random values replace the constants that
ConstantOfShape nodes make, unless `--light` is given.

`times` predicts the times of two processes from measured nodes, transfers and contention (`placeopt run --fit`), of a
plan that heft computes for two cores, and of the two halves of the work. ONNX Runtime has one thread and makes no graph
optimizations; each process is pinned to a core; times are medians. For comparison, Celeritas (Xu et al. 2022, table 5)
reports mean errors of 8% to 14% for times of operators, extrapolated from smaller batches.

`again` applies these measurements to the problem (`--profile`), solves it again with heft and with cp-sat (seed 0, two
workers), both consolidated by 1%, and runs the plan in turns with the unsplit model on one core. No plan should be
slower than one core.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.bridges.onnx_models.submodels import Writer, split_model
from placeopt.bridges.profiling import apply_profile
from placeopt.bridges.running.tensors import difference, random_inputs

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
MODELS = (
    "bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19",
    "zfnet512",
)  # fmt: skip
TIMED = ("squeezenet", "shufflenet", "inception_v1", "resnet50", "densenet121")


def main() -> None:
    """Run one of the benchmarks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("outputs", "times", "again"))
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"any of {', '.join(MODELS)}")
    parser.add_argument("--placements", type=int, default=50, help="random placements of each model")
    parser.add_argument("--time-limit", type=float, default=20, help="seconds of cp-sat")
    parser.add_argument("--runs", type=int, default=15, help="measured runs")
    parser.add_argument("--light", action="store_true", help="keep the equal weights of the light models")
    asked = parser.parse_args()
    if unknown := [name for name in asked.models if name not in MODELS]:
        sys.exit(f"unknown model {unknown[0]}; known are {', '.join(MODELS)}")
    with tempfile.TemporaryDirectory() as folder:
        if asked.what == "outputs":
            table = outputs(asked.models or MODELS, asked, Path(folder))
        else:
            measured = times if asked.what == "times" else again
            table = measured(asked.models or TIMED, asked)
    Console(width=120).print(table)


def light(name: str) -> Path:
    """The path of a light model."""
    return LIGHT / f"light_{name}.onnx"


def imported(path: Path) -> po.Problem:
    """The problem of a model on two cores."""
    return po.compile(po.from_onnx(path).document)


def outputs(models: Any, asked: argparse.Namespace, folder: Path) -> Table:
    """Differences of the outputs of plans and of random placements."""
    table = Table(title="largest differences from the outputs of the unsplit model")
    for header in ("model", "tasks", "import", "heft", "cp-sat", "gap", "segments", "random", "segments"):
        table.add_column(header, justify="left" if header == "model" else "right")
    for name in models:
        path = light(name)
        begin = time.perf_counter()
        problem = imported(path)
        took = time.perf_counter() - begin
        if not asked.light:
            path = varied(path, folder)
        heft = po.solve(problem, "heft")
        exact = po.solve(problem, "cp-sat", time_limit=asked.time_limit, workers=2)
        runs = [po.run_onnx(problem, result.schedule, path, runs=1) for result in (heft, exact)]
        worst, count = random_placements(path, problem, asked.placements, folder, asked.light)
        table.add_row(
            name, str(problem.n_tasks), f"{took:.2f} s", *(f"{each.largest_difference:.1e}" for each in runs),
            f"{exact.gap:.1%}", str(len(runs[1].segment_device)), f"{worst:.1e}", f"{count:.0f}",
        )  # fmt: skip
        print(f"{name}: done", file=sys.stderr)
    return table


def varied(path: Path, folder: Path) -> Path:
    """A copy of a light model with random weights instead of equal ones, in an external file."""
    model = onnx.load(path)
    random = np.random.default_rng(0)
    shapes = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    kept = []
    for node in model.graph.node:
        if node.op_type == "ConstantOfShape" and shapes[node.input[0]].prod() > 1:
            shape = shapes[node.input[0]]
            fan = max(1, int(np.prod(shape[1:])))
            values = random.standard_normal(shape, dtype=np.float32)
            # Values of a batch normalization near 1, and weights that keep the size of activations about the same.
            values = 1 + values / 10 if len(shape) == 1 else values / np.float32(np.sqrt(fan))
            model.graph.initializer.append(onnx.numpy_helper.from_array(values, node.output[0]))
        else:
            kept.append(node)
    del model.graph.node[:]
    model.graph.node.extend(kept)
    made = folder / path.name
    onnx.save(model, made, save_as_external_data=True, location=f"{path.name}.data")
    return made


def session(path: Path) -> Any:
    """A session with one thread and without optimizations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def random_placements(
    path: Path, problem: po.Problem, count: int, folder: Path, equal_weights: bool
) -> tuple[float, float]:
    """Largest difference over random placements, and their mean number of segments."""
    writer = Writer(path)
    names = [name for name in writer.model.outputs if name not in writer.model.inputs]
    inputs = random_inputs(writer.model, 0)
    expected = session(path).run(names, inputs)
    assert all(np.isfinite(each).all() for each in expected), "the outputs are not finite"
    assert equal_weights or all(np.ptp(each) > 0 for each in expected), "all values of an output are equal"
    random = np.random.default_rng(0)
    worst, segments = 0.0, 0
    for _ in range(count):
        schedule = po.simulate(problem, random.integers(0, problem.n_devices, problem.n_tasks))
        split = split_model(problem, schedule, writer.model)
        values = dict(inputs)
        with tempfile.TemporaryDirectory(dir=folder) as made:
            for file, submodel in zip(writer.write_segments(split, Path(made)), split.submodels, strict=True):
                onnx.checker.check_model(Path(made) / file)
                found = session(Path(made) / file).run(
                    list(submodel.outputs), {each: values[each] for each in submodel.inputs}
                )
                values.update(zip(submodel.outputs, found, strict=True))
        segments += len(split.submodels)
        for name, reference in zip(names, expected, strict=True):
            worst = max(worst, difference(name, values[name], reference).relative)
    return worst, segments / max(count, 1)


def times(models: Any, asked: argparse.Namespace) -> Table:
    """Fitted predictions and measured times."""
    table = Table(title="times predicted from measured nodes, transfers and contention")
    for header in ("model", "plan", "segments", "predicted", "measured", "off", "unsplit model", "off"):
        table.add_column(header, justify="left" if header in ("model", "plan") else "right")
    errors = []
    for name in models:
        problem = imported(light(name))
        for plan, schedule in (
            ("heft", po.solve(problem, "heft", consolidate=0).schedule),
            ("halves", po.simulate(problem, halves(problem))),
        ):
            report = fitted(problem, schedule, name, asked.runs)
            assert report.fitted is not None
            errors.append(abs(report.fitted.makespan / report.makespan - 1))
            whole = deviation(report.fitted.one_device, float(np.median(report.one_device)))
            planned = deviation(report.fitted.makespan, report.makespan)
            table.add_row(name, plan, str(len(report.segment_device)), *planned, *whole[1:])
            print(f"{name}, {plan}: {' '.join(planned)}", file=sys.stderr)
    table.caption = f"two processes: median error {np.median(errors):.1%}, largest {max(errors):.1%}"
    return table


def again(models: Any, asked: argparse.Namespace) -> Table:
    """Plans that are solved again with measured times, against the unsplit model."""
    table = Table(title="plans from measured times")
    for header in ("model", "solver", "bound", "predicted", "segments", "plan", "one core", "plan / one core"):
        table.add_column(header, justify="left" if header in ("model", "solver") else "right")
    ratios = []
    for name in models:
        document = po.from_onnx(light(name)).document
        first = po.compile(document)
        report = fitted(first, po.simulate(first, halves(first)), name, asked.runs)
        assert report.fit is not None
        problem = po.compile(apply_profile(document, report.fit.profile()).document)
        for solver, options in (("heft", {}), ("cp-sat", {"time_limit": asked.time_limit, "workers": 2})):
            result = po.solve(problem, solver, consolidate=0.01, **options)
            run = po.run_onnx(problem, result.schedule, light(name), runs=asked.runs, warmup=3)
            assert run.equal
            one_core = float(np.median(run.one_device))
            ratios.append(run.makespan / one_core)
            tick = float(problem.resolution) * 1e3
            table.add_row(
                name, solver, f"{(result.bound or 0) * tick:.2f} ms", f"{result.makespan * tick:.2f} ms",
                str(len(run.segment_device)), f"{run.makespan * 1e3:.2f} ms", f"{one_core * 1e3:.2f} ms",
                f"{ratios[-1]:.3f}",
            )  # fmt: skip
            print(f"{name}, {solver}: {ratios[-1]:.3f}", file=sys.stderr)
    slower = sum(each > 1.05 for each in ratios)
    table.caption = f"{slower} of {len(ratios)} plans more than 5% slower than one core; median {np.median(ratios):.3f}"
    return table


def fitted(problem: po.Problem, schedule: po.Schedule, name: str, runs: int) -> Any:
    """The report of a run with measured times."""
    report = po.run_onnx(problem, schedule, light(name), runs=runs, warmup=3, fit=True)
    assert report.equal
    return report


def deviation(predicted: float | None, measured: float) -> tuple[str, str, str]:
    """Cells of a predicted and a measured time."""
    assert predicted is not None
    return f"{predicted * 1e3:.2f} ms", f"{measured * 1e3:.2f} ms", f"{predicted / measured - 1:+.1%}"


def halves(problem: po.Problem) -> Any:
    """The first half of the work on one device, the second half on the other."""
    work = np.cumsum(problem.duration[problem.order, 0])
    device = np.zeros(problem.n_tasks, dtype=np.int64)
    device[problem.order] = work > work[-1] / 2
    return device


if __name__ == "__main__":
    main()
