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

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from placeopt.kernels import WaitingStoppedError, impatient, kernel
from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import Problem
from placeopt.model.schedule import Stages
from placeopt.model.stages import backward, rules

from .contraction import Nodes

Words = NDArray[np.uint64]
TARNAWSKI = """@inproceedings{tarnawski2020efficient,
  author = {Tarnawski, Jakub and Phanishayee, Amar and Devanur, Nikhil R. and Mahajan, Divya and
            Nina Paravecino, Fanny},
  title = {Efficient Algorithms for Device Placement of {DNN} Graph Operators},
  booktitle = {Advances in Neural Information Processing Systems},
  volume = {33},
  year = {2020}
}"""

INFINITE = 2**62


class Sets(NamedTuple):
    """Sets of last nodes by size: (s, w) bits of their nodes; as CSR each node that extends them, and the result."""

    bits: Words
    start: Int
    node: Int
    result: Int


class Costs(NamedTuple):
    """What stages cost, as arguments of a kernel; k nodes, c classes, q numbers of used devices by class."""

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
    used: Int  # (q, c)
    stride: Int  # (c,)
    least: Int  # (k,) least computing ticks of a node on any class
    room: NDArray[np.float64]  # (q,) how much of these the unused devices compute in a tick, at most
    replicas: int
    in_flight: int  # runs kept; 0 for 1f1b
    recompute: bool


class Classes(Protocol):
    """What the load of a stage depends on: the costs of classes of devices, by class."""

    @property
    def mode(self) -> Int: ...
    @property
    def free(self) -> Int | Bool: ...
    @property
    def ring_latency(self) -> Int: ...
    @property
    def ring_num(self) -> Int: ...
    @property
    def ring_den(self) -> Int: ...


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
    pipeline, items, k = rules(problem), nodes.items, nodes.count
    leaders = np.array([members[0] for members in nodes.devices])
    size = np.array([len(members) for members in nodes.devices], dtype=np.int64)
    touched = [set() for _ in range(k)]  # type: list[set[int]]
    for x, p in enumerate(items.producer.tolist()):
        touched[p].add(x)
        for v in items.consumer[items.consumer_start[x] : items.consumer_start[x + 1]].tolist():
            touched[v].add(x)
    incident_start, incident = _csr(touched)
    rivals: list[set[int]] = [set() for _ in range(k)]
    for i, j in nodes.node[problem.separation].tolist():
        if i != j:
            rivals[i].add(j)
            rivals[j].add(i)
    apart_start, apart = _csr(rivals)
    ring = nodes.rings(problem)
    stride = np.concatenate(([1], np.cumprod(size[:-1] + 1))).astype(np.int64)
    states = np.arange(int(np.prod(size + 1)))
    used = states[:, None] // stride % (size + 1)
    kept = {"none": 1, "inference": 2, "1f1b": 0}.get(pipeline.in_flight, pipeline.microbatches)
    ticks = np.where(nodes.forbidden, np.inf, nodes.computing)
    least = ticks.min(axis=1, initial=np.inf)
    worked = (least > 0) & (least < np.inf)
    rate = (least[worked, None] / ticks[worked]).max(axis=0, initial=0.0) * (1 + 1e-9)
    return Costs(
        computing=nodes.computing, again=nodes.again, forbidden=nodes.forbidden,
        fixed=nodes.fixed, kept=nodes.kept, source=nodes.source,
        gradient=nodes.gradient, directions=nodes.directions, incident_start=incident_start, incident=incident,
        producer=items.producer, consumer_start=items.consumer_start, consumer=items.consumer,
        entering_start=items.entering_start, entering=items.entering, ticks=items.ticks, payload=items.payload,
        apart_start=apart_start, apart=apart, capacity=problem.capacity[leaders], size=size,
        mode=2 * pipeline.overlap[leaders] + pipeline.full_duplex[leaders], free=pipeline.free_transfers[leaders],
        launch=pipeline.launch[leaders], ring_latency=ring[0].copy(), ring_num=ring[1].copy(), ring_den=ring[2].copy(),
        used=used.astype(np.int64), stride=stride, replicas=pipeline.replicas, in_flight=kept,
        recompute=pipeline.recompute, least=np.where(worked, least, 0).astype(np.int64), room=(size - used) @ rate,
    )  # fmt: skip


