"""Draw the figures of GiPH's experiments with learned policies."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from giph_runs import GRID
from giph_sets import interval

from placeopt.views.plots import palette
from placeopt.views.plots.canvas import Picture, line_legend, line_sample, new_picture, styled

COLORS = {
    "random": palette.HUES[3],
    "random-task-eft": palette.HUES[1],
    "annealing": palette.HUES[4],
    "giph": palette.HUES[0],
    "giph-3": palette.HUES[2],
    "giph-5": palette.HUES[5],
    "giph-ne": palette.HUES[1],
    "giph-ne-pol": palette.HUES[3],
    "graphsage-ne": palette.HUES[4],
    "giph-task-eft": palette.HUES[2],
    "placeto": palette.HUES[5],
    "giph-plus, packaged": palette.HUES[0],
    "heft": palette.INK,
}
"""The colour of each search; the lines of one figure differ."""


def dashes(name: str) -> tuple[float, ...]:
    """The dash pattern of a search; only heuristics and variants with the colour of another one have one."""
    patterns = {"heft": (5, 2), "giph-task-eft": (4, 1.5), "placeto": (1.5, 1.5), "giph-plus, packaged": (4, 1.5)}
    return patterns.get(name, ())


def draw_steps(data_set: str, noise: float, found: Mapping[str, np.ndarray]) -> Picture:
    """SLR of the best placement so far against steps: the paper's figures 4, 7 and 9; values (cases, grid)."""
    with styled():
        picture = new_picture(
            4.6,
            f"{data_set}, noise {noise:g}: SLR of the best placement so far",
            "mean over problems and trainings, 95 % interval over problems; all start at the same placements",
        )
        line_legend(picture, [(line_sample(COLORS[name], dashes=dashes(name)), name) for name in found])
        panel = picture.subplots()
        panel.grid(axis="y")
        for name, rows in found.items():
            mean, half = interval(rows)
            style = (0, dashes(name)) if dashes(name) else "-"
            panel.fill_between(GRID, mean - half, mean + half, color=COLORS[name], alpha=0.12, linewidth=0)
            panel.plot(GRID, mean, color=COLORS[name], linewidth=1.6, linestyle=style)
        panel.set_xlim(0, GRID[-1])
        panel.set_xlabel("search steps for each task")
        panel.set_ylabel("SLR")
        return picture


def draw_convergence(data_set: str, potential: str, curves: Mapping[str, np.ndarray]) -> Picture:
    """Validation SLR against episodes: the paper's figures 14 and 15; values (trainings, points)."""
    with styled():
        detail = "" if potential == "paper" else ", without the start-time potential"
        picture = new_picture(
            4.6, f"{data_set}{detail}: SLR on 20 validation cases during training", "mean and range of the trainings"
        )
        line_legend(picture, [(line_sample(COLORS[name], dashes=dashes(name)), name) for name in curves])
        panel = picture.subplots()
        panel.grid(axis="y")
        for name, rows in curves.items():
            episodes = 5 * np.arange(rows.shape[1])
            style = (0, dashes(name)) if dashes(name) else "-"
            panel.fill_between(episodes, rows.min(axis=0), rows.max(axis=0), color=COLORS[name], alpha=0.1, linewidth=0)
            panel.plot(episodes, rows.mean(axis=0), color=COLORS[name], linewidth=1.6, linestyle=style)
        panel.set_xlim(0, episodes[-1])
        panel.set_xlabel("training episodes")
        panel.set_ylabel("SLR")
        return picture
