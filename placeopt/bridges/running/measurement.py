"""Run a cut model in processes on this machine, and compare outputs and times with those of the unsplit model.

What a runtime needs is in files: `execution.py` writes them for ONNX Runtime, `torch_execution.py` for PyTorch.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from placeopt.bridges.cut_models import CutModel
from placeopt.bridges.exporters.exported import stage_notes
from placeopt.bridges.exporters.onnxruntime import CPU, provider_of
from placeopt.bridges.hardware import devices_of, is_cpu
from placeopt.bridges.running.fitting import Contention, NodeTimes, Open, Transfers
from placeopt.bridges.running.pool import HOST, Job, Orders, Pool, Segment, Settings, Turns, core_shares, processes
from placeopt.bridges.running.prediction import Fit, Prediction, predict, predict_fitted
from placeopt.bridges.running.report import RunReport
from placeopt.bridges.running.tensors import Difference, difference
from placeopt.bridges.running.worker import LEVELS
from placeopt.errors import ExecutionError, UsageError, alternatives, counted, listing
from placeopt.model.arrays import Float
from placeopt.model.period import period
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, makespan

LARGEST_RUNS = 100_000
TOLERANCES = {"bfloat16": 0.05, "float16": 0.01, "int8": 0.01, "uint8": 0.01}
"""Largest relative difference of outputs that counts as equal, by the coarsest number format of the model.

Rounding errors of bf16 and fp16 are 65,536 and 8,192 times as large as those of fp32. In a model that quantises its
tensors to 8 bits, a rounding error can move an element to the next level, as optimizations of ONNX Runtime do, too."""
TOLERANCE = 1e-4
"""That of models without these formats."""


@dataclass(frozen=True, slots=True)
class Executable:
    """A cut model, as files in a folder."""

    split: CutModel
    files: Sequence[str]
    """The file of each segment."""
    whole: Segment
    """The unsplit model, whose outputs are the reference."""
    timed: Segment
    """The unsplit model whose time is measured: without the computation of constants, as the segments."""
    profiled: Segment
    """The unsplit model whose nodes are measured."""
    inputs: Mapping[str, str]
    """The files of the inputs of the model."""
    tasks: Mapping[str, str] | None = None
    """The task of each node; None if nodes have the names of their tasks."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is measured."""

    runs: int
    warmup: int
    fit: bool
    in_plan: bool
    tolerance: float | None
    """Largest relative difference of outputs that counts as equal; None for that of the number format."""


def check_arguments(options: Options, threads: int, seed: int, timeout: float, prefix: str = "") -> None:
    """Reject numbers out of range; messages name arguments with a prefix, such as `--`."""
    for name, number, least, most in (
        ("runs", options.runs, 1, LARGEST_RUNS),
        ("warmup", options.warmup, 0, LARGEST_RUNS),
        ("threads", threads, 1, 4096),
        ("seed", seed, 0, 2**63),
    ):
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
            raise UsageError(
                f"{prefix}{name}: {number!r} is out of range; expected a whole number from {least} to {most:,}"
            )
    if options.tolerance is not None and not 0 <= options.tolerance < float("inf"):
        raise UsageError(f"{prefix}tolerance: {options.tolerance!r} is out of range; expected a number from 0")
    if options.in_plan and not options.fit:
        in_plan, fit = ("--in-plan", "--fit") if prefix else ("in_plan", "fit")
        raise UsageError(f"{in_plan} needs {fit}, which measures the times")
    if not 0 < timeout < float("inf"):
        raise UsageError(f"timeout: {timeout!r} is not a time; expected a positive number of seconds")


def check_optimization(optimization: str, prefix: str = "") -> None:
    """Reject an unknown level of optimization."""
    if optimization not in LEVELS:
        raise UsageError(f"{prefix}optimization: {optimization} is not a level{alternatives(optimization, LEVELS)}")


