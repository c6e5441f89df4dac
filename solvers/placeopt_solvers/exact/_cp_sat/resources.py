"""Model resources in CP-SAT: what tasks use at one time, and what they use in all."""

from __future__ import annotations

import math

import numpy as np
from ortools.sat.python import cp_model

from placeopt.bounding.engines.cp_sat import PRESOLVED
from placeopt.model.arrays import Int
from placeopt.model.resources import Resources

from ..._runs.exact_run import TooLargeError
from .base import Expression, Literal
from .limits import LARGEST
from .placement import Placement
from .timing import Interval, Timing, Variable


class Uses:
    """The constraint that tasks use no more of any resource than its capacity.

    Amounts of a resource are counted in units of their greatest common divisor, and its capacity is rounded down to
    units. A renewable resource is cumulative over the intervals of tasks on devices; over the interval of a task
    itself, if neither its duration nor what it uses depends on the device. If no two tasks fit at one time, these
    intervals do not overlap. A budget is a knapsack.

    `magnitude` is the largest number in the rows, `area` the largest sum of amounts times ticks.
    """

    def __init__(self, placement: Placement, timing: Timing | None, resources: Resources) -> None:
        self.placement, self.timing, self.base = placement, timing, placement.base
        self.duration = placement.problem.duration
        self.magnitude = self.area = 0
        self._work: list[tuple[list[tuple[Literal, int]], int]] = []
        for r, (renewable, capacity) in enumerate(zip(resources.renewable, resources.capacity.tolist(), strict=True)):
            amounts = resources.amounts(r)
            if renewable:
                amounts[self.duration == 0] = 0
            unit = int(np.gcd.reduce(amounts, axis=None)) or 1
            amounts, capacity = amounts // unit, capacity // unit
            most = sum(amounts.max(axis=1, initial=0).tolist())
            if most <= capacity:
                continue
            if most >= LARGEST:
                raise TooLargeError(f"the {most} units of {resources.names[r]} that all tasks use")
            self.magnitude = max(self.magnitude, most)
            if not renewable:
                self.base.cp.add(cp_model.LinearExpr.sum(placement.loads(amounts)) <= capacity)
            elif timing is not None:
                self._limit_use(amounts, capacity, most, timing)

    def _limit_use(self, amounts: Int, capacity: int, most: int, timing: Timing) -> None:
        """Limit what tasks use at one time to a capacity; `amounts` is (n, m)."""
        intervals: list[Interval] = []
        demands: list[int] = []
        work: list[tuple[Literal, int]] = []
        varies = False
        for i, g in enumerate(self.placement.group):
            row = self.placement.at[g]
            amount, ticks = ([int(each[i, d]) for d in row] for each in (amounts, self.duration))
            if len(set(amount)) == len(set(ticks)) == 1:
                if amount[0]:
                    intervals.append(timing.whole(i, ticks[0]))
                    demands.append(amount[0])
            else:
                inside = [d for d in row if amounts[i, d]]
                intervals += [timing.running[d][i] for d in inside]
                demands += [int(amounts[i, d]) for d in inside]
                varies = True
            work += [(x, each * p) for x, each, p in zip(row.values(), amount, ticks, strict=True) if each * p]
        self.area = max(self.area, most * timing.horizon)
        if 2 * min(demands, default=0) > capacity:
            self.base.cp.add_no_overlap(intervals)
        else:
            self.base.cp.add_cumulative(intervals, demands, capacity)
        if varies:
            self._work.append((work, capacity))

    def limit_work(self, span: Variable) -> None:
        """Add rows that tighten the linear relaxation: amounts times ticks are at most the capacity times the makespan.

        Sums for which presolve would have to be off have no row.
        """
        assert self.timing is not None
        for work, capacity in self._work:
            common = math.gcd(capacity, *(amount for _, amount in work))
            sizes = [amount // common for _, amount in work]
            largest = max(sum(sizes), capacity // common * self.timing.horizon)
            if largest <= PRESOLVED:
                total: Expression = cp_model.LinearExpr.weighted_sum([x for x, _ in work], sizes)
                self.base.cp.add(total <= capacity // common * span)
                self.magnitude = max(self.magnitude, largest)
