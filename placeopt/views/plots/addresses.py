"""Draw the map of a memory over time: each buffer as a box over its lifetime and its bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from placeopt.model.arrays import Float, Int, by_index
from placeopt.model.buffers import live_buffers
from placeopt.model.memory import memory_profile
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, makespan
from placeopt.model.units import size_text
from placeopt.views.plots import palette
from placeopt.views.plots.canvas import (
    Clock,
    Picture,
    boxes,
    fill,
    line_legend,
    line_sample,
    new_picture,
    patch_sample,
    size_unit,
    styled,
    time_axis,
)
from placeopt.views.plots.names import short

NAMED = 60
"""Up to this number of buffers carry their names."""
PANELS = 8
"""Maximum number of devices that are drawn."""
FAR = 4
"""A capacity above this multiple of the height is not drawn."""
KINDS = (palette.HUES[1], palette.HUES[0], palette.HUES[2])
"""Colours of resident bytes, outputs and scratch."""


class Boxes(NamedTuple):
    """Buffers of one memory: lifetimes (k,) in units of the axis, and bytes (k,)."""

    names: Sequence[str]
    start: Float
    end: Float
    low: Int
    high: Int


def draw_map(axes: Axes, found: Boxes, colors: Sequence[str], limit: int | None) -> float:
    """Draw buffers and the limit of the memory; return the bytes of a unit of the axis, which it labels."""
    top = max(int(found.high.max(initial=0)), limit or 0)
    name, unit = size_unit(top)
    low, high = found.low / unit, found.high / unit
    fill(
        axes, boxes(found.start, found.end, low, high), colors, linewidths=0.4, edgecolors=palette.PAPER, alpha=0.8,
    )  # fmt: skip
    if len(found.names) <= NAMED:
        wide = (found.end - found.start) * 25 > found.end.max(initial=0) - found.start.min(initial=0)
        for k in np.flatnonzero(wide & ((high - low) * 25 > top / unit)).tolist():
            place = (found.start[k] + found.end[k]) / 2, (low[k] + high[k]) / 2
            axes.text(*place, found.names[k][:12], ha="center", va="center", fontsize=6)
    if limit is not None:
        axes.axhline(limit / unit, color=palette.LIMIT, linewidth=1.2, linestyle=(0, (5, 2)))
    axes.set_ylim(0, max(1.05 * top / unit, 1e-6))
    axes.set_ylabel(f"offset in {name}")
    return unit


@styled()
def draw_addresses(problem: Problem, schedule: Schedule, *, title: str = "") -> Picture:
    """Draw the memory of each device of a schedule with offsets; of many devices, the fullest."""
    found = live_buffers(problem, schedule)
    low = found.low(schedule)
    heights = by_index(np.maximum, found.device, low + found.size, problem.n_devices)
    fullest = np.argsort(-heights, kind="stable")
    shown = sorted(int(d) for d in fullest[:PANELS] if heights[d]) or [0]
    more = int((heights > 0).sum()) - len(shown)
    notes = f"{more} more devices are not drawn" if more > 0 else ""
    picture = new_picture(1.0 + 2.6 * len(shown), title or problem.name or "schedule", notes)
    end = makespan(problem, schedule)
    clock, limited = Clock(end, problem.resolution), False
    for axes, d in zip(picture.subplots(len(shown), 1, squeeze=False, sharex=True)[:, 0], shown, strict=True):
        mine = np.flatnonzero(found.device == d)
        part, height, capacity = found.part(mine), int(heights[d]), int(problem.capacity[d])
        names = [problem.task_names[task] for task in part.task.tolist()]
        drawn = Boxes(names, clock(part.lower), clock(part.upper), low[mine], low[mine] + part.size)
        limit = capacity if capacity <= FAR * height else None
        unit = draw_map(axes, drawn, [KINDS[kind] for kind in part.kind.tolist()], limit)
        ticks, live = memory_profile(problem, schedule, d)
        axes.step(clock(ticks), live / unit, where="post", color=palette.INK, linewidth=1.0)
        room = "no limit" if capacity == UNLIMITED else f"of {size_text(capacity)}"
        text = f"{short(problem.device_names[d], 60)}: {size_text(height)} {room}"
        axes.set_title(text, fontsize=8.5, weight="normal", pad=3)
        time_axis(axes, clock, end)
        limited |= limit is not None
    entries: list[tuple[Any, str]] = [
        (patch_sample(color, alpha=0.8), text)
        for color, text in zip(KINDS, ("resident", "output", "scratch"), strict=True)
    ]
    entries.append((line_sample(palette.INK), "live bytes"))
    entries += [(line_sample(palette.LIMIT, dashes=(5, 2)), "capacity")] * limited
    line_legend(picture, entries)
    return picture
