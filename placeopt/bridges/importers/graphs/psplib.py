"""Import projects of PSPLIB: jobs that use limited resources, in PSPLIB's format and in Patterson's.

Rainer Kolisch, Arno Sprecher: PSPLIB - A project scheduling problem library, European Journal of Operational Research
96(1), 1997, doi:10.1016/S0377-2217(96)00170-1. James H. Patterson: A comparison of exact approaches for solving the
multiple constrained resource, project scheduling problem, Management Science 30(7), 1984, doi:10.1287/mnsc.30.7.854.

- PSPLIB, `.sm` (one mode) and `.mm` (several modes): sections PRECEDENCE RELATIONS with the successors of each job,
  REQUESTS/DURATIONS with a line for each mode, and RESOURCEAVAILABILITIES. Resources R are renewable, and resources N
  are not: they limit the project as a whole.
- Patterson, `.rcp`: the numbers of jobs and of resources, the capacities, and for each job its duration, the amounts
  of each resource, the number of successors, and their numbers. A job begins on a new line.

Jobs become tasks of one parallel device, which only the resources limit. A unit of time is a second and a tick. The
first and the last job are dummies: they are dropped where they take no time and use nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from placeopt.bridges.importers.graphs.number_lines import Line, NumberReader, leading_numbers, lines_of
from placeopt.bridges.importers.imported import Imported, ImportOptions, Sample
from placeopt.bridges.importers.task_graph import TICKS, Place, Task, TaskGraph, seconds_text
from placeopt.errors import DocumentError, Issue, counted
from placeopt.io.files import StrPath

NAME = "psplib"
DEVICE = "project"
"""The device of all jobs."""

_SECTIONS = ("PRECEDENCE RELATIONS", "REQUESTS/DURATIONS", "RESOURCE AVAILABILITIES")
_INFORMATION = "PROJECT INFORMATION"
_TITLES = {"".join(title.split()): title for title in (*_SECTIONS, _INFORMATION)}
"""The sections by their titles, which files write with and without spaces."""
_RESOURCE = re.compile(r"\b([RND])\s*(\d+)\b", re.ASCII)
_STATED = re.compile(r"\s*(projects|jobs)\b.*:\s*(\d{1,9})\s*", re.ASCII)
_RULE = re.compile(r"[\s*-]*")


def recognises(sample: Sample) -> bool:
    """Whether a file looks like one of these formats."""
    if sample.suffix in (".sm", ".mm", ".rcp"):
        return True
    if b"PRECEDENCE RELATIONS" in sample.start and b"REQUESTS/DURATIONS" in sample.start:
        return True
    match leading_numbers(sample.start, 3):
        case [[_, many], capacities, first]:
            return len(capacities) == many and len(first) > many + 1 and len(first) == many + 2 + first[many + 1]
    return False


def read(path: StrPath, options: ImportOptions) -> Imported:
    """Read a file in one of these formats.

    Raises a DocumentError if the file cannot be read or is not valid; it lists every issue with its line.
    """
    lines = lines_of(path)
    if not lines:
        raise DocumentError([Issue("has no numbers; expected a project", (), str(path))])
    reader = _Patterson(str(path)) if lines[0].words[0][0].isdigit() else _Psplib(str(path))
    reader.read(lines)
    reader.check()
    return reader.imported(options)


@dataclass(frozen=True, slots=True)
class _Resource:
    name: str
    renewable: bool
    capacity: int


@dataclass(frozen=True, slots=True)
class _Mode:
    time: int
    needs: list[int]
    """The amount of each resource."""

    @property
    def empty(self) -> bool:
        return not self.time and not any(self.needs)


@dataclass(slots=True)
class _Job:
    line: int
    modes: list[_Mode] = field(default_factory=list)
    successors: list[int] = field(default_factory=list)
    successors_line: int | None = None


class _Project(NumberReader):
    """The jobs of a file by number, and its resources."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self.resources: list[_Resource] = []
        self.jobs: dict[int, _Job] = {}
        self.notes: list[str] = []

    def check(self) -> None:
        """Raise a DocumentError with all issues if there are any."""
        for number, job in self.jobs.items():
            for successor in {} if self.issues else dict.fromkeys(job.successors):
                if successor not in self.jobs:
                    self.add(f"task {number}: no task has the number {successor}", job.successors_line)
                elif job.successors.count(successor) > 1:
                    self.add(f"task {number}: successor {successor} is stated twice", job.successors_line)
        super().check()

    def imported(self, options: ImportOptions) -> Imported:
        """The problem of a file without issues."""
        self._drop_dummies()
        tasks = {str(number): self._task(job) for number, job in self.jobs.items()}
        places: dict[tuple[str, str], Place] = {}
        for number, job in self.jobs.items():
            for successor in map(str, job.successors):
                tasks[successor].after[str(number)] = None
                places[str(number), successor] = job.successors_line
        network: dict[str, Any] = {"devices": {DEVICE: {"parallel": True}}}
        for key, renewable in (("resources", True), ("budgets", False)):
            capacities = {each.name: each.capacity for each in self.resources if each.renewable is renewable}
            network |= {key: capacities} if capacities else {}
        source = f"{Path(self.file).name}, a project in the format of {self.format}"
        graph = TaskGraph(options.name or Path(self.file).stem, source, tasks, edge_places=places)
        return graph.imported(network, options.resolution or TICKS[0], self.issue, self.notes)

    format = ""
    """The name of the format."""

    def _task(self, job: _Job) -> Task:
        modes = [(Fraction(mode.time), self._uses(mode)) for mode in job.modes]
        if len(modes) == 1:
            [(seconds, keys)] = modes
            return Task(seconds, job.line, keys=keys)
        stated = {f"m{k}": {"time": seconds_text(time), **uses} for k, (time, uses) in enumerate(modes, 1)}
        return Task(None, job.line, keys={"modes": stated})

    def _uses(self, mode: _Mode) -> dict[str, Any]:
        uses = {each.name: need for each, need in zip(self.resources, mode.needs, strict=True) if need}
        return {"uses": uses} if uses else {}

    def _drop_dummies(self) -> None:
        """Remove the first and the last job if they have no effect."""
        if not self.jobs:
            return
        first, last = min(self.jobs), max(self.jobs)
        targets = {successor for job in self.jobs.values() for successor in job.successors}
        ends = ([] if first in targets else [first]) + ([] if self.jobs[last].successors else [last])
        dropped = [k for k in dict.fromkeys(ends) if all(mode.empty for mode in self.jobs[k].modes)]
        for number in dropped:
            del self.jobs[number]
        for job in self.jobs.values():
            job.successors = [k for k in job.successors if k not in dropped]
        if dropped:
            names = " and ".join(map(str, dropped))
            self.notes.append(f"{counted(len(dropped), 'dummy task')} dropped: {names}")


