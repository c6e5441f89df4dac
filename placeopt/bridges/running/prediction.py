"""Predict the times of segments from a problem, as stated or with measured durations and links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from placeopt.bridges.cut_models import CutModel
from placeopt.bridges.profiling import TransferModel
from placeopt.bridges.profiling.measurements import fixed
from placeopt.model.arrays import Float, Int
from placeopt.model.building import build_problem
from placeopt.model.period import period
from placeopt.model.problem import NANO, UNLIMITED, Problem
from placeopt.model.schedule import Schedule, durations, makespan
from placeopt.passes.rebuilding import rebuilt
from placeopt.simulation import simulate

_DENOMINATOR = 10**6
"""Largest denominator of the nanoseconds per byte of a fitted link."""


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """Predicted times in seconds; arrays are read-only.

    Attributes
    ----------
    start, busy
        (s,) start of each segment and sum of the durations of its tasks.
    makespan
        End of the last segment, where a segment waits for all its inputs and sends its outputs at its end.
    tasks
        Makespan of the plan itself, where each task sends its output at its own end.
    one_device
        Time of all tasks on the first device that may run them all; None without one.
    period
        Time between two results of a pipeline; None for other problems.
    """

    start: Float
    busy: Float
    makespan: float
    tasks: float
    one_device: float | None
    period: float | None


def predict(problem: Problem, schedule: Schedule, split: CutModel, overhead: int = 0) -> Prediction:
    """Predict the times of the segments of a schedule; `overhead` ticks are added to each segment."""
    segments = segment_problem(problem, schedule, split, overhead)
    count = segments.n_tasks
    run = simulate(segments, split.segments.device, discipline="order", order=np.arange(count))
    tick = float(problem.resolution)
    whole = np.flatnonzero(problem.feasible.all(axis=0))
    return Prediction(
        fixed(run.start.astype(np.float64) * tick),
        fixed(durations(segments, split.segments.device).astype(np.float64) * tick),
        makespan(segments, run) * tick,
        makespan(problem, schedule) * tick,
        float(problem.duration[:, whole[0]].sum() + overhead) * tick if len(whole) else None,
        None if problem.pipeline is None else period(problem, schedule) * tick,
    )


def segment_problem(problem: Problem, schedule: Schedule, split: CutModel, overhead: int = 0) -> Problem:
    """Return the problem whose tasks are the segments, each feasible only on its device.

    A tensor moves once to each other device. The first segment there that reads it waits for it, and later segments of
    that device run after it anyway.
    """
    segments = split.segments
    count, device = len(segments), segments.device
    ticks = np.full(count, overhead, dtype=np.int64)
    np.add.at(ticks, segments.member, durations(problem, schedule.device))
    release = np.zeros(count, dtype=np.int64)
    np.maximum.at(release, segments.member, problem.release)
    duration = np.zeros((count, problem.n_devices), dtype=np.int64)
    duration[np.arange(count), device] = ticks
    feasible = np.zeros((count, problem.n_devices), dtype=np.bool_)
    feasible[np.arange(count), device] = True
    payload: dict[tuple[int, int], int] = {}
    for name in split.crossing:
        source = split.writer[name]
        first: dict[int, int] = {}
        for reader in split.readers[name]:
            first.setdefault(int(device[reader]), reader)
        for place, target in first.items():
            moved = 0 if place == int(device[source]) else split.size(name)
            payload[source, target] = payload.get((source, target), 0) + moved
    return build_problem(
        name=problem.name,
        task_names=[str(k) for k in range(count)],
        device_names=problem.device_names,
        device_types=problem.device_types,
        resolution=problem.resolution,
        duration=duration,
        feasible=feasible,
        release=release,
        edges=list(payload),
        payload=list(payload.values()),
        latency=problem.latency,
        byte_ticks_num=problem.byte_ticks_num,
        byte_ticks_den=problem.byte_ticks_den,
        contention=problem.contention,
    )


def fitted_problem(problem: Problem, seconds: Mapping[str, float], link: TransferModel) -> Problem:
    """Return the problem with measured durations of tasks on all their devices, and one link for all pairs of devices.

    Its ticks are nanoseconds. A task without a measurement keeps its durations.

    Parameters
    ----------
    seconds
        Measured durations by task.
    link
        Measured transfers.
    """
    scale = problem.resolution * NANO
    duration = _scaled(problem.duration, scale)
    for i, name in enumerate(problem.task_names):
        if name in seconds:
            duration[i, problem.feasible[i]] = round(seconds[name] * NANO)
    distinct = ~np.eye(problem.n_devices, dtype=np.bool_)
    rate = Fraction(link.seconds_per_byte * NANO).limit_denominator(_DENOMINATOR)
    made, _ = rebuilt(
        problem,
        resolution=Fraction(1, NANO),
        duration=duration,
        release=_scaled(problem.release, scale),
        deadline=np.full(problem.n_tasks, UNLIMITED),
        relocation=np.zeros_like(problem.relocation),
        latency=np.where(distinct, round(link.latency * NANO), 0),
        byte_ticks_num=np.where(distinct, rate.numerator, 0),
        byte_ticks_den=np.where(distinct, rate.denominator, 1),
    )
    return made


def _scaled(ticks: Int, scale: Fraction) -> Int:
    """Ticks of another length; `scale` new ticks are one old tick."""
    exact = [int(tick) * scale for tick in ticks.reshape(-1).tolist()]
    return np.array([round(each) for each in exact], dtype=np.int64).reshape(ticks.shape)
