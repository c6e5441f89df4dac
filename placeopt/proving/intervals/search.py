"""Combine parts in both directions until the time is up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import numpy as np

from placeopt.bounding.quick import best_bound, narrowed_classes
from placeopt.bounding.quick.classes import classes_of
from placeopt.bounding.quick.jackson import head_load_tail, priced_subsets
from placeopt.bounding.quick.paths import Windows, windows
from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.problem import Problem
from placeopt.protocol.registry import solver_names
from placeopt.proving.intervals.packing import grouped, packed_bound
from placeopt.proving.intervals.passes import FAR, SOLVER, Heads, mirror, narrow, reachability

SIZES = (16, 32, 64)
"""Maximum number of tasks of a part, in successive passes."""


def available() -> bool:
    """Whether the solver of the parts is installed."""
    return SOLVER in solver_names()


class Search:
    """One computation of the bound of the makespan. The problem has tasks and devices; the solver cp-sat is installed.

    Attributes
    ----------
    best
        The best bound so far.

    Parameters
    ----------
    known
        The makespan of a known schedule, which ends the search as soon as it is proved optimal.
    on_bound
        Called with every better bound, perhaps from another thread, one call at a time.
    should_stop
        Polled regularly.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        known: int | None = None,
        on_bound: Callable[[int], None] = lambda _: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.known, self.on_bound, self._should_stop = known, on_bound, should_stop
        self.best = 0
        self._lock = threading.Lock()
        self.classes = narrowed_classes(problem)
        found = windows(self.classes)
        self.head = np.where(found.allowed, found.head, FAR)
        self.tail = np.where(found.allowed, found.tail, FAR)
        self.duration = self.classes.duration
        narrow(self.classes, self.head, self.tail)
        mirrored = mirror(problem)
        follow = self._raised, self._over, self._worth
        self._sides = (
            Heads(problem, self.classes, self.head, self.tail, *follow),
            Heads(mirrored, classes_of(mirrored), self.tail, self.head, *follow),
        )
        self._steps = self._all_steps()

    def run(self, workers: int = 1) -> int:
        """Continue to raise heads and tails until nothing is left to do or the search is stopped.

        Returns the best bound. With two or more workers, both directions run at the same time.
        """
        if workers == 1:
            self._exhaust(self._steps)
        else:
            for size in (0, *SIZES):
                sides = [self._anchors()] if not size else [side.raise_all(size) for side in self._sides]
                with ThreadPoolExecutor(2) as pool:
                    for each in [pool.submit(copy_context().run, self._exhaust, side) for side in sides]:
                        each.result()
                self._bound_whole()
        return self.best

    def _exhaust(self, steps: Iterator[None]) -> None:
        """Run steps until they end or the search is stopped."""
        while not self._over():
            try:
                next(steps)
            except StopIteration:
                return

    def _all_steps(self) -> Iterator[None]:
        """All steps of one worker."""
        yield from self._anchors()
        for size in SIZES:
            for side in self._sides:
                yield from side.raise_all(size)
                self._bound_whole()

    def _anchors(self) -> Iterator[None]:
        """Raise the heads and tails of anchors, and then of all tasks behind and before them; yield between steps."""
        through = [self._through(v) for v in range(self._sides[0].problem.n_tasks)]
        self._prove(max(through))
        if self._sides[0].problem.n_tasks > LARGEST:
            return
        before = reachability(self._sides[0].problem)
        chosen = anchors(self._sides[0], before)
        for side, reached in zip(self._sides, (before, before.T), strict=True):
            idle = 0
            for v in chosen:
                yield
                idle = 0 if raise_anchor(side, v, np.flatnonzero(reached[v])) else idle + 1
                self._raised(v)
                if idle == IDLE:
                    break
            for v in side.problem.order.tolist():
                side.propagate(v)
                self._raised(v)
        self._bound_whole()

    def _bound_whole(self) -> None:
        """Apply quick bounds of the whole problem to the raised heads and tails."""
        if self._over():
            return
        narrow(self.classes, self.head, self.tail)
        allowed = self.head < FAR
        if not allowed.any(axis=1).all():
            return
        found = Windows(np.where(allowed, self.head, 0), np.where(allowed, self.tail, 0), allowed)
        self._prove(head_load_tail(self.classes, found, priced_subsets(self.classes))[0])
        if grouped(self.classes):
            self._prove(packed_bound(self.classes, found, self._over))

    def _raised(self, v: int) -> None:
        """Update the bound after the head or the tail of a task is raised."""
        self._prove(self._through(v))

    def _through(self, v: int) -> int:
        """The least head + duration + tail of a task, after closing the classes that only worse schedules use."""
        through = np.minimum(self.head[v] + self.duration[v] + self.tail[v], FAR)
        if self.known is not None:
            for c in np.flatnonzero((through >= self.known) & (through < FAR)).tolist():
                self._sides[0].close(v, c)
        return int(through.min())

    def _prove(self, bound: int) -> None:
        """Report a bound if it is the best; FAR means that no schedule is better than the known one."""
        with self._lock:
            bound = bound if self.known is None else min(bound, self.known)
            if self.best < bound < FAR:
                self.best = bound
                self.on_bound(bound)

    def _worth(self, v: int) -> bool:
        """Whether a delay of the task by the gap, or by any amount if no schedule is known, would raise the bound."""
        return self.known is None or self._through(v) + self.known - self.best > self.best

    def _over(self) -> bool:
        return self._should_stop() or (self.known is not None and self.best >= self.known)


