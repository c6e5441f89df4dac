"""Convert results and plans to the head of the page, and a solve to its convergence chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from placeopt.bounding.quick import best_bound
from placeopt.model.objective import Value
from placeopt.model.problem import Metric, Objective, Problem
from placeopt.model.resource_use import use_facts
from placeopt.model.schedule import Schedule
from placeopt.model.units import time_text
from placeopt.orchestration.result import Result, number, relative_gap
from placeopt.verifier import Report, Violation
from placeopt.views.facts import (
    MEANING,
    applied_text,
    pipeline_facts,
    problem_line,
    unit_metric,
    value_text,
    verdict_text,
)
from placeopt.views.plots.palette import HUES

_KINDS: dict[Metric, str] = {
    "makespan": "ticks", "period": "ticks", "total_cost": "ticks", "max_load": "ticks", "communication": "bytes",
    "energy": "nanojoules", "memory_balance": "millionths", "relocation": "ticks",
    "tardiness": "ticks", "price": "billionths",
}  # fmt: skip

Fact = tuple[str, str, str]
"""A label, a text and a remark."""


def kind_of(metric: str | None) -> str:
    """Return how the page formats values of a metric; None is a weighted metric or a sum."""
    return next((kind for name, kind in _KINDS.items() if name == metric), "number")


def result_summary(result: Result) -> dict[str, Any]:
    """Return the head of the page of a solve."""
    problem = result.problem
    solved = "" if result.wall_time.solve is None else f"in {result.wall_time.solve:.2f} s, seed {result.seed}"
    facts = _values(problem, result.values) + _bounds(problem, result.bound, result.bound_source, result.gap)
    if result.checked is not None:
        facts.append(
            (
                "certificate",
                "all computed" if result.checked.complete else "trusted" if result.checked.unchecked else "in part",
                str(result.checked),
            )
        )
    if result.period is not None and result.schedule is not None:
        facts += pipeline_facts(problem, result.schedule)
    if result.schedule is not None and result.values is not None:
        facts += use_facts(problem, result.schedule)
    facts.append(("solver", result.solver, solved))
    facts.append(("termination", MEANING[result.termination], ""))
    if result.passes is not None and result.passes.names:
        facts.append(("passes", applied_text(result.passes), ""))
    return _summary(problem, facts, result.message, result.feasible, result.violations)


def plan_summary(problem: Problem, schedule: Schedule, report: Report) -> dict[str, Any]:
    """Return the head of the page of a verified plan, with the best quick bound.

    A plan that breaks rules gets neither bound nor gap: the problem may be infeasible, and then a bound means nothing.
    """
    facts = _values(problem, report.objective)
    if problem.pipeline is not None and report.objective is not None:
        facts += pipeline_facts(problem, schedule)
    if report.feasible and report.objective:
        bound = best_bound(problem)
        facts += _bounds(problem, bound.value, bound.name, relative_gap(report.objective[0], bound.value))
    if report.objective is not None:
        facts += use_facts(problem, schedule)
    return _summary(problem, facts, problem.description, report.feasible, report.violations)


def convergence(result: Result) -> list[dict[str, Any]]:
    """Return the incumbents and bounds of a solve over time; an empty list if the solver reported none."""
    if not result.progress:
        return []
    values: list[tuple[float, float]] = []
    bounds: list[tuple[float, float]] = []
    end = max(result.wall_time.solve or 0.0, result.progress[-1].elapsed)
    states = [(each.elapsed, each.objective, each.bound) for each in result.progress]
    for seconds, value, bound in [*states, (end, result.objective if result.feasible else None, result.bound)]:
        for points, reported in ((values, value), (bounds, bound)):
            if reported is not None:
                points.append((seconds, float(reported)))
    series: list[dict[str, Any]] = [
        {"label": "best schedule", "color": HUES[0], "dashes": [], "points": values},
        {"label": "bound", "color": HUES[5], "dashes": [6, 3], "points": bounds},
    ]
    return [
        {
            "label": result.problem.name,
            "kind": kind_of(result.problem.objective.leading_metric),
            "resolution": result.resolution,
            "series": [line for line in series if line["points"]],
        }
    ]


def _summary(
    problem: Problem, facts: list[Fact], message: str, feasible: bool | None, violations: Sequence[Violation]
) -> dict[str, Any]:
    kind, sign = {None: ("none", ""), True: ("good", "\u2713 "), False: ("bad", "\u2717 ")}[feasible]
    return {
        "subtitle": f"{problem_line(problem).partition(': ')[2]}, a tick is {time_text(1, problem.resolution)}",
        "status": {"kind": kind, "text": sign + verdict_text(feasible, len(violations))},
        "facts": facts,
        "message": message,
        "violations": [{"rule": found.rule.value, "message": found.message} for found in violations],
    }


def _values(problem: Problem, values: Sequence[Value] | None) -> list[Fact]:
    facts: list[Fact] = []
    for level, value in enumerate(values or ()):
        objective = Objective((problem.objective.levels[level],))
        name = objective.single.replace("_", " ") if objective.single else "objective"
        unit = unit_metric(objective)
        exact = f"{number(value):,} ticks" if kind_of(unit) == "ticks" else ""
        facts.append((name if level == 0 else f"then {name}", value_text(value, problem, unit, ticks=False), exact))
    return facts


def _bounds(problem: Problem, bound: Value | None, source: str | None, gap: float | None) -> list[Fact]:
    facts: list[Fact] = []
    if bound is not None:
        shown = value_text(bound, problem, unit_metric(problem.objective), ticks=False)
        facts.append(("bound", shown, f"proved by {source}"))
    if gap is not None:
        optimal = gap <= 0 and len(problem.objective.levels) == 1
        meaning = "the schedule is optimal" if optimal else "no schedule is better by more than this share"
        facts.append(("gap", f"{gap:.2%}", meaning))
    return facts
