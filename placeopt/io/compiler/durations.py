"""Durations, feasibility, release times and deadlines of tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import listing
from placeopt.io.compiler.issues import Gaps, Issues
from placeopt.io.compiler.network import DeviceIndex
from placeopt.io.compiler.scales import LARGEST, Scales
from placeopt.io.spec import Durations, TaskSpec
from placeopt.io.syntax import Path
from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import UNLIMITED, ratio_ceil
from placeopt.model.units import shown


def feasibility(tasks: dict[str, TaskSpec], index: DeviceIndex, gaps: Gaps, issues: Issues) -> Bool:
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
            mask = _mask(name, task, index, None if gaps.features else features, issues)
            if len(issues) == before:  # a mask with issues is not cached, so that each task reports its own
                masks[key] = mask
        allowed[row] = mask
    return allowed


def _mask(name: str, task: TaskSpec, index: DeviceIndex, features: Sequence[str] | None, issues: Issues) -> Bool:
    """(m,), whether each device is allowed; `features` are all known features, None if unknown."""
    mask = np.ones(len(index), dtype=np.bool_)

    def keep(places: list[int]) -> None:
        chosen = np.zeros(len(index), dtype=np.bool_)
        chosen[places] = True
        np.logical_and(mask, chosen, out=mask)

    if task.devices is not None:
        path = ("tasks", name, "devices")
        keep([d for place, reference in enumerate(task.devices) for d in index.find(reference, (*path, place))])
    for place, feature in enumerate(task.requires):
        if features is not None and feature not in features:
            issues.unknown("feature", feature, features, ("tasks", name, "requires", place))
        keep([d for d, device in enumerate(index.devices) if feature in device.spec.features])
    if task.pin is not None:
        devices = index.find(task.pin, ("tasks", name, "pin"))
        if len(devices) > 1:
            names = listing([index.devices[d].name for d in devices])
            issues.add(
                f"{shown(task.pin)} refers to {len(devices)} devices ({names}); pin to one of them, or use devices",
                ("tasks", name, "pin"),
            )
        keep(devices)
    return mask


def by_device(
    table: Durations, index: DeviceIndex, scales: Scales, path: Path, *, lenient: bool = False
) -> tuple[Int, Bool]:
    """(m,) ticks from the table at a path, and (m,) whether it states any.

    The most specific reference wins: name, then pool, then type. Unknown references are reported, unless `lenient`.
    """
    ticks = np.zeros(len(index), dtype=np.int64)
    known = np.zeros(len(index), dtype=np.bool_)
    found = []
    for reference, time in table.items():
        levels = index.levels(reference, None if lenient else (*path, reference), at_key=True)
        found.append((levels, scales.ticks(time, (*path, reference), counts=any(levels))))
    for level in range(4):
        for levels, value in found:
            if levels[level]:
                ticks[levels[level]] = value
                known[levels[level]] = True
    return ticks, known


def time_windows(tasks: dict[str, TaskSpec], scales: Scales) -> tuple[Int, Int]:
    """(n,) release times, rounded up to ticks, and (n,) deadlines, rounded down."""
    release = np.zeros(len(tasks), dtype=np.int64)
    deadline = np.full(len(tasks), UNLIMITED, dtype=np.int64)
    for row, (name, task) in enumerate(tasks.items()):
        if task.release is not None:
            release[row] = scales.ticks(task.release, ("tasks", name, "release"))
        if task.deadline is not None:
            deadline[row] = scales.ticks_rounded_down(task.deadline, ("tasks", name, "deadline"))
    return release, deadline


class DurationTable:
    """Durations of all tasks; devices without a duration become infeasible."""

    def __init__(self, index: DeviceIndex, scales: Scales, allowed: Bool, gaps: Gaps, issues: Issues) -> None:
        self._index, self._scales, self._gaps, self._issues = index, scales, gaps, issues
        self.duration: Int = np.zeros(allowed.shape, dtype=np.int64)
        self.feasible: Bool = allowed.copy()
        self._rows: dict[object, tuple[Int, Bool]] = {}
        doubtful = {device.pool for device in index.devices if issues.touch("devices", device.pool)}
        self._reported = {"speed": doubtful, "memory_bandwidth": set(doubtful)}
        """Pools whose missing rate was reported, or that have other issues."""

    def fill(self, tasks: dict[str, TaskSpec], operations: dict[str, Durations]) -> None:
        """Fill in the durations of all tasks without issues."""
        skip, known_operations = self._broken(), list(operations)
        work: list[tuple[int, str, TaskSpec]] = []
        for row, (name, task) in enumerate(tasks.items()):
            if name in skip:
                continue
            given_by_work = task.flops is not None or task.bytes is not None
            if task.time is not None:
                if given_by_work:
                    self._issues.add("has both time and flops or bytes; expected one of them", ("tasks", name, "time"))
                self._tabulate(row, task.time, ("tasks", name, "time"))
            elif given_by_work:
                work.append((row, name, task))
            elif task.op is None:
                self._issues.add("has no duration; expected time, op or flops", ("tasks", name))
            elif task.op in operations:
                self._tabulate(row, operations[task.op], ("operations", task.op), task.op)
            elif not self._gaps.operations:
                self._issues.unknown("operation", task.op, known_operations, ("tasks", name, "op"))
        if work:
            self._roofline(work)

    def restrict(self, fixed: Int) -> None:
        """Restrict fixed tasks to their device; `fixed` (n,) is -1 for a free task."""
        rows = np.flatnonzero(fixed >= 0)
        kept = self.feasible[rows, fixed[rows]]
        self.feasible[rows] = False
        self.feasible[rows, fixed[rows]] = kept

    def _broken(self) -> set[str | int]:
        """Tasks with an issue that may concern the duration, such as an unknown key."""
        harmless = set(TaskSpec.model_fields) - {"time", "op", "flops", "bytes"}
        about_tasks = [path for path in self._issues.paths if len(path) > 1 and path[0] == "tasks"]
        return {path[1] for path in about_tasks if len(path) < 3 or path[2] not in harmless}

    def _tabulate(self, row: int, table: Durations, path: Path, op: str | None = None) -> None:
        """Fill in a row from a table; an operation, unlike a task, may name types that this network lacks."""
        if op is None or op not in self._rows:
            ticks, known = by_device(table, self._index, self._scales, path, lenient=op is not None)
            if op is not None:
                self._rows[op] = (ticks, known)
        else:
            ticks, known = self._rows[op]
        self.duration[row] = ticks
        self.feasible[row] &= known

    def _roofline(self, work: list[tuple[int, str, TaskSpec]]) -> None:
        """max(flops / speed, bytes / memory_bandwidth) + overhead, each quotient rounded up to a tick."""
        rows = np.array([row for row, _, _ in work])
        scales = self._scales
        flops = np.array(
            [0 if task.flops is None else scales.work(task.flops, ("tasks", name, "flops")) for _, name, task in work]
        )
        traffic = np.array(
            [0 if task.bytes is None else scales.size(task.bytes, ("tasks", name, "bytes")) for _, name, task in work]
        )
        profiles: dict[tuple[object, ...], list[int]] = {}
        for d, device in enumerate(self._index.devices):
            profile = (device.spec.speed, device.spec.memory_bandwidth, device.spec.overhead)
            profiles.setdefault(profile, []).append(d)
        for places in profiles.values():
            device = self._index.devices[places[0]]
            path = ("devices", device.pool)
            ticks = np.zeros(len(rows), dtype=np.int64)
            exact = np.zeros(len(rows))
            if device.spec.speed is None:
                self._no_rate(rows[flops > 0], places, work, "speed", "flops")
            else:
                rate = scales.speed(device.spec.speed, (*path, "speed"))
                ticks, exact = self._quotient(flops, rate, path), flops * (rate[0] / rate[1])
            if device.spec.memory_bandwidth is not None:
                rate = scales.bandwidth(device.spec.memory_bandwidth, (*path, "memory_bandwidth"))
                ticks = np.maximum(ticks, self._quotient(traffic, rate, path))
                exact = np.maximum(exact, traffic * (rate[0] / rate[1]))
            else:
                self._no_rate(rows[(flops == 0) & (traffic > 0)], places, work, "memory_bandwidth", "bytes only")
            if device.spec.overhead is not None:
                ticks = ticks + scales.ticks(device.spec.overhead, (*path, "overhead"), counts=False)
                exact = exact + float(min(scales.exact_ticks(device.spec.overhead), LARGEST))
            self.duration[np.ix_(rows, np.array(places))] = ticks[:, None]
            self._count_rounding(work, exact, ticks, self.feasible[np.ix_(rows, np.array(places))].any(axis=1))

    def _count_rounding(
        self, work: list[tuple[int, str, TaskSpec]], exact: NDArray[np.float64], ticks: Int, runs: Bool
    ) -> None:
        """Report the most rounded of these tasks to the scales; `runs` is which of them may run on the device."""
        stated = runs & (exact > 0) & (np.abs(ticks - exact) > 1e-9 * exact)  # beyond rounding errors of floats
        share = np.divide(ticks - exact, exact, out=np.zeros(len(exact)), where=stated)
        if stated.any():
            most = int(share.argmax())
            _, name, task = work[most]
            path = ("tasks", name, "bytes" if task.flops is None else "flops")
            self._scales.count_rounding(float(exact[most]), int(ticks[most]), path)

    def _quotient(self, amounts: Int, ratio: tuple[int, int], path: Path) -> Int:
        """Ticks for amounts of work or traffic, rounded up."""
        num, den = ratio
        if float(amounts.max(initial=0)) * num / den > LARGEST:
            if not self._gaps.scales:
                self._issues.add("is so slow that durations are out of range for this resolution", path)
            return np.zeros_like(amounts)
        return np.asarray(ratio_ceil(amounts, num, den))

    def _no_rate(
        self, rows: Int, places: list[int], work: list[tuple[int, str, TaskSpec]], rate: str, given: str
    ) -> None:
        """Report devices that may run a task but state no rate for its work."""
        names = {row: name for row, name, _ in work}
        for d in places:
            device = self._index.devices[d]
            needing = rows[self.feasible[rows, d]]
            if len(needing) and device.pool not in self._reported[rate]:
                self._reported[rate].add(device.pool)
                self._issues.add(
                    f"has no {rate}, and task {shown(names[int(needing[0])])}, stated by {given}, may run on it; "
                    f"state it, or restrict the task's devices",
                    ("devices", device.pool),
                )
