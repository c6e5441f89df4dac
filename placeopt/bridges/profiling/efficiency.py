"""Estimate which fraction of their rates devices reach: measured times against those of a roofline at full rates.

A task of f FLOP and b bytes takes max(f / (c S), b / (m B)) on a device with speed S and memory bandwidth B, where c
and m are the efficiencies of both rates. The task is bound by the rate with the longer quotient. For the tasks bound by
a rate, the efficiency is the sum of their times at the full rate, divided by the sum of their measured times. Estimates
then add up to the measurements. The rate that binds a task depends on the efficiencies. Therefore both are recomputed,
from 1, until the assignment is stable, or `ROUNDS` times. The overhead of a device is subtracted from measured times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from placeopt.errors import SpecError, UsageError, listing
from placeopt.io.compiler import compile_spec
from placeopt.io.spec import ANY
from placeopt.model.arrays import Bool, Float
from placeopt.model.units import TIME, QuantityError, parse

ROUNDS = 100
_TICK = "0.01 ns"
_RATES = {"compute": "flops", "memory": "bytes"}


@dataclass(frozen=True, slots=True)
class Reached:
    """The fraction of a rate that tasks reach."""

    efficiency: float
    """May exceed 1 if the stated rate is too low."""
    tasks: int
    """Number of measured tasks that the rate binds."""
    at_peak: float
    """Seconds of these tasks at the full rate."""
    measured: float
    """Measured seconds of these tasks."""
    deviation: float
    """Median of |estimated - measured| / measured over these tasks, with the efficiencies of both rates."""


@dataclass(frozen=True, slots=True)
class DeviceEfficiency:
    """The efficiencies of the devices with one key in a problem."""

    devices: str
    """Key of the devices in the problem."""
    compute: Reached | None
    """For tasks bound by the speed; None without such tasks."""
    memory: Reached | None
    """For tasks bound by the memory bandwidth; None without such tasks."""
    deviation: float
    """Median of |estimated - measured| / measured over all measured tasks, with these efficiencies."""

    def spec(self) -> dict[str, float]:
        """Return `efficiency` for the device in a problem, to four digits; at most 1."""
        found = {"compute": self.compute, "memory": self.memory}
        return {
            rate: min(1.0, float(f"{reached.efficiency:.4g}")) for rate, reached in found.items() if reached is not None
        }


def device_efficiency(problem: Mapping[str, Any], profile: Mapping[str, Any]) -> tuple[DeviceEfficiency, ...]:
    """Estimate the efficiency of each device on which tasks with `flops` or `bytes` were measured.

    Both arguments are plain data, as for `apply_profile`. Tasks match the operators of the profile by name, else by op.

    Raises
    ------
    UsageError
        If no such task was measured on a device with rates, or the profile states no devices and the problem has
        several types of them.
    """
    devices = {str(key): device or {} for key, device in (problem.get("devices") or {}).items()}
    known = {str(name): (entry or {}).get("time") for name, entry in (profile.get("tasks") or {}).items()}
    tasks: dict[str, dict[str, Any]] = {}
    times: dict[str, Any] = {}
    for name, task in (problem.get("tasks") or {}).items():
        stated = {key: value for key, value in (task or {}).items() if key in ("flops", "bytes", "precision")}
        key = next((each for each in (str(name), str((task or {}).get("op"))) if known.get(each) is not None), None)
        if key is not None and ("flops" in stated or "bytes" in stated):
            tasks[str(name)], times[str(name)] = stated, known[key]
    types = dict.fromkeys(str(device.get("type", key)) for key, device in devices.items())
    if len(types) > 1 and not all(isinstance(time, dict) for time in times.values()):
        raise UsageError(
            f"the profile states no device, and the problem has devices of several types ({listing(list(types))}); "
            "state the measured one with `placeopt profile fit --device`"
        )
    found = []
    for pool, device in devices.items():
        keys = (pool, f"{pool}0", str(device.get("type", pool)), ANY)
        measured = {name: seconds for name, time in times.items() if (seconds := _seconds(time, keys)) is not None}
        if measured:
            overhead = _seconds(device.get("overhead", "0 s"), ()) or 0.0
            of_pool = _fitted(pool, device, {name: tasks[name] for name in measured}, measured, overhead, problem)
            found += [] if of_pool is None else [of_pool]
    if not found:
        raise UsageError("no task with flops or bytes was measured on a device that states rates")
    return tuple(found)


def _fitted(
    pool: str,
    device: Mapping[str, Any],
    tasks: Mapping[str, dict[str, Any]],
    times: Mapping[str, float],
    overhead: float,
    problem: Mapping[str, Any],
) -> DeviceEfficiency | None:
    peaks = [_at_peak(pool, device, tasks, key, problem) for key in _RATES.values()]
    measured = np.array([max(0.0, times[name] - overhead) for name in tasks])
    kept = (measured > 0) & ((peaks[0] > 0) | (peaks[1] > 0))
    if not kept.any():
        return None
    measured, work, traffic = measured[kept], peaks[0][kept], peaks[1][kept]
    factors = [1.0, 1.0]
    bound: Bool = work >= traffic
    for _ in range(ROUNDS):
        for rate, (peak, mask) in enumerate(((work, bound), (traffic, ~bound))):
            if mask.any():
                factors[rate] = float(peak[mask].sum() / measured[mask].sum())
        before, bound = bound, work / factors[0] >= traffic / factors[1]
        if (before == bound).all():
            break
    off = np.abs(np.maximum(work / factors[0], traffic / factors[1]) - measured) / measured
    reached = [
        Reached(
            float(peak[mask].sum() / measured[mask].sum()),
            int(mask.sum()),
            float(peak[mask].sum()),
            float(measured[mask].sum()),
            median(off[mask].tolist()),
        )
        if mask.any()
        else None
        for peak, mask in ((work, bound), (traffic, ~bound))
    ]
    return DeviceEfficiency(pool, reached[0], reached[1], median(off.tolist()))


def _at_peak(
    pool: str, device: Mapping[str, Any], tasks: Mapping[str, dict[str, Any]], amount: str, problem: Mapping[str, Any]
) -> Float:
    """Return the seconds of each task for its `flops` or its `bytes` alone, at the full rate; 0 without the rate."""
    keys = ("flops", "precision") if amount == "flops" else ("bytes",)
    stated = {name: {key: task[key] for key in keys if key in task} for name, task in tasks.items() if amount in task}
    document = {key: problem[key] for key in ("placeopt", "units", "precision") if key in problem}
    full = {key: value for key, value in device.items() if key not in ("overhead", "efficiency", "memory", "count")}
    document |= {"resolution": _TICK, "devices": {pool: {**full, "efficiency": 1}}, "tasks": stated}
    try:
        compiled = compile_spec(document)
    except SpecError:  # the device states no such rate, or the numbers without a unit are out of range
        return np.zeros(len(tasks))
    seconds = dict(
        zip(compiled.task_names, (compiled.duration[:, 0] * float(compiled.resolution)).tolist(), strict=True)
    )
    return np.array([seconds.get(name, 0.0) for name in tasks])


def _seconds(time: Any, keys: tuple[str, ...]) -> float | None:
    """Return the time of the first key in a table, or a time for all devices; None without one or without a unit."""
    if isinstance(time, dict):
        time = next((time[key] for key in keys if key in time), None)
    if time is None:
        return None
    try:
        found = parse(time, TIME)
    except QuantityError:
        return None
    return None if found.bare else float(found.value)
