"""Energetic reasoning: work that must run within a time interval in every schedule.

**Definitions.** Let S be tasks confined to a subset D of the devices; R_ic, Q_ic and p_ic the head, tail and duration
of task i on class c (`placeopt.bounding.quick.paths`); C the makespan; [a, C - q) an interval of length L = C - q - a.
On class c, task i runs in it for at least min(w_ic, L) ticks,

    w_ic = min(p_ic, max(R_ic + p_ic - a, 0), max(Q_ic + p_ic - q, 0)),

which is what the interval contains of the task at its earliest or latest position; positions in between contain more.
Let u_c, v_c be the prices of the load bound (`placeopt.bounding.quick.loads`), h_i the memory of task i, and V the
total worth of the memory.

**Claim.** In the interval, D offers work worth L sum_d u_d, hence

    sum_i min_c (u_c min(w_ic, L) + v_c h_i) - V - L sum_d u_d <= 0.

The left-hand side is concave in L. Let it be positive at some L that another bound guarantees C to exceed, and at a
larger L'. Then it is positive in between, and C >= a + q + L' + 1. L' is chosen just below

    (sum_i min_c (u_c w_ic + v_c h_i) - V) / sum_d u_d,

beyond which the left-hand side is negative. Unlike Jackson's bound (`placeopt.bounding.quick.jackson`), this counts
tasks that lie partly in the interval. Such intervals are from P. Baptiste, C. Le Pape, W. Nuijten, "Satisfiability
tests and time-bound adjustments for cumulative scheduling problems", Annals of Operations Research 92 (1999),
doi:10.1023/A:1018995000688; here they move with the makespan. a and q are chosen among the breakpoints of w_ic: R and R
+ p, Q and Q + p.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from placeopt import engine
from placeopt.bounding.quick import Bound, narrowed_classes
from placeopt.bounding.quick.classes import Classes, Subset, selected
from placeopt.bounding.quick.jackson import coarser, priced_subsets, sharing_of_tasks
from placeopt.bounding.quick.loads import Prices
from placeopt.bounding.quick.paths import Windows, windows
from placeopt.errors import counted
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.model.units import time_text

ENDS = 64
"""Maximum number of values of a and of q: quantiles of all breakpoints, fewer for more tasks."""

TOO_LONG = 1 << 62
"""Longer than any interval."""

MOST_WORTH = 1 << 61
"""A worth of memory above every priced work, which is below 2^60; the sum of both fits into 64 bits."""

WORK = 20_000_000
"""Approximate number of durations visited for one subset and its prices."""


def energetic_bound(problem: Problem, least: int, should_stop: Callable[[], bool] = lambda: False) -> Bound:
    """The best bound of the makespan by energetic reasoning; it improves on another bound `least` if possible."""
    begun = time.perf_counter()
    classes = narrowed_classes(problem)
    found = windows(classes)
    priced = [] if should_stop() else priced_subsets(classes)
    alone = np.where(found.allowed, classes.duration, np.iinfo(np.int64).max).min(axis=1)
    best = int(alone.max())
    why = f"task {problem.task_names[int(alone.argmax())]} takes at least this long on any device"
    for known in (best, least):
        at = max(best, known)
        for subset, tried in priced:
            if should_stop():
                break
            value, tasks = _confined_bound(classes, found, subset, tried, at)
            if value > at:
                best = at = value
                why = (
                    f"{counted(tasks, 'task')} confined to {classes.names(subset.members)} "
                    f"need{'s' if tasks == 1 else ''} more time within some interval "
                    f"than a makespan below {time_text(best, problem.resolution)} leaves"
                )
    return Bound("energetic", best, why, time.perf_counter() - begun)


def _confined_bound(
    classes: Classes, found: Windows, subset: Subset, tried: Sequence[Prices], least: int
) -> tuple[int, int]:
    """A bound from one subset beyond `least`, or 0; and the number of tasks confined to the subset."""
    tasks, best = subset.groups[classes.problem.group], 0
    if not tasks.any():
        return best, 0
    sharing = sharing_of_tasks(classes, tasks, subset.members)
    head, tail, open_ = (selected(each, tasks, subset.members) for each in (found.head, found.tail, found.allowed))
    most = min(ENDS, max(2, math.isqrt(WORK // head.size)))
    starts = breakpoints(head[open_], sharing.amount[open_], most)
    ends = breakpoints(tail[open_], sharing.amount[open_], most)
    for prices in tried:
        price = coarser(sharing, prices, int(starts.max()) + int(ends.max()))
        scale = price.scale(sharing)
        if scale == 0:
            continue
        memory_worth = min(price.memory_worth(sharing), MOST_WORTH)
        worth = (sharing.memory >> price.shift)[:, None] * price.memory
        value = engine.best_interval(
            starts, ends, head, sharing.amount, tail, open_, price.amount, worth, scale, memory_worth,
            max(least, best), TOO_LONG, engine.current_stop(),
        )  # fmt: skip
        best = max(best, value)
    return best, int(tasks.sum())


def breakpoints(near: Int, duration: Int, most: int) -> Int:
    """Some of the breakpoints of w; at least one."""
    values = np.unique(np.concatenate([near, near + duration]))
    if len(values) > most:
        values = np.unique(np.quantile(values, np.arange(most) / most, method="lower"))
    return values
