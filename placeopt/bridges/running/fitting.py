"""Measurements that predict times on this machine: durations of nodes, transfers between workers, overheads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from placeopt.bridges.profiling import TransferModel, TransferTimes, fit_transfers, read_onnxruntime_profile
from placeopt.bridges.running.pool import Job, Pool, Segment, Settings, core_shares
from placeopt.bridges.running.worker import write_array
from placeopt.io.files import size_limit

SIZES = 5
"""Largest number of sizes of the plan for which transfers are measured."""

_PROFILE = 1 << 32
"""Size limit of a profile in bytes; `--max-size` is for files of the user."""


def node_seconds(
    jobs: Sequence[Job], folder: Path, settings: Settings, runs: int, tasks: Mapping[str, str] | None = None
) -> dict[str, float]:
    """Return the duration of each task of the jobs' segments by name; `tasks` has the task of each node.

    The time of a node is the median over the runs, without the first one. ONNX Runtime's profiler measures it; time
    that the profiler assigns to no node does not count, because most of it is the work of the profiler. The nodes of a
    PyTorch graph run one by one.
    """
    with Pool(jobs, folder, settings, profile=True) as pool:
        for _ in range(runs + 1):
            pool.run()
        files = pool.profiles()
    if tasks is None:
        return {name: seconds for file in files for name, seconds in _medians(file, runs).items()}
    found: dict[str, float] = {}
    for file in files:
        for node, times in json.loads(file.read_text(encoding="utf-8")).items():
            if node in tasks:
                found[tasks[node]] = found.get(tasks[node], 0.0) + float(np.median(times[1:]))
    return found


def _medians(file: Path, runs: int) -> dict[str, float]:
    """Return the median duration of each node in a profile."""
    with size_limit(_PROFILE):
        found = read_onnxruntime_profile(file)
    count = len(found.series)
    order = np.argsort(found.member, kind="stable")
    each = np.split(found.seconds[order], np.cumsum(np.bincount(found.member, minlength=count))[:-1])
    return {
        name: float(np.median(times[1:] if len(times) > runs else times))
        for (name, _device), times in zip(found.series, each, strict=True)
    }


def transfers(moved: Sequence[int], folder: Path, settings: Settings, runs: int) -> tuple[TransferModel, float]:
    """Return transfers between two workers as a line, and the seconds that a segment takes without work.

    The first worker copies a tensor and sends it to the second one, which copies it. The transfer takes from the end
    of the first copy to the start of the second one. The copy of the smallest size, a single number, is the segment
    without work. `moved` are the bytes of the tensors that the plan moves.
    """
    sizes = measured_sizes(moved)
    vectors = {f"x{k}": np.ones(size // 4, dtype=np.float32) for k, size in enumerate(sizes)}
    given = _write_vectors(vectors, folder, settings)
    first, second = [], []
    for k, vector in enumerate(vectors.values()):
        x, y, z = f"x{k}", f"y{k}", f"z{k}"
        first.append(Segment(_write_copy(x, y, vector.size, folder, settings), (x,), (y,), {y: (1,)}))
        second.append(Segment(_write_copy(y, z, vector.size, folder, settings), (y,), (z,), results=(z,)))
    cores = core_shares(2, settings.threads)
    jobs = [Job("sender", tuple(first), given, cores[0]), Job("receiver", tuple(second), {}, cores[1])]
    seconds, overhead = [], 0.0
    with Pool(jobs, folder, settings) as pool:
        for k in range(len(sizes)):
            orders = [[(0, k)]] * 2
            pool.run(orders)
            times = [pool.run(orders) for _ in range(max(runs, 5))]
            seconds.append(float(np.median([b[0][0] - a[0][1] for a, b in times])) / 1e9)
            if k == 0:
                overhead = float(np.median([end - start for _, ((start, end),) in times])) / 1e9
    return fit_transfers(TransferTimes(np.array(sizes, dtype=np.float64), np.array(seconds))), overhead


def measured_sizes(moved: Sequence[int]) -> list[int]:
    """Return the bytes of the tensors whose transfer is measured, ascending: a number, and quantiles of `moved`."""
    quantiles = np.quantile(moved or [16], np.linspace(0, 1, SIZES))
    found = {4, *(max(4, int(size) // 4 * 4) for size in quantiles)}
    return sorted(found if len(found) > 1 else {4, 16})


def _write_vectors(vectors: Mapping[str, Any], folder: Path, settings: Settings) -> dict[str, str]:
    """Write inputs of segments and return their files by name."""
    if settings.runtime == "torch":
        from placeopt.bridges.running.torch_files import write_values

        return write_values(vectors, folder, "copy")
    for name, vector in vectors.items():
        write_array(folder / f"copy-{name}.npy", vector)
    return {name: f"copy-{name}.npy" for name in vectors}


def _write_copy(source: str, target: str, count: int, folder: Path, settings: Settings) -> str:
    """Write a model that copies a vector and return its file; workers with PyTorch know it by a name."""
    if settings.runtime == "torch":
        return "copy"
    from onnx import TensorProto, helper

    kind = TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Identity", [source], [target])],
        "copy",
        [helper.make_tensor_value_info(source, kind, [count])],
        [helper.make_tensor_value_info(target, kind, [count])],
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
    (folder / f"copy-{target}.onnx").write_bytes(model.SerializeToString())
    return f"copy-{target}.onnx"
