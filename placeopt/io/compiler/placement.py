"""Placements in a spec, fixed and current: devices by task, or the name of a plan file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.errors import DocumentError, Issue, listing
from placeopt.io.compiler.durations import by_device
from placeopt.io.compiler.issues import Gaps, Issues
from placeopt.io.compiler.network import DeviceIndex, LinkArrays
from placeopt.io.compiler.tasks import Parts, Tasks
from placeopt.io.document import Document, NamedFiles
from placeopt.io.plan import PlanFile
from placeopt.io.spec import CurrentSpec, Durations, MigrationSpec, TaskSpec
from placeopt.io.syntax import Path as Place
from placeopt.io.validation import validate
from placeopt.model.arrays import Bool, Int
from placeopt.model.objective import relocation_ticks
from placeopt.model.ranges import LARGEST
from placeopt.model.units import shown

_FILE = "file"


class StatedPlacement:
    """A section of a spec that assigns devices to tasks; issues are reported at the position of the entry.

    Issues in a plan file have their position there, and also mark the line that names the file.
    """

    def __init__(self, written: dict[str, str], named: NamedFiles, issues: Issues, *section: str) -> None:
        self._issues, self._section = issues, section
        self._plan: Document | None = None
        self._entries = written
        if list(written) == [_FILE]:
            self._entries = self._read(named, written[_FILE])

    def _read(self, named: NamedFiles, name: str) -> dict[str, str]:
        """Return the device of each task in the sound part of a plan file."""
        try:
            self._plan = named.read(name)
        except DocumentError as error:
            for issue in error.issues:
                if issue.line:
                    self._issues.keep(issue, (*self._section, _FILE))
                else:  # issues with the whole file are reported at the line that names it
                    self._issues.add(f"{issue.file}: {issue.message}", (*self._section, _FILE))
            return {}
        checked = validate(self._plan, PlanFile)
        for issue in checked.issues:
            self._issues.keep(issue, (*self._section, _FILE))
        return {} if checked.model is None else {name: task.device for name, task in checked.model.tasks.items()}

    def devices(self, tasks: Tasks, index: DeviceIndex, gaps: Gaps, *, past: bool = False) -> Int:
        """Return (n,) the device of each task, -1 if it has none.

        With `past`, a plan file may name devices that are gone; their tasks have none.
        """
        fixed = np.full(len(tasks), -1, dtype=np.int64)
        if not self._entries:
            return fixed
        rows = {name: row for row, name in enumerate(tasks)}
        task_names, device_names = list(tasks), [device.name for device in index.devices]
        for name, reference in self._entries.items():
            if name == _FILE and name not in rows and self._plan is None:
                message = (
                    "there is no task named file, and a plan file must be the only entry; expected devices by task, "
                    "or {file: plan.json}"
                )
                self._add(message, name, at_key=True)
                continue
            if name not in rows and not gaps.tasks:
                self._add(self._issues.unknown_text("task", name, task_names), name, at_key=True)
            found = index.find(reference, None)
            if len(found) == 1 and name in rows:
                fixed[rows[name]] = found[0]
            elif len(found) > 1:
                names = listing([device_names[d] for d in found])
                self._add(f"{shown(reference)} refers to {len(found)} devices ({names}); expected one", name)
            elif not found and not gaps.devices and not (past and self._plan is not None):
                self._add(self._issues.unknown_text("device", reference, device_names), name)
        return fixed

    def _add(self, message: str, task: str, *, at_key: bool = False) -> None:
        if self._plan is None:
            self._issues.add(message, (*self._section, task), at_key=at_key)
        else:
            path = ("tasks", task) if at_key else ("tasks", task, "device")
            self._issues.keep(self._plan.issue(message, path, at_key=at_key), (*self._section, _FILE))


class FixedPlacement(StatedPlacement):
    """The fixed part of the placement in a spec."""

    def place(self, task: str) -> Issue:
        """Return the position of a task's entry in the spec or the plan file, as an issue without a message."""
        if self._plan is None:
            return self._issues.place(("placement", task))
        return self._plan.issue("", ("tasks", task, "device"))

    def check(self, parts: Parts, fixed: Int, operations: dict[str, Durations], allowed: Bool, feasible: Bool) -> None:
        """Report tasks fixed on a device that the rest of the spec forbids.

        `fixed` (n,) is the result of `devices`; `allowed` (n, m) states what the tasks' `devices`, `requires` and `pin`
        allow; `feasible` (n, m) also excludes devices without a duration.
        """
        tasks, index = parts.tasks, parts.index
        names = list(tasks)
        for row in np.flatnonzero((fixed >= 0) & ~feasible[np.arange(len(tasks)), fixed]).tolist():
            name, task, d = names[row], tasks[names[row]], int(fixed[row])
            if self._issues.touch("tasks", name):
                continue
            reasons = _objections(task, d, index) or ["modes"]
            if allowed[row, d]:
                given = task.time if task.op is None or task.time is not None else operations[task.op]
                of = "" if task.time is not None else f" of operation {shown(task.op)}"
                reasons = [f"durations{of} ({listing(list(given or ()))})"]
            device = index.devices[d].name
            others = listing([index.devices[other].name for other in np.flatnonzero(feasible[row])])
            self._add(f"{shown(device)} contradicts the task's {_together(reasons)}; it may run on {others}", name)

    def check_groups(
        self, parts: Parts, fixed: Int, labels: Int, separation: Sequence[tuple[int, int]], feasible: Bool
    ) -> None:
        """Report fixed tasks that violate colocation or separation.

        `fixed` (n,) is the result of `devices`; `labels` (n,) are equal for colocated tasks; `separation` are pairs of
        tasks; `feasible` (n, m) is whether a device may run a task.
        """
        if not self._entries:
            return
        names, devices = list(parts.tasks), parts.index.devices
        rows = {name: row for row, name in enumerate(names)}
        entries = [rows[name] for name in self._entries if name in rows and fixed[rows[name]] >= 0]
        place = {row: position for position, row in enumerate(entries)}
        reported: set[int] = set()

        def report(row: int, message: str) -> None:
            """Report the first issue of an entry."""
            if row not in reported:
                reported.add(row)
                self._add(f"{shown(devices[fixed[row]].name)}{message}", names[row])

        leader: dict[int, int] = {}
        for row in entries:
            other = leader.setdefault(int(labels[row]), row)
            if fixed[row] != fixed[other]:
                there = devices[fixed[other]].name
                report(row, f", while task {shown(names[other])}, with which it is colocated, is fixed on {there}")
        for mate, label in enumerate(labels.tolist() if leader else ()):
            row = leader.get(label, -1)
            free = row >= 0 and mate not in place and not self._issues.touch("tasks", names[mate])
            if free and not feasible[mate, fixed[row]]:
                report(row, f", where task {shown(names[mate])}, with which it is colocated, cannot run")
        for pair in separation if leader else ():
            if pair[0] in place and pair[1] in place and labels[pair[0]] != labels[pair[1]]:
                other, row = sorted(pair, key=place.__getitem__)
                if fixed[row] == fixed[other]:
                    report(row, f", where task {shown(names[other])} is fixed, from which it is separated")


