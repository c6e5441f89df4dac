"""Durations, feasibility, release times and deadlines of tasks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from fractions import Fraction
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import listing
from placeopt.io.compiler.issues import Gaps, Issues
from placeopt.io.compiler.network import DeviceIndex
from placeopt.io.compiler.scales import Scales, scaled
from placeopt.io.compiler.tasks import Tasks
from placeopt.io.spec import DeviceSpec, Durations, EfficiencySpec, NumberFormat, TaskSpec
from placeopt.io.syntax import Path
from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import UNLIMITED, Efficiency, ratio_ceil
from placeopt.model.ranges import LARGEST
from placeopt.model.units import shown

WIDER: dict[NumberFormat, tuple[NumberFormat, ...]] = {
    "fp64": (),
    "fp32": ("fp64",),
    "tf32": ("fp32", "fp64"),
    "bf16": ("tf32", "fp32", "fp64"),
    "fp16": ("tf32", "fp32", "fp64"),
    "fp8": ("fp16", "bf16", "tf32", "fp32", "fp64"),
    "fp4": ("fp8", "fp16", "bf16", "tf32", "fp32", "fp64"),
    "int8": ("fp16", "bf16", "tf32", "fp32", "fp64"),
    "int4": ("int8", "fp16", "bf16", "tf32", "fp32", "fp64"),
}
"""The wider formats of each number format, which represent all of its values: the next one first."""

ROWS = 4096
"""Tasks whose durations are written to the table of all devices at a time."""


def feasibility(tasks: Tasks, index: DeviceIndex, gaps: Gaps, issues: Issues) -> Bool:
    """Return (n, m) whether `devices`, `requires` and `pin` allow the device."""
    features = sorted({feature for device in index.devices for feature in device.spec.features})
    masks: dict[tuple[object, ...], Bool] = {}
    allowed = np.ones((len(tasks), len(index)), dtype=np.bool_)
    for row, name, task in tasks.stating("devices", "requires", "pin"):
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
    """Return whether each device (m,) is allowed; `features` are all known features, None if unknown."""
    chosen: list[set[int]] = [set(range(len(index)))]
    if task.devices is not None:
        path = ("tasks", name, "devices")
        chosen.append({d for place, word in enumerate(task.devices) for d in index.find(word, (*path, place))})
    for place, feature in enumerate(task.requires):
        if features is not None and feature not in features:
            issues.unknown("feature", feature, features, ("tasks", name, "requires", place))
        chosen.append({d for d, device in enumerate(index.devices) if feature in device.spec.features})
    if task.pin is not None:
        devices = index.find(task.pin, ("tasks", name, "pin"), single=True)
        if len(devices) > 1:
            names = listing([index.devices[d].name for d in devices])
            issues.add(
                f"{shown(task.pin)} refers to {len(devices)} devices ({names}); pin to one of them, or use devices",
                ("tasks", name, "pin"),
            )
        chosen.append(set(devices))
    mask = np.zeros(len(index), dtype=np.bool_)
    mask[list(set.intersection(*chosen))] = True
    return mask


def by_device(
    table: Durations, index: DeviceIndex, scales: Scales, path: Path, *, lenient: bool = False
) -> tuple[Int, Bool]:
    """Return (m,) ticks from the table at a path, and (m,) whether it states any.

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


