"""A lower bound of the makespan from memory tiers: where all bytes fit, some device swaps long enough.

Let c be the least duration and tail of any task with bytes. In a schedule of makespan T, each device with bytes runs
such a task after its swap time S, so S <= T - c. It therefore holds at most h(T - c) bytes, where h(x) are the most
bytes that it swaps in x ticks. All tasks fit, so the sum of h(T - c) over the devices is at least all bytes, and T - c
is at least the smallest x for which that holds. It is found by binary search, as h does not decrease. O(k t log S) for
k device classes of t tiers.
"""

from __future__ import annotations

import numpy as np

from placeopt.bounding.quick.classes import Classes
from placeopt.bounding.quick.paths import Windows
from placeopt.model.memory import most_swapping
from placeopt.model.problem import UNLIMITED
from placeopt.model.tiers import Tiers


def swapping_bound(classes: Classes, found: Windows) -> tuple[int, int]:
    """A lower bound of the makespan, and the least swap time of the device that swaps longest; 0 without tiers."""
    problem, tiers = classes.problem, classes.problem.tiers
    heavy = np.flatnonzero(classes.memory)
    if tiers is None or not len(heavy):
        return 0, 0
    after = np.where(found.allowed, classes.duration + found.tail, UNLIMITED).min(axis=1)[heavy]
    total = int(classes.memory.sum())
    members: list[tuple[int, int]] = list(zip(classes.leader.tolist(), classes.size.tolist(), strict=True))

    def enough(ticks: int) -> bool:
        return sum(size * most_bytes(tiers, d, ticks) for d, size in members) >= total

    low, high = 0, max(most_swapping(problem))
    while low < high:  # an infeasible problem ends at the top
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return (low + int(after.min()), low) if low else (0, 0)


def most_bytes(tiers: Tiers, d: int, ticks: int) -> int:
    """The most bytes that a device can hold if it swaps for at most these ticks."""
    held = int(tiers.end[d, 0])
    for size, num, den in tiers.further(d):
        inside = min(size, ticks * den // num)
        held += inside
        if inside < size:
            break
        ticks -= -(-size * num // den)
    return held
