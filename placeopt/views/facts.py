"""Describe problems and results as text, the same for terminal, notebook, page and `print`."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.errors import counted, visible
from placeopt.model.arrays import Int, by_index
from placeopt.model.metrics import ccr
from placeopt.model.modes import homes, memory_capacity, own_devices
from placeopt.model.notebook import grid_table
from placeopt.model.objective import IN_TICKS, Value
from placeopt.model.period import period
from placeopt.model.pipeline import UNBOUNDED
from placeopt.model.problem import Metric, Objective, Problem, sizes
from placeopt.model.schedule import Schedule, durations, edge_transfers, makespan
from placeopt.model.stage_use import StageUse, idle_devices, idle_share, stage_uses
from placeopt.model.stages import rules
from placeopt.model.units import seconds_text, size_text, time_text
from placeopt.protocol import Termination

if TYPE_CHECKING:
    from placeopt.model.metrics import DeviceUse
    from placeopt.passes import Applied

Amount = Callable[[float], str]
"""Formats a value of an objective."""

LISTED = 3
"""Maximum number of devices of a team, and of stages of a device, that are listed."""
SHOWN = 20
"""Maximum number of violations, and of device rows in a notebook, that are shown."""

DEVICE_HEADERS = ("device", "type", "tasks", "busy", "share", "memory", "of capacity")
"""Columns of `device_cells`; the first two hold text."""
TASK_HEADERS = ("task", "device", "start", "end")
"""Columns of `task_cells`; the first two hold text."""

MEANING = {
    Termination.OPTIMAL: "optimal: no schedule is better",
    Termination.INFEASIBLE: "infeasible: no schedule exists",
    Termination.COMPLETED: "completed",
    Termination.TIME_LIMIT: "time limit reached",
    Termination.INTERRUPTED: "interrupted",
    Termination.FAILED: "failed",
}


def problem_line(problem: Problem) -> str:
    """Describe a problem in one line: sizes, CCR, required and available memory."""
    live = problem.memory_model == "peak"  # then only resident bytes need memory at all times
    required = int((problem.resident if live else problem.memory).sum())
    capacity = [memory_capacity(problem, d) for d in own_devices(problem)]
    known = [amount for amount in capacity if amount is not None]
    available = size_text(sum(known)) if len(known) == len(capacity) else "unlimited"
    ratio = ccr(problem)
    shown = "-" if ratio is None else f"{ratio:.3g}"
    name = visible(problem.name) or "problem"
    return f"{name}: {sizes(problem)}, CCR {shown}, {'resident ' * live}memory {size_text(required)} of {available}"


def unit_metric(objective: Objective) -> Metric | None:
    """A metric in whose unit the first level is: its only one with weight 1, or one of several times; else None."""
    level = objective.levels[0]
    return level[0].metric if all(term.metric in IN_TICKS for term in level) else objective.leading_metric


def value_text(value: Value, problem: Problem, metric: Metric | None, *, ticks: bool = True) -> str:
    """Format an objective value in the unit of its metric; with `ticks`, times also show their exact ticks."""
    return amount_text(value, metric, problem.resolution, ticks=ticks)


def amount_text(value: Value | float, metric: str | None, resolution: Fraction, *, ticks: bool = True) -> str:
    """Format an objective value where a tick is `resolution` seconds; see `value_text`."""
    if metric in IN_TICKS:
        time = time_text(float(value), resolution)
        exact = f"{value:,}" if isinstance(value, int) else f"{float(value):,.6g}"
        return f"{time} ({exact} tick{'' if value == 1 else 's'})" if ticks else time
    if metric == "communication":
        return size_text(int(value))
    if metric == "energy":
        return f"{float(value) / 1e9:.6g} J"
    if metric == "price":
        return f"{float(value) / 1e9:,.6g}"
    if metric == "memory_balance":
        return f"{float(value) / 1e4:.4g} %"
    return f"{float(value):,.10g}"


def percent(share: float, *, up: bool = False) -> str:
    """Return a share in percent, rounded down or up, so that a claim about it stays true."""
    hundredths = share * 10_000
    whole = math.ceil(hundredths - 1e-7) if up else math.floor(hundredths + 1e-7)
    return f"{whole / 100:.2f}%"


def best_known_text(
    stated: Mapping[str, Any] | None, value: Value | float | None, bound: Value | float | None, amount: Amount
) -> str | None:
    """Describe the `best_known` of a problem file, and what a value and a bound of the first level say about it."""
    if stated is None:
        return None
    known, least = float(stated["objective"]), stated.get("bound")
    text = _whole_amount(known, amount)
    if least is not None:
        proved = float(least) == known
        text += ", proved optimal" if proved else f", with the bound {_whole_amount(float(least), amount)}"
    if bound is not None and float(bound) > known:
        return f"{text}; the bound proved here contradicts it"
    if value is not None and least is not None and float(value) < float(least):
        return f"{text}; the schedule found here contradicts its bound"
    return f"{text}; the schedule found here is better" if value is not None and float(value) < known else text


def _whole_amount(value: float, amount: Amount) -> str:
    return amount(int(value) if value.is_integer() else value)


def first_level(objective_name: str) -> str:
    """Return the first level of an objective's text: "makespan" of "makespan, then energy"."""
    return objective_name.partition(", then ")[0]


