"""Convert results and comparisons to pandas data frames; pandas is imported only when a frame is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from placeopt.errors import MissingExtraError, UsageError
from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.memory import earliest_starts
from placeopt.model.modes import homes, mode_of, team_name
from placeopt.model.objective import moved_edges
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, arrivals, durations, edge_ticks, edge_transfers
from placeopt.views.facts import task_traffic

if TYPE_CHECKING:
    import pandas as pd

    from placeopt.model.metrics import DeviceUse

Rows = Literal["tasks", "devices", "transfers"]
Unit = Literal["tick", "ns", "us", "ms", "s"]
TIMES = ("ready", "start", "end", "duration", "busy")
SECONDS = {"ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "ms": Fraction(1, 1000), "s": Fraction(1)}


def result_frame(
    problem: Problem, solver: str, schedule: Schedule | None, devices: Sequence[DeviceUse], rows: Rows, unit: Unit
) -> pd.DataFrame:
    """Return a data frame of a solver's schedule; see `Result.to_frame`."""
    pandas = _pandas()
    for what, value, known in (("rows", rows, get_args(Rows)), ("unit", unit, get_args(Unit))):
        if value not in known:
            raise UsageError(f'to_frame: unknown {what} "{value}"; expected one of {", ".join(known)}')
    scale = None if unit == "tick" else problem.resolution / SECONDS[unit]
    attrs = {"problem": problem.name, "solver": solver, "unit": unit}
    columns: dict[str, Any]
    if rows == "devices":
        columns = _devices(devices)
    else:
        nothing = np.zeros(0, dtype=np.int64)
        if schedule is None:  # the same columns without rows, so that callers need no special case
            m = problem.n_devices
            no_ticks = np.zeros((0, m), dtype=np.int64)
            problem = build_problem(task_names=(), device_names=problem.device_names, duration=no_ticks)
            schedule = Schedule(nothing, nothing)
        columns = task_columns(problem, schedule) if rows == "tasks" else _transfers(problem, schedule)
    frame: pd.DataFrame = pandas.DataFrame(columns)
    if scale is not None:
        for name in TIMES:
            if name in frame:
                frame[name] = frame[name].astype(float) * scale.numerator / scale.denominator
    frame.attrs = attrs
    return frame


def runs_frame(runs: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a data frame of runs; see `Comparison.to_frame`."""
    pandas = _pandas()
    # Column by column: in a frame of dicts, integers become floats where some are absent.
    columns = {
        name: pandas.Series([run[name] for run in runs], dtype=object)
        if name.endswith("_levels")
        else pandas.array([run[name] for run in runs])
        for name in (runs[0] if runs else ())
    }
    frame: pd.DataFrame = pandas.DataFrame(columns)
    return frame


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingExtraError("to_frame needs pandas: pip install 'placeopt[frames]'") from None
    return pandas


def task_columns(problem: Problem, schedule: Schedule) -> dict[str, Any]:
    """Return the columns of the rows "tasks" of `Result.to_frame`: lists of names, and arrays in ticks and bytes."""
    device = schedule.device
    took = durations(problem, device)
    ready = earliest_starts(problem, device).copy()
    np.maximum.at(ready, problem.edge_target, arrivals(problem, schedule))
    return {
        "task": list(problem.task_names),
        "device": [team_name(problem, d) for d in device.tolist()],
        **({"mode": [mode_of(problem, d) for d in device.tolist()]} if problem.has_modes else {}),
        "type": _names(problem.device_types, device),
        "start": schedule.start,
        "end": schedule.start + took,
        "duration": took,
        "ready": ready,
        "memory": problem.memory,
        "resident": problem.resident,
        "output": problem.output,
        "scratch": problem.scratch,
        "received": task_traffic(problem, device)[1],
    }


def _transfers(problem: Problem, schedule: Schedule) -> dict[str, Any]:
    device = schedule.device
    edge, home = moved_edges(problem, device), homes(problem)[device]
    edge = edge[home[problem.edge_source[edge]] != home[problem.edge_target[edge]]]  # not between modes of a device
    took = edge_ticks(problem, device)[edge]
    end = arrivals(problem, schedule)[edge]
    source, target = problem.edge_source[edge], problem.edge_target[edge]
    served = np.bincount(edge_transfers(problem, device) + 1, minlength=problem.n_edges + 1)[1:]
    return {
        "producer": _names(problem.task_names, source),
        "consumer": _names(problem.task_names, target),
        "sender": _names(problem.device_names, home[source]),
        "receiver": _names(problem.device_names, home[target]),
        "start": end - took,
        "end": end,
        "duration": took,
        "payload": problem.payload[edge],
        "serves": served[edge],
    }


def _devices(uses: Sequence[DeviceUse]) -> dict[str, Any]:
    import pandas as pd

    return {
        "device": [use.name for use in uses],
        "type": [use.type for use in uses],
        "tasks": np.array([use.tasks for use in uses], dtype=np.int64),
        "busy": np.array([use.busy for use in uses], dtype=np.int64),
        "memory": np.array([use.memory for use in uses], dtype=np.int64),
        "capacity": pd.array([use.capacity for use in uses], dtype="Int64"),
        "swap": np.array([use.swap for use in uses], dtype=np.int64),
    }


def _names(names: tuple[str, ...], index: Int) -> list[str]:
    return [names[i] for i in index.tolist()]
