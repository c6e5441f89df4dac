"""Draw the steady state of a pipeline: some periods of all devices, with the operations of all runs in them.

Each stage has a colour; its backward tasks have a lighter one. Transfers are grey where they count in the load. A
device that computes while it transfers, or sends while it receives, shows these side by side in its row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import Normal, Stroke

from placeopt.errors import counted
from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, makespan
from placeopt.model.stage_use import idle_devices, launch_text, stage_names, stage_ranks, stage_uses, teams
from placeopt.model.stages import backward, rules
from placeopt.model.units import seconds_text
from placeopt.simulation.steady import KINDS, Occurrences, steady_state
from placeopt.views.plots import palette
from placeopt.views.plots.canvas import (
    POINTS,
    WIDTH,
    Clock,
    Picture,
    Strip,
    boxes,
    fill,
    label_rows,
    line_legend,
    line_sample,
    new_picture,
    patch_sample,
    styled,
)
from placeopt.views.plots.names import distinct, short

DETAILED = 8000
"""Maximum number of operations that are drawn one by one."""
IDLE_ROWS = 12
"""Maximum number of devices for which idle devices have rows too."""
LISTED = 7
"""Maximum number of stages that the legend lists."""

_HALF = 0.38  # of a row's height; rows are 1 apart
_TASK, _LAUNCH, _SEND, _RECEIVE, _SYNCHRONISE = range(len(KINDS))
_TRACKS = (
    ((0.0, 1.0), (0.0, 1.0), (0.0, 1.0)),
    ((0.0, 0.5), (0.5, 1.0), (0.0, 1.0)),
    ((0.0, 0.64), (0.68, 1.0), (0.0, 1.0)),
    ((0.0, 0.5), (0.54, 0.75), (0.79, 1.0)),
)
"""Part of the row of each track, from the top, by overlap and full duplex of the device."""
_COLORS = {
    _LAUNCH: palette.LAUNCHED,
    _SEND: palette.SENT,
    _RECEIVE: palette.RECEIVED,
    _SYNCHRONISE: palette.SYNCHRONISED,
}


@styled()
def draw_pipeline(
    problem: Problem, schedule: Schedule, *, title: str = "", bound: float | None = None
) -> Picture | None:
    """Draw the steady state; `bound` is a lower bound of the period. None if the schedule lacks transfers or time."""
    found = steady_state(problem, schedule)
    if found is None:
        return None
    unused = idle_devices(problem, schedule)
    shown = rows(problem, schedule)
    row_height = min(0.5, max(0.17, 5.5 / max(len(shown), 1)))
    clock = Clock(found.period * found.periods, problem.resolution)
    hidden = f"{counted(len(unused), 'more device')} without tasks" if not set(unused) <= set(shown) else ""
    notes = _notes(problem, schedule, found, clock, bound, hidden)
    picture = new_picture(1.7 + row_height * max(len(shown), 2), title or problem.name or "pipeline", *notes)
    axes = picture.subplots()
    _draw_rows(axes, problem, schedule, shown, clock, found)
    bars = _bars(problem, schedule, found, shown)
    colors = _stage_colors(problem, schedule)
    _draw_bars(axes, problem, bars, found, clock, colors, row_height)
    _draw_idle(axes, bars, found, clock, row_height)
    line_legend(picture, _legend(problem, schedule, colors, bars))
    return picture


def rows(problem: Problem, schedule: Schedule) -> list[int]:
    """Return the devices that have a row, in the order of their first stages; idle devices last, if there are few."""
    devices = [d for team in teams(problem, schedule) for d in team]
    return devices + (idle_devices(problem, schedule) if problem.n_devices <= IDLE_ROWS else [])


def row_names(problem: Problem, schedule: Schedule, devices: list[int]) -> list[str]:
    """Return the names of devices with the numbers of their stages before them."""
    stage = dict.fromkeys(devices, "")
    for team, use in zip(teams(problem, schedule), stage_uses(problem, schedule), strict=True):
        if 0 < len(use.stages) <= LISTED:
            stage |= dict.fromkeys(team, ",".join(map(str, use.stages)) + ": ")
    names = distinct([problem.device_names[d] for d in devices], 22)
    return [stage[d] + name for d, name in zip(devices, names, strict=True)]


class _Bars:
    """The operations to draw: those of the window with a track and a length, one entry each, by row and start."""

    def __init__(
        self, found: Occurrences, row: Int, low: Float, high: Float, lane: Int, color: Int, kept: Bool
    ) -> None:
        order = np.flatnonzero(kept)[np.lexsort((found.start[kept], lane[kept], row[kept]))]
        begin, until = found.window
        self.kind, self.run, self.task = found.kind[order], found.run[order], found.task[order]
        self.row, self.lane, self.low, self.high = row[order], lane[order], low[order], high[order]
        self.color = color[order]
        self.start = np.maximum(found.start[order], begin) - begin
        self.end = np.minimum(found.end[order], until) - begin

    def blocks(self, tolerance: int) -> Int:
        """The number of the block of each bar: bars of one run and colour that follow each other in a row."""
        if not len(self.row):
            return self.row
        keys = (self.row, self.lane, self.run, self.kind, self.color)
        new = np.any([key[1:] != key[:-1] for key in keys], axis=0) | (self.start[1:] > self.end[:-1] + tolerance)
        return np.concatenate(([0], np.cumsum(new)))


def _bars(problem: Problem, schedule: Schedule, found: Occurrences, shown: list[int]) -> _Bars:
    pipeline = rules(problem)
    begin, until = found.window
    row_of = np.full(problem.n_devices, -1, dtype=np.int64)
    row_of[shown] = np.arange(len(shown))
    tracks = np.array(_TRACKS)[(2 * pipeline.overlap + pipeline.full_duplex)[found.device]]
    first = np.maximum(found.tracks[:, 0], 0)
    last = np.maximum(found.tracks.max(axis=1), 0)
    each = np.arange(len(first))
    low, high = tracks[each, first, 0], tracks[each, last, 1]
    kept = (found.tracks[:, 0] >= 0) & (found.start < until) & (found.end > begin) & (found.end > found.start)
    color = np.zeros(len(first), dtype=np.int64)
    of_task = 2 * stage_ranks(problem, schedule) + backward(problem)
    own = found.task >= 0
    color[own] = of_task[found.task[own]]
    color[found.kind > _LAUNCH] = -1
    return _Bars(found, row_of[found.device], low, high, first + 3 * last, color, kept)


def _stage_colors(problem: Problem, schedule: Schedule) -> list[str]:
    """The colours of forward and backward tasks of each stage, in turn."""
    count = int(stage_ranks(problem, schedule).max(initial=-1)) + 1
    return [shade for color in palette.stage_colors(count) for shade in (color, palette.tint(color))]


def _notes(
    problem: Problem, schedule: Schedule, found: Occurrences, clock: Clock, bound: float | None, hidden: str
) -> list[str]:
    latency = makespan(problem, schedule)
    parts = [f"period {clock.text(found.period)}"]
    if bound:
        parts.append(f"lower bound {clock.text(bound)}")
    parts.append(f"latency {Clock(latency, problem.resolution).text(latency)} ({latency / found.period:.3g} periods)")
    parts.append(hidden)
    return [" · ".join(filter(None, parts)), f"{found.caption}; numbers are those of runs"]


def _draw_rows(
    axes: Axes, problem: Problem, schedule: Schedule, shown: list[int], clock: Clock, found: Occurrences
) -> None:
    """Draw the background of the rows with names, stages and idle time, and the boundaries of periods."""
    idle = dict.fromkeys(shown, 1.0)
    for team, use in zip(teams(problem, schedule), stage_uses(problem, schedule), strict=True):
        idle |= dict.fromkeys(team, use.idle)
    length = float(found.period * problem.resolution)
    numbers = [f"{seconds_text(idle[d] * length, 4)} ({idle[d]:.1%})" if idle[d] else "none" for d in shown]
    right = label_rows(axes, row_names(problem, schedule, shown), numbers)
    right.set_ylabel("idle in each period", color=palette.MUTED, fontsize=8.5, rotation=270, va="bottom")
    end = clock(found.period * found.periods)
    axes.set_xlim(0.0, end)
    axes.set_xlabel(f"time ({clock.unit})")
    axes.barh(range(len(shown)), end, height=2 * _HALF, color=palette.IDLE, zorder=0.5)
    for k in range(found.periods + 1):
        axes.axvline(clock(k * found.period), color=palette.INK, linewidth=1.0, linestyle=(0, (4, 2)), zorder=2.8)


def _draw_bars(
    axes: Axes, problem: Problem, bars: _Bars, found: Occurrences, clock: Clock, colors: list[str], height: float
) -> None:
    """Draw the operations, with names and numbers of runs where they fit."""
    if not len(bars.row):
        return
    dots = (WIDTH - 2.3) * POINTS / clock(found.period * found.periods)  # points of one unit, about
    single = len(bars.row) <= DETAILED
    block = bars.blocks(0 if single else found.period * found.periods // 2000)
    first = np.flatnonzero(np.diff(block, prepend=-1))
    start, end = bars.start[first], np.maximum.reduceat(bars.end, first)
    color_of = {-1: "", **dict(enumerate(colors))}
    pairs = zip(bars.kind.tolist(), bars.color.tolist(), strict=True)
    shades = [_COLORS.get(kind) or color_of[color] for kind, color in pairs]
    top, bottom = bars.row + _HALF * (2 * bars.low - 1), bars.row + _HALF * (2 * bars.high - 1)
    chosen = np.arange(len(bars.row)) if single else first
    until = bars.end if single else end
    corners = boxes(clock(bars.start[chosen]), clock(until), top[chosen], bottom[chosen])
    lines = np.where(clock(until - bars.start[chosen]) * dots > 4, 0.4, 0.0)
    filled = [shades[k] for k in chosen.tolist()]
    fill(axes, corners, filled, edgecolors=palette.PAPER, linewidths=lines, zorder=2, snap=False)
    computes = bars.kind[first] == _TASK
    places, begins = first[computes], clock(start[computes])
    axes.vlines(begins, top[places], bottom[places], color=palette.PAPER, linewidth=1.4, zorder=2.5)
    size = min(7.5, height * 2 * _HALF * POINTS * 0.62)
    if size < 4.0:
        return
    names = distinct(problem.task_names, 24)
    for place, k in enumerate(first.tolist()):
        if bars.kind[k] != _TASK:
            continue
        own = range(k, int(first[place + 1]) if place + 1 < len(first) else len(block))
        middle, color = (top[k] + bottom[k]) / 2, palette.text_on(shades[k])
        style: dict[str, Any] = {
            "color": color, "ha": "center", "va": "center_baseline", "clip_on": True, "zorder": 3,
            "path_effects": [Stroke(linewidth=2.5, foreground=shades[k]), Normal()],
        }  # fmt: skip
        texts = [(i, f"{bars.run[i] + 1}: {names[bars.task[i]]}") for i in own] if single and len(own) <= 12 else []
        rooms = [int((clock(bars.end[i] - bars.start[i]) * dots - 3) / (0.62 * size)) for i, _ in texts]
        if texts and all(room >= min(len(text), 9) for room, (_, text) in zip(rooms, texts, strict=True)):
            for room, (i, text) in zip(rooms, texts, strict=True):
                axes.text(clock(bars.start[i] + bars.end[i]) / 2, middle, short(text, room), fontsize=size, **style)
            continue
        room = clock(end[place] - start[place]) * dots / (0.64 * size)
        text = f"run {bars.run[k] + 1}"
        text = text if room >= len(text) + 1 else text.removeprefix("run ")
        if room >= len(text) + 0.5:
            axes.text(clock(start[place] + end[place]) / 2, middle, text, fontsize=size, weight="bold", **style)


def _draw_idle(axes: Axes, bars: _Bars, found: Occurrences, clock: Clock, height: float) -> None:
    """Write the length of the gaps into them, where it fits."""
    size = min(7.0, height * 2 * _HALF * POINTS * 0.55)
    dots = (WIDTH - 2.3) * POINTS / clock(found.period * found.periods)
    for row in np.unique(bars.row).tolist() if size >= 4.0 else ():
        own = bars.row == row
        order = np.argsort(bars.start[own], kind="stable")
        reach = np.maximum.accumulate(bars.end[own][order])[:-1]  # gaps that the window cuts are not named
        begin = bars.start[own][order][1:]
        for k in np.flatnonzero(begin > reach).tolist():
            text = f"{clock(begin[k] - reach[k]):.3g} {clock.unit}"
            if clock(begin[k] - reach[k]) * dots > 0.66 * size * len(text):
                axes.text(clock(begin[k] + reach[k]) / 2, row, text, fontsize=size, color=palette.MUTED, style="italic",
                          ha="center", va="center_baseline", clip_on=True, zorder=3)  # fmt: skip


def _legend(problem: Problem, schedule: Schedule, colors: list[str], bars: _Bars) -> list[tuple[Any, str]]:
    trained, count = bool(backward(problem).any()), len(colors) // 2
    names = stage_names(problem, schedule)
    strips = [tuple(dict.fromkeys(colors[2 * k : 2 * k + 2 if trained else 2 * k + 1])) for k in range(count)]
    entries: list[tuple[Any, str]] = [(Strip(s), short(name, 24)) for s, name in zip(strips, names, strict=True)]
    if count > LISTED:
        entries = [(Strip([strip[0] for strip in strips[:LISTED]]), f"{names[0]} … {names[-1]}, colours repeat")]
    if trained:
        entries.append((Strip(colors[1 : 2 * LISTED : 2]), "lighter: backward"))
    used = set(bars.kind.tolist())
    for kind, sample, text in (
        (_SEND, patch_sample(palette.SENT), "sends"),
        (_RECEIVE, patch_sample(palette.RECEIVED), "receives"),
        (_LAUNCH, patch_sample(palette.LAUNCHED), launch_text(problem, schedule)),
        (_SYNCHRONISE, patch_sample(palette.SYNCHRONISED), "synchronises replicas"),
    ):
        if kind in used:
            entries.append((sample, text))
    entries.append((line_sample(palette.INK, width=1.0, dashes=(4, 2)), "period"))
    return entries
