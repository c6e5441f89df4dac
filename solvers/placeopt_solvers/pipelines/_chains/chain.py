"""A pipeline whose nodes form a path: sums over its first nodes, and what crosses each cut.

Cut i is before node i; cuts 0 and n are the ends. A stage [i, j) takes the nodes from cut i to cut j. Its load depends
on sums of these nodes, on what crosses both cuts, and on the links there. Links are numbered: pairs of classes with the
same number have the same links in both directions. One number suffices if all links are alike.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.model.arrays import Bool, Int, by_index, inverse
from placeopt.model.problem import Problem, transfer_ticks
from placeopt.model.stages import backward, rules

from .._shared.amounts import terms_of
from .._shared.contraction import Items, Nodes


class Chain(NamedTuple):
    """Stages of a chain as arguments of the engine: n nodes, c classes of devices, l links.

    Arrays of n + 1 entries are sums over the nodes before each cut, unless stated otherwise.
    """

    computing: Int  # (c, n + 1) ticks
    again: Int  # (c, n + 1) ticks of forward tasks that may be computed again
    nearest: Int  # (c, n + 1) first cut at which a stage of the class that ends here may begin
    fixed: Int  # (n + 1,) bytes
    kept: Int
    source: Int
    gradient: Int
    ahead: Int  # (n + 1,) nodes with forward tasks
    behind: Int  # (n + 1,) nodes with backward tasks
    down: Int  # (l, n + 1) ticks of what crosses the cut to the later nodes
    up: Int  # (l, n + 1) ticks of what crosses the cut to the earlier nodes
    entering_down: Int  # (n + 1,) bytes of it that forward tasks of training consume
    entering_up: Int
    reach: Int  # (n + 1,) all cuts after a cut and before this one are dominated
    link: Int  # (c, c) link from an earlier stage's class to a later one's
    binding: Bool  # (c,) whether the memory may limit the runs under way of a stage
    capacity: Int  # (c,) bytes
    size: Int  # (c,) devices
    mode: Int  # (c,) overlap * 2 + full duplex
    free: Bool  # (c,)
    launch: Int  # (c,) ticks
    ring_latency: Int  # (c,) link between devices of the class
    ring_num: Int
    ring_den: Int
    replicas: int
    in_flight: int  # runs kept; 0 for 1f1b
    recompute: bool


def path_of(problem: Problem, nodes: Nodes) -> Int | None:
    """Return the nodes in the order of the path that they form; None if they form another graph.

    Every item must go from a node to the next or to the previous one, and to nothing else.
    """
    k = nodes.count
    behind = backward(problem)
    if not nodes.complete or (behind[problem.edge_source] & ~behind[problem.edge_target]).any():
        return None
    after = dict(zip(nodes.before.tolist(), nodes.after.tolist(), strict=True))
    first = set(range(k)) - set(after.values())
    if len(nodes.before) != k - 1 or len(after) != k - 1 or len(first) != 1:
        return None
    order = [first.pop()]
    while order[-1] in after:
        order.append(after[order[-1]])
    if len(order) != k:
        return None
    found = np.array(order, dtype=np.int64)
    place, items = inverse(found), nodes.items
    alone = (np.diff(items.consumer_start) == 1).all()
    if not alone or (np.abs(place[items.producer] - place[items.consumer]) != 1).any():
        return None
    return found


def chain_of(problem: Problem, nodes: Nodes, order: Int) -> Chain:
    """Return the chain of nodes that form a path in this order."""
    k, m, terms = nodes.count, problem.n_devices, terms_of(problem, nodes.leaders)
    link, ways = _links(problem, nodes.devices)
    down, up = np.zeros((2, len(ways), k + 1), dtype=np.int64)
    place = inverse(order)
    items = nodes.items
    producer, consumer = place[items.producer], place[items.consumer]
    later = consumer > producer
    cut = np.maximum(producer, consumer)
    enters = np.diff(items.entering_start) > 0
    for row, (there, back) in enumerate(ways):
        np.add.at(down[row], cut[later], _ticks(items, there)[later])
        np.add.at(up[row], cut[~later], _ticks(items, back)[~later])
    sides = (later & enters, ~later & enters)
    entering_down, entering_up = (by_index(np.add, cut[side], items.payload[side], k + 1) for side in sides)
    whole = int(nodes.fixed.sum()) + (m - 1) * int(nodes.kept.sum())
    found = Chain(
        **terms, computing=_summed(nodes.computing[order].T), again=_summed(nodes.again[order].T),
        nearest=_nearest(nodes.allowed[order].T, place[nodes.node[problem.separation]]),
        fixed=_summed(nodes.fixed[order]), kept=_summed(nodes.kept[order]), source=_summed(nodes.source[order]),
        gradient=_summed(nodes.gradient[order]), ahead=_summed(nodes.ahead[order]),
        behind=_summed(nodes.behind[order]), down=down, up=up,
        entering_down=entering_down, entering_up=entering_up, reach=np.arange(1, k + 2), link=link,
        binding=(terms["capacity"] < whole) & (terms["in_flight"] == 0), size=nodes.size,
    )  # fmt: skip
    return found._replace(reach=_reach(found)) if len(ways) == 1 else found


def _summed(amounts: Int | Bool) -> Int:
    """Sums over the entries before each place of the last axis."""
    found = np.zeros((*amounts.shape[:-1], amounts.shape[-1] + 1), dtype=np.int64)
    np.cumsum(amounts, axis=-1, out=found[..., 1:])
    return found


def _links(problem: Problem, devices: list[list[int]]) -> tuple[Int, list[tuple[tuple[int, ...], tuple[int, ...]]]]:
    """Return the number of the link of each pair of classes, and the rows of each number in both directions.

    Pairs whose transfers take time of neither side, and pairs of a device with itself, have any number.
    """
    c = len(devices)
    free = rules(problem).free_transfers

    def row(a: int, b: int) -> tuple[int, ...]:
        return int(problem.latency[a, b]), int(problem.byte_ticks_num[a, b]), int(problem.byte_ticks_den[a, b])

    number: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    link = np.zeros((c, c), dtype=np.int64)
    for p in range(c):
        for q in range(c):
            a, b = devices[p][0], devices[q][-1]
            if a != b and not (free[a] and free[b]):
                link[p, q] = number.setdefault((row(a, b), row(b, a)), len(number))
    return link, list(number) or [((0, 0, 1), (0, 0, 1))]


def _ticks(items: Items, way: tuple[int, ...]) -> Int:
    return np.asarray(transfer_ticks(items.payload, *way))


def _nearest(allowed: Bool, rivals: Int) -> Int:
    """Return, for each class and cut, the first cut at which a stage that ends there may begin."""
    c, n = allowed.shape
    apart = np.zeros(n + 1, dtype=np.int64)
    for i, j in np.sort(rivals, axis=1).tolist():
        apart[j + 1] = max(apart[j + 1], i + 1)
    found = np.zeros((c, n + 1), dtype=np.int64)
    found[:, 1:] = np.where(allowed, 0, np.arange(1, n + 1))
    return np.asarray(np.maximum.accumulate(np.maximum(found, apart), axis=1))


def _reach(chain: Chain) -> Int:
    """Return, for each cut, the first later cut that it does not dominate, n + 1 if none: see `_chain_search`."""
    n = chain.nearest.shape[1] - 1
    serial = (chain.mode < 2) & (chain.free == 0)
    strict = bool(((chain.mode >= 2) & (chain.free == 0)).any())
    ticks = chain.computing[serial]
    down, up = chain.down[0], chain.up[0]
    found = np.full(n + 1, n + 1, dtype=np.int64)
    for i in range(1, n):
        worse = np.maximum(down[i] - down[i + 1 : n], 0) + np.maximum(up[i] - up[i + 1 : n], 0)
        slack = (ticks[:, i + 1 : n] - ticks[:, i, None]).min(axis=0, initial=2**62)
        escapes = worse > (0 if strict else slack)
        if chain.recompute:
            escapes |= chain.entering_up[i] > chain.entering_up[i + 1 : n]
        if escapes.any():
            found[i] = i + 1 + int(escapes.argmax())
    return found
