"""Problems and results in words, for a terminal, a notebook and `print` alike."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from placeopt.errors import visible
from placeopt.ir import UNLIMITED, Metric, Problem
from placeopt.markup import facts_table, framed, grid_table, note
from placeopt.metrics import ccr
from placeopt.objective import Value
from placeopt.overview import counted, rounding_text, sizes
from placeopt.solver import Termination
from placeopt.units import size_text, time_text

if TYPE_CHECKING:
    from placeopt.passes import Applied
    from placeopt.result import DeviceUse, Result

SHOWN = 20
"""Violations, and devices of a notebook's table, that are shown."""

MEMBERS = 6
"""Members of a portfolio that are shown, best first."""

SLOWED = 0.1
"""Share of a solve during which kernels were compiled, from which on the result reports it."""

VARYING = {
    "clock": "no: the clock ended it, so that another run may find another schedule",
    "threads": "no: several threads searched; with --workers 1 the same seed gives the same schedule",
}
"""Texts for `Result.varies_by`."""

DEVICE_HEADERS = ("device", "type", "tasks", "busy", "share", "memory", "of capacity")
"""Columns of `device_cells`; the first two hold words."""

MEANING = {
    Termination.OPTIMAL: "optimal: no schedule is better",
    Termination.INFEASIBLE: "infeasible: no schedule exists",
    Termination.COMPLETED: "completed",
    Termination.TIME_LIMIT: "time limit reached",
    Termination.INTERRUPTED: "interrupted",
    Termination.FAILED: "failed",
}


def problem_line(problem: Problem) -> str:
    """A problem in a line: sizes, CCR, memory asked and there."""
    asked = int(problem.memory.sum() if problem.memory_model == "sum" else problem.resident.sum())
    capacity = [int(amount) for amount in problem.capacity if amount != UNLIMITED]
    there = size_text(sum(capacity)) if len(capacity) == problem.n_devices else "unlimited"
    ratio = ccr(problem)
    shown = "-" if ratio is None else f"{ratio:.3g}"
    return f"{visible(problem.name) or 'problem'}: {sizes(problem)}, CCR {shown}, memory {size_text(asked)} of {there}"


def value_text(value: Value, problem: Problem, metric: Metric | None, *, ticks: bool = True) -> str:
    """An objective value for people, in the unit of its metric; times with their ticks unless told otherwise."""
    return amount_text(value, metric, problem.resolution, ticks=ticks)


def amount_text(value: Value | float, metric: str | None, resolution: Fraction, *, ticks: bool = True) -> str:
    """An objective value for people, where a tick takes `resolution` seconds; see `value_text`."""
    if metric in ("makespan", "total_cost", "max_load", "relocation"):
        time = time_text(float(value), resolution)
        exact = f"{value:,}" if isinstance(value, int) else f"{float(value):,.6g}"
        return f"{time} ({exact} tick{'' if value == 1 else 's'})" if ticks else time
    if metric == "communication":
        return size_text(int(value))
    if metric == "energy":
        return f"{float(value) / 1e9:.6g} J"
    if metric == "memory_balance":
        return f"{float(value) / 1e4:.4g} %"
    return f"{float(value):,.10g}"


def first_metric(problem: Problem) -> Metric | None:
    """The metric of the objective's first level, None if that is a weighted one or a sum."""
    first, *others = problem.objective.levels[0]
    return first.metric if not others and first.weight == 1 else None


def change_text(before: dict[str, int], after: dict[str, int]) -> str:
    """The sizes that differ: 235 -> 129 tasks, 301 -> 160 edges."""
    parts = [f"{before[key]:,} -> {after[key]:,} {key}" for key in before if before[key] != after[key]]
    return ", ".join(parts) or "the same size"


def applied_text(applied: Applied) -> str:
    """What passes did, in a line."""
    data = applied.to_dict()
    inexact = "" if applied.exact else "; the optimum may be lost"
    return f"{', '.join(applied.names)}: {change_text(data['before'], data['after'])}{inexact}"


def result_facts(result: Result) -> list[tuple[str, str]]:
    """Labels and texts: why the solver stopped, what passes did, the objective, its bound and gap."""
    problem = result.problem
    metric = first_metric(problem)
    seconds = result.wall_time.solve or 0.0
    facts = [("termination", f"{MEANING[result.termination]} ({result.solver}, {seconds:.2f} s)")]
    if result.message:
        facts.append(("", result.message))
    if (result.wall_time.compiling or 0.0) >= SLOWED * seconds > 0:
        facts.append(("compiling", _compiling_text(result.wall_time.compiling or 0.0, seconds)))
    if result.varies_by:
        facts.append(("repeatable", VARYING[result.varies_by]))
    if result.passes is not None and result.passes.names:
        facts.append(("passes", applied_text(result.passes)))
    if result.objective is not None:
        facts.append(("objective", f"{problem.objective} = {value_text(result.objective, problem, metric)}"))
        for level, value in enumerate((result.values or ())[1:], start=1):
            facts.append(("", f"then {value_text(value, problem, problem.objective.levels[level][0].metric)}"))
    facts += _portfolio_facts(result)
    if result.bound is not None:
        facts.append(("bound", f"{value_text(result.bound, problem, metric)}, proved by {result.bound_source}"))
    if result.gap is not None:
        proved = ", the schedule is optimal" if result.gap <= 0 and len(problem.objective.levels) == 1 else ""
        facts.append(("gap", f"{result.gap:.2%}{proved}"))
    rounded = rounding_text(problem)
    return facts if rounded is None else [*facts, ("rounding", rounded)]


