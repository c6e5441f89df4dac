"""Divide an order of units into stages by dynamic programming over the places where a stage may end.

The program is that of `placeopt_solvers.pipelines._shared.ideals` for the sets of one order, with two differences that
make it fast on large graphs: stages end only at some positions of the order, those where little data crosses, and where
classes of devices are many, devices are used in a given order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int, by_index, inverse
from placeopt.model.problem import Problem, devices_by_class
from placeopt.model.stages import rules

from .units import Units

INFINITE = 2**62

STATES = 1000
"""Maximum number of numbers of used devices by class; above, devices are used in a given order."""

STEPS = 1.5e8
"""Steps of one division, which limit the positions where stages end."""


class Line(NamedTuple):
    """How stages use devices, from the last stage on: states, and the state after a team of one more stage."""

    device: Int  # (c,) a device of each class
    then: Int  # (q, c, r) the state after a team of r + 1 devices of a class, -1 if there are too few
    used: Int  # (q,) devices used


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """Stages along an order: for each, its units, the devices of its team, and whether it computes outputs again."""

    period: int
    stages: list[tuple[Int, list[int], bool]]


def lines(problem: Problem) -> Iterator[tuple[Line, list[list[int]]]]:
    """Yield ways to use the devices, each with the devices of its classes in the order of their use."""
    members = devices_by_class(problem)
    most = rules(problem).replicas
    size = np.array([len(each) for each in members])
    if np.prod(size + 1.0) <= STATES:
        stride = np.concatenate(([1], np.cumprod(size[:-1] + 1))).astype(np.int64)
        used = np.arange(int(np.prod(size + 1)))[:, None] // stride % (size + 1)
        team = min(most, int(size.max()))
        then = np.full((len(used), len(size), team), -1, dtype=np.int64)
        for r in range(1, team + 1):
            able = used + r <= size
            then[:, :, r - 1] = np.where(able, np.arange(len(used))[:, None] + r * stride, -1)
        leaders = np.array([each[0] for each in members])
        yield Line(leaders, then, used.sum(axis=1)), members
        return
    speed = problem.duration.astype(np.float64).mean(axis=0)
    label = problem.device_class
    m = problem.n_devices
    for key in (speed, -speed, problem.capacity.astype(np.float64), -problem.capacity.astype(np.float64)):
        order = np.lexsort((np.arange(m), label, key)).tolist()
        then = np.full((m + 1, m, min(most, m)), -1, dtype=np.int64)
        for q in range(m):
            for r in range(1, min(most, m - q) + 1):
                if label[order[q + r - 1]] != label[order[q]]:
                    break
                then[q, q, r - 1] = q + r
        yield Line(np.array(order), then, np.arange(m + 1)), [order[q:] for q in range(m)]


def ends(units: Units, order: Int, most: int) -> Int:
    """Return at most about `most` positions of an order where a stage may begin, both ends among them.

    The order is cut into parts of equal work and size; of each part, the position that the least data crosses is taken.
    """
    k = len(order)
    if k + 1 <= most:
        return np.arange(k + 1)
    crossing = crossed(units, order)
    work = units.computing.min(axis=1)[order].astype(np.float64)
    share = np.cumsum(work) / max(work.sum(), 1.0) + np.arange(1, k + 1) / k
    part = np.minimum((share / 2 * (most - 2)).astype(np.int64), most - 3)
    inner = np.arange(1, k)
    by_cost = np.lexsort((inner, crossing[1:k], part[: k - 1]))
    label = part[: k - 1][by_cost]
    chosen = inner[by_cost[np.flatnonzero(np.diff(label, prepend=-1))]]
    return np.concatenate(([0], np.sort(chosen), [k])).astype(np.int64)


def crossed(units: Units, order: Int) -> Int:
    """(k + 1,) bytes of items, each with one more, that cross each position of an order."""
    k = len(order)
    rank = inverse(order)
    first = rank[units.producer]
    if len(first) == 0:
        return np.zeros(k + 1, dtype=np.int64)
    others = rank[units.consumer]
    low = np.minimum(first, np.minimum.reduceat(others, units.consumer_start[:-1]))
    high = np.maximum(first, np.maximum.reduceat(others, units.consumer_start[:-1]))
    change = by_index(np.add, low + 1, units.payload + 1, k + 2)
    np.add.at(change, high + 1, -units.payload - 1)
    return np.cumsum(change)[: k + 1]


def divide(units: Units, order: Int, line: Line, devices: list[list[int]], below: int, most: int) -> Division | None:
    """Return the best division of an order whose period is less than `below`, if there is one."""
    q, classes = len(line.used), len(line.device)
    cut = ends(units, order, most)
    rank = inverse(order)
    positions = Positions(order, rank, _parts(units, order), cut)
    value, origin, move = engine.divide_order(units, line, positions, below, engine.current_stop())
    last = int(value[0].argmin())
    if value[0, last] >= below:
        return None
    found, at, state = [], 0, last
    taken: set[int] = set()
    parts = []
    while at < len(cut) - 1:
        code = int(move[at, state])
        c, r, redone = code // 2 % classes, code // (2 * classes), bool(code % 2)
        there = int(origin[at, state])
        parts.append((order[cut[at] : cut[there]], c, r, redone))
        before = [p for p in range(q) if line.then[p, c, r - 1] == state and value[there, p] <= value[at, state]]
        at, state = there, before[0]
    for units_here, c, r, redone in parts:
        team = [d for d in devices[c] if d not in taken][:r]
        taken.update(team)
        found.append((units_here, team, redone))
    return Division(int(value[0, last]), found)


def _parts(units: Units, order: Int) -> Int:
    """(k,) parts of about equal work along an order, one for each device: an estimate of the stages of later units."""
    done = np.cumsum(units.computing.min(axis=1)[order].astype(np.float64))
    parts = min(len(units.label), 60)
    return np.minimum((done / max(float(done[-1]), 1.0) * parts).astype(np.int64), parts - 1)


class Positions(NamedTuple):
    """An order of the units."""

    order: Int  # (k,)
    rank: Int  # (k,) position of each unit
    part: Int  # (k,) an estimate of the stage of each position
    cut: Int  # (b,) positions where a stage may begin or end
