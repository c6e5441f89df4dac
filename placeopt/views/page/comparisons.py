"""A comparison as data of the page: solvers, runs, performance profile, and how the runs converged."""

from __future__ import annotations

from typing import Any

from placeopt.errors import counted
from placeopt.studies.comparison.result import Comparison
from placeopt.studies.comparison.tables import solver_label
from placeopt.views.page.summaries import kind_of
from placeopt.views.plots.palette import Stroke, strokes


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """Tables and profile."""
    common = comparison.common()
    over = counted(len(common), "problem")
    note = (
        f"{counted(len(comparison.records), 'run')} of {counted(len(comparison.solvers), 'solver')} on "
        f"{counted(len(comparison.by_problem), 'problem')}. Mean ratios are geometric; they and mean gaps are over the "
        f"{over} that every solver solved that solved half of them. Gaps are held against the best bound that any run "
        "proved."
    )
    return {
        "note": note,
        "problems": [_problem(comparison, label) for label in comparison.by_problem],
        "solvers": [
            {
                "solver": row["solver"],
                "ratio": row["ratio"],
                "gap": row["gap"],
                "wins": row["wins"],
                "feasible": row["solved"],
                "infeasible": row["infeasible"],
                "failed": row["failed"],
                "refused": row["refused"],
                "seconds": row["seconds"],
            }
            for row in comparison.summary()
        ],
        "runs": [_run(row) for row in comparison.rows()],
        "profile": _profile(comparison) if len(comparison.by_problem) > 1 else None,
    }


def _problem(comparison: Comparison, label: str) -> dict[str, Any]:
    """What all runs together know of a problem."""
    standing = comparison.standings[label]
    result = next((record.result for record in comparison.by_problem[label] if record.result is not None), None)
    gap = standing.gap(standing.best)
    known = "" if standing.best is not None else "no feasible schedule"
    if any(entry.verdict == "no solution" for entry in comparison.entries[label]):
        known = "proved to have no schedule"
    elif gap is not None and gap <= 0:
        known = "proved optimal"
    return {
        "problem": label,
        "best": standing.best,
        "best_solver": standing.best_solver,
        "bound": standing.bound,
        "bound_source": standing.bound_source,
        "gap": gap,
        "known": known,
        "kind": kind_of(None if result is None else result["objective_name"].split(", then ")[0]),
        "resolution": None if result is None else result["resolution"],
    }


def _profile(comparison: Comparison) -> list[dict[str, Any]]:
    """A line a solver, from ratio 1 to the largest that any has."""
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
    """How each solver is drawn, the best first: in the colours of the pictures."""
    order = comparison.ranking
    return dict(zip(order, strokes(len(order)), strict=True))


def comparison_summary(comparison: Comparison) -> dict[str, Any]:
    """What stands at the top."""
    missing = comparison.expected - len(comparison.records)
    return {
        "subtitle": f"{counted(len(comparison.solvers), 'solver')} on {counted(len(comparison.by_problem), 'problem')}",
        "status": {"kind": "bad", "text": f"stopped before {counted(missing, 'run')}"} if missing > 0 else None,
        "facts": [],
        "message": "",
        "violations": [],
    }


def comparison_convergence(comparison: Comparison) -> list[dict[str, Any]]:
    """For each problem with runs that told how they went, the incumbents of each solver and the best of the bounds."""
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
            groups.append({
                "label": label,
                "kind": kind_of(result["objective_name"].split(", then ")[0]),
                "resolution": result["resolution"],
                "series": series,
            })  # fmt: skip
    return groups


def _run(row: dict[str, Any]) -> dict[str, Any]:
    name, verdict = row["objective_name"], row["verdict"]
    good = verdict == "feasible"
    message = row["message"].removeprefix(f"{verdict} ")
    return {
        "problem": row["problem"],
        "solver": row["solver"],
        "seed": row["seed"],
        "objective": row["objective"] if good else None,
        "kind": kind_of(None if name is None else name.split(", then ")[0]),
        "resolution": row["resolution"],
        "gap": row["gap"],
        "ratio": row["ratio"],
        "slr": row["slr"],
        "seconds": row["seconds"],
        "memory": row["peak_memory"],
        "good": good,
        "verdict": verdict if good or not message else f"{verdict}: {message}",
    }
