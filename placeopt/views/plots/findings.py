"""Draw what studies found: the Pareto front of two metrics, and what changes of a problem gain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes

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
_BAR = 0.32
"""Distance of two bars in inches: enough for two lines of text."""
_LINE = 34
"""Maximum characters of a line of text next to a bar."""
_OPEN = 0.3
"""Opacity of the possible gain, for which no schedule is known."""
_BOUND = (1.0, 1.6)


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
    for proved, inside in ((True, _COLOR), (False, palette.PAPER)):
        some = found[[each == proved for _, each in points]]
        axes.scatter(some[:, 0], some[:, 1], s=34, facecolor=inside, edgecolor=_COLOR, linewidth=1.6, zorder=4)
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


@dataclass(frozen=True, slots=True)
class Bar:
    """A change, and bounds on the optimum of the changed problem."""

    text: str
    """The change in words."""
    low: float | None
    high: float | None
    """The lower bound, and the objective of the best schedule; None if unknown."""
    note: str = ""
    """Text next to the bar."""


@styled()
def draw_gains(
    base: Bar, changes: Sequence[Bar], *, objective: str, resolution: float, title: str = "", note: str = ""
) -> Picture:
    """Draw a bar per change, below that of the unchanged problem, whose bound and schedule are also drawn as lines.

    `objective` and `resolution` (seconds per tick) determine the unit of the axis.
    """
    bars = [base, *changes]
    picture = new_picture(1.35 + _BAR * len(bars), title, short(note, 130))
    axes = picture.subplots()
    values = [value for each in bars for value in (each.low, each.high) if value is not None]
    label, scale = value_unit(objective, max(values, default=1.0), resolution)
    for place, each in enumerate(bars):
        _draw(axes, len(bars) - 1 - place, each, base.high, scale)
    entries: list[tuple[Any, str]] = [
        (patch_sample(_COLOR), "gain of the schedule found"),
        (patch_sample(_COLOR, alpha=_OPEN), "more that is possible, down to the lower bound"),
    ]
    for value, dashes, text in ((base.high, (), "schedule as it is"), (base.low, _BOUND, "lower bound as it is")):
        if value is not None:
            style: Any = "-" if not dashes else (0, dashes)
            axes.axvline(value * scale, color=palette.INK, linewidth=1.0, linestyle=style, zorder=1)
            entries.append((line_sample(palette.INK, width=1.0, dashes=dashes), text))
    axes.set_yticks(range(len(bars)), [_lines(each.text) for each in reversed(bars)])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-0.6, len(bars) - 0.4)
    low, high = min(values, default=0.0) * scale, max(values, default=1.0) * scale
    room = (high - low) or high or 1.0
    axes.set_xlim(max(low - 0.06 * room, 0.0), high + 0.02 * room)
    axes.set_xlabel(label)
    axes.grid(axis="x")
    line_legend(picture, entries)
    return picture


def _lines(text: str) -> str:
    """Break a text into at most two lines; the ends of a link stay together."""
    joined = short(text, 2 * _LINE - 4).replace(" <-> ", "\u00a0<->\u00a0").replace(" -> ", "\u00a0->\u00a0")
    return fill(joined, _LINE)


def _draw(axes: Axes, place: int, each: Bar, whole: float | None, scale: float) -> None:
    """Draw one bar; `whole` is the objective of the unchanged problem."""
    if each.high is not None and whole is not None:
        axes.barh(place, (whole - each.high) * scale, left=each.high * scale, height=0.62, color=_COLOR, linewidth=0)
    if each.low is not None and each.high is not None:
        width = (each.high - each.low) * scale
        axes.barh(place, width, left=each.low * scale, height=0.62, color=_COLOR, alpha=_OPEN, linewidth=0)
    for value in (each.low, each.high):
        if value is not None:  # visible even if the bar has no width
            axes.plot([value * scale] * 2, [place - 0.31, place + 0.31], color=_COLOR, linewidth=1.4, zorder=3)
    axes.text(
        1.01, place, each.note, transform=axes.get_yaxis_transform(), va="center", fontsize=8.5, color=palette.MUTED
    )
