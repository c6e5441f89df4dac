"""Import flexible job shops: jobs of operations that may run on several machines.

Paolo Brandimarte: Routing and scheduling in a flexible job shop by tabu search, Annals of Operations Research 41, 1993,
doi:10.1007/BF02023073. Johann Hurink, Bernd Jurisch, Monika Thole: Tabu search for the job-shop scheduling problem with
multi-purpose machines, OR Spektrum 15, 1994, doi:10.1007/BF01719451. Files `.fjs` consist of numbers between spaces:

- the numbers of jobs and of machines, perhaps followed by the average number of machines for an operation;
- for each job, on a line of its own, the number of its operations, and for each operation the number of machines that
  may run it, followed by pairs of a machine, counted from 1, and a time.

An operation comes after the previous one of its job. A unit of time is a second and a tick.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from placeopt.bridges.importers.graphs.number_lines import Line, NumberReader, leading_numbers, lines_of
from placeopt.bridges.importers.imported import Imported, ImportOptions, Sample
from placeopt.bridges.importers.task_graph import TICKS, Task, TaskGraph, decimals, seconds_text
from placeopt.errors import DocumentError, Issue, counted
from placeopt.io.files import StrPath
from placeopt.io.spec import MOST_DEVICES

NAME = "fjsp"


def recognises(sample: Sample) -> bool:
    """Whether a file looks like one of this format."""
    if sample.suffix == ".fjs":
        return True
    first, _, rest = sample.start.lstrip().partition(b"\n")
    head, rows = first.split(), leading_numbers(rest, 1)
    if rows is None or len(head) not in (2, 3) or not all(word.isdigit() for word in head[:2]):
        return False
    numbers = rows[0]
    at = 1
    for _ in range(min(numbers[0], len(numbers))):
        if at >= len(numbers) or not numbers[at]:
            return False
        at += 1 + 2 * numbers[at]
    return at == len(numbers) > 1


def read(path: StrPath, options: ImportOptions) -> Imported:
    """Read a file in this format.

    Raises a DocumentError if the file cannot be read or is not valid; it lists every issue with its line.
    """
    lines = lines_of(path)
    if not lines:
        raise DocumentError([Issue("has no numbers; expected those of jobs and machines", (), str(path))])
    reader = _Reader(str(path))
    reader.read(lines)
    reader.check()
    return reader.imported(options)


class _Reader(NumberReader):
    """Reads one file, and collects its issues."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self.machines = 0
        self.jobs: list[tuple[int, list[dict[int, Fraction]]]] = []
        """The line of each job, and the times of its operations by machine."""

    def read(self, lines: list[Line]) -> None:
        """Read all lines."""
        first, *rest = lines
        if len(first.words) not in (2, 3):
            self.add(f"has {counted(len(first.words), 'number')}; expected those of jobs and machines", first.number)
            return
        jobs, machines = (self.whole(word, first.number) for word in first.words[:2])
        if len(first.words) == 3:
            self.time(first.words[2], first.number)
        if jobs is None or machines is None:
            return
        if not 1 <= machines <= MOST_DEVICES:
            what = f"{machines} is not a number of machines; expected 1 to {MOST_DEVICES}"
            self.add(what, first.number, first.words[1][1])
            return
        self.machines = machines
        for line in rest:
            self.jobs.append((line.number, self._job(line)))
        if len(rest) != jobs:
            self.add(f"has {counted(len(rest), 'job')}; its first line states {jobs}", first.number)

    def _job(self, line: Line) -> list[dict[int, Fraction]]:
        """The operations of a job."""
        words = iter(line.words)
        operations: list[dict[int, Fraction]] = []
        try:
            count = self.whole(next(words), line.number)
            while count is not None and len(operations) < count:
                several = self.whole(next(words), line.number)
                if several is None:
                    return []
                times: dict[int, Fraction] = {}
                for _ in range(several):
                    word = next(words)
                    machine, time = self.whole(word, line.number), self.time(next(words), line.number)
                    if machine is not None and not 1 <= machine <= self.machines:
                        self.add(f"{machine} is not a machine; expected 1 to {self.machines}", line.number, word[1])
                    elif machine in times:
                        self.add(f"machine {machine} is stated twice for an operation", line.number, word[1])
                    elif machine is not None and time is not None:
                        times[machine] = time
                if not several:
                    self.add(f"operation {len(operations) + 1} has no machine", line.number)
                operations.append(times)
        except StopIteration:
            self.add(f"ends within operation {len(operations) + 1} of {count}", line.number)
        for text, column in words:
            self.add(f"expected the end of the job after its last operation, got {text}", line.number, column)
            break
        return operations

    def imported(self, options: ImportOptions) -> Imported:
        """The problem of a file without issues."""
        tasks: dict[str, Task] = {}
        for j, (line, operations) in enumerate(self.jobs, 1):
            for k, times in enumerate(operations, 1):
                stated = {f"machine{machine}": seconds_text(time) for machine, time in times.items()}
                tasks[f"job{j}-{k}"] = Task(None, line, keys={"time": stated})
                if k > 1:
                    tasks[f"job{j}-{k}"].after[f"job{j}-{k - 1}"] = None
        network = {"devices": {f"machine{d}": dict[str, str]() for d in range(1, self.machines + 1)}}
        source = f"{Path(self.file).name}, a flexible job shop"
        graph = TaskGraph(options.name or Path(self.file).stem, source, tasks)
        exponent = decimals(time for _, job in self.jobs for times in job for time in times.values())
        return graph.imported(network, options.resolution or TICKS[exponent], self.issue)
