"""Colours of devices and of lines: a pure function of the problem, so that a device has one colour everywhere.

The hues are those of M. Okabe, K. Ito, Color Universal Design, 2008 (jfly.uni-koeln.de/color), which people with any of
the common colour vision deficiencies tell apart; black is kept for what is marked. Up to seven devices have a hue each.
Of more, each type has a hue and its devices differ in lightness, from dark to light by index; with more types than
hues all devices stand on one scale from dark blue to light yellow. Lightness is that of OKLCH (B. Ottosson, A
perceptual color space for image processing, 2020, bottosson.github.io/posts/oklab), where equal steps look equal.

Nothing here needs a drawing library: pictures and pages share it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

HUES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")
"""Blue, orange, green, purple, sky, vermilion, yellow."""

INK = "#1a1a1a"
"""Text, axes, and the critical path."""
MUTED = "#6b6b6b"
"""Text and lines of less weight."""
GRID = "#dddddd"
IDLE = "#f3f3f3"
"""Behind a device's tasks: where nothing runs."""
PAPER = "#ffffff"
LIMIT = "#b3123d"
"""Capacities and violations; told from vermilion by its darkness, and always drawn dashed or hatched."""

DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1.5, 1.5), (7, 2, 1.5, 2), (3, 1.5), (9, 3), (5, 2, 1, 2, 1, 2))
"""On and off lengths, in line widths; the first is solid."""
MARKERS = "osD^vPX"
"""Names of marker shapes, as matplotlib has them."""

_DARK, _LIGHT = 0.44, 0.87


@dataclass(frozen=True, slots=True)
class Swatch:
    """An entry of a legend: one device, or all devices of a type on a scale."""

    label: str
    colors: tuple[str, ...]
    """One for each device that the entry stands for."""


@dataclass(frozen=True, slots=True)
class Stroke:
    """How the line of one of several things is drawn; no two of the first 49 look the same."""

    color: str
    dashes: tuple[float, ...]
    marker: str


def device_colors(types: Sequence[str]) -> tuple[str, ...]:
    """The colour of each device, "#rrggbb"; `types` are those of all the problem's devices, in order."""
    return _device_colors(tuple(types))


@lru_cache(maxsize=64)
def _device_colors(types: tuple[str, ...]) -> tuple[str, ...]:
    if len(types) <= len(HUES):
        return HUES[: len(types)]
    kinds = tuple(dict.fromkeys(types))
    if len(kinds) > len(HUES):
        return tuple(_scale(len(types), start=270.0, end=100.0))
    colors = [""] * len(types)
    for kind, hue in zip(kinds, HUES, strict=False):
        members = [d for d, own in enumerate(types) if own == kind]
        for d, color in zip(members, shades(hue, len(members)), strict=True):
            colors[d] = color
    return tuple(colors)


def legend(names: Sequence[str], types: Sequence[str]) -> tuple[Swatch, ...]:
    """The entries of a legend of devices: at most seven, however many devices there are."""
    colors = device_colors(types)
    if len(names) <= len(HUES):
        return tuple(Swatch(name, (color,)) for name, color in zip(names, colors, strict=True))
    kinds = tuple(dict.fromkeys(types))
    groups = [[d for d, own in enumerate(types) if own == kind] for kind in kinds]
    if len(kinds) > len(HUES):
        groups = [list(range(len(names)))]
    return tuple(
        Swatch(
            names[group[0]] if len(group) == 1 else f"{names[group[0]]} … {names[group[-1]]} ({len(group)})",
            tuple(colors[d] for d in group),
        )
        for group in groups
    )


def strokes(count: int) -> tuple[Stroke, ...]:
    """Lines for `count` things, such as solvers: hues first, then dashes and markers."""
    return tuple(
        Stroke(
            HUES[i % len(HUES)],
            DASHES[i // len(HUES) % len(DASHES)],
            MARKERS[(i + i // len(HUES)) % len(MARKERS)],
        )
        for i in range(count)
    )


def shades(color: str, count: int) -> tuple[str, ...]:
    """`count` shades of a colour from dark to light, in equal steps of lightness; of one, the colour itself."""
    if count == 1:
        return (color,)
    _, chroma, hue = _lch(color)
    return tuple(_rgb(_DARK + (_LIGHT - _DARK) * i / (count - 1), chroma, hue) for i in range(count))


def text_on(color: str) -> str:
    """Black or white, whichever is easier to read on a colour (the contrast of WCAG 2.2, section 1.4.3)."""
    return "#000000" if luminance(color) > 0.179 else "#ffffff"


def luminance(color: str) -> float:
    """Relative luminance of "#rrggbb", from 0 for black to 1 for white (WCAG 2.2)."""
    red, green, blue = _linear(color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _scale(count: int, start: float, end: float) -> list[str]:
    """Colours of rising lightness whose hue turns from `start` to `end`, in degrees."""
    steps = [i / (count - 1) for i in range(count)]
    return [_rgb(0.32 + 0.58 * step, 0.14, math.radians(start + (end - start) * step)) for step in steps]


def _linear(color: str) -> tuple[float, float, float]:
    """Red, green and blue of "#rrggbb" as shares of light."""

    def light(part: int) -> float:
        value = int(color[part : part + 2], 16) / 255
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    return light(1), light(3), light(5)


def _lch(color: str) -> tuple[float, float, float]:
    """OKLCH of "#rrggbb": lightness 0 to 1, chroma, hue in radians."""
    red, green, blue = _linear(color)
    long = math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
    medium = math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
    short = math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
    a = 1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short
    b = 0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short
    lightness = 0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short
    return lightness, math.hypot(a, b), math.atan2(b, a)


def _rgb(lightness: float, chroma: float, hue: float) -> str:
    """The "#rrggbb" of OKLCH, with as much of the chroma as a screen can show at that lightness."""
    parts = _light(lightness, chroma, hue)
    if not _shown(parts):
        least, most = 0.0, chroma
        for _ in range(20):
            middle = (least + most) / 2
            least, most = (middle, most) if _shown(_light(lightness, middle, hue)) else (least, middle)
        parts = _light(lightness, least, hue)

    def coded(part: float) -> int:
        part = min(max(part, 0.0), 1.0)
        return round(255 * (12.92 * part if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055))

    return "#" + "".join(f"{coded(part):02x}" for part in parts)


def _shown(parts: tuple[float, float, float]) -> bool:
    """Whether a screen can show the colour; a hair beyond, for what rounding adds."""
    return all(-1e-6 <= part <= 1 + 1e-6 for part in parts)


def _light(lightness: float, chroma: float, hue: float) -> tuple[float, float, float]:
    """Red, green and blue of OKLCH as shares of light, below 0 or above 1 where no screen shows it."""
    a, b = chroma * math.cos(hue), chroma * math.sin(hue)
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
