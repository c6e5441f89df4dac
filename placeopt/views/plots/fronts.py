"""Draw a Pareto front: its points, the line of steps through them, and the region without schedules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from placeopt.errors import UsageError
from placeopt.views.plots import palette
from placeopt.views.plots.canvas import Picture, line_legend, line_sample, new_picture, patch_sample, styled
from placeopt.views.plots.convergence import value_unit
from placeopt.views.plots.names import short

_COLOR = palette.HUES[0]
_EMPTY = palette.tint(palette.HUES[4])
_MARGIN = 0.07
"""Share of the range of the points that stays free around them."""
_SEEN = 0.5
"""Share of that range by which lower bounds widen the axes at most."""


@styled()
def draw_front(
    points: Sequence[tuple[tuple[int, int], bool]],
    lowest: Sequence[tuple[int, int]],
    *,
    metrics: Sequence[str],
    resolution: float,
    title: str = "",
    note: str = "",
) -> Picture:
    """Draw points, each with whether it is proved, by increasing first value, and the lower bounds of the front.

    `metrics` and `resolution` (seconds per tick) determine the units of the axes.
    """
    if not points:
        raise UsageError("the front has no points to draw")
    picture = new_picture(4.6, title, short(note, 130))
    axes = picture.subplots()
    labels, scales = zip(
        *(value_unit(metric, max(values[k] for values, _ in points), resolution) for k, metric in enumerate(metrics)),
        strict=True,
    )
    found = np.array([values for values, _ in points], dtype=float) * scales
    bounds = np.array(lowest, dtype=float).reshape(-1, 2) * scales
    (left, right), (bottom, top) = (_range(found[:, k], bounds[:, k]) for k in (0, 1))
    steps: Any = {"where": "post", "color": _COLOR, "linewidth": 1.6, "zorder": 3}
    axes.step([found[0, 0], *found[:, 0], right], [top, *found[:, 1], found[-1, 1]], **steps)
    at = [left, *bounds[:, 0], right]
    axes.fill_between(at, bottom, [top, *bounds[:, 1], bounds[-1, 1]], step="post", color=_EMPTY, linewidth=0, zorder=1)
    for proved, fill in ((True, _COLOR), (False, palette.PAPER)):
        some = found[[each == proved for _, each in points]]
        axes.scatter(some[:, 0], some[:, 1], s=34, facecolor=fill, edgecolor=_COLOR, linewidth=1.6, zorder=4)
    axes.set(xlim=(left, right), ylim=(bottom, top), xlabel=labels[0], ylabel=labels[1])
    axes.grid(zorder=2)
    axes.set_axisbelow(False)
    samples = {True: "proved Pareto-optimal", False: "not proved"}
    shown = [proved for proved in samples if any(each == proved for _, each in points)]
    entries: list[tuple[Any, str]] = [(_dot(proved), samples[proved]) for proved in shown]
    line_legend(
        picture,
        [*entries, (line_sample(_COLOR), "front found"), (patch_sample(_EMPTY), "proved to contain no schedule")],
    )
    return picture


def _dot(proved: bool) -> Any:
    """Return a point for the legend."""
    sample = line_sample(_COLOR, width=0.0, marker="o")
    sample.set(markersize=6, markerfacecolor=_COLOR if proved else palette.PAPER, markeredgewidth=1.6)
    return sample


def _range(values: Any, bounds: Any) -> tuple[float, float]:
    """Return the ends of an axis: all points, and lower bounds that are not far away."""
    low, high = float(values.min()), float(values.max())
    width = (high - low) or 0.1 * high or 1.0
    below = min(low - float(bounds.min(initial=low)), _SEEN * width)
    return low - below - _MARGIN * width, high + _MARGIN * width
