"""Describe problems and results as text, the same for terminal, notebook, page and `print`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from placeopt.errors import counted, visible
from placeopt.model.arrays import Int
from placeopt.model.metrics import ccr
from placeopt.model.objective import IN_TICKS, Value
from placeopt.model.problem import UNLIMITED, Metric, Problem, sizes
from placeopt.model.schedule import edge_transfers
from placeopt.model.units import size_text, time_text
from placeopt.solver import Termination

if TYPE_CHECKING:
    from placeopt.model.metrics import DeviceUse
    from placeopt.passes import Applied

SHOWN = 20
"""Maximum number of violations, and of device rows in a notebook, that are shown."""

DEVICE_HEADERS = ("device", "type", "tasks", "busy", "share", "memory", "of capacity")
"""Columns of `device_cells`; the first two hold text."""

MEANING = {
    Termination.OPTIMAL: "optimal: no schedule is better",
    Termination.INFEASIBLE: "infeasible: no schedule exists",
    Termination.COMPLETED: "completed",
    Termination.TIME_LIMIT: "time limit reached",
    Termination.INTERRUPTED: "interrupted",
    Termination.FAILED: "failed",
}


def problem_line(problem: Problem) -> str:
    """Describe a problem in one line: sizes, CCR, required and available memory."""
    required = int(problem.memory.sum() if problem.memory_model == "sum" else problem.resident.sum())
    capacity = [int(amount) for amount in problem.capacity if amount != UNLIMITED]
    available = size_text(sum(capacity)) if len(capacity) == problem.n_devices else "unlimited"
    ratio = ccr(problem)
    shown = "-" if ratio is None else f"{ratio:.3g}"
    name = visible(problem.name) or "problem"
    return f"{name}: {sizes(problem)}, CCR {shown}, memory {size_text(required)} of {available}"


def value_text(value: Value, problem: Problem, metric: Metric | None, *, ticks: bool = True) -> str:
    """Format an objective value in the unit of its metric; with `ticks`, times also show their exact ticks."""
    return amount_text(value, metric, problem.resolution, ticks=ticks)


def amount_text(value: Value | float, metric: str | None, resolution: Fraction, *, ticks: bool = True) -> str:
    """Format an objective value where a tick is `resolution` seconds; see `value_text`."""
    if metric in IN_TICKS:
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


def first_level(objective_name: str) -> str:
    """Return the first level of an objective's text: "makespan" of "makespan, then energy"."""
    return objective_name.partition(", then ")[0]


def verdict_text(feasible: bool | None, violations: int) -> str:
    """State what the verifier found; `feasible` is None without a schedule."""
    if feasible is None:
        return "no schedule"
    return (
        "feasible: the verifier found no violation" if feasible else f"infeasible: {counted(violations, 'violation')}"
    )


def task_traffic(problem: Problem, device: Int) -> tuple[Int, Int]:
    """Return the bytes (n,) that each task sends to other devices, and the bytes (n,) that it receives from them.

    A transfer that serves several consumers counts once for the producer and once for each consumer.
    """
    carrier = edge_transfers(problem, device)
    sent, received = np.zeros((2, problem.n_tasks), dtype=np.int64)
    first, moved = carrier == np.arange(problem.n_edges), carrier >= 0
    np.add.at(sent, problem.edge_source[first], problem.payload[first])
    np.add.at(received, problem.edge_target[moved], problem.payload[moved])
    return sent, received


def change_text(before: dict[str, int], after: dict[str, int]) -> str:
    """List the sizes that differ: 235 -> 129 tasks, 301 -> 160 edges."""
    parts = [f"{before[key]:,} -> {after[key]:,} {key}" for key in before if before[key] != after[key]]
    return ", ".join(parts) or "the same size"


def applied_text(applied: Applied) -> str:
    """Describe in one line what passes changed."""
    data = applied.to_dict()
    inexact = "" if applied.exact else "; the optimum may be lost"
    return f"{', '.join(applied.names)}: {change_text(data['before'], data['after'])}{inexact}"


def device_cells(use: DeviceUse, makespan: int, resolution: Fraction) -> tuple[str, ...]:
    """Format the use of a device as cells under DEVICE_HEADERS."""
    share = use.busy / makespan if makespan else 0.0
    capacity = "unlimited"
    if use.capacity is not None:
        part = f" ({use.memory / use.capacity:.1%})" if use.capacity else ""
        capacity = f"{size_text(use.capacity)}{part}"
    return (
        visible(use.name, 40), visible(use.type, 20), f"{use.tasks:,}", time_text(use.busy, resolution),
        f"{share:.1%}", size_text(use.memory), capacity,
    )  # fmt: skip


def aligned(rows: Sequence[Sequence[str]], left: int, words: Collection[int] = ()) -> list[str]:
    """Format rows as columns of text; the first `left` columns and those in `words` are left-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if k < left or k in words else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