def measure(
    problem: Problem,
    schedule: Schedule,
    model: Executable,
    folder: Path,
    settings: Settings,
    options: Options,
    elements: Collection[str],
    notes: Sequence[str],
    places: Sequence[str] | None = None,
) -> RunReport:
    """Run the segments and the unsplit model, and return their times and the differences of their outputs.

    `elements` are the types of the tensors that the model computes, and `places` the devices of PyTorch by device of
    the problem: by default, a CPU for each. All processes execute the same number of runs, because a model may keep
    values from run to run. The reference is the output of the unsplit model on the CPU.
    """
    places = places or [HOST] * problem.n_devices
    split, runs, warmup, tolerance = model.split, options.runs, options.warmup, options.tolerance
    if tolerance is None:
        tolerance = next((limit for element, limit in TOLERANCES.items() if element in elements), TOLERANCE)
    kinds, absent = _kinds(problem, places), stand_ins(problem, places)
    if options.in_plan and len(set(kinds)) > 1:
        raise UsageError(
            f"in-plan measures each task only where the plan runs it, but {listing(list(dict.fromkeys(kinds)))} differ "
            "in speed; leave it out"
        )
    devices = list(dict.fromkeys(split.segments.device.tolist()))
    jobs = _jobs(problem, model, devices, settings.threads, places)
    fill = 0 if problem.pipeline is None else warmup + _fill(problem, schedule, len(split.segments))
    streamed = runs + 2 * fill if fill else 0
    orders = stream_orders(problem, schedule, split, devices, streamed) if fill else None
    cores = _cores(jobs, settings.threads)
    fitting, several = None, None
    turns = Turns()
    with contextlib.ExitStack() as stack:

        def opened(jobs: Sequence[Job], settings: Settings = settings, *, profile: bool = False) -> Pool:
            return stack.enter_context(Pool(jobs, folder, settings, profile=profile))

        whole = opened([_job("the unsplit model", model.whole, model.inputs, settings.threads)])
        alone = {HOST: turns.add(whole)}
        if model.timed is not model.whole:
            alone[HOST] = turns.add(opened([_job("the unsplit model", model.timed, model.inputs, settings.threads)]))
        for kind in dict.fromkeys(kinds):
            if kind in alone:
                continue
            job = _job("the unsplit model", model.timed, model.inputs, settings.threads, kind)
            try:
                with contextlib.ExitStack() as attempt:
                    pool = attempt.enter_context(Pool([job], folder, settings))
                    pool.run()
                    stack.push(attempt.pop_all())
            except ExecutionError as error:
                notes = (*notes, f"the unsplit model does not run on {kind}: {str(error).partition('. ')[0]}")
            else:
                alone[kind] = turns.add(pool)
        able = np.flatnonzero(problem.feasible.all(axis=0)).tolist()
        home = next((d for d in able if kinds[d] in alone), None)
        own = HOST if home is None else kinds[home]
        if cores > settings.threads:
            job = _job("the unsplit model", model.timed, model.inputs, cores)
            several = turns.add(opened([job], replace(settings, threads=cores)))
        if options.fit:
            fitting = _Fitting(
                opened, turns, problem, model, jobs, folder, settings, options, kinds, alone, home, absent
            )
        pool = opened(jobs)
        planned = turns.add(pool)
        spans = turns.take(runs, warmup)
        results = None if orders is None else _results(pool, orders, fill, runs)
        for _ in range(streamed):
            whole.run()
        outputs, reference = pool.outputs(), whole.outputs()
        times, unsplit = spans[planned], {kind: spans[turn][:, 0, 1] for kind, turn in alone.items()}
        one_session = None if several is None else spans[several][:, 0, 1]
        fitted, measured = (None, None) if fitting is None else fitting.result(schedule, spans, unsplit)
    differences = _differences(outputs, reference)
    unequal = any(each.relative > tolerance for each in differences)
    again = _again(model, folder, settings, runs + warmup + streamed) if unequal else reference
    place = np.concatenate([split.segments.on_device(d) for d in devices])
    ordered = np.empty_like(times)
    ordered[:, place] = times
    return RunReport(
        problem=problem.name,
        device_names=problem.device_names,
        segment_device=split.segments.device,
        segment_tasks=tuple(submodel.tasks for submodel in split.submodels),
        predicted=predict(problem, schedule, split, home),
        fitted=fitted,
        fit=measured,
        start=ordered[..., 0],
        end=ordered[..., 1],
        one_device=unsplit[own],
        elsewhere={kind: unsplit[kind] for kind in dict.fromkeys(kinds) if kind in unsplit and kind != own},
        one_session=one_session,
        session_threads=cores,
        results=results,
        differences=differences,
        tolerance=tolerance,
        cores={job.name: job.cores for job in jobs},
        places={job.name: job.place for job in jobs},
        stand_ins=tuple(job.name for job in jobs if job.name in absent),
        notes=(
            *notes,
            *stage_notes(problem, schedule, "placeopt run"),
            *_notes(jobs, settings.threads, absent, fit=options.fit),
            *_odd(reference),
            *_random(_differences(again, reference), tolerance),
        ),
    )


