"""Write reports as a single HTML file that needs neither network nor server.

The page combines a template (page.html, page.css), some small scripts, and the data:

    data      JSON in a script element that browsers do not run; every < is escaped, so no name can end the element
    arrays    all long arrays, concatenated, deflated and in base64 (`placeopt.views.page.packing`)
    policy    a content security policy with the hashes of style and script: nothing else runs, nothing is fetched

The scripts form one module because browsers do not load a second module from a local file. All texts of the data
become text nodes, so names are never markup. 36,000 tasks on 60 devices redraw in about ten milliseconds
(benchmarks/page_speed.py): rows are sorted, visible tasks are found by bisection, and tasks narrower than two pixels
are drawn together.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from placeopt.errors import UsageError, visible
from placeopt.io.files import StrPath, write_whole
from placeopt.model.arrays import Int
from placeopt.model.buffers import live_buffers
from placeopt.model.critical_path import critical_path
from placeopt.model.memory import freed_at, memory_profile
from placeopt.model.metrics import device_uses
from placeopt.model.modes import own_devices, task_label
from placeopt.model.problem import Problem
from placeopt.model.resource_use import channel_use, device_resources, occupied_devices, task_lanes, use_over_time
from placeopt.model.schedule import BUFFERS, Schedule, durations, edge_ticks, makespan
from placeopt.model.versions import version_of
from placeopt.orchestration.result import Result
from placeopt.simulation.steady import steady_state
from placeopt.verifier import Report
from placeopt.views.facts import task_traffic
from placeopt.views.page.packing import Packing
from placeopt.views.page.pipelines import pipeline_data
from placeopt.views.page.summaries import convergence, plan_summary, result_summary
from placeopt.views.plots.palette import GRID, IDLE, INK, LIMIT, MUTED, PAPER, problem_colors, problem_legend, text_on

if TYPE_CHECKING:
    from placeopt.studies.comparison.result import Comparison


SCRIPTS = ("format", "elements", "arrays", "view", "gantt", "memory", "addresses", "lines", "table", "sections", "main")
"""Scripts in the order of concatenation; the last one runs the page."""


@dataclass(frozen=True, slots=True)
class Components:
    """What another page needs to show the sections of a report."""

    style: str
    script: str
    """Defines the functions that build the sections: `showSummary`, `showSchedule` and others of sections.js."""
    sections: str
    """The HTML of all sections, which are hidden until they are built."""


def components() -> Components:
    """Return the style, the scripts and the sections of reports."""
    page, style, _ = _template()
    sections = page.template.partition("<main>\n")[2].partition("</main>")[0]
    return Components(style, _script(SCRIPTS[:-1]), sections)


def result_page(result: Result) -> str:
    """Return the page of a solve: summary, schedule, memory, devices, convergence."""
    return _page(result.problem.name or "problem", result_data(result))


def result_data(result: Result) -> dict[str, Any]:
    """Return the data of the page of a solve, for JSON: what each section shows, and the arrays of the charts."""
    packing = Packing()
    drawn = None
    if result.schedule is not None and result.values is not None:
        drawn = schedule_data(result.problem, result.schedule, packing)
    return _data(packing, summary=result_summary(result), schedule=drawn, convergence=convergence(result))


def plan_page(problem: Problem, schedule: Schedule, report: Report) -> str:
    """Return the page of a plan with the verifier's report; no charts if a task is on a device that may not run it."""
    return _page(problem.name or "problem", plan_data(problem, schedule, report))


def plan_data(problem: Problem, schedule: Schedule, report: Report) -> dict[str, Any]:
    """Return the data of the page of a plan, as `result_data`."""
    packing = Packing()
    drawn = None if report.objective is None else schedule_data(problem, schedule, packing)
    return _data(packing, summary=plan_summary(problem, schedule, report), schedule=drawn)


def comparison_page(comparison: Comparison) -> str:
    """Return the page of a comparison: solvers, performance profile, runs, convergence."""
    from placeopt.views.page.comparisons import comparison_convergence, comparison_data, comparison_summary

    data = _data(
        Packing(), summary=comparison_summary(comparison), comparison=comparison_data(comparison),
        convergence=comparison_convergence(comparison),
    )  # fmt: skip
    return _page("Comparison of solvers", data)


def write_report(path: StrPath, subject: Result | Comparison) -> None:
    """Write the page of a result or of a comparison; an existing file is replaced completely or not at all.

    Raises
    ------
    UsageError
        If the subject is of another type.
    OSError
        If the file cannot be written.
    """
    from placeopt.studies.comparison.result import Comparison

    if not isinstance(subject, Result | Comparison):
        raise UsageError(f"write_report takes a Result or a Comparison, got {type(subject).__name__}")
    write_whole(path, result_page(subject) if isinstance(subject, Result) else comparison_page(subject))


