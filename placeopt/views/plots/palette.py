"""Choose colours of devices and lines: a pure function of the problem, so a device has the same colour everywhere.

The hues are those of M. Okabe, K. Ito, Color Universal Design, 2008 (jfly.uni-koeln.de/color), which are distinct under
all common colour vision deficiencies; black is reserved for marks. Up to seven devices have one hue each. With more
devices, each type has a hue and its devices differ in lightness, from dark to light by index. With more types than
hues, all devices are on one scale from dark blue to light yellow. Lightness is that of OKLCH (B. Ottosson, A
perceptual color space for image processing, 2020, bottosson.github.io/posts/oklab), where equal steps look equal.

Plots and pages share this module; it needs no drawing library.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from placeopt.model.modes import homes, own_devices
from placeopt.model.problem import Problem

HUES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")
"""Blue, orange, green, purple, sky, vermilion, yellow."""

INK = "#1a1a1a"
"""Text, axes, and the critical path."""
MUTED = "#6b6b6b"
"""Secondary text and lines."""
GRID = "#dddddd"
IDLE = "#f3f3f3"
"""Background of a device's row, visible where no task runs."""
PAPER = "#ffffff"
SENT = "#5f6670"
RECEIVED = "#aab1ba"
LAUNCHED = "#8a7a9c"
SYNCHRONISED = "#a3925f"
"""What takes time of the devices of a pipeline besides tasks."""
LIMIT = "#b3123d"
"""Capacities and violations; darker than vermilion, and always dashed or hatched."""

DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1.5, 1.5), (7, 2, 1.5, 2), (3, 1.5), (9, 3), (5, 2, 1, 2, 1, 2))
"""On and off lengths in line widths; the first is solid."""
MARKERS = "osD^vPX"
"""Marker shapes by their names in matplotlib."""

_DARK, _LIGHT = 0.44, 0.87


@dataclass(frozen=True, slots=True)
class Swatch:
    """A legend entry: one device, or all devices of a type."""

    label: str
    colors: tuple[str, ...]
    """One colour per device of the entry."""


@dataclass(frozen=True, slots=True)
class Stroke:
    """The style of a line; the first 49 styles are distinct."""

    color: str
    dashes: tuple[float, ...]
    marker: str


def device_colors(types: Sequence[str]) -> tuple[str, ...]:
    """Return the colour "#rrggbb" of each device; `types` are the types of all devices of the problem, in order."""
    return _device_colors(tuple(types))


def problem_colors(problem: Problem) -> list[str]:
    """Return the colour of each device of the compiled problem; a mode or a team has that of its first member."""
    own = own_devices(problem)
    colors = dict(zip(own, device_colors([problem.device_types[d] for d in own]), strict=True))
    return [colors[d] for d in homes(problem).tolist()]


def problem_legend(problem: Problem) -> tuple[Swatch, ...]:
    """Return the legend entries of the devices that are neither modes nor teams."""
    own = own_devices(problem)
    return legend([problem.device_names[d] for d in own], [problem.device_types[d] for d in own])


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
    """Return the legend entries of devices: at most seven."""
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
    """Return `count` line styles: hues vary first, then dashes and markers."""
    hues = len(HUES)
    return tuple(
        Stroke(HUES[i % hues], DASHES[i // hues % len(DASHES)], MARKERS[(i + i // hues) % len(MARKERS)])
        for i in range(count)
    )


def stage_colors(count: int) -> tuple[str, ...]:
    """Return the colour of each stage of a pipeline; those of neighbours differ."""
    return tuple(HUES[k % len(HUES)] for k in range(count))


def tint(color: str) -> str:
    """Return a lighter shade of a colour."""
    lightness, chroma, hue = _lch(color)
    return _rgb(lightness + 0.55 * (1 - lightness), 0.6 * chroma, hue)


def shades(color: str, count: int) -> tuple[str, ...]:
    """Return `count` shades of a colour from dark to light in equal steps of lightness; one shade is the colour."""
    if count == 1:
        return (color,)
    _, chroma, hue = _lch(color)
    return tuple(_rgb(_DARK + (_LIGHT - _DARK) * i / (count - 1), chroma, hue) for i in range(count))


def text_on(color: str) -> str:
    """Return black or white, whichever has more contrast to a colour (WCAG 2.2, section 1.4.3)."""
    return "#000000" if luminance(color) > 0.179 else "#ffffff"


def luminance(color: str) -> float:
    """Return the relative luminance of "#rrggbb", from 0 for black to 1 for white (WCAG 2.2)."""
    red, green, blue = _linear(color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _scale(count: int, start: float, end: float) -> list[str]:
    """Return colours of increasing lightness, with hues from `start` to `end` degrees."""
    steps = [i / (count - 1) for i in range(count)]
    return [_rgb(0.32 + 0.58 * step, 0.14, math.radians(start + (end - start) * step)) for step in steps]


def _linear(color: str) -> tuple[float, float, float]:
    """Return red, green and blue of "#rrggbb" as linear intensities."""

    def light(part: int) -> float:
        value = int(color[part : part + 2], 16) / 255
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    return light(1), light(3), light(5)


def _lch(color: str) -> tuple[float, float, float]:
    """Return OKLCH of "#rrggbb": lightness 0 to 1, chroma, hue in radians."""
    red, green, blue = _linear(color)
    long = math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
    medium = math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
    short = math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
    a = 1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short
    b = 0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short
    lightness = 0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short
    return lightness, math.hypot(a, b), math.atan2(b, a)


def _rgb(lightness: float, chroma: float, hue: float) -> str:
    """Return the "#rrggbb" of OKLCH, with the chroma reduced to the sRGB gamut."""
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
    """Return whether the colour is in the sRGB gamut, with a tolerance for rounding."""
    return all(-1e-6 <= part <= 1 + 1e-6 for part in parts)


def _light(lightness: float, chroma: float, hue: float) -> tuple[float, float, float]:
    """Return red, green and blue of OKLCH as linear intensities, below 0 or above 1 outside the sRGB gamut."""
    a, b = chroma * math.cos(hue), chroma * math.sin(hue)
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
