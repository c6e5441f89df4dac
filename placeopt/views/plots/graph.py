"""Draw the task graph, tasks in the colours of their devices, with transfers and the critical path marked.

Graphs of up to `NAMED` tasks show task names. Above `EDGES` edges only the tasks are drawn, as points: the colours show
how the graph is distributed over the devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.path import Path

from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.critical_path import Step, critical_path
from placeopt.model.modes import homes
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.views.plots import palette
from placeopt.views.plots.canvas import WIDTH, Picture, device_legend, line_legend, line_sample, new_picture, styled
from placeopt.views.plots.layouts import Layout, layout
from placeopt.views.plots.names import distinct

NAMED = 40
"""Maximum number of tasks that are named."""
EDGES = 15_000
"""Maximum number of edges that are drawn."""
VECTORS = 3000
"""Maximum number of tasks and edges that SVG and PDF hold as shapes; more are rasterised."""


@styled()
def draw_graph(problem: Problem, schedule: Schedule | None = None, *, title: str = "") -> Picture:
    """Draw the graph; without a schedule all tasks have one colour."""
    placed = layout(problem)
    named = 0 < problem.n_tasks <= NAMED
    # As wide as a page; the height follows the layout, within limits.
    scale = min((WIDTH - 0.5) / max(placed.width, 1e-9), 0.55)
    height = min(max(placed.height * scale, 2.2), 8.0) if problem.n_tasks else 0.8
    home = None if schedule is None else homes(problem)[schedule.device]
    moving = None if home is None else home[problem.edge_source] != home[problem.edge_target]
    notes = [f"{problem.n_tasks:,} tasks, {problem.n_edges:,} edges"]
    if moving is not None:
        notes[0] += f", {int(moving.sum()):,} between devices"
    drawn = problem.n_edges <= EDGES
    notes.append("" if drawn else "edges are left out")
    picture = new_picture(height + 0.9, title or problem.name or "graph", " · ".join(filter(None, notes)))
    axes = picture.subplots()
    axes.set_axis_off()
    axes.set_xlim(placed.x.min(initial=0) - 0.6, placed.x.max(initial=0) + 0.6)
    axes.set_ylim(placed.y.min(initial=0) - 0.6, placed.y.max(initial=0) + 0.6)
    if not problem.n_tasks:
        axes.text(0.5, 0.5, "no tasks", transform=axes.transAxes, ha="center", color=palette.MUTED)
        return picture
    size = _diameter(placed, height, named)
    shape = problem.n_tasks + problem.n_edges > VECTORS
    path = () if schedule is None else critical_path(problem, schedule)
    critical = critical_edges(problem, path)
    outlined = np.zeros(problem.n_tasks, dtype=np.bool_)
    outlined[[step.task for step in path if step.kind == "task"]] = True
    if drawn:
        _draw_edges(axes, problem, placed, moving, critical, shape)
    elif critical.any():
        _draw_lines(axes, problem, placed, critical, palette.INK, 0.6, 1.0, 4, shape)
    colors = palette.problem_colors(problem)
    axes.scatter(
        placed.x, placed.y, s=size**2, zorder=3,
        linewidths=np.where(outlined, min(size / 8, 1.2), 0.4 if size > 5 else 0.0).tolist(),
        edgecolors=[palette.INK if marked else palette.PAPER for marked in outlined.tolist()],
        c=[palette.MUTED] * problem.n_tasks if schedule is None else [colors[d] for d in schedule.device.tolist()],
        rasterized=shape,
    )  # fmt: skip
    if named:
        for task, name in enumerate(distinct(problem.task_names, 9)):
            color = palette.PAPER if schedule is None else palette.text_on(colors[int(schedule.device[task])])
            letters = min(7.5, 0.92 * size / (0.62 * max(len(name), 1)))
            axes.text(placed.x[task], placed.y[task], name, fontsize=letters, ha="center", va="center_baseline",
                      color=color, zorder=5)  # fmt: skip
    entries: list[tuple[Any, str]] = []
    if drawn and moving is not None and moving.any():
        entries.append((line_sample(palette.MUTED, width=1.1), "transfer"))
    if critical.any():
        entries.append((line_sample(palette.INK, width=2.0), "critical path"))
    if home is None:
        line_legend(picture, entries)
    else:
        device_legend(picture, problem, entries, sorted(set(home.tolist())))
    return picture


def _diameter(placed: Layout, height: float, named: bool) -> float:
    """Return the diameter of a task in points (1/72 inch), limited by the distance to its neighbours."""
    across = 72 * (WIDTH - 0.5) / (placed.width + 0.6)
    down = 72 * height / (placed.height + 0.6)
    if named:
        return float(min(across * 0.8, down * 0.8, 34.0))
    return float(min(max(min(across, down) * 0.9, min(down * 0.8, 4.5), 0.8), 11.0))


def critical_edges(problem: Problem, path: Sequence[Step]) -> Bool:
    """Return (e,) whether the critical path uses the edge: directly between its tasks, or through its transfer."""
    marked = np.zeros(problem.n_edges, dtype=np.bool_)
    marked[[step.edge for step in path if step.edge is not None]] = True
    for before, after in pairwise(step for step in path if step.kind == "task"):
        edges: Int = problem.in_edge[problem.in_start[after.task] : problem.in_start[after.task + 1]]
        marked[edges[problem.edge_source[edges] == before.task]] = True
    return marked


def _draw_edges(axes: Axes, problem: Problem, placed: Layout, moving: Any, critical: Any, shape: bool) -> None:
    many = problem.n_edges > 1500
    moved = np.zeros_like(critical) if moving is None else moving
    for chosen, color, width, alpha, order in (
        (~critical & ~moved, palette.GRID, 0.4 if many else 0.8, 0.6 if many else 1.0, 1),
        (~critical & moved, palette.MUTED, 0.4 if many else 0.8, 0.4 if many else 0.9, 2),
        (critical, palette.INK, 1.0 if many else 1.6, 1.0, 2.5),
    ):
        _draw_lines(axes, problem, placed, chosen, color, width, alpha, order, shape)


def _draw_lines(
    axes: Axes, problem: Problem, placed: Layout, chosen: Any, color: str, width: float, alpha: float, order: float,
    shape: bool,
) -> None:  # fmt: skip
    edges = np.flatnonzero(chosen)
    lines: LineCollection | PathCollection
    if placed.curves is None:
        places = np.stack([placed.x, placed.y], axis=-1)
        ends = np.stack([places[problem.edge_source[edges]], places[problem.edge_target[edges]]], axis=1)
        lines = LineCollection(list(ends), colors=color, linewidths=width, alpha=alpha, zorder=order)
    else:
        paths = [
            _spline(placed.curves[edge], placed, int(problem.edge_source[edge]), int(problem.edge_target[edge]))
            for edge in edges.tolist()
        ]
        lines = PathCollection(
            paths, facecolors="none", edgecolors=color, linewidths=width, alpha=alpha, zorder=order, transOffset=None
        )
        lines.set_transform(axes.transData)
    lines.set_rasterized(shape)
    axes.add_collection(lines)


def _spline(points: Float, placed: Layout, source: int, target: int) -> Path:
    """Return the curve of an edge from the centre of its producer to the centre of its consumer."""
    ends = [[placed.x[task], placed.y[task]] for task in (source, target)]
    codes = [Path.MOVETO, Path.LINETO, *[Path.CURVE4] * (len(points) - 1), Path.LINETO]
    return Path(np.concatenate((ends[:1], points, ends[1:])), codes)
