"""What a person reads in a terminal: problem lines, result tables, violations."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from rich.console import Console
from rich.table import Table
from rich.text import Text

from placeopt.errors import visible
from placeopt.ir import UNLIMITED, Metric, Problem
from placeopt.metrics import ccr
from placeopt.objective import Value
from placeopt.result import DeviceUse, Result
from placeopt.solver import Termination
from placeopt.units import size_text, time_text
from placeopt.verifier import Violation

_SHOWN = 20
_MEANING = {
    Termination.OPTIMAL: "optimal: no schedule is better",
    Termination.INFEASIBLE: "infeasible: no schedule exists",
    Termination.COMPLETED: "completed",
    Termination.TIME_LIMIT: "time limit reached",
    Termination.INTERRUPTED: "interrupted",
    Termination.FAILED: "failed",
}


def problem_line(problem: Problem) -> str:
    """A problem in a line: sizes, CCR, memory asked and there."""
    asked = int(problem.memory.sum() if problem.memory_model == "sum" else problem.resident.sum())
    capacity = [int(amount) for amount in problem.capacity if amount != UNLIMITED]
    there = size_text(sum(capacity)) if len(capacity) == problem.n_devices else "unlimited"
    ratio = ccr(problem)
    parts = [
        _count(problem.n_tasks, "task"),
        _count(problem.n_edges, "edge"),
        _count(problem.n_devices, "device"),
        f"CCR {ratio:.3g}" if ratio is not None else "CCR -",
        f"memory {size_text(asked)} of {there}",
    ]
    return f"{visible(problem.name) or 'problem'}: {', '.join(parts)}"


def print_problem(console: Console, problem: Problem) -> None:
    """The problem line: wrapped between words on a terminal, one line elsewhere."""
    console.print(Text(problem_line(problem)), soft_wrap=not console.is_terminal)


def value_text(value: Value, problem: Problem, metric: Metric | None, *, ticks: bool = True) -> str:
    """An objective value for people, in the unit of its metric; times with their ticks unless told otherwise."""
    if metric in ("makespan", "total_cost", "max_load"):
        time = time_text(float(value), problem.resolution)
        exact = f"{value:,}" if isinstance(value, int) else f"{float(value):,.6g}"
        return f"{time} ({exact} tick{'' if value == 1 else 's'})" if ticks else time
    if metric == "communication":
        return size_text(int(value))
    if metric == "energy":
        return f"{float(value) / 1e9:.6g} J"
    if metric == "memory_balance":
        return f"{float(value) / 1e4:.4g} %"
    return f"{float(value):,.10g}"


def first_metric(problem: Problem) -> Metric | None:
    """The metric of the objective's first level, None if that is a weighted one or a sum."""
    first, *others = problem.objective.levels[0]
    return first.metric if not others and first.weight == 1 else None


def print_result(console: Console, result: Result) -> None:
    """The outcome of a solve: why it stopped, the objective and its gap, the devices, the verdict."""
    problem = result.problem
    metric = first_metric(problem)
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    facts.add_column(overflow="fold")
    seconds = result.wall_time.solve or 0.0
    facts.add_row("termination", f"{_MEANING[result.termination]} ({result.solver}, {seconds:.2f} s)")
    if result.message:
        facts.add_row("", Text(result.message))
    if result.passes is not None and result.passes.names:
        from placeopt.report.passes import applied_text

        facts.add_row("passes", applied_text(result.passes))
    if result.objective is not None:
        facts.add_row("objective", f"{problem.objective} = {value_text(result.objective, problem, metric)}")
        for level, value in enumerate((result.values or ())[1:], start=1):
            facts.add_row("", f"then {value_text(value, problem, problem.objective.levels[level][0].metric)}")
    if result.bound is not None:
        facts.add_row("bound", f"{value_text(result.bound, problem, metric)}, proved by {result.bound_source}")
    if result.gap is not None:
        proved = ", the schedule is optimal" if result.gap <= 0 and len(problem.objective.levels) == 1 else ""
        facts.add_row("gap", f"{result.gap:.2%}{proved}")
    console.print(facts)
    if result.devices:
        console.print(device_table(result.devices, result.makespan or 0, problem.resolution))
    if result.feasible is None:
        console.print("no schedule")
    elif result.feasible:
        console.print("[green]feasible[/green]: the verifier found no violation")
    else:
        print_violations(console, result.violations)


def device_table(devices: Sequence[DeviceUse], makespan: int, resolution: Fraction) -> Table:
    """What a schedule asks of each device."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    for header, justify in (("device", "left"), ("type", "left"), ("tasks", "right"), ("busy", "right"),
                            ("share", "right"), ("memory", "right"), ("of capacity", "right")):  # fmt: skip
        table.add_column(header, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for use in devices:
        share = use.busy / makespan if makespan else 0.0
        fraction = "unlimited"
        if use.capacity is not None:
            part = f" ({use.memory / use.capacity:.1%})" if use.capacity else ""
            fraction = f"{size_text(use.capacity)}{part}"
        table.add_row(
            Text(visible(use.name, 40)),
            Text(visible(use.type, 20)),
            f"{use.tasks:,}",
            time_text(use.busy, resolution),
            f"{share:.1%}",
            size_text(use.memory),
            fraction,
        )
    return table


def print_violations(console: Console, violations: Sequence[Violation]) -> None:
    """Violations, the first of them in full, the rest counted."""
    console.print(f"[red]infeasible[/red]: {_count(len(violations), 'violation')}")
    for violation in violations[:_SHOWN]:
        console.print(Text(f"  {violation.rule.value}: {violation.message}"))
    if len(violations) > _SHOWN:
        console.print(f"  and {len(violations) - _SHOWN} more; --json lists them all")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