class _Patterson(_Project):
    """A file in Patterson's format."""

    format = "Patterson"

    def read(self, lines: list[Line]) -> None:
        """Read all lines."""
        rows = iter(lines)
        head = self._record(rows, "the number of tasks and the number of resources", 2)
        if head is None:
            return
        count, many = head[1]
        if many:
            capacities = self._record(rows, f"the capacities of {counted(many, 'resource')}", many)
            if capacities is None:
                return
            self.resources = [_Resource(f"R{k}", True, amount) for k, amount in enumerate(capacities[1], 1)]
        what = "the duration of a task, its amount of each resource, the number of its successors, and their numbers"
        for number in range(1, count + 1):
            found = self._record(rows, what, many + 2, counts=True)
            if found is not None:
                line, numbers = found
                mode = _Mode(numbers[0], numbers[1 : many + 1])
                self.jobs[number] = _Job(line, [mode], numbers[many + 2 :], line)
            elif self._ended:
                self.add(f"the file has {counted(number - 1, 'task')}; expected {count}", lines[0].number)
                return
        for row in rows:
            self.add(f"expected the end of the file after {counted(count, 'task')}", row.number)
            return

    _ended = False

    def _record(
        self, rows: Iterator[Line], what: str, size: int, *, counts: bool = False
    ) -> tuple[int, list[int]] | None:
        """The next line and its `size` numbers, the last of which may count further ones; None with an issue.

        They may continue on the following lines.
        """
        first = line = next(rows, None)
        self._ended = first is None
        numbers: list[int] = []
        needed = size
        while line is not None and len(numbers) < needed:
            more = self.wholes(line)
            if more is None:
                return None
            numbers += more
            if counts and len(numbers) >= size:
                needed = size + numbers[size - 1]
            line = next(rows, None) if len(numbers) < needed else line
        if first is None:
            return None
        if len(numbers) != needed:
            self.add(f"expected {what}: {needed:,} numbers; got {len(numbers):,}", first.number)
            return None
        return first.number, numbers


