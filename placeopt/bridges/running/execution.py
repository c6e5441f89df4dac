"""Run a plan of an ONNX model with ONNX Runtime on this machine, and compare predicted with measured times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from placeopt.bridges.exporters.onnxruntime import CPU, provider_of
from placeopt.bridges.extras import require
from placeopt.bridges.onnx_models.submodels import Split, Writer, notes_on_sizes, split_model, whole_submodel
from placeopt.bridges.running.fitting import node_seconds, transfers
from placeopt.bridges.running.folding import folded
from placeopt.bridges.running.pool import Job, Pool, Segment, Settings, core_shares
from placeopt.bridges.running.prediction import Prediction, fitted_problem, predict
from placeopt.bridges.running.report import Fit, RunReport
from placeopt.bridges.running.tensors import TYPES, Difference, checked_inputs, difference, random_inputs, read_inputs
from placeopt.bridges.running.worker import LEVELS, write_array
from placeopt.errors import UsageError, alternatives, counted, listing
from placeopt.io.files import StrPath, temporary_folder
from placeopt.model.arrays import Float
from placeopt.model.problem import NANO, Problem
from placeopt.model.schedule import Schedule, check_schedule
from placeopt.simulation import retime

LARGEST_RUNS = 100_000
WHOLE = "whole.onnx"
"""The unsplit model with computed constants and with the names of tasks."""
TOLERANCES = {"bfloat16": 0.05, "float16": 0.01}
"""Largest relative difference of outputs that counts as equal, by the coarsest number format of the model."""
TOLERANCE = 1e-4
"""That of models without these formats. Their rounding errors are 65,536 and 8,192 times as large."""
RESIZED = "resized.onnx"
"""The unsplit model with other sizes of its inputs than the file, whose fixed sizes a run would reject."""


def run_onnx(
    problem: Problem,
    schedule: Schedule,
    model: StrPath,
    *,
    runs: int = 5,
    warmup: int = 1,
    fit: bool = False,
    in_plan: bool = False,
    inputs: Mapping[str, Any] | StrPath | None = None,
    seed: int = 0,
    threads: int = 1,
    optimization: str = "none",
    few_segments: bool = False,
    batch: int | None = None,
    dims: Mapping[str, int] | None = None,
    tolerance: float | None = None,
    timeout: float = 600.0,
) -> RunReport:
    """Run a plan of an ONNX model on the cores of this machine, and return its outputs' differences and its times.

    Each device of the plan is a process, pinned to a core where that is possible. It runs its segments in the order of
    the plan, each as soon as its inputs are available. The unsplit model runs in one process of the same kind.

    Parameters
    ----------
    problem, schedule
        The problem that was imported from the model, and a plan of it.
    model
        The model file.
    runs, warmup
        Measured runs, and runs before them.
    fit
        Whether to measure each node of the unsplit model and transfers between processes, and predict times from that.
    in_plan
        Whether a fit measures the nodes while all processes run the plan, and not in the unsplit model.
    inputs
        An array for each input of the model, or an .npz file of them; by default, random ones.
    seed
        Seed of random inputs: floats are uniform in [0, 1), integers 0, booleans true.
    threads
        Threads of each process.
    optimization
        Graph optimizations of ONNX Runtime: "none", "basic", "extended" or "all". Constants are always computed before.
    few_segments
        Whether segments are not cut at transfers, so that there are fewer of them, which wait for all their inputs.
    batch, dims
        Sizes of the dimensions of the model, as at the import.
    tolerance
        Largest relative difference of outputs that counts as equal; by default 1e-4, for models with numbers in fp16
        0.01, in bf16 0.05.
    timeout
        Seconds within which processes must load their models, and then finish each run.

    Raises
    ------
    UsageError
        If an argument is wrong, the model is not that of the problem, or a tensor cannot pass between processes.
    DocumentError
        If the model or the inputs cannot be read or are not valid.
    ExecutionError
        If ONNX Runtime fails, a process ends, or the time limit passes.
    MissingExtraError
        If onnxruntime is not installed.
    """
    check_schedule("run_onnx", problem, schedule)
    if in_plan and not fit:
        raise UsageError("in_plan needs fit, which measures the times")
    check_arguments(runs, warmup, threads, seed, optimization, tolerance)
    if not 0 < timeout < float("inf"):
        raise UsageError(f"timeout: {timeout!r} is not a time; expected a positive number of seconds")
    require("onnxruntime", "onnxruntime", "runs of ONNX models")
    settings = Settings(threads, optimization, float(timeout))
    source = Path(model)
    writer = Writer(source, batch, dims)
    split = split_model(problem, schedule, writer.model, few_segments=few_segments)
    given = _inputs(inputs, writer, seed)
    _check_types(split, writer)
    with temporary_folder("placeopt-run-") as folder:
        files = {name: f"input-{k}.npy" for k, name in enumerate(given)}
        for name, value in given.items():
            write_array(folder / files[name], value)
        original = _whole(writer, str(source.resolve()))
        if _is_resized(writer):
            writer.write(folder / RESIZED, whole_submodel(writer.model))
            original = _whole(writer, RESIZED)
        computed = folded(writer, folder)
        if computed is writer:
            one_device, reference = _alone(original, files, folder, settings, runs, warmup)
        else:  # times without those of the constants
            writer = computed
            _, reference = _alone(original, files, folder, settings, 1, 0)
            writer.write(folder / WHOLE, whole_submodel(writer.model))
            one_device, _ = _alone(_whole(writer, WHOLE), files, folder, settings, runs, warmup)
            split = split_model(problem, schedule, writer.model, few_segments=few_segments)
        names = writer.write_segments(split, folder)
        devices = list(dict.fromkeys(split.segments.device.tolist()))
        jobs = _jobs(problem, split, names, files, devices, threads)
        fitted, measured = None, None
        if fit:
            profiled = jobs if in_plan else [_whole_job(writer, files, folder, threads)]
            seconds = node_seconds(profiled, folder, settings, runs)
            fitted, measured = _fit(problem, schedule, writer, split, seconds, folder, settings, runs)
        with Pool(jobs, folder, settings) as pool:
            times = _measured(pool, runs, warmup)
            outputs = pool.outputs()
        differences = _differences(outputs, reference)
        allowed = _tolerance(writer) if tolerance is None else float(tolerance)
        unequal = any(each.relative > allowed for each in differences)
        _, again = _alone(original, files, folder, settings, 1, 0) if unequal else (None, reference)
    place = np.concatenate([split.segments.on_device(d) for d in devices])
    ordered = np.empty_like(times)
    ordered[:, place] = times
    return RunReport(
        problem=problem.name,
        device_names=problem.device_names,
        segment_device=split.segments.device,
        segment_tasks=tuple(submodel.tasks for submodel in split.submodels),
        predicted=predict(problem, schedule, split),
        fitted=fitted,
        fit=measured,
        start=ordered[..., 0],
        end=ordered[..., 1],
        one_device=one_device,
        differences=differences,
        tolerance=allowed,
        cores={job.name: job.cores for job in jobs},
        notes=(
            *notes_on_sizes(problem, writer.model),
            *_notes(problem, jobs, threads),
            *_odd(reference),
            *_random(_differences(again, reference), allowed),
        ),
    )


def check_arguments(
    runs: int, warmup: int, threads: int, seed: int, optimization: str, tolerance: float | None, prefix: str = ""
) -> None:
    """Reject numbers out of range and unknown optimizations; messages name arguments with a prefix, such as `--`."""
    for name, number, least, most in (
        ("runs", runs, 1, LARGEST_RUNS),
        ("warmup", warmup, 0, LARGEST_RUNS),
        ("threads", threads, 1, 4096),
        ("seed", seed, 0, 2**63),
    ):
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
            raise UsageError(
                f"{prefix}{name}: {number!r} is out of range; expected a whole number from {least} to {most:,}"
            )
    if tolerance is not None and not 0 <= tolerance < float("inf"):
        raise UsageError(f"{prefix}tolerance: {tolerance!r} is out of range; expected a number from 0")
    if optimization not in LEVELS:
        raise UsageError(f"{prefix}optimization: {optimization} is not a level{alternatives(optimization, LEVELS)}")


def _inputs(inputs: Mapping[str, Any] | StrPath | None, writer: Writer, seed: int) -> dict[str, Any]:
    if inputs is None:
        return random_inputs(writer.model, seed)
    if isinstance(inputs, Mapping):
        return checked_inputs(inputs, writer.model)
    return read_inputs(Path(inputs), writer.model)


def _check_types(split: Split, writer: Writer) -> None:
    """Reject tensors that processes cannot exchange."""
    model = split.model
    for name in dict.fromkeys((*split.crossing, *model.outputs)):
        kind = writer.value(name).type.WhichOneof("value")
        if kind in ("sequence_type", "map_type") and name not in split.crossing:
            continue
        element = model.tensors[name].element if kind == "tensor_type" else kind
        if element not in TYPES:
            raise UsageError(
                f"processes cannot exchange {name}, because NumPy has no arrays of type {element or 'unknown'}"
            )


def _is_resized(writer: Writer) -> bool:
    """Whether the sizes of the import differ from sizes that the file fixes."""
    tensors = writer.model.tensors
    return any(
        dim.HasField("dim_value") and dim.dim_value != length
        for value in writer.proto.graph.input
        if value.name in writer.model.inputs
        for dim, length in zip(value.type.tensor_type.shape.dim, tensors[value.name].shape or (), strict=False)
    )


def _whole(writer: Writer, file: str) -> Segment:
    """Return a model file as one segment."""
    model = writer.model
    outputs = tuple(name for name in model.outputs if name not in model.inputs)
    return Segment(file, model.inputs, outputs, results=outputs)


def _alone(
    segment: Segment, files: Mapping[str, str], folder: Path, settings: Settings, runs: int, warmup: int
) -> tuple[Float, dict[str, Any]]:
    """Return the seconds (runs,) and the outputs of a segment in one worker."""
    (cores,) = core_shares(1, settings.threads)
    with Pool([Job("the unsplit model", (segment,), _used(files, (segment,)), cores)], folder, settings) as pool:
        return _measured(pool, runs, warmup)[:, 0, 1], pool.outputs()


def _whole_job(writer: Writer, files: Mapping[str, str], folder: Path, threads: int) -> Job:
    """Return the job of a worker that runs the unsplit model, with the names of tasks."""
    if not (folder / WHOLE).exists():
        writer.write(folder / WHOLE, whole_submodel(writer.model))
    whole = _whole(writer, WHOLE)
    (cores,) = core_shares(1, threads)
    return Job("profiling", (whole,), _used(files, (whole,)), cores)


def _fit(
    problem: Problem,
    schedule: Schedule,
    writer: Writer,
    split: Split,
    seconds: Mapping[str, float],
    folder: Path,
    settings: Settings,
    runs: int,
) -> tuple[Prediction, Fit]:
    """Measure transfers, and predict times from them and from the durations of nodes in seconds."""
    moved = [writer.model.tensors[name].bytes for name in split.crossing]
    link, overhead = transfers(moved, folder, settings, runs)
    here = fitted_problem(problem, seconds, link)
    again = retime(here, Schedule(schedule.device, schedule.start))
    known = {name: seconds[name] for name in problem.task_names if name in seconds}
    several = len(np.unique(split.segments.device)) > 1
    fit = Fit(problem.n_tasks, known, link if several else None, overhead)
    return predict(here, again, split, round(overhead * NANO)), fit


def _jobs(
    problem: Problem, split: Split, names: Sequence[str], files: Mapping[str, str], devices: list[int], threads: int
) -> list[Job]:
    """Return the job of the worker of each device."""
    home, results = split.segments.device.tolist(), frozenset(split.model.outputs)
    worker = {device: place for place, device in enumerate(devices)}
    jobs = []
    for device, cores in zip(devices, core_shares(len(devices), threads), strict=True):
        own = []
        for k in split.segments.on_device(device).tolist():
            submodel = split.submodels[k]
            send: dict[str, tuple[int, ...]] = {}
            for name in submodel.outputs:
                others = [home[reader] for reader in split.readers.get(name, ()) if home[reader] != device]
                if others:
                    send[name] = tuple(dict.fromkeys(worker[other] for other in others))
            own.append(
                Segment(
                    names[k],
                    submodel.inputs,
                    submodel.outputs,
                    send,
                    tuple(name for name in submodel.outputs if name in results),
                )
            )
        jobs.append(Job(problem.device_names[device], tuple(own), _used(files, own), cores))
    return jobs


def _used(files: Mapping[str, str], segments: Sequence[Segment]) -> dict[str, str]:
    """Return the files of the graph inputs that segments read."""
    return {name: files[name] for segment in segments for name in segment.inputs if name in files}


def _measured(pool: Pool, runs: int, warmup: int) -> Float:
    """(runs, segments, 2) start and end in seconds, segments in the order of jobs."""
    for _ in range(warmup):
        pool.run()
    times = [[span for spans in pool.run() for span in spans] for _ in range(runs)]
    return np.array(times, dtype=np.float64) / 1e9


def _differences(outputs: Mapping[str, Any], reference: Mapping[str, Any]) -> tuple[Difference, ...]:
    """The differences of all outputs; a sequence of another length has elements that are missing or are left over."""
    names = dict.fromkeys((*reference, *outputs))
    return tuple(difference(name, outputs.get(name), reference.get(name)) for name in names)


def _odd(outputs: Mapping[str, Any]) -> list[str]:
    """State outputs whose comparison says little."""
    floats = {name: value for name, value in outputs.items() if np.asarray(value).dtype.kind in "fc"}
    odd = [name for name, value in floats.items() if not np.isfinite(value).all()]
    return [f"outputs contain values that are not finite: {listing(odd)}; state --inputs"] if odd else []


def _tolerance(writer: Writer) -> float:
    """The tolerance by the coarsest number format of a tensor that a node computes."""
    model = writer.model
    used = {model.tensors[name].element for node in model.nodes for name in node.writes}
    return next((limit for element, limit in TOLERANCES.items() if element in used), TOLERANCE)


def _random(differences: Sequence[Difference], tolerance: float) -> list[str]:
    """State outputs that differ between two runs of the unsplit model."""
    random = [each.output for each in differences if each.relative > tolerance]
    return (
        [f"outputs differ between runs of the unsplit model, too, perhaps at random: {listing(random)}"]
        if random
        else []
    )


def _notes(problem: Problem, jobs: Sequence[Job], threads: int) -> list[str]:
    notes = []
    kinds = dict(zip(problem.device_names, problem.device_types, strict=True))
    others = [job.name for job in jobs if provider_of(job.name, kinds[job.name], {}) not in (CPU, None)]
    if others:
        notes.append(
            f"a CPU core stands for each of {listing(others)}, so predicted times are not those of this machine; --fit "
            "measures it"
        )
    used = {core for job in jobs for core in job.cores}
    if not used:
        notes.append("processes cannot be pinned to cores on this system, so times vary more")
    elif len(used) < len(jobs) * threads:
        many = counted(len(jobs), "device") if threads == 1 else counted(len(jobs) * threads, "thread")
        notes.append(
            f"{many} share {counted(len(used), 'core')}, so segments that the plan runs at the same time slow each "
            "other down"
        )
    return notes
