"""Unavailability: windows of time in which a device runs no task, such as maintenance or hours of another user.

A task runs without interruption. It starts on a device only where it ends before the next window begins, or after that
window. A task of no duration may start where a window begins or ends, not inside. Everything else goes on: transfers
use the ports of the device, and its memory holds what it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placeopt.model.arrays import Int, freeze
from placeopt.model.rules import Rule, joined_windows


@dataclass(frozen=True, slots=True, eq=False)
class Unavailability(Rule):
    """The windows of m devices, w in all.

    Attributes
    ----------
    row
        (m + 1,) the windows of device d are row[d] .. row[d + 1].
    begin, end
        (w,) ticks. A device's windows are in order, and no two of them touch.
    """

    row: Int
    begin: Int
    end: Int

    def of(self, d: int) -> list[tuple[int, int]]:
        """The windows of a device, begin and end."""
        where = slice(self.row[d], self.row[d + 1])
        return list(zip(self.begin[where].tolist(), self.end[where].tolist(), strict=True))

    def counts(self) -> dict[str, int]:
        """The number of devices."""
        return {"devices": len(self.row) - 1}

    def columns(self, d: int) -> tuple[Any, ...]:
        """The windows of a device."""
        return tuple(self.of(d))

    def part(self, tasks: Int, devices: Int) -> Unavailability | None:
        """The windows of some devices, by their indices; None if these are always there."""
        return build_unavailability([self.of(d) for d in devices.tolist()])

    def times(self) -> tuple[Int, ...]:
        """The ends of all windows."""
        return (self.end,)

    def over(self) -> int:
        """The end of the last window."""
        return int(self.end.max())

    def closed(self, device: Int, start: Int, end: Int) -> tuple[str, Int, Int, Int]:
        """All windows."""
        return "unavailable", np.repeat(np.arange(len(self.row) - 1), np.diff(self.row)), self.begin, self.end

    def device_keys(self, d: int) -> dict[str, Any]:
        """The windows of a device."""
        found = [{"from": begin, "to": end} for begin, end in self.of(d)]
        return {"unavailable": found} if found else {}

    def kept(self, device: Int, start: Int, end: Int) -> bool:
        """Whether no task (n,) on its device runs in one of its windows."""
        for d in np.flatnonzero(np.diff(self.row)).tolist():
            where, tasks = slice(self.row[d], self.row[d + 1]), np.flatnonzero(device == d)
            begin = np.append(self.begin[where], end[tasks].max(initial=0))
            following = np.searchsorted(self.end[where], start[tasks], side="right")
            if (begin[following] < end[tasks]).any():
                return False
        return True

    def clear_of(self, d: int, tick: int, ticks: int) -> int:
        """The first tick from `tick` on at which a device can start `ticks` ticks of work."""
        for begin, end in self.of(d):
            if begin < tick + ticks and tick < end:
                tick = end
        return tick


def build_unavailability(windows: Sequence[Iterable[tuple[int, int]]]) -> Unavailability | None:
    """Build the unavailable of m devices from the windows of each; the arrays are read-only. None if there are none.

    Windows may be in any order, overlap and touch; those that do become one.

    Raises
    ------
    UsageError
        If a window is not two whole numbers of which the second is larger, or begins before tick 0.
    """
    row, begin, end = joined_windows("unavailable", windows)
    if not begin:
        return None
    arrays = [np.array(values, dtype=np.int64) for values in (row, begin, end)]
    freeze(*arrays)
    return Unavailability(*arrays)
