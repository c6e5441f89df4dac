"""What a person reads in a terminal: problem lines, result tables, violations."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from placeopt.errors import counted
from placeopt.model.metrics import DeviceUse
from placeopt.model.problem import Problem
from placeopt.solving.result import Result, result_facts
from placeopt.verifier import Violation
from placeopt.views.facts import DEVICE_HEADERS, SHOWN, device_cells, problem_line


def print_problem(console: Console, problem: Problem) -> None:
    """The problem line: on a terminal broken after commas where it is too long, one line elsewhere."""
    line = problem_line(problem)
    console.print(Text(folded(line, console.width) if console.is_terminal else line), soft_wrap=not console.is_terminal)


def folded(line: str, width: int) -> str:
    """The line broken after commas, so that no amount is parted from its unit; what has no comma is left to others."""
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
    """The outcome of a solve: why it stopped, the objective and its gap, the devices, the verdict."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    facts.add_column(overflow="fold")
    for label, text in result_facts(result):
        facts.add_row(label, Text(text))
    console.print(facts)
    if result.devices:
        console.print(device_table(result.devices, result.makespan or 0, result.problem.resolution))
    if result.feasible is None:
        console.print("no schedule")
    elif result.feasible:
        console.print("[green]feasible[/green]: the verifier found no violation")
    else:
        print_violations(console, result.violations)


def device_table(devices: Sequence[DeviceUse], makespan: int, resolution: Fraction) -> Table:
    """What a schedule asks of each device."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    for k, header in enumerate(DEVICE_HEADERS):
        table.add_column(header, justify="left" if k < 2 else "right", no_wrap=True)
    for use in devices:
        table.add_row(*map(Text, device_cells(use, makespan, resolution)))
    return table


def print_violations(console: Console, violations: Sequence[Violation]) -> None:
    """Violations, the first of them in full, the rest counted."""
    console.print(f"[red]infeasible[/red]: {counted(len(violations), 'violation')}")
    for violation in violations[:SHOWN]:
        console.print(Text(f"  {violation}"))
    if len(violations) > SHOWN:
        console.print(f"  and {len(violations) - SHOWN} more; --json lists them all")
