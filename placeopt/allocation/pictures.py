"""Draw where buffers lie over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from placeopt.allocation.bounds import live_sums
from placeopt.allocation.problem import Buffers
from placeopt.errors import counted
from placeopt.model.arrays import Int
from placeopt.model.units import size_text
from placeopt.views.plots import palette
from placeopt.views.plots.addresses import Boxes, draw_map
from placeopt.views.plots.canvas import Picture, line_legend, line_sample, new_picture, patch_sample, styled


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
    start, end = problem.lower.astype(np.float64), problem.upper.astype(np.float64)
    # The colour states the lifetime: short ones differ from those that stay.
    length = end - start
    level = np.searchsorted(np.sort(length), length) * 4 // max(len(problem), 1)
    colors = [palette.HUES[k] for k in (2, 4, 0, 1)]
    found = Boxes(problem.names, start, end, offset, offset + problem.size)
    unit = draw_map(axes, found, [colors[k] for k in level.tolist()], capacity)
    times, sums = live_sums(problem.lower, problem.upper, problem.size)
    axes.step(times, sums / unit, where="post", color=palette.INK, linewidth=1.0)
    axes.axhline(height / unit, color=palette.MUTED, linewidth=1.0)
    entries: list[tuple[Any, str]] = [
        (patch_sample(color, alpha=0.8), text)
        for color, text in zip(colors, ("shortest lifetimes", "short", "long", "longest"), strict=True)
    ]
    entries += [(line_sample(palette.INK), "live bytes"), (line_sample(palette.MUTED), "height")]
    if capacity is not None:
        entries.append((line_sample(palette.LIMIT, dashes=(5, 2)), "capacity"))
    if len(problem):
        axes.set_xlim(start.min(), end.max())
    axes.set_xlabel("time")
    line_legend(picture, entries)
    return picture
