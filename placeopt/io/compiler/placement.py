"""Placements in a spec: the part that it fixes, and where its tasks are now. Devices by task, or a plan file's name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.errors import DocumentError, Issue, listing
from placeopt.io.compiler.devices import DeviceIndex
from placeopt.io.compiler.issues import Gaps, Issues
from placeopt.io.document import Document, NamedFiles
from placeopt.io.plan import PlanFile
from placeopt.io.spec import Durations, TaskSpec
from placeopt.io.validation import validate
from placeopt.model.arrays import Bool, Int
from placeopt.model.units import shown

_FILE = "file"


class WrittenPlacement:
    """Tasks and their devices as a section of a spec has them; what is wrong is reported where the entry stands.

    An entry of a plan file has its place there, and counts as an issue of the line that names the file.
    """

    def __init__(self, written: dict[str, str], named: NamedFiles, issues: Issues, *section: str) -> None:
        self._issues, self._section = issues, section
        self._plan: Document | None = None
        self._entries = written
        if list(written) == [_FILE]:
            self._entries = self._read(named, written[_FILE])

    def _read(self, named: NamedFiles, name: str) -> dict[str, str]:
        """The device of each task in a plan file, as far as it is sound."""
        try:
            self._plan = named.read(name)
        except DocumentError as error:
            for issue in error.issues:
                if issue.line:
                    self._issues.keep(issue, (*self._section, _FILE))
                else:  # what is wrong with the file as a whole belongs to the line that names it
                    self._issues.add(f"{issue.file}: {issue.message}", (*self._section, _FILE))
            return {}
        checked = validate(self._plan, PlanFile)
        for issue in checked.issues:
            self._issues.keep(issue, (*self._section, _FILE))
        return {} if checked.model is None else {name: task.device for name, task in checked.model.tasks.items()}

    def devices(self, tasks: dict[str, TaskSpec], index: DeviceIndex, gaps: Gaps, *, past: bool = False) -> Int:
        """(n,) the device of each task, -1 for one without.

        In a plan of the `past` devices may be gone: tasks on those are without one.
        """
        fixed = np.full(len(tasks), -1, dtype=np.int64)
        if not self._entries:
            return fixed
        rows = {name: row for row, name in enumerate(tasks)}
        device_names = [device.name for device in index.devices]
        for name, reference in self._entries.items():
            if name == _FILE and name not in rows and self._plan is None:
                message = (
                    "no task is called file, and a plan file stands alone; expected devices by task, "
                    "or {file: plan.json}"
                )
                self._add(message, name, at_key=True)
                continue
            if name not in rows and not gaps.tasks:
                self._add(self._issues.unknown_text("task", name, list(rows)), name, at_key=True)
            found = index.find(reference, None)
            if len(found) == 1 and name in rows:
                fixed[rows[name]] = found[0]
            elif len(found) > 1:
                names = listing([device_names[d] for d in found])
                self._add(f"{shown(reference)} stands for {len(found)} devices ({names}); expected one", name)
            elif not found and not gaps.devices and not (past and self._plan is not None):
                self._add(self._issues.unknown_text("device", reference, device_names), name)
        return fixed

    def _add(self, message: str, task: str, *, at_key: bool = False) -> None:
        if self._plan is None:
            self._issues.add(message, (*self._section, task), at_key=at_key)
        else:
            path = ("tasks", task) if at_key else ("tasks", task, "device")
            self._issues.keep(self._plan.issue(message, path, at_key=at_key), (*self._section, _FILE))


class FixedPlacement(WrittenPlacement):
    """The part of the placement that a spec fixes."""

    def __init__(self, written: dict[str, str], named: NamedFiles, issues: Issues) -> None:
        super().__init__(written, named, issues, "placement")

    def place(self, task: str) -> Issue:
        """Where the entry of a task stands, in the spec or in the plan file, as an issue without a message."""
        if self._plan is None:
            return self._issues.place(("placement", task))
        return self._plan.issue("", ("tasks", task, "device"))

    def check(
        self,
        fixed: Int,
        tasks: dict[str, TaskSpec],
        operations: dict[str, Durations],
        index: DeviceIndex,
        allowed: Bool,
        feasible: Bool,
    ) -> None:
        """Report tasks that the rest of the spec keeps off the device that they are fixed on.

        `fixed` (n,) as `devices` returns it; `allowed` (n, m) as `devices`, `requires` and `pin` of the tasks have it;
        `feasible` (n, m) the same without devices for which there is no duration.
        """
        names = list(tasks)
        for row in np.flatnonzero((fixed >= 0) & ~feasible[np.arange(len(tasks)), fixed]).tolist():
            name, task, d = names[row], tasks[names[row]], int(fixed[row])
            if self._issues.touch("tasks", name):
                continue
            reasons = _objections(task, d, index)
            if allowed[row, d]:
                given = task.time if task.op is None or task.time is not None else operations[task.op]
                of = "" if task.time is not None else f" of operation {shown(task.op)}"
                reasons = [f"durations{of} ({listing(list(given or ()))})"]
            device = index.devices[d].name
            others = listing([index.devices[other].name for other in np.flatnonzero(feasible[row])])
            self._add(f"{shown(device)} contradicts the task's {_together(reasons)}; it may run on {others}", name)

    def check_groups(
        self,
        fixed: Int,
        tasks: dict[str, TaskSpec],
        labels: Int,
        separation: Sequence[tuple[int, int]],
        index: DeviceIndex,
        feasible: Bool,
    ) -> None:
        """Report tasks fixed where those that they are colocated with cannot be, or where separated ones are fixed.

        `fixed` (n,) as `devices` returns it; `labels` (n,) equal for colocated tasks; `separation` pairs of tasks;
        `feasible` (n, m) whether a device may run a task.
        """
        if not self._entries:
            return
        names = list(tasks)
        rows = {name: row for row, name in enumerate(names)}
        entries = [rows[name] for name in self._entries if name in rows and fixed[rows[name]] >= 0]
        place = {row: position for position, row in enumerate(entries)}
        told: set[int] = set()

        def report(row: int, message: str) -> None:
            """Report the first thing wrong with an entry."""
            if row not in told:
                told.add(row)
                self._add(f"{shown(index.devices[fixed[row]].name)}{message}", names[row])

        leader: dict[int, int] = {}
        for row in entries:
            other = leader.setdefault(int(labels[row]), row)
            if fixed[row] != fixed[other]:
                there = index.devices[fixed[other]].name
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


def _objections(task: TaskSpec, device: int, index: DeviceIndex) -> list[str]:
    """The keys of a task that keep it off a device, each with what it says."""
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
