"""Model the swap times of memory tiers in CP-SAT, exactly as `placeopt.model.tiers` defines them."""

from __future__ import annotations

import math

import numpy as np

from placeopt.model.memory import most_swapping

from ..._runs.exact_run import TooLargeError, View
from .base import Expression, Literal
from .limits import LARGEST
from .placement import Placement
from .timing import Timing, Variable


class Swapping:
    """No task starts before its device has swapped.

    Variables: S[d], at least the swap time of device d; z[d, k], its bytes exceed tiers 0..k-1. With bytes u, tier k of
    rate r[k] ticks per byte behind end[k-1] bytes, and C[j] the ticks of the full tier j, the swap time is the maximum
    over the tiers k with u > end[k-1] of

        C[1] + ... + C[k-1] + ceil(r[k] (u - end[k-1])).

    Beyond tier k that is no more than the swap time, since tiers become slower: r[k] <= r[k+1]. Before tier k it may be
    more, because C is rounded up; there z[d, k] disables the row. For k = 1 it is at most 0 there.

    `magnitude` is the largest number in the rows.
    """

    def __init__(self, placement: Placement, timing: Timing) -> None:
        self.placement, self.timing, self.base = placement, timing, placement.base
        self.problem = placement.problem
        self.magnitude = 0
        most, amounts = most_swapping(self.problem), self.problem.memory
        self.unit = math.gcd(*amounts.tolist()) or 1
        for d, used in enumerate(placement.loads(np.repeat(amounts[:, None] // self.unit, len(most), axis=1))):
            if most[d]:
                timing.swaps[d] = self._add_device(d, used, most[d])

    def _add_device(self, d: int, used: Expression, most: int) -> Variable:
        """Add the swap time of a device, whose tasks need `used` units of bytes, and let its tasks wait for it."""
        cp, problem = self.base.cp, self.problem
        assert problem.tiers is not None
        swap = self.base.integer(0, most, lambda view: view.swap[d])
        ends = problem.tiers.end[d].tolist()
        needed, before = int(problem.memory.sum()), 0
        for k in range(1, len(ends)):
            num, den = int(problem.tiers.byte_ticks_num[d, k]), int(problem.tiers.byte_ticks_den[d, k])
            start = ends[k - 1]
            if start >= min(needed, ends[k]):
                break
            full = None if k == 1 else self._exceeds(d, used, start)
            # den (swap - before) >= num (unit used - start), in lowest terms.
            common = math.gcd(den, num * self.unit)
            rate, scale = num * self.unit // common, den // common
            self.magnitude = max(self.magnitude, rate * (needed // self.unit), scale * most)
            if self.magnitude >= LARGEST:
                raise TooLargeError(f"the swap time of {problem.device_names[d]}, in steps of 1/{scale} ticks,")
            row = cp.add(scale * swap - rate * used >= -((num * start - den * before) // common))
            if full is not None:
                row.only_enforce_if(full)
            before += -((start - ends[k]) * num // den)
        for i, g in enumerate(self.placement.group):
            x = self.placement.at[g].get(d)
            if x is not None:
                cp.add(self.timing.starts[i] >= swap).only_enforce_if(x)
        return swap

    def _exceeds(self, d: int, used: Expression, limit: int) -> Literal:
        """Add the literal that a device needs more bytes than a limit; it is true if so."""

        def value(view: View) -> bool:
            return view.used[d] > limit

        exceeds = self.base.literal(value)
        self.base.cp.add(used <= limit // self.unit).only_enforce_if(~exceeds)
        return exceeds
