"""Define the result of a comparison: runs as text, data frames and plots."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from placeopt.errors import UsageError, counted, listing, suggestion
from placeopt.studies.comparison.grids import as_html, as_text
from placeopt.studies.comparison.records import Record
from placeopt.studies.comparison.tables import Runs, solver_label
from placeopt.views.findings import Tabular
from placeopt.views.plots import RUN_KINDS, checked_kind, drawn

if TYPE_CHECKING:
    from placeopt.views.plots.canvas import Picture
    from placeopt.views.plots.convergence import Course
    from placeopt.views.plots.profiles import Outcome


class Comparison(Runs, Tabular):
    """The runs of a comparison and their tables; `print` shows the output of `placeopt compare`."""

    def plot(
        self,
        kind: str = "profile",
        path: str | os.PathLike[str] | None = None,
        *,
        title: str = "",
        problems: Sequence[str] | None = None,
        solvers: Sequence[str] | None = None,
    ) -> Picture:
        """Draw "profile", "gap" (against run time) or "convergence" as a matplotlib Figure that notebooks show.

        With a path, also write it as PNG, SVG or PDF by the suffix. `problems` and `solvers` select by label; gaps and
        ratios are relative to the best of all runs, including those that are not drawn.

        Raises
        ------
        UsageError
            If the kind, the format, a problem or a solver is unknown, or the file cannot be written.
        MissingExtraError
            If matplotlib is not installed.
        """
        checked_kind(kind, RUN_KINDS)
        _check_known("problem", problems, tuple(self.by_problem))
        _check_known("solver", solvers, self.solvers)

        def draw() -> Picture:
            from placeopt.views.plots.convergence import draw_convergence
            from placeopt.views.plots.profiles import draw_gaps, draw_profile, leaders

            runs = Runs(tuple(record for label in problems for record in self.by_problem[label])) if problems else self
            shown = set(solvers or runs.solvers)
            profile = {solver: line for solver, line in runs.profile().items() if solver in shown}
            order = leaders(profile)
            if kind == "profile":
                solved = sum(standing.best is not None for standing in runs.standings.values())
                return draw_profile(profile, problems=solved, title=title)
            if kind == "gap":
                return draw_gaps([each for each in _outcomes(runs) if each.solver in shown], order, title=title)
            return draw_convergence([each for each in _courses(runs) if each.solver in shown], order, title=title)

        return drawn(draw, path)

    def __repr__(self) -> str:
        missing = self.expected > len(self.records)
        runs = f"{len(self.records):,} of " * missing + counted(self.expected if missing else len(self.records), "run")
        solvers, problems = counted(len(self.solvers), "solver"), counted(len(self.by_problem), "problem")
        return f"<Comparison: {runs} of {solvers} on {problems}>"

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)


def _outcomes(comparison: Runs) -> list[Outcome]:
    """Return run time and gap of every solver on each of its problems."""
    from placeopt.views.plots.profiles import Outcome

    return [
        Outcome(entry.solver, entry.seconds, entry.gap)
        for entries in comparison.entries.values()
        for entry in entries
        if entry.seconds is not None and entry.verdict != "refused"
    ]


def _courses(comparison: Runs) -> list[Course]:
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


def _check_known(what: str, chosen: Sequence[str] | None, known: Sequence[str]) -> None:
    for name in chosen or ():
        if name not in known:
            hint = suggestion(name, known) or f"; expected one of {listing(known)}"
            raise UsageError(f'no {what} "{name}" in these results{hint}')
