"""The settings of a placement model, and how their texts are read."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Literal

import numpy as np
from pydantic import Field

from placeopt.errors import UsageError, listing
from placeopt.model.arrays import Float, Int
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.units import BANDWIDTH, MEMORY, TIME, QuantityError, parse, shown, time_text
from placeopt.protocol import Settings

SQRT, LOG, LINEAR_PIECES = 0, 1, 2
"""The concave function g of a device: sqrt(x), log(1 + x), or piecewise linear."""

NAMED_CURVES = {"sqrt": SQRT, "log": LOG}


class PlacementSettings(Settings):
    """The settings of the function; sections and quotations are from Carbonari et al. 2017."""

    cap: str = "total"
    """Time capacity i_cap of each device, such as "100 s" (a bare number is in ticks), or "total": the sum of the
    longest durations of all tasks."""

    parallelism: bool = True
    """Whether the parallelism factor counts."""

    load: bool = True
    """Whether the work placed on a device (placed_i) reduces further benefits there."""

    curve: str = "sqrt"
    """The concave function g: "sqrt", as in the paper, "log" for log(1 + x), or linear pieces, such as "2 to 10, 0.5":
    a slope of 2 up to a benefit of 10, then 0.5. Slopes must not increase. Devices or types of devices may have their
    own: "log; gpu: sqrt; cpu0: 1 to 6, 0". Section 5: "each device (or group of devices with the same type) can own
    separate g(x) function, which can be a piece-wise linear function"."""

    memory: Literal["step", "linear", "unlimited"] = "step"
    """Effect of memory on gains (section 5). "step": "a step function, which remains constant until device has
    available memory", so that a device without enough memory has no gain. "linear": gains decrease from the knee to
    zero at full capacity. "unlimited": the assumption of the paper, which may exceed the memory of a device."""

    knee: float = Field(default=0.8, ge=0, lt=1)
    """Share of the memory of a device from which gains decrease, for memory = linear."""

    memory_balance: float = Field(default=0.0, ge=0, le=1)
    """Share of its gain that a task loses on a full device, and half of it on a half full one. Section 5: "the cost of
    memory can grow as more nodes are assigned to the device"."""

    tiers: str = ""
    """Memory tiers of each device with the bandwidth for swapping, such as "16 GiB; 64 GiB at 3 GB/s; 1 TiB at 200
    MB/s", or in shares of the memory: "25%; 75% at 3 GB/s". The time for swapping reduces the benefit of a device. By
    default those of the problem, whose swap time is a part of schedules; others change only the benefit. Section 5:
    "the servers with different RAM, SSD and HDD capacities"."""

    communication: bool = False
    """Whether transfers from placed producers and to placed consumers reduce the benefit of a device, including
    transfers through unplaced tasks. Section 5: transmission cost "decreases the benefit of placing a node on a device
    other than its predecessor"."""


def time_capacity(problem: Problem, text: str) -> float:
    """The time capacity i_cap in ticks.

    Raises
    ------
    UsageError
        If the text is not a duration of at least one tick and at most 2**63 - 1 ticks, nor "total".
    """
    if text == "total":
        longest = np.where(problem.feasible, problem.duration, 0).max(axis=1, initial=0)
        return max(float(longest.sum()), 1.0)
    try:
        amount = parse(text, TIME)
    except QuantityError as error:
        raise UsageError(f'setting cap: {error}, or "total"') from None
    ticks = amount.value if amount.bare else amount.value / problem.resolution
    if ticks <= 0:
        raise UsageError(f"setting cap: {text} is not a valid time capacity; expected more than zero")
    if not 1 <= ticks <= UNLIMITED:  # beyond, benefits overflow
        tick = time_text(1, problem.resolution)
        raise UsageError(f"setting cap: {text} is out of range; expected one tick ({tick}) to 2**63 - 1 of them")
    return float(ticks)