def _csr(rows: list[set[int]]) -> tuple[Int, Int]:
    start = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
    return start, np.array([each for row in rows for each in sorted(row)], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """A division of the nodes into stages: the period, the device of each task, and the stages."""

    period: int
    device: Int
    stages: Stages


class StoppedError(Exception):
    """The search was stopped."""


CHUNK = 0.05
"""Seconds between two checks whether to stop."""


def divided(
    problem: Problem, nodes: Nodes, costs: Costs, sets: Sets, below: int, stopped: Callable[[], bool] = lambda: False
) -> Division | None:
    """Return a division into stages with the least period, by the costs, if that is less than `below`; else None.

    Raises
    ------
    StoppedError
        If `stopped` became true.
    """
    s, q, c = len(sets.bits), len(costs.used), len(costs.size)
    totals = np.zeros((s, 3 * c + 7), dtype=np.int64)
    value = np.full((s, q), INFINITE, dtype=np.int64)
    before = np.full((s, q), -1, dtype=np.int64)
    move = np.full((s, q), -1, dtype=np.int64)
    work = np.full((5, s), -1, dtype=np.int64)
    live = np.zeros(q, dtype=np.int64)
    add_up.select(len(sets.node) * (3 * c + 7))(sets, costs, totals)
    value[0, 0] = 0
    step = search.select(s * max(s // 8, 1) * (10 + q * c))
    limit, at, size = below, 0, 1
    with impatient(stopped):
        while at < s:
            if stopped():
                raise StoppedError
            begin = time.monotonic()
            end = min(at + size, s)
            try:
                limit = step(sets, costs, limit, at, end, totals, value, before, move, work, live)
            except WaitingStoppedError:
                raise StoppedError from None
            at, size = end, size * 2 if time.monotonic() - begin < CHUNK else max(size // 2, 1)
    last = int(value[-1].argmin())
    if value[-1, last] >= below:
        return None
    free = [list(members) for members in nodes.devices]
    m = problem.n_devices
    home = np.zeros(nodes.count, dtype=np.int64)
    leader, again, number = np.arange(m), np.zeros(m, dtype=np.int64), np.zeros(nodes.count, dtype=np.int64)
    at, state, stage = s - 1, last, 0
    members = [_members(row) for row in sets.bits]
    while at > 0:
        code, origin = int(move[at, state]), int(before[at, state])
        label, r, redone = code // 2 % c, code // (2 * c), code % 2
        team, free[label] = free[label][:r], free[label][r:]
        fresh = sorted(members[at] - members[origin])
        home[fresh], number[fresh] = team[0], stage
        leader[team], again[team[0]] = team[0], redone
        state -= r * int(costs.stride[label])
        at, stage = origin, stage + 1
    device = home[nodes.node]
    ahead = number[nodes.node]
    behind = 2 * stage - 1 - ahead if nodes.opposite else stage + ahead
    stages = Stages(np.where(backward(problem), behind, ahead), leader, again, np.zeros(m, dtype=np.int64))
    return Division(int(value[-1, last]), device, stages)


def _members(row: Words) -> set[int]:
    found = set()
    for place, word in enumerate(row.tolist()):
        while word:
            low = word & -word
            found.add(64 * place + low.bit_length() - 1)
            word ^= low
    return found


@kernel(allocates=False)
def holds_node(bits: Words, inner: int, outer: int, v: int) -> bool:
    """Whether a node is in set `inner` and not in set `outer`."""
    word, bit = v >> 6, np.uint64(v & 63)
    return bool(((bits[inner, word] & ~bits[outer, word]) >> bit) & np.uint64(1))


@kernel(holds_node, allocates=False)
def count_item(costs: Costs, bits: Words, inner: int, outer: int, x: int, sign: int, totals: Int, at: int) -> None:
    """Add an item to what the stage inner - outer sends, receives and stores, or subtract it (sign -1)."""
    if holds_node(bits, inner, outer, costs.producer[x]):
        for k in range(costs.consumer_start[x], costs.consumer_start[x + 1]):
            if not holds_node(bits, inner, outer, costs.consumer[k]):
                totals[0, at] += sign * costs.ticks[x]
                return
        return
    for k in range(costs.consumer_start[x], costs.consumer_start[x + 1]):
        if holds_node(bits, inner, outer, costs.consumer[k]):
            totals[1, at] += sign * costs.ticks[x]
            break
    for k in range(costs.entering_start[x], costs.entering_start[x + 1]):
        if holds_node(bits, inner, outer, costs.entering[k]):
            totals[2, at] += sign * costs.payload[x]
            break


@kernel(allocates=False)
def ring(costs: Classes, c: int, r: int, gradient: int) -> int:
    """Ticks in which a team synchronises gradients."""
    if r < 2 or gradient == 0 or costs.free[c]:
        return 0
    moved = 2 * gradient - 2 * gradient // r  # 2 (r - 1) / r, rounded up
    den = costs.ring_den[c]
    whole = moved // den
    rest = -((moved - whole * den) * costs.ring_num[c])
    ticks: int = costs.ring_latency[c] + whole * costs.ring_num[c] - rest // den
    return ticks


@kernel(ring, allocates=False)
def stage_load(costs: Classes, c: int, r: int, busy: int, sent: int, received: int, gradient: int) -> int:
    """The least period that a stage allows."""
    if costs.free[c]:
        sent = received = 0
    moving = max(sent, received) if costs.mode[c] & 1 else sent + received
    moving += ring(costs, c, r, gradient)
    total = max(busy, moving) if costs.mode[c] & 2 else busy + moving
    return -(-total // r)


@kernel(allocates=False)
def add_up(sets: Sets, costs: Costs, totals: Int) -> None:
    """Fill `totals` (s, 3 c + 7) with sums over the nodes of each set."""
    c_count = len(costs.size)
    base = 3 * c_count
    for at in range(len(sets.bits)):
        for e in range(sets.start[at], sets.start[at + 1]):
            v, there = sets.node[e], sets.result[e]
            for c in range(c_count):
                totals[there, c] = totals[at, c] + costs.computing[v, c]
                totals[there, c_count + c] = totals[at, c_count + c] + costs.again[v, c]
                totals[there, 2 * c_count + c] = totals[at, 2 * c_count + c] + costs.forbidden[v, c]
            totals[there, base] = totals[at, base] + costs.fixed[v]
            totals[there, base + 1] = totals[at, base + 1] + costs.kept[v]
            totals[there, base + 2] = totals[at, base + 2] + costs.source[v]
            totals[there, base + 3] = totals[at, base + 3] + costs.gradient[v]
            totals[there, base + 4] = totals[at, base + 4] + costs.directions[v, 0]
            totals[there, base + 5] = totals[at, base + 5] + costs.directions[v, 1]
            totals[there, base + 6] = totals[at, base + 6] + costs.least[v]


@kernel(holds_node, count_item, stage_load, ring, allocates=False)
def search(
    sets: Sets, costs: Costs, limit: int, first: int, last: int, totals: Int, value: Int, before: Int, move: Int,
    work: Int, live: Int,
) -> int:  # fmt: skip
    """Fill `value` (s, q) with the least period of the stages of each set on each number of devices by class.

    It continues from the sets `first` to `last - 1`, and returns the limit: the period to improve on. `work` (5, s)
    holds what the stage up to a set sends, receives and stores, a mark, and a queue; `live` (q,) states of a set.
    """
    s, c_count, q_count = len(sets.bits), len(costs.size), len(costs.used)
    base = 3 * c_count
    for origin in range(first, last):
        count = 0
        left = totals[s - 1, base + 6] - totals[origin, base + 6]
        for q in range(q_count):
            useful = value[origin, q] < limit and left <= costs.room[q] * (limit - 1) + 1
            # Fewer devices at no larger period are better. They come first: more devices have a larger number.
            for k in range(count if useful else 0):
                fewer = value[origin, live[k]] <= value[origin, q]
                for c in range(c_count):
                    fewer = fewer and costs.used[live[k], c] <= costs.used[q, c]
                useful = useful and not fewer
            if useful:
                live[count] = q
                count += 1
        if count == 0:
            continue
        work[0, origin] = work[1, origin] = work[2, origin] = 0
        work[3, origin] = origin
        work[4, 0] = origin
        head, tail = 0, 1
        while head < tail:
            at = work[4, head]
            head += 1
            extend = at == origin
            if at != origin:
                fixed = totals[at, base] - totals[origin, base]
                kept = totals[at, base + 1] - totals[origin, base + 1]
                source = totals[at, base + 2] - totals[origin, base + 2]
                gradient = totals[at, base + 3] - totals[origin, base + 3]
                kinds = int(totals[at, base + 4] > totals[origin, base + 4])
                kinds += int(totals[at, base + 5] > totals[origin, base + 5])
                left = totals[s - 1, base + 6] - totals[at, base + 6]
                for c in range(c_count):
                    computing = totals[at, c] - totals[origin, c]
                    forbidden = totals[at, 2 * c_count + c] > totals[origin, 2 * c_count + c]
                    most = min(costs.replicas, costs.size[c])
                    # What a stage computes, and what it sends to later stages, only grows with the stage.
                    if forbidden or fixed > costs.capacity[c]:
                        continue
                    if stage_load(costs, c, most, computing, work[0, at], 0, 0) >= limit:
                        continue
                    extend = True
                    for r in range(1, most + 1):
                        for redone in range(2 if costs.recompute else 1):
                            busy = computing + kinds * costs.launch[c]
                            if redone:
                                busy += totals[at, c_count + c] - totals[origin, c_count + c]
                            load = stage_load(costs, c, r, busy, work[0, at], work[1, at], gradient)
                            if load >= limit:
                                continue
                            for k in range(count):
                                q = live[k]
                                if costs.used[q, c] + r > costs.size[c]:
                                    continue
                                runs = costs.in_flight
                                if runs == 0:
                                    later = r
                                    for other in range(c_count):
                                        later += costs.used[q, other]
                                    runs = -(-later // r)
                                need = fixed + (runs - 1) * kept
                                if redone:
                                    need = fixed + runs * work[2, at] + (runs - 1) * source
                                state = q + r * costs.stride[c]
                                worst = max(load, value[origin, q])
                                if need > costs.capacity[c] or worst >= min(limit, value[at, state]):
                                    continue
                                if left > costs.room[state] * (limit - 1) + 1:
                                    continue
                                value[at, state] = worst
                                before[at, state] = origin
                                move[at, state] = (r * c_count + c) * 2 + redone
                                if at == s - 1:
                                    limit = worst
            if extend:
                for e in range(sets.start[at], sets.start[at + 1]):
                    v, there = sets.node[e], sets.result[e]
                    if work[3, there] == origin:
                        continue
                    clash = False
                    for k in range(costs.apart_start[v], costs.apart_start[v + 1]):
                        clash = clash or holds_node(sets.bits, at, origin, costs.apart[k])
                    if clash:
                        continue
                    for k in range(3):
                        work[k, there] = work[k, at]
                    for k in range(costs.incident_start[v], costs.incident_start[v + 1]):
                        x = costs.incident[k]
                        count_item(costs, sets.bits, at, origin, x, -1, work, there)
                        count_item(costs, sets.bits, there, origin, x, 1, work, there)
                    work[3, there] = origin
                    work[4, tail] = there
                    tail += 1
    return limit