def verdict_text(feasible: bool | None, violations: int) -> str:
    """State what the verifier found; `feasible` is None without a schedule."""
    if feasible is None:
        return "no schedule"
    return (
        "feasible: the verifier found no violation" if feasible else f"infeasible: {counted(violations, 'violation')}"
    )


def task_traffic(problem: Problem, device: Int) -> tuple[Int, Int]:
    """Return the bytes (n,) that each task sends to other devices, and the bytes (n,) that it receives from them.

    A transfer that serves several consumers counts once for the producer and once for each consumer. Between modes of
    one device, nothing moves.
    """
    carrier, home, n = edge_transfers(problem, device), homes(problem)[device], problem.n_tasks
    moved = (carrier >= 0) & (home[problem.edge_source] != home[problem.edge_target])
    first = moved & (carrier == np.arange(problem.n_edges))
    sent = by_index(np.add, problem.edge_source[first], problem.payload[first], n)
    return sent, by_index(np.add, problem.edge_target[moved], problem.payload[moved], n)


def change_text(before: dict[str, int], after: dict[str, int]) -> str:
    """List the sizes that differ: 235 -> 129 tasks, 301 -> 160 edges."""
    parts = [f"{before[key]:,} -> {after[key]:,} {key}" for key in before if before[key] != after[key]]
    return ", ".join(parts) or "the same size"


def applied_text(applied: Applied) -> str:
    """Describe in one line what passes changed."""
    data = applied.to_dict()
    inexact = "" if applied.exact else "; the optimum may be lost"
    return f"{', '.join(applied.names)}: {change_text(data['before'], data['after'])}{inexact}"


def device_cells(use: DeviceUse, makespan: int, resolution: Fraction) -> tuple[str, ...]:
    """Format the use of a device as cells under DEVICE_HEADERS."""
    share = use.busy / makespan if makespan else 0.0
    capacity = "unlimited"
    if use.capacity is not None:
        part = f" ({use.memory / use.capacity:.1%})" if use.capacity else ""
        capacity = f"{size_text(use.capacity)}{part}"
    memory = size_text(use.memory)
    if use.swap:
        memory += f", {size_text(sum(use.tiers[1:]))} swapped in {time_text(use.swap, resolution)}"
    if use.height is not None:
        memory += f", height {size_text(use.height)}"
    return (
        visible(use.name, 40), visible(use.type, 20), f"{use.tasks:,}", time_text(use.busy, resolution),
        f"{share:.1%}", memory, capacity,
    )  # fmt: skip


def task_cells(problem: Problem, schedule: Schedule) -> list[tuple[str, ...]]:
    """Format the tasks by start as cells under TASK_HEADERS; those of equal start in the order of the problem."""
    ends = (schedule.start + durations(problem, schedule.device)).tolist()
    cells = []
    for i in np.argsort(schedule.start, kind="stable").tolist():
        times = (time_text(int(tick), problem.resolution) for tick in (schedule.start[i], ends[i]))
        cells.append((visible(problem.task_names[i]), visible(problem.device_names[schedule.device[i]], 40), *times))
    return cells


