"""Draw comparisons: convert records to the data of `placeopt.views.plots`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from placeopt.errors import UsageError, listing, suggestion
from placeopt.studies.comparison.records import Record
from placeopt.studies.comparison.tables import Runs, solver_label
from placeopt.views.plots import RUN_KINDS, checked_kind, need_plots

if TYPE_CHECKING:
    from placeopt.views.plots.canvas import Picture
    from placeopt.views.plots.convergence import Course
    from placeopt.views.plots.profiles import Outcome


def draw_comparison(
    comparison: Runs,
    kind: str = "profile",
    *,
    title: str = "",
    problems: Sequence[str] | None = None,
    solvers: Sequence[str] | None = None,
) -> Picture:
    """Draw runs: "profile", "gap" or "convergence"; `problems` and `solvers` select by label, None selects all.

    Gaps and ratios are relative to the best of all runs, including those that are not drawn.

    Raises
    ------
    UsageError
        If the kind, a problem or a solver is unknown.
    MissingExtraError
        If matplotlib is not installed.
    """
    checked_kind(kind, RUN_KINDS)
    need_plots()
    _known("problem", problems, tuple(comparison.by_problem))
    _known("solver", solvers, comparison.solvers)
    if problems:
        chosen = (record for label in problems for record in comparison.by_problem[label])
        comparison = Runs(tuple(chosen))
    shown = tuple(solver for solver in comparison.solvers if not solvers or solver in solvers)
    from placeopt.views.plots.convergence import draw_convergence
    from placeopt.views.plots.profiles import draw_gaps, draw_profile, leaders

    steps = comparison.profile()
    profile = {solver: line for solver, line in steps.items() if solver in shown}
    order = leaders(profile)
    if kind == "profile":
        solved = sum(standing.best is not None for standing in comparison.standings.values())
        return draw_profile(profile, problems=solved, title=title)
    if kind == "gap":
        return draw_gaps([each for each in outcomes(comparison) if each.solver in shown], order, title=title)
    return draw_convergence([each for each in courses(comparison) if each.solver in shown], order, title=title)


def outcomes(comparison: Runs) -> list[Outcome]:
    """Return run time and gap of every solver on each of its problems."""
    from placeopt.views.plots.profiles import Outcome

    return [
        Outcome(entry.solver, entry.seconds, entry.gap)
        for entries in comparison.entries.values()
        for entry in entries
        if entry.seconds is not None and entry.verdict != "refused"
    ]


def courses(comparison: Runs) -> list[Course]:
    """Return the course of every run that found a schedule or reported progress."""
    return [
        course
        for label, records in comparison.by_problem.items()
        for record in records
        if (course := _course(label, record)) is not None
    ]


def _course(label: str, record: Record) -> Course | None:
    from placeopt.views.plots.convergence import course_of

    result = record.result or {}
    feasible = bool(result.get("feasible"))
    if not record.progress and not feasible:
        return None
    seconds = result.get("wall_time", {}).get("solve") or record.wall
    return course_of(
        label,
        solver_label(record),
        record.progress,
        (float(seconds), result.get("objective") if feasible else None, result.get("bound")),
        objective=str(result.get("objective_name") or "objective"),
        resolution=float(result.get("resolution") or 1.0),
    )


def _known(what: str, chosen: Sequence[str] | None, known: Sequence[str]) -> None:
    for name in chosen or ():
        if name not in known:
            hint = suggestion(name, known) or f"; expected one of {listing(known)}"
            raise UsageError(f'no {what} "{name}" in these results{hint}')
