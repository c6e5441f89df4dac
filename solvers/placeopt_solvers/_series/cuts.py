"""Find tasks that cut a graph into blocks, one after the other.

A task v *cuts* the graph if every other task is its ancestor or its descendant, and no edge *bypasses* it, from an
ancestor to a descendant. All that precedes v has then ended when v starts, and all that follows starts once v has
ended.

**Cuts in linear time.** Let pos be the positions of any topological order. All tasks before v are its ancestors if and
only if each of them has a consumer at a position of at most pos(v): following such consumers leads to v; conversely, an
ancestor has a consumer that is v or an ancestor of v. The same holds for descendants in the reversed graph. ∎

**Weaker cuts** split what remains too large. Tasks that are neither ancestors nor descendants of a cut (weights, masks
and outputs, which depend on one block only) and edges that bypass it are left out of the blocks: they make the
decomposition a relaxation, whose lower bound stays valid (`blocks`). The *cost* of a weaker cut estimates how much that
weakens the bound: the least durations of the tasks that are left out, and the longest transfer that bypasses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from placeopt import engine
from placeopt.model.arrays import Bool, Int, by_index, inverse
from placeopt.model.graph import path_lengths
from placeopt.model.problem import Problem
from placeopt.passes.rebuilding import least_durations

from .._runs.device_classes import class_ends

LARGE = 48
"""Tasks above which a block is split at weaker cuts."""

COSTLY = 0.1
"""Largest cost of a weaker cut, as a share of the least durations on the longest path."""

MOST = 8_000
"""Tasks of a block above which no weaker cuts are tried: their number is squared."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The tasks between two cuts, by index; `first` and `last` are the cuts, -1 before the first and after the last."""

    first: int
    inner: Int
    last: int


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """A problem cut into blocks, and what they leave out."""

    blocks: tuple[Block, ...]
    """One more than there are cuts; the last task of each is the first of the next."""
    loose: Int
    """Tasks in no block: neither ancestors nor descendants of some cut."""

    @property
    def cuts(self) -> list[int]:
        """The cuts, in the order in which they run."""
        return [block.last for block in self.blocks[:-1]]


def series_of(problem: Problem) -> Series | None:
    """Return the problem as a series of blocks; None without a cut.

    O(n + e), and O(s^2) for s <= MOST tasks between cuts if they are more than LARGE.

    Raises a StoppedError if the enclosing `engine.stopping` says so.
    """
    n = problem.n_tasks
    order = problem.order
    strict = order[_cutting(problem, order)]
    position = inverse(order)
    cuts: list[int] = []
    loose = np.zeros(n, dtype=np.bool_)
    least = least_durations(problem, problem.group_feasible())
    limit = COSTLY * int((path_lengths(order, problem.out_start, problem.edge_target, least) + least).max(initial=0))
    for low, high in pairwise([-1, *position[strict].tolist(), n]):
        between = order[low + 1 : high]
        if LARGE < len(between) <= MOST:
            found = _weaker_cuts(problem, between, least, limit)
            cuts += found.cuts
            loose[between[found.loose]] = True
        if high < n:
            cuts.append(int(order[high]))
    if not cuts:
        return None
    place = position[np.array(cuts)]
    number = np.searchsorted(place, position)  # of the block of a task that is comparable with all cuts
    inside = ~loose
    inside[cuts] = False
    tasks = np.flatnonzero(inside)
    tasks = tasks[np.argsort(number[tasks], kind="stable")]
    starts = np.searchsorted(number[tasks], np.arange(len(cuts) + 2))
    bounds = [-1, *cuts, -1]
    blocks = tuple(Block(bounds[k], tasks[starts[k] : starts[k + 1]], bounds[k + 1]) for k in range(len(cuts) + 1))
    return Series(blocks, np.flatnonzero(loose))


def _cutting(problem: Problem, order: Int) -> Bool:
    """Return whether the task at each position of a topological order cuts the graph."""
    n = len(order)
    position = inverse(order)
    source, target = position[problem.edge_source], position[problem.edge_target]
    nearest = by_index(np.minimum, source, target, n, n)  # consumer
    latest = by_index(np.maximum, target, source, n, -1)  # producer
    here = np.arange(n)
    after = np.concatenate(([0], np.maximum.accumulate(nearest)[:-1])) <= here
    before = np.concatenate((np.minimum.accumulate(latest[::-1])[::-1][1:], [n])) >= here
    # Edges that begin before a position and end after it.
    across = by_index(np.add, source + 1, 1, n + 1) - by_index(np.add, target, 1, n + 1)
    return np.asarray(after & before & (np.cumsum(across)[:n] == 0))


