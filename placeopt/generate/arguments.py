"""Validate the arguments of generators, and create seeded random number generators."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from placeopt.errors import UsageError, listing, suggestion
from placeopt.io.spec import MOST_DEVICES
from placeopt.model import units

T = TypeVar("T")


def called(function: Callable[..., T], name: str, options: Mapping[str, Any]) -> T:
    """Call a generator with options by name; raises a UsageError for unknown options and wrong values."""
    known = list(inspect.signature(function).parameters)
    for option in options:
        if option not in known:
            hint = suggestion(option, known) or f"; it has {listing(known, 30)}"
            raise UsageError(f"{name} has no option {option}{hint}")
    return function(**options)


def keywords(function: Callable[..., Any], *without: str) -> list[str]:
    """Return the keyword-only options of a generator, without some of them."""
    parameters = inspect.signature(function).parameters.values()
    return [each.name for each in parameters if each.kind is each.KEYWORD_ONLY and each.name not in without]


def parameter_notes(function: Callable[..., Any]) -> dict[str, str]:
    """Return the descriptions of the parameters in the docstring of a generator, by name."""
    text = inspect.getdoc(getattr(function, "func", function)) or ""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=\n\n\w+\n-+\n|\Z)", text, re.DOTALL | re.MULTILINE)
    entries = re.findall(r"^(\w.*)\n((?: .*\n?)+)", section[1] if section else "", re.MULTILINE)
    return {name: " ".join(note.split()) for names, note in entries for name in names.split(", ")}


def whole(name: str, value: object, least: int) -> int:
    """Return the value as an int of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise UsageError(f"{name}: {units.shown(value)} is not valid; expected a whole number of at least {least}")
    return int(value)


def device_count(count: object) -> int:
    """Return the number of devices of a network, at most MOST_DEVICES."""
    found = whole("devices", count, 1)
    if found > MOST_DEVICES:
        raise UsageError(f"devices: {found} is too many; expected at most {MOST_DEVICES} devices in all")
    return found


class Purpose(IntEnum):
    """What random numbers are for: equal seeds give independent ones for each purpose."""

    TASKS, NETWORK, LAYERED, FORK, TOWN, TRAFFIC, ENAS, ADAPTIVITY, SETS, IRREGULAR = range(10)


def streams(purpose: Purpose, seed: int, count: int) -> list[Generator]:
    """Return `count` independent random generators for one seed; each `purpose` has separate generators."""
    sequence = SeedSequence([purpose, whole("seed", seed, 0)])
    return [Generator(PCG64(child)) for child in sequence.spawn(count)]


def around(name: str, mean: float, heterogeneity: float) -> tuple[float, float]:
    """Return [mean (1 - ε), mean (1 + ε)]."""
    middle, spread = number(name, mean), number(f"{name}_heterogeneity", heterogeneity, most=1)
    return middle * (1 - spread), middle * (1 + spread)


def uniform(rng: Generator, bounds: tuple[float, float], size: int | tuple[int, int]) -> NDArray[np.float64]:
    """Return numbers uniform within the bounds."""
    # Scaled from [0, 1), so that a seed gives the same ranks under every heterogeneity.
    return bounds[0] + (bounds[1] - bounds[0]) * rng.random(size)


def number(name: str, value: object, *, least: float = 0.0, most: float = math.inf, above: bool = False) -> float:
    """Return the value, a finite number from `least` (or above it) to `most`."""
    found = math.nan
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        found = float(value)
    if not least <= found <= most or math.isinf(found) or (above and found == least):
        bounds = f"{'above' if above else 'of at least'} {least:.4g}"
        bounds += "" if math.isinf(most) else f" and at most {most:g}"
        raise UsageError(f"{name}: {units.shown(value)} is not valid; expected a number {bounds}")
    return found


def whole_range(name: str, bounds: object, least: int) -> tuple[int, int]:
    """Return the two ends as ints of at least `least`."""
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise UsageError(f"{name}: {units.shown(bounds)} is not a range; expected its two ends")
    low, high = whole(name, bounds[0], least), whole(name, bounds[1], least)
    if low > high:
        raise UsageError(f"{name}: {low} to {high} is not a range; expected the smaller end first")
    return low, high
