"""Model resources in a mixed-integer program: what tasks use at one time, and what they use in all."""

from __future__ import annotations

from functools import partial

import numpy as np

from placeopt.model.resources import Resources

from ..._runs.exact_run import View
from ..._runs.linear import Linear, total
from .placement import Placement
from .timing import Timing


class Uses:
    """The constraint that tasks use no more of any resource than its capacity.

    Amounts are counted in units of their greatest common divisor, and capacities are rounded down to units. A budget is
    a row. What is in use of a renewable resource rises only when a task starts. So one row per task j is enough: what j
    uses, and what others use at the start of j, U[i, j] for task i, must be within the capacity;

        U[i, j] >= sum_d amount[i, d] x[g(i), d] - most[i] (o[i, j] + A[i, j])

    where o[i, j] says that i has ended by then, A[i, j] that i starts later, and most[i] is the largest amount of i. If
    two tasks exceed the capacity together on any devices, o[i, j] + o[j, i] >= 1 replaces this.
    """

    def __init__(self, placement: Placement, timing: Timing | None, resources: Resources) -> None:
        self.placement, self.program = placement, placement.program
        duration = placement.problem.duration
        for r, (renewable, capacity) in enumerate(zip(resources.renewable, resources.capacity.tolist(), strict=True)):
            amounts = resources.amounts(r)
            if renewable:
                amounts[duration == 0] = 0
            unit = int(np.gcd.reduce(amounts, axis=None)) or 1
            rows = (amounts // unit).tolist()
            if sum(map(max, rows)) <= capacity // unit:
                continue
            if not renewable:
                self.program.at_least(capacity // unit, total(placement.loads(rows)))
            elif timing is not None:
                self._limit_use(rows, capacity // unit, timing)

    def _limit_use(self, amounts: list[list[int]], capacity: int, timing: Timing) -> None:
        """Limit what tasks use at one time to a capacity; `amounts` has n rows of m."""
        places = [self.placement.x[g] for g in self.placement.group]
        used = [total(row[d] * x for d, x in place.items()) for row, place in zip(amounts, places, strict=True)]
        least, most = (
            [how(row[d] for d in place) for row, place in zip(amounts, places, strict=True)] for how in (min, max)
        )
        users = [i for i, amount in enumerate(most) if amount]
        for j in users:
            others: list[Linear] = []
            for i in users:
                if i == j or timing.times.ordered(i, j):
                    continue
                if least[i] + least[j] > capacity:
                    if i < j:
                        self.program.at_least(timing.order(i, j) + timing.order(j, i), 1)
                    continue
                there = self.program.column(0, most[i], partial(_used_beside, amounts=amounts[i], i=i, j=j))
                self.program.at_least(there, used[i] - most[i] * (timing.order(i, j) + timing.later(i, j)))
                others.append(there)
            if others:
                self.program.at_least(capacity, used[j] + total(others))


def _used_beside(view: View, *, amounts: list[int], i: int, j: int) -> int:
    """Return what task i uses at the start of task j."""
    return amounts[view.device[i]] if view.start[i] <= view.start[j] < view.end[i] else 0
