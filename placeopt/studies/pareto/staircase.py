"""Describe the part of the plane of two metrics that is proved to contain no schedule.

A lower bound b of one metric, proved under the limit l of the other one, excludes all schedules with at most b - 1 and
l: a quarter of the plane below and to the left of the corner (b - 1, l). The union of such quarters is bounded by a
staircase, the lower bound of the Pareto front. Values are integers; FAR stands for a metric without a limit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from placeopt.model.problem import UNLIMITED

Pair = tuple[int, int]
"""Values of both metrics."""

FAR = UNLIMITED


def weakly_better(first: Pair, second: Pair) -> bool:
    """Return whether no value of the first pair is larger than that of the second."""
    return first[0] <= second[0] and first[1] <= second[1]


def non_dominated(pairs: Iterable[Pair]) -> list[Pair]:
    """Return the pairs that no other pair weakly dominates, ordered by the first metric."""
    kept: list[Pair] = []
    for pair in sorted(set(pairs)):
        if not kept or pair[1] < kept[-1][1]:
            kept.append(pair)
    return kept


@dataclass(frozen=True, slots=True)
class Staircase:
    """The excluded part of the plane: `corners` by increasing first value and decreasing second value."""

    corners: tuple[Pair, ...] = ()

    def adding(self, corner: Pair) -> Staircase:
        """Return the staircase that also excludes all pairs with at most these values."""
        if self.excludes(corner):
            return self
        kept = [each for each in self.corners if not weakly_better(each, corner)]
        return Staircase(tuple(sorted([*kept, corner])))

    def excludes(self, pair: Pair) -> bool:
        """Return whether no schedule has at most these values; none are negative."""
        return min(pair) < 0 or any(weakly_better(pair, corner) for corner in self.corners)

    def least(self, axis: int, most: int) -> int:
        """Return the lower bound of one metric if the other one is at most `most`."""
        return max((corner[axis] + 1 for corner in self.corners if corner[1 - axis] >= most), default=0)

    def area(self, pair: Pair) -> int:
        """Return how many pairs with at most these values are not excluded."""
        total, before = 0, -1
        for corner in (*self.corners, (FAR, -1)):
            width = min(corner[0], pair[0]) - before
            if width > 0:
                total += width * max(pair[1] - corner[1], 0)
                before = corner[0]
        return total

    def lowest(self) -> list[Pair]:
        """Return the lower bound of the front: pairs that are not excluded, where each smaller one is excluded."""
        ends = [(-1, FAR), *self.corners, (FAR, -1)]
        steps = [(left[0] + 1, right[1] + 1) for left, right in pairwise(ends)]
        return [step for step in steps if max(step) <= FAR and not self.excludes(step)]
