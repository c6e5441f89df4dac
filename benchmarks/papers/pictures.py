"""Pictures in the form of those in the papers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from placeopt.views.plots import palette
from placeopt.views.plots.canvas import Picture, line_legend, line_sample, new_picture, styled

COLORS = palette.HUES
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1.5, 1.5), (6, 2, 1.5, 2))


def draw_distributions(title: str, panels: Mapping[str, Mapping[str, Sequence[float]]]) -> Picture:
    """Cumulative distributions of relative deviations, one panel for each measure: Celeritas, figure 5."""
    with styled():
        picture = new_picture(3.6, title, "share of the kernels with at most this deviation")
        names = list(next(iter(panels.values())))
        samples = [(line_sample(COLORS[k], dashes=DASHES[k]), name) for k, name in enumerate(names)]
        line_legend(picture, samples)
        for axes, (measure, found) in zip(picture.subplots(1, len(panels)), panels.items(), strict=True):
            axes.grid(axis="y")
            for k, values in enumerate(found.values()):
                shares = np.arange(1, len(values) + 1) / len(values)
                style = (0, DASHES[k]) if DASHES[k] else "-"
                x = [0.0, *(100 * np.sort(values)).tolist(), 100.0]
                axes.step(x, [0.0, *shares, 1.0], where="post", color=COLORS[k], linewidth=1.6, linestyle=style)
            axes.set_xlim(0, 100)
            axes.set_ylim(0, 1.02)
            axes.set_xlabel(f"deviation of {measure} in %")
        return picture


Groups = Mapping[str, Mapping[str, float | None]]
"""The value of each method for each group; None: out of memory."""


def draw_bars(title: str, subtitle: str, panels: Mapping[str, Groups], unit: str) -> Picture:
    """Bars of several methods for each group, such as the paper's and ours side by side: Celeritas, figure 6."""
    with styled():
        picture = new_picture(3.8, title, subtitle)
        methods = list(next(iter(next(iter(panels.values())).values())))
        line_legend(picture, [(line_sample(COLORS[k]), method) for k, method in enumerate(methods)])
        width = 0.8 / len(methods)
        for axes, (name, groups) in zip(picture.subplots(1, len(panels)), panels.items(), strict=True):
            axes.grid(axis="y")
            axes.set_title(name)
            for k, method in enumerate(methods):
                places = np.arange(len(groups)) + (k - (len(methods) - 1) / 2) * width
                values = [each[method] for each in groups.values()]
                axes.bar(places, [value or 0.0 for value in values], 0.92 * width, color=COLORS[k])
                for place, value in zip(places.tolist(), values, strict=True):
                    if value is None:
                        style = {"ha": "center", "va": "bottom", "fontsize": 7, "color": palette.MUTED}
                        axes.text(place, 0.0, " out of memory", rotation=90, **style)
            axes.set_xticks(range(len(groups)), list(groups))
            axes.set_ylabel(unit)
        return picture
