"""Draw schedules and comparisons as PNG, SVG or PDF: `placeopt plot`, `Result.plot`, `Comparison.plot`.

Needs matplotlib (`pip install 'placeopt[plots]'`), which is imported when something is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING, Protocol

from placeopt.errors import UsageError, listing, suggestion
from placeopt.views.plots.targets import checked_file as checked_file
from placeopt.views.plots.targets import need_plots as need_plots

if TYPE_CHECKING:
    from placeopt.model.problem import Problem
    from placeopt.model.schedule import Schedule
    from placeopt.protocol import Progress
    from placeopt.views.plots.canvas import Picture


class Solved(Protocol):
    """The part of `placeopt.Result` that is drawn."""

    @property
    def problem(self) -> Problem: ...
    @property
    def solver(self) -> str: ...
    @property
    def schedule(self) -> Schedule | None: ...
    @property
    def feasible(self) -> bool | None: ...
    @property
    def objective(self) -> int | Fraction | None: ...
    @property
    def bound(self) -> int | Fraction | None: ...
    @property
    def progress(self) -> Sequence[Progress]: ...
    @property
    def wall_time(self) -> Spent: ...


class Spent(Protocol):
    """The part of `placeopt.orchestration.result.WallTime` that is drawn."""

    @property
    def solve(self) -> float | None: ...


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


def draw_result(result: Solved, kind: str = "gantt", *, title: str = "") -> Picture:
    """Draw the result of a solver: "gantt", "memory", "graph" or "convergence".

    Raises a UsageError if the kind is unknown, or needs a schedule and there is none, and a MissingExtraError if
    matplotlib is not installed.
    """
    checked_kind(kind, (*SCHEDULE_KINDS, "convergence"))
    need_plots()
    problem = result.problem
    infeasible = " (infeasible)" if result.feasible is False else ""
    title = title or f"{problem.name or 'problem'}, by {result.solver}{infeasible}"
    if kind != "convergence":
        in_ticks = result.bound is not None and problem.objective.leading_metric in ("makespan", "period")
        return draw_schedule(
            problem, result.schedule, kind, title=title, bound=float(result.bound or 0) if in_ticks else None
        )
    from placeopt.views.plots.convergence import course_of, draw_convergence

    reported = [(point.elapsed, point.objective, point.bound) for point in result.progress]
    end = (result.wall_time.solve or 0.0, result.objective if result.feasible else None, result.bound)
    resolution, objective = float(problem.resolution), str(problem.objective)
    course = course_of(problem.name, result.solver, reported, end, objective=objective, resolution=resolution)
    return draw_convergence([course], title=title)