def _data(packing: Packing, **sections: Any) -> dict[str, Any]:
    return {
        "schedule": None, "convergence": [], "comparison": None, **sections,
        "arrays": packing.table, "packed": packing.text(),
    }  # fmt: skip


def _page(title: str, data: dict[str, Any]) -> str:
    template, style, script = _template()
    packed = data.pop("packed")
    # With < written as \u003c, no text can end the element or start a comment in it.
    text = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return template.substitute(
        title=escape(visible(title, 200)), made=escape(f"placeopt {version_of()}".rstrip()), style=style,
        style_hash=_hash(style), script=script, script_hash=_hash(script), data=text, arrays=packed,
    )  # fmt: skip


@cache
def _template() -> tuple[Template, str, str]:
    """Return the template of the page, its style and its script."""
    folder = files("placeopt.views.page")
    light = {"ink": INK, "muted": MUTED, "grid": GRID, "idle": IDLE, "paper": PAPER, "limit": LIMIT}
    variables = "\n  ".join(f"--{name}: {color};" for name, color in light.items())
    style = Template((folder / "page.css").read_text(encoding="utf-8")).substitute(light=variables)
    return Template((folder / "page.html").read_text(encoding="utf-8")), f"\n{style}", f"\n{_script(SCRIPTS)}"


def _script(names: tuple[str, ...]) -> str:
    return "\n".join((files("placeopt.views.page") / f"{name}.js").read_text(encoding="utf-8") for name in names)


