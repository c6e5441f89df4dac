"""Intervals that overlap, told apart."""

from __future__ import annotations

from collections.abc import Iterable


def lanes(intervals: Iterable[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """For each (track, start, end), in the order of starts, its track and lane.

    An interval takes the first lane of its track that is free by then: lane 0 where nothing overlaps.
    """
    ends: dict[int, list[int]] = {}
    found = []
    for track, start, end in intervals:
        busy = ends.setdefault(track, [])
        lane = next((lane for lane, until in enumerate(busy) if until <= start), len(busy))
        busy[lane : lane + 1] = [end]
        found.append((track, lane))
    return found
