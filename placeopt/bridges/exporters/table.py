"""Plans as CSV: a row for each task, with the columns of `Result.to_frame`."""

from __future__ import annotations

import csv
import io
from typing import Any

from placeopt.bridges.exporters.exported import Exported, ExportRequest
from placeopt.views.frames import TIMES, task_columns

NAME = "csv"


def export(request: ExportRequest) -> Exported:
    """Return a plan as CSV, with times in seconds."""
    tick = request.problem.resolution
    columns: dict[str, Any] = task_columns(request.problem, request.schedule)
    for name in TIMES:
        if name in columns:
            columns[name] = columns[name].astype(float) * tick.numerator / tick.denominator
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    lists = [each if isinstance(each, list) else each.tolist() for each in columns.values()]
    writer.writerows(zip(*lists, strict=True))
    return Exported(text.getvalue())
