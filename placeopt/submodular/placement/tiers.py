"""Tiers of memory as text: "16 GiB; 64 GiB at 3 GB/s; 1 TiB at 200 MB/s"."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from placeopt.errors import UsageError
from placeopt.model.arrays import Float, Int
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.units import BANDWIDTH, MEMORY, QuantityError, parse, shown


def parse_tiers(problem: Problem, text: str) -> tuple[Int, Float]:
    """The tiers of every device's memory: (m, k) byte at which each ends, and ticks that a byte in it costs.

    A size is in bytes or a share of the device's memory; what is beyond the last tier lies in the last one.

    Raises
    ------
    UsageError
        Where the text is no such list, or gives shares of a memory that has no limit.
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
                    raise QuantityError(f"{shown(rate)} is no rate at which anything could be swapped")
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
        raise QuantityError(f"{shown(size)} is no share; expected one such as 25%") from None
    if not 0 <= share <= 1:
        raise QuantityError(f"{shown(size)} is not between 0% and 100%")
    capacity = int(problem.capacity[device])
    if capacity >= UNLIMITED:
        raise QuantityError(f"{problem.device_names[device]} has no limit of memory to take {size} of; give bytes")
    return int(share * capacity)
