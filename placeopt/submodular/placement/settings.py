"""The settings of a placement model, and how their texts are read."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import numpy as np
from pydantic import Field

from placeopt.errors import UsageError
from placeopt.model.arrays import Float, Int
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.units import BANDWIDTH, MEMORY, TIME, QuantityError, parse, shown, time_text
from placeopt.solver import Settings


class PlacementSettings(Settings):
    """The settings of the function; sections and quotations are from Carbonari et al. 2017."""

    cap: str = "total"
    """Time capacity i_cap of each device, such as "100 s" (a bare number is in ticks), or "total": the sum of the
    longest durations of all tasks."""

    parallelism: bool = True
    """Whether the parallelism factor counts."""

    load: bool = True
    """Whether the work placed on a device (placed_i) reduces further benefits there."""

    curve: Literal["sqrt", "log"] = "sqrt"
    """The concave function g: sqrt(x) as in the paper, or log(1 + x)."""

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
    MB/s", or in shares of the memory: "25%; 75% at 3 GB/s". The time for swapping reduces the benefit of a device;
    schedules do not contain it. Section 5: "the servers with different RAM, SSD and HDD capacities"."""

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

    Sizes are in bytes or shares of the memory of the device. The last tier has no end.

    Raises
    ------
    UsageError
        If the text is not a list of tiers, or states a share of unlimited memory.
    """
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
