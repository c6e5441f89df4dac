"""Pictures of schedules and of comparisons, as PNG, SVG or PDF: `placeopt plot`, `Result.plot`, `Comparison.plot`.

Needs matplotlib (`pip install 'placeopt[plots]'`), which loads when something is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from placeopt.errors import UsageError, listing, suggestion
from placeopt.views.plots.targets import checked_file as checked_file
from placeopt.views.plots.targets import need_plots as need_plots

if TYPE_CHECKING:
    from placeopt.model.problem import Problem
    from placeopt.model.schedule import Schedule
    from placeopt.views.plots.canvas import Picture


class Solved(Protocol):
    """What a picture needs of a `placeopt.Result`."""

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
    def progress(self) -> Sequence[Told]: ...
    @property
    def wall_time(self) -> Spent: ...


class Told(Protocol):
    """What a picture needs of a `placeopt.Progress`."""

    @property
    def elapsed(self) -> float: ...
    @property
    def objective(self) -> int | Fraction | None: ...
    @property
    def bound(self) -> int | Fraction | None: ...


class Spent(Protocol):
    """What a picture needs of `placeopt.solving.result.WallTime`."""

    @property
    def solve(self) -> float | None: ...


SCHEDULE_KINDS = ("gantt", "memory", "graph")
"""Pictures of a schedule."""
RUN_KINDS = ("convergence", "profile", "gap")
"""Pictures of runs; the first also of a single one."""
KINDS = SCHEDULE_KINDS + RUN_KINDS


def checked_kind(kind: str, known: tuple[str, ...] = KINDS) -> str:
    """The kind of picture.

    Raises
    ------
    UsageError
        If it is none of those known.
    """
    if kind not in known:
        raise UsageError(f'no picture of kind "{kind}"; expected {listing(known)}{suggestion(kind, known)}')
    return kind


def draw_schedule(
    problem: Problem, schedule: Schedule | None, kind: str = "gantt", *, title: str = "", bound: float | None = None
) -> Picture:
    """A picture of a schedule: "gantt", "memory" or "graph", the last also without one.

    Raises
    ------
    UsageError
        If there is no such kind, or it needs a schedule and there is none.
    MissingExtraError
        If matplotlib is not installed.
    """
    checked_kind(kind, SCHEDULE_KINDS)
    need_plots()
    if kind == "graph":
        from placeopt.views.plots.graph import draw_graph

        return draw_graph(problem, schedule, title=title)
    if schedule is None:
        raise UsageError(f"there is no schedule to draw; without one there is only the graph, not {kind}")
    if kind == "memory":
        from placeopt.views.plots.memory import draw_memory

        return draw_memory(problem, schedule, title=title)
    from placeopt.views.plots.gantt import draw_gantt

    return draw_gantt(problem, schedule, title=title, bound=bound)


def draw_result(result: Solved, kind: str = "gantt", *, title: str = "") -> Picture:
    """A picture of what a solver did: "gantt", "memory", "graph" or "convergence".

    Raises
    ------
    UsageError
        If there is no such kind, or it needs a schedule and there is none.
    MissingExtraError
        If matplotlib is not installed.
    """
    checked_kind(kind, (*SCHEDULE_KINDS, "convergence"))
    need_plots()
    problem = result.problem
    title = (
        title or f"{problem.name or 'problem'}, by {result.solver}{' (infeasible)' if result.feasible is False else ''}"
    )
    makespan = problem.objective.levels[0][0].metric == "makespan" and len(problem.objective.levels[0]) == 1
    if kind != "convergence":
        bound = None if result.bound is None or not makespan else float(result.bound)
        return draw_schedule(problem, result.schedule, kind, title=title, bound=bound)
    from placeopt.views.plots.convergence import course_of, draw_convergence

    told = [(point.elapsed, point.objective, point.bound) for point in result.progress]
    ended = (result.wall_time.solve or 0.0, result.objective if result.feasible else None, result.bound)
    resolution, objective = float(problem.resolution), str(problem.objective)
    course = course_of(problem.name, result.solver, told, ended, objective=objective, resolution=resolution)
    return draw_convergence([course], title=title)