@dataclass(frozen=True, slots=True, eq=False)
class _Weaker:
    cuts: list[int]
    loose: Bool  # of the tasks between


def _weaker_cuts(problem: Problem, between: Int, least: Int, limit: float) -> _Weaker:
    """Return cuts that cost at most `limit` among tasks in topological order.

    All free cuts, then the cheapest ones in blocks that are large. `least` (n,) are the least durations.
    """
    s = len(between)
    place = np.full(problem.n_tasks, -1, dtype=np.int64)
    place[between] = np.arange(s)
    source, target = place[problem.edge_source], place[problem.edge_target]
    edges = np.flatnonzero((source >= 0) & (target >= 0))
    source, target = source[edges], target[edges]
    reached = _reachable(s, source, target)
    cost = _loose_ticks(reached, least[between])
    tried = np.flatnonzero(cost <= limit)
    crossing = _longest_transfers(problem, edges)
    by_source = np.argsort(-crossing, kind="stable")
    source, target, crossing = source[by_source], target[by_source], crossing[by_source]
    for v in tried.tolist():
        engine.poll()
        descends = _unpacked(reached[v], s)
        ascends = _column(reached, v)
        over = np.flatnonzero(ascends[source] & descends[target])
        cost[v] += crossing[over[0]] if len(over) else 0
    tried = tried[cost[tried] <= limit]
    accepted: list[int] = []
    loose = np.zeros(s, dtype=np.bool_)
    for v in tried[np.lexsort((tried, cost[tried]))].tolist():
        engine.poll()
        comparable = _unpacked(reached[v], s) | _column(reached, v)
        comparable[v] = True
        if loose[v] or not comparable[accepted].all():
            continue
        ends = np.sort(np.array([-1, *accepted, s]))
        at = int(np.searchsorted(ends, v))
        if cost[v] > 0 and int((~loose[ends[at - 1] + 1 : ends[at]]).sum()) <= LARGE:
            continue
        accepted.append(v)
        loose |= ~comparable
    return _Weaker(between[np.sort(np.array(accepted, dtype=np.int64))].tolist(), loose)


def _reachable(s: int, source: Int, target: Int) -> NDArray[np.uint8]:
    """Return the descendants of each of s tasks in topological order, as rows of bits."""
    reached = np.zeros((s, -(-s // 8)), dtype=np.uint8)
    consumers: list[list[int]] = [[] for _ in range(s)]
    for u, v in zip(source.tolist(), target.tolist(), strict=True):
        consumers[u].append(v)
    for u in range(s - 1, -1, -1):
        row = reached[u]
        for v in consumers[u]:
            row |= reached[v]
            row[v >> 3] |= 128 >> (v & 7)
    return reached


def _unpacked(row: NDArray[np.uint8], s: int) -> Bool:
    return np.unpackbits(row, count=s).astype(np.bool_)


def _column(reached: NDArray[np.uint8], v: int) -> Bool:
    return np.asarray((reached[:, v >> 3] & (128 >> (v & 7))) != 0)


def _loose_ticks(reached: NDArray[np.uint8], least: Int) -> Int:
    """Return the least durations of the tasks that are neither ancestors nor descendants of each task."""
    s = len(least)
    comparable = least.copy()
    for low in range(0, s, 1024):
        engine.poll()
        bits = np.unpackbits(reached[low : low + 1024], axis=1, count=s).astype(np.float64)
        comparable[low : low + 1024] += (bits @ least).astype(np.int64)
        comparable += (least[low : low + 1024] @ bits).astype(np.int64)
    return np.asarray(least.sum() - comparable)


def _longest_transfers(problem: Problem, edges: Int) -> Int:
    """Return the ticks of the longest transfer that each edge may need."""
    first, last = class_ends(problem)
    payload = problem.payload[edges]
    ticks = [problem.transfer(payload, a, b) for a in first.tolist() for b in last.tolist() if a != b]
    return np.max(ticks, axis=0) if ticks else np.zeros(len(edges), dtype=np.int64)
