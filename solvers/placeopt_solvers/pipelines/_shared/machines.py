"""Divide an order of nodes into stages of devices that occupy machines, each machine in at most one stage.

A dynamic program over the number of nodes placed and the set of machines used. Transfers take the ticks of the slowest
link, and each budget is kept in each stage alone, so that a division may still exceed one in all. For starts of exact
solvers: plans that use a machine in several stages are not tried.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placeopt.engine import StoppedError
from placeopt.model.arrays import Int, by_index, inverse
from placeopt.model.problem import Problem
from placeopt.model.stages import backward, rules

from .contraction import Nodes

MOST_MACHINES, MOST_LOADS = 10, 10_000_000
"""Largest numbers of machines, and of loads of stages, for which divisions are tried."""

NEVER = np.iinfo(np.int64).max


def divided_by_machines(
    problem: Problem, nodes: Nodes, order: Int, stopped: Callable[[], bool]
) -> tuple[Int, Int] | None:
    """Return the device and the stage (n,) of each task in the best division of an order; None if there is none.

    Raises a StoppedError if `stopped` became true.
    """
    k, on = nodes.count, rules(problem).occupied
    if on.shape[1] > MOST_MACHINES or k * k * len(on) > MOST_LOADS:
        return None
    load = _loads(problem, nodes, order)
    bits = (on * (1 << np.arange(on.shape[1]))).sum(axis=1).tolist()
    masks = np.arange(1 << on.shape[1])
    able = [masks[masks & each == each] for each in bits]
    # The least period of the first nodes on a set of machines, with the last stage: its first node and its device.
    best = np.full((k + 1, len(masks)), NEVER)
    best[0, 0] = 0
    first, last = np.zeros((2, k + 1, len(masks)), dtype=np.int64)
    for end in range(1, k + 1):
        if stopped():
            raise StoppedError
        for d, used in enumerate(able):
            before = np.maximum(best[:end, used ^ bits[d]], load[:end, end, d, None])
            begin = before.argmin(axis=0)
            value = before[begin, np.arange(len(used))]
            better = value < best[end, used]
            better_masks = used[better]
            best[end, better_masks] = value[better]
            first[end, better_masks], last[end, better_masks] = begin[better], d
    if best[k].min() == NEVER:
        return None
    mask, end, stages = int(best[k].argmin()), k, []
    while end:
        begin, d = int(first[end, mask]), int(last[end, mask])
        stages.append((begin, end, d))
        end, mask = begin, mask ^ bits[d]
    home, number = np.zeros((2, k), dtype=np.int64)
    for place, (begin, end, d) in enumerate(reversed(stages)):
        home[order[begin:end]], number[order[begin:end]] = d, place
    ahead, count = number[nodes.node], len(stages)
    behind = 2 * count - 1 - ahead if nodes.opposite else count + ahead
    return home[nodes.node], np.where(backward(problem), behind, ahead)


def _loads(problem: Problem, nodes: Nodes, order: Int) -> Int:
    """(k + 1, k + 1, m) ticks of the stage from one place of the order to another on a device; NEVER where not able."""
    k, pipeline = nodes.count, rules(problem)

    def sums(amounts: Int) -> Int:
        """(k + 1, k + 1, ...) the sums of the nodes from one place to another."""
        until = np.zeros((k + 1, *amounts.shape[1:]), dtype=np.int64)
        np.cumsum(amounts[order], axis=0, out=until[1:])
        return until[None] - until[:, None]

    busy = sums(nodes.computing) + pipeline.launch * np.clip(sums(nodes.tasks), 0, 1).sum(axis=2, keepdims=True)
    sent, received = _crossing(nodes, order)[:, :, :, None] * ~pipeline.free_transfers
    ways = (sent, received) if pipeline.full_duplex.all() else (sent + received,)
    found = np.maximum.reduce([busy, *ways]) if pipeline.overlap.all() else busy + ways[0]
    never = sums((~nodes.allowed).astype(np.int64)) > 0
    never |= sums(nodes.fixed)[:, :, None] > problem.capacity
    resources = problem.resources
    for share in () if resources is None else resources.shares():
        amounts = by_index(np.add, nodes.node, share.amount, k)
        never |= sums(amounts) > share.capacity
    return np.where(never, NEVER, found)


def _crossing(nodes: Nodes, order: Int) -> Int:
    """(2, k + 1, k + 1) ticks that the stage from one place of the order to another sends, and receives."""
    k, items = nodes.count, nodes.items
    place = inverse(order)
    steps = np.zeros((2, k + 2, k + 2), dtype=np.int64)

    def add(which: int, begins: tuple[int, int], ends: tuple[int, int], ticks: int) -> None:
        """Add ticks to the stages that begin, and end, at places from the first of a pair up to the second."""
        (a, b), (c, d) = begins, ends
        steps[which, a, c] += ticks
        steps[which, b, c] -= ticks
        steps[which, a, d] -= ticks
        steps[which, b, d] += ticks

    for x, (producer, ticks) in enumerate(zip(place[items.producer].tolist(), items.ticks.tolist(), strict=True)):
        where = np.sort(place[items.consumer[items.consumer_start[x] : items.consumer_start[x + 1]]]).tolist()
        if where[-1] > producer:
            add(0, (0, producer + 1), (producer + 1, where[-1] + 1), ticks)
        before = producer
        for consumer in where:
            if consumer > producer:
                add(1, (before + 1, consumer + 1), (consumer + 1, k + 1), ticks)
                before = consumer
    return steps.cumsum(axis=1).cumsum(axis=2)[:, : k + 1, : k + 1]
