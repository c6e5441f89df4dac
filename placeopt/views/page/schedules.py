"""Convert a schedule to page data: tasks by device and start, edges, transfers, memory, critical path."""

from __future__ import annotations

from typing import Any

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.critical_path import critical_path
from placeopt.model.memory import memory_profiles, sum_memory
from placeopt.model.metrics import device_uses
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, durations, edge_ticks, makespan
from placeopt.simulation.steady import steady_state
from placeopt.views.facts import task_traffic
from placeopt.views.page.packing import Packing
from placeopt.views.page.pipelines import pipeline_data
from placeopt.views.plots.palette import device_colors, legend, text_on

_STEPS = {"task": 0, "transfer": 1, "release": 2, "wait": 3, "swap": 4}


def schedule_data(problem: Problem, schedule: Schedule, packing: Packing) -> dict[str, Any]:
    """Return the data of the charts; long arrays go into `packing`."""
    if problem.pipeline is not None and (found := steady_state(problem, schedule)) is not None:
        return pipeline_data(problem, schedule, found, packing)
    order, rank = _tasks(problem, schedule, packing)
    packing.add("edge_source", rank[problem.edge_source])
    packing.add("edge_target", rank[problem.edge_target])
    _transfers(problem, schedule, packing)
    _memory(problem, schedule, packing)
    path = critical_path(problem, schedule)
    packing.add("critical_kind", [_STEPS[step.kind] for step in path])
    packing.add("critical_task", [int(rank[step.task]) for step in path])
    packing.add("critical_start", [step.start for step in path])
    packing.add("critical_end", [step.end for step in path])
    colors = device_colors(problem.device_types)
    counted = sum_memory(problem, schedule.device).tolist() if problem.memory_model == "sum" else None
    note = "live bytes over time; dashed: capacity, where it fits the scale"
    if counted is not None:
        note += "; dotted: total of all tasks on the device, which is compared with the capacity"
    return {
        "resolution": float(problem.resolution),
        "makespan": makespan(problem, schedule),
        "ports": schedule.transfers is not None,
        "memory_note": note,
        "names": [problem.task_names[task] for task in order.tolist()],
        "legend": [
            {"label": swatch.label, "colors": list(swatch.colors)}
            for swatch in legend(problem.device_names, problem.device_types)
        ],
        "devices": [
            {
                "name": use.name,
                "type": use.type,
                "color": colors[d],
                "text": text_on(colors[d]),
                "tasks": use.tasks,
                "busy": use.busy,
                "memory": use.memory,
                "capacity": use.capacity,
                "counted": None if counted is None else counted[d],
            }
            for d, use in enumerate(device_uses(problem, schedule))
        ],
    }


def _tasks(problem: Problem, schedule: Schedule, packing: Packing) -> tuple[Int, Int]:
    """Pack the tasks sorted by device, start and end; return the order (n,) and the rank (n,) of each task in it."""
    end = schedule.start + durations(problem, schedule.device)
    order = np.lexsort((np.arange(problem.n_tasks), end, schedule.start, schedule.device))
    rank = np.empty(problem.n_tasks, dtype=np.int64)
    rank[order] = np.arange(problem.n_tasks)
    sent, received = task_traffic(problem, schedule.device)
    for name, values in (
        ("start", schedule.start), ("end", end), ("resident", problem.resident), ("output", problem.output),
        ("scratch", problem.scratch), ("sent", sent), ("received", received),
    ):  # fmt: skip
        packing.add(name, values[order])
    packing.add("offset", np.searchsorted(schedule.device[order], np.arange(problem.n_devices + 1)).astype(np.int64))
    return order, rank


def _transfers(problem: Problem, schedule: Schedule, packing: Packing) -> None:
    """Pack the scheduled transfers by start; without port contention there are none."""
    table, none = schedule.transfers, np.empty(0, dtype=np.int64)
    edges, start = (none, none) if table is None else (table.edge, table.start)
    by_start = np.argsort(start, kind="stable")
    edges, start = edges[by_start], start[by_start]
    packing.add("transfer_from", schedule.device[problem.edge_source[edges]])
    packing.add("transfer_to", schedule.device[problem.edge_target[edges]])
    packing.add("transfer_start", start)
    packing.add("transfer_end", start + edge_ticks(problem, schedule.device)[edges])


def _memory(problem: Problem, schedule: Schedule, packing: Packing) -> None:
    """Pack the memory profiles of all devices, concatenated."""
    profiles = memory_profiles(problem, schedule)
    packing.add("memory_offset", [0, *np.cumsum([len(ticks) for ticks, _ in profiles]).tolist()])
    packing.add("memory_ticks", np.concatenate([ticks for ticks, _ in profiles] or [np.empty(0, dtype=np.int64)]))
    packing.add("memory_bytes", np.concatenate([live for _, live in profiles] or [np.empty(0, dtype=np.int64)]))
