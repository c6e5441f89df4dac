"""Arguments of generators: checked numbers and ranges, seeded streams of random numbers."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from placeopt.errors import UsageError, listing, suggestion
from placeopt.io.spec import MOST_DEVICES
from placeopt.model import units

T = TypeVar("T")


def called(function: Callable[..., T], name: str, options: Mapping[str, Any]) -> T:
    """What a generator returns for options given by name, as a command line has them.

    Raises
    ------
    UsageError
        If it has no such option, or a value makes no sense.
    """
    known = list(inspect.signature(function).parameters)
    for option in options:
        if option not in known:
            hint = suggestion(option, known) or f"; it has {listing(known, 30)}"
            raise UsageError(f"{name} has no option {option}{hint}")
    return function(**options)


def whole(name: str, value: object, least: int) -> int:
    """The value as an int of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise UsageError(f"{name}: {units.shown(value)} makes no sense; expected a whole number of at least {least}")
    return int(value)


def device_count(count: object) -> int:
    """The number of a network's devices: at most as many as a problem may have."""
    found = whole("devices", count, 1)
    if found > MOST_DEVICES:
        raise UsageError(f"devices: {found} is too many; expected at most {MOST_DEVICES} devices in all")
    return found


def streams(purpose: int, seed: int, count: int) -> list[Generator]:
    """`count` independent generators for one seed; `purpose` keeps things of the same seed apart."""
    sequence = SeedSequence([purpose, whole("seed", seed, 0)])
    return [Generator(PCG64(child)) for child in sequence.spawn(count)]


def around(name: str, mean: float, heterogeneity: float) -> tuple[float, float]:
    """[mean (1 - ε), mean (1 + ε)]."""
    middle, spread = number(name, mean), number(f"{name}_heterogeneity", heterogeneity, most=1)
    return middle * (1 - spread), middle * (1 + spread)


def uniform(rng: Generator, bounds: tuple[float, float], size: int | tuple[int, int]) -> NDArray[np.float64]:
    """Numbers uniform within the bounds."""
    # As a multiple of the range, so that a stream gives the same ranks under every heterogeneity.
    return bounds[0] + (bounds[1] - bounds[0]) * rng.random(size)


def number(name: str, value: object, *, least: float = 0.0, most: float = math.inf, above: bool = False) -> float:
    """The value, a finite number from `least` (or above it) to `most`."""
    found = math.nan
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        found = float(value)
    if not least <= found <= most or math.isinf(found) or (above and found == least):
        bounds = f"{'above' if above else 'of at least'} {least:.4g}"
        bounds += "" if math.isinf(most) else f" and at most {most:g}"
        raise UsageError(f"{name}: {units.shown(value)} makes no sense; expected a number {bounds}")
    return found


def whole_range(name: str, bounds: object, least: int) -> tuple[int, int]:
    """The two ends as ints of at least `least`."""
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise UsageError(f"{name}: {units.shown(bounds)} is no range; expected its two ends")
    low, high = whole(name, bounds[0], least), whole(name, bounds[1], least)
    if low > high:
        raise UsageError(f"{name}: {low} to {high} is no range; expected the smaller end first")
    return low, high
