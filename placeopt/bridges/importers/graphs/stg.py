"""Import task graphs of the Standard Task Graph Set (STG).

Takao Tobita, Hironori Kasahara: A standard task graph set for fair evaluation of multiprocessor scheduling algorithms,
Journal of Scheduling 5(5), 2002, doi:10.1002/jos.116; https://www.kasahara.cs.waseda.ac.jp/schedule/ describes the
format. A file consists of numbers between spaces, and of comments from `#` to the end of a line:

- the number of tasks n without dummy tasks, perhaps followed by the number of processors;
- for each task its number, its processing time, the number of its predecessors, and their numbers. In files with
  communication costs, each predecessor is followed by the cost of its edge, often on a line of its own.

Most files have two dummy tasks more, the entry and the exit, and the prototype of the set has an exit only. Dummy tasks
take no time. They are dropped unless their edges have costs.

A unit of time is a second and a tick. A communication cost is the time of a transfer between two processors; on one
processor, it is free. Each edge has its own cost, and therefore a transfer of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from placeopt.bridges.importers.graphs.number_lines import Line, NumberReader, lines_of
from placeopt.bridges.importers.imported import Imported, ImportOptions, Sample
from placeopt.bridges.importers.task_graph import TICKS, Task, TaskGraph, costs_text, decimals, timed_network
from placeopt.errors import DocumentError, Issue, counted
from placeopt.io.files import StrPath
from placeopt.io.spec import MOST_DEVICES

NAME = "stg"
_BEGINS = re.compile(
    rb"\A(?:\s*#[^\n]*\n)*\s*\d+(?:[ \t]+\d+)?[ \t]*\r?\n(?:\s*#[^\n]*\n)*\s*\d+[ \t]+[\d.]+[ \t]+0[ \t]*\r?\n"
)
"""The first line, and the first task, which has no predecessors."""


def recognises(sample: Sample) -> bool:
    """Whether a file looks like one of this format."""
    return sample.suffix == ".stg" or _BEGINS.match(sample.start) is not None


@dataclass(slots=True)
class _Record:
    """A task: its number, time, and predecessors with costs."""

    line: int
    number: int
    time: Fraction
    predecessors: dict[int, Fraction] = field(default_factory=dict)


def read(path: StrPath, options: ImportOptions) -> Imported:
    """Read a file in this format.

    Raises a DocumentError if the file cannot be read or is not valid; it lists every issue with its line.
    """
    file = str(path)
    lines = lines_of(path, "#")
    if not lines:
        raise DocumentError([Issue("has no numbers; expected the number of tasks in the first line", (), file)])
    # A file states all costs or none: the form with fewer issues is the right one.
    plain, costly = (_Reader(file, width) for width in (1, 2))
    for reader in (plain, costly):
        reader.read(lines)
    reader = costly if len(costly.issues) < len(plain.issues) else plain
    reader.check()
    return reader.imported(options)


class _Reader(NumberReader):
    """Reads one file whose predecessors have `width` numbers each, and collects its issues."""

    def __init__(self, file: str, width: int) -> None:
        super().__init__(file)
        self._width = width
        self.records: dict[int, _Record] = {}
        self.stated = 0
        self._faulty: set[int] = set()
        """Numbers of tasks with issues, which other tasks may name."""
        self._lost = False
        """Whether the line before was not read to its end, so that this one may continue it."""
        self.processors: int | None = None

    def read(self, lines: list[Line]) -> None:
        """Read all lines."""
        first, *rest = lines
        stated = self.whole(first.words[0], first.number)
        if stated is None:
            return  # the file is probably of another format, in which every line has issues
        self.stated = stated
        if len(first.words) > 2:
            self.add(f"has {len(first.words)} numbers; expected the number of tasks", first.number)
        if len(first.words) > 1:
            self.processors = self.whole(first.words[1], first.number)
            if self.processors is not None and not 1 <= self.processors <= MOST_DEVICES:
                what = f"{self.processors} is not a number of processors; expected 1 to {MOST_DEVICES}"
                self.add(what, first.number, first.words[1][1])
        remaining = iter(rest)
        records = 0
        for line in remaining:
            records += 1
            self._record(line, remaining)
        if not self.stated <= records <= self.stated + 2:
            what = f"its first line states {self.stated}, so that {self.stated} to {self.stated + 2} are expected"
            self.add(f"the file has {counted(records, 'task')}; {what}", first.number)
        for record in self.records.values():
            for number in record.predecessors:
                if number not in self.records and number not in self._faulty:
                    self.add(f"task {record.number}: no task has the number {number}", record.line)

    def _record(self, line: Line, remaining: Iterator[Line]) -> None:
        """Read a task, which may continue on the next lines."""
        if len(line.words) < 3 and self._lost:
            return
        self._lost = True
        if len(line.words) < 3:
            what = "the number of a task, its time, and the number of its predecessors"
            self.add(f"has {counted(len(line.words), 'number')}; expected {what}", line.number)
            return
        number, count = (self.whole(line.words[k], line.number) for k in (0, 2))
        time = self.time(line.words[1], line.number)
        words = [(word, line.number) for word in line.words[3:]]
        needed = (count or 0) * self._width
        while count is not None and len(words) < needed:
            following = next(remaining, None)
            if following is None:
                break
            words += [(word, following.number) for word in following.words]
        if number is not None:
            self._faulty.add(number)
        if count is None or number is None or time is None:
            return
        if len(words) != needed:
            each = ", each with a cost" if self._width == 2 else ""
            what = f"{counted(needed, 'number')} for {counted(count, 'predecessor')}{each}; got {len(words)}"
            self.add(f"task {number}: expected {what}", line.number)
            return
        if number in self.records:
            self.add(f"task {number} is stated twice, first in line {self.records[number].line}", line.number)
            return
        self._lost = False
        record = self.records[number] = _Record(line.number, number, time)
        for k in range(0, needed, self._width):
            word, place = words[k]
            predecessor = self.whole(word, place)
            cost = self.time(*words[k + 1]) if self._width == 2 else Fraction(0)
            if predecessor is None or cost is None:
                continue
            if predecessor in record.predecessors:
                self.add(f"task {number}: predecessor {predecessor} is stated twice", place, word[1])
            record.predecessors[predecessor] = cost

    def imported(self, options: ImportOptions) -> Imported:
        """The problem of a file without issues."""
        notes = self._drop_dummies()
        costs = self._width == 2
        records = self.records.values()
        exponent = decimals([r.time for r in records] + [cost for r in records for cost in r.predecessors.values()])
        network, exponent = timed_network(options, exponent, self.processors, notes, costs=costs)
        graph = TaskGraph(
            options.name or Path(self.file).stem,
            f"{Path(self.file).name}, in the format of the Standard Task Graph Set",
            {str(record.number): self._task(record, exponent) for record in records},
            costs_text(exponent) if costs else "",
        )
        return graph.imported(network, options.resolution or TICKS[exponent], self.issue, notes)

    def _task(self, record: _Record, exponent: int) -> Task:
        after: dict[str, int | None] = {
            str(number): math.ceil(cost * 10**exponent) if self._width == 2 else None
            for number, cost in record.predecessors.items()
        }
        return Task(record.time, record.line, after)

    def _drop_dummies(self) -> list[str]:
        """Remove the entry and the exit if they have no effect."""
        if len(self.records) <= self.stated:
            return []
        entry, leave = min(self.records), max(self.records)
        successors = {number for record in self.records.values() for number in record.predecessors}
        dropped = []
        if len(self.records) == self.stated + 2 and not self.records[entry].predecessors:
            dropped.append(entry)
        if leave not in successors:
            dropped.append(leave)
        costs = [
            cost
            for record in self.records.values()
            for number, cost in record.predecessors.items()
            if record.number in dropped or number in dropped
        ]
        if any(costs) or any(self.records[number].time for number in dropped):
            return []
        for number in dropped:
            del self.records[number]
        for record in self.records.values():
            record.predecessors = {a: cost for a, cost in record.predecessors.items() if a not in dropped}
        names = " and ".join(map(str, dropped))
        return [f"{counted(len(dropped), 'dummy task')} without time dropped: {names}"] if dropped else []
