"""Draw a schedule as a Gantt chart: a row per device, transfers between rows, the critical path as a line.

Up to `DETAILED` tasks each have a bar, with a name if it fits. With more tasks a row shows how busy its device is over
time, and a chart below the rows shows the number of transfers in progress.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from placeopt.model.arrays import Int
from placeopt.model.critical_path import Step, critical_path, critical_ticks
from placeopt.model.memory import swap_times
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, durations, makespan, transfer_times
from placeopt.model.unavailability import Unavailability
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
from placeopt.views.plots.timelines import busy_shares, mean_active, path_line, slices, step_area

DETAILED = 2500
"""Maximum number of tasks that are drawn as bars."""
LINES = 600
"""Maximum number of transfers that are drawn as lines."""
SLICES = 900
"""Time slices of a row that shows shares."""
IDLE_ROWS = 12
"""Maximum number of devices for which idle devices have rows too."""

_HALF = 0.36  # of a bar's height; rows are 1 apart
_PATH = 0.43  # the path runs just below the bars


@styled()
def draw_gantt(problem: Problem, schedule: Schedule, *, title: str = "", bound: float | None = None) -> Picture:
    """Draw the chart; `bound` is a lower bound in ticks."""
    end = makespan(problem, schedule)
    clock, devices = Clock(end, problem.resolution), shown_devices(problem, schedule)
    path = critical_path(problem, schedule)
    detailed = problem.n_tasks <= DETAILED
    _, sent, arrived = transfer_times(problem, schedule)
    flows = len(sent) > 0 and (not detailed or len(sent) > LINES)
    row_height = min(0.42, max(0.17, 5.5 / max(len(devices), 1)))
    height = 1.5 + row_height * max(len(devices), 2) + (0.9 if flows else 0.0)
    idle = problem.n_devices - len(devices)
    note = f"{idle} more devices have no tasks" if idle else ""
    notes = " · ".join(filter(None, (_path_text(path, clock), note)))
    picture = new_picture(height, title or problem.name or "schedule", notes)
    if flows:
        ratios = [row_height * len(devices), 0.8]
        axes, below = picture.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": ratios})
    else:
        axes, below = picture.subplots(), None

    row_of = {device: row for row, device in enumerate(devices)}
    _draw_rows(axes, problem, schedule, devices, end)
    limit = max(end, bound or 0)
    time_axis(axes, clock, limit)
    if detailed:
        _draw_bars(axes, problem, schedule, row_of, clock, row_height)
    else:
        _draw_shares(axes, problem, schedule, devices, clock, end)
    entries: list[tuple[Any, str]] = []
    if problem.tiers is not None and _draw_swapping(axes, problem, schedule, row_of, clock):
        entries.append((patch_sample(palette.PAPER, hatch="/////"), "swapping"))
    if problem.unavailable is not None:
        _draw_windows(axes, problem.unavailable, row_of, clock, limit)
        entries.append((patch_sample(palette.PAPER, hatch="....."), "unavailable"))
    if len(sent) and not flows:
        _draw_transfers(axes, problem, schedule, row_of, clock)
        entries.append((line_sample(palette.MUTED, width=0.8), "transfer"))
    if path:
        _draw_path(axes, path_line(problem, schedule, path), row_of, clock, plain=detailed)
        entries.append((line_sample(palette.INK, width=2.0), "critical path"))
        if any(step.kind in ("wait", "release", "swap") and step.ticks for step in path):
            entries.append((line_sample(palette.INK, width=2.0, dashes=(1, 1)), "wait on the critical path"))
    _mark(axes, clock(end), "-")
    if bound is not None and bound > 0:
        _mark(axes, clock(float(bound)), "--")
        entries.append((line_sample(palette.INK, width=1.0, dashes=(4, 2)), f"lower bound {clock.text(float(bound))}"))
    if not detailed:
        entries.insert(0, (patch_sample(palette.MUTED), "height: share of time that the device computes"))
    if below is not None:
        axes.set_xlabel("")
        axes.tick_params(labelbottom=False)
        _draw_flows(below, sent, arrived, clock, end)
    if not problem.n_tasks:
        axes.text(0.5, 0.5, "no tasks", transform=axes.transAxes, ha="center", va="center", color=palette.MUTED)
    line_legend(picture, entries)
    return picture


def shown_devices(problem: Problem, schedule: Schedule) -> list[int]:
    """Return the devices that have a row: all if they are few, else those with tasks."""
    used = np.bincount(schedule.device, minlength=problem.n_devices) > 0
    if problem.n_devices <= IDLE_ROWS or not used.any():
        return list(range(problem.n_devices))
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


def _draw_rows(axes: Axes, problem: Problem, schedule: Schedule, devices: list[int], end: int) -> None:
    """Draw the background of the rows, with names and the share of the makespan that each device computes."""
    busy = np.zeros(problem.n_devices, dtype=np.int64)
    np.add.at(busy, schedule.device, durations(problem, schedule.device))
    shares = [f"{busy[d] / end:.0%}" if end else "" for d in devices]
    right = label_rows(axes, [problem.device_names[d] for d in devices], shares)
    right.set_ylabel("busy", color=palette.MUTED, fontsize=8.5, rotation=270, va="bottom")
    rows, whole = range(len(devices)), axes.get_yaxis_transform()
    axes.barh(rows, 1.0, height=2 * _HALF, color=palette.IDLE, transform=whole, zorder=0.5)


def _dots(axes: Axes) -> float:
    """Return the approximate width of one unit of the axis in points (1/72 inch)."""
    low, high = axes.get_xlim()
    return (WIDTH - 1.7) * POINTS / (high - low)


def _draw_bars(
    axes: Axes, problem: Problem, schedule: Schedule, row_of: dict[int, int], clock: Clock, height: float
) -> None:
    colors = palette.device_colors(problem.device_types)
    start = clock(schedule.start)
    end = clock(schedule.start + durations(problem, schedule.device))
    rows = np.array([row_of[d] for d in schedule.device.tolist()], dtype=np.float64)
    wide = (end - start) * _dots(axes)
    separators = np.where(wide > 4, 0.5, np.where(wide > 1.5, 0.2, 0.0))
    filled = [colors[d] for d in schedule.device.tolist()]
    corners = boxes(start, end, rows - _HALF, rows + _HALF)
    fill(axes, corners, filled, edgecolors=palette.PAPER, linewidths=separators, zorder=2)
    size = min(7.5, height * 2 * _HALF * POINTS * 0.8)
    if size < 4.5:
        return
    names = distinct(problem.task_names, 28)
    for i in np.flatnonzero(wide > 3.2 * 0.62 * size).tolist():
        room, name = int((wide[i] - 4) / (0.64 * size)), names[i]
        if room >= min(len(name), 6):
            color = palette.text_on(colors[int(schedule.device[i])])
            axes.text((start[i] + end[i]) / 2, rows[i], short(name, room), fontsize=size, color=color,
                      ha="center", va="center_baseline", clip_on=True, zorder=3)  # fmt: skip


def _draw_swapping(axes: Axes, problem: Problem, schedule: Schedule, row_of: dict[int, int], clock: Clock) -> bool:
    """Hatch the time before the first task in which a device swaps; return whether any does."""
    swap = swap_times(problem, schedule.device)
    devices = [d for d in row_of if swap[d]]
    rows = np.array([row_of[d] for d in devices], dtype=np.float64)
    corners = boxes(np.zeros(len(devices)), clock(swap[devices]), rows - _HALF, rows + _HALF)
    fill(axes, corners, ["none"], edgecolors=palette.MUTED, hatch="/////", zorder=2)
    return bool(devices)


def _draw_windows(axes: Axes, windows: Unavailability, row_of: dict[int, int], clock: Clock, limit: float) -> None:
    """Dot the windows in which devices are unavailable, up to the end of the axis."""
    found = [(row, *window) for d, row in row_of.items() for window in windows.of(d) if window[0] < limit]
    rows, begin, end = (np.array([each[k] for each in found], dtype=np.float64) for k in range(3))
    corners = boxes(clock(begin), clock(np.minimum(end, limit)), rows - _HALF, rows + _HALF)
    fill(axes, corners, ["none"], edgecolors=palette.MUTED, hatch=".....", zorder=2)


def _draw_transfers(axes: Axes, problem: Problem, schedule: Schedule, row_of: dict[int, int], clock: Clock) -> None:
    edges, sent, arrived = transfer_times(problem, schedule)
    source = [row_of[d] for d in schedule.device[problem.edge_source[edges]].tolist()]
    target = [row_of[d] for d in schedule.device[problem.edge_target[edges]].tolist()]
    ends = [_facing(a, b) for a, b in zip(source, target, strict=True)]
    lines = [((begin, a), (end, b)) for begin, end, (a, b) in zip(clock(sent), clock(arrived), ends, strict=True)]
    width, alpha = (0.5, 0.35) if len(lines) > 150 else (0.8, 0.5)
    axes.add_collection(LineCollection(lines, colors=palette.INK, linewidths=width, alpha=alpha, zorder=4))


def _facing(source: int, target: int) -> tuple[float, float]:
    """Return the ends of a line between two rows, at the edges that face each other."""
    side = _HALF if target > source else -_HALF
    return source + side, target - side


def _draw_path(
    axes: Axes, pieces: list[tuple[str, int, int, int, int]], row_of: dict[int, int], clock: Clock, *, plain: bool
) -> None:
    """Draw the path as one line: below the bars of its tasks, slanted for transfers, dotted for waits."""
    lines: dict[bool, list[list[tuple[float, float]]]] = {False: [], True: []}
    last = None
    for kind, start, end, source, target in pieces:
        waits = kind in ("wait", "release", "swap")
        if waits is not last:
            lines[waits].append([(clock(start), row_of[source] + _PATH)])
        lines[waits][-1] += [(clock(start), row_of[source] + _PATH), (clock(end), row_of[target] + _PATH)]
        last = waits
    width = 2.0 if plain else 1.2
    both = lines[False] + lines[True]
    axes.add_collection(LineCollection(both, colors=palette.PAPER, linewidths=width + 1.6, joinstyle="round", zorder=5))
    axes.add_collection(LineCollection(lines[False], colors=palette.INK, linewidths=width, joinstyle="round", zorder=6))
    axes.add_collection(
        LineCollection(lines[True], colors=palette.INK, linewidths=width, linestyles=[(0, (1, 1))], zorder=6)
    )


def _draw_shares(axes: Axes, problem: Problem, schedule: Schedule, devices: list[int], clock: Clock, end: int) -> None:
    edges = slices(end, SLICES)
    shares = np.minimum(busy_shares(problem, schedule, edges), 1.0)
    colors = palette.device_colors(problem.device_types)
    areas = [
        step_area(clock(edges), row + _HALF - 2 * _HALF * shares[device], row + _HALF)
        for row, device in enumerate(devices)
    ]
    fill(axes, areas, [colors[device] for device in devices], zorder=2)


def _draw_flows(axes: Axes, sent: Int, arrived: Int, clock: Clock, end: int) -> None:
    edges = slices(end, SLICES)
    under_way = mean_active(sent, arrived, edges)
    fill(axes, [step_area(clock(edges), under_way, 0.0)], [palette.MUTED], zorder=2)
    axes.set_xlabel(f"time ({clock.unit})")
    axes.set_ylabel("transfers\nin progress")
    axes.set_ylim(0.0, 1.05 * float(under_way.max()) or 1.0)
    axes.locator_params(axis="y", nbins=3)
    axes.grid(axis="x")


def _mark(axes: Axes, place: float, style: str) -> None:
    axes.axvline(place, color=palette.INK, linewidth=0.9, linestyle=style, zorder=7)
