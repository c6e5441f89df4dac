"""Durations and feasibility: which device may run a task, and for how many ticks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.compiler.devices import DeviceIndex
from placeopt.compiler.issues import Issues, Path
from placeopt.compiler.scales import LARGEST, Scales
from placeopt.errors import listing, suggestion
from placeopt.ir import Bool, Int, ratio_ceil
from placeopt.spec import Durations, TaskSpec


def feasibility(tasks: dict[str, TaskSpec], index: DeviceIndex, issues: Issues) -> Bool:
    """(n, m), whether `devices`, `requires` and `pin` allow the device."""
    features = sorted({feature for device in index.devices for feature in device.spec.features})
    masks: dict[tuple[object, ...], Bool] = {}
    allowed = np.ones((len(tasks), len(index)), dtype=np.bool_)
    for row, (name, task) in enumerate(tasks.items()):
        if task.devices is None and not task.requires and task.pin is None:
            continue
        key = (None if task.devices is None else tuple(task.devices), tuple(task.requires), task.pin)
        mask = masks.get(key)
        if mask is None:
            before = len(issues)
            mask = _mask(name, task, index, features, issues)
            if len(issues) == before:  # one with issues is not kept: each task that has them reports its own
                masks[key] = mask
        allowed[row] = mask
    return allowed


def _mask(name: str, task: TaskSpec, index: DeviceIndex, features: Sequence[str], issues: Issues) -> Bool:
    mask = np.ones(len(index), dtype=np.bool_)

    def keep(places: list[int]) -> None:
        chosen = np.zeros(len(index), dtype=np.bool_)
        chosen[places] = True
        np.logical_and(mask, chosen, out=mask)

    if task.devices is not None:
        found: list[int] = []
        for place, reference in enumerate(task.devices):
            devices = index.find(reference)
            if devices is None:
                issues.add(index.unknown(reference), ("tasks", name, "devices", place))
            found += devices or []
        keep(found)
    for place, feature in enumerate(task.requires):
        if feature not in features:
            near = suggestion(feature, features) or f"; known are {listing(features)}"
            issues.add(f'no device has the feature "{feature}"{near}', ("tasks", name, "requires", place))
        keep([d for d, device in enumerate(index.devices) if feature in device.spec.features])
    if task.pin is not None:
        devices = index.find(task.pin)
        if devices is None:
            issues.add(index.unknown(task.pin), ("tasks", name, "pin"))
        elif len(devices) > 1:
            names = listing([index.devices[d].name for d in devices])
            issues.add(f'"{task.pin}" stands for {len(devices)} devices ({names}); pin to one of them, or use devices',
                   ("tasks", name, "pin"))  # fmt: skip
        keep(devices or [])
    return mask


def check_operations(tasks: dict[str, TaskSpec], operations: dict[str, Durations], issues: Issues) -> None:
    """Report tasks whose duration hangs on an operation that nobody described."""
    for name, task in tasks.items():
        labels_only = task.time is not None or task.flops is not None or task.bytes is not None
        if task.op is not None and not labels_only and task.op not in operations:
            near = suggestion(task.op, operations) or f"; known are {listing(list(operations))}"
            issues.add(f'unknown operation "{task.op}"{near}', ("tasks", name, "op"))


class DurationTable:
    """Fills the durations of all tasks; what no source gives a duration for becomes infeasible."""

    def __init__(self, index: DeviceIndex, scales: Scales, allowed: Bool, issues: Issues) -> None:
        self._index, self._scales, self._issues = index, scales, issues
        self.duration: Int = np.zeros(allowed.shape, dtype=np.int64)
        self.feasible: Bool = allowed.copy()
        self._rows: dict[object, tuple[Int, Bool]] = {}
        self._slow: set[tuple[str, str]] = set()

    def fill(self, tasks: dict[str, TaskSpec], operations: dict[str, Durations], skip: set[str]) -> None:
        """Durations of all tasks but those in `skip`, which have issues already."""
        work: list[tuple[int, str, TaskSpec]] = []
        for row, (name, task) in enumerate(tasks.items()):
            if name in skip:
                continue
            if task.time is not None:
                if task.flops is not None or task.bytes is not None:
                    self._issues.add("has both time and flops or bytes; expected one of them", ("tasks", name, "time"))
                self._tabulate(row, task.time, ("tasks", name, "time"))
            elif task.flops is not None or task.bytes is not None:
                work.append((row, name, task))
            elif task.op is None:
                self._issues.add("has no duration; expected time, op or flops", ("tasks", name))
            else:
                self._tabulate(row, operations[task.op], ("operations", task.op), task.op)
        if work:
            self._roofline(work)

    def _tabulate(self, row: int, table: Durations, path: Path, op: str | None = None) -> None:
        """Durations given by device; the most specific reference wins: name, then pool, then type.

        An operation may name types that this network lacks, so that one table serves many networks; a task may not.
        """
        if op is None or op not in self._rows:
            ticks = np.zeros(len(self._index), dtype=np.int64)
            known = np.zeros(len(self._index), dtype=np.bool_)
            found = [
                (self._index.levels(reference), self._scales.ticks(time, (*path, reference)))
                for reference, time in table.items()
            ]
            for level in range(4):
                for levels, value in found:
                    if levels[level]:
                        ticks[levels[level]] = value
                        known[levels[level]] = True
            for reference, (levels, _) in zip(table, found, strict=True):
                if op is None and not any(levels):
                    self._issues.add(self._index.unknown(reference), (*path, reference), at_key=True)
            if op is not None:
                self._rows[op] = (ticks, known)
        else:
            ticks, known = self._rows[op]
        self.duration[row] = ticks
        self.feasible[row] &= known

    def _roofline(self, work: list[tuple[int, str, TaskSpec]]) -> None:
        """max(flops / speed, bytes / memory_bandwidth) + overhead, each quotient rounded up to a tick."""
        rows = np.array([row for row, _, _ in work])
        flops = np.array(
            [
                0 if task.flops is None else self._scales.work(task.flops, ("tasks", name, "flops"))
                for _, name, task in work
            ]
        )
        traffic = np.array(
            [
                0 if task.bytes is None else self._scales.size(task.bytes, ("tasks", name, "bytes"))
                for _, name, task in work
            ]
        )
        profiles: dict[tuple[object, ...], list[int]] = {}
        for d, device in enumerate(self._index.devices):
            profile = (device.spec.speed, device.spec.memory_bandwidth, device.spec.overhead)
            profiles.setdefault(profile, []).append(d)
        for places in profiles.values():
            device = self._index.devices[places[0]]
            path = ("devices", device.pool)
            ticks = np.zeros(len(rows), dtype=np.int64)
            if device.spec.speed is None:
                self._no_rate(rows[flops > 0], places, work, "speed", "flops")
            else:
                ticks = self._quotient(flops, self._scales.speed(device.spec.speed, (*path, "speed")), path)
            if device.spec.memory_bandwidth is not None:
                rate = self._scales.bandwidth(device.spec.memory_bandwidth, (*path, "memory_bandwidth"))
                ticks = np.maximum(ticks, self._quotient(traffic, rate, path))
            else:
                self._no_rate(rows[(flops == 0) & (traffic > 0)], places, work, "memory_bandwidth", "bytes alone")
            if device.spec.overhead is not None:
                ticks = ticks + self._scales.ticks(device.spec.overhead, (*path, "overhead"))
            self.duration[np.ix_(rows, np.array(places))] = ticks[:, None]

    def _quotient(self, amounts: Int, ratio: tuple[int, int], path: Path) -> Int:
        """Ticks for amounts of work or traffic, rounded up."""
        num, den = ratio
        if float(amounts.max(initial=0)) * num / den > LARGEST:
            self._issues.add("is so slow that durations are out of range for this resolution", path)
            return np.zeros_like(amounts)
        return np.asarray(ratio_ceil(amounts, num, den))

    def _no_rate(
        self, rows: Int, places: list[int], work: list[tuple[int, str, TaskSpec]], rate: str, given: str
    ) -> None:
        """Report devices that would have to run some task but state no rate for its work."""
        names = {row: name for row, name, _ in work}
        for d in places:
            device = self._index.devices[d]
            needing = rows[self.feasible[rows, d]]
            if len(needing) and (device.pool, rate) not in self._slow:
                self._slow.add((device.pool, rate))
                self._issues.add(
                    f'has no {rate}, and task "{names[int(needing[0])]}", given by {given}, may run here; '
                    f"state it, or restrict the task's devices",
                    ("devices", device.pool),
                )