LARGEST = 2_500
"""Tasks above which there are no anchors: the ancestors of all tasks take 8 n² bytes."""

COUNT = 12
"""Maximum number of anchors."""

IDLE = 3
"""Anchors without a gain after which the others are left out."""


def anchors(heads: Heads, before: Bool) -> list[int]:
    """The anchors, best first; `before` (n, n) are the ancestors of each task.

    Small parts do not contain the congestion of long pipelines, such as the layers of an LSTM before an attention.
    Anchors are the tasks with the largest load before and behind them together. The load is the work of the ancestors
    or descendants divided among the devices, their work in one colocation group, or the head or tail, whichever is
    largest.
    """
    least = np.where(heads.head < FAR, heads.classes.duration, FAR).min(axis=1)
    work = np.where(least < FAR, least, 0).astype(np.float64)
    near, far = heads.head.min(axis=1), heads.tail.min(axis=1)
    through = np.maximum(_load(heads, before, work), near) + np.maximum(_load(heads, before.T, work), far)
    chosen: list[int] = np.argsort(-through, kind="stable")[:COUNT].tolist()
    return chosen


def _load(heads: Heads, inside: Bool, work: Float) -> Float:
    """(n,) the load of the tasks `inside` (n, n) each row."""
    problem = heads.problem
    total = inside @ work / problem.n_devices
    busiest = np.zeros(len(work))
    for g in np.flatnonzero(np.bincount(problem.group) > 1).tolist():
        own = np.flatnonzero(problem.group == g)
        busiest = np.maximum(busiest, inside[:, own] @ work[own])
    return np.maximum(total, busiest)


def raise_anchor(heads: Heads, v: int, ancestors: Int) -> bool:
    """Raise the heads of a task by quick bounds of the part of all its `ancestors`, itself included, ascending.

    Returns whether the least of them is raised.
    """
    part, origin = heads.parts.before(ancestors, v, None)
    bound = int(best_bound(part).value)
    classes = narrowed_classes(part)
    if grouped(classes):
        bound = max(bound, packed_bound(classes, windows(classes), heads.should_stop))
    row = heads.head[v]
    least, open_ = int(row.min()), row < FAR
    row[open_] = np.maximum(row, origin + bound - heads.stated[v])[open_]
    return int(row.min()) > least
