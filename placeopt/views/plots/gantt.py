"""Draw a schedule as a Gantt chart: a row per device, transfers between rows, the critical path as a line.

A task has a bar in the row of its device, or of each member of its team. Up to `DETAILED` tasks have bars, with a name
and a mode if they fit; a parallel device has a lane for each task that it runs at once. With more tasks a row shows how
busy its device is over time, and a chart below the rows shows the number of transfers in progress. Further charts below
show what is in use of renewable resources.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from placeopt.errors import counted
from placeopt.model.arrays import Float, Int
from placeopt.model.critical_path import Step, critical_path, critical_ticks
from placeopt.model.memory import swap_times
from placeopt.model.modes import homes, own_devices, task_label
from placeopt.model.problem import Problem
from placeopt.model.resource_use import (
    amount_text,
    device_resources,
    occupied_devices,
    resource_uses,
    task_lanes,
    use_over_time,
)
from placeopt.model.schedule import Schedule, durations, makespan, transfer_times
from placeopt.views.plots import palette
from placeopt.views.plots.canvas import (
    POINTS,
    WIDTH,
    Clock,
    Picture,
    boxes,
    fill,
    label_rows,
    line_legend,
    line_sample,
    new_picture,
    patch_sample,
    styled,
    time_axis,
)
from placeopt.views.plots.names import distinct, short
from placeopt.views.plots.timelines import busy_shares, highest, mean_active, path_line, slices, step_area

DETAILED = 2500
"""Maximum number of tasks that are drawn as bars."""
LINES = 600
"""Maximum number of transfers that are drawn as lines."""
SLICES = 900
"""Time slices of a row that shows shares."""
IDLE_ROWS = 12
"""Maximum number of devices for which idle devices have rows too."""

RESOURCES = 3
"""Maximum number of renewable resources with a chart: those of which the largest share is used."""

HATCHES = {"swapping": "/////", "setup": "xxxxx"}
"""What marks times in which devices run no task; dots mark all others."""

_HALF = 0.36  # of a bar's height; rows are 1 apart
_BELOW, _ABOVE = 0.07, 0.06  # the path runs just below the bars, and within those of lanes
_LANE = 0.55  # the height of a lane of a parallel device
_TALLEST = 8.0  # the largest height of a row


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of devices, in the order of the chart."""

    devices: list[int]
    """The devices that have a row."""
    middle: Float
    half: Float
    """(m,) the middle of each row and half the height of its bars; rows of one lane are 1 apart."""
    lanes: Int
    """(m,) lanes of each row, one below the other."""
    low: Float
    high: Float
    """(b,) where each bar begins and ends."""
    path: Float
    """(n,) where the critical path passes it."""
    task: Int
    device: Int
    """(b,) each bar: a task, and the device in whose row it is. The bars of a task follow each other."""
    bar: Int
    """(n,) the first bar of each task."""
    end: float
    """Where the last row ends."""


def make_rows(problem: Problem, schedule: Schedule, *, detailed: bool) -> Rows:
    """Return the rows of a chart; in one that is not `detailed`, all rows have the same height."""
    task, device = occupied_devices(problem, schedule)
    bar = np.searchsorted(task, np.arange(problem.n_tasks))
    devices = shown_devices(problem, device)
    lane, lanes = task_lanes(problem, schedule)[task], np.ones(problem.n_devices, dtype=np.int64)
    np.maximum.at(lanes, device, lane + 1)
    height = np.where(lanes > 1, np.clip(lanes * _LANE, 1.0, _TALLEST), 1.0) if detailed else np.ones(len(lanes))
    middle, half = np.zeros(len(lanes)), height / 2 - 0.5 + _HALF
    tops = np.concatenate(([0.0], np.cumsum(height[devices])))
    middle[devices] = tops[:-1] + height[devices] / 2 - 0.5
    each = 2 * half / lanes
    low = (middle - half)[device] + lane * each[device]
    high = low + each[device]
    path = (high + np.where(lanes > 1, -_ABOVE, _BELOW)[device])[bar]
    return Rows(devices, middle, half, lanes, low, high, path, task, device, bar, float(tops[-1]))


