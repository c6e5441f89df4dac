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

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem, devices_by_class
from placeopt.model.stages import rules

from .units import Units, device_load, link_ticks

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
    rank = np.empty(k, dtype=np.int64)
    rank[order] = np.arange(k)
    first = rank[units.producer]
    if len(first) == 0:
        return np.zeros(k + 1, dtype=np.int64)
    others = rank[units.consumer]
    low = np.minimum(first, np.minimum.reduceat(others, units.consumer_start[:-1]))
    high = np.maximum(first, np.maximum.reduceat(others, units.consumer_start[:-1]))
    change = np.zeros(k + 2, dtype=np.int64)
    np.add.at(change, low + 1, units.payload + 1)
    np.add.at(change, high + 1, -units.payload - 1)
    return np.cumsum(change)[: k + 1]


def divide(units: Units, order: Int, line: Line, devices: list[list[int]], below: int, most: int) -> Division | None:
    """Return the best division of an order whose period is less than `below`, if there is one."""
    k, q = len(order), len(line.used)
    classes = len(line.device)
    cut = ends(units, order, most)
    value = np.full((len(cut), q), INFINITE, dtype=np.int64)
    origin, move = np.full((2, len(cut), q), -1, dtype=np.int64)
    rank = np.empty(k, dtype=np.int64)
    rank[order] = np.arange(k)
    _, _, teams = line.then.shape
    stages = max(min(len(units.label), k), 1)  # a stage reaches over about this part of the positions
    each = len(units.touched) + len(cut) * q * classes * teams * (2 if units.recompute else 1)
    steps = 2 * len(cut) * each / stages
    positions = Positions(order, rank, _parts(units, order), cut)
    best_division.select(steps)(units, line, positions, Table(value, origin, move), _stage(units, classes), below)
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


class Table(NamedTuple):
    """The best stages from each cut on, for each state of the devices: (b, q) arrays."""

    value: Int  # least period
    origin: Int  # the cut at which the first of these stages ends
    move: Int  # its class, team, and whether it computes outputs again: (team * classes + class) * 2 + again


FIXED, KEPT, SOURCE, GRADIENT, AHEAD, BEHIND, SENT, RECEIVED, ENTERING = range(9)
"""Totals of a stage: bytes as in `Units`, forward and backward tasks, ticks sent and received, bytes that enter."""

IS_CONSUMED, ENTERS, IS_SENT, IS_MULTICAST = 1, 2, 4, 8
"""What is known of an item: a unit of the stage consumes it, it enters the stage, leaves it, is sent only once."""


class Stage(NamedTuple):
    """A stage that grows towards the begin of the order."""

    total: Int  # (9,)
    computing: Int  # (c,) ticks by class
    again: Int  # (c,) ticks of outputs computed again
    barred: Int  # (c,) number of units that may not run on the class
    known: Int  # (x,) what is known of each item, a sum of the constants above
    stamp: Int  # (x,) the cut at the end of the stage for which that is known


def _stage(units: Units, classes: int) -> Stage:
    known, stamp = np.full((2, len(units.producer)), -1, dtype=np.int64)
    computing, again, barred = np.zeros((3, classes), dtype=np.int64)
    return Stage(np.zeros(9, dtype=np.int64), computing, again, barred, known, stamp)


@kernel(allocates=False, inline=True)
def can_join(units: Units, rank: Int, i: int, end: int, v: int) -> bool:
    """Whether unit v at position i must be apart from no unit of positions (i, end)."""
    for e in range(units.apart_start[v], units.apart_start[v + 1]):  # noqa: SIM110 - Numba has no all()
        if i < rank[units.apart[e]] < end:
            return False
    return True


@kernel(allocates=False, inline=True)
def add_unit(units: Units, line: Line, stage: Stage, v: int) -> None:
    """Add the work and the memory of a unit to a stage."""
    for c in range(len(line.device)):
        d = line.device[c]
        stage.computing[c] += units.computing[v, d]
        stage.again[c] += units.again[v, d]
        stage.barred[c] += 0 if units.allowed[v, d] else 1
    stage.total[FIXED] += units.fixed[v]
    stage.total[KEPT] += units.kept[v]
    stage.total[SOURCE] += units.source[v]
    stage.total[GRADIENT] += units.gradient[v]
    stage.total[AHEAD] += units.tasks[v, 0]
    stage.total[BEHIND] += units.tasks[v, 1]


@kernel(allocates=False, inline=True)
def parts_beyond(units: Units, positions: Positions, i: int, end: int, x: int) -> int:
    """Return a bit for each part that consumes item x outside positions [i, end)."""
    parts = 0
    for f in range(units.consumer_start[x], units.consumer_start[x + 1]):
        at = positions.rank[units.consumer[f]]
        if at >= end or at < i:
            parts |= 1 << positions.part[at]
    return parts


