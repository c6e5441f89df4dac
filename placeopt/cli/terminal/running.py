"""Print the report of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from rich.console import Console
from rich.text import Text

from placeopt.bridges.running.pool import HOST
from placeopt.bridges.running.prediction import Prediction
from placeopt.bridges.running.report import RunReport
from placeopt.cli.terminal.console import facts_table, new_table
from placeopt.errors import counted, visible
from placeopt.model.units import seconds_text

SHOWN = 20
"""Maximum number of segments that are printed: those with the longest measured times."""

VARYING = 2
"""Ratio of the longest run to the shortest one from which on a cause is stated."""


def print_run(console: Console, report: RunReport) -> None:
    """Print the segments with predicted and measured times, the whole run, and whether outputs are equal."""
    measured = report.measured
    table = new_table("segment", "device", "tasks", "predicted", *_fitted("fitted", report), "measured", "off", left=2)
    best = report.fitted or report.predicted
    longest = np.sort(np.argsort(-measured, kind="stable")[:SHOWN])
    for k in longest.tolist():
        device = report.device_names[int(report.segment_device[k])]
        comparable = report.fitted is not None or device not in report.stand_ins
        table.add_row(
            *map(Text, (
                str(k),
                visible(device, 30),
                f"{len(report.segment_tasks[k]):,}",
                _time(float(report.predicted.busy[k])),
                *_fitted(None if report.fitted is None else _time(float(report.fitted.busy[k])), report),
                _time(float(measured[k])),
                _off(float(best.busy[k]), float(measured[k])) if comparable else "",
            ))
        )  # fmt: skip
    console.print(table)
    if len(measured) > SHOWN:
        console.print(f"  and {len(measured) - SHOWN:,} segments with shorter times; --json lists all of them")
    console.print()
    whole = new_table("", "predicted", *_fitted("fitted", report), "measured", "off")
    one = float(np.median(report.one_device))
    sessions = [
        _row(f"unsplit model, {place}", report, lambda _: None, float(np.median(each)))
        for place, each in report.elsewhere.items()
    ]
    if report.one_session is not None:
        label, median = f"unsplit model, {report.session_threads} threads", float(np.median(report.one_session))
        sessions.append(_row(label, report, lambda _: None, median))
    for row in (
        _row("whole run, segments", report, lambda p: p.makespan, report.makespan),
        _row("whole run, task by task", report, lambda p: p.tasks, None),
        *([] if report.period is None else [_row("period", report, lambda p: p.period, report.period)]),
        _row("unsplit model, one device", report, lambda p: p.one_device, one),
        *sessions,
    ):
        whole.add_row(*map(Text, row))
    console.print(whole)
    console.print()
    console.print(facts_table(_facts(report)))


def _row(
    label: str, report: RunReport, value: Callable[[Prediction], float | None], measured: float | None
) -> list[str]:
    def shown(prediction: Prediction | None) -> str:
        found = None if prediction is None else value(prediction)
        return "" if found is None else _time(found)

    best = value(report.fitted or report.predicted)
    comparable = report.fitted is not None or not report.stand_ins
    return [
        label,
        shown(report.predicted),
        *_fitted(shown(report.fitted), report),
        "" if measured is None else _time(measured),
        "" if measured is None or best is None or not comparable else _off(best, measured),
    ]


def _fitted(cell: str | None, report: RunReport) -> list[str]:
    """A cell of the column of fitted times, which exists only with a fit."""
    return [] if report.fitted is None else [cell or ""]


def _facts(report: RunReport) -> list[tuple[str, str]]:
    worst = max(report.differences, key=lambda each: each.relative, default=None)
    facts = []
    if worst is not None:
        verdict = "equal" if report.equal else "different"
        facts.append((
            "outputs",
            f"{verdict}: largest difference {worst.relative:.2g} relative, {worst.absolute:.2g} absolute "
            f"({visible(worst.output, 40)}); the limit is {report.tolerance:g}",
        ))  # fmt: skip
    ends = report.end.max(axis=1)
    shortest, longest = float(ends.min()), float(ends.max())
    varying = "; other programs may use the cores" if longest > VARYING * shortest else ""
    facts.append(("runs", f"{report.runs:,}, of {_time(shortest)} to {_time(longest)}{varying}"))
    if len(report.segment_tasks) == 1:
        facts.append(("speedup", "none: the plan has one segment, which is the unsplit model"))
    else:
        facts += _speedup(report)
    if errors := _errors(report):
        facts.append(("error", errors))
    if report.fit is not None:
        measured = f"{report.fit.measured_tasks:,} of {counted(report.fit.problem.n_tasks, 'task')}"
        costs = report.fit.costs
        if len(report.device_names) > 1:
            rate = "" if costs.transfer.bandwidth is None else f" and {costs.transfer.bandwidth / 1e9:.3g} GB/s"
            measured += f"; a transfer takes {_time(costs.transfer.latency)}{rate}"
        facts.append(("measured", f"{measured}; a segment adds {_time(costs.mean_segment + costs.pause)}"))
        used = len(set(report.segment_device.tolist()))
        if (slowest := report.fit.slowdown[used - 1]) > 1:
            busy = f"{used} processes"
            facts.append(("contention", f"segments take {slowest:.2f} times as long while {busy} are busy"))
    if any(report.cores.values()) or set(report.places.values()) != {HOST}:
        shown = ", ".join(
            f"{visible(name, 30)} on {place if place != HOST else _cores(report.cores[name])}"
            for name, place in list(report.places.items())[:8]
        )
        facts.append(("processes", shown + (", ..." if len(report.cores) > 8 else "")))
    return facts


def _cores(cores: Sequence[int]) -> str:
    return f"core {'+'.join(map(str, cores))}" if cores else HOST


def _speedup(report: RunReport) -> list[tuple[str, str]]:
    """The speedup of the plan over each alternative, and the fastest one."""
    seconds = report.alternatives
    plan = seconds["the plan"]
    if not plan:
        return []
    others = {name: each for name, each in seconds.items() if name != "the plan"}
    ratios = ", ".join(f"{each / plan:.2f} over {name}" for name, each in others.items())
    best = min(seconds, key=lambda name: seconds[name])
    second = min(others, key=lambda name: others[name]) if best == "the plan" else "the plan"
    what = "" if report.period is None else " for a result"
    shown = f"{best}: {_time(seconds[best])}{what}, against {_time(seconds[second])} for {second}"
    return [("speedup", ratios), ("fastest", shown)]


def _errors(report: RunReport) -> str:
    """The median deviations of segments; the problem does not predict times of stand-ins."""
    device = report.segment_device.tolist()
    own = np.array([report.device_names[d] not in report.stand_ins for d in device], dtype=np.bool_)
    texts = []
    for name, prediction, which in (("predicted", report.predicted, own), ("fitted", report.fitted, True)):
        known = which & (report.measured > 0)
        if prediction is not None and known.any():
            off = np.median(np.abs(prediction.busy[known] / report.measured[known] - 1))
            texts.append(f"{name} times by {float(off):.1%}")
    return f"segments differ from measured times: {', '.join(texts)} (median)" if texts else ""


def _off(predicted: float, measured: float) -> str:
    """The deviation of a prediction from a measurement."""
    if measured <= 0:
        return ""
    deviation = predicted / measured - 1
    return f"{deviation:+z.0%}" if abs(deviation) < 10 else f"x {predicted / measured:,.0f}"


def _time(seconds: float) -> str:
    return seconds_text(seconds, 5)
