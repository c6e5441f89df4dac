"""What all pictures share: paper and fonts, the axis of time, legends, and the way into a file.

Everything is drawn on figures of our own, never through `matplotlib.pyplot`: no window, no list of open figures,
and the settings of whoever imports us stay as they are (they are ours only while we draw).
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
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.legend_handler import HandlerBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from placeopt.errors import UsageError, visible
from placeopt.io.files import write_whole
from placeopt.views.plots import palette
from placeopt.views.plots.names import short
from placeopt.views.plots.targets import checked_file

WIDTH = 9.0
"""Inches; at 160 dots each as wide as a README shows, twice over."""
DPI = 160
STYLE: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],  # comes with matplotlib: the same letters everywhere
    "font.size": 9.0,
    "text.parse_math": False,  # names may hold dollars
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
    "svg.hashsalt": "placeopt",  # the same picture, the same file
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
_UNITS = (
    ("h", 3600.0, 3.0),
    ("min", 60.0, 10.0),
    ("s", 1.0, 1.0),
    ("ms", 1e-3, 1.0),
    ("µs", 1e-6, 1.0),
    ("ns", 1e-9, 0.0),
)


class Picture(Figure):
    """A figure that writes itself into a file, and shows itself in a notebook."""

    head: float = 0.0
    """Inches from the top that title, notes and legend take."""

    def write(self, path: str | PathLike[str]) -> None:
        """Write a PNG, SVG or PDF, as the suffix says; a file that was there is replaced whole or not at all.

        Raises
        ------
        UsageError
            If the suffix is another one, or the file cannot be written.
        """
        target, suffix = checked_file(path)
        data = self._encoded(suffix)
        try:
            write_whole(target, data)
        except OSError as error:
            raise UsageError(f"cannot write {visible(str(target))}: {error.strerror or error}") from None

    def _encoded(self, suffix: str) -> bytes:
        stream = BytesIO()
        with styled(), warnings.catch_warnings():
            # A name in letters that no font here has: boxes in the picture, nothing on the terminal.
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            self.savefig(stream, format=suffix, dpi=DPI, metadata=_STABLE.get(suffix))
        return stream.getvalue()

    def _repr_png_(self) -> bytes:
        return self._encoded("png")


@cache
def _fallbacks() -> tuple[str, ...]:
    """Installed fonts for letters that DejaVu Sans does not have."""
    installed = {font.name for font in fontManager.ttflist}
    return tuple(name for name in _FALLBACKS if name in installed)


@contextmanager
def styled() -> Iterator[None]:
    """Our settings while drawing, those from before afterwards."""
    family = [*STYLE["font.family"], *_fallbacks()]
    with matplotlib.rc_context(STYLE | {"font.family": family}):  # type: ignore[arg-type,unused-ignore]  # typed by name in later versions
        yield


def new_picture(height: float, title: str, *notes: str, width: float = WIDTH) -> Picture:
    """An empty picture of some inches with a title and, in smaller letters below, notes."""
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


def time_unit(seconds: float) -> tuple[str, float]:
    """The unit in which times up to `seconds` read well, and its length in seconds."""
    return next((name, size) for name, size, least in _UNITS if seconds >= least * size)


class Clock:
    """Turns ticks into the unit of a picture's axis."""

    def __init__(self, ticks: int, resolution: Fraction) -> None:
        self.unit, size = time_unit(ticks * float(resolution))
        self._scale = float(resolution) / size

    def __call__(self, ticks: Any) -> Any:
        """Ticks, a number or an array, in the unit."""
        return ticks * self._scale

    def text(self, ticks: float) -> str:
        """Ticks for people."""
        return f"{ticks * self._scale:.5g} {self.unit}"


def time_axis(axes: Axes, clock: Clock, end: float) -> None:
    """Label the axis from tick 0 to a little behind `end`."""
    axes.set_xlim(0.0, clock(1.005 * end if end > 0 else 1.0))
    axes.set_xlabel(f"time ({clock.unit})")
    axes.grid(axis="x")


