"""Measurements that predict times on this machine: durations of nodes, transfers, contention."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from placeopt.bridges.profiling import TransferModel, TransferTimes, fit_transfers, read_onnxruntime_profile
from placeopt.bridges.running.pool import Job, Pool, Segment, Settings, Turns, core_shares
from placeopt.bridges.running.prediction import Costs
from placeopt.bridges.running.worker import write_array
from placeopt.io.files import size_limit
from placeopt.model.arrays import Float

SIZES = 5
"""Largest number of sizes of the plan for which transfers are measured."""

_PROFILE = 1 << 32
"""Size limit of a profile in bytes; `--max-size` is for files of the user."""

Open = Callable[..., Pool]
"""Starts a pool of jobs; `profile=True` measures nodes."""


class NodeTimes:
    """Measures the duration of each task in the segments of jobs; `tasks` has the task of each node.

    The time of a node is the median over the last runs. ONNX Runtime's profiler measures it; time that the profiler
    assigns to no node does not count, because most of it is the work of the profiler. The nodes of a PyTorch graph run
    one by one.
    """

    def __init__(self, opened: Open, turns: Turns, jobs: Sequence[Job], tasks: Mapping[str, str] | None = None) -> None:
        self._pool = opened(jobs, profile=True)
        self._tasks = tasks
        turns.add(self._pool)

    def seconds(self, runs: int) -> dict[str, float]:
        """Return the duration of each task by name."""
        files = self._pool.profiles()
        if self._tasks is None:
            return {name: seconds for file in files for name, seconds in _medians(file, runs).items()}
        found: dict[str, float] = {}
        for file in files:
            for node, times in json.loads(file.read_text(encoding="utf-8")).items():
                if node in self._tasks:
                    task = self._tasks[node]
                    found[task] = found.get(task, 0.0) + float(np.median(times[-runs:]))
        return found


def _medians(file: Path, runs: int) -> dict[str, float]:
    """Return the median duration of each node in the last runs of a profile."""
    with size_limit(_PROFILE):
        found = read_onnxruntime_profile(file)
    count = len(found.series)
    order = np.argsort(found.member, kind="stable")
    each = np.split(found.seconds[order], np.cumsum(np.bincount(found.member, minlength=count))[:-1])
    return {name: float(np.median(times[-runs:])) for (name, _device), times in zip(found.series, each, strict=True)}


class Transfers:
    """Measures transfers between two workers, and what a segment takes in addition to its tasks.

    The first worker copies a tensor and sends it to the second one, which copies it. The transfer takes from the end
    of the first copy to the start of the second one. The start of the next segment of the first worker shows how long
    sending takes, compared with the same segment after one that sends nothing. This segment copies two numbers: it is
    the segment without work, whose time is the least that any segment adds. `moved` are the bytes of the tensors that
    the plan moves.
    """

    def __init__(
        self,
        opened: Open,
        turns: Turns,
        moved: Sequence[int],
        folder: Path,
        settings: Settings,
        places: tuple[str, str],
    ) -> None:
        cores = core_shares(2, settings.threads)
        self._sizes = measured_sizes(moved)
        sender, receiver, inputs = [], [], {}
        for k, size in enumerate(self._sizes):
            x, y, z = f"x{k}", f"y{k}", f"z{k}"
            files, inputs[x] = _write_copies(folder, size // 4, (x, y, z), settings)
            sender.append(Segment(files[0], (x,), (y,), {y: (1,)}))
            receiver.append(Segment(files[1], (y,), (z,), results=(z,)))
        count = len(sender)
        files, inputs["u"] = _write_copies(folder, 2, ("u", "v", "w"), settings)
        sender += [Segment(files[0], ("u",), ("v",)), Segment(files[1], ("v",), ("w",), results=("w",))]
        jobs = [
            Job("sender", tuple(sender), inputs, cores[0], places[0]),
            Job("receiver", tuple(receiver), {}, cores[1], places[1]),
        ]
        pool = opened(jobs)
        self._turns = [turns.add(pool, [[(0, k), (0, count)], [(0, k)]]) for k in range(count)]
        self._plain = turns.add(pool, [[(0, count), (0, count + 1)], []])

    def seconds(self, times: Sequence[Float]) -> tuple[Float, Float, float, float]:
        """Return what transfers of each size take, what sending takes of that, a segment without work, and a pause."""
        spans = [times[turn] for turn in self._turns]
        plain = times[self._plain]
        gap = max(float(np.median(plain[:, 1, 0] - plain[:, 0, 1])), 0.0)
        arrived = np.array([np.median(each[:, 2, 0] - each[:, 0, 1]) for each in spans])
        sent = np.array([np.median(each[:, 1, 0] - each[:, 0, 1]) for each in spans]) - gap
        return arrived, sent, float(np.median(plain[:, 1, 1] - plain[:, 1, 0])), gap

    @staticmethod
    def costs(measured: Mapping[str, Transfers], times: Sequence[Float], kinds: Sequence[str]) -> Costs:
        """Return what transfers and segments take: the mean over the measurements, and segments where they were sent.

        `measured` has the measurement from each kind of device, and `kinds` the kind of each device.
        """
        found = {kind: each.seconds(times) for kind, each in measured.items()}
        arrived, sent, _, gap = (np.mean(each, axis=0) for each in zip(*found.values(), strict=True))
        sizes = np.array(next(iter(measured.values()))._sizes, dtype=np.float64)

        def line(seconds: Float) -> TransferModel:
            return fit_transfers(TransferTimes(sizes, np.maximum(seconds, 0.0)))

        least = min(segment for _, _, segment, _ in found.values())
        segments = {kind: segment for kind, (_, _, segment, _) in found.items()}
        return Costs(line(arrived), line(sent), tuple(segments.get(kind, least) for kind in kinds), float(gap))


class Contention:
    """Measures how much slower the unsplit model is while each other process runs it as well.

    Processes share the memory, the caches, and perhaps the units of a core.
    """

    def __init__(self, opened: Open, turns: Turns, jobs: Sequence[Job]) -> None:
        pool = opened(jobs)
        self._alone = turns.add(pool, [[(0, 0)], *([] for _ in jobs[1:])])
        self._together = turns.add(pool)

    def slowdown(self, times: Sequence[Float], devices: int) -> tuple[float, ...]:
        """Return the factor, at least 1, for each number of busy processes from 1 to that of the devices.

        Factors between those of one and of all processes are interpolated; more devices share the same cores.
        """
        alone, together = (np.diff(times[turn], axis=2)[:, :, 0] for turn in (self._alone, self._together))
        most, count = max(1.0, float(np.median(together / alone))), together.shape[1]
        return tuple(
            1 + (most - 1) * (busy - 1) / (count - 1) if busy <= count else most * busy / count
            for busy in range(1, devices + 1)
        )


def measured_sizes(moved: Sequence[int]) -> list[int]:
    """Return the bytes of the tensors whose transfer is measured, ascending: a number, and quantiles of `moved`."""
    quantiles = np.quantile(moved or [16], np.linspace(0, 1, SIZES))
    found = {4, *(max(4, int(size) // 4 * 4) for size in quantiles)}
    return sorted(found if len(found) > 1 else {4, 16})


def _write_copies(folder: Path, count: int, names: tuple[str, str, str], settings: Settings) -> tuple[list[str], str]:
    """Write models that copy a vector, from the first to the second tensor and on to the third; return the files.

    The last file is the vector.
    """
    vector = np.ones(count, dtype=np.float32)
    if settings.runtime == "torch":
        from placeopt.bridges.running.torch_files import write_values

        return ["copy"] * 2, write_values({names[0]: vector}, folder, f"copy-{count}")[names[0]]
    files = [f"copy-{count}-{k}.onnx" for k in range(2)]
    for k, file in enumerate(files):
        _write_copy(folder / file, names[k], names[k + 1], count)
    write_array(folder / f"copy-{count}.npy", vector)
    return files, f"copy-{count}.npy"


def _write_copy(path: Path, source: str, target: str, count: int) -> None:
    """Write a model that copies a vector."""
    from onnx import TensorProto, helper

    kind = TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Identity", [source], [target])],
        "copy",
        [helper.make_tensor_value_info(source, kind, [count])],
        [helper.make_tensor_value_info(target, kind, [count])],
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
    path.write_bytes(model.SerializeToString())