def _hash(text: str) -> str:
    """Return the source expression of a content security policy that allows only this text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"


_STEPS = {"task": 0, "transfer": 1, "release": 2, "wait": 3, "swap": 4}


def schedule_data(problem: Problem, schedule: Schedule, packing: Packing) -> dict[str, Any]:
    """Return the data of the charts; long arrays go into `packing`."""
    if problem.pipeline is not None and (found := steady_state(problem, schedule)) is not None:
        return pipeline_data(problem, schedule, found, packing)
    rows, bars = _rows(problem, schedule)
    rank = _tasks(problem, schedule, bars, len(rows), packing)
    packing.add("edge_source", rank[problem.edge_source])
    packing.add("edge_target", rank[problem.edge_target])
    _transfers(problem, schedule, bars.first, packing)
    resources = _resources(problem, schedule, packing)
    own = own_devices(problem)
    _memory(problem, schedule, own, packing)
    if schedule.offsets is not None:
        _addresses(problem, schedule, rank, packing)
    path = critical_path(problem, schedule)
    packing.add("critical_kind", [_STEPS[step.kind] for step in path])
    packing.add("critical_task", [int(rank[step.task]) for step in path])
    packing.add("critical_start", [step.start for step in path])
    packing.add("critical_end", [step.end for step in path])
    colors = problem_colors(problem)
    total = problem.memory_model == "sum"
    note = "live bytes over time; dashed: capacity, where it fits the scale"
    if total:
        note += "; dotted: total of all tasks on the device, which is compared with the capacity"
    devices = [
        {
            "name": use.name,
            "type": use.type,
            "color": colors[d],
            "text": text_on(colors[d]),
            "tasks": use.tasks,
            "busy": use.busy,
            "memory": use.memory,
            "capacity": use.capacity,
            "unavailable": [] if problem.unavailable is None else problem.unavailable.of(d),
            "counted": use.memory if total else None,
        }
        for use, d in zip(device_uses(problem, schedule), own, strict=True)
    ]
    number = {d: k for k, d in enumerate(own)}
    lanes = [
        {**devices[number[d]], "label": f"{problem.device_names[d]} {lane + 1}" if lane else None} for d, lane in rows
    ]
    return {
        "resolution": float(problem.resolution),
        "makespan": makespan(problem, schedule),
        "resources": resources,
        **({} if len(rows) == len(devices) else {"rows": lanes}),
        "ports": schedule.transfers is not None,
        "memory_note": note,
        "names": [task_label(problem, i, int(schedule.device[i])) for i in bars.task.tolist()],
        "legend": [{"label": swatch.label, "colors": list(swatch.colors)} for swatch in problem_legend(problem)],
        "devices": devices,
    }


class _Bars(NamedTuple):
    """The bars of tasks, sorted by row, start and end: one in the row of each device that a task occupies."""

    task: Int
    row: Int
    """(b,) of each bar."""
    first: Int
    """(n,) the row of the first device of each task, where its transfers start and end."""


def _rows(problem: Problem, schedule: Schedule) -> tuple[list[tuple[int, int]], _Bars]:
    """Return the rows (device, lane) of the chart, and the bars in them; a parallel device has several rows."""
    task, device = occupied_devices(problem, schedule)
    lane, lanes = task_lanes(problem, schedule)[task], np.zeros(problem.n_devices, dtype=np.int64)
    lanes[own_devices(problem)] = 1
    np.maximum.at(lanes, device, lane + 1)
    before = np.cumsum(lanes) - lanes
    rows = [(d, each) for d, count in enumerate(lanes.tolist()) for each in range(count)]
    row, end = before[device] + lane, schedule.start + durations(problem, schedule.device)
    first = row[np.searchsorted(task, np.arange(problem.n_tasks))]
    order = np.lexsort((task, end[task], schedule.start[task], row))
    return rows, _Bars(task[order], row[order], first)


def _resources(problem: Problem, schedule: Schedule, packing: Packing) -> list[dict[str, Any]]:
    """Pack what is in use of renewable resources and shared links over time; return the rows of their chart."""
    resources, found = problem.resources, []
    offset, ticks, amounts = [0], list[int](), list[int]()
    hidden = device_resources(problem)
    for r in [] if resources is None else np.flatnonzero(resources.renewable).tolist():
        if r in hidden:
            continue
        assert resources is not None
        moments, units = use_over_time(problem, schedule, r)
        ticks += moments.tolist()
        amounts += units.tolist()
        offset.append(len(ticks))
        found.append({
            "name": resources.names[r],
            "color": MUTED,
            "unit": resources.stated(r, 1),
            "capacity": int(resources.capacity[r]),
            "used": int(units.max()),
            "counted": None,
        })  # fmt: skip
    for name, moments, units in channel_use(problem, schedule):
        ticks += moments.tolist()
        amounts += units.tolist()
        offset.append(len(ticks))
        most = int(units.max())
        found.append({"name": name, "color": MUTED, "unit": 1, "capacity": 1, "used": most, "counted": None})
    packing.add("resource_offset", offset)
    packing.add("resource_ticks", ticks)
    packing.add("resource_amounts", amounts)
    return found


def _tasks(problem: Problem, schedule: Schedule, bars: _Bars, rows: int, packing: Packing) -> Int:
    """Pack the bars; return the place (n,) among them of the first bar of each task."""
    end = schedule.start + durations(problem, schedule.device)
    own = np.flatnonzero(bars.row == bars.first[bars.task])
    rank = np.empty(problem.n_tasks, dtype=np.int64)
    rank[bars.task[own]] = own
    sent, received = task_traffic(problem, schedule.device)
    for name, values in (
        ("start", schedule.start), ("end", end), *((kind, problem.buffer_bytes(kind)) for kind in BUFFERS),
        ("sent", sent), ("received", received),
    ):  # fmt: skip
        packing.add(name, values[bars.task])
    packing.add("offset", np.searchsorted(bars.row, np.arange(rows + 1)).astype(np.int64))
    return rank


def _transfers(problem: Problem, schedule: Schedule, row: Int, packing: Packing) -> None:
    """Pack the scheduled transfers by start, in the rows of their tasks; without port contention there are none."""
    table, none = schedule.transfers, np.empty(0, dtype=np.int64)
    edges, start = (none, none) if table is None else (table.edge, table.start)
    by_start = np.argsort(start, kind="stable")
    edges, start = edges[by_start], start[by_start]
    packing.add("transfer_from", row[problem.edge_source[edges]])
    packing.add("transfer_to", row[problem.edge_target[edges]])
    packing.add("transfer_start", start)
    packing.add("transfer_end", start + edge_ticks(problem, schedule.device)[edges])


def _memory(problem: Problem, schedule: Schedule, own: list[int], packing: Packing) -> None:
    """Pack the memory profiles of the devices of the document, concatenated."""
    freed = freed_at(problem, schedule)
    profiles = [memory_profile(problem, schedule, d, freed) for d in own]
    packing.add("memory_offset", [0, *np.cumsum([len(ticks) for ticks, _ in profiles]).tolist()])
    packing.add("memory_ticks", np.concatenate([ticks for ticks, _ in profiles] or [np.empty(0, dtype=np.int64)]))
    packing.add("memory_bytes", np.concatenate([live for _, live in profiles] or [np.empty(0, dtype=np.int64)]))


def _addresses(problem: Problem, schedule: Schedule, rank: Int, packing: Packing) -> None:
    """Pack the buffers of all devices, sorted by device and begin."""
    found = live_buffers(problem, schedule)
    found = found.part(np.lexsort((found.lower, found.device)))
    low = found.low(schedule)
    packing.add("box_offset", np.searchsorted(found.device, np.arange(problem.n_devices + 1)))
    for name, values in (
        ("task", rank[found.task]), ("kind", found.kind), ("from", found.lower), ("to", found.upper), ("low", low),
        ("high", low + found.size),
    ):  # fmt: skip
        packing.add(f"box_{name}", values)