@kernel(link_ticks, parts_beyond, allocates=False, inline=True)
def add_items(units: Units, positions: Positions, stage: Stage, i: int, j: int) -> None:
    """Add the transfers of the unit at position i to the stage that ends at cut j and now begins there.

    An output that several later stages consume is sent to each of them. They are not known, so the `part` of each
    position counts as its stage.
    """
    v, end, total = positions.order[i], positions.cut[j], stage.total
    for e in range(units.touched_start[v], units.touched_start[v + 1]):
        x = units.touched[e]
        ticks = link_ticks(units, units.payload[x], 0, len(units.label) - 1)
        known = stage.known[x] if stage.stamp[x] == j else 0
        if units.producer[x] == v:
            if known & IS_CONSUMED:
                total[RECEIVED] -= ticks
            if known & ENTERS:
                total[ENTERING] -= units.payload[x]
            parts = parts_beyond(units, positions, i, end, x)
            if parts:
                known |= IS_SENT
            while parts and (known & IS_MULTICAST) == 0:
                total[SENT] += ticks
                parts &= parts - 1
                known |= IS_MULTICAST if units.multicast else 0
        elif i < positions.rank[units.producer[x]] < end:
            # A consumer that comes before its producer in the order: a backward task, for example.
            if known & IS_SENT and not parts_beyond(units, positions, i, end, x):
                total[SENT] -= ticks
                known &= IS_CONSUMED | ENTERS
        else:
            if not known & IS_CONSUMED:
                total[RECEIVED] += ticks
                known |= IS_CONSUMED
            if not known & ENTERS:
                for f in range(units.consumer_start[x], units.consumer_start[x + 1]):
                    if units.consumer[f] == v:
                        if units.entering[f] != 0:
                            total[ENTERING] += units.payload[x]
                            known |= ENTERS
                        break
        stage.known[x], stage.stamp[x] = known, j


@kernel(device_load, allocates=False, inline=True)
def close_stage(units: Units, line: Line, table: Table, stage: Stage, at: int, j: int, limit: int) -> int:
    """Update the table with the stage between cuts `at` and j on each team; return the new limit of the period.

    The limit is negative if no class can run the stage, nor any longer one.
    """
    value, total = table.value, stage.total
    fixed, kept, source, gradient = total[FIXED], total[KEPT], total[SOURCE], total[GRADIENT]
    sent, received, entering = total[SENT], total[RECEIVED], total[ENTERING]
    kinds = int(total[AHEAD] > 0) + int(total[BEHIND] > 0)
    classes, teams = len(line.device), line.then.shape[2]
    hopeful = False
    for c in range(classes):
        d = line.device[c]
        if stage.barred[c] or fixed > units.capacity[d] or -(-stage.computing[c] // teams) >= limit:
            continue
        hopeful = True
        busy = stage.computing[c] + kinds * units.launch[d]
        for r in range(1, teams + 1):
            for redone in range(2 if units.recompute else 1):
                load = busy + (stage.again[c] if redone else 0)
                load = -(-device_load(units, d, r, load, sent, received, gradient) // r)
                if load >= limit:
                    continue
                # Bytes once, and for each run under way.
                once, each = (fixed - source, entering + source) if redone else (fixed - kept, kept)
                for q in range(len(line.used)):
                    then = line.then[q, c, r - 1]
                    worst = max(load, value[j, q])
                    if then < 0 or worst >= limit or worst >= value[at, then]:
                        continue
                    runs = units.in_flight if units.in_flight else -(-(line.used[q] + r) // r)
                    if once + runs * each <= units.capacity[d]:
                        value[at, then] = worst
                        table.origin[at, then] = j
                        table.move[at, then] = (r * classes + c) * 2 + redone
                        if at == 0:
                            limit = worst
    return limit if hopeful else -limit


@kernel(can_join, add_unit, add_items, close_stage, allocates=False)
def best_division(units: Units, line: Line, positions: Positions, table: Table, stage: Stage, below: int) -> None:
    """Fill the table with stages whose period is less than `below`, from the end of the order."""
    order, cut, value = positions.order, positions.cut, table.value
    last = len(cut) - 1
    value[last, 0] = 0
    limit = below
    for j in range(last, 0, -1):
        least = limit
        for q in range(len(line.used)):
            least = min(least, value[j, q])
        if least >= limit:
            continue
        stage.total[:] = 0
        stage.computing[:] = 0
        stage.again[:] = 0
        stage.barred[:] = 0
        at = j - 1
        for i in range(cut[j] - 1, -1, -1):
            if not can_join(units, positions.rank, i, cut[j], order[i]):
                break
            add_unit(units, line, stage, order[i])
            add_items(units, positions, stage, i, j)
            if i == cut[at]:
                found = close_stage(units, line, table, stage, at, j, limit)
                limit = abs(found)
                if found < 0 or at == 0:
                    break
                at -= 1
