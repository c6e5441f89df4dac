"""Figure, fonts, time axis, legends and file output shared by all plots.

Nothing goes through `matplotlib.pyplot`: there is no window and no list of open figures. The caller's matplotlib
settings are replaced only while a plot is drawn.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from io import BytesIO
from os import PathLike
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.legend_handler import HandlerBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from placeopt.io.files import write_whole, writing
from placeopt.model.arrays import Float
from placeopt.model.problem import Problem
from placeopt.views.plots import palette
from placeopt.views.plots.names import distinct, short
from placeopt.views.plots.targets import checked_file

WIDTH = 9.0
"""Inches; at 160 dots per inch twice the width that a README shows."""
POINTS = 72.0
"""Points per inch."""
DPI = 160
STYLE: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],  # part of matplotlib: the same glyphs everywhere
    "font.size": 9.0,
    "text.parse_math": False,  # names may contain dollar signs
    "text.usetex": False,
    "text.color": palette.INK,
    "axes.edgecolor": palette.MUTED,
    "axes.facecolor": palette.PAPER,
    "axes.labelcolor": palette.INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.unicode_minus": True,
    "axes.axisbelow": True,
    "figure.facecolor": palette.PAPER,
    "grid.color": palette.GRID,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.solid_capstyle": "butt",
    "lines.dash_capstyle": "butt",
    "lines.scale_dashes": True,
    "path.simplify": True,
    "pdf.fonttype": 42,
    "savefig.facecolor": palette.PAPER,
    "svg.fonttype": "path",
    "svg.hashsalt": "placeopt",  # the same plot gives the same file
    "xtick.color": palette.MUTED,
    "xtick.labelcolor": palette.INK,
    "xtick.labelsize": 8.5,
    "ytick.color": palette.MUTED,
    "ytick.labelcolor": palette.INK,
    "ytick.labelsize": 8.5,
}
_MARGIN = 0.08
_FALLBACKS = (
    "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans", "WenQuanYi Zen Hei", "Hiragino Sans", "Microsoft YaHei",
    "Malgun Gothic", "Arial Unicode MS",
)  # fmt: skip
_STABLE: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
_SIZES = ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB"), (0, "B"))
_UNITS = (
    ("h", 3600.0, 3.0), ("min", 60.0, 10.0), ("s", 1.0, 1.0), ("ms", 1e-3, 1.0), ("µs", 1e-6, 1.0), ("ns", 1e-9, 0.0),
)  # fmt: skip
"""Name, seconds, and the smallest number of units for which the unit is used."""


class Picture(Figure):
    """A figure that can write itself to a file and that notebooks show."""

    head: float = 0.0
    """Inches from the top used by title, notes and legend."""

    def write(self, path: str | PathLike[str]) -> None:
        """Write PNG, SVG or PDF by the suffix of the path; an existing file is replaced completely or not at all.

        Raises a UsageError if the suffix is unknown, or the file cannot be written.
        """
        target, suffix = checked_file(path)
        data = self._encoded(suffix)
        with writing(target):
            write_whole(target, data)

    def _encoded(self, suffix: str) -> bytes:
        stream = BytesIO()
        with styled(), warnings.catch_warnings():
            # Characters that no installed font has are drawn as boxes, without a warning on the terminal.
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            self.savefig(stream, format=suffix, dpi=DPI, metadata=_STABLE.get(suffix))
        return stream.getvalue()

    def _repr_png_(self) -> bytes:
        return self._encoded("png")


@cache
def _fallbacks() -> tuple[str, ...]:
    """Return installed fonts for characters that DejaVu Sans does not have."""
    installed = {font.name for font in fontManager.ttflist}
    return tuple(name for name in _FALLBACKS if name in installed)


@contextmanager
def styled() -> Iterator[None]:
    """Apply STYLE while drawing; restore the previous settings afterwards."""
    family = [*STYLE["font.family"], *_fallbacks()]
    with matplotlib.rc_context(STYLE | {"font.family": family}):  # type: ignore[arg-type,unused-ignore]  # typed by name in later versions
        yield


def new_picture(height: float, title: str, *notes: str, width: float = WIDTH) -> Picture:
    """Return an empty plot, sizes in inches, with a title and notes in small print."""
    picture = Picture(figsize=(width, height), dpi=DPI, layout="constrained")
    picture.text(_MARGIN / width, 1 - 0.07 / height, short(title, 84), ha="left", va="top", fontsize=11, weight="bold")
    picture.head = 0.32
    for note in filter(None, notes):
        place = 1 - picture.head / height
        picture.text(_MARGIN / width, place, note, ha="left", va="top", fontsize=8.5, color=palette.MUTED)
        picture.head += 0.18
    _lay_out(picture)
    return picture


def _lay_out(picture: Picture) -> None:
    """Keep the axes below the head."""
    engine = picture.get_layout_engine()
    assert engine is not None
    engine.set(w_pad=0.08, h_pad=0.05, rect=(0.0, 0.0, 1.0, 1.0 - picture.head / picture.get_figheight()))  # type: ignore[call-arg]


def size_unit(amount: float) -> tuple[str, int]:
    """Return a suitable unit for up to `amount` bytes, and its bytes."""
    return next((name, 1024**power) for power, name in _SIZES if amount >= 1024**power or not power)


def time_unit(seconds: float) -> tuple[str, float]:
    """Return a suitable unit for times up to `seconds`, and its length in seconds."""
    return next((name, size) for name, size, least in _UNITS if seconds >= least * size)


class Clock:
    """Converts ticks to the unit of a time axis."""

    def __init__(self, ticks: int, resolution: Fraction) -> None:
        self.unit, size = time_unit(ticks * float(resolution))
        self._scale = float(resolution) / size

    def __call__(self, ticks: Any) -> Any:
        """Convert a number or an array of ticks."""
        return ticks * self._scale

    def text(self, ticks: float) -> str:
        """Format ticks with the unit."""
        return f"{ticks * self._scale:.5g} {self.unit}"


def time_axis(axes: Axes, clock: Clock, end: float) -> None:
    """Set up the time axis from tick 0 to slightly after `end`."""
    axes.set_xlim(0.0, clock(1.005 * end if end > 0 else 1.0))
    axes.set_xlabel(f"time ({clock.unit})")
    axes.grid(axis="x")


def label_rows(
    axes: Axes, names: Sequence[str], numbers: Sequence[str], places: Sequence[float] | None = None, end: float = 0.0
) -> Any:
    """Label rows from the top: names on the left, numbers on the right; return the axis on the right.

    The middles of rows are 0, 1, ... unless `places` states them, with the `end` of the last row.
    """
    size = 8.5 if len(names) <= 16 else 7.0 if len(names) <= 36 else 5.5
    places = range(len(names)) if places is None else places
    axes.set_ylim(max(end, len(names), 1) - 0.45, -0.55)
    axes.set_yticks(places, distinct(names, 24), fontsize=size)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    right = axes.secondary_yaxis("right")
    right.set_yticks(places, numbers, fontsize=size)
    right.tick_params(axis="y", length=0, labelcolor=palette.MUTED)
    right.spines["right"].set_visible(False)
    return right


def boxes(start: Float, end: Float, low: Float, high: Float) -> Float:
    """Return the corners (k, 4, 2) of rectangles."""
    return np.stack([np.stack(c, axis=-1) for c in ((start, low), (end, low), (end, high), (start, high))], axis=1)


def fill(axes: Axes, areas: Iterable[Any], colors: Sequence[str], **style: Any) -> None:
    """Draw areas (k, 2) as one collection, which is much faster than one patch each."""
    style = dict[str, Any](linewidths=0.0, edgecolors="none") | style
    axes.add_collection(PolyCollection(list(areas), facecolors=colors, **style), autolim=False)


def device_legend(picture: Picture, problem: Problem, more: Sequence[tuple[Any, str]], used: Sequence[int]) -> None:
    """Draw a legend below the title: the `used` devices, or device types if these are many, and further entries."""
    colors = palette.problem_colors(problem)
    if len(used) <= len(palette.HUES):
        swatches = tuple(palette.Swatch(problem.device_names[d], (colors[d],)) for d in used)
    else:
        swatches = palette.problem_legend(problem)
    entries: list[tuple[Any, str]] = [(Strip(each.colors), short(each.label, 44)) for each in swatches]
    line_legend(picture, [*entries, *more])


def line_legend(picture: Picture, entries: Sequence[tuple[Any, str]]) -> None:
    """Draw a legend of (artist, text) entries below the title, in as many columns as fit."""
    if not entries:
        return
    width, height = picture.get_size_inches()
    columns = _columns([0.062 * len(text) + 0.52 for _, text in entries], width - 2 * _MARGIN)
    # matplotlib drops labels that start with an underscore, so the texts are set afterwards.
    box = picture.legend(
        [artist for artist, _ in entries], [str(i) for i in range(len(entries))], loc="upper left", ncols=columns,
        bbox_to_anchor=(_MARGIN / width, 1 - picture.head / height), handlelength=2.2, columnspacing=1.6, borderpad=0.1,
        borderaxespad=0.0, handler_map={Strip: _Strips()},
    )  # fmt: skip
    for text, (_, label) in zip(box.get_texts(), entries, strict=True):
        text.set_text(label)
    picture.head += 0.06 + 0.18 * -(-len(entries) // columns)
    _lay_out(picture)


def _columns(widths: Sequence[float], room: float) -> int:
    """Return how many columns fit, filled one after another; `widths` and `room` are in inches."""
    for columns in range(len(widths), 1, -1):
        rows = -(-len(widths) // columns)
        if sum(max(widths[first : first + rows]) for first in range(0, len(widths), rows)) <= room:
            return -(-len(widths) // rows)
    return 1


def line_style(stroke: palette.Stroke | None) -> Any:
    """Return matplotlib's line style of a stroke; solid without one."""
    return "-" if stroke is None or not stroke.dashes else (0, stroke.dashes)


def line_sample(color: str, *, width: float = 1.6, dashes: Sequence[float] = (), marker: str = "") -> Line2D:
    """Return a line for a legend."""
    style: Any = "-" if not dashes else (0, tuple(dashes))
    return Line2D([], [], color=color, linewidth=width, linestyle=style, marker=marker or "None", markersize=4)


def patch_sample(color: str, *, alpha: float = 1.0, hatch: str | None = None) -> Patch:
    """Return an area for a legend."""
    return Patch(facecolor=color, alpha=alpha, hatch=hatch, edgecolor=palette.INK if hatch else "none", linewidth=0)


class Strip:
    """A legend entry of several colours side by side."""

    def __init__(self, colors: Sequence[str]) -> None:
        self.colors = tuple(colors)

    def get_label(self) -> str:
        return ""


class _Strips(HandlerBase):
    def create_artists(self, *arguments: Any) -> list[Any]:
        _, strip, x, y, width, height, _, transform = arguments
        step = width / len(strip.colors)
        return [
            Rectangle((x + i * step, y), step * 1.02, height, facecolor=color, edgecolor="none", transform=transform)
            for i, color in enumerate(strip.colors)
        ]
