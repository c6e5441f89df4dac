"""Resources: what tasks use over time or in all, shared ideally.

Let tasks use a[i, c] units of a renewable resource of capacity K for p[i, c] ticks on class c. Let f map amounts to
amounts so that any amounts that sum up to at most K are mapped to amounts that sum up to at most K (a dual feasible
function). At each tick, the running tasks use at most K, and so do their mapped amounts. So tasks with heads of at
least R and tails of at least Q need a makespan of at least

    R + Q + sum of min_c f(a[i, c]) p[i, c] / K.

The best R and Q are found as in `placeopt.bounding.quick.jackson`. The functions are those of S. P. Fekete and J.
Schepers, "New classes of fast lower bounds for bin packing problems", Mathematical Programming 91 (2001),
doi:10.1007/s101070100243: amounts above K - l count as K, those below l as 0, for l up to K / 2; l = 0 changes nothing.
With l = K / 2, tasks of which no two fit at one time run one after another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from placeopt.bounding.quick.classes import Classes, by_group
from placeopt.bounding.quick.jackson import nearest, sweep
from placeopt.bounding.quick.paths import NEVER, Windows
from placeopt.model.arrays import Bool, Int

THRESHOLDS = 8
"""Maximum number of values of l above 0: quantiles of the amounts up to half of the capacity."""

BITS = 60
"""Sums of 64-bit integers stay below 2**BITS."""


class Use(NamedTuple):
    """The best bound of a resource: its ticks, and the l, R and Q of the formula; 2 l, as it may be K / 2."""

    ticks: int
    name: str
    double_level: int
    head: int
    tail: int


def scarcest(classes: Classes, found: Windows) -> Use | None:
    """The best lower bound of the makespan from a renewable resource; None if tasks use none."""
    resources = classes.problem.resources
    if resources is None:
        return None
    head, tail = (np.where(found.allowed, ticks, NEVER).min(axis=1) for ticks in (found.head, found.tail))
    best: list[Use] = []
    for r in np.flatnonzero(resources.renewable).tolist():
        amount, capacity = resources.amounts(r)[:, classes.leader], int(resources.capacity[r])
        amount = np.where(classes.duration > 0, amount, 0)
        users = np.flatnonzero(np.where(found.allowed, amount, 1).min(axis=1) > 0)
        if capacity > 0 and len(users):
            rows = amount[users], classes.duration[users], found.allowed[users], head[users], tail[users]
            best.append(_shared(resources.names[r], capacity, *rows))
    return max(best, key=lambda use: use.ticks, default=None)


def _shared(name: str, capacity: int, amount: Int, duration: Int, allowed: Bool, head: Int, tail: Int) -> Use:
    """The best bound of one resource over all functions."""
    small = np.unique(amount[allowed & (amount <= capacity - amount)])
    if len(small) > THRESHOLDS:
        small = np.unique(np.quantile(small, (np.arange(THRESHOLDS) + 1) / THRESHOLDS, method="lower"))
    best, longest = Use(0, name, 0, 0, 0), int(head.max()) + int(tail.max())
    for double in (0, capacity, *(2 * level for level in small.tolist())):
        most, least = (2 * capacity - double) // 2, -(-double // 2)
        mapped = np.where(amount > most, capacity, np.where(amount < least, 0, amount))
        work, scale = _work(mapped, duration, allowed, capacity, longest)
        value, far = sweep(head, tail, work, scale)
        if -(-value // scale) > best.ticks:
            best = Use(-(-value // scale), name, double, nearest(head, tail, work, scale, far), far)
    return best


def _work(mapped: Int, duration: Int, allowed: Bool, capacity: int, longest: int) -> tuple[Int, int]:
    """The least work (i,) of tasks and the capacity, both in units in which 64-bit sums with `longest` ticks fit.

    Work is rounded down and the capacity up, which weakens the bound.
    """
    most = sum(duration.max(axis=1).tolist()) + longest
    excess = max((capacity * most).bit_length() - BITS, 0)
    whole = mapped.astype(object) * duration if excess else mapped * duration
    least = np.where(allowed, whole, whole.max(initial=0)).min(axis=1)
    return (least >> excess).astype(np.int64), -(-capacity >> excess)


def exceeded_budgets(classes: Classes) -> Iterator[str]:
    """Proofs that a budget does not suffice, even if each group uses the least that it can."""
    problem, resources = classes.problem, classes.problem.resources
    for r in () if resources is None else resources.budgets.tolist():
        assert resources is not None
        amounts = by_group(problem, resources.amounts(r), np.add)[:, classes.leader]
        least = np.where(classes.allowed, amounts, amounts.max(initial=0)).min(axis=1)
        used, capacity = sum(least.tolist()), int(resources.capacity[r])
        if used > capacity:
            name = resources.names[r]
            yield f"tasks use at least {resources.text(r, used)} of {name}, which has {resources.text(r, capacity)}"