class _Psplib(_Project):
    """A file in PSPLIB's format."""

    format = "PSPLIB"

    def read(self, lines: list[Line]) -> None:
        """Read all lines."""
        parts: dict[str, list[Line]] = {}
        rows: list[Line] = []
        stated: dict[str, tuple[int, int]] = {}
        for line in lines:
            section = _TITLES.get("".join(line.text.split()).rstrip(":"))
            if section is not None:
                if section in parts:
                    self.add(f"the section {section} is stated twice", line.number)
                rows = parts.setdefault(section, [])
            elif not parts and (match := _STATED.fullmatch(line.text)):
                stated[match[1]] = int(match[2]), line.number
            elif not _RULE.fullmatch(line.text):
                rows.append(line)
        if missing := [section for section in _SECTIONS if section not in parts]:
            self.add(f"expected the section {' and '.join(missing)} before the end of the file", lines[-1].number)
            return
        if "projects" in stated and stated["projects"][0] != 1:
            self.add(f"has {stated['projects'][0]} projects; expected 1", stated["projects"][1])
        if _INFORMATION in parts:
            self.notes.append("the release date, the due date and the tardiness cost of the project are dropped")
        self._read_resources(parts[_SECTIONS[2]])
        modes = self._read_successors(parts[_SECTIONS[0]][1:])
        if not self.issues:
            self._read_modes(parts[_SECTIONS[1]][1:], modes)
        jobs, line_number = stated.get("jobs", (len(self.jobs), None))
        if jobs != len(self.jobs) and not self.issues:
            self.add(f"states {counted(jobs, 'job')}, but has {len(self.jobs)}", line_number)

    def _read_resources(self, rows: list[Line]) -> None:
        if len(rows) != 2:
            what = f"the section {_SECTIONS[2]} has {counted(len(rows), 'line')}; expected names and capacities"
            self.add(what, rows[-1].number if rows else None)
            return
        names = _RESOURCE.findall(rows[0].text)
        capacities = self.wholes(rows[1])
        if any(kind == "D" for kind, _ in names):
            self.add("doubly constrained resources (D) are not supported", rows[0].number)
        elif capacities is not None and len(capacities) != len(names):
            what = f"the capacities of {counted(len(names), 'resource')}"
            self.add(f"has {counted(len(capacities), 'number')}; expected {what}", rows[1].number)
        elif capacities is not None:
            found = zip(names, capacities, strict=True)
            self.resources = [_Resource(kind + number, kind == "R", amount) for (kind, number), amount in found]

    def _read_successors(self, rows: list[Line]) -> dict[int, int]:
        """Read the successors of all tasks; returns the number of modes of each."""
        modes: dict[int, int] = {}
        for line in rows:
            numbers = self.wholes(line)
            if numbers is None:
                continue
            if len(numbers) < 3 or len(numbers) != 3 + numbers[2]:
                what = "the number of a task, of its modes and of its successors, and the successors"
                self.add(f"has {counted(len(numbers), 'number')}; expected {what}", line.number)
            elif numbers[0] in modes:
                self.add(f"task {numbers[0]} is stated twice", line.number)
            else:
                modes[numbers[0]] = numbers[1]
                self.jobs[numbers[0]] = _Job(line.number, successors=numbers[3:], successors_line=line.number)
        return modes

    def _read_modes(self, rows: list[Line], modes: dict[int, int]) -> None:
        """Read the modes of all tasks; only the first mode of a task states its number."""
        width = 2 + len(self.resources)
        number, seen = None, set[int]()
        for line in rows:
            numbers = self.wholes(line)
            if numbers is None:
                number = None
                continue
            if len(numbers) == width + 1:
                number = numbers.pop(0)
                if number not in modes or number in seen:
                    what = "has no successors stated" if number not in modes else "is stated twice"
                    self.add(f"task {number} {what}", line.number)
                    number = None
                    continue
                seen.add(number)
            elif len(numbers) != width:
                what = f"the number of a task, a mode, a duration, and {counted(len(self.resources), 'amount')}"
                self.add(f"has {counted(len(numbers), 'number')}; expected {what}", line.number)
                number = None
            if number is None:
                continue  # a mode of a task with issues
            found = self.jobs[number]
            found.modes.append(_Mode(numbers[1], numbers[2:]))
            found.line = found.line if len(found.modes) > 1 else line.number
            if numbers[0] != len(found.modes):
                self.add(f"task {number}: mode {numbers[0]} follows {len(found.modes) - 1}", line.number)
        for number, count in {} if self.issues else modes.items():
            found, has = self.jobs[number], counted(len(self.jobs[number].modes), "mode")
            if len(found.modes) != count or not count:
                self.add(f"task {number}: has {has}; line {found.successors_line} states {count}", found.line)
