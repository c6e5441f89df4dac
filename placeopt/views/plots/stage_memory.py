"""Draw the memory of the devices of a pipeline, which does not vary over time in its model.

A bar has three parts: what is resident, what one run holds (outputs and scratch), and the outputs of forward tasks for
other runs under way. With recomputation, the inputs of forward tasks replace their outputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from placeopt.model.memory import per_device, used_memory
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule
from placeopt.model.stage_use import teams
from placeopt.model.units import size_text
from placeopt.views.plots import palette
from placeopt.views.plots.canvas import (
    Picture,
    label_rows,
    line_legend,
    line_sample,
    new_picture,
    patch_sample,
    styled,
)
from placeopt.views.plots.pipelines import row_names, rows

_HALF = 0.36
_COLORS = (palette.HUES[0], palette.tint(palette.HUES[0]), palette.tint(palette.tint(palette.HUES[0])))
_UNITS = tuple((name, 1024**power) for power, name in reversed(list(enumerate(("B", "KiB", "MiB", "GiB", "TiB")))))
FAR = 4
"""A capacity above this multiple of the largest use is not drawn."""


@styled()
def draw_stage_memory(problem: Problem, schedule: Schedule, *, title: str = "") -> Picture:
    """Draw the memory of all devices of a pipeline."""
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
    limits = {d: int(problem.capacity[d]) for d in devices if int(problem.capacity[d]) <= FAR * largest}
    top = max([largest, *limits.values()])
    unit, size = next(each for each in _UNITS if top >= each[1])

    count = problem.n_devices - len(devices)
    notes = f"{count} more devices have no tasks" if count else ""
    notes = notes if problem.memory.any() or not problem.n_tasks else "no task states a memory requirement"
    row_height = min(0.5, max(0.17, 5.5 / max(len(devices), 1)))
    picture = new_picture(1.4 + row_height * max(len(devices), 2), title or problem.name or "pipeline", notes)
    axes = picture.subplots()
    texts = [_use_text(int(used[d]), int(problem.capacity[d])) for d in devices]
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


def _use_text(used: int, capacity: int) -> str:
    if capacity == UNLIMITED:
        return f"{size_text(used)}, no limit"
    return f"{size_text(used)} of {size_text(capacity)}" + (f" ({used / capacity:.1%})" if capacity else "")
