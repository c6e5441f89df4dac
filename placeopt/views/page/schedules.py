"""A schedule as data of the page: tasks by device and start, edges, transfers, memory, the critical path."""

from __future__ import annotations

from typing import Any

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.critical_path import critical_path
from placeopt.model.memory import memory_profiles, sum_memory
from placeopt.model.metrics import device_uses
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, durations, edge_ticks, edge_transfers, makespan
from placeopt.views.page.packing import Packing
from placeopt.views.plots.palette import device_colors, legend, text_on

_STEPS = {"task": 0, "transfer": 1, "release": 2, "wait": 3}


def schedule_data(problem: Problem, schedule: Schedule, packing: Packing) -> dict[str, Any]:
    """What the charts draw; long arrays go into `packing`."""
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
    note = "live over time; dashed is the capacity, where it is in sight"
    if counted is not None:
        note += "; dotted, what all tasks of the device count for together"
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
    """Packs the tasks by device, start and end; returns the task of each place, and the place of each task."""
    end = schedule.start + durations(problem, schedule.device)
    order = np.lexsort((np.arange(problem.n_tasks), end, schedule.start, schedule.device))
    rank = np.empty(problem.n_tasks, dtype=np.int64)
    rank[order] = np.arange(problem.n_tasks)
    carrier = edge_transfers(problem, schedule.device)
    sent, received = np.zeros((2, problem.n_tasks), dtype=np.int64)
    first, moved = carrier == np.arange(problem.n_edges), carrier >= 0
    np.add.at(sent, problem.edge_source[first], problem.payload[first])
    np.add.at(received, problem.edge_target[moved], problem.payload[moved])
    for name, values in (
        ("start", schedule.start), ("end", end), ("resident", problem.resident), ("output", problem.output),
        ("scratch", problem.scratch), ("sent", sent), ("received", received),
    ):  # fmt: skip
        packing.add(name, values[order])
    packing.add("offset", np.searchsorted(schedule.device[order], np.arange(problem.n_devices + 1)).astype(np.int64))
    return order, rank


def _transfers(problem: Problem, schedule: Schedule, packing: Packing) -> None:
    """Packs what stands in the table of transfers, by start; nothing without port contention."""
    edges = np.empty(0, dtype=np.int64) if schedule.transfers is None else schedule.transfers.edge
    start = np.empty(0, dtype=np.int64) if schedule.transfers is None else schedule.transfers.start
    by_start = np.argsort(start, kind="stable")
    edges, start = edges[by_start], start[by_start]
    packing.add("transfer_from", schedule.device[problem.edge_source[edges]])
    packing.add("transfer_to", schedule.device[problem.edge_target[edges]])
    packing.add("transfer_start", start)
    packing.add("transfer_end", start + edge_ticks(problem, schedule.device)[edges])


def _memory(problem: Problem, schedule: Schedule, packing: Packing) -> None:
    """Packs the memory of all devices, one behind the other."""
    profiles = memory_profiles(problem, schedule)
    packing.add("memory_offset", [0, *np.cumsum([len(ticks) for ticks, _ in profiles]).tolist()])
    packing.add("memory_ticks", np.concatenate([ticks for ticks, _ in profiles] or [np.empty(0, dtype=np.int64)]))
    packing.add("memory_bytes", np.concatenate([live for _, live in profiles] or [np.empty(0, dtype=np.int64)]))
