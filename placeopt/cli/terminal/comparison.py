"""Print comparisons on a terminal, as Markdown and as CSV; show their progress."""

from __future__ import annotations

import csv
import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO
from unicodedata import category, normalize

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from placeopt.cli.terminal.console import fitting_columns, spaced
from placeopt.errors import visible
from placeopt.studies.comparison.execution import Observer
from placeopt.studies.comparison.isolation import Point
from placeopt.studies.comparison.jobs import Job
from placeopt.studies.comparison.records import Key
from placeopt.views.facts import Grid

_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$"}

LAST = ("SLR", "RAM", "dev mem")
"""Columns that are less important than the others."""


def print_comparison(console: Console, tables: Sequence[Grid]) -> None:
    """Print tables of a comparison."""
    for place, grid in enumerate(tables):
        if place:
            console.print()
        console.print(Text(grid.title, style="bold"), soft_wrap=not console.is_terminal)
        for columns in _parts(console, grid):
            table = Table(box=None, header_style="dim", pad_edge=False)
            for column in columns:
                words = grid.holds_words(column)
                table.add_column(grid.headers[column], justify="left" if words else "right", no_wrap=True)
            for row in grid.rows:
                table.add_row(*(Text(row[column]) for column in columns))
            console.print(spaced(console, table))
        for note in grid.notes:
            if console.is_terminal:
                console.print(Padding(Text(note), (0, 0, 0, 2)))
            else:
                console.print(Text(f"  {note}"), soft_wrap=True)


def _parts(console: Console, grid: Grid) -> list[list[int]]:
    """Return the columns of the parts of a table; where it is too wide, those of `LAST` continue below first."""
    parts = fitting_columns(console, grid.headers, grid.rows, grid.left)
    if len(parts) == 1:
        return parts
    order = sorted(range(len(grid.headers)), key=lambda column: grid.headers[column] in LAST)
    lines = [[line[column] for column in order] for line in (grid.headers, *grid.rows)]
    return [[order[k] for k in part] for part in fitting_columns(console, lines[0], lines[1:], grid.left)]


def write_markdown(out: TextIO, tables: Sequence[Grid]) -> None:
    """Write tables of a comparison as Markdown."""
    for place, grid in enumerate(tables):
        lines = [f"### {_escaped(grid.title)}", "", _line(map(_escaped, grid.headers))]
        lines.append(_line(["---" if grid.holds_words(c) else "---:" for c in range(len(grid.headers))]))
        lines += [_line(map(_escaped, row)) for row in grid.rows]
        if grid.notes:
            lines += ["", *(f"- {_escaped(note)}" for note in grid.notes)]
        out.write("\n" * (place > 0) + "\n".join(lines) + "\n")


def write_latex(out: TextIO, tables: Sequence[Grid]) -> None:
    """Write tables of a comparison as LaTeX for the package booktabs, with titles and notes as comments."""
    for place, grid in enumerate(tables):
        columns = "".join("l" if grid.holds_words(c) else "r" for c in range(len(grid.headers)))
        header, *rows = [f"{' & '.join(map(_tex, cells))} \\\\" for cells in (grid.headers, *grid.rows)]
        body = ["\\toprule", header, "\\midrule", *rows, "\\bottomrule"]
        lines = [f"% {grid.title}", f"\\begin{{tabular}}{{{columns}}}", *body, "\\end{tabular}"]
        lines += [f"% {note}" for note in grid.notes]
        out.write("\n" * (place > 0) + "\n".join(lines) + "\n")


def write_csv(out: TextIO, rows: Sequence[Mapping[str, object]]) -> None:
    """Write runs or the summary of a comparison; absent values are empty, and no text is a formula."""
    writer = csv.DictWriter(out, list(rows[0]) if rows else ["problem"], lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)


def _cell(value: object) -> object:
    """Return a cell; text that looks like a spreadsheet formula is prefixed by an apostrophe, as OWASP recommends.

    Spreadsheets may drop white space and invisible characters before a formula, and read variants of its first
    character, such as the full-width equals sign.
    """
    if not isinstance(value, str):
        return value
    first = next((char for char in value if not char.isspace() and category(char) not in ("Cc", "Cf")), "")
    formula = value[:1] in ("\t", "\r", "\n") or normalize("NFKC", first) in ("=", "+", "-", "@")
    # Python before 3.13 does not quote \r, which would end the line.
    return "'" * formula + value.replace("\r", "\n")


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Escape all Markdown syntax, including links, code and mathematics."""
    return re.sub(r"([\\`*_~$|\[\]])", r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;"))


def _tex(text: str) -> str:
    """Escape all characters that have a meaning in LaTeX."""
    return "".join(_TEX.get(char, f"\\{char}" if char in "&%$#_{}" else char) for char in text)


class Bars(Observer):
    """Progress bars of `placeopt.studies.comparison.matrix.compare` on a terminal; nothing elsewhere."""

    def __init__(self, console: Console) -> None:
        self.torn = False
        """Whether the last line of the ledger was incomplete."""
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
        self._known = self._total = 0
        self._running: dict[Key, tuple[TaskID, float]] = {}

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def plan(self, total: int, known: int, torn: bool) -> None:
        """Show the bar of all runs."""
        self.torn, self._known, self._total = torn, known, total
        self._all = self._progress.add_task(self._counted(known), total=total, completed=known)

    def begin(self, job: Job) -> None:
        """Show the bar of a run."""
        total = None if job.time_limit is None else job.time_limit + job.grace
        task = self._progress.add_task(_run_name(job), total=total)
        with self._lock:
            self._running[job.key] = task, time.monotonic()

    def progress(self, job: Job, point: Point) -> None:
        """Show value and bound of a run."""
        with self._lock:
            task = self._running.get(job.key)
        if task is not None:
            _, value, bound = point
            gap = f", gap {(value - bound) / value:.1%}" if value and bound is not None else ""
            best = f": best {value:,.10g}{gap}" if value is not None else ""
            self._progress.update(task[0], description=f"{_run_name(job)}{best}")

    def end(self, job: Job) -> None:
        """Remove the bar of a run."""
        with self._lock:
            task = self._running.pop(job.key, None)
        if task is not None:
            self._progress.remove_task(task[0])

    def tick(self, done: int) -> None:
        """Update all bars."""
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


def _run_name(job: Job) -> str:
    return f"{visible(job.problem, 30)}, {job.solver}, seed {job.seed}"
