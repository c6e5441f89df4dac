"""The greedy algorithm on a placement model: place the best pair of a task and a device in each round.

Standard greedy evaluates all O(n m) pairs in each round. *Lazy* greedy evaluates a device only if its upper bound is no
less than the best score found. The bound is the score of the device's best pair at its last evaluation, raised after
each placement that may have increased a score:

- a task became parallel to others, which increases their pf; if they are few, their pairs are recomputed;
- a transfer is no longer needed; the pairs of the tasks concerned are recomputed;
- for the form `outside`, F increased, by the same amount for all pairs with the same pf.

All other effects decrease scores. Lazy greedy is therefore exact although the function is not submodular. Ties go to
the lowest task index, then to the lowest device index, as in standard greedy. Of several empty devices of one kind,
only the first is evaluated.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Float, Int
from placeopt.submodular.placement.benefits import (
    Model,
    PlacementState,
    can_host,
    concave,
    free_ratio,
    has_fullness_factor,
    parallelism_factor,
    place_task,
    sum_gain,
    value_of,
)

SLACK = 1e-9
"""Relative amount by which bounds are raised against rounding."""

MANY = 4
"""Recompute single tasks if they are fewer than 1/MANY of the open tasks; otherwise raise all bounds."""


class Record(NamedTuple):
    """The history of greedy."""

    task: Int  # (n,) task placed in each round
    device: Int  # (n,) its device
    value: Float  # (n,) f after the round
    evaluations: Int  # (1,) number of pairs evaluated


class Queue(NamedTuple):
    """The open tasks and the upper bounds of the devices."""

    task: Int  # (n,) the unplaced tasks by index, and possibly some placed ones
    n_tasks: Int  # (1,) their number
    bound: Float  # (m,) upper bound on freeRatio · pf (inside) or the score (outside) of all pairs on the device
    pf: Float  # (m,) upper bound on pf of all tasks on the device
    highest: Float  # (m,) upper bound on the increase of F by any task on the device
    score_bound: Float  # (m,) upper bound on the score of all pairs on the device in this round
    best: Float  # (m,) score of the best pair on each device evaluated in this round
    chosen: Int  # (m,) its task
    done: Bool  # (m,) whether the device is evaluated or skipped in this round
    empty: Int  # (m,) last round with an empty device of each kind
    kind: Int  # (m,) device class and feasible tasks: empty devices of one kind are equivalent
    reserved: Bool  # (m,) whether groups have this device from the start, which makes it different from all others


def make_record(n: int) -> Record:
    """An empty record."""
    return Record(
        task=np.full(n, -1, dtype=np.int64),
        device=np.full(n, -1, dtype=np.int64),
        value=np.zeros(n),
        evaluations=np.zeros(1, dtype=np.int64),
    )


def make_queue(model: Model, state: PlacementState, device_class: Int) -> Queue:
    """The queue before the first round."""
    m, n = model.cost.shape
    # Devices of one class differ if their feasible groups differ.
    alike = np.column_stack((device_class, np.isfinite(model.cost), model.curve, model.piece_end, model.piece_slope))
    kind = np.unique(alike, axis=0, return_inverse=True)[1].reshape(m)
    reserved = np.zeros(m, dtype=np.bool_)
    reserved[state.home[state.home >= 0]] = True
    return Queue(
        task=np.arange(n, dtype=np.int64),
        n_tasks=np.array([n], dtype=np.int64),
        bound=np.full(m, math.inf),
        pf=np.full(m, float(n)),
        highest=np.zeros(m),
        score_bound=np.zeros(m),
        best=np.zeros(m),
        chosen=np.full(m, -1, dtype=np.int64),
        done=np.zeros(m, dtype=np.bool_),
        empty=np.full(m, -1, dtype=np.int64),
        kind=kind.astype(np.int64),
        reserved=reserved,
    )


@kernel(concave, can_host, free_ratio, parallelism_factor, sum_gain, has_fullness_factor, allocates=False)
def evaluate_device(model: Model, state: PlacementState, queue: Queue, record: Record, i: int) -> None:
    """Find the best pair on device i: score and task in `best` and `chosen`, -1 if the device can take no task.

    Pairs that cannot be better than the best one so far are skipped before `can_host`.
    """
    chosen, best, best_ratio, best_pf = -1, -math.inf, -math.inf, 0
    bound, most_pf = -math.inf, 1
    looked, plain = 0, not has_fullness_factor(model)
    here = concave(model, i, state.benefit[i])
    highest = concave(model, i, state.benefit[i] + 2.0) - here
    for k in range(queue.n_tasks[0]):
        u = queue.task[k]
        if state.topology.device[u] >= 0:
            continue
        looked += 1
        ratio = free_ratio(model, state, u, i)
        pf = parallelism_factor(model, state, u, i, ratio)
        most_pf = max(most_pf, pf)
        if model.inside:
            worth = ratio * pf
            if (plain and worth <= bound) or not can_host(model, state, u, i):
                continue
            score = sum_gain(model, state, u, i, worth)
        else:
            beaten = (pf == best_pf and ratio <= best_ratio) or (state.value[0] + highest) * pf <= best
            if (plain and beaten) or not can_host(model, state, u, i):
                continue
            worth = score = (state.value[0] + sum_gain(model, state, u, i, ratio)) * pf
        bound = max(bound, worth)
        if score > best:
            chosen, best, best_ratio, best_pf = u, score, ratio, pf
    record.evaluations[0] += looked
    queue.chosen[i], queue.best[i], queue.bound[i] = chosen, best, bound
    queue.pf[i] = most_pf
    queue.done[i] = True


@kernel(concave, allocates=False)
def score_bound_of(model: Model, state: PlacementState, queue: Queue, i: int) -> float:
    """Upper bound on the score of all pairs on device i."""
    bound = queue.bound[i]
    if math.isinf(bound):
        return float(bound)
    if model.inside:
        bound = concave(model, i, state.benefit[i] + bound) - concave(model, i, state.benefit[i])
    return float(bound + SLACK * abs(bound))


@kernel(score_bound_of, allocates=False)
def begin_round(model: Model, state: PlacementState, queue: Queue, number: int) -> None:
    """Begin round `number`: skip empty devices that are equivalent to an earlier one."""
    for i in range(len(queue.done)):
        queue.chosen[i] = -1
        queue.done[i] = False
        if state.held[i] == 0 and not queue.reserved[i]:
            queue.done[i] = queue.empty[queue.kind[i]] == number
            queue.empty[queue.kind[i]] = number
        queue.score_bound[i] = score_bound_of(model, state, queue, i)


@kernel(free_ratio, parallelism_factor, sum_gain, allocates=False)
def raise_bounds_for_task(model: Model, state: PlacementState, queue: Queue, u: int) -> None:
    """Raise the bounds of all devices to the current score of task u."""
    for i in range(len(queue.bound)):
        if queue.bound[i] == -math.inf or model.cost[i, u] == math.inf:
            continue
        ratio = free_ratio(model, state, u, i)
        pf = parallelism_factor(model, state, u, i, ratio)
        queue.pf[i] = max(queue.pf[i], pf)
        if model.inside:
            queue.bound[i] = max(queue.bound[i], ratio * pf)
        elif (state.value[0] + queue.highest[i]) * pf > queue.bound[i]:
            queue.bound[i] = max(queue.bound[i], (state.value[0] + sum_gain(model, state, u, i, ratio)) * pf)


@kernel(concave, raise_bounds_for_task, allocates=False)
def raise_bounds(model: Model, state: PlacementState, queue: Queue, d: int, value: float, benefit: float) -> None:
    """Raise the bounds of scores that the last placement, on device d, may have increased.

    `value` and `benefit` are F and B_d before it.
    """
    topology, total = state.topology, state.value[0]
    few = MANY * topology.n_gained[0] < queue.n_tasks[0]
    events = 0
    for i in range(len(queue.bound)):
        events += topology.raised[i]
    for i in range(len(queue.bound)):
        queue.highest[i] = concave(model, i, state.benefit[i] + 2.0) - concave(model, i, state.benefit[i])
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
            raise_bounds_for_task(model, state, queue, topology.gained[k])
    for c in range(state.n_changed[0]):
        k = state.changed[c]
        for a in range(model.member_start[k], model.member_start[k + 1]):
            if topology.device[model.member[a]] < 0:
                raise_bounds_for_task(model, state, queue, model.member[a])
    # Where g is not concave (below zero) or swapping may have become cheaper, any score may have increased.
    for i in range(len(queue.bound)):
        if i == d and (benefit < 0.0 or state.benefit[d] < benefit or model.tier_end.shape[1] > 0):
            queue.bound[i], queue.pf[i] = math.inf, float(len(topology.device))
        if not model.inside and total < 0.0:
            queue.bound[i], queue.pf[i] = math.inf, float(len(topology.device))


@kernel(evaluate_device, begin_round, place_task, raise_bounds, value_of, allocates=False)
def place_all(
    model: Model, state: PlacementState, queue: Queue, record: Record, lazy: bool, first: int, last: int
) -> int:
    """Run the rounds from `first`, the number of placed tasks, to `last`; return the number of placed tasks.

    It is less than `last` if no remaining pair is allowed.
    """
    n, m = len(queue.task), len(queue.done)
    for number in range(first, last):
        begin_round(model, state, queue, number)
        score, u, d = -math.inf, -1, -1
        for _ in range(m):
            i = -1
            for k in range(m):
                if not queue.done[k] and (i < 0 or queue.score_bound[k] > queue.score_bound[i]):
                    i = k
            if i < 0 or (lazy and queue.score_bound[i] < score):
                break
            evaluate_device(model, state, queue, record, i)
            v = queue.chosen[i]
            if v >= 0 and (queue.best[i] > score or (queue.best[i] == score and (v < u or (v == u and i < d)))):
                score, u, d = queue.best[i], v, i
        if u < 0:
            return number
        value, benefit = state.value[0], state.benefit[d]
        place_task(model, state, u, d)
        raise_bounds(model, state, queue, d, value, benefit)
        record.task[number], record.device[number] = u, d
        record.value[number] = value_of(model, state)
        if 4 * (n - number - 1) < 3 * queue.n_tasks[0]:
            kept = 0
            for k in range(queue.n_tasks[0]):
                if state.topology.device[queue.task[k]] < 0:
                    queue.task[kept] = queue.task[k]
                    kept += 1
            queue.n_tasks[0] = kept
    return last
