"""A pipeline as units that heuristics place: what they cost on each device, and what moves between them.

Units are the nodes of `contracted` if devices have limited numbers of stages; else they are the colocation groups, and
their order does not matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import Problem
from placeopt.model.stages import backward, forward_in_training, rules

from .._shared.contraction import Nodes


class Units(NamedTuple):
    """k units on m devices, and x items that may move between them, as arguments of the engine."""

    computing: Int  # (k, m) ticks
    again: Int  # (k, m) ticks of forward tasks that have backward tasks
    allowed: Bool  # (k, m)
    fixed: Int  # (k,) bytes held once
    kept: Int  # (k,) bytes of outputs of forward tasks
    source: Int  # (k,) bytes of those that are kept even if outputs are computed again
    gradient: Int  # (k,) bytes
    tasks: Int  # (k, 2) forward and backward tasks
    before_start: Int  # units whose stages are not later, as CSR; where stages are free, units that begin earlier
    before: Int
    after_start: Int
    after: Int
    apart_start: Int  # units on other devices
    apart: Int
    touched_start: Int  # items that a unit produces or consumes
    touched: Int
    producer: Int  # (x,)
    consumer_start: Int  # units that consume an item
    consumer: Int
    entering: Int  # whether they do so with a forward task of training, 0 or 1
    payload: Int  # (x,) bytes
    latency: Int  # (m, m)
    num: Int  # (m, m)
    den: Int  # (m, m)
    capacity: Int  # (m,) bytes
    mode: Int  # (m,) overlap * 2 + full duplex
    free: Bool  # (m,), whether transfers take no time of the device
    launch: Int  # (m,) ticks
    segments: Int  # (m,) most stages
    label: Int  # (m,) classes of devices
    ring_latency: Int  # (m,) links between the devices of the class of each device
    ring_num: Int
    ring_den: Int
    replicas: int
    multicast: bool
    in_flight: int  # runs whose outputs are kept; 0 for 1f1b
    recompute: bool
    ordered: bool  # whether stages are limited


def finest_units(problem: Problem, nodes: Nodes | None) -> Units:
    """Return the units of a problem: its nodes, or its colocation groups."""
    if nodes is None:
        return units_of(problem, problem.group, _first_to_last(problem), ordered=False)
    return units_of(problem, nodes.node, np.stack((nodes.before, nodes.after), axis=1), ordered=True)


def units_of(problem: Problem, unit: Int, order: Int, *, ordered: bool) -> Units:
    """Return the units of tasks.

    Parameters
    ----------
    unit
        (n,) unit of each task.
    order
        (p, 2) pairs of units; the first comes before the second.
    """
    pipeline, m = rules(problem), problem.n_devices
    k = int(unit.max(initial=-1)) + 1
    behind, trained = backward(problem), forward_in_training(problem)
    computing, again = np.zeros((2, k, m), dtype=np.int64)
    np.add.at(computing, unit, problem.duration)
    np.add.at(again, unit, problem.duration * trained[:, None])
    allowed = np.ones((k, m), dtype=np.bool_)
    np.logical_and.at(allowed, unit, problem.feasible)
    pairs = unit[problem.separation].reshape(-1, 2)
    allowed[pairs[pairs[:, 0] == pairs[:, 1], 0]] = False
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    apart_start, apart = _csr(k, np.concatenate((pairs, pairs[:, ::-1])))
    stored = ~behind & (~trained | (np.diff(problem.in_start) == 0))

    def total(amount: Int) -> Int:
        found = np.zeros(k, dtype=np.int64)
        np.add.at(found, unit, amount)
        return found

    before_start, before = _csr(k, order[:, ::-1])
    after_start, after = _csr(k, order)
    source, target = unit[problem.edge_source], unit[problem.edge_target]
    between = np.flatnonzero(source != target)
    key = np.where(problem.shared, problem.edge_source, problem.n_tasks + np.arange(problem.n_edges))[between]
    _, first, item = np.unique(key, return_index=True, return_inverse=True)
    x = len(first)
    consumers, place = np.unique(np.stack((item, target[between]), axis=1), axis=0, return_inverse=True)
    entering = np.zeros(len(consumers), dtype=np.int64)
    entering[place.reshape(-1)[trained[problem.edge_target[between]]]] = 1
    producer = source[between[first]]
    touching = np.concatenate((np.stack((producer, np.arange(x)), axis=1), consumers[:, ::-1]))
    touched_start, touched = _csr(k, touching)
    backwards = behind.astype(np.int64)
    ring = np.zeros((3, m), dtype=np.int64)
    ring[2] = 1
    for d in range(m):
        others = np.flatnonzero((problem.device_class == problem.device_class[d]) & (np.arange(m) != d))
        if len(others):
            o = others[0]
            ring[:, d] = problem.latency[d, o], problem.byte_ticks_num[d, o], problem.byte_ticks_den[d, o]
    return Units(
        computing=computing, again=again, allowed=allowed, fixed=total(problem.memory),
        kept=total(problem.output * ~behind), source=total(problem.output * stored), gradient=total(pipeline.gradient),
        tasks=np.stack((total(1 - backwards), total(backwards)), axis=1),
        before_start=before_start, before=before, after_start=after_start, after=after,
        apart_start=apart_start, apart=apart, touched_start=touched_start, touched=touched, producer=producer,
        consumer_start=np.searchsorted(consumers[:, 0], np.arange(x + 1)).astype(np.int64),
        consumer=np.ascontiguousarray(consumers[:, 1]), entering=entering, payload=problem.payload[between[first]],
        latency=problem.latency, num=problem.byte_ticks_num, den=problem.byte_ticks_den, capacity=problem.capacity,
        mode=2 * pipeline.overlap + pipeline.full_duplex.astype(np.int64), free=pipeline.free_transfers,
        launch=pipeline.launch, segments=pipeline.segments, label=problem.device_class,
        ring_latency=ring[0].copy(), ring_num=ring[1].copy(), ring_den=ring[2].copy(),
        replicas=pipeline.replicas, multicast=pipeline.multicast,
        in_flight=pipeline.runs_kept,
        recompute=pipeline.recompute, ordered=ordered,
    )  # fmt: skip


def _first_to_last(problem: Problem) -> Int:
    """(p, 2) pairs of groups that depend on each other, from that whose first task comes first to the other.

    Groups may depend on each other in circles; these pairs do not.
    """
    rank = np.empty(problem.n_tasks, dtype=np.int64)
    rank[problem.order] = np.arange(problem.n_tasks)
    first = np.full(problem.n_groups, problem.n_tasks)
    np.minimum.at(first, problem.group, rank)
    a, b = problem.group[problem.edge_source], problem.group[problem.edge_target]
    turned = first[a] > first[b]
    pairs: Int = np.stack((np.where(turned, b, a), np.where(turned, a, b)), axis=1)[a != b]
    return pairs


def _csr(size: int, pairs: Int) -> tuple[Int, Int]:
    """Return distinct pairs by their first number: start (size + 1,) and the second numbers."""
    distinct = np.unique(pairs, axis=0)
    start = np.searchsorted(distinct[:, 0], np.arange(size + 1)).astype(np.int64)
    return start, np.ascontiguousarray(distinct[:, 1])
