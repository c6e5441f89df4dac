"""Predict the times of segments from a problem, as stated or with measured durations and links."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from placeopt.bridges.cut_models import CutModel
from placeopt.bridges.profiling import TransferModel
from placeopt.bridges.profiling.estimates import DIGITS
from placeopt.bridges.profiling.measurements import fixed
from placeopt.errors import UsageError, listing
from placeopt.model import ports
from placeopt.model.arrays import Float, Int, by_index
from placeopt.model.building import build_problem
from placeopt.model.period import period
from placeopt.model.problem import BUSY, NANO, UNLIMITED, Problem
from placeopt.model.schedule import Schedule, durations, makespan
from placeopt.model.units import seconds_text
from placeopt.passes.rebuilding import rebuilt
from placeopt.simulation import retime, simulate

_ALMOST = 1e-6
"""Ticks up to which work counts as done."""

_DENOMINATOR = 10**6
"""Largest denominator of the nanoseconds per byte of a fitted link."""


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """Predicted times in seconds; arrays are read-only."""

    start: Float
    busy: Float
    """(s,) start of each segment and sum of the durations of its tasks."""
    makespan: float
    """End of the last segment, where a segment waits for all its inputs and sends its outputs at its end."""
    tasks: float
    """Makespan of the plan itself, where each task sends its output at its own end."""
    one_device: float | None
    """Time of all tasks on the device of the unsplit model; None without one that may run them all."""
    period: float | None
    """Time between two results of a pipeline; None for other problems."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What segments and transfers take between two workers, besides tasks."""

    transfer: TransferModel
    """From the end of the segment that writes a tensor to the start of the segment that reads it."""
    sending: TransferModel
    """The part of it for which the sender does nothing else; the receiver does nothing else during the other part."""
    segment: tuple[float, ...]
    """Seconds that each segment takes in addition to its tasks, by device."""
    pause: float
    """Seconds between two segments of a device."""

    @property
    def mean_segment(self) -> float:
        """The mean over the devices of what each segment takes in addition to its tasks."""
        return sum(self.segment) / len(self.segment)


@dataclass(frozen=True, slots=True)
class Fit:
    """Measurements that predict the times on this machine."""

    problem: Problem
    seconds: Mapping[str, tuple[float | None, ...]]
    """Measured durations by task, on each device; other tasks keep that of the problem, as does a device with None."""
    costs: Costs
    slowdown: tuple[float, ...]
    """Factor of the durations while 1, 2, ... processes are busy."""
    stand_ins: tuple[str, ...] = ()
    """Devices that are not CPUs, which a CPU core replaces: measurements of them are those of the core."""

    @property
    def measured_tasks(self) -> int:
        """Number of tasks with a measured duration."""
        return len(self.seconds)

    def profile(self) -> dict[str, Any]:
        """The measured durations and the link as a profile, for `placeopt.bridges.profiling.apply_profile`.

        Durations are those while all devices are busy, so that equal devices have equal ones. A transfer begins another
        segment, so the latency of the link contains what a segment takes besides its tasks, as the mean over the
        devices. Devices for which a CPU core stands have no durations. With one of them, the profile has no link.

        Raises a UsageError if a CPU core stands for each device.
        """
        if len(self.stand_ins) == self.problem.n_devices:
            raise UsageError(
                f"a profile of {listing(self.stand_ins)} needs this hardware: a CPU core stands for each device here"
            )
        document: dict[str, Any] = {"placeopt": 1, "source": "Measured by placeopt run --fit."}
        if self.problem.n_devices > 1 and not self.stand_ins:
            transfer = self.costs.transfer
            latency = transfer.latency + self.costs.mean_segment + self.costs.pause
            document["links"] = {"default": replace(transfer, latency=latency).link()}
        document["tasks"] = {name: {"time": self._time(seconds)} for name, seconds in self.seconds.items()}
        return document

    def _time(self, seconds: Sequence[float | None]) -> str | dict[str, str]:
        """The duration of a task, by device where they differ."""
        stated = {
            name: seconds_text(each * self.slowdown[-1], DIGITS)
            for name, each in zip(self.problem.device_names, seconds, strict=True)
            if each is not None and name not in self.stand_ins
        }
        texts = set(stated.values())
        return texts.pop() if len(texts) == 1 and len(stated) == len(seconds) else stated


def predict(problem: Problem, schedule: Schedule, split: CutModel, home: int | None = None) -> Prediction:
    """Predict the times of the segments of a schedule, and of all tasks on the device `home`."""
    segments = segment_problem(problem, schedule, split)
    run = simulate(segments, split.segments.device, discipline="order", order=np.arange(segments.n_tasks))
    tick = float(problem.resolution)
    busy = durations(segments, split.segments.device)
    return Prediction(
        fixed(run.start.astype(np.float64) * tick),
        fixed(busy.astype(np.float64) * tick),
        makespan(segments, run) * tick,
        makespan(problem, schedule) * tick,
        _seconds_on(problem, home),
        None if problem.pipeline is None else period(problem, schedule) * tick,
    )


