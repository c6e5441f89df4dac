"""Allocations in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from placeopt.allocation.bounds import live_sums
from placeopt.allocation.problem import Buffers
from placeopt.allocation.solving import Allocation, allocate
from placeopt.errors import counted, listing, visible
from placeopt.model.problem import Problem
from placeopt.model.units import exact_size, size_text
from placeopt.views.facts import Grid

PROOFS = {
    "live": "the largest live sum",
    "alignment": "live buffers with aligned ends",
    "fixed": "the end of a given offset",
    "search": "all lower heights refuted by search",
}


def problem_line(problem: Buffers) -> str:
    """What a problem is about."""
    total = sum(problem.size.tolist())
    given = sum(offset is not None for offset in problem.fixed)
    more = f", {given} with given offsets" if given else ""
    return f"{counted(len(problem), 'buffer')} with {exact_size(total)} in all{more}"


def devices_grid(problem: Problem, found: Mapping[int, Allocation]) -> Grid:
    """The memory of each device of a plan: buffers, height, lower bound, capacity."""
    rows = []
    for d, each in found.items():
        capacity = "" if each.capacity is None else size_text(each.capacity)
        height = (
            "does not fit" if each.fits is False else "not found" if each.height is None else size_text(each.height)
        )
        rows.append((problem.device_names[d], f"{len(each.problem):,}", height, size_text(each.bound), capacity))
    return Grid(("device", "buffers", "height", "at least", "memory"), tuple(rows), left=1)


def missing_facts(
    found: Allocation, free: str = "", time: Callable[[int], str] = str, where: str = ""
) -> list[tuple[str, str]]:
    """What is missing for buffers that cannot fit, and why; see `result_facts`."""
    missing = exact_size(found.bound - (found.capacity or 0))
    facts = [("missing", f"at least {missing}{where}"), ("fullest", fullest_text(found.problem, time))]
    return [*facts, ("alignment", free)] if free else facts


def result_facts(found: Allocation, free: str = "") -> list[tuple[str, str]]:
    """The height, its bound and its proof; `free` is `alignment_text` for buffers that cannot fit."""
    facts = []
    if found.capacity is not None:
        answer = {True: "the buffers fit", False: "the buffers cannot fit", None: "no offsets found, and none excluded"}
        facts.append(("capacity", f"{exact_size(found.capacity)}: {answer[found.fits]}"))
    if found.height is not None:
        facts.append(("height", exact_size(found.height)))
    gap = "" if not found.gap else f", gap {found.gap:.2%}"
    proof = ": the height is least" if found.height == found.bound else gap
    facts.append(("bound", f"at least {exact_size(found.bound)} by {PROOFS[found.bound_source]}{proof}"))
    if found.bound != found.live:
        facts.append(("live", f"at most {exact_size(found.live)} at a time"))
    if found.fits is False:
        facts += missing_facts(found, free)
    facts.append(("time", f"{found.seconds:.2f} s"))
    return facts


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