def parse_tiers(problem: Problem, text: str) -> tuple[Int, Float]:
    """The memory tiers of each device: (m, k) end of each tier in bytes, and ticks for swapping one byte in it.

    Sizes are in bytes or shares of the memory of the device. The last tier has no end. Without a text, the tiers are
    those of the problem.

    Raises a UsageError if the text is not a list of tiers, or states a share of unlimited memory.
    """
    if not text.strip() and problem.tiers is not None:
        return problem.tiers.end, problem.tiers.byte_ticks_num / problem.tiers.byte_ticks_den
    m = problem.n_devices
    entries = [entry.strip() for entry in text.split(";")] if text.strip() else []
    end = np.zeros((m, len(entries)), dtype=np.int64)
    ticks = np.zeros((m, len(entries)))
    begin = [0] * m
    for k, entry in enumerate(entries):
        size, at, rate = (piece.strip() for piece in entry.partition(" at "))
        try:
            if at:
                per_second = parse(rate, BANDWIDTH).value
                if per_second * problem.resolution * UNLIMITED < 1:
                    raise QuantityError(f"{shown(rate)} is too slow for swapping; expected a greater bandwidth")
                ticks[:, k] = float(1 / (per_second * problem.resolution))
            for i in range(m):
                begin[i] = min(begin[i] + _bytes(problem, i, size), UNLIMITED)
                end[i, k] = UNLIMITED if k == len(entries) - 1 else begin[i]
        except QuantityError as error:
            raise UsageError(f"setting tiers, {shown(entry)}: {error}") from None
    return end, ticks


def parse_curves(problem: Problem, text: str) -> tuple[Int, Float, Float]:
    """The function g of each device: (m,) SQRT, LOG or LINEAR_PIECES; (m, p) ends and slopes of the linear pieces.

    The entry of a device comes before that of its type, and this before the entry without a name.

    Raises a UsageError if the text is not a list of functions, names an unknown device or one device twice, or slopes
    increase.
    """
    chosen: dict[str, tuple[int, list[float], list[float]]] = {"": (SQRT, [math.inf], [0.0])}
    known = {"", *problem.device_names, *problem.device_types}
    seen: set[str] = set()
    for entry in text.split(";"):
        name, _, shape = (piece.strip() for piece in entry.rpartition(":"))
        if name not in known:
            names = listing(sorted(known - {""}))
            raise UsageError(f"setting curve: {shown(name)} is not a device or a type; expected {names}")
        if name in seen:
            raise UsageError(f"setting curve: two functions for {shown(name) if name else 'all devices'}; expected one")
        seen.add(name)
        chosen[name] = _curve(shape)
    functions = [
        next(chosen[key] for key in (name, kind, "") if key in chosen)
        for name, kind in zip(problem.device_names, problem.device_types, strict=True)
    ]
    width = max((len(ends) for _, ends, _ in functions), default=1)
    ends = np.full((problem.n_devices, width), math.inf)
    slopes = np.zeros((problem.n_devices, width))
    for i, (_, end, slope) in enumerate(functions):
        ends[i, : len(end)], slopes[i, : len(slope)] = end, slope
    return np.array([function for function, _, _ in functions], dtype=np.int64), ends, slopes


def _curve(text: str) -> tuple[int, list[float], list[float]]:
    """One function g: its code, and the ends and slopes of its linear pieces."""
    if text in NAMED_CURVES:
        return NAMED_CURVES[text], [math.inf], [0.0]
    pieces = [piece.partition(" to ") for piece in text.split(",")]
    try:
        slopes = [float(slope) for slope, _, _ in pieces]
        ends = [float(end) for _, _, end in pieces[:-1]] + [math.inf]
    except ValueError:
        slopes = ends = []
    whole = bool(slopes) and not pieces[-1][1] and all(math.isfinite(number) for number in (*slopes, *ends[:-1]))
    if not whole:
        raise UsageError(f"setting curve: {shown(text)} is not a function; expected sqrt, log or such as 2 to 10, 0.5")
    if any(b > a for a, b in pairwise(slopes)) or slopes[-1] < 0:
        raise UsageError(f"setting curve, {shown(text)}: expected slopes of at least 0 that do not increase")
    if any(b <= a for a, b in pairwise([0.0, *ends])):
        raise UsageError(f"setting curve, {shown(text)}: expected pieces with increasing ends above 0")
    return LINEAR_PIECES, ends, slopes


def _bytes(problem: Problem, device: int, size: str) -> int:
    if not size.endswith("%"):
        return int(parse(size, MEMORY).value)
    try:
        share = Fraction(size[:-1].strip()) / 100
    except (ValueError, ZeroDivisionError):
        raise QuantityError(f"{shown(size)} is not a valid share; expected one such as 25%") from None
    if not 0 <= share <= 1:
        raise QuantityError(f"{shown(size)} is not between 0% and 100%")
    capacity = int(problem.capacity[device])
    if capacity >= UNLIMITED:
        name = problem.device_names[device]
        raise QuantityError(f"{shown(size)} is a share of the memory of {name}, which is unlimited; expected bytes")
    return int(share * capacity)
