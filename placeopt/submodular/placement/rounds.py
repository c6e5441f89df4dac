"""The rounds of greedy on a placement model: every round the best pair of a task and a device, until all are placed.

Standard greedy compares all pairs in every round, O(n m). *Lazily*, a device is only looked at if what it could offer
at most is no less than the best found. That bound is its best pair when it was looked at last, raised by all that has
happened since and could have made a pair better:

- a task that began to be parallel to others: pf of those grows; if they are few, their pairs are worked out anew;
- transfers that need no longer be made: the pairs of these tasks are worked out anew;
- outside, F itself grows, by the same for all pairs with the same pf.

All else only makes pairs worse. So laziness is sound although the function is not submodular, and the outcome is that
of standard greedy to the last tie: ties go to the task of the lowest index, then to the device of the lowest index. Of
several devices of one class that stand empty, only the first is looked at.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Float, Int
from placeopt.submodular.placement.benefits import (
    Model,
    Standing,
    concave,
    factor,
    free,
    growth,
    may_go,
    put,
    tapers,
    value_of,
)

SLACK = 1e-9
"""By which share bounds are raised against rounding."""

MANY = 4
"""One in so many open tasks is not few."""


class Record(NamedTuple):
    """What greedy did.

    Attributes
    ----------
    task, device, value
        (n,) the pair chosen in each round, and the value after it.
    evaluations
        (1,) pairs compared.
    """

    task: Int
    device: Int
    value: Float
    evaluations: Int


class Queue(NamedTuple):
    """What is open, and what each device could offer.

    Attributes
    ----------
    task, n_tasks
        (n,), (1,) the tasks not placed, by index; some that are placed among them.
    bound
        (m,) no pair on the device is worth more: as free pf (inside), or as a score (outside).
    pf, highest
        (m,) no task on the device has a higher pf, and none lets F grow by more.
    offer
        (m,) no pair on the device has a higher score in this round.
    best, chosen
        (m,) score and task of the best pair on each device that was looked at in this round.
    looked, empty
        (m,) whether it was, or need not be; round in which an empty device of each class was met last.
    rank
        (m,) kind of each device, its class and the tasks it may take: empty ones of one kind are alike.
    reserved
        (m,) whether groups were given this device at the start: it is like no other then.
    """

    task: Int
    n_tasks: Int
    bound: Float
    pf: Float
    highest: Float
    offer: Float
    best: Float
    chosen: Int
    looked: Bool
    empty: Int
    rank: Int
    reserved: Bool


def make_record(n: int) -> Record:
    """Nothing done yet."""
    return Record(
        task=np.full(n, -1, dtype=np.int64),
        device=np.full(n, -1, dtype=np.int64),
        value=np.zeros(n),
        evaluations=np.zeros(1, dtype=np.int64),
    )


def make_queue(model: Model, standing: Standing, device_class: Int) -> Queue:
    """All tasks open, and no device looked at."""
    m, n = model.cost.shape
    # Devices that groups may use unlike, though of one class, are not alike.
    alike = np.column_stack((device_class, np.isfinite(model.cost)))
    rank = np.unique(alike, axis=0, return_inverse=True)[1].reshape(m)
    reserved = np.zeros(m, dtype=np.bool_)
    reserved[standing.home[standing.home >= 0]] = True
    return Queue(
        task=np.arange(n, dtype=np.int64),
        n_tasks=np.array([n], dtype=np.int64),
        bound=np.full(m, math.inf),
        pf=np.full(m, float(n)),
        highest=np.zeros(m),
        offer=np.zeros(m),
        best=np.zeros(m),
        chosen=np.full(m, -1, dtype=np.int64),
        looked=np.zeros(m, dtype=np.bool_),
        empty=np.full(m, -1, dtype=np.int64),
        rank=rank.astype(np.int64),
        reserved=reserved,
    )


@kernel(concave, may_go, free, factor, growth, tapers, allocates=False)
def look(model: Model, standing: Standing, queue: Queue, record: Record, i: int) -> None:
    """Find the best pair on device i: its score and task in `best` and `chosen`, -1 if no task may go there.

    What cannot be better than the best so far is passed over without asking whether it is allowed.
    """
    chosen, best, best_ratio, best_pf = -1, -math.inf, -math.inf, 0
    bound, most_pf = -math.inf, 1
    looked, plain = 0, not tapers(model)
    here = concave(model.curve, standing.benefit[i])
    highest = concave(model.curve, standing.benefit[i] + 2.0) - here
    for k in range(queue.n_tasks[0]):
        u = queue.task[k]
        if standing.topology.device[u] >= 0:
            continue
        looked += 1
        ratio = free(model, standing, u, i)
        pf = factor(model, standing, u, i, ratio)
        most_pf = max(most_pf, pf)
        if model.inside:
            worth = ratio * pf
            if (plain and worth <= bound) or not may_go(model, standing, u, i):
                continue
            score = growth(model, standing, u, i, worth)
        else:
            beaten = (pf == best_pf and ratio <= best_ratio) or (standing.value[0] + highest) * pf <= best
            if (plain and beaten) or not may_go(model, standing, u, i):
                continue
            worth = score = (standing.value[0] + growth(model, standing, u, i, ratio)) * pf
        bound = max(bound, worth)
        if score > best:
            chosen, best, best_ratio, best_pf = u, score, ratio, pf
    record.evaluations[0] += looked
    queue.chosen[i], queue.best[i], queue.bound[i] = chosen, best, bound
    queue.pf[i] = most_pf
    queue.looked[i] = True


@kernel(concave, allocates=False)
def offer(model: Model, standing: Standing, queue: Queue, i: int) -> float:
    """No pair on device i has a higher score."""
    bound = queue.bound[i]
    if math.isinf(bound):
        return float(bound)
    if model.inside:
        bound = concave(model.curve, standing.benefit[i] + bound) - concave(model.curve, standing.benefit[i])
    return float(bound + SLACK * abs(bound))


@kernel(offer, allocates=False)
def begin(model: Model, standing: Standing, queue: Queue, number: int) -> None:
    """Begin round `number`: no device looked at, but those that are like one before."""
    for i in range(len(queue.looked)):
        queue.chosen[i] = -1
        queue.looked[i] = False
        if standing.held[i] == 0 and not queue.reserved[i]:
            queue.looked[i] = queue.empty[queue.rank[i]] == number
            queue.empty[queue.rank[i]] = number
        queue.offer[i] = offer(model, standing, queue, i)


@kernel(free, factor, growth, allocates=False)
def reconsider(model: Model, standing: Standing, queue: Queue, u: int) -> None:
    """Raise the bounds of all devices to what task u is worth there now."""
    for i in range(len(queue.bound)):
        if queue.bound[i] == -math.inf or model.cost[i, u] == math.inf:
            continue
        ratio = free(model, standing, u, i)
        pf = factor(model, standing, u, i, ratio)
        queue.pf[i] = max(queue.pf[i], pf)
        if model.inside:
            queue.bound[i] = max(queue.bound[i], ratio * pf)
        elif (standing.value[0] + queue.highest[i]) * pf > queue.bound[i]:
            queue.bound[i] = max(queue.bound[i], (standing.value[0] + growth(model, standing, u, i, ratio)) * pf)


@kernel(concave, reconsider, allocates=False)
def renew(model: Model, standing: Standing, queue: Queue, d: int, value: float, benefit: float) -> None:
    """Raise the bounds by what the last placement, on device d, may have made better.

    `value` and `benefit` are F and B_d before it.
    """
    topology, total = standing.topology, standing.value[0]
    few = MANY * topology.n_gained[0] < queue.n_tasks[0]
    events = 0
    for i in range(len(queue.bound)):
        events += topology.raised[i]
    for i in range(len(queue.bound)):
        queue.highest[i] = concave(model.curve, standing.benefit[i] + 2.0) - concave(model.curve, standing.benefit[i])
        if queue.bound[i] == -math.inf:
            continue
        if not model.inside:
            queue.bound[i] += max(total - value, 0.0) * queue.pf[i]
        if not few:
            more = events - topology.raised[i]
            queue.pf[i] += more
            queue.bound[i] += more * (2.0 if model.inside else total + queue.highest[i])
    if few:
        for k in range(topology.n_gained[0]):
            reconsider(model, standing, queue, topology.gained[k])
    for c in range(standing.n_changed[0]):
        k = standing.changed[c]
        for a in range(model.member_start[k], model.member_start[k + 1]):
            if topology.device[model.member[a]] < 0:
                reconsider(model, standing, queue, model.member[a])
    # Below zero, where g is not concave, or where memory swapped may cost less than before, anything may be better.
    for i in range(len(queue.bound)):
        if i == d and (benefit < 0.0 or standing.benefit[d] < benefit or model.tier_end.shape[1] > 0):
            queue.bound[i], queue.pf[i] = math.inf, float(len(topology.device))
        if not model.inside and total < 0.0:
            queue.bound[i], queue.pf[i] = math.inf, float(len(topology.device))


@kernel(look, begin, put, renew, value_of, allocates=False)
def place_all(model: Model, standing: Standing, queue: Queue, record: Record, lazy: bool, first: int, last: int) -> int:
    """Place task after task, each on the device where its score is highest of all pairs; how many are placed.

    In the rounds from `first`, which is how many are placed already, to `last`. Fewer than `last`: no pair of those
    left is allowed.
    """
    n, m = len(queue.task), len(queue.looked)
    for number in range(first, last):
        begin(model, standing, queue, number)
        score, u, d = -math.inf, -1, -1
        for _ in range(m):
            i = -1
            for k in range(m):
                if not queue.looked[k] and (i < 0 or queue.offer[k] > queue.offer[i]):
                    i = k
            if i < 0 or (lazy and queue.offer[i] < score):
                break
            look(model, standing, queue, record, i)
            v = queue.chosen[i]
            if v >= 0 and (queue.best[i] > score or (queue.best[i] == score and (v < u or (v == u and i < d)))):
                score, u, d = queue.best[i], v, i
        if u < 0:
            return number
        value, benefit = standing.value[0], standing.benefit[d]
        put(model, standing, u, d)
        renew(model, standing, queue, d, value, benefit)
        record.task[number], record.device[number] = u, d
        record.value[number] = value_of(model, standing)
        if 4 * (n - number - 1) < 3 * queue.n_tasks[0]:
            kept = 0
            for k in range(queue.n_tasks[0]):
                if standing.topology.device[queue.task[k]] < 0:
                    queue.task[kept] = queue.task[k]
                    kept += 1
            queue.n_tasks[0] = kept
    return last