def predict_fitted(
    problem: Problem, schedule: Schedule, split: CutModel, fit: Fit, home: int | None = None
) -> Prediction:
    """Predict the times of the segments of a schedule with measured durations, transfers and contention."""
    busy = len(np.unique(schedule.device))  # the processes of other devices are idle
    stated = fitted_problem(problem, fit, fit.slowdown[busy - 1])
    again = retime(stated, Schedule(schedule.device, schedule.start))
    alone = fitted_problem(problem, fit, 1.0)
    segments = segment_problem(alone, again, split, [round(each * NANO) for each in fit.costs.segment])
    start, end = execute(segments, split.segments.device, fit)
    one_device = _seconds_on(alone, home)
    return Prediction(
        fixed(start / NANO),
        fixed((end - start) / NANO),
        float(end.max(initial=0.0)) / NANO,
        makespan(stated, again) / NANO,
        None if home is None or one_device is None else one_device + fit.costs.segment[home],
        None if problem.pipeline is None else period(stated, again) / NANO,
    )


def _seconds_on(problem: Problem, device: int | None) -> float | None:
    """Seconds of all tasks on a device."""
    return None if device is None else float(problem.duration[:, device].sum()) * float(problem.resolution)


def execute(segments: Problem, device: Int, fit: Fit) -> tuple[Float, Float]:
    """Return start and end (s,) of segments in nanoseconds, each of which waits for its inputs.

    Each device runs its segments by number. While several devices are busy, all are slower. A device also sends and
    receives, before and after its segments.
    """
    count, costs = segments.n_tasks, fit.costs
    source, target = segments.edge_source, segments.edge_target
    remote, payload = device[source] != device[target], segments.payload.astype(np.float64)
    sent = np.where(remote, costs.sending.seconds(payload), 0.0) * NANO
    received = np.where(remote, costs.transfer.seconds(payload), 0.0) * NANO - sent
    before = np.bincount(target, np.maximum(received, 0.0), minlength=count)
    after = np.bincount(source, sent, minlength=count) + costs.pause * NANO
    start, end = np.zeros(count), np.zeros(count)
    left = durations(segments, device) + before
    arrival = segments.release.astype(np.float64)
    missing = np.bincount(target, minlength=count)
    leaving: list[list[int]] = [[] for _ in range(count)]
    for edge, writer in enumerate(source.tolist()):
        leaving[writer].append(edge)
    waiting = {d: deque(np.flatnonzero(device == d).tolist()) for d in np.unique(device).tolist()}
    running: set[int] = set()
    now = 0.0
    while any(waiting.values()):
        heads = [own[0] for own in waiting.values() if own and not missing[own[0]]]
        for k in heads:
            if k not in running and arrival[k] <= now:
                start[k] = now + before[k]
                running.add(k)
        rate = 1 / fit.slowdown[max(len(running) - 1, 0)]
        step = min(left[k] / rate if k in running else arrival[k] - now for k in heads)
        now += step
        for k in list(running):
            left[k] -= step * rate
            if left[k] > _ALMOST:
                continue
            end[k] = now
            running.remove(k)
            own = waiting[int(device[k])]
            own.popleft()
            if own:
                arrival[own[0]] = max(arrival[own[0]], now + after[k])
            for edge in leaving[k]:
                reader = int(target[edge])
                missing[reader] -= 1
                arrival[reader] = max(arrival[reader], now + sent[edge])
    return start, end


def segment_problem(problem: Problem, schedule: Schedule, split: CutModel, overhead: Sequence[int] = ()) -> Problem:
    """Return the problem whose tasks are the segments, each feasible only on its device.

    `overhead` are the ticks that each segment takes in addition to its tasks, by device.

    A tensor moves once to each other device. The first segment there that reads it waits for it, and later segments of
    that device run after it anyway.
    """
    segments = split.segments
    count, device = len(segments), segments.device
    ticks = np.array(overhead or [0] * problem.n_devices, dtype=np.int64)[device]
    np.add.at(ticks, segments.member, durations(problem, schedule.device))
    release = by_index(np.maximum, segments.member, problem.release, count)
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
        **{name: getattr(problem, name) for name in ports.FIELDS},
    )


def fitted_problem(problem: Problem, fit: Fit, factor: float) -> Problem:
    """Return the problem with measured durations, times a factor, and one link for all pairs of devices.

    Its ticks are nanoseconds. A task without a measurement keeps its durations.
    """
    link = fit.costs.transfer
    scale = problem.resolution * NANO
    duration = _scaled(problem.duration, scale)
    for i, name in enumerate(problem.task_names):
        for d, each in enumerate(fit.seconds.get(name, ())):
            if each is not None and problem.feasible[i, d]:
                duration[i, d] = round(each * NANO * factor)
    distinct = ~np.eye(problem.n_devices, dtype=np.bool_)
    rate = Fraction(link.seconds_per_byte * NANO).limit_denominator(_DENOMINATOR)
    made, _ = rebuilt(
        problem,
        resolution=Fraction(1, NANO),
        duration=duration,
        release=_scaled(problem.release, scale),
        deadline=np.full(problem.n_tasks, UNLIMITED),
        **BUSY,  # a run does not wait for windows, and measured durations contain setup times
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
