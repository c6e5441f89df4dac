"""The accelerated greedy algorithm: gains that cannot be the largest are not looked at.

M. Minoux: Accelerated greedy algorithms for maximizing submodular set functions, Optimization Techniques, Lecture Notes
in Control and Information Sciences 7, 1978, doi:10.1007/BFb0006528. The gain that an element had in an earlier round
bounds the one that it has now. So elements are looked at from the largest bound down, until the best gain seen is no
less than the next bound. It returns exactly what `placeopt.submodular.standard.greedy` returns, ties included.

When that is sound. Gains must not grow: the function claims to be submodular (on sequences, if its value depends on the
order), or it tells whose gains may have grown (`Refreshing`), and these are looked at again at once. Neither can be
known for certain; a gain that is seen to have grown all the same is an error.

Departures. Elements are looked at in batches that double, since a function is quick on arrays only: a few times as many
gains as one by one, in far fewer calls. Where the function is `Local`, what the last elements did not change is not
looked at again. Bounds and gains are floats: a gain that should be no larger than its bound may come out larger by
rounding, and what is equal by formula may differ. So the search goes on down to a margin of 1e-12 of the value below
the best gain, and decides only between gains as they are now.
"""

from __future__ import annotations

import numpy as np

from placeopt.model.arrays import Bool, Float, Int
from placeopt.submodular.functions import AnySetFunction, Local, Refreshing
from placeopt.submodular.guarantees import greedy_guarantee
from placeopt.submodular.independence import AnyIndependence
from placeopt.submodular.results import Growth, Maximised
from placeopt.submodular.runs import Runs

ROUNDING = 1e-12
"""Gains are taken to be exact up to that part of the largest value or gain so far."""


def lazy_greedy(
    function: AnySetFunction, independence: AnyIndependence, *, fill: bool = False, certify: bool = True
) -> Maximised:
    """What `greedy` returns for the same arguments, with fewer evaluations.

    Raises
    ------
    ValueError
        If laziness is not sound for this function: it neither claims to be submodular nor tells whose gains may have
        grown, or a gain has grown without that. Also if the two arguments are over different ground sets.
    """
    if not (function.submodular or isinstance(function, Refreshing)):
        raise ValueError(
            f"{type(function).__name__} is not claimed to be submodular and has no method `raised`: an earlier gain "
            "bounds nothing, and lazy greedy may differ from greedy; use greedy"
        )
    return _Search(function, independence, certify).run(fill)


class _Search:
    def __init__(self, function: AnySetFunction, independence: AnyIndependence, certify: bool) -> None:
        self.function = function
        self.growth = Growth(function, independence, certify=certify)
        self.queue = Runs(function.size)
        # Of each element, the round of its last gain; and, if the function is local, of the last change of it.
        self.seen = np.zeros(function.size, dtype=np.int64)
        self.local = function if isinstance(function, Local) else None
        self.refreshing = function if isinstance(function, Refreshing) else None
        self.changed = np.zeros(function.size, dtype=np.int64)
        self.largest = 0.0

    def run(self, fill: bool) -> Maximised:
        growth = self.growth
        first = growth.open(np.arange(growth.function.size))
        self.queue.push(first, self.now(first))
        width = 1
        while True:
            elements, gains = self.round(width)
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
            self.follow(best)
        return growth.outcome(greedy_guarantee(growth.function, growth.independence))

    def round(self, width: int) -> tuple[Int, Float]:
        """Open elements and their gains; no other one has a larger gain than the best of them, or an equal one."""
        self.largest = max(self.largest, abs(self.growth.value))
        margin = ROUNDING * self.largest
        found: list[Int] = []
        values: list[Float] = []
        best = -np.inf
        while True:
            elements, bounds = self.queue.pop(width, best - margin)
            if len(elements) == 0:
                break
            free = self.growth.independence.open(self.growth.independent, elements)
            elements, bounds = elements[free], bounds[free]  # what is closed stays closed, and is forgotten
            stale = self.stale(elements)
            if stale.any():
                before = bounds[stale]
                bounds[stale] = self.now(elements[stale])
                self.check(elements[stale], before, bounds[stale], margin)
            found.append(elements)
            values.append(bounds)
            best = max(best, bounds.max(initial=-np.inf))
            width *= 2
        if not found:
            return np.empty(0, dtype=np.int64), np.empty(0)
        return np.concatenate(found), np.concatenate(values)

    def stale(self, elements: Int) -> Bool:
        since = self.changed[elements] if self.local else len(self.growth)
        return np.asarray(self.seen[elements] < since)

    def now(self, elements: Int) -> Float:
        gains = self.growth.gains(elements)
        self.seen[elements] = len(self.growth)
        self.largest = max(self.largest, float(np.abs(gains).max(initial=0.0)))
        return gains

    def follow(self, element: int) -> None:
        """Mark what the element that was just added has changed."""
        if self.local:
            self.changed[self.local.changed(self.growth.state, element)] = len(self.growth)
        if self.refreshing:
            raised = np.unique(self.refreshing.raised(self.growth.state, element))
            raised = self.growth.open(raised[~self.growth.inside[raised]])
            self.queue.push(raised, self.now(raised))

    def check(self, elements: Int, before: Float, after: Float, margin: float) -> None:
        grown = np.flatnonzero(after > before + margin)
        if len(grown):
            i = int(grown[0])
            raise ValueError(
                f"the gain of element {elements[i]} grew from {before[i]} to {after[i]} by round {len(self.growth)}: "
                f"{type(self.function).__name__} is not what it claims to be, and lazy greedy may differ from greedy; "
                "use greedy"
            )
