"""Draw convergence: the best value found and the best bound proved, over run time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from placeopt.model.objective import IN_TICKS
from placeopt.views.plots import palette
from placeopt.views.plots.canvas import (
    Picture,
    line_legend,
    line_sample,
    line_style,
    new_picture,
    size_unit,
    styled,
    time_unit,
)
from placeopt.views.plots.names import short
from placeopt.views.plots.palette import Stroke, strokes

PANELS = 24
"""Maximum number of problems that are drawn, one panel each."""
_EARLIEST = 1e-3
"""Minimum start of a logarithmic time axis, in seconds."""
_BOUND = (1.0, 1.6)
"""Dashes of bounds: dots, which no named solver uses."""
_WORST = 1.3
"""Values above this multiple of the best value are cut off."""


@dataclass(frozen=True, slots=True)
class Course:
    """One run on one problem."""

    problem: str
    solver: str
    points: tuple[tuple[float, float | None, float | None], ...]
    """(seconds, incumbent, bound) in order of time, None where unknown. The last point is the end of the run."""
    objective: str = "makespan"
    resolution: float = 1e-9
    """The objective as text, and seconds per tick."""


def incumbents(course: Course) -> tuple[list[float], list[float]]:
    """Return seconds and values of the best incumbent, where it changes and at the end."""
    return _changes([(seconds, value) for seconds, value, _ in course.points], min)


def bounds(course: Course) -> tuple[list[float], list[float]]:
    """Return seconds and values of the best bound, where it changes and at the end."""
    return _changes([(seconds, bound) for seconds, _, bound in course.points], max)


def _changes(points: list[tuple[float, float | None]], better: Any) -> tuple[list[float], list[float]]:
    times: list[float] = []
    values: list[float] = []
    for seconds, value in points:
        if value is None:
            continue
        best = better(values[-1], value) if values else value
        if not values or best != values[-1]:
            times.append(seconds)
            values.append(best)
    if values and points[-1][0] > times[-1]:
        times.append(points[-1][0])
        values.append(values[-1])
    return times, values


@styled()
def draw_convergence(courses: Sequence[Course], order: Sequence[str] = (), *, title: str = "") -> Picture:
    """Draw one panel per problem, one colour per solver; `order` as in `profiles.draw_gaps`."""
    known = [course for course in courses if any(value is not None for _, *rest in course.points for value in rest)]
    problems = list(dict.fromkeys(course.problem for course in known))
    left_out = len(problems) - PANELS
    note = f"the first {PANELS} of {len(problems)} problems" if left_out > 0 else ""
    problems = problems[:PANELS]
    known = [course for course in known if course.problem in set(problems)]
    columns = 1 if len(problems) <= 1 else 2 if len(problems) <= 8 else 3
    rows = max(-(-len(problems) // columns), 1)
    panel = 3.0 if columns == 1 else 2.1 if columns == 2 else 1.7
    picture = new_picture(0.9 + panel * rows, title or "convergence", note)
    grid = picture.subplots(rows, columns, squeeze=False)
    solvers = tuple(dict.fromkeys(course.solver for course in known))
    stroke_of = dict(zip(order or solvers, strokes(len(order or solvers)), strict=True))
    # If there are many solvers, only those that report progress are named; a single value is drawn as a point.
    searching = {course.solver for course in known if len(course.points) > 2}
    if len(solvers) > len(palette.HUES):
        stroke_of = {solver: stroke for solver, stroke in stroke_of.items() if solver in searching}
    named = [solver for solver in stroke_of if solver in solvers]
    for place, axes in enumerate(grid.flat):
        if place < len(problems):
            mine = [course for course in known if course.problem == problems[place]]
            _draw_panel(axes, mine, stroke_of)
            if len(problems) > 1:
                axes.set_title(short(problems[place], 40), fontsize=8.5)
            if place >= len(problems) - columns:
                axes.set_xlabel("run time (s)")
        else:
            axes.set_axis_off()
            if not problems:
                text = "no run reports progress or a schedule"
                axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", color=palette.MUTED)
    entries: list[tuple[Any, str]] = []
    for solver in named:
        stroke = stroke_of[solver]
        sample = line_sample(stroke.color, width=2.0, dashes=stroke.dashes, marker=stroke.marker)
        entries.append((sample, short(solver, 40)))
    if any(bounds(course)[0] for course in known):
        entries.append((line_sample(palette.MUTED, dashes=_BOUND), "lower bound"))
    if len(named) < len(solvers):
        entries.append((line_sample(palette.MUTED, width=0, marker="."), f"{len(solvers) - len(named)} others"))
    line_legend(picture, entries)
    return picture


def _draw_panel(axes: Axes, courses: Sequence[Course], stroke_of: dict[str, Stroke]) -> None:
    best = min((value for course in courses for value in incumbents(course)[1]), default=None)
    proved = max((value for course in courses for value in bounds(course)[1]), default=None)
    top = best if best is not None else proved or 1.0
    label, scale = value_unit(courses[0].objective, float(top), courses[0].resolution)
    ends = [seconds for course in courses for seconds, *_ in course.points]
    first = [course.points[0][0] for course in courses if len(course.points) > 1] or ends
    logarithmic = max(ends) > 30 * max(min(first), _EARLIEST)
    least = max(min(ends), _EARLIEST) * 0.8 if logarithmic else 0.0
    for course in courses:
        stroke = stroke_of.get(course.solver)
        color = palette.MUTED if stroke is None else stroke.color
        times, values = incumbents(course)
        if values:
            axes.step(
                np.maximum(times, least), np.array(values) * scale, where="post", color=color, linewidth=1.8,
                linestyle=line_style(stroke), zorder=3,
            )  # fmt: skip
            axes.plot(
                [max(times[0], least)] if len(course.points) == 1 else np.maximum(times[:-1], least),
                np.array(values[:1] if len(course.points) == 1 else values[:-1]) * scale,
                linestyle="none", color=color, zorder=4,
                marker="." if stroke is None else stroke.marker,
                markersize=4 if len(values) < 30 else 2,
            )  # fmt: skip
        times, values = bounds(course)
        if values and len(course.points) > 1:
            axes.step(np.maximum(times, least), np.array(values) * scale, where="post", color=color, linewidth=1.3,
                      linestyle=(0, _BOUND), zorder=2)  # fmt: skip
    if proved is not None and not any(bounds(course)[0] for course in courses if len(course.points) > 1):
        axes.axhline(proved * scale, color=palette.MUTED, linewidth=1.3, linestyle=(0, _BOUND), zorder=2)
    if logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlim(least, max(ends) * (1.15 if logarithmic else 1.02) or 1.0)
    low, high = _range(courses, best, proved)
    axes.set_ylim(low * scale, high * scale)
    axes.set_ylabel(label, fontsize=8.5)
    axes.grid(axis="y")


def _range(courses: Sequence[Course], best: float | None, proved: float | None) -> tuple[float, float]:
    """Return the range of the value axis: from the useful bounds to the useful incumbents."""
    values = [value for course in courses for value in incumbents(course)[1]]
    proofs = [value for course in courses if len(course.points) > 1 for value in bounds(course)[1]]
    known = [value for value in (best, proved) if value is not None]
    high = max(min(max(values, default=known[0]), (best or max(values, default=0)) * _WORST), *known)
    low = min([value for value in proofs if value >= 0.5 * (proved or 0)] + known)
    margin = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin


def value_unit(objective: str, top: float, resolution: float) -> tuple[str, float]:
    """Return an axis label for objective values up to `top`, and the factor to scale them by."""
    if objective in IN_TICKS:
        unit, size = time_unit(abs(top) * resolution)
        return f"{objective.replace('_', ' ')} ({unit})", resolution / size
    if objective == "communication":
        unit, size = size_unit(abs(top))
        return f"communication ({unit})", 1 / size
    if objective == "energy":
        return "energy (J)", 1e-9
    if objective == "memory_balance":
        return "memory balance (%)", 1e-4
    return short(objective, 40), 1.0


def course_of(
    problem: str,
    solver: str,
    reported: Sequence[tuple[float, float | Fraction | None, float | Fraction | None]],
    end: tuple[float, float | Fraction | None, float | Fraction | None],
    *,
    objective: str,
    resolution: float,
) -> Course:
    """Return the course of a run from the (seconds, incumbent, bound) that its solver reported and those at its end."""

    def plain(value: float | Fraction | None) -> float | None:
        return None if value is None else float(value)

    last = max([end[0], *(seconds for seconds, *_ in reported)])
    points = [(float(seconds), plain(value), plain(bound)) for seconds, value, bound in reported]
    return Course(problem, solver, (*points, (last, plain(end[1]), plain(end[2]))), objective, resolution)
