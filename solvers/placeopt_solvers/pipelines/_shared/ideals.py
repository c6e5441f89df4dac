"""The dynamic program over sets of last stages, for pipelines whose devices have one stage each.

J. Tarnawski, A. Phanishayee, N. Devanur, D. Mahajan, F. Nina Paravecino: Efficient algorithms for device placement of
DNN graph operators, NeurIPS 2020, section 5.1: a contiguous placement takes the nodes of an ideal after another, and
the least load of the busiest device depends only on the ideal and the number of devices used. Here:

- It begins with the last stage, because outputs are kept for as many runs as devices serve later stages (1f1b). So its
  sets contain all successors of their nodes.
- Devices are counted by class. A stage may have a team of them, and may compute outputs again.
- Sets that a stage cannot reach from another with a load below that of a known solution are left out, and states
  whose unused devices cannot compute the remaining nodes within that period: a device of a class computes, per tick, at
  most the largest ratio of a node's least ticks on any class to its ticks on this class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placeopt import engine
from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import Problem
from placeopt.model.schedule import Stages
from placeopt.model.stages import backward

from .amounts import separated, terms_of, touching
from .contraction import Nodes

Words = NDArray[np.uint64]
INFINITE = 2**62


class Sets(NamedTuple):
    """Sets of last nodes by size: (s, w) bits of their nodes; as CSR each node that extends them, and the result."""

    bits: Words
    start: Int
    node: Int
    result: Int


class Costs(NamedTuple):
    """What stages cost, as the engine reads it; k nodes, c classes, q numbers of used devices by class."""

    computing: Int  # (k, c)
    again: Int  # (k, c)
    forbidden: Bool  # (k, c)
    fixed: Int  # (k,)
    kept: Int  # (k,)
    source: Int  # (k,)
    gradient: Int  # (k,)
    directions: Bool  # (k, 2)
    incident_start: Int  # items that touch a node
    incident: Int
    producer: Int
    consumer_start: Int
    consumer: Int
    entering_start: Int
    entering: Int
    ticks: Int
    payload: Int
    apart_start: Int  # nodes that must not share a stage
    apart: Int
    capacity: Int  # (c,)
    size: Int  # (c,) devices
    mode: Int  # (c,) overlap * 2 + full duplex
    free: Bool  # (c,)
    launch: Int  # (c,)
    ring_latency: Int  # (c,) links between the devices of a class
    ring_num: Int
    ring_den: Int
    least: Int  # (k,) least computing ticks of a node on any class
    room: NDArray[np.float64]  # (q,) how much of these the unused devices compute in a tick, at most
    replicas: int
    in_flight: int  # runs kept; 0 for 1f1b
    recompute: bool


def sets_of(nodes: Nodes, most: int, stopped: Callable[[], bool]) -> Sets | None:
    """Return all sets that contain the successors of their nodes; None if there are more than `most`."""
    k = nodes.count
    before: list[list[int]] = [[] for _ in range(k)]
    left = [0] * k
    for a, b in zip(nodes.before.tolist(), nodes.after.tolist(), strict=True):
        before[b].append(a)
        left[a] |= 1 << b
    known = {0: 0}
    found = [0]
    start, node, result = [0], [], []
    open_at = [[v for v in range(k) if left[v] == 0]]
    at = 0
    while at < len(found):
        if at % 1024 == 0 and stopped():
            return None
        here = found[at]
        for v in open_at[at]:
            there = here | 1 << v
            place = known.get(there)
            if place is None:
                if len(found) >= most:
                    return None
                place = known[there] = len(found)
                found.append(there)
                fresh = [u for u in before[v] if left[u] & ~there == 0]
                open_at.append(sorted([u for u in open_at[at] if u != v] + fresh))
            node.append(v)
            result.append(place)
        start.append(len(node))
        at += 1
    return Sets(_bits(found, k), np.array(start), np.array(node, dtype=np.int64), np.array(result, dtype=np.int64))


def sets_along(order: Int) -> Sets:
    """Return the sets of last nodes of one order of all nodes, first to last."""
    k = len(order)
    backwards = order[::-1]
    sets = [0]
    for v in backwards.tolist():
        sets.append(sets[-1] | 1 << v)
    start = np.minimum(np.arange(k + 2), k)
    return Sets(_bits(sets, k), start, np.ascontiguousarray(backwards), np.arange(1, k + 1))


def _bits(sets: list[int], k: int) -> Words:
    width = max((k + 63) // 64, 1)
    raw = b"".join(each.to_bytes(8 * width, "little") for each in sets)
    return np.frombuffer(raw, dtype="<u8").reshape(len(sets), width).astype(np.uint64)


def costs_of(problem: Problem, nodes: Nodes) -> Costs:
    """Return the costs of a problem's stages."""
    items, k, size = nodes.items, nodes.count, nodes.size
    number = np.repeat(np.arange(len(items.producer)), np.diff(items.consumer_start))
    incident_start, incident = touching(k, items.producer, np.stack((number, items.consumer), axis=1))
    apart_start, apart = separated(problem, nodes.node, k)
    stride = np.concatenate(([1], np.cumprod(size[:-1] + 1))).astype(np.int64)
    states = np.arange(int(np.prod(size + 1)))
    unused = size - states[:, None] // stride % (size + 1)
    ticks = np.where(nodes.allowed, nodes.computing, np.inf)
    least = ticks.min(axis=1, initial=np.inf)
    worked = (least > 0) & (least < np.inf)
    rate = (least[worked, None] / ticks[worked]).max(axis=0, initial=0.0) * (1 + 1e-9)
    return Costs(
        **terms_of(problem, nodes.leaders), computing=nodes.computing, again=nodes.again, forbidden=~nodes.allowed,
        fixed=nodes.fixed, kept=nodes.kept, source=nodes.source,
        gradient=nodes.gradient, directions=nodes.tasks > 0, incident_start=incident_start, incident=incident,
        producer=items.producer, consumer_start=items.consumer_start, consumer=items.consumer,
        entering_start=items.entering_start, entering=items.entering, ticks=items.ticks, payload=items.payload,
        apart_start=apart_start, apart=apart, size=size,
        least=np.where(worked, least, 0).astype(np.int64), room=unused @ rate,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """A division of the nodes into stages: the period, the device of each task, and the stages."""

    period: int
    device: Int
    stages: Stages


def divided(
    problem: Problem, nodes: Nodes, costs: Costs, sets: Sets, below: int, stopped: Callable[[], bool] = lambda: False
) -> Division | None:
    """Return a division into stages with the least period, by the costs, if that is less than `below`; else None.

    Raises a StoppedError if `stopped` became true.
    """
    if stopped():  # which the engine asks only after some milliseconds
        raise engine.StoppedError
    found = engine.divide_sets(sets, costs, below, engine.Stop(stopped))
    if found is None:
        return None
    least, chosen = found
    at, stages = len(sets.bits) - 1, []
    for begin, label, r, redone in chosen.tolist():
        added = (sets.bits[at] & ~sets.bits[begin]).astype("<u8").view(np.uint8)
        stages.append((np.flatnonzero(np.unpackbits(added, count=nodes.count, bitorder="little")), label, r, redone))
        at = begin
    return division_into(problem, nodes, least, stages)


def division_into(problem: Problem, nodes: Nodes, period: int, parts: Sequence[tuple[Int, int, int, bool]]) -> Division:
    """Return the division into parts: the nodes of each, its class, the devices of its team, whether it recomputes."""
    free = [list(members) for members in nodes.devices]
    m, count = problem.n_devices, len(parts)
    home, number = np.zeros((2, nodes.count), dtype=np.int64)
    leader, again = np.arange(m), np.zeros(m, dtype=np.int64)
    for stage, (inside, label, r, redone) in enumerate(parts):
        team, free[label] = free[label][:r], free[label][r:]
        home[inside], number[inside] = team[0], stage
        leader[team], again[team[0]] = team[0], redone
    ahead = number[nodes.node]
    behind = 2 * count - 1 - ahead if nodes.opposite else count + ahead
    stages = Stages(np.where(backward(problem), behind, ahead), leader, again, np.zeros(m, dtype=np.int64))
    return Division(period, home[nodes.node], stages)