def stream_orders(problem: Problem, schedule: Schedule, split: CutModel, devices: Sequence[int], count: int) -> Orders:
    """Return what each device executes, if runs follow each other as in the plan: run k starts k periods later.

    A segment counts as started at the first start of its tasks, but not before the segments from which it reads.
    Therefore the order of all executions by start, run and segment respects all transfers, and no devices wait for
    each other.
    """
    segments = split.segments
    start = [int(schedule.start[segments.tasks(k)].min()) for k in range(len(segments))]
    for k, submodel in enumerate(split.submodels):
        start[k] = max([start[k], *(start[split.writer[name]] for name in submodel.inputs if name in split.writer)])
    ticks = period(problem, schedule)
    orders = []
    for device in devices:
        own = list(enumerate(segments.on_device(device).tolist()))
        keys = sorted((start[k] + run * ticks, run, k, number) for run in range(count) for number, k in own)
        orders.append([(run, number) for _, run, _, number in keys])
    return orders


def _fill(problem: Problem, schedule: Schedule, segments: int) -> int:
    """The number of results until a pipeline is full."""
    ticks = period(problem, schedule)
    return max(1, min(-(-makespan(problem, schedule) // ticks) if ticks else segments, segments))


def _results(pool: Pool, orders: Orders, fill: int, runs: int) -> Float:
    """(runs + 1,) when results are complete, in seconds, while the pipeline is full."""
    done: dict[int, int] = {}
    for order, spans in zip(orders, pool.run(orders), strict=True):
        for (run, _), (_, end) in zip(order, spans, strict=True):
            done[run] = max(end, done.get(run, 0))
    ends = np.sort(np.array(list(done.values()), dtype=np.float64)) / 1e9
    return ends[fill - 1 : fill + runs]


def _again(model: Executable, folder: Path, settings: Settings, runs: int) -> dict[str, Any]:
    """Return the outputs of another process that runs the unsplit model as often."""
    with Pool([_job("the unsplit model", model.whole, model.inputs, settings.threads)], folder, settings) as pool:
        for _ in range(runs):
            pool.run()
        return pool.outputs()


def _job(name: str, segment: Segment, inputs: Mapping[str, str], threads: int, place: str = HOST) -> Job:
    (cores,) = core_shares(1, threads)
    return Job(name, (segment,), _used(inputs, (segment,)), cores, place)


def _kinds(problem: Problem, places: Sequence[str]) -> list[str]:
    """The first of the alike places of each device: devices of one type are alike."""
    first: dict[str, str] = {}
    return [
        place if place == HOST else first.setdefault(kind, place)
        for kind, place in zip(problem.device_types, places, strict=True)
    ]


def _cores(jobs: Sequence[Job], threads: int) -> int:
    """The number of cores that the processes of a plan use."""
    return len({core for job in jobs for core in job.cores}) or min(len(jobs) * threads, os.cpu_count() or 1)


class _Fitting:
    """Measures nodes, transfers and contention, and predicts times from them."""

    def __init__(
        self,
        opened: Open,
        turns: Turns,
        problem: Problem,
        model: Executable,
        jobs: list[Job],
        folder: Path,
        settings: Settings,
        options: Options,
        kinds: Sequence[str],
        unsplit: Collection[str],
        home: int | None,
        stand_ins: tuple[str, ...],
    ) -> None:
        self._problem, self._split, self._options, self._kinds, self._home = problem, model.split, options, kinds, home
        self._stand_ins = stand_ins
        self._own = HOST if home is None else kinds[home]
        alone = _job("profiling", model.profiled, model.inputs, settings.threads, self._own)
        self._nodes = {
            kind: NodeTimes(opened, turns, jobs if options.in_plan else [replace(alone, place=kind)], model.tasks)
            for kind in dict.fromkeys(kinds)
            if kind in unsplit
        }
        # A plan that moves nothing has no sizes; links are measured with the payloads of the problem.
        moved = [self._split.size(name) for name in self._split.crossing] or problem.payload.tolist()
        several = list(dict.fromkeys(kinds))[:2]
        pairs = [(several[0], several[-1]), (several[-1], several[0])][: len(several)]
        self._transfers = {pair[0]: Transfers(opened, turns, moved, folder, settings, pair) for pair in pairs}
        whole = replace(alone, name="contention", segments=(model.timed,))
        # All segments in one process: what each of them takes in addition to its tasks, in the state of the caches and
        # of the memory that the tasks leave.
        serial = [
            Segment(model.files[k], submodel.inputs, submodel.outputs)
            for k, submodel in enumerate(model.split.submodels)
        ]
        self._serial: dict[str, int] = {}
        if len(serial) > 1:
            job = replace(alone, name="serial", segments=tuple(serial), inputs=_used(model.inputs, serial))
            self._serial = {kind: turns.add(opened([replace(job, place=kind)])) for kind in self._nodes}
        copies = [replace(whole, cores=cores) for cores in processes(problem.n_devices, settings.threads)]
        measured = not options.in_plan and len(copies) > 1 and set(kinds) == {HOST}
        self._contention = Contention(opened, turns, copies) if measured else None

    def result(
        self, schedule: Schedule, times: Sequence[Float], unsplit: Mapping[str, Float]
    ) -> tuple[Prediction, Fit]:
        """Return the prediction and the measurements; `unsplit` has the times of the unsplit model by place."""
        problem, split = self._problem, self._split
        costs = Transfers.costs(self._transfers, times, self._kinds)
        segment = dict(zip(self._kinds, costs.segment, strict=True))
        for kind, turn in self._serial.items():
            serial = np.diff(times[turn], axis=2)[..., 0]
            # Turns follow each other, so a difference within a run is that of the same speed of the machine.
            cut = float(np.median(serial.sum(axis=1) - unsplit[kind])) / (serial.shape[1] - 1)
            segment[kind] = max(segment[kind], cut)
        costs = replace(costs, segment=tuple(segment[kind] for kind in self._kinds))
        found: dict[str, dict[str, float]] = {}
        for kind, nodes in self._nodes.items():
            seconds = nodes.seconds(self._options.runs)
            if not self._options.in_plan and (total := sum(seconds.values())):
                # The profiler slows nodes down, and the framework takes time between them.
                scale = max(0.0, float(np.median(unsplit[kind])) - segment[kind]) / total
                seconds = {name: each * scale for name, each in seconds.items()}
            found[kind] = seconds
        by_device = [found.get(kind, {}) for kind in self._kinds]
        known = {
            name: tuple(seconds.get(name) for seconds in by_device)
            for name in problem.task_names
            if any(name in seconds for seconds in by_device)
        }
        slowdown = (1.0,) * problem.n_devices
        if self._contention is not None:
            slowdown = self._contention.slowdown(times, problem.n_devices)
        fit = Fit(problem, known, costs, slowdown, self._stand_ins)
        return predict_fitted(problem, schedule, split, fit, self._home), fit


def _jobs(problem: Problem, model: Executable, devices: list[int], threads: int, places: Sequence[str]) -> list[Job]:
    """Return the job of the worker of each device."""
    split = model.split
    home = split.segments.device.tolist()
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
                    model.files[k],
                    submodel.inputs,
                    submodel.outputs,
                    send,
                    tuple(name for name in submodel.outputs if name in split.results),
                )
            )
        jobs.append(Job(problem.device_names[device], tuple(own), _used(model.inputs, own), cores, places[device]))
    return jobs


def _used(files: Mapping[str, str], segments: Sequence[Segment]) -> dict[str, str]:
    """Return the files of the graph inputs that segments read."""
    return {name: files[name] for segment in segments for name in segment.inputs if name in files}


def _differences(outputs: Mapping[str, Any], reference: Mapping[str, Any]) -> tuple[Difference, ...]:
    """The differences of all outputs; a sequence of another length has elements that are missing or are left over."""
    names = dict.fromkeys((*reference, *outputs))
    return tuple(difference(name, outputs.get(name), reference.get(name)) for name in names)


def _odd(outputs: Mapping[str, Any]) -> list[str]:
    """State outputs whose comparison says little."""
    floats = {name: value for name, value in outputs.items() if np.asarray(value).dtype.kind in "fc"}
    odd = [name for name, value in floats.items() if not np.isfinite(value).all()]
    return [f"outputs contain values that are not finite: {listing(odd)}; state --inputs"] if odd else []


def _random(differences: Sequence[Difference], tolerance: float) -> list[str]:
    """State outputs that differ between two runs of the unsplit model."""
    random = [each.output for each in differences if each.relative > tolerance]
    return (
        [f"outputs differ between runs of the unsplit model, too, perhaps at random: {listing(random)}"]
        if random
        else []
    )


def stand_ins(problem: Problem, places: Sequence[str]) -> tuple[str, ...]:
    """Return the devices that are known not to be CPUs, and which a CPU core replaces in the run."""
    return tuple(
        device.name
        for device, place in zip(devices_of(problem), places, strict=True)
        if place == HOST
        and (provider_of(device, {}) not in (CPU, None) or (device.like is not None and not is_cpu(device)))
    )


def _notes(jobs: Sequence[Job], threads: int, absent: Sequence[str], *, fit: bool) -> list[str]:
    notes = []
    others = [job.name for job in jobs if job.name in absent]
    if others:
        runs = "runs on a CPU core" if len(others) == 1 else "run on CPU cores"
        what = (
            "fitted times are those of this machine"
            if fit
            else "predicted times are not those of this machine and `off` is empty; --fit measures it"
        )
        notes.append(f"{listing(others)} {runs} here: {what}")
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
