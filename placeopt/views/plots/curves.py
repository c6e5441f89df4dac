"""Draw learning curves: the evaluation of a policy against the number of episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from placeopt.views.plots import palette
from placeopt.views.plots.canvas import Picture, line_legend, line_sample, line_style, new_picture, styled
from placeopt.views.plots.names import distinct
from placeopt.views.plots.palette import strokes


@dataclass(frozen=True, slots=True)
class Curve:
    """A training: (episodes, ratio) of each evaluation."""

    name: str
    points: tuple[tuple[int, float], ...]


@styled()
def draw_curves(curves: Sequence[Curve], *, title: str = "") -> Picture:
    """Draw learning curves in one plot; a circle marks the best point of each."""
    picture = new_picture(3.6, title or "learning curve")
    axes = picture.subplots()
    entries = []
    names = distinct([curve.name for curve in curves], 40)
    for curve, name, stroke in zip(curves, names, strokes(len(curves)), strict=True):
        best = min(curve.points, key=lambda point: point[1])
        axes.plot(*zip(*curve.points, strict=True), color=stroke.color, linestyle=line_style(stroke), linewidth=1.6)
        axes.plot(*best, marker="o", markersize=7, markerfacecolor="none", color=stroke.color, markeredgewidth=1.6)
        text = f"{name}: best {best[1]:.4g} after {best[0]:,} episodes"
        entries.append((line_sample(stroke.color, dashes=stroke.dashes), text))
    axes.set_xlabel("episodes")
    axes.set_ylabel("evaluation ratio")
    axes.set_xlim(left=0, right=max((curve.points[-1][0] for curve in curves), default=0) or 1)
    axes.grid(axis="y", color=palette.GRID)
    line_legend(picture, entries)
    return picture
