"""Measure the tasks of a PyTorch model: run its exported program node by node under torch.profiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.bridges.extras import require
from placeopt.bridges.profiling.measurements import Measurements
from placeopt.bridges.profiling.traces import kineto_calls
from placeopt.bridges.pytorch.section import stated_section
from placeopt.errors import UsageError, counted, listing
from placeopt.io.document import parse_document
from placeopt.io.files import temporary_folder

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def profile_torch(
    program: ExportedProgram,
    args: Sequence[Any],
    document: Mapping[str, Any],
    *,
    runs: int = 5,
    warm_up: int = 1,
    batch: int = 1,
    device: str | None = None,
) -> Measurements:
    """Run an exported program and return the times of the tasks of its problem, one measurement for each run.

    The time of a task is the sum over its nodes. On a GPU, it is the time of the work that they launch. Views and other
    nodes that are not part of a task do not count, and neither do tasks of a backward pass.

    Parameters
    ----------
    program
        The program from which the problem was made, with its weights on the device to measure.
    args
        Positional inputs, on the same device.
    document
        The problem document that `po.from_torch` returns, with the section `x-torch`.
    runs
        Number of measured runs.
    warm_up
        Number of runs before, which are not measured.
    batch
        Batch size of the inputs, for `fit_profile`.
    device
        The device of the problem on which the program runs; by default, the times apply to every device.

    Raises
    ------
    UsageError
        If the document has no section `x-torch` or belongs to another program, or `runs` is below 1.
    MissingExtraError
        If PyTorch is not installed.
    """
    require("torch", "torch", "PyTorch models")
    import torch
    from torch.fx import Interpreter, Node
    from torch.profiler import ProfilerActivity, profile, record_function

    if runs < 1 or warm_up < 0:
        raise UsageError(f"{runs} runs after {warm_up} for warm-up; expected at least 1 run")
    module = program.module()
    names, number = _tasks(document, [node.name for node in module.graph.nodes])

    interpreter = Interpreter(module)
    plain = interpreter.run_node

    def run_node(node: Node) -> Any:
        if node.name not in number:
            return plain(node)
        with record_function(f"task {number[node.name]}"):
            return plain(node)

    interpreter.run_node = run_node
    values = [*program.state_dict.values(), *args]
    on_gpu = any(isinstance(value, torch.Tensor) and value.is_cuda for value in values)

    def run() -> None:
        interpreter.run(*args)
        if on_gpu:
            torch.cuda.synchronize()

    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with torch.no_grad(), temporary_folder("placeopt-profile-") as folder:
        for _ in range(warm_up):
            run()
        with profile(activities=activities) as profiler:
            for place in range(runs):
                with record_function(f"ProfilerStep#{place}"):
                    run()
        trace = folder / "trace.json"
        profiler.export_chrome_trace(str(trace))
        calls = kineto_calls(parse_document(trace.read_text(encoding="utf-8"), file=str(trace), json_format=True))
    starts = np.array([step.start for step in calls.steps])
    nanoseconds = np.zeros((runs, len(names)), dtype=np.int64)
    for event, duration in zip(calls.executed, calls.duration, strict=True):
        place = int(np.searchsorted(starts, event.start, side="right")) - 1
        nanoseconds[place, int(event.name.removeprefix("task "))] += duration
    return Measurements.of(
        [(name, device) for name in names] * runs,
        np.full(runs * len(names), batch),
        nanoseconds.ravel() / 10**9,
        file=f"{counted(runs, 'run')} of an exported program",
        runs=calls.runs(batch),
    )


def _tasks(document: Mapping[str, Any], nodes: Sequence[str]) -> tuple[list[str], dict[str, int]]:
    """Return the names of the tasks with nodes, and the number of the task of each node."""
    stated, _ = stated_section(document)
    tasks = {str(name): task["nodes"] for name, task in stated.items() if isinstance(task, Mapping) and "nodes" in task}
    number = {node: place for place, members in enumerate(tasks.values()) for node in members}
    missing = sorted(set(number) - set(nodes))
    if missing or not number:
        found = (
            f"{counted(len(missing), 'node')} of the problem ({listing(missing)})" if missing else "a node of a task"
        )
        raise UsageError(f"the program does not have {found}; expected the program from which the problem was made")
    return list(tasks), number
