"""Head, load and tail: work that cannot start before some tick and must end some ticks before the makespan.

Heads start from release times. With the tails of deadlines, "makespan" means the horizon T of
`placeopt.bounding.quick.deadlines`. On devices that run several tasks at once, durations count as 0.

Let S be tasks confined to a subset D of the devices, R their least head and Q their least tail
(`placeopt.bounding.quick.paths`). All of S runs within [R, makespan - Q), so the makespan is at least R + Q plus the
time that D needs for S. There are two bounds of this time, for sets S = {head >= R, tail >= Q}:

*priced*: with the prices w of the load bound (`placeopt.bounding.quick.loads`), each device d of D works at most
makespan - R - Q, so (makespan - R - Q) sum_d w_d >= sum of the tasks' weights - the memory's worth. A sweep over the
tails with a Θ-tree over the heads finds the best R and Q in O(n log n) (P. Vilím, "O(n log n) filtering algorithms for
unary resource constraint", CPAIOR 2004, doi:10.1007/978-3-540-24664-0_23). For one device this is Jackson's preemptive
schedule, the best bound of its kind (J. Carlier, "The one-machine sequencing problem", EJOR 11 (1982),
doi:10.1016/S0377-2217(82)80007-6).

*spread*: each of m devices starts with a different task of S and ends with one. So, for |S| >= m, m makespan >= sum of
the shortest durations + the m smallest heads + the m smallest tails (J. Carlier, "Scheduling jobs with release dates
and tails on identical machines to minimize the makespan", EJOR 29 (1987), doi:10.1016/0377-2217(87)90243-8). A device
without a task of S could take over the last task of a device with two; this makes nothing worse, because all durations
count as the shortest. All R are combined with a few quantiles of Q, and vice versa.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from placeopt import engine
from placeopt.bounding.quick.classes import Classes, Subset, least, selected
from placeopt.bounding.quick.loads import BITS, Prices, Sharing, busiest, candidate_prices, sharing_of, weights
from placeopt.bounding.quick.paths import Windows
from placeopt.model.arrays import Bool, Int

QUANTILES = 8
"""Thresholds on one side that are combined with all thresholds on the other."""

NONE = -(1 << 62)
"""Value of an empty set of tasks; below every other value."""


def priced_subsets(classes: Classes) -> list[tuple[Subset, list[Prices]]]:
    """The subsets with the most work per device, and all devices last, each with prices for its load program."""
    return [
        (subset, candidate_prices(sharing_of(classes, subset, classes.busy, loads=True))) for subset in busiest(classes)
    ]


def head_load_tail(
    classes: Classes, found: Windows, priced: Sequence[tuple[Subset, Sequence[Prices]]]
) -> tuple[int, Subset, int]:
    """The best bound, the subset of devices that proves it, and the number of tasks confined to that subset.

    `priced` are the subsets to try, each with prices for its load program.
    """
    group = classes.problem.group
    head, tail, shortest = (least(ticks, found.allowed) for ticks in (found.head, found.tail, classes.busy))
    best = (0, priced[-1][0], len(group))
    for subset, tried in priced:
        tasks = subset.groups[group]
        if not tasks.any():
            continue
        sharing = sharing_of_tasks(classes, tasks, subset.members)
        near, far, within = (selected(ticks, tasks) for ticks in (head, tail, shortest))
        orders = sweep_orders(near, far)
        values = [_priced(sharing, prices, near, far, orders) for prices in tried]
        values.append(_spread(near, within, far, int(sharing.size.sum())))
        if max(values) > best[0]:
            best = (max(values), subset, int(tasks.sum()))
    return best


def _priced(sharing: Sharing, prices: Prices, head: Int, tail: Int, orders: tuple[Int, Int]) -> int:
    """The bound by prices; -1 if the prices are useless."""
    prices = coarser(sharing, prices, int(head.max()) + int(tail.max()))
    scale = prices.scale(sharing)
    if scale == 0:
        return -1
    value, _ = sweep(head, tail, weights(sharing, prices).astype(np.int64), scale, orders)
    return -((prices.memory_worth(sharing) - value) // scale)


def sweep_orders(head: Int, tail: Int) -> tuple[Int, Int]:
    """The order of decreasing tails, and the position of each task in the order of increasing heads."""
    rank = np.empty(len(head), dtype=np.int64)
    rank[np.argsort(head, kind="stable")] = np.arange(len(head))
    return np.argsort(-tail, kind="stable"), rank


def sweep(head: Int, tail: Int, weight: Int, scale: int, orders: tuple[Int, Int] | None = None) -> tuple[int, int]:
    """The largest scale (R + Q) + weight of the tasks with head >= R and tail >= Q, and this Q."""
    value, last = engine.best_window(*(orders or sweep_orders(head, tail)), head, tail, weight, scale)
    return value, int(tail[last])


def nearest(head: Int, tail: Int, weight: Int, scale: int, far: int) -> int:
    """The R with the largest scale R + weight of the tasks with head >= R and tail >= far."""
    inside = tail >= far
    order = np.argsort(-head[inside], kind="stable")
    heads = head[inside][order]
    last = np.append(heads[1:] != heads[:-1], True)  # all tasks with this head are counted
    value = (scale * heads + np.cumsum(weight[inside][order]))[last]
    return int(heads[last][value.argmax()])


def sharing_of_tasks(classes: Classes, tasks: Bool, members: Bool) -> Sharing:
    """The load program of single tasks (n,), each with its memory, on some classes (k,)."""
    return Sharing(
        amount=selected(classes.busy, tasks, members),
        memory=selected(classes.memory, tasks),
        allowed=selected(classes.task_allowed, tasks, members),
        size=classes.size[members],
        capacity=classes.capacity[members],
    )


def coarser(sharing: Sharing, prices: Prices, longest: int) -> Prices:
    """The prices divided by a power of two, so that `longest` ticks and all weights fit into 64 bits."""
    largest = float(sharing.amount.max()) * float(prices.amount.max())
    largest += float((sharing.memory >> prices.shift).max()) * float(prices.memory.max())
    largest = largest * len(sharing.memory) + float(longest) * float(prices.scale(sharing))
    excess = max(math.ceil(math.log2(max(largest, 1.0))) - BITS, 0)
    return replace(prices, amount=prices.amount >> excess, memory=prices.memory >> excess)


def _spread(head: Int, duration: Int, tail: Int, devices: int) -> int:
    """The bound by the m smallest heads and tails; -1 for fewer tasks than devices."""
    most = devices * (int(head.max()) + int(tail.max())) + sum(duration.tolist())
    coarse = max(most.bit_length() - BITS, 0)  # sums of shorter times, rounded down, fit into 64 bits
    head, duration, tail = head >> coarse, duration >> coarse, tail >> coarse
    best = -1
    for near, far in ((head, tail), (tail, head)):
        order = np.argsort(-near, kind="stable")
        levels = np.unique(np.quantile(far, np.arange(QUANTILES) / QUANTILES, method="lower"))
        for level in levels.tolist():
            total = engine.best_spread(order, near, duration, far, level, devices)
            best = max(best, -(-(total << coarse) // devices) if total != NONE else -1)
    return best
