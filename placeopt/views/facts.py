"""Problems and results in words, for a terminal, a notebook and `print` alike."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from placeopt.errors import visible
from placeopt.model.metrics import ccr
from placeopt.model.objective import Value
from placeopt.model.problem import UNLIMITED, Metric, Problem, sizes
from placeopt.model.units import size_text, time_text
from placeopt.solver import Termination

if TYPE_CHECKING:
    from placeopt.model.metrics import DeviceUse
    from placeopt.passes import Applied

SHOWN = 20
"""Violations, and devices of a notebook's table, that are shown."""

DEVICE_HEADERS = ("device", "type", "tasks", "busy", "share", "memory", "of capacity")
"""Columns of `device_cells`; the first two hold words."""

MEANING = {
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
    shown = "-" if ratio is None else f"{ratio:.3g}"
    return f"{visible(problem.name) or 'problem'}: {sizes(problem)}, CCR {shown}, memory {size_text(asked)} of {there}"


def value_text(value: Value, problem: Problem, metric: Metric | None, *, ticks: bool = True) -> str:
    """An objective value for people, in the unit of its metric; times with their ticks unless told otherwise."""
    return amount_text(value, metric, problem.resolution, ticks=ticks)


def amount_text(value: Value | float, metric: str | None, resolution: Fraction, *, ticks: bool = True) -> str:
    """An objective value for people, where a tick takes `resolution` seconds; see `value_text`."""
    if metric in ("makespan", "total_cost", "max_load", "relocation"):
        time = time_text(float(value), resolution)
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


def change_text(before: dict[str, int], after: dict[str, int]) -> str:
    """The sizes that differ: 235 -> 129 tasks, 301 -> 160 edges."""
    parts = [f"{before[key]:,} -> {after[key]:,} {key}" for key in before if before[key] != after[key]]
    return ", ".join(parts) or "the same size"


def applied_text(applied: Applied) -> str:
    """What passes did, in a line."""
    data = applied.to_dict()
    inexact = "" if applied.exact else "; the optimum may be lost"
    return f"{', '.join(applied.names)}: {change_text(data['before'], data['after'])}{inexact}"


def device_cells(use: DeviceUse, makespan: int, resolution: Fraction) -> tuple[str, ...]:
    """What a schedule asks of a device, under DEVICE_HEADERS."""
    share = use.busy / makespan if makespan else 0.0
    capacity = "unlimited"
    if use.capacity is not None:
        part = f" ({use.memory / use.capacity:.1%})" if use.capacity else ""
        capacity = f"{size_text(use.capacity)}{part}"
    return (
        visible(use.name, 40), visible(use.type, 20), f"{use.tasks:,}", time_text(use.busy, resolution),
        f"{share:.1%}", size_text(use.memory), capacity,
    )  # fmt: skip


def aligned(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Rows of cells as lines of text in columns, the first `left` of them set to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if k < left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
