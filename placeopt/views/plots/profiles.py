"""Draw comparisons: performance profiles, and gaps against run times."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placeopt.errors import counted
from placeopt.views.plots import palette
from placeopt.views.plots.canvas import Picture, line_legend, line_sample, line_style, new_picture, styled
from placeopt.views.plots.names import short
from placeopt.views.plots.palette import Stroke, strokes

NAMED = 14
"""Maximum number of solvers that all have a colour; of more, the first `LEADING` have one and the others are grey."""
LEADING = 10
WORST = 100.0
"""Maximum ratio that a profile shows."""
_RATIOS = (1, 1.5, 2, 3, 5, 10, 20, 50, 100)
_FASTEST = 1e-4
"""Minimum start of the axis of run times, in seconds."""

Steps = Sequence[tuple[float, float]]
"""A line of a profile: (ratio, share of problems)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Run time in seconds of a solver on a problem, and its gap as a share, None if unknown."""

    solver: str
    seconds: float
    gap: float | None


def leaders(profile: Mapping[str, Steps]) -> tuple[str, ...]:
    """Return the solvers that have a colour, in the order of the profile."""
    found = tuple(profile)
    return found if len(found) <= NAMED else found[:LEADING]


@styled()
def draw_profile(profile: Mapping[str, Steps], *, problems: int, title: str = "") -> Picture:
    """Draw a performance profile, best solver first: the share of problems solved within a ratio to the best value."""
    note = f"{counted(problems, 'problem')}; higher and further left is better"
    if any(ratio > WORST for steps in profile.values() for ratio, _ in steps):
        note += f" \u00b7 ratios beyond {WORST:g} are not shown"
    picture = new_picture(4.6, title or "performance profile", note)
    axes = picture.subplots()
    named = leaders(profile)
    # Lines of solvers without a colour may be cut off.
    worst = min(max((ratio for solver in named for ratio, _ in profile[solver]), default=1.0) * 1.02, WORST)
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
            linestyle=line_style(stroke), solid_joinstyle="miter",
        )  # fmt: skip
    if worst > 2.5:
        axes.set_xscale("log")
        axes.set_xticks([ratio for ratio in _RATIOS if ratio <= worst])
        axes.minorticks_off()
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlim(1.0, end)
    axes.set_ylim(0.0, 1.02)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlabel("ratio to the best objective found")
    axes.set_ylabel("share of problems")
    axes.grid()
    entries: list[tuple[Any, str]] = [
        (line_sample(stroke.color, width=1.9, dashes=stroke.dashes), short(solver, 40))
        for solver, stroke in stroke_of.items()
    ]
    if len(profile) > len(named):
        entries.append((line_sample(palette.GRID, width=1.0), f"{len(profile) - len(named)} others"))
    line_legend(picture, entries)
    return picture


@styled()
def draw_gaps(outcomes: Sequence[Outcome], order: Sequence[str] = (), *, title: str = "") -> Picture:
    """Draw gap against run time: a point per solver and problem, a large point for a solver's medians.

    `order` lists the solvers that get a colour, as `leaders` returns them; if it is empty, the first ones do.
    """
    known = [(each.solver, max(each.seconds, _FASTEST), each.gap) for each in outcomes if each.gap is not None]
    missing = len(outcomes) - len(known)
    note = "small points: one problem; large points: medians of a solver; lower and further left is better"
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
