"""Why buffers do not fit: what is live when most bytes are, and what alignment costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from placeopt.allocation.bounds import live_sums
from placeopt.allocation.problem import Buffers
from placeopt.allocation.solving import Allocation, allocate
from placeopt.errors import counted, listing, visible
from placeopt.model.units import exact_size, size_text

NAMED = 6
"""Buffers that a text names at most."""


def fullest_text(problem: Buffers, time: Callable[[int], str] = str) -> str:
    """State what is live when most bytes are, the largest buffers first; there must be some."""
    times, sums = live_sums(problem.lower, problem.upper, problem.size)
    at = int(times[np.argmax(sums)])
    live = np.flatnonzero((problem.lower <= at) & (at < problem.upper))
    largest = live[np.argsort(-problem.size[live], kind="stable")].tolist()
    named = [f"{visible(problem.names[k])} {size_text(int(problem.size[k]))}" for k in largest]
    return f"{exact_size(int(sums.max()))} in {counted(len(live), 'buffer')} at {time(at)}: {listing(named, NAMED)}"


def unaligned(found: Allocation, **options: Any) -> Allocation | None:
    """Allocate the same buffers without alignment; None if they have none."""
    if (found.problem.alignment == 1).all():
        return None
    free = replace(found.problem, alignment=np.ones_like(found.problem.alignment))
    return allocate(free, capacity=found.capacity, **options)


def alignment_text(found: Allocation, **options: Any) -> str:
    """State what buffers that do not fit need without alignment; empty if they have none, or that is not known."""
    free = unaligned(found, **options)
    if free is None or free.fits is None:
        return ""
    more = free.bound - (free.capacity or 0)
    return "without it, the buffers fit" if free.fits else f"without it, at least {exact_size(more)} are missing"
