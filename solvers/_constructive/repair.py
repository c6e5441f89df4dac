"""Making room for a group that no device can take: others are evicted and placed elsewhere."""

from __future__ import annotations

import numpy as np

from placeopt.model.arrays import Int

from .groups import Groups, possible


def with_room_for(groups: Groups, home: Int, room: Int, k: int) -> Int | None:
    """(g,) homes in which group k has one and every group placed before still has; None if no eviction does it.

    Tries each device that group k may use and evicts from it, until k fits, groups that fit elsewhere: those that
    must be apart from k, then the smallest that leaves enough room, or the largest of those that do not. Of the devices
    the one from which least memory moves is taken, the first of equals.
    """
    best: tuple[int, Int] | None = None
    for d in np.flatnonzero(groups.feasible[k]).tolist():
        trial_home, trial_room = home.copy(), room.copy()
        moved = _cleared(groups, trial_home, trial_room, k, d)
        if moved is not None and (best is None or moved < best[0]):
            trial_home[k] = d
            best = moved, trial_home
    return None if best is None else best[1]


def _cleared(groups: Groups, home: Int, room: Int, k: int, d: int) -> int | None:
    """Bytes moved away from device d until group k fits there; `home` and `room` follow. None if it cannot be done."""
    moved = 0
    apart = groups.apart[groups.apart_start[k] : groups.apart_start[k + 1]]
    for other in apart[home[apart] == d].tolist():
        if groups.home[other] >= 0 or not _relocated(groups, home, room, other):
            return None
        moved += int(groups.memory[other])
    while (missing := int(groups.memory[k] - room[d])) > 0:
        there = np.flatnonzero((home == d) & (groups.home < 0) & (groups.memory > 0))
        elsewhere = groups.feasible[there] & (groups.memory[there, None] <= room)
        elsewhere[:, d] = False
        there = there[elsewhere.any(axis=1)]
        # The smallest that suffices, then the larger ones, then those that do not suffice, the largest first.
        size = groups.memory[there]
        ways = there[np.lexsort((np.where(size >= missing, size, -size), size < missing))]
        evicted = next((other for other in ways.tolist() if _relocated(groups, home, room, other)), None)
        if evicted is None:
            return None
        moved += int(groups.memory[evicted])
    return moved


def _relocated(groups: Groups, home: Int, room: Int, k: int) -> bool:
    """Move a group to the other device on which it leaves least room; False if no other can take it."""
    devices = possible(groups, home, room, k)
    devices = devices[devices != home[k]]
    if len(devices) == 0:
        return False
    target = int(devices[room[devices].argmin()])
    room[home[k]] += groups.memory[k]
    room[target] -= groups.memory[k]
    home[k] = target
    return True
