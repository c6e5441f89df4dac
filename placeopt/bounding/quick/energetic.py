"""Energetic reasoning: how much of each task must run within an interval, however it is shifted.

Let S be tasks that cannot leave a subset D of the devices, R_ic and Q_ic the heads and tails of task i on class c, p_ic
its durations (`placeopt.bounding.quick.paths`), and C the makespan. In the interval [a, C - q) of length L = C - q - a,
task i, if on class c, runs for no less than min(w_ic, L) with

    w_ic = min(p_ic, max(R_ic + p_ic - a, 0), max(Q_ic + p_ic - q, 0)) :

what reaches into it when the task runs as early as it can, or as late; anything in between reaches further. With the
prices u_c, v_c of the load bound (`placeopt.bounding.quick.loads`) the devices of D have sum_d u_d L to give there, and
memory worth V, so

    sum_i min_c (u_c min(w_ic, L) + v_c h_i) - V - L sum_d u_d <= 0,

h_i the task's memory. The left side is concave in L: if it is positive at some L that C is known to leave, because of
another bound, and at a larger L' as well, it is positive between them, and C >= a + q + L' + 1. L' is taken just below

    (sum_i min_c (u_c w_ic + v_c h_i) - V) / sum_d u_d,

beyond which the left side is negative. Unlike Jackson's bound (`placeopt.bounding.quick.jackson`) this counts tasks
that lie in the interval in part. Intervals of this kind are those of P. Baptiste, C. Le Pape, W. Nuijten,
"Satisfiability tests and time-bound adjustments for cumulative scheduling problems", Annals of Operations Research 92
(1999), doi:10.1023/A:1018995000688, that move with the makespan. a and q are tried where some w_ic bends: R and R + p,
Q and Q + p.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from placeopt.bounding.quick import Bound, narrowed_classes
from placeopt.bounding.quick.classes import Classes, Subset
from placeopt.bounding.quick.jackson import coarser, priced_subsets, sharing_of_tasks
from placeopt.bounding.quick.loads import Prices
from placeopt.bounding.quick.paths import Windows, windows
from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import Problem
from placeopt.model.units import time_text

ENDS = 64
"""Values of a and of q, at most: quantiles of all that would do, fewer the more tasks there are."""

TOO_LONG = 1 << 62
"""Longer than any interval."""

LOOKS = 20_000_000
"""Durations looked at for one subset and its prices, about."""


def energetic_bound(problem: Problem, least: int, should_stop: Callable[[], bool] = lambda: False) -> Bound:
    """The best bound of the makespan by energetic reasoning, alone or, if possible, beyond another bound `least`.

    Alone it begins with the longest task.
    """
    begun = time.perf_counter()
    classes = narrowed_classes(problem)
    found, priced = windows(classes), priced_subsets(classes)
    alone = np.where(found.allowed, classes.duration, np.iinfo(np.int64).max).min(axis=1)
    best, why = int(alone.max()), f"task {problem.task_names[int(alone.argmax())]} takes so long wherever it runs"
    for known in (best, least):
        at = max(best, known)
        for subset, tried in priced:
            if should_stop():
                break
            value, tasks = _confined_bound(classes, found, subset, tried, at)
            if value > at:
                best = at = value
                why = (
                    f"{tasks} tasks confined to {classes.names(subset.members)} must do so much within some interval "
                    f"that all takes {time_text(best, problem.resolution)}"
                )
    return Bound("energetic", best, why, time.perf_counter() - begun)


def _confined_bound(
    classes: Classes, found: Windows, subset: Subset, tried: Sequence[Prices], least: int
) -> tuple[int, int]:
    """A bound by one subset, given another bound, and how many tasks are confined to that; 0 if it is no better."""
    tasks = np.flatnonzero(subset.groups[classes.problem.group])
    best = 0
    if len(tasks) == 0:
        return best, 0
    members = np.flatnonzero(subset.members)
    sharing = sharing_of_tasks(classes, tasks, members)
    place = np.ix_(tasks, members)
    head, tail, open_ = found.head[place], found.tail[place], found.allowed[place]
    most = min(ENDS, max(2, math.isqrt(LOOKS // head.size)))
    starts = _bends(head[open_], sharing.amount[open_], most)
    ends = _bends(tail[open_], sharing.amount[open_], most)
    for prices in tried:
        price = coarser(sharing, prices, int(starts.max()) + int(ends.max()))
        scale = price.scale(sharing)
        if scale == 0:
            continue
        worth = (sharing.memory >> price.shift)[:, None] * price.memory
        sweep = best_interval.select(4 * len(starts) * len(ends) * head.size)
        value = sweep(
            starts, ends, head, sharing.amount, tail, open_, price.amount, worth, scale, price.stock(sharing),
            max(least, best),
        )  # fmt: skip
        best = max(best, int(value))
    return best, len(tasks)


def _bends(near: Int, duration: Int, most: int) -> Int:
    """Some of the ticks at which the part of a task beyond them changes its slope; at least one."""
    values = np.unique(np.concatenate([near, near + duration]))
    if len(values) > most:
        values = np.unique(np.quantile(values, np.arange(most) / most, method="lower"))
    return values


@kernel(allocates=False)
def asked(
    a: int, q: int, length: int, head: Int, duration: Int, tail: Int, allowed: Bool, price: Int, worth: Int
) -> int:
    """What all tasks ask of the interval [a, C - q) at least, if it is so long, at these prices."""
    n, k = duration.shape
    total = 0
    for i in range(n):
        cheapest = -1
        for c in range(k):
            if allowed[i, c]:
                w = min(duration[i, c], head[i, c] + duration[i, c] - a, tail[i, c] + duration[i, c] - q, length)
                cost = price[c] * max(w, 0) + worth[i, c]
                cheapest = cost if cheapest < 0 else min(cheapest, cost)
        total += max(cheapest, 0)
    return total


@kernel(asked, allocates=False)
def best_interval(
    starts: Int,
    ends: Int,
    head: Int,
    duration: Int,
    tail: Int,
    allowed: Bool,
    price: Int,
    worth: Int,
    scale: int,
    stock: int,
    least: int,
) -> int:
    """The largest a + q + L over all `starts` a and `ends` q, for a makespan of `least` or more; or 0.

    `head`, `duration`, `tail`, `allowed` and `worth` (memory at its price) are (n, k), `price` is (k,); `scale` is what
    a tick of all devices costs, `stock` what all memory does.
    """
    best = 0
    for a in starts:
        for q in ends:
            room = max(least, best) - a - q
            if room <= 0:
                break  # the ends only grow
            if asked(a, q, room, head, duration, tail, allowed, price, worth) <= stock + scale * room:
                continue
            most = asked(a, q, TOO_LONG, head, duration, tail, allowed, price, worth) - stock
            length = -(-most // scale) - 1
            if length >= room and (
                asked(a, q, length, head, duration, tail, allowed, price, worth) > stock + scale * length
            ):
                best = a + q + length + 1
    return best
