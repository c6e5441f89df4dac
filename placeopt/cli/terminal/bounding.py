"""Lower bounds as data and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from placeopt.bounding.quick import Bound
from placeopt.model.problem import Problem
from placeopt.solving.result import number
from placeopt.views.facts import first_metric, value_text


def bounds_data(found: Sequence[Bound]) -> list[dict[str, Any]]:
    """Bounds as plain data."""
    return [
        {
            "name": bound.name,
            "value": number(bound.value),
            "seconds": round(bound.seconds, 6),
            "explanation": bound.explanation,
        }
        for bound in found
    ]


def bounds_table(problem: Problem, found: Sequence[dict[str, Any]]) -> Table:
    """Bounds, as `bounds_data` has them, with the time each took and why they hold."""
    metric = first_metric(problem)
    table = Table(box=None, padding=(0, 2, 0, 2), header_style="bold")
    table.add_column("bound", no_wrap=True)
    table.add_column("value", justify="right")
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("why no schedule is better", overflow="fold")
    for bound in found:
        value = value_text(bound["value"], problem, metric, ticks=False)
        table.add_row(bound["name"], value, f"{bound['seconds']:.3f} s", Text(bound["explanation"]))
    return table