def time_windows(tasks: Tasks, scales: Scales) -> tuple[Int, Int]:
    """Return (n,) release times, rounded up to ticks, and (n,) deadlines, rounded down."""
    release = np.zeros(len(tasks), dtype=np.int64)
    deadline = np.full(len(tasks), UNLIMITED, dtype=np.int64)
    for row, name, task in tasks.stating("release", "deadline"):
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
        self._scaled: list[tuple[DeviceSpec, list[int], Int]] = []
        """Devices with equal rates, and the tasks whose durations there depend on an efficiency below 1."""
        self._doubtful = {device.pool for device in index.devices if issues.touch("devices", device.pool)}
        self._reported: set[tuple[str, str]] = set()
        """Pools and their missing rates that were reported."""

    def fill(self, tasks: Tasks, operations: dict[str, Durations], precision: NumberFormat) -> None:
        """Fill in the durations of all tasks without issues; `precision` is the default of the tasks."""
        skip, known_operations, unknown_default = self._broken(), list(operations), self._issues.touch("precision")
        skip |= {name for _, name, task in tasks.stating("modes") if task.modes}
        work: list[tuple[int, str, TaskSpec]] = []
        for row, (name, task) in enumerate(tasks.items()):
            if name in skip or (unknown_default and task.flops is not None and task.precision is None):
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
            self._roofline(work, precision)

    def efficiency(self) -> tuple[Efficiency, ...]:
        """Return the efficiencies below 1 on which durations depend, by pool in the order of the document."""
        found: dict[str, Efficiency] = {}
        for spec, places, rows in self._scaled:
            pools: dict[str, list[int]] = {}
            for d in places:
                pools.setdefault(self._index.devices[d].pool, []).append(d)
            for pool, members in pools.items():
                count = int(self.feasible[np.ix_(rows, np.array(members))].any(axis=1).sum())
                if count:
                    compute, memory = _factors(spec)
                    like = self._index.devices[members[0]].spec.like
                    found[pool] = Efficiency(pool, like, compute, memory, count)
        return tuple(found[pool] for pool in dict.fromkeys(d.pool for d in self._index.devices) if pool in found)

    def extended(self, index: DeviceIndex, duration: Int, feasible: Bool) -> DurationTable:
        """Return the table with further devices; `duration` and `feasible` (n, m) are those of all devices."""
        found = copy(self)
        found._index, found.duration, found.feasible = index, duration, feasible
        return found

    def restrict(self, fixed: Int) -> None:
        """Restrict fixed tasks to their device; `fixed` (n,) is -1 for a free task."""
        rows = np.flatnonzero(fixed >= 0)
        kept = self.feasible[rows, fixed[rows]]
        self.feasible[rows] = False
        self.feasible[rows, fixed[rows]] = kept

    def finished(self) -> Int:
        """Return the durations (n, m), 0 where not feasible, and make the table read-only."""
        if not self.feasible.all():
            self.duration[~self.feasible] = 0
        self.duration.flags.writeable = self.feasible.flags.writeable = False  # stored once, not copied
        return self.duration

    def _broken(self) -> set[str | int]:
        """Return tasks with an issue that may concern the duration, such as an unknown key."""
        harmless = set(TaskSpec.model_fields) - {"time", "op", "flops", "bytes", "precision"}
        about_tasks = [path for path in self._issues.paths if len(path) > 1 and path[0] == "tasks"]
        return {path[1] for path in about_tasks if len(path) < 3 or path[2] not in harmless}

    def _tabulate(self, row: int, table: Durations, path: Path, op: str | None = None) -> None:
        """Fill in a row from a table; an operation, unlike a task, may name types that this network lacks."""
        found = self._rows.get(op)
        if found is None:
            found = by_device(table, self._index, self._scales, path, lenient=op is not None)
            if op is not None:
                self._rows[op] = found
        self.duration[row] = found[0]
        self.feasible[row] &= found[1]

    def _roofline(self, work: list[tuple[int, str, TaskSpec]], precision: NumberFormat) -> None:
        """max(flops / speed, bytes / memory_bandwidth) + overhead, each quotient rounded up to a tick.

        Both rates are multiplied by their efficiencies.
        """
        scales = self._scales
        rows = np.array([row for row, _, _ in work])
        tasks = [task for _, _, task in work]

        def stated(key: str, default: Any) -> list[Any]:
            return [default if value is None else value for value in map(attrgetter(key), tasks)]

        flops = scales.works(stated("flops", 0), lambda place: ("tasks", work[place][1], "flops"))
        traffic = scales.sizes(stated("bytes", 0), lambda place: ("tasks", work[place][1], "bytes"))
        formats = np.array(stated("precision", precision))
        of_format: dict[NumberFormat, Bool] = {known: formats == known for known in dict.fromkeys(formats.tolist())}
        profiles: dict[tuple[object, ...], list[int]] = {}
        for d, device in enumerate(self._index.devices):
            spec = device.spec
            speeds = None if spec.speed is None else tuple(spec.speed.items())
            profile = (speeds, spec.memory_bandwidth, spec.overhead, _factors(spec))
            profiles.setdefault(profile, []).append(d)
        anywhere = bool(self.feasible.all())
        columns: list[Int] = []
        column = np.zeros(len(self._index), dtype=np.int64)  # of each device, in `columns`
        for places in profiles.values():
            device = self._index.devices[places[0]]
            spec, path = device.spec, ("devices", device.pool)
            compute, memory = _factors(spec)
            ticks = np.zeros(len(rows), dtype=np.int64)
            exact = np.zeros(len(rows))
            for known, mask in of_format.items():
                used = used_format(spec.speed or {}, known)
                if spec.speed is None or used is None:
                    self._no_speed(known, rows[mask & (flops > 0)], places, work)
                else:
                    rate = scales.speed(scaled(spec.speed[used], compute), (*path, "speed", used))
                    part: Bool | slice = mask if len(of_format) > 1 else slice(None)
                    ticks[part] = self._quotient(flops[part], rate, path)
                    exact[part] = flops[part] * (rate[0] / rate[1])
            moving = np.zeros(1, dtype=np.int64)
            if spec.memory_bandwidth is not None:
                rate = scales.bandwidth(scaled(spec.memory_bandwidth, memory), (*path, "memory_bandwidth"))
                moving = self._quotient(traffic, rate, path)
                exact = np.maximum(exact, traffic * (rate[0] / rate[1]))
            else:
                lacking = rows[(flops == 0) & (traffic > 0)]
                self._no_rate(lacking, places, work, "has no memory_bandwidth", "stated by bytes only,", "state it")
            if min(compute, memory) < 1:
                by_compute = (compute < 1) & (ticks > 0) & (ticks >= moving)
                by_memory = (memory < 1) & (moving > 0) & (moving >= ticks)
                if (by_compute | by_memory).any():
                    self._scaled.append((spec, places, rows[by_compute | by_memory]))
            ticks = np.maximum(ticks, moving)
            if spec.overhead is not None:
                ticks = ticks + scales.ticks(spec.overhead, (*path, "overhead"), counts=False)
                exact = exact + float(min(scales.exact_ticks(spec.overhead), LARGEST))
            column[places] = len(columns)
            columns.append(ticks)
            able = np.True_ if anywhere else self.feasible[np.ix_(rows, np.array(places))].any(axis=1)
            self._count_rounding(work, exact, ticks, able)
        for begin in range(0, len(rows), ROWS):
            block = slice(begin, begin + ROWS)
            self.duration[rows[block]] = np.take(np.stack([ticks[block] for ticks in columns], axis=1), column, axis=1)

    def _count_rounding(
        self, work: list[tuple[int, str, TaskSpec]], exact: NDArray[np.float64], ticks: Int, runs: Bool | np.bool_
    ) -> None:
        """Report the most rounded of these tasks to the scales; `runs` is which of them may run on the device."""
        change = ticks - exact
        stated = runs & (exact > 0) & (np.abs(change) > 1e-9 * exact)  # beyond rounding errors of floats
        if stated.any():
            most = int(np.divide(change, exact, out=np.zeros(len(exact)), where=stated).argmax())
            _, name, task = work[most]
            path = ("tasks", name, "bytes" if task.flops is None else "flops")
            self._scales.count_rounding(float(exact[most]), int(ticks[most]), path)

    def _quotient(self, amounts: Int, ratio: tuple[int, int], path: Path) -> Int:
        """Return ticks for amounts of work or traffic, rounded up."""
        num, den = ratio
        if float(amounts.max(initial=0)) * num / den > LARGEST:
            if not self._gaps.scales:
                self._issues.add("is so slow that durations are out of range for this resolution", path)
            fits = amounts * (num / den) <= LARGEST
            return np.where(fits, ratio_ceil(np.where(fits, amounts, 0), num, den), LARGEST + 1)
        return np.asarray(ratio_ceil(amounts, num, den))

    def _no_speed(
        self, precision: NumberFormat, rows: Int, places: list[int], work: list[tuple[int, str, TaskSpec]]
    ) -> None:
        """Report devices that may run a task but state no speed for its number format."""
        if self._index.devices[places[0]].spec.speed is None:
            self._no_rate(rows, places, work, "has no speed", "stated by flops,", "state it")
            return
        wider = WIDER[precision]
        formats = f"{precision} or a wider format ({', '.join(wider)})" if wider else precision
        remedy = "state one, change the task's precision"
        self._no_rate(rows, places, work, f"has no speed for {formats}", f"with flops in {precision},", remedy)

    def _no_rate(
        self, rows: Int, places: list[int], work: list[tuple[int, str, TaskSpec]], lack: str, given: str, remedy: str
    ) -> None:
        """Report devices that may run a task but state no rate for its work."""
        for d in places if len(rows) else ():
            device = self._index.devices[d]
            needing = rows[self.feasible[rows, d]]
            self.feasible[needing, d] = False
            if len(needing) and device.pool not in self._doubtful and (device.pool, lack) not in self._reported:
                self._reported.add((device.pool, lack))
                task = next(name for row, name, _ in work if row == needing[0])
                self._issues.add(
                    f"{lack}, and task {shown(task)}, {given} may run on it; {remedy}, or restrict the task's devices",
                    ("devices", device.pool),
                )


def used_format(speeds: Collection[NumberFormat], precision: NumberFormat) -> NumberFormat | None:
    """Return the format whose speed applies to a number format: itself or the next wider one; None without one."""
    return next((known for known in (precision, *WIDER[precision]) if known in speeds), None)


def _factors(device: DeviceSpec) -> tuple[Fraction, Fraction]:
    """Return the factors of the speed and of the memory bandwidth of a device with all figures."""
    stated = device.efficiency or EfficiencySpec()
    return stated.compute or Fraction(1), stated.memory or Fraction(1)