@styled()
def draw_gantt(problem: Problem, schedule: Schedule, *, title: str = "", bound: float | None = None) -> Picture:
    """Draw the chart; `bound` is a lower bound in ticks."""
    end = makespan(problem, schedule)
    clock = Clock(end, problem.resolution)
    path = critical_path(problem, schedule)
    detailed = problem.n_tasks <= DETAILED
    rows = make_rows(problem, schedule, detailed=detailed)
    _, sent, arrived = transfer_times(problem, schedule)
    flows = len(sent) > 0 and (not detailed or len(sent) > LINES)
    shared, unshown = _shown_resources(problem, schedule)
    row_height = min(0.42, max(0.17, 5.5 / max(rows.end, 1)))
    ratios = [row_height * max(rows.end, 1), *[0.8] * flows, *[0.45] * len(shared)]
    height = 1.5 + row_height * max(rows.end, 2) + 0.9 * flows + 0.55 * len(shared)
    idle = len(own_devices(problem)) - len(rows.devices)
    note = f"{idle} more devices have no tasks" if idle else ""
    more = f"{counted(unshown, 'other resource')} of which less is used" if unshown else ""
    notes = " · ".join(filter(None, (_path_text(path, clock), note, more)))
    picture = new_picture(height, title or problem.name or "schedule", notes)
    panels: list[Axes] = list(
        picture.subplots(len(ratios), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": ratios})[:, 0]
    )
    axes = panels[0]

    _draw_rows(axes, problem, schedule, rows, end)
    limit = max(end, bound or 0)
    time_axis(axes, clock, limit)
    if detailed:
        _draw_bars(axes, problem, schedule, rows, clock, row_height)
    else:
        _draw_shares(axes, problem, schedule, rows, clock, end)
    entries: list[tuple[Any, str]] = []
    ends, swap = schedule.start + durations(problem, schedule.device), swap_times(problem, schedule.device)
    closed = [rule.closed(schedule.device, schedule.start, ends) for rule in problem.stated.values()]
    swapping = "swapping", np.arange(len(swap)), np.where(swap > 0, 0, limit), swap
    for label, *times in (swapping, *filter(None, closed)):
        if _draw_closed(axes, times, rows, clock, limit, hatch := HATCHES.get(label, ".....")):
            entries.append((patch_sample(palette.PAPER, hatch=hatch), label))
    if len(sent) and not flows:
        _draw_transfers(axes, problem, schedule, rows, clock)
        entries.append((line_sample(palette.MUTED, width=0.8), "transfer"))
    if path:
        _draw_path(axes, path_line(problem, path), rows, clock, plain=detailed)
        entries.append((line_sample(palette.INK, width=2.0), "critical path"))
        if any(step.kind in ("wait", "release", "swap") and step.ticks for step in path):
            entries.append((line_sample(palette.INK, width=2.0, dashes=(1, 1)), "wait on the critical path"))
    _mark(axes, clock(end), "-")
    if bound is not None and bound > 0:
        _mark(axes, clock(float(bound)), "--")
        entries.append((line_sample(palette.INK, width=1.0, dashes=(4, 2)), f"lower bound {clock.text(float(bound))}"))
    if not detailed:
        lane = ", or each of its lanes," if rows.lanes.max(initial=1) > 1 else ""
        entries.insert(0, (patch_sample(palette.MUTED), f"height: share of time that the device{lane} computes"))
    if flows:
        _draw_flows(panels[1], sent, arrived, clock, end)
    for panel, r in zip(panels[1 + flows :], shared, strict=True):
        _draw_use(panel, problem, schedule, r, clock, end)
    for panel in panels[:-1]:
        panel.set_xlabel("")
        panel.tick_params(labelbottom=False)
    panels[-1].set_xlabel(f"time ({clock.unit})")
    if not problem.n_tasks:
        axes.text(0.5, 0.5, "no tasks", transform=axes.transAxes, ha="center", va="center", color=palette.MUTED)
    line_legend(picture, entries)
    return picture


def shown_devices(problem: Problem, device: Int) -> list[int]:
    """Return the devices that have a row, from those with tasks: all of the document if they are few, else those."""
    used, own = np.bincount(device, minlength=problem.n_devices) > 0, own_devices(problem)
    if len(own) <= IDLE_ROWS or not used.any():
        return own
    return [int(d) for d in np.flatnonzero(used)]


def _path_text(path: tuple[Step, ...], clock: Clock) -> str:
    """Describe the shares of the critical path."""
    if not path:
        return ""
    total = path[-1].end
    words = {
        "task": "computing", "transfer": "transfers", "release": "release times", "swap": "swapping", "wait": "waits"
    }  # fmt: skip
    parts = [
        f"{ticks / total:.1%} {words[kind]}" for kind, ticks in critical_ticks(path).items() if ticks and total > 0
    ]
    return f"makespan {clock.text(total)}" + (f", critical path: {', '.join(parts)}" if parts else "")


def _shown_resources(problem: Problem, schedule: Schedule) -> tuple[list[int], int]:
    """Return the renewable resources that have a chart, and the number of others in use."""
    hidden = device_resources(problem)
    used = [
        (r, each)
        for r, each in enumerate(resource_uses(problem, schedule))
        if each.renewable and each.used and r not in hidden
    ]
    most = sorted(used, key=lambda found: -found[1].share)[:RESOURCES]
    return sorted(r for r, _ in most), len(used) - len(most)


def _draw_rows(axes: Axes, problem: Problem, schedule: Schedule, rows: Rows, end: int) -> None:
    """Draw the background of the rows, with names and how much of the makespan each device computes."""
    busy, devices = np.zeros(problem.n_devices, dtype=np.int64), rows.devices
    np.add.at(busy, rows.device, durations(problem, schedule.device)[rows.task])
    shares = [f"{busy[d] / end:.0%}" if end else "" for d in devices]
    names, middle = [problem.device_names[d] for d in devices], rows.middle[devices]
    right = label_rows(axes, names, shares, middle.tolist(), rows.end)
    right.set_ylabel("busy", color=palette.MUTED, fontsize=8.5, rotation=270, va="bottom")
    whole = axes.get_yaxis_transform()
    axes.barh(middle, 1.0, height=2 * rows.half[devices], color=palette.IDLE, transform=whole, zorder=0.5)


def _dots(axes: Axes) -> float:
    """Return the approximate width of one unit of the axis in points (1/72 inch)."""
    low, high = axes.get_xlim()
    return (WIDTH - 1.7) * POINTS / (high - low)


def _draw_bars(axes: Axes, problem: Problem, schedule: Schedule, rows: Rows, clock: Clock, height: float) -> None:
    colors = palette.problem_colors(problem)
    start = clock(schedule.start[rows.task])
    end = clock((schedule.start + durations(problem, schedule.device))[rows.task])
    wide = (end - start) * _dots(axes)
    separators = np.where(wide > 4, 0.5, np.where(wide > 1.5, 0.2, 0.0))
    filled = [colors[d] for d in rows.device.tolist()]
    fill(
        axes, boxes(start, end, rows.low, rows.high), filled, edgecolors=palette.PAPER, linewidths=separators, zorder=2
    )
    sizes = np.minimum(7.5, height * (rows.high - rows.low) * POINTS * 0.8)
    device = schedule.device.tolist()
    names = distinct([task_label(problem, i, d) for i, d in enumerate(device)], 28)
    for i in np.flatnonzero((sizes >= 4.5) & (wide > 3.2 * 0.62 * sizes)).tolist():
        size = float(sizes[i])
        room, name = int((wide[i] - 4) / (0.64 * size)), names[rows.task[i]]
        if room >= min(len(name), 6):
            color = palette.text_on(filled[i])
            place = (start[i] + end[i]) / 2, (rows.low[i] + rows.high[i]) / 2
            axes.text(*place, short(name, room), fontsize=size, color=color, ha="center", va="center_baseline",
                      clip_on=True, zorder=3)  # fmt: skip


def _draw_closed(axes: Axes, closed: list[Int], rows: Rows, clock: Clock, limit: float, hatch: str) -> bool:
    """Hatch the times in which devices of the rows are closed, up to the end of the axis; return whether any are."""
    shown = np.isin(closed[0], rows.devices) & (closed[1] < limit)
    if not shown.any():
        return False
    device, begin, end = (each[shown] for each in closed)
    middle, half = rows.middle[device], rows.half[device]
    corners = boxes(clock(begin), clock(np.minimum(end, limit)), middle - half, middle + half)
    fill(axes, corners, ["none"], edgecolors=palette.MUTED, hatch=hatch, zorder=2)
    return True


def _draw_transfers(axes: Axes, problem: Problem, schedule: Schedule, rows: Rows, clock: Clock) -> None:
    """Draw lines between the edges of bars that face each other."""
    edges, sent, arrived = transfer_times(problem, schedule)
    home = homes(problem)[schedule.device]
    moved = home[problem.edge_source[edges]] != home[problem.edge_target[edges]]  # not between modes of one device
    edges, sent, arrived = edges[moved], sent[moved], arrived[moved]
    source, target = problem.edge_source[edges], problem.edge_target[edges]
    low, high = rows.low[rows.bar], rows.high[rows.bar]
    down = low[target] > low[source]
    begin = np.where(down, high[source], low[source])
    end = np.where(down, low[target], high[target])
    lines = np.stack((np.stack((clock(sent), begin), axis=1), np.stack((clock(arrived), end), axis=1)), axis=1)
    width, alpha = (0.5, 0.35) if len(lines) > 150 else (0.8, 0.5)
    axes.add_collection(LineCollection(list(lines), colors=palette.INK, linewidths=width, alpha=alpha, zorder=4))


def _draw_path(
    axes: Axes, pieces: list[tuple[str, int, int, int, int]], rows: Rows, clock: Clock, *, plain: bool
) -> None:
    """Draw the path as one line: below the bars of its tasks, slanted for transfers, dotted for waits."""
    lines: dict[bool, list[list[tuple[float, float]]]] = {False: [], True: []}
    last = None
    below = rows.path
    for kind, start, end, source, target in pieces:
        waits = kind in ("wait", "release", "swap")
        if waits is not last:
            lines[waits].append([(clock(start), below[source])])
        lines[waits][-1] += [(clock(start), below[source]), (clock(end), below[target])]
        last = waits
    width = 2.0 if plain else 1.2
    both = lines[False] + lines[True]
    axes.add_collection(LineCollection(both, colors=palette.PAPER, linewidths=width + 1.6, joinstyle="round", zorder=5))
    axes.add_collection(LineCollection(lines[False], colors=palette.INK, linewidths=width, joinstyle="round", zorder=6))
    axes.add_collection(
        LineCollection(lines[True], colors=palette.INK, linewidths=width, linestyles=[(0, (1, 1))], zorder=6)
    )


def _draw_shares(axes: Axes, problem: Problem, schedule: Schedule, rows: Rows, clock: Clock, end: int) -> None:
    edges = slices(end, SLICES)
    shares = np.minimum(busy_shares(problem, schedule, rows.task, rows.device, edges) / rows.lanes[:, None], 1.0)
    colors = palette.problem_colors(problem)
    areas = [
        step_area(clock(edges), row + _HALF - 2 * _HALF * shares[device], row + _HALF)
        for row, device in enumerate(rows.devices)
    ]
    fill(axes, areas, [colors[device] for device in rows.devices], zorder=2)


def _draw_flows(axes: Axes, sent: Int, arrived: Int, clock: Clock, end: int) -> None:
    edges = slices(end, SLICES)
    under_way = mean_active(sent, arrived, edges)
    fill(axes, [step_area(clock(edges), under_way, 0.0)], [palette.MUTED], zorder=2)
    axes.set_ylabel("transfers\nin progress")
    axes.set_ylim(0.0, 1.05 * float(under_way.max()) or 1.0)
    axes.locator_params(axis="y", nbins=3)
    axes.grid(axis="x")


def _draw_use(axes: Axes, problem: Problem, schedule: Schedule, r: int, clock: Clock, end: int) -> None:
    """Draw what is in use of a renewable resource over time, up to its capacity."""
    assert problem.resources is not None
    edges, capacity = slices(end, SLICES), int(problem.resources.capacity[r])
    used = highest(*use_over_time(problem, schedule, r), edges)
    fill(axes, [step_area(clock(edges), used.astype(np.float64), 0.0)], [palette.MUTED], zorder=2)
    axes.axhline(capacity, color=palette.LIMIT, linewidth=0.9, linestyle="--", zorder=3)
    most = max(capacity, int(used.max()), 1)
    axes.set_ylim(0.0, 1.08 * most)
    axes.set_yticks([0, capacity], ["0", amount_text(problem.resources.stated(r, capacity), memory=False)], fontsize=7)
    axes.set_ylabel(short(problem.resources.names[r], 18), rotation=0, ha="right", va="center", fontsize=8.5)
    axes.grid(axis="x")


def _mark(axes: Axes, place: float, style: str) -> None:
    axes.axvline(place, color=palette.INK, linewidth=0.9, linestyle=style, zorder=7)