def _compiling_text(compiling: float, seconds: float) -> str:
    return (
        f"{min(compiling, seconds):.2f} s of the {seconds:.2f} s: plain Python ran while kernels were compiled, once "
        "on this machine; another run finds more, and `placeopt warm` compiles all kernels"
    )


def _portfolio_facts(result: Result) -> list[tuple[str, str]]:
    """Which member of a portfolio found the schedule, and the best of what the members came up with."""
    if not result.stats.get("found by"):
        return []
    metric, resolution = first_metric(result.problem), result.problem.resolution
    entries = [entry for entry in result.stats.get("members", ()) if entry["value"] is not None]
    shown = [
        f"{entry['name']} {amount_text(entry['value'], metric, resolution, ticks=False)} in {entry['seconds']:.2f} s"
        for entry in sorted(entries, key=lambda entry: float(entry["value"]))[:MEMBERS]
    ]
    more = len(entries) - len(shown)
    shown += [f"{more} more in --json"] if more > 0 else []
    return [("found by", visible(str(result.stats["found by"]))), ("members", "; ".join(shown))]


def device_cells(use: DeviceUse, makespan: int, resolution: Fraction) -> tuple[str, ...]:
    """What a schedule asks of a device, under DEVICE_HEADERS."""
    share = use.busy / makespan if makespan else 0.0
    capacity = "unlimited"
    if use.capacity is not None:
        part = f" ({use.memory / use.capacity:.1%})" if use.capacity else ""
        capacity = f"{size_text(use.capacity)}{part}"
    return (
        visible(use.name, 40), visible(use.type, 20), f"{use.tasks:,}", time_text(use.busy, resolution),
        f"{share:.1%}", size_text(use.memory), capacity,
    )  # fmt: skip


def verdict_lines(result: Result) -> list[str]:
    """What the verifier says, the first violations in full."""
    if result.feasible is None:
        return ["no schedule"]
    if result.feasible:
        return ["feasible: the verifier found no violation"]
    lines = [f"infeasible: {counted(len(result.violations), 'violation')}"]
    lines += [f"{violation.rule.value}: {violation.message}" for violation in result.violations[:SHOWN]]
    if len(result.violations) > SHOWN:
        lines.append(f"and {len(result.violations) - SHOWN:,} more")
    return lines


def result_text(result: Result) -> str:
    """The result as `repr` shows it."""
    words = [result.termination.value]
    if result.objective is not None:
        metric = first_metric(result.problem)
        words.append(f"{result.problem.objective} {value_text(result.objective, result.problem, metric, ticks=False)}")
    if result.gap is not None:
        words.append(f"gap {result.gap:.2%}")
    words.append({None: "no schedule", True: "feasible", False: "not feasible"}[result.feasible])
    return f"<Result of {result.solver} on {visible(result.problem.name) or 'problem'}: {', '.join(words)}>"


def result_summary(result: Result) -> str:
    """All that `placeopt solve` prints, in plain text."""
    facts = result_facts(result)
    wide = max(len(label) for label, _ in facts)
    lines = [problem_line(result.problem), *(f"{label:<{wide}}  {text}".rstrip() for label, text in facts)]
    if result.devices:
        lines += aligned([DEVICE_HEADERS, *_cells(result)], left=2)
    return "\n".join([*lines, *verdict_lines(result)])


def result_html(result: Result) -> str:
    """The result as a notebook shows it."""
    parts = [facts_table(result_facts(result))]
    if result.devices:
        busiest = sorted(range(len(result.devices)), key=lambda d: -result.devices[d].busy)[:SHOWN]
        cells = _cells(result)
        parts.append(grid_table(DEVICE_HEADERS, [cells[d] for d in sorted(busiest)], left=2))
    if len(result.devices) > SHOWN:
        parts.append(note(f"and {counted(len(result.devices) - SHOWN, 'device')} with no more to do"))
    return framed(problem_line(result.problem), *parts, *map(note, verdict_lines(result)))


def aligned(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Rows of cells as lines of text in columns, the first `left` of them set to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if k < left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _cells(result: Result) -> list[tuple[str, ...]]:
    return [device_cells(use, result.makespan or 0, result.problem.resolution) for use in result.devices]
