"""Convert a comparison to page data: solvers, problems, runs, performance profile, convergence."""

from __future__ import annotations

from typing import Any

from placeopt.errors import counted
from placeopt.studies.comparison.result import Comparison
from placeopt.studies.comparison.tables import solver_label
from placeopt.views.facts import first_level
from placeopt.views.page.summaries import kind_of
from placeopt.views.plots.palette import Stroke, strokes


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """Return the tables and the performance profile."""
    note = (
        f"{counted(len(comparison.records), 'run')} of {counted(len(comparison.solvers), 'solver')} on "
        f"{counted(len(comparison.by_problem), 'problem')}. Mean ratios (geometric) and mean gaps are over "
        f"{counted(len(comparison.common()), 'problem')}: those solved by every solver that solved at least half of "
        "all problems. Gaps are relative to the best bound that any run proved."
    )
    return {
        "note": note,
        "problems": [_problem(comparison, label) for label in comparison.by_problem],
        "solvers": comparison.summary(),
        "runs": [_run(row) for row in comparison.rows()],
        "profile": _profile(comparison) if len(comparison.by_problem) > 1 else None,
    }


def _problem(comparison: Comparison, label: str) -> dict[str, Any]:
    """Return the best schedule and bound of all runs on a problem."""
    standing = comparison.standings[label]
    result = next((record.result for record in comparison.by_problem[label] if record.result is not None), None)
    gap = standing.gap(standing.best)
    known = comparison.no_schedule(label) if standing.best is None else ""
    if gap is not None and gap <= 0:
        known = "proved optimal" if standing.optimal else "first level proved optimal"
    return {
        "problem": label,
        "best": standing.best,
        "best_solver": standing.best_solver,
        "bound": standing.bound,
        "bound_source": standing.bound_source,
        "gap": gap,
        "known": known,
        "kind": kind_of(None if result is None else first_level(result["objective_name"])),
        "resolution": None if result is None else result["resolution"],
    }


def _profile(comparison: Comparison) -> list[dict[str, Any]]:
    """Return one line per solver, from ratio 1 to the largest ratio of any solver."""
    profile = comparison.profile()
    end = max((ratio for steps in profile.values() for ratio, _ in steps), default=1.0)
    lines = []
    for solver, stroke in _strokes(comparison).items():
        steps = profile[solver]
        first = [] if steps and steps[0][0] == 1 else [(1.0, 0.0)]
        last = (end, steps[-1][1] if steps else 0.0)
        points = [*first, *steps, last]
        lines.append({"label": solver, "color": stroke.color, "dashes": list(stroke.dashes), "points": points})
    return lines


def _strokes(comparison: Comparison) -> dict[str, Stroke]:
    """Return the line style of each solver, best solver first, as in the plots."""
    order = comparison.ranking
    return dict(zip(order, strokes(len(order)), strict=True))


def comparison_summary(comparison: Comparison) -> dict[str, Any]:
    """Return the head of the page."""
    missing = comparison.expected - len(comparison.records)
    return {
        "subtitle": f"{counted(len(comparison.solvers), 'solver')} on {counted(len(comparison.by_problem), 'problem')}",
        "status": {"kind": "bad", "text": f"stopped with {counted(missing, 'run')} left"} if missing > 0 else None,
        "facts": [],
        "message": "",
        "violations": [],
    }


def comparison_convergence(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the incumbents and bounds of each solver over time, for each problem with reported progress."""
    lines = _strokes(comparison)
    groups = []
    for label, records in comparison.by_problem.items():
        series: list[dict[str, Any]] = []
        for record in records:
            if record.result is None or not record.progress or record.seed != min(each.seed for each in records):
                continue
            stroke = lines[solver_label(record)]
            values = [(seconds, value) for seconds, value, _ in record.progress if value is not None]
            bounds = [(seconds, bound) for seconds, _, bound in record.progress if bound is not None]
            end = max(record.progress[-1][0], (record.result.get("wall_time") or {}).get("solve") or 0.0)
            for points, name, dashes in ((values, "", list(stroke.dashes)), (bounds, ": bound", [2, 3])):
                if points:
                    points = [*points, (end, points[-1][1])]
                    title = f"{solver_label(record)}{name}"
                    series.append({"label": title, "color": stroke.color, "dashes": dashes, "points": points})
        if series:
            result = next(record.result for record in records if record.result is not None)
            kind, resolution = kind_of(first_level(result["objective_name"])), result["resolution"]
            groups.append({"label": label, "kind": kind, "resolution": resolution, "series": series})
    return groups


def _run(row: dict[str, Any]) -> dict[str, Any]:
    name, verdict = row["objective_name"], row["verdict"]
    good = verdict == "feasible"
    message = row["message"].removeprefix(f"{verdict} ")
    shown = (
        "problem", "solver", "seed", "resolution", "gap", "ratio", "latency", "slr", "seconds", "process_memory",
        "peak_memory", "certificate",
    )  # fmt: skip
    return {key: row[key] for key in shown} | {
        "objective": row["objective"] if good else None,
        "kind": kind_of(None if name is None else first_level(name)),
        "good": good,
        "verdict": verdict if good or not message else f"{verdict}: {message}",
    }