class Current:
    """The section `current` of a spec, and the `migration` of its tasks, which is ignored without it."""

    def __init__(self, section: CurrentSpec | None, named: NamedFiles, issues: Issues) -> None:
        self._stated = section is not None
        self._section = section or CurrentSpec()
        self.runs = self._section.runs_before_next_change
        self._placement = StatedPlacement(self._section.placement, named, issues, "current", "placement")
        self._issues = issues
        self.moved: Int = np.zeros(0, dtype=np.int64)
        """(n,) bytes that move with each task; set by `relocation`."""

    def relocation(self, parts: Parts, resident: Int, links: LinkArrays) -> Int | None:
        """Return (n, m) ticks of relocation, None without a section; `resident` (n,) are bytes of each task."""
        tasks, index, scales, gaps = parts.tasks, parts.index, parts.scales, parts.gaps
        current = self._placement.devices(tasks, index, gaps, past=True)
        moved = self.moved = resident.copy()
        migrations = [(row, name, task) for row, name, task in tasks.stating("migration") if task.migration is not None]
        if not self._stated and not migrations:
            return None
        startup = np.zeros((len(tasks), len(index)), dtype=np.int64)
        # The section's `bytes` and `startup` are defaults of the tasks.
        stated: list[tuple[slice, MigrationSpec | None, Place]] = [
            (slice(None), self._section.migration, ("current", "migration"))
        ]
        stated += [
            (slice(row, row + 1), task.migration, ("tasks", name, "migration")) for row, name, task in migrations
        ]
        for rows, migration, path in stated:
            if migration is not None and migration.bytes is not None:
                moved[rows] = scales.size(migration.bytes, (*path, "bytes"))
            if migration is not None and migration.startup is not None:
                startup[rows], _ = by_device(migration.startup, index, scales, (*path, "startup"), lenient=True)
        if not self._stated or gaps.scales:
            return None
        slowest = float((links.byte_ticks_num / links.byte_ticks_den).max(initial=0))
        moving = float(moved.astype(np.float64).sum()) * slowest + len(tasks) * float(1 + links.latency.max(initial=0))
        total = moving + float(startup.max(axis=1, initial=0).astype(np.float64).sum())
        if total > LARGEST:
            self._issues.add(
                f"the relocation of all tasks adds up to {total:.2g} ticks, more than 2^60; use a coarser resolution",
                ("current",),
            )
            return None
        return relocation_ticks(current, moved, startup, links.latency, links.byte_ticks_num, links.byte_ticks_den)


def _objections(task: TaskSpec, device: int, index: DeviceIndex) -> list[str]:
    """Return the keys of a task that forbid a device, with their values."""
    keys = {"devices": task.devices, "pin": None if task.pin is None else [task.pin]}
    found = [
        f"{key} ({listing(names)})"
        for key, names in keys.items()
        if names is not None and not any(device in index.find(name, None) for name in names)
    ]
    missing = [feature for feature in task.requires if feature not in index.devices[device].spec.features]
    return [*found, f"requires ({listing(missing)})"] if missing else found


def _together(reasons: list[str]) -> str:
    *others, last = reasons
    return f"{', '.join(others)} and {last}" if others else last
