"""Pictures of comparisons: performance profiles, and gaps against run times."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from placeopt.views.plots import palette
from placeopt.views.plots.canvas import Picture, line_legend, line_sample, new_picture, styled
from placeopt.views.plots.names import short
from placeopt.views.plots.palette import Stroke, strokes
from placeopt.views.plots.ranking import NAMED, WORST, Steps, leaders, worst_shown

_RATIOS = (1, 1.5, 2, 3, 5, 10, 20, 50, 100)
_FASTEST = 1e-4
"""Seconds at which the axis of run times begins at the earliest."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A solver on a problem: seconds of run time, and the gap as a share, None where none is known."""

    solver: str
    seconds: float
    gap: float | None


def draw_profile(profile: Mapping[str, Steps], *, problems: int, title: str = "") -> Picture:
    """The performance profile: for each solver the share of problems that it solves within a ratio of the best.

    The solvers of `profile` stand best first.
    """
    note = f"{_counted(problems, 'problem')}; higher and further left is better"
    if any(ratio > WORST for steps in profile.values() for ratio, _ in steps):
        note += f" \u00b7 ratios beyond {WORST:g} are not shown"
    with styled():
        picture = new_picture(4.6, title or "performance profile", note)
        axes = picture.subplots()
        line_legend(picture, _draw_profile(axes, profile))
        return picture


def _draw_profile(axes: Axes, profile: Mapping[str, Steps]) -> list[tuple[Any, str]]:
    named = leaders(profile)
    worst = worst_shown({solver: profile[solver] for solver in named})  # the others may run off
    stroke_of = dict(zip(named, strokes(len(named)), strict=True))
    end = worst**1.03 if worst > 2.5 else 1 + (worst - 1) * 1.03
    for solver, steps in profile.items():
        ratios = [1.0, *(max(ratio, 1.0) for ratio, _ in steps if ratio <= worst), end]
        shares = [0.0, *(share for ratio, share in steps if ratio <= worst)]
        stroke = stroke_of.get(solver)
        place = -named.index(solver) if stroke is not None else 0
        axes.step(
            ratios, [*shares, shares[-1]], where="post", zorder=3 + place / 100 if stroke is not None else 1.5,
            color=palette.GRID if stroke is None else stroke.color, linewidth=1.0 if stroke is None else 1.9,
            linestyle=_line(stroke), solid_joinstyle="miter",
        )  # fmt: skip
    if worst > 2.5:
        axes.set_xscale("log")
        axes.set_xticks([ratio for ratio in _RATIOS if ratio <= worst])
        axes.minorticks_off()
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlim(1.0, end)
    axes.set_ylim(0.0, 1.02)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlabel("at most this many times the best objective found")
    axes.set_ylabel("share of problems")
    axes.grid()
    return _entries(stroke_of, len(profile))


def draw_gaps(outcomes: Sequence[Outcome], order: Sequence[str] = (), *, title: str = "") -> Picture:
    """Gap against run time: a point for each solver on each problem, a large one for its medians.

    `order` are the solvers to be told apart, as `leaders` gives them; all, if it is empty.
    """
    with styled():
        return _draw_gaps(outcomes, order, title)


def _draw_gaps(outcomes: Sequence[Outcome], order: Sequence[str], title: str) -> Picture:
    known = [(each.solver, max(each.seconds, _FASTEST), each.gap) for each in outcomes if each.gap is not None]
    missing = len(outcomes) - len(known)
    note = "small: one problem, large: a solver's medians; lower and further left is better"
    picture = new_picture(
        4.8, title or "gap against run time",
        note, f"{missing} of {len(outcomes)} are missing: no feasible schedule, or no bound" if missing else "",
    )  # fmt: skip
    axes = picture.subplots()
    solvers = tuple(dict.fromkeys(each.solver for each in outcomes))
    named = tuple(order) or solvers[:NAMED]
    stroke_of = dict(zip(named, strokes(len(named)), strict=True))
    for solver in solvers:
        mine = [(seconds, gap) for name, seconds, gap in known if name == solver]
        if not mine:
            continue
        stroke, (seconds, gaps) = stroke_of.get(solver), np.array(mine).T
        color, marker = (palette.MUTED, ".") if stroke is None else (stroke.color, stroke.marker)
        hollow = stroke is not None and bool(stroke.dashes)
        face: Any = palette.PAPER if hollow else color
        axes.scatter(seconds, gaps, s=12, marker=marker, facecolors=face, edgecolors=color, alpha=0.45,
                     linewidths=0.6, zorder=1.5 if stroke is None else 2)  # fmt: skip
        if stroke is not None:
            axes.scatter(
                [statistics.median(seconds)], [statistics.median(gaps)], s=80, marker=marker, facecolors=face,
                edgecolors=color if hollow else palette.INK, linewidths=1.6 if hollow else 0.7, zorder=4,
            )  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    times = [seconds for _, seconds, _ in known] or [0.1, 1.0]
    axes.set_xlim(min(times) / 1.6, max(times) * 1.6)
    highest = max([gap for _, _, gap in known], default=0.1)
    axes.set_ylim(-0.03 * (highest or 0.1), (highest or 0.1) * 1.06)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}" if highest > 0.05 else f"{value:.1%}")
    axes.set_xlabel("run time (s)")
    axes.set_ylabel("gap to the best bound")
    axes.grid()
    if not known:
        axes.text(0.5, 0.5, "no gap is known", transform=axes.transAxes, ha="center", color=palette.MUTED)
    entries: list[tuple[Any, str]] = [(_point(stroke), short(solver, 40)) for solver, stroke in stroke_of.items()]
    if len(solvers) > len(named):
        entries.append((line_sample(palette.MUTED, width=0, marker="."), f"{len(solvers) - len(named)} others"))
    line_legend(picture, entries)
    return picture


def _point(stroke: Stroke) -> Any:
    sample = line_sample(stroke.color, width=0, marker=stroke.marker)
    sample.set_markersize(7)
    if stroke.dashes:
        sample.set_markerfacecolor(palette.PAPER)
    return sample


def _line(stroke: Stroke | None) -> Any:
    return "-" if stroke is None or not stroke.dashes else (0, stroke.dashes)


def _entries(stroke_of: Mapping[str, Stroke], count: int) -> list[tuple[Any, str]]:
    entries: list[tuple[Any, str]] = [
        (line_sample(stroke.color, width=1.9, dashes=stroke.dashes), short(solver, 40))
        for solver, stroke in stroke_of.items()
    ]
    if count > len(stroke_of):
        entries.append((line_sample(palette.GRID, width=1.0), f"{count - len(stroke_of)} others"))
    return entries


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
