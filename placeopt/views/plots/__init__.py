"""Draw schedules and comparisons as PNG, SVG or PDF: `placeopt plot`, `Result.plot`, `Comparison.plot`.

Needs matplotlib (`pip install 'placeopt[plots]'`), which is imported when something is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING

from placeopt.errors import UsageError, listing, suggestion
from placeopt.views.plots.targets import checked_file as checked_file
from placeopt.views.plots.targets import need_plots as need_plots

if TYPE_CHECKING:
    from placeopt.model.problem import Problem
    from placeopt.model.schedule import Schedule
    from placeopt.views.plots.canvas import Picture


SCHEDULE_KINDS = ("gantt", "memory", "graph")
"""Plots of a schedule."""
RUN_KINDS = ("convergence", "profile", "gap")
"""Plots of runs; the first one also of a single run."""
KINDS = (*SCHEDULE_KINDS, *RUN_KINDS, "curve")
"""All plots: also the learning curves of trainings."""


def checked_kind(kind: str, known: tuple[str, ...] = KINDS) -> str:
    """Return the kind of plot; an unknown kind is a UsageError."""
    if kind not in known:
        raise UsageError(f'unknown plot "{kind}"; expected {listing(known)}{suggestion(kind, known)}')
    return kind


def drawn(draw: Callable[[], Picture], path: str | PathLike[str] | None) -> Picture:
    """Draw a picture, and with a path also write it. The path and the extra are checked before."""
    if path is not None:
        checked_file(path)
    need_plots()
    picture = draw()
    if path is not None:
        picture.write(path)
    return picture


def draw_schedule(
    problem: Problem, schedule: Schedule | None, kind: str = "gantt", *, title: str = "", bound: float | None = None
) -> Picture:
    """Draw a schedule: "gantt", "memory" or "graph"; the graph also without a schedule, memory with its offsets.

    Raises a UsageError if the kind is unknown, or needs a schedule and there is none, and a MissingExtraError if
    matplotlib is not installed.
    """
    checked_kind(kind, SCHEDULE_KINDS)
    need_plots()
    if kind == "graph":
        from placeopt.views.plots.graph import draw_graph

        return draw_graph(problem, schedule, title=title)
    if schedule is None:
        raise UsageError(f"{kind} needs a schedule and there is none; graph can be drawn without one")
    if kind == "memory" and schedule.offsets is not None:
        from placeopt.views.plots.addresses import draw_addresses

        return draw_addresses(problem, schedule, title=title)
    if kind == "memory":
        from placeopt.views.plots.memory import draw_memory

        return draw_memory(problem, schedule, title=title)
    if problem.pipeline is not None:
        from placeopt.views.plots.pipelines import draw_pipeline

        if (drawn := draw_pipeline(problem, schedule, title=title, bound=bound)) is not None:
            return drawn
    from placeopt.views.plots.gantt import draw_gantt

    return draw_gantt(problem, schedule, title=title, bound=bound)
