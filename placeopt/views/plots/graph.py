"""The task graph, each task in the colour of its device, edges between devices and the critical path marked.

Names stand in graphs of up to `NAMED` tasks. Above `EDGES` edges only the tasks are drawn, as points: the pattern of
colours then tells which parts of the graph are where.
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
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.views.plots import palette
from placeopt.views.plots.canvas import WIDTH, Picture, device_legend, line_legend, line_sample, new_picture, styled
from placeopt.views.plots.layouts import Layout, layout
from placeopt.views.plots.names import telling

NAMED = 40
"""Tasks up to which each has its name."""
EDGES = 15_000
"""Edges up to which they are drawn."""
VECTORS = 3000
"""Tasks and edges up to which an SVG or PDF holds each as a shape; above, it holds a picture of them."""


def draw_graph(
    problem: Problem, schedule: Schedule | None = None, *, title: str = "", graphviz: bool = True
) -> Picture:
    """The picture; without a schedule all tasks have one colour."""
    with styled():
        return _draw(problem, schedule, title, graphviz)


def _draw(problem: Problem, schedule: Schedule | None, title: str, graphviz: bool) -> Picture:
    placed = layout(problem, graphviz=graphviz)
    named = 0 < problem.n_tasks <= NAMED
    # As wide as a page; as high as the layout asks for, within what a page can hold and a reader needs.
    scale = min((WIDTH - 0.5) / max(placed.width, 1e-9), 0.55)
    height = min(max(placed.height * scale, 2.2), 8.0) if problem.n_tasks else 0.8
    moving = None if schedule is None else schedule.device[problem.edge_source] != schedule.device[problem.edge_target]
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
    colors = palette.device_colors(problem.device_types)
    axes.scatter(
        placed.x, placed.y, s=size**2, zorder=3,
        linewidths=np.where(outlined, min(size / 8, 1.2), 0.4 if size > 5 else 0.0).tolist(),
        edgecolors=[palette.INK if marked else palette.PAPER for marked in outlined.tolist()],
        c=[palette.MUTED] * problem.n_tasks if schedule is None else [colors[d] for d in schedule.device.tolist()],
        rasterized=shape,
    )  # fmt: skip
    if named:
        for task, name in enumerate(telling(problem.task_names, 9)):
            color = palette.PAPER if schedule is None else palette.text_on(colors[int(schedule.device[task])])
            letters = min(7.5, 0.92 * size / (0.62 * max(len(name), 1)))
            axes.text(placed.x[task], placed.y[task], name, fontsize=letters, ha="center", va="center_baseline",
                      color=color, zorder=5)  # fmt: skip
    entries: list[tuple[Any, str]] = []
    if drawn and moving is not None and moving.any():
        entries.append((line_sample(palette.MUTED, width=1.1), "data moves"))
    if critical.any():
        entries.append((line_sample(palette.INK, width=2.0), "on the critical path"))
    if schedule is None:
        line_legend(picture, entries)
    else:
        used = sorted(set(schedule.device.tolist()))
        device_legend(picture, problem.device_names, problem.device_types, entries, used)
    return picture


def _diameter(placed: Layout, height: float, named: bool) -> float:
    """Points across a task: as much as its neighbours leave, in inches 1/72."""
    across = 72 * (WIDTH - 0.5) / (placed.width + 0.6)
    down = 72 * height / (placed.height + 0.6)
    if named:
        return float(min(across * 0.8, down * 0.8, 34.0))
    return float(min(max(min(across, down) * 0.9, min(down * 0.8, 4.5), 0.8), 11.0))


def critical_edges(problem: Problem, path: Sequence[Step]) -> Bool:
    """(e,) whether the critical path runs along the edge: from a task to the next, or by way of its transfer."""
    marked = np.zeros(problem.n_edges, dtype=np.bool_)
    marked[[step.edge for step in path if step.edge is not None]] = True
    for before, after in pairwise(step for step in path if step.kind == "task"):
        edges: Int = problem.in_edge[problem.in_start[after.task] : problem.in_start[after.task + 1]]
        marked[edges[problem.edge_source[edges] == before.task]] = True
    return marked


def _draw_edges(axes: Axes, problem: Problem, placed: Layout, moving: Any, critical: Any, shape: bool) -> None:
    many = problem.n_edges > 1500
    stays = ~critical if moving is None else ~critical & ~moving
    _draw_lines(axes, problem, placed, stays, palette.GRID, 0.4 if many else 0.8, 0.6 if many else 1.0, 1, shape)
    if moving is not None:
        _draw_lines(
            axes,
            problem,
            placed,
            moving & ~critical,
            palette.MUTED,
            0.4 if many else 0.8,
            0.4 if many else 0.9,
            2,
            shape,
        )
    _draw_lines(axes, problem, placed, critical, palette.INK, 1.0 if many else 1.6, 1.0, 2.5, shape)


def _draw_lines(
    axes: Axes, problem: Problem, placed: Layout, chosen: Any, color: str, width: float, alpha: float, order: float,
    shape: bool,
) -> None:  # fmt: skip
    edges = np.flatnonzero(chosen)
    lines: LineCollection | PathCollection
    if placed.curves is None:
        ends = np.stack(
            [
                np.stack([placed.x[side[edges]], placed.y[side[edges]]], axis=-1)
                for side in (problem.edge_source, problem.edge_target)
            ],
            axis=1,
        )
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
    """The curve of an edge, from its producer's middle to its consumer's."""
    ends = [[placed.x[task], placed.y[task]] for task in (source, target)]
    codes = [Path.MOVETO, Path.LINETO, *[Path.CURVE4] * (len(points) - 1), Path.LINETO]
    return Path(np.concatenate((ends[:1], points, ends[1:])), codes)
