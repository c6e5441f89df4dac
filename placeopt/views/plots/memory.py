"""Draw the memory of each device over time against its capacity (memory models: see `placeopt.model.memory`).

Under `peak` an area shows the live bytes. Under `sum` all tasks of a device count from start to end: a pale area shows
this total, and a dark one inside it the live bytes. All rows have the same scale: shares of the capacity if some device
is short of memory, else bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from placeopt.model.arrays import Float, Int
from placeopt.model.memory import device_memory, memory_profile, per_device, used_memory
from placeopt.model.modes import memory_capacity, own_devices
from placeopt.model.problem import Problem
from placeopt.model.resource_use import occupied_devices
from placeopt.model.schedule import Schedule, makespan
from placeopt.model.stage_use import idle_devices, teams
from placeopt.model.units import size_text
from placeopt.views.plots import palette
from placeopt.views.plots.canvas import (
    Clock,
    Picture,
    fill,
    label_rows,
    line_legend,
    line_sample,
    new_picture,
    patch_sample,
    size_unit,
    styled,
    time_axis,
)
from placeopt.views.plots.gantt import SLICES, shown_devices
from placeopt.views.plots.names import short
from placeopt.views.plots.pipelines import row_names, rows
from placeopt.views.plots.timelines import highest, slices, step_area

SCARCE = 0.2
"""Minimum used share of a capacity for which rows show shares of capacities."""
PANELS = 8
"""Maximum number of devices that each have an axis."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The memory of one device over time, in bytes.

    `live` (k,) holds the maximum in each time slice. `charged` is what the memory model compares with `capacity`, which
    is None if unlimited.
    """

    device: int
    live: Int
    charged: int
    capacity: int | None

    @property
    def share(self) -> float | None:
        """Charged share of the capacity; None if that is unlimited or zero."""
        return self.charged / self.capacity if self.capacity else None


def usages(problem: Problem, schedule: Schedule, devices: list[int], edges: Float) -> list[Usage]:
    """Return the memory of some devices in the time slices between `edges` (k + 1,)."""
    used, found = used_memory(problem, schedule), []
    charged = [device_memory(problem, schedule, used, d) for d in devices]
    for d, bytes_ in zip(devices, charged, strict=True):
        live = highest(*memory_profile(problem, schedule, d), edges)
        found.append(Usage(d, live, bytes_, memory_capacity(problem, d)))
    return found


@styled()
def draw_memory(problem: Problem, schedule: Schedule, *, title: str = "") -> Picture:
    """Draw the memory of all devices."""
    if problem.pipeline is not None:
        return draw_stage_memory(problem, schedule, title=title)
    end, devices = makespan(problem, schedule), shown_devices(problem, occupied_devices(problem, schedule)[1])
    clock, edges = Clock(end, problem.resolution), slices(end, SLICES)
    found = usages(problem, schedule, devices, edges)
    scarce = any((use.share or 0) >= SCARCE or use.charged > (use.capacity or use.charged) for use in found)
    # If a device is short of memory, rows show shares of capacities; a device without a capacity shows its own peak.
    full = [(use.capacity or max(use.charged, 1)) if scarce else max(*(u.charged for u in found), 1) for use in found]
    top = max([use.charged / whole for use, whole in zip(found, full, strict=True)] + [1.0])

    idle = len(own_devices(problem)) - len(devices)
    model = "the total of all tasks counts" if problem.memory_model == "sum" else "live bytes count"
    scale = "each row up to its capacity" if scarce else f"all rows up to {size_text(full[0])}" if full else ""
    notes = [f"memory model {problem.memory_model}: {model}", f"scale: {scale}" if len(devices) > PANELS else ""]
    notes.append(f"{idle} more devices have no tasks" if idle else "")
    some = problem.memory.any() or any(use.charged for use in found)
    notes.append("" if some or not problem.n_tasks else "no task states a memory requirement")
    few = len(devices) <= PANELS
    row_height = 0.85 if few else min(0.42, max(0.17, 5.5 / len(devices)))
    picture = new_picture(
        1.3 + row_height * max(len(devices), 1), title or problem.name or "schedule", " · ".join(filter(None, notes))
    )
    panels: list[Axes] = list(picture.subplots(max(len(devices), 1) if few else 1, 1, sharex=True, squeeze=False)[:, 0])
    colors = palette.problem_colors(problem)
    for row, (use, whole) in enumerate(zip(found, full, strict=True)):
        axes = panels[row] if few else panels[0]
        unit = 1.0 if few else 0.78 / top  # height of a full row; in one panel, rows are 1 apart and grow upwards
        floor = 0.0 if few else row + 0.39
        _draw_row(axes, use, whole, clock(edges), colors[use.device], floor, unit if few else -unit, problem)
        if few:
            _label_panel(axes, problem, use, whole, top, scarce)
    if not few:
        names = [problem.device_names[use.device] for use in found]
        label_rows(panels[0], names, [_use_text(use.charged, use.capacity) for use in found])
    time_axis(panels[-1], clock, end)
    for axes in panels[:-1]:
        axes.grid(axis="x")
    if not problem.n_tasks:
        panels[0].text(0.5, 0.5, "no tasks", transform=panels[0].transAxes, ha="center", color=palette.MUTED)
    line_legend(picture, _entries(problem, found, scarce))
    return picture


def _entries(problem: Problem, found: list[Usage], scarce: bool) -> list[tuple[Any, str]]:
    entries: list[tuple[Any, str]] = [(patch_sample(palette.MUTED), "live")]
    if problem.memory_model == "sum":
        entries.append((patch_sample(palette.MUTED, alpha=0.35), "total of all tasks"))
    if scarce and any(use.capacity is not None for use in found):
        entries.append((line_sample(palette.LIMIT, width=1.2, dashes=(4, 2)), "capacity"))
    if any(use.capacity is not None and use.charged > use.capacity for use in found):
        entries.append((patch_sample(palette.PAPER, hatch="/////"), "above the capacity"))
    return entries


def _draw_row(
    axes: Axes, use: Usage, whole: int, edges: Float, color: str, floor: float, unit: float, problem: Problem
) -> None:
    """Draw one device above `floor`; `whole` bytes are `unit` high."""
    live = floor + unit * use.live / whole
    charge = floor + unit * use.charged / whole
    if problem.memory_model == "sum":
        fill(axes, [step_area(edges, np.full(len(live), charge), floor)], [color], alpha=0.35, zorder=1.5)
    fill(axes, [step_area(edges, live, floor)], [color], zorder=2)
    axes.axhline(floor, color=palette.GRID, linewidth=0.6, zorder=1)
    if use.capacity is None:
        return
    limit = floor + unit * use.capacity / whole
    if use.capacity <= whole:
        axes.axhline(limit, color=palette.LIMIT, linewidth=1.2, linestyle=(0, (4, 2)), zorder=4)
    if use.charged > use.capacity:
        over = np.full(len(live), charge) if problem.memory_model == "sum" else live
        beyond = np.maximum(over, limit) if unit > 0 else np.minimum(over, limit)
        fill(axes, [step_area(edges, beyond, limit)], ["none"], edgecolors=palette.LIMIT, hatch="/////", zorder=3)


def _label_panel(axes: Axes, problem: Problem, use: Usage, whole: int, top: float, scarce: bool) -> None:
    """Label a device with its own axis: shares or bytes on the left, name and numbers above."""
    axes.set_ylim(0.0, top * 1.08)
    if scarce and use.capacity:
        axes.set_yticks([0.0, 0.5, 1.0], ["0%", "50%", "100%"])
    else:
        axes.set_yticks([0.0, 1.0], ["0", size_text(whole)])
    name = short(problem.device_names[use.device], 60)
    axes.set_title(f"{name}: {_use_text(use.charged, use.capacity)}", fontsize=8.5, weight="normal", pad=3)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(axis="x", length=0)


_HALF = 0.36
_COLORS = (palette.HUES[0], palette.tint(palette.HUES[0]), palette.tint(palette.tint(palette.HUES[0])))
FAR = 4
"""A capacity above this multiple of the largest use is not drawn."""


@styled()
def draw_stage_memory(problem: Problem, schedule: Schedule, *, title: str = "") -> Picture:
    """Draw the memory of all devices of a pipeline, which does not vary over time in its model.

    A bar has three parts: what is resident, what one run holds (outputs and scratch), and the outputs of forward tasks
    for other runs under way. With recomputation, the inputs of forward tasks replace their outputs.
    """
    devices = rows(problem, schedule)
    leader = np.arange(problem.n_devices)
    for team in teams(problem, schedule):
        leader[team] = team[0]
    used = used_memory(problem, schedule)[leader]
    held = per_device(problem, schedule.device, problem.memory)[leader]
    fixed = per_device(problem, schedule.device, problem.resident)[leader]
    fixed, held = np.minimum(fixed, used), np.minimum(held, used)
    parts = (fixed, held - fixed, used - held)
    largest = max(int(used.max(initial=0)), 1)
    capacity = {d: memory_capacity(problem, d) for d in devices}
    limits = {d: size for d, size in capacity.items() if size is not None and size <= FAR * largest}
    top = max([largest, *limits.values()])
    unit, size = size_unit(top)

    count = len(set(idle_devices(problem, schedule)) - set(devices))
    notes = f"{count} more devices have no tasks" if count else ""
    notes = (
        notes if used.any() or problem.memory.any() or not problem.n_tasks else "no task states a memory requirement"
    )
    row_height = min(0.5, max(0.17, 5.5 / max(len(devices), 1)))
    picture = new_picture(1.4 + row_height * max(len(devices), 2), title or problem.name or "pipeline", notes)
    axes = picture.subplots()
    texts = [_use_text(int(used[d]), capacity[d]) for d in devices]
    label_rows(axes, row_names(problem, schedule, devices), texts)
    begin = np.zeros(len(devices))
    places = list(range(len(devices)))
    for amounts, color in zip(parts, _COLORS, strict=True):
        wide = amounts[devices] / size
        axes.barh(places, wide, left=begin, height=2 * _HALF, color=color, zorder=2)
        begin = begin + wide
    marked = [(place, limits[d] / size) for place, d in enumerate(devices) if d in limits]
    style: dict[str, Any] = {"color": palette.LIMIT, "linewidth": 1.4, "linestyle": (0, (3, 1.5)), "zorder": 4}
    for place, limit in marked:
        axes.vlines(limit, place - _HALF - 0.08, place + _HALF + 0.08, **style)
    axes.set_xlim(0.0, 1.04 * top / size)
    axes.set_xlabel(f"memory ({unit})")
    axes.grid(axis="x")
    words = ("resident", "outputs and scratch of one run", "kept for other runs")
    entries: list[tuple[Any, str]] = [
        (patch_sample(color), word) for amounts, color, word in zip(parts, _COLORS, words, strict=True) if amounts.any()
    ]
    if limits:
        entries.append((line_sample(palette.LIMIT, width=1.4, dashes=(3, 1.5)), "capacity"))
    line_legend(picture, entries)
    return picture


def _use_text(used: int, capacity: int | None) -> str:
    """Describe used memory and capacity of a device."""
    if capacity is None:
        return f"{size_text(used)}, no limit"
    return f"{size_text(used)} of {size_text(capacity)}" + (f" ({used / capacity:.1%})" if capacity else "")
