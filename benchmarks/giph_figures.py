"""Draw the figures of `giph_evaluation.py` and `giph_adaptivity.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from giph_sets import interval
from matplotlib.ticker import MaxNLocator

from placeopt.views.plots import palette
from placeopt.views.plots.canvas import Picture, line_legend, line_sample, new_picture, styled

COLORS = {
    "random": palette.HUES[3],
    "random-move": palette.HUES[5],
    "random-task-eft": palette.HUES[1],
    "random-task-greedy": palette.HUES[4],
    "annealing": palette.HUES[0],
    "annealing-2": palette.HUES[2],
    "auto": palette.HUES[5],
    "giph": palette.HUES[2],
    "giph-plus": palette.HUES[0],
    "giph-task-eft": palette.HUES[2],
    "placeto": palette.HUES[5],
    "rnn-placer": palette.HUES[4],
    "heft": palette.INK,
    "peft": palette.MUTED,
}
"""The colour of each search in all figures."""

LINES = ("heft", "peft")
"""Heuristics drawn as horizontal lines."""

DASHES = {
    "heft": (5, 2), "peft": (1.5, 1.5), "giph-plus": (5, 2), "giph-task-eft": (4, 1.5), "placeto": (1.5, 1.5),
    "rnn-placer": (4, 1.5),
}  # fmt: skip


def dashes(name: str) -> tuple[float, ...]:
    """The dash pattern of a search: of heuristics, and of searches with the colour of another one."""
    return DASHES.get(name, ())


def legend(picture: Picture, names: Sequence[str]) -> None:
    """Add the legend of colours."""
    line_legend(picture, [(line_sample(COLORS[name], dashes=dashes(name)), name) for name in names])


def draw_steps(courses: Sequence[Any], grid: np.ndarray) -> Picture:
    """SLR of the best placement so far against steps: the paper's Figure 4."""
    with styled():
        picture = new_picture(
            6.4,
            "Search policies on GiPH's problems: SLR of the best placement so far",
            "mean and 95 % confidence interval; all start from the same random placements",
        )
        names = [*courses[0].cost, *LINES]
        legend(picture, names)
        axes = picture.subplots(2, 2, sharex=True, sharey=True).ravel()
        for panel, course in zip(axes, courses, strict=True):
            panel.set_title(course.title)
            panel.grid(axis="y")
            for name in course.cost:
                mean, half = interval(course.slr[name])
                panel.fill_between(grid, mean - half, mean + half, color=COLORS[name], alpha=0.15, linewidth=0)
                panel.plot(grid, mean, color=COLORS[name], linewidth=1.6)
            for name in LINES:
                panel.axhline(course.slr[name].mean(), color=COLORS[name], linewidth=1.2, dashes=dashes(name))
            panel.set_xlim(0, grid[-1])
        for panel in axes[2:]:
            panel.set_xlabel("search steps for each task")
        for panel in axes[::2]:
            panel.set_ylabel("SLR")
        return picture


def draw_depths(course: Any, borders: Sequence[int]) -> Picture:
    """SLR of the final placement against the depth of the graph: the paper's Figure 5."""
    with styled():
        picture = new_picture(
            3.8,
            f"SLR after 2 |V| steps by depth of the graph: {course.title}",
            "mean; bars show the standard deviation",
        )
        names = [name for name in (*course.cost, "heft") if name != "random-move"]
        legend(picture, names)
        panel = picture.subplots()
        chosen = [(course.depth >= low) & (course.depth < high) for low, high in pairwise(borders)]
        chosen = [mask for mask in chosen if mask.any()]
        middle = np.array([course.depth[mask].mean() for mask in chosen])
        for place, name in enumerate(names):
            values = [course.slr[name][mask, -1] for mask in chosen]
            shift = 0.35 * (place - (len(names) - 1) / 2)
            panel.errorbar(
                middle + shift,
                [each.mean() for each in values],
                [each.std() for each in values],
                color=COLORS[name],
                linewidth=1.6,
                elinewidth=1.0,
                marker=palette.MARKERS[place % len(palette.MARKERS)],
                markersize=4,
                linestyle=(0, dashes(name)) if dashes(name) else "-",
            )
        panel.grid(axis="y")
        panel.set_xlabel("tasks on the longest path")
        panel.set_ylabel("SLR")
        return picture


def draw_changes(slr: Mapping[str, np.ndarray], devices: Sequence[int], slow: Sequence[float]) -> Picture:
    """SLR after each change of the network: the paper's Figure 6; `slr[name]` (graphs, changes + 1)."""
    with styled():
        picture = new_picture(
            5.0,
            "A network that loses devices and gets slower ones: SLR after every change",
            "mean and 95 % confidence interval; policies go on from the placement before the change",
        )
        legend(picture, list(slr))
        upper, lower = picture.subplots(2, 1, sharex=True, height_ratios=(4, 1))
        changes = np.arange(len(devices))
        for name, rows in slr.items():
            mean, half = interval(rows)
            upper.fill_between(changes, mean - half, mean + half, color=COLORS[name], alpha=0.15, linewidth=0)
            upper.plot(
                changes,
                mean,
                color=COLORS[name],
                linewidth=1.6,
                linestyle=(0, dashes(name)) if dashes(name) else "-",
            )
        upper.set_ylabel("SLR")
        upper.grid(axis="y")
        upper.set_xlim(0, changes[-1])
        lower.step(changes, devices, where="mid", color=palette.INK, linewidth=1.2)
        lower.step(changes, slow, where="mid", color=palette.LIMIT, linewidth=1.2, linestyle=(0, (3, 1.5)))
        lower.set_ylabel("devices")
        lower.set_ylim(0, 1.4 * max(devices))
        lower.text(0.15, devices[0] + 1.5, "in all", va="bottom")
        lower.text(0.15, 2.0, "of them slower", va="bottom", color=palette.LIMIT)
        lower.set_xlabel("changes of the network")
        lower.xaxis.set_major_locator(MaxNLocator(integer=True))
        return picture
