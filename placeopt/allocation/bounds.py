"""Lower bounds of the height, in integers.

The buffers that are live at one time lie apart, so the height is at least the sum of their sizes. If their offsets are
multiples of a, all but the topmost take their size rounded up to a multiple of a. This holds for each subset of live
buffers, such as those whose alignments are multiples of a.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.allocation.problem import Buffers
from placeopt.model.arrays import Int, by_index

LEVELS = 64
"""Alignments for which the bound is computed, at most."""


@dataclass(frozen=True, slots=True)
class HeightBound:
    """A proved lower bound of the height in bytes, and its proof."""

    height: int
    source: str
    """`live`: the largest live sum; `alignment`: the same with sizes rounded up; `fixed`: the end of a given offset;
    `search`: no lower height is possible by a complete search."""


def height_bound(problem: Buffers) -> HeightBound:
    """Return the best bound of live sums, over all times and alignments."""
    best = HeightBound(0, "live")
    tops = [
        offset + size for offset, size in zip(problem.fixed, problem.size.tolist(), strict=True) if offset is not None
    ]
    if tops:
        best = HeightBound(max(tops), "fixed")
    levels = sorted(set(problem.alignment.tolist()) | {1})
    for level in levels if len(levels) <= LEVELS else [1, *levels[-LEVELS:]]:
        offsets = np.array([0 if offset is None else offset for offset in problem.fixed], dtype=np.int64)
        members = np.flatnonzero((problem.alignment % level == 0) & (offsets % level == 0))
        found = _largest_sum(problem, members, level, best.height)
        if found > best.height or (found == best.height and level == 1):
            best = HeightBound(found, "live" if level == 1 else "alignment")
    return best


def live_sums(lower: Int, upper: Int, amount: Int) -> tuple[Int, Int]:
    """Return the times at which something begins or ends, and the sums of the amounts that are live from there on."""
    times, place = np.unique(np.concatenate([lower, upper]), return_inverse=True)
    change = by_index(np.add, place, np.concatenate([amount, -amount]), len(times))
    return times, np.cumsum(change)


def _largest_sum(problem: Buffers, members: Int, level: int, least: int) -> int:
    """The largest sum of sizes rounded up to the level, without what rounding adds to the topmost buffer."""
    if not len(members):
        return 0
    lower, upper, size = problem.lower[members], problem.upper[members], problem.size[members]
    added = -size % level
    times, sums = live_sums(lower, upper, size + added)
    if level == 1:
        return int(sums.max())
    best = least
    for at in np.argsort(-sums, kind="stable").tolist():
        if sums[at] <= best:
            break
        live = (lower <= times[at]) & (times[at] < upper)
        best = max(best, int(sums[at] - added[live].max()))
    return best
