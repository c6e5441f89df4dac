"""Plans as node data of Model Explorer: the device, start and duration of each node, as colours over the model.

Model Explorer (https://github.com/google-ai-edge/model-explorer, version 0.1.34) shows one value for each node at a
time. Therefore there are three files. Each is a `GraphNodeData` of its `node_data_builder` as JSON: `results` maps the
identifier of a node to its `value`, with a colour in `bgColor` or from `gradient`. A file without graph identifiers
belongs to the graph that is open. The identifiers of nodes are the names of tasks.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from placeopt.bridges.exporters.exported import Exported, ExportRequest
from placeopt.errors import counted
from placeopt.io.files import write_whole
from placeopt.model.schedule import durations
from placeopt.views.plots import palette

NAME = "model-explorer"

_GRADIENT = [{"stop": 0, "bgColor": palette.PAPER}, {"stop": 1, "bgColor": palette.HUES[4]}]
"""From white to sky, so that black text is readable on each colour."""


def export(request: ExportRequest, folder: Path) -> Exported:
    """Write a file for each value into a folder; O(n)."""
    problem, schedule = request.problem, request.schedule
    colors = palette.problem_colors(problem)
    device = schedule.device.tolist()
    microseconds = float(problem.resolution) * 1e6
    start = [round(at * microseconds, 6) for at in schedule.start.tolist()]
    duration = [round(ticks * microseconds, 6) for ticks in durations(problem, schedule.device).tolist()]

    def of_device(d: int) -> dict[str, Any]:
        return {"value": problem.device_names[d], "bgColor": colors[d], "textColor": palette.text_on(colors[d])}

    def write(file: str, name: str, results: list[dict[str, Any]], **more: Any) -> None:
        data = {"name": name, "results": dict(zip(problem.task_names, results, strict=True)), **more}
        write_whole(folder / file, json.dumps(data, indent=1, ensure_ascii=False) + "\n")

    write("device.json", "device", [of_device(d) for d in device], showExpandedSummaryOnGroupNode=True)
    write("start.json", "start (us)", [{"value": value} for value in start], gradient=_GRADIENT)
    write("duration.json", "duration (us)", [{"value": value} for value in duration], gradient=_GRADIENT)
    return Exported(f"device.json, start.json and duration.json: {counted(problem.n_tasks, 'node')}")
