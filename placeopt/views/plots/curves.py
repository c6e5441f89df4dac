"""Draw learning curves: the evaluation of a policy against the number of episodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from placeopt.errors import DocumentError, Issue
from placeopt.io.files import UnreadableError, read_text
from placeopt.views.plots import palette
from placeopt.views.plots.canvas import Picture, line_legend, line_sample, line_style, new_picture, styled
from placeopt.views.plots.names import distinct
from placeopt.views.plots.palette import strokes


@dataclass(frozen=True, slots=True)
class Curve:
    """A training: (episodes, ratio) of each evaluation."""

    name: str
    points: tuple[tuple[int, float], ...]


def read_curve(path: Path) -> Curve:
    """Read a learning curve that `placeopt train` wrote; the name of its folder is its name.

    Raises a DocumentError if the file is not a learning curve.
    """
    file = str(path)
    try:
        lines = read_text(path).splitlines()
    except UnreadableError as error:
        raise DocumentError([Issue(str(error), file=file)]) from None
    if not lines or lines[0].split(",")[:2] != ["episode", "ratio"]:
        raise DocumentError(
            [Issue("is not a learning curve; expected the file curve.csv of `placeopt train`", file=file)]
        )
    points = []
    for line, text in enumerate(lines[1:], start=2):
        row = text.split(",")
        try:
            point = int(row[0]), float(row[1])
            if point[0] < 0 or not math.isfinite(point[1]):
                raise ValueError
        except (ValueError, IndexError):
            raise DocumentError([Issue("expected a number of episodes and a ratio", file=file, line=line)]) from None
        points.append(point)
    if not points:
        raise DocumentError([Issue("has no point; expected at least one evaluation", file=file)])
    return Curve(path.absolute().parent.name, tuple(points))


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
        axes.plot(
            *best,
            clip_on=False,
            marker="o",
            markersize=7,
            markerfacecolor="none",
            color=stroke.color,
            markeredgewidth=1.6,
        )
        text = f"{name}: best {best[1]:.4f} after {best[0]:,} episodes"
        entries.append((line_sample(stroke.color, dashes=stroke.dashes), text))
    axes.set_xlabel("episodes")
    axes.set_ylabel("evaluation ratio")
    axes.set_xlim(left=0, right=max((curve.points[-1][0] for curve in curves), default=0) or 1)
    axes.grid(axis="y", color=palette.GRID)
    line_legend(picture, entries)
    return picture