def aligned(rows: Sequence[Sequence[str]], left: int, words: Collection[int] = ()) -> list[str]:
    """Format rows as columns of text; the first `left` columns and those in `words` are left-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if k < left or k in words else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table as text: the first `left` columns and those in `words` hold words, the others numbers."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1
    words: tuple[int, ...] = ()
    title: str = ""
    notes: tuple[str, ...] = ()
    """Lines below the table."""

    def holds_words(self, column: int) -> bool:
        """Whether a column holds words, and is thus left-aligned."""
        return column < self.left or column in self.words

    def lines(self) -> list[str]:
        """The table as columns of text, without title and notes."""
        return aligned([self.headers, *self.rows], self.left, self.words)

    def html(self) -> str:
        """The table in HTML, without title and notes."""
        return grid_table(self.headers, self.rows, self.left, self.words)


def pipeline_facts(problem: Problem, schedule: Schedule) -> list[tuple[str, str, str]]:
    """Describe the latency of a pipeline, its results per second, and its idle time: labels, values and remarks."""
    ticks, latency = period(problem, schedule), makespan(problem, schedule)
    ratio = f"{latency / ticks:.3g}" if ticks else ""
    periods = f", {ratio} period{'s' * (ratio != '1')}" if ticks else ""
    facts = [("latency", time_text(latency, problem.resolution), f"from the start of a run to its result{periods}")]
    if ticks:
        idle, count = idle_share(problem, schedule)
        share, devices = f"{idle:.2%}", counted(count, "device")
        facts.append(("throughput", f"{float(1 / (ticks * problem.resolution)):,.4g}", "results per second"))
        facts.append(("idle", share, f"of the time of {devices}"))
    return facts


def pipeline_text(problem: Problem) -> str:
    """Describe the rules of a pipeline in one line."""
    pipeline = rules(problem)
    limit = int(pipeline.segments.min(initial=UNBOUNDED))
    some = "" if (pipeline.segments == limit).all() else " on some devices"
    parts = ["free stages" if limit == UNBOUNDED else f"up to {counted(limit, 'stage')} per device{some}"]
    if pipeline.contiguous:
        parts = ["contiguous stages"]
    for word, chosen in (
        ("computing overlaps transfers", pipeline.overlap),
        ("full duplex", pipeline.full_duplex),
        ("transfers without load", pipeline.free_transfers),
        ("launch time", pipeline.launch > 0),
    ):
        if chosen.any():
            parts.append(word if chosen.all() else f"{word} on {counted(int(chosen.sum()), 'device')}")
    parts += ["outputs sent once"] * pipeline.multicast + ["recomputation"] * pipeline.recompute
    if pipeline.replicas > 1:
        parts.append(f"up to {pipeline.replicas} replicas")
    if pipeline.in_flight != "none":
        runs = f" ({pipeline.microbatches:,} microbatches)" * (pipeline.in_flight == "gpipe")
        parts.append(f"outputs kept as for {pipeline.in_flight}{runs}")
    return ", ".join(parts)


def stage_grid(problem: Problem, schedule: Schedule) -> Grid:
    """Return the table of the stages of a pipeline: what one run takes of each device, or team of devices.

    Columns without an amount are left out. The last row lists devices without tasks.
    """
    uses = stage_uses(problem, schedule)

    def text(amount: int) -> str:
        return seconds_text(float(amount * problem.resolution), 4) if amount else "-"

    def memory(use: StageUse) -> str:
        return size_text(use.memory) + (f" ({use.memory / use.capacity:.1%})" if use.capacity else "")

    columns: list[tuple[str, list[str], bool]] = [
        ("stage", [_number_text(use.stages) for use in uses], any(use.stages for use in uses)),
        ("device", [team_text(use.devices) for use in uses], True),
        ("tasks", [f"{use.tasks:,}" for use in uses], True),
        ("computing", [text(use.computing) for use in uses], True),
        ("launch", [text(use.launching) for use in uses], any(use.launching for use in uses)),
        ("recomputing", [text(use.recomputing) for use in uses], any(use.recomputing for use in uses)),
        ("sent", [text(use.sent) for use in uses], any(use.sent for use in uses)),
        ("received", [text(use.received) for use in uses], any(use.received for use in uses)),
        ("syncing", [text(use.synchronised) for use in uses], any(use.synchronised for use in uses)),
        ("idle", [f"{use.idle:.1%}" for use in uses], True),
        ("memory", [memory(use) for use in uses], True),
        ("kept", [f"{use.kept:,}" for use in uses], any(use.kept > 1 for use in uses)),
    ]
    shown = [(name, cells) for name, cells, relevant in columns if relevant]
    rows = list(zip(*(cells for _, cells in shown), strict=True))
    if names := [problem.device_names[d] for d in idle_devices(problem, schedule)]:
        known = {"device": team_text(names), "tasks": "0", "idle": "100.0%"}
        rows.append(tuple(known.get(name, "-") for name, _ in shown))
    return Grid(tuple(name for name, _ in shown), tuple(rows), left=[name for name, _ in shown].index("device") + 1)


def team_text(names: Sequence[str]) -> str:
    """Name the devices of a team in one line: a + b, or the first and the last of many."""
    if len(names) > LISTED:
        return f"{visible(names[0], 40)} … {visible(names[-1], 40)} ({len(names)})"
    return " + ".join(visible(name, 40) for name in names)


def _number_text(numbers: Sequence[int]) -> str:
    if len(numbers) > LISTED:
        return f"{numbers[0]}, {numbers[1]}, … {numbers[-1]} ({len(numbers)})"
    return ", ".join(map(str, numbers)) or "-"
