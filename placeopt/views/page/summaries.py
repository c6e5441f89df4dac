"""What stands at the top of the page, and the course of a solve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from placeopt.bounding.quick import best_bound
from placeopt.errors import counted
from placeopt.model.objective import Value
from placeopt.model.problem import Metric, Problem
from placeopt.model.units import time_text
from placeopt.solving.result import Result, number, relative_gap
from placeopt.verifier import Report, Violation
from placeopt.views.facts import MEANING, applied_text, first_metric, problem_line, value_text
from placeopt.views.plots.palette import HUES

_KINDS: dict[Metric, str] = {
    "makespan": "ticks", "total_cost": "ticks", "max_load": "ticks", "communication": "bytes", "energy": "nanojoules",
    "memory_balance": "millionths", "relocation": "ticks",
}  # fmt: skip

Fact = tuple[str, str, str]
"""A term, what it says, and a remark."""


def kind_of(metric: str | None) -> str:
    """How the page writes values of a metric; None for a weighted one or a sum."""
    return next((kind for name, kind in _KINDS.items() if name == metric), "number")


def result_summary(result: Result) -> dict[str, Any]:
    """The summary of a solve."""
    problem = result.problem
    solved = "" if result.wall_time.solve is None else f"in {result.wall_time.solve:.2f} s, seed {result.seed}"
    facts = _values(problem, result.values) + _bounds(problem, result.bound, result.bound_source, result.gap)
    facts.append(("solver", result.solver, solved))
    facts.append(("termination", MEANING[result.termination], ""))
    if result.passes is not None and result.passes.names:
        facts.append(("passes", applied_text(result.passes), ""))
    return {
        "subtitle": _subtitle(problem),
        "status": _status(result.feasible, len(result.violations)),
        "facts": facts,
        "message": result.message,
        "violations": _violations(result.violations),
    }


def plan_summary(problem: Problem, report: Report) -> dict[str, Any]:
    """The summary of a plan that the verifier has looked at, with the best of the quick bounds, as of a solve.

    Of a plan that breaks rules neither bound nor gap is told: the problem may have no schedule, so that a bound of it
    means nothing.
    """
    facts = _values(problem, report.objective)
    if report.feasible and report.objective:
        bound = best_bound(problem)
        facts += _bounds(problem, bound.value, bound.name, relative_gap(report.objective[0], bound.value))
    return {
        "subtitle": _subtitle(problem),
        "status": _status(report.feasible, len(report.violations)),
        "facts": facts,
        "message": problem.description,
        "violations": _violations(report.violations),
    }


def convergence(result: Result) -> list[dict[str, Any]]:
    """The incumbents and bounds of a solve over time; nothing if it told of none."""
    if not result.progress:
        return []
    values: list[tuple[float, float]] = []
    bounds: list[tuple[float, float]] = []
    end = max(result.wall_time.solve or 0.0, result.progress[-1].elapsed)
    states = [(each.elapsed, each.objective, each.bound) for each in result.progress]
    for seconds, value, bound in [*states, (end, result.objective if result.feasible else None, result.bound)]:
        for points, told in ((values, value), (bounds, bound)):
            if told is not None:
                points.append((seconds, float(told)))
    series: list[dict[str, Any]] = [
        {"label": "best schedule", "color": HUES[0], "dashes": [], "points": values},
        {"label": "bound", "color": HUES[5], "dashes": [6, 3], "points": bounds},
    ]
    return [
        {
            "label": result.problem.name,
            "kind": kind_of(first_metric(result.problem)),
            "resolution": result.resolution,
            "series": [line for line in series if line["points"]],
        }
    ]


def _subtitle(problem: Problem) -> str:
    line = problem_line(problem)
    return f"{line[line.index(': ') + 2 :] if ': ' in line else line}, a tick is {time_text(1, problem.resolution)}"


def _status(feasible: bool | None, violations: int) -> dict[str, str]:
    if feasible is None:
        return {"kind": "none", "text": "no schedule"}
    if feasible:
        return {"kind": "good", "text": "\u2713 verified: every rule is kept"}
    return {"kind": "bad", "text": f"\u2717 rejected by the verifier: {counted(violations, 'violation')}"}


def _values(problem: Problem, values: Sequence[Value] | None) -> list[Fact]:
    facts: list[Fact] = []
    for level, value in enumerate(values or ()):
        terms = problem.objective.levels[level]
        metric = terms[0].metric if len(terms) == 1 and terms[0].weight == 1 else None
        name = metric.replace("_", " ") if metric else "objective"
        exact = f"{number(value):,} ticks" if kind_of(metric) == "ticks" else ""
        facts.append((name if level == 0 else f"then {name}", value_text(value, problem, metric, ticks=False), exact))
    return facts


def _bounds(problem: Problem, bound: Value | None, source: str | None, gap: float | None) -> list[Fact]:
    facts: list[Fact] = []
    if bound is not None:
        said = value_text(bound, problem, first_metric(problem), ticks=False)
        facts.append(("bound", said, f"proved by {source}"))
    if gap is not None:
        optimal = gap <= 0 and len(problem.objective.levels) == 1
        least = "the schedule is optimal" if optimal else "no schedule is better by more than this share"
        facts.append(("gap", f"{gap:.2%}", least))
    return facts


def _violations(violations: Sequence[Violation]) -> list[dict[str, str]]:
    return [{"rule": found.rule.value, "message": found.message} for found in violations]
