"""The accelerated greedy algorithm: compute only gains that may be the largest.

M. Minoux: Accelerated greedy algorithms for maximizing submodular set functions, Optimization Techniques, Lecture Notes
in Control and Information Sciences 7, 1978, doi:10.1007/BFb0006528. By submodularity, the gain of an element in an
earlier round is an upper bound on its gain now. A round therefore recomputes gains in descending order of these bounds
and stops when the best gain is no less than the next bound. The result equals that of `greedy`, including ties.

Conditions. The function claims to be submodular (on sequences, if its value depends on the order), or it reports which
gains may have increased (`Refreshing`), and these are recomputed at once. A gain that increases otherwise is reported
as an error.

Departures from the paper. Gains are computed in batches of doubling size, because functions are fast on arrays: this
takes a few times as many gains, but far fewer calls. Because of rounding, a gain may exceed its bound slightly, and
equal gains may differ. The search therefore continues to 1e-12 of the value below the best gain, and decides by current
gains only.
"""

from __future__ import annotations

import numpy as np

from placeopt.model.arrays import Float, Int
from placeopt.submodular.functions import AnySetFunction, Refreshing
from placeopt.submodular.independence import AnyIndependence
from placeopt.submodular.results import GrowingSet, Maximised, greedy_guarantee

ROUNDING = 1e-12
"""The assumed rounding error of gains, relative to the largest value or gain so far."""


def lazy_greedy(
    function: AnySetFunction, independence: AnyIndependence, *, fill: bool = False, certify: bool = True
) -> Maximised:
    """Return the result of `greedy` for the same arguments with fewer evaluations.

    Raises
    ------
    ValueError
        If the function neither claims to be submodular nor has a method `raised`, if a gain increased although the
        function excludes it, or for the reasons of `greedy`.
    """
    if not (function.submodular or isinstance(function, Refreshing)):
        raise ValueError(
            f"{type(function).__name__} is not claimed to be submodular and has no method `raised`: earlier gains are "
            "not upper bounds, and lazy greedy may differ from greedy; use greedy"
        )
    return _Search(function, independence, certify).run(fill)


class _Search:
    def __init__(self, function: AnySetFunction, independence: AnyIndependence, certify: bool) -> None:
        self.function = function
        self.growth = GrowingSet(function, independence, certify=certify)
        self.queue = BatchQueue(function.size)
        self.refreshing = function if isinstance(function, Refreshing) else None
        self.computed = np.zeros(function.size, dtype=np.int64)  # the round of each element's last gain
        self.largest = 0.0

    def run(self, fill: bool) -> Maximised:
        growth = self.growth
        first = growth.open(np.arange(self.function.size))
        self.queue.push(first, self.gains_now(first))
        width = 1
        while True:
            elements, gains = self.candidates(width)
            if len(elements) == 0:
                break
            most = gains.max()
            if most <= 0 and not fill:
                break
            best = int(elements[gains == most].min())
            others = elements != best
            self.queue.push(elements[others], gains[others])
            width = max(1, len(elements) // 2)
            growth.add(best, float(most))
            self.update_after(best)
        return growth.outcome(greedy_guarantee(self.function, growth.independence))

    def candidates(self, width: int) -> tuple[Int, Float]:
        """Open elements and their current gains; all others have smaller gains than the best of them."""
        self.largest = max(self.largest, abs(self.growth.value))
        margin = ROUNDING * self.largest
        found, values = [np.empty(0, dtype=np.int64)], [np.empty(0)]
        best = -np.inf
        while True:
            elements, bounds = self.queue.pop(width, best - margin)
            if len(elements) == 0:
                break
            free = self.growth.independence.open(self.growth.independent, elements)
            elements, bounds = elements[free], bounds[free]  # a closed element never opens again
            stale = self.computed[elements] < len(self.growth)
            if stale.any():
                before = bounds[stale]
                bounds[stale] = self.gains_now(elements[stale])
                self.check(elements[stale], before, bounds[stale], margin)
            found.append(elements)
            values.append(bounds)
            best = max(best, bounds.max(initial=-np.inf))
            width *= 2
        return np.concatenate(found), np.concatenate(values)

    def gains_now(self, elements: Int) -> Float:
        gains = self.growth.gains(elements)
        self.computed[elements] = len(self.growth)
        self.largest = max(self.largest, float(np.abs(gains).max(initial=0.0)))
        return gains

    def update_after(self, element: int) -> None:
        """Recompute the gains that may have increased with the element just added."""
        if self.refreshing:
            raised = np.unique(self.refreshing.raised(self.growth.state, element))
            raised = self.growth.open(raised[~self.growth.inside[raised]])
            self.queue.push(raised, self.gains_now(raised))

    def check(self, elements: Int, before: Float, after: Float, margin: float) -> None:
        increased = np.flatnonzero(after > before + margin)
        if len(increased):
            i = int(increased[0])
            raise ValueError(
                f"the gain of element {elements[i]} increased from {before[i]} to {after[i]} by round "
                f"{len(self.growth)}: a claim of {type(self.function).__name__} is false, and lazy greedy may differ "
                "from greedy; use greedy"
            )


class BatchQueue:
    """A priority queue over {0, ..., size - 1} that pushes and pops batches; each element has at most one bound.

    A pop takes O(size) in NumPy, as much as one round of `greedy` without its gains.
    """

    def __init__(self, size: int) -> None:
        self._bound = np.zeros(size)
        self._waits = np.zeros(size, dtype=np.bool_)

    def push(self, elements: Int, bounds: Float) -> None:
        """Set the bounds (k,) of distinct elements (k,)."""
        self._bound[elements] = bounds
        self._waits[elements] = True

    def pop(self, count: int, floor: float) -> tuple[Int, Float]:
        """Remove up to `count` elements with the largest bounds, at least `floor`, and return them with their bounds.

        No remaining element has a larger bound. The result is empty only if no bound is at least `floor`.
        """
        elements = np.flatnonzero(self._waits & (self._bound >= floor))
        if len(elements) > count:
            elements = elements[np.argpartition(-self._bound[elements], count - 1)[:count]]
        self._waits[elements] = False
        return elements, self._bound[elements]
