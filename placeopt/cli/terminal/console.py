"""Print problems, results and violations; tables and lists that all commands share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.orchestration.result import Result, device_grid, result_facts
from placeopt.verifier import Violation
from placeopt.views.facts import SHOWN, TASK_HEADERS, Grid, aligned, problem_line, task_cells, verdict_text

_ANY_WIDTH = 10**6


def new_table(*headers: str, left: int = 1, wrap: Sequence[str] = (), indent: int = 0) -> Table:
    """Return a table without borders.

    The first `left` columns and those in `wrap` are left-aligned, the others right-aligned; only those in `wrap` wrap.
    """
    table = Table(box=None, padding=(0, 2, 0, indent), header_style="bold", pad_edge=indent > 0)
    for k, header in enumerate(headers):
        wraps = header in wrap
        justify: Literal["left", "right"] = "left" if k < left or wraps else "right"
        table.add_column(header, justify=justify, no_wrap=not wraps, overflow="fold" if wraps else "ellipsis")
    return table


def spaced(console: Console, table: Table) -> Table:
    """Put two spaces between the columns of a table, or one where it is too wide."""
    table.padding = (0, 2, 0, 0)
    width = Measurement.get(console, console.options.update(max_width=_ANY_WIDTH), table).maximum
    if width > console.width:
        table.padding = (0, 1, 0, 0)
    return table


def facts_table(facts: Iterable[tuple[str, str]]) -> Table:
    """Return a table of bold labels and wrapped texts."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in facts:
        table.add_row(Text(label), Text(text))
    return table


def print_wrapped(console: Console, text: Text | str) -> None:
    """Print a text: wrapped between words on a terminal, on one line elsewhere."""
    console.print(Text(text) if isinstance(text, str) else text, soft_wrap=not console.is_terminal)


def print_problem(console: Console, problem: Problem) -> None:
    """Print the problem line: a long line is broken after commas on a terminal."""
    line = problem_line(problem)
    print_wrapped(console, folded(line, console.width) if console.is_terminal else line)


def folded(line: str, width: int) -> str:
    """Break a line after commas, so that amounts and units stay together."""
    lines = [""]
    pieces = line.split(", ")
    for place, piece in enumerate(pieces):
        text = piece + "," * (place + 1 < len(pieces))
        grown = f"{lines[-1]} {text}" if lines[-1] else text
        if lines[-1] and cell_len(grown) > width:
            lines.append(text)
        else:
            lines[-1] = grown
    return "\n".join(lines)


def print_result(console: Console, result: Result) -> None:
    """Print the outcome of a solve: termination, objective, gap, devices and verdict."""
    console.print(facts_table(result_facts(result)))
    if result.devices:
        print_grid(console, device_grid(result))
    print_verdict(console, result.feasible, result.violations)


def fitting_columns(
    console: Console, headers: Sequence[str], rows: Sequence[Sequence[str]], left: int
) -> list[list[int]]:
    """Return the columns of each part of a table: those that do not fit continue below, after the first `left` ones."""
    lines = [headers, *rows]
    widths = [max(cell_len(line[k]) for line in lines) for k in range(len(headers))]
    first = list(range(left))
    parts: list[list[int]] = []
    for k in range(left, len(widths)):
        if parts and sum(widths[c] + 1 for c in (*first, *parts[-1], k)) - 1 <= console.width:
            parts[-1].append(k)
        else:
            parts.append([k])
    return [[*first, *part] for part in parts]


def print_grid(console: Console, grid: Grid) -> None:
    """Print a table; columns that do not fit continue below, after the first ones."""
    for columns in fitting_columns(console, grid.headers, grid.rows, grid.left):
        table = new_table(*(grid.headers[k] for k in columns), left=grid.left)
        for row in grid.rows:
            table.add_row(*(Text(row[k]) for k in columns))
        console.print(spaced(console, table))


def print_tasks(console: Console, problem: Problem, schedule: Schedule) -> None:
    """Print a line per task, by start: its device, start and end."""
    text = "\n".join(aligned([TASK_HEADERS, *task_cells(problem, schedule)], left=2))
    console.print(Text(text), soft_wrap=True)


def print_verdict(console: Console, feasible: bool | None, violations: Sequence[Violation]) -> None:
    """Print what the verifier found, with the first violations."""
    verdict = Text(verdict_text(feasible, len(violations)))
    if feasible is not None:
        verdict.stylize("green" if feasible else "red", 0, verdict.plain.index(":"))
    console.print(verdict)
    for violation in violations[:SHOWN]:
        console.print(Text(f"  {violation}"))
    if len(violations) > SHOWN:
        console.print(f"  and {len(violations) - SHOWN:,} more; --json lists all of them")
