"""A pipeline as units that heuristics place: what they cost on each device, and what moves between them.

Units are the nodes of `contracted` if devices have limited numbers of stages; else they are the colocation groups, and
their order does not matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.model.arrays import Bool, Int, by_index, csr, inverse
from placeopt.model.problem import Problem
from placeopt.model.stages import rules

from .._shared.amounts import amounts_of, moved, separated, terms_of, touching
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
    pipeline, devices = rules(problem), np.arange(problem.n_devices)
    amounts = amounts_of(problem, unit, devices)
    k = len(amounts["fixed"])
    before_start, before = csr(k, order[:, ::-1])
    after_start, after = csr(k, order)
    apart_start, apart = separated(problem, unit, k)
    edge, consumers, entering = moved(problem, unit)
    producer = unit[problem.edge_source[edge]]
    consumer_start, consumer = csr(len(edge), consumers)
    touched_start, touched = touching(k, producer, consumers)
    return Units(
        **amounts, **terms_of(problem, devices),
        before_start=before_start, before=before, after_start=after_start, after=after,
        apart_start=apart_start, apart=apart, touched_start=touched_start, touched=touched, producer=producer,
        consumer_start=consumer_start, consumer=consumer, entering=entering.astype(np.int64),
        payload=problem.payload[edge], latency=problem.latency, num=problem.byte_ticks_num, den=problem.byte_ticks_den,
        segments=pipeline.segments, label=problem.device_class, multicast=pipeline.multicast, ordered=ordered,
    )  # fmt: skip


def _first_to_last(problem: Problem) -> Int:
    """(p, 2) pairs of groups that depend on each other, from that whose first task comes first to the other.

    Groups may depend on each other in circles; these pairs do not.
    """
    rank = inverse(problem.order)
    first = by_index(np.minimum, problem.group, rank, problem.n_groups, problem.n_tasks)
    a, b = problem.group[problem.edge_source], problem.group[problem.edge_target]
    turned = first[a] > first[b]
    pairs: Int = np.stack((np.where(turned, b, a), np.where(turned, a, b)), axis=1)[a != b]
    return pairs