def fill(axes: Axes, areas: Iterable[Any], colors: Sequence[str], **style: Any) -> None:
    """Areas (k, 2) in colours; far quicker than a patch for each, which matplotlib would measure first."""
    style = dict[str, Any](linewidths=0.0, edgecolors="none") | style
    axes.add_collection(PolyCollection(list(areas), facecolors=colors, **style), autolim=False)


def device_legend(
    picture: Picture,
    names: Sequence[str],
    types: Sequence[str],
    more: Sequence[tuple[Any, str]] = (),
    used: Sequence[int] | None = None,
) -> None:
    """A legend below the title: devices in their colours, or types in theirs, and further entries.

    Where `used` says which devices are to be seen and they are few, it names just these.
    """
    colors = palette.device_colors(types)
    if used is not None and len(used) <= len(palette.HUES):
        swatches = tuple(palette.Swatch(names[d], (colors[d],)) for d in used)
    else:
        swatches = palette.legend(names, types)
    entries: list[tuple[Any, str]] = [(_Strip(each.colors), short(each.label, 44)) for each in swatches]
    line_legend(picture, [*entries, *more])


def line_legend(picture: Picture, entries: Sequence[tuple[Any, str]]) -> None:
    """A legend below the title of artists with their texts, as many beside each other as there is room for."""
    if not entries:
        return
    width, height = picture.get_size_inches()
    beside = _beside([0.062 * len(text) + 0.52 for _, text in entries], width - 2 * _MARGIN)
    # Labels that begin with an underscore are dropped: so the texts come afterwards.
    box = picture.legend(
        [artist for artist, _ in entries], [str(i) for i in range(len(entries))], loc="upper left", ncols=beside,
        bbox_to_anchor=(_MARGIN / width, 1 - picture.head / height), handlelength=2.2, columnspacing=1.6, borderpad=0.1,
        borderaxespad=0.0, handler_map={_Strip: _StripHandler()},
    )  # fmt: skip
    for text, (_, label) in zip(box.get_texts(), entries, strict=True):
        text.set_text(label)
    picture.head += 0.06 + 0.18 * -(-len(entries) // beside)
    _lay_out(picture)


def _beside(widths: Sequence[float], room: float) -> int:
    """How many columns, filled one after another, fit; `widths` of the entries and `room` in inches."""
    for columns in range(len(widths), 1, -1):
        rows = -(-len(widths) // columns)
        if sum(max(widths[first : first + rows]) for first in range(0, len(widths), rows)) <= room:
            return -(-len(widths) // rows)
    return 1


def line_sample(color: str, *, width: float = 1.6, dashes: Sequence[float] = (), marker: str = "") -> Line2D:
    """A piece of a line for a legend."""
    style: Any = "-" if not dashes else (0, tuple(dashes))
    return Line2D([], [], color=color, linewidth=width, linestyle=style, marker=marker or "None", markersize=4)


def patch_sample(color: str, *, alpha: float = 1.0, hatch: str | None = None) -> Patch:
    """A piece of an area for a legend."""
    return Patch(facecolor=color, alpha=alpha, hatch=hatch, edgecolor=palette.INK if hatch else "none", linewidth=0)


class _Strip:
    """A legend's entry for several colours side by side."""

    def __init__(self, colors: Sequence[str]) -> None:
        self.colors = tuple(colors)

    def get_label(self) -> str:
        return ""


class _StripHandler(HandlerBase):
    def create_artists(self, *arguments: Any) -> list[Any]:
        _, strip, x, y, width, height, _, transform = arguments
        step = width / len(strip.colors)
        return [
            Rectangle((x + i * step, y), step * 1.02, height, facecolor=color, edgecolor="none", transform=transform)
            for i, color in enumerate(strip.colors)
        ]
