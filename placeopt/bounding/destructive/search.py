"""Search the largest makespan that is refuted."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from placeopt.bounding.destructive.propagation import NEVER, WAITING, Facts, State, refute
from placeopt.bounding.quick import Bound, narrowed_classes
from placeopt.bounding.quick.classes import LARGEST_TOTAL, Classes
from placeopt.bounding.quick.paths import Windows, critical_path, windows
from placeopt.kernels import prepared
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.model.units import time_text
from placeopt.solver import Clock

TABLE = 1 << 23
"""Maximum number of transfers (edges times pairs of classes) that are tabulated; beyond, all classes count as one."""

TRAIL = 1 << 16
"""Maximum number of changes during a probe."""

LIMIT, MOST = 1 << 20, 1 << 27
"""Steps of a probe, and of propagation without probing."""

PRECISION = 4000
"""With probing, T is searched up to this part of the bound."""

WIDE = 32
"""Without probing, the first T is this part of the bound above it. Wide steps may succeed where short ones stop."""

SLICE = 64
"""Edges that are probed between two polls of `should_stop`."""


def destructive_bound(
    problem: Problem,
    least: int,
    *,
    known: int | None = None,
    seconds: float | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Bound:
    """The best bound of the makespan by refuted makespans; it improves on another bound `least` if possible.

    Parameters
    ----------
    least, known
        Ticks of a proved bound, and of a known schedule.
    seconds
        Time limit, checked between propagations.
    """
    begun = time.perf_counter()
    clock = Clock(seconds)
    classes = narrowed_classes(problem)
    found = windows(classes)
    best = critical_path(classes, found)[0]
    why = "the longest chain of tasks and unavoidable transfers; nothing longer is proved"
    if problem.n_devices > 1 and not should_stop():
        search = Search(classes, found, lambda: should_stop() or clock.over)
        proved = search.largest(max(best, least), known)
        if proved > max(best, least):
            best = proved
            why = (
                f"a makespan below {time_text(best, problem.resolution)} leaves too little time for the transfers, or "
                "for the tasks that must then share a device"
            )
    return Bound("destructive", best, why, time.perf_counter() - begun)


class Search:
    """What the refutations of all makespans share."""

    def __init__(self, classes: Classes, found: Windows, should_stop: Callable[[], bool]) -> None:
        problem = classes.problem
        self._problem, self._should_stop = problem, should_stop
        head, tail, duration, move, capacity = _tables(classes, found)
        n, k = duration.shape
        pairs = np.concatenate((problem.separation, problem.separation[:, ::-1]))
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
        self._head, self._tail, self._nothing = head, tail, np.zeros(0, dtype=np.int64)
        self.facts = Facts(
            in_start=problem.in_start,
            in_edge=problem.in_edge,
            out_start=problem.out_start,
            source=problem.edge_source,
            target=problem.edge_target,
            duration=duration,
            move=move,
            capacity=capacity,
            apart_start=np.searchsorted(pairs[:, 0], np.arange(n + 1)).astype(np.int64),
            apart=np.ascontiguousarray(pairs[:, 1]),
        )
        first = np.unique(problem.group, return_index=True)[1]
        self._cluster = first[problem.group].astype(np.int64)
        self._next = _circles(self._cluster)
        self._size = np.bincount(self._cluster, minlength=n).astype(np.int64)
        self._held = np.zeros(n, dtype=np.int64)
        np.add.at(self._held, self._cluster, classes.memory)
        self.state = State(
            start=np.empty((n, k), dtype=np.int64),
            latest=np.empty((n, k), dtype=np.int64),
            pays=np.empty(problem.n_edges, dtype=np.int64),
            cluster=np.empty(n, dtype=np.int64),
            next=np.empty(n, dtype=np.int64),
            size=np.empty(n, dtype=np.int64),
            held=np.empty(n, dtype=np.int64),
            queue=problem.order.astype(np.int64),
            queued=np.empty(n, dtype=np.int64),
            trail=np.empty((TRAIL, 3), dtype=np.int64),
            counts=np.zeros(5, dtype=np.int64),
        )

    def largest(self, proved: int, known: int | None, *, probing: Sequence[bool] = (False, True)) -> int:
        """The best proved bound, at least `proved`, and at most `known`: without probing, then with."""
        # Only an infeasible problem has no schedule below LARGEST_TOTAL; its bounds mean nothing.
        least, most = proved, LARGEST_TOTAL if known is None else known
        for probe in probing:
            high = most
            unit = 1 + proved // PRECISION if probe else 1
            step = unit if probe else 1 + proved // WIDE
            while proved + unit <= high:
                tried = min(proved + step, high) - 1
                if self.refutes(tried, probing=probe):
                    proved, step = tried + 1, 2 * step
                elif self._should_stop():
                    return proved
                elif tried < proved + unit:
                    break
                else:
                    high, step = tried, max(step // 4, unit)
            if self._should_stop():
                break
        return least if proved >= LARGEST_TOTAL else proved

    def refutes(self, makespan: int, *, probing: bool) -> bool:
        """Whether no schedule has this makespan."""
        facts, state = self.facts, self.state
        n, k = state.start.shape
        closed = self._head >= NEVER
        state.start[:] = self._head
        state.latest[:] = np.where(closed, -1, makespan - self._tail - facts.duration)
        state.pays[:] = 0
        state.cluster[:], state.next[:], state.size[:], state.held[:] = (
            self._cluster,
            self._next,
            self._size,
            self._held,
        )
        state.queue[:], state.queued[:] = self._problem.order, 1
        state.counts[:] = 0
        state.counts[WAITING] = n
        whole = 4 * (n + 2 * len(facts.source)) * k * k  # approximate steps of one propagation
        run = refute.select(whole)
        if run(prepared(run, facts), prepared(run, state), self._nothing, LIMIT, MOST) < 0:
            return True
        decided = int(probing)
        while decided:
            decided = 0
            edges = self._undecided()
            run = refute.select(2 * len(edges) * min(whole, LIMIT))
            packed = prepared(run, facts), prepared(run, state)
            for begin in range(0, len(edges), SLICE):
                if self._should_stop():
                    return False
                found = run(*packed, edges[begin : begin + SLICE], LIMIT, MOST)
                if found < 0:
                    return True
                decided += found
        return False

    def _undecided(self) -> Int:
        """Edges whose ends may run together or apart, those with the least slack for the transfer first."""
        facts, state = self.facts, self.state
        u, w = facts.source, facts.target
        end = np.where(state.start < NEVER, state.start + facts.duration, NEVER)
        arrival = np.min(end[u][:, :, None] + facts.move, axis=1)
        slack = np.where(state.start[w] < NEVER, state.latest[w] - arrival, -1).max(axis=1)
        edges = np.flatnonzero((state.pays == 0) & (state.cluster[u] != state.cluster[w]))
        return np.ascontiguousarray(edges[np.argsort(slack[edges], kind="stable")])


def _tables(classes: Classes, found: Windows) -> tuple[Int, Int, Int, Int, Int]:
    """Heads (NEVER on closed classes), tails, durations, transfers by classes, and capacities.

    With too many classes for a table of transfers, all count as one, with the least of all times: a relaxation.
    """
    problem = classes.problem
    k = classes.n_classes
    head = np.where(found.allowed, found.head, NEVER)
    if problem.n_edges * k * k <= TABLE:
        move = np.full((problem.n_edges, k, k), NEVER, dtype=np.int64)
        for a, c in zip(*np.nonzero(classes.linked), strict=True):
            move[:, a, c] = problem.transfer(problem.payload, classes.source[a, c], classes.target[a, c])
        return head, found.tail, classes.duration, move, classes.capacity
    least = np.full(problem.n_edges, NEVER, dtype=np.int64)
    for a, c in zip(*np.nonzero(classes.linked), strict=True):
        least = np.minimum(least, problem.transfer(problem.payload, classes.source[a, c], classes.target[a, c]))
    tail, duration = (np.where(found.allowed, each, NEVER).min(axis=1) for each in (found.tail, classes.duration))
    return (
        np.ascontiguousarray(head.min(axis=1)[:, None]), tail[:, None], duration[:, None], least[:, None, None],
        classes.capacity.max(keepdims=True),
    )  # fmt: skip


def _circles(cluster: Int) -> Int:
    """(n,) the next task of the same cluster, circularly."""
    order = np.argsort(cluster, kind="stable")
    after = np.empty_like(order)
    last = np.append(cluster[order][1:] != cluster[order][:-1], True)
    begin = np.flatnonzero(np.append(True, last[:-1]))
    after[order[:-1]] = order[1:]
    after[order[last]] = order[begin]
    return after
