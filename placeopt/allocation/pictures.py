"""Draw the map of the memory over time: each buffer as a box over its lifetime and its bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from placeopt.allocation.bounds import live_sums
from placeopt.allocation.problem import Buffers
from placeopt.errors import counted
from placeopt.model.arrays import Int
from placeopt.model.units import size_text
from placeopt.views.plots import palette
from placeopt.views.plots.canvas import (
    Picture,
    boxes,
    fill,
    line_legend,
    line_sample,
    new_picture,
    patch_sample,
    size_unit,
    styled,
)

NAMED = 60
"""Up to this number of buffers carry their names."""


@styled()
def draw_memory(
    problem: Buffers, offset: Int, *, bound: int, capacity: int | None = None, title: str = "memory"
) -> Picture:
    """Draw where buffers lie over time, what is live at each time, the height and the capacity."""
    height = int((offset + problem.size).max(initial=0))
    proved = "least" if height == bound else f"at least {size_text(bound)} is needed"
    notes = f"{counted(len(problem), 'buffer')} in {size_text(height)} ({proved})"
    picture = new_picture(4.2, title, notes)
    axes = picture.subplots()
    top = max(height, capacity or 0)
    name, unit = size_unit(top)
    start, end = problem.lower.astype(np.float64), problem.upper.astype(np.float64)
    low, high = offset / unit, (offset + problem.size) / unit
    # The colour states the lifetime: short ones differ from those that stay.
    length = end - start
    level = np.searchsorted(np.sort(length), length) * 4 // max(len(problem), 1)
    colors = [palette.HUES[k] for k in (2, 4, 0, 1)]
    fill(
        axes, boxes(start, end, low, high), [colors[k] for k in level.tolist()], linewidths=0.4,
        edgecolors=palette.PAPER, alpha=0.8,
    )  # fmt: skip
    if len(problem) <= NAMED:
        wide = (end - start) * 25 > end.max(initial=0) - start.min(initial=0)
        for k in np.flatnonzero(wide & ((high - low) * 25 > top / unit)).tolist():
            place = (start[k] + end[k]) / 2, (low[k] + high[k]) / 2
            axes.text(*place, problem.names[k][:12], ha="center", va="center", fontsize=6)
    times, sums = live_sums(problem.lower, problem.upper, problem.size)
    axes.step(times, sums / unit, where="post", color=palette.INK, linewidth=1.0)
    axes.axhline(height / unit, color=palette.MUTED, linewidth=1.0)
    entries: list[tuple[Any, str]] = [
        (patch_sample(color, alpha=0.8), text)
        for color, text in zip(colors, ("shortest lifetimes", "short", "long", "longest"), strict=True)
    ]
    entries += [(line_sample(palette.INK), "live bytes"), (line_sample(palette.MUTED), "height")]
    if capacity is not None:
        axes.axhline(capacity / unit, color=palette.LIMIT, linewidth=1.2, linestyle=(0, (5, 2)))
        entries.append((line_sample(palette.LIMIT, dashes=(5, 2)), "capacity"))
    if len(problem):
        axes.set_xlim(start.min(), end.max())
    axes.set_ylim(0, max(1.05 * top / unit, 1e-6))
    axes.set_xlabel("time")
    axes.set_ylabel(f"offset in {name}")
    line_legend(picture, entries)
    return picture
