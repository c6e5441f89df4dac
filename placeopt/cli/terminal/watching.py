"""A comparison as it runs: a bar over all runs, and one for each that is running."""

from __future__ import annotations

import threading
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from placeopt.errors import visible
from placeopt.studies.comparison.isolation import Point
from placeopt.studies.comparison.jobs import Job
from placeopt.studies.comparison.records import Key

COMPILING = "compiling kernels, once on this machine"
"""What is said while that happens."""


class Bars:
    """Bars on a terminal, nothing elsewhere; watches `placeopt.studies.comparison.matrix.compare`."""

    def __init__(self, console: Console) -> None:
        self.torn = False
        """Whether the ledger's last line was torn."""
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._lock = threading.Lock()
        self._all: TaskID | None = None
        self._kernels: TaskID | None = None
        self._known = self._total = 0
        self._running: dict[Key, tuple[TaskID, float]] = {}

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def plan(self, total: int, known: int, torn: bool) -> None:
        """Show the bar over all."""
        self.torn, self._known, self._total = torn, known, total
        self._all = self._progress.add_task(self._counted(known), total=total, completed=known)

    def compile(self, done: int, count: int) -> None:
        """Show a bar for the kernels, until they are all there."""
        if self._kernels is None and done < count:
            self._kernels = self._progress.add_task(COMPILING, total=count)
        if self._kernels is not None:
            self._progress.update(self._kernels, completed=done, visible=done < count)

    def begin(self, job: Job) -> None:
        """Show a bar for the run."""
        total = None if job.time_limit is None else job.time_limit + job.grace
        task = self._progress.add_task(_name(job), total=total)
        with self._lock:
            self._running[job.key] = task, time.monotonic()

    def tell(self, job: Job, point: Point) -> None:
        """Show value and bound of a run."""
        with self._lock:
            task = self._running.get(job.key)
        if task is not None:
            _, value, bound = point
            gap = f", gap {(value - bound) / value:.1%}" if value and bound is not None else ""
            best = f": best {value:,.10g}{gap}" if value is not None else ""
            self._progress.update(task[0], description=f"{_name(job)}{best}")

    def end(self, job: Job) -> None:
        """Take the run's bar away."""
        with self._lock:
            task = self._running.pop(job.key, None)
        if task is not None:
            self._progress.remove_task(task[0])

    def tick(self, done: int) -> None:
        """Move the bars."""
        with self._lock:
            running = list(self._running.values())
        for task, begun in running:
            if task in self._progress.task_ids:
                self._progress.update(task, completed=time.monotonic() - begun)
        if self._all is not None:
            count = self._known + done
            self._progress.update(self._all, completed=count, description=self._counted(count))

    def _counted(self, done: int) -> str:
        return f"{done} of {self._total} runs"


def _name(job: Job) -> str:
    return f"{visible(job.problem, 30)}, {job.solver}, seed {job.seed}"
