"""Find offsets within a time limit, and prove a bound of the height.

Parts of the problem that share no time are solved one by one. For each: first fit in several orders, then moves that
lower the height, then complete searches for a capacity, with growing limits of nodes, in several orders of ties. A
search finds offsets or proves that the capacity is too small.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.allocation.bounds import HeightBound, height_bound, live_sums
from placeopt.allocation.problem import Buffers, Sections, build_buffers, components, sections_of
from placeopt.allocation.verification import AllocationReport, verify_allocation
from placeopt.engine import Stop, first_fit, fit_buffers, lower_height
from placeopt.errors import InternalError, UsageError
from placeopt.model.arrays import Int, checked_number, checked_whole

if TYPE_CHECKING:
    from placeopt.views.plots.canvas import Picture

MOST_SEARCHED = 20_000
"""Parts with more buffers are not searched completely: conflicts are sets of buffers."""

MOST_SHUFFLED = 1_000
"""For up to this number of buffers, random orders of ties are any orders; for more, about the order of areas."""

STACK = 2**28
"""Bytes of the stack of a thread that searches; a placed buffer takes about 1 KiB."""

MOST_PAIRS = 50_000_000
"""With more pairs of buffers that share time, heights are not lowered by moves: a pair takes 8 bytes."""

FIRST_SEARCH, LAST_SEARCH = 0.15, 0.3
"""Shares of the time for searches of many buffers, before and after moves lower the height."""

FEW_MOVES = 10_000
"""Moves for up to MOST_SHUFFLED buffers, before the first search."""

FIRST_NODES = 1_000
"""Nodes of the first complete searches; the limit doubles in each round."""

RANDOM_ORDERS = 12
"""Random orders in each round, besides the sorted ones."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """Verified offsets, and a lower bound of the height.

    Attributes
    ----------
    offset
        (n,) bytes; None if none were found within the capacity.
    height
        The largest end of a buffer; None without offsets.
    bound
        No offsets have a lower height.
    bound_source
        `live`, `alignment` or `fixed` (see `placeopt.allocation.bounds`), or `search`: all offsets below were refuted.
    live
        The largest live sum in bytes.
    seconds
        Wall time.
    """

    problem: Buffers
    capacity: int | None
    offset: Int | None
    bound: int
    bound_source: str
    live: int
    seconds: float

    @property
    def height(self) -> int | None:
        """The largest end of a buffer in bytes; None without offsets."""
        if self.offset is None:
            return None
        return int((self.offset + self.problem.size).max(initial=0))

    @property
    def gap(self) -> float | None:
        """(height - bound) / height; None without offsets."""
        height = self.height
        return None if height is None else (height - self.bound) / height if height else 0.0

    @property
    def fits(self) -> bool | None:
        """Whether the buffers fit into the capacity; None if that is open, or without a capacity."""
        if self.capacity is None:
            return None
        return True if self.offset is not None else False if self.bound > self.capacity else None

    def plot(self, path: str | PathLike[str] | None = None, *, title: str = "memory") -> Picture:
        """Draw the buffers over time and offset; with a path, also write the picture, as PNG, SVG or PDF by its suffix.

        Raises
        ------
        UsageError
            If there are no offsets, the format is unknown, or the file cannot be written.
        MissingExtraError
            If matplotlib is not installed.
        """
        from placeopt.views.plots import drawn

        offset = self.offset
        if offset is None:
            raise UsageError("plot: no offsets were found")

        def draw() -> Picture:
            from placeopt.allocation.pictures import draw_memory

            return draw_memory(self.problem, offset, bound=self.bound, capacity=self.capacity, title=title)

        return drawn(draw, path)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON."""
        offsets = None if self.offset is None else dict(zip(self.problem.names, self.offset.tolist(), strict=True))
        return {
            "buffers": len(self.problem), "capacity": self.capacity, "fits": self.fits, "height": self.height,
            "bound": self.bound, "bound_source": self.bound_source, "gap": self.gap, "live": self.live,
            "seconds": self.seconds, "offsets": offsets,
        }  # fmt: skip


def allocate(
    problem: Buffers | None = None,
    *,
    lower: object = None,
    upper: object = None,
    size: object = None,
    alignment: object = None,
    fixed: Any = None,
    capacity: int | None = None,
    time_limit: float = 10.0,
    seed: int = 0,
    workers: int | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Allocation:
    """Find offsets of buffers with the least height, or within a capacity, and prove a bound.

    Parameters
    ----------
    problem
        The buffers; or give the arrays `lower`, `upper`, `size`, `alignment` and `fixed` (see `build_buffers`).
    capacity
        Bytes. Any offsets within the capacity are returned, or none.
    time_limit
        Seconds. The search ends earlier once the height is proved to be least, the buffers fit, or cannot fit.
    workers
        Threads. With one, the same seed gives the same answer unless the time limit ends the search.
    should_stop
        Called regularly; once true, the best offsets so far are returned.

    Raises
    ------
    UsageError
        If an argument is out of range.
    """
    if problem is None:
        problem = build_buffers(lower=lower, upper=upper, size=size, alignment=alignment, fixed=fixed)
    elif any(given is not None for given in (lower, upper, size, alignment, fixed)):
        raise UsageError("give either a problem or arrays")
    if not isinstance(problem, Buffers):
        raise UsageError(f"problem is a {type(problem).__name__}; expected Buffers, as build_buffers returns them")
    if capacity is not None:
        capacity = checked_whole("capacity", capacity, 0, 2**62)
    checked_number("time_limit", time_limit, positive=True)
    seed = checked_whole("seed", seed, 0)
    workers = checked_whole("workers", os.cpu_count() or 1 if workers is None else workers, 1, most=1000)
    return _Solve(problem, capacity, time_limit, seed, workers, should_stop).run()


class _Solve:
    def __init__(
        self,
        problem: Buffers,
        capacity: int | None,
        limit: float,
        seed: int,
        workers: int,
        should_stop: Callable[[], bool],
    ) -> None:
        self.problem, self.capacity, self.seed, self.workers = problem, capacity, seed, workers
        self._begun = time.monotonic()
        self._until = self._begun + limit
        self._asked = should_stop

    def stopped(self) -> bool:
        return time.monotonic() > self._until or self._asked()

    def run(self) -> Allocation:
        problem, capacity = self.problem, self.capacity
        bound = height_bound(problem)
        live = int(live_sums(problem.lower, problem.upper, problem.size)[1].max(initial=0))
        offset = np.zeros(len(problem), dtype=np.int64)
        clash = _fixed_clash(problem)
        if clash:
            raise UsageError(f"fixed: {clash}")
        parts = [_Part(self, members) for members in components(problem)]
        for part in parts:
            part.place_first()
        # The height of one part costs the others nothing. The part with the highest bound comes first, then the rest.
        parts.sort(key=lambda part: -part.bound.height)
        left = sum(part.height > (bound.height if capacity is None else capacity) for part in parts)
        for part in parts:
            if part.bound.height > bound.height:
                bound = part.bound
            allowed = bound.height if capacity is None else capacity
            if part.height > allowed and part.bound.height <= (allowed if capacity is None else capacity):
                part.improve(allowed, (self._until - time.monotonic()) / max(left, 1))
                left -= 1
                if part.bound.height > bound.height:
                    bound = part.bound
            offset[part.members] = part.offset
        height = max((part.height for part in parts), default=0)
        found: Int | None = offset
        if capacity is not None and height > capacity:
            found = None
        report = verify_allocation(problem, offset, capacity=None if found is None else capacity)
        self._check(report, bound)
        return Allocation(problem, capacity, found, bound.height, bound.source, live, time.monotonic() - self._begun)

    def _check(self, report: AllocationReport, bound: HeightBound) -> None:
        if not report.feasible or report.height < bound.height:
            raise InternalError(f"an allocation is not verified: {report.violations[:1]}, bound {bound}")


def _fixed_clash(problem: Buffers) -> str:
    """Two buffers whose given offsets overlap, as text; empty if there are none."""
    members = np.array([k for k, offset in enumerate(problem.fixed) if offset is not None], dtype=np.int64)
    given = problem.part(members)
    report = verify_allocation(given, np.array([offset or 0 for offset in given.fixed], dtype=np.int64))
    return report.violations[0][1] if report.violations else ""


class _Part:
    """Buffers that share time with each other: the best offsets and the best bound of their height, in bytes."""

    def __init__(self, solve: _Solve, members: Int) -> None:
        self.members, self._solve = members, solve
        self.problem = solve.problem.part(members)
        self.sections: Sections = sections_of(self.problem)
        self.bound = height_bound(self.problem)
        self.offset = np.zeros(len(members), dtype=np.int64)
        self.height = 2**62
        self._lock = threading.Lock()
        self._goal = 0
        self._step = 2**62  # units between the best height and the next one to search for

    def _take(self, units: Int) -> None:
        offset = units * self.sections.unit
        height = int((offset + self.problem.size).max())
        if height < self.height:
            self.offset, self.height = offset, height

    def place_first(self) -> None:
        """First fit in each sorted order, up to the first that reaches the bound."""
        for order in self._sorted_orders():
            self._take(first_fit(self.sections, order, Stop()))
            if self.height <= self.bound.height or (self.height < 2**62 and self._solve.stopped()):
                return

    def improve(self, goal: int, seconds: float) -> None:
        """Lower the height towards the goal, and raise the bound, until they meet or the time is over."""
        self._goal = goal
        until = time.monotonic() + max(seconds, 0.0)
        n = len(self.members)
        searches = self._tasks() if n <= MOST_SEARCHED else iter(())
        if n <= MOST_SHUFFLED:
            self._lower(self._solve.seed, FEW_MOVES, time.monotonic() + 0.05 * seconds)
        else:
            self._search_all(searches, until - (1 - FIRST_SEARCH) * seconds)
            seeds = itertools.count(self._solve.seed) if _pairs(self.sections) <= MOST_PAIRS else ()
            lower = (partial(self._lower, seed, 2**62) for seed in seeds)
            self._search_all(lower, until - (LAST_SEARCH * seconds if n <= MOST_SEARCHED else 0))
        self._search_all(searches, until)

    def _search_all(self, tasks: Iterator[Callable[[float], None]], until: float) -> None:
        """Run searches in all threads."""

        def work() -> None:
            while True:
                with self._lock:
                    over = self._done() or time.monotonic() > until or self._solve.stopped()
                    task = None if over else next(tasks, None)
                if task is None:
                    return
                task(until)

        before = threading.stack_size(STACK)
        try:
            with ThreadPoolExecutor(self._solve.workers) as pool:
                for running in [pool.submit(work) for _ in range(self._solve.workers)]:
                    running.result()
        finally:
            threading.stack_size(before)

    def _lower(self, seed: int, most: int, until: float) -> None:
        """Lower the height of the best offsets by moves."""
        stop = Stop(lambda: self._done() or self._solve.stopped(), max(until - time.monotonic(), 1e-3))
        unit = self.sections.unit
        units = lower_height(self.sections, self.offset // unit, self._goal // unit, seed, most, stop)
        with self._lock:
            self._take(units)

    def _done(self) -> bool:
        capacity = self._solve.capacity
        return self.height <= max(self.bound.height, self._goal) or (
            capacity is not None and self.bound.height > capacity
        )

    def _tasks(self) -> Iterator[Callable[[float], None]]:
        """Searches with growing limits: for the least height that is not refuted, and for one below the best."""
        orders = list(self._sorted_orders())
        most = max(FIRST_NODES, len(self.members) * 17 // 16)  # few more than without any failure
        area = (self.problem.upper - self.problem.lower) * self.problem.size.astype(np.float64)
        random = np.random.default_rng(self._solve.seed)
        for _ in range(48):
            for k in range(len(orders) + RANDOM_ORDERS):
                if k < len(orders):
                    order = orders[k]
                elif len(self.members) <= MOST_SHUFFLED:
                    order = random.permutation(len(self.members))
                else:
                    order = np.argsort(-area * random.uniform(0.8, 1.25, len(area)), kind="stable")
                near = most < 8 * FIRST_NODES or self.height - self.bound.height <= self.height // 100
                if k % (4 if near else 12) == 0 or self._solve.capacity is not None:
                    yield partial(self._search, order.astype(np.int64), most, True)
                if self._solve.capacity is None:
                    yield partial(self._search, order.astype(np.int64), most, False)
            most *= 2

    def _search(self, order: Int, most: int, lowest: bool, until: float) -> None:
        """Search for the least height that is not refuted, or by a step below the best: it doubles where that works."""
        unit = self.sections.unit
        how = "found"
        while how == "found" and not self._done() and time.monotonic() < until:  # what found one finds the next one
            with self._lock:
                low, high = max(-(-self.bound.height // unit), self._goal // unit), self.height // unit
                self._step = min(max(self._step, 1), max((high - low) // 2, 1))
                capacity = min(low, high - 1) if lowest else max(high - self._step, low)

            def stale(capacity: int = capacity) -> bool:
                useful = self.bound.height <= capacity * unit < self.height
                return not useful or self._solve.stopped()

            stop = Stop(stale, max(until - time.monotonic(), 1e-3))
            how, _, units = fit_buffers(self.sections, order, capacity, most, stop)
            with self._lock:
                if not lowest:
                    self._step = 2 * self._step if how == "found" else self._step // 2
                if how == "found":
                    self._take(units)
                elif how == "refuted" and (capacity + 1) * unit > self.bound.height:
                    self.bound = HeightBound((capacity + 1) * unit, "search")

    def _sorted_orders(self) -> Iterator[Int]:
        """Orders by the largest live sum, the area and the length of buffers, and by their size and start."""
        problem, sections = self.problem, self.sections
        length = (problem.upper - problem.lower).astype(np.float64)
        size = problem.size.astype(np.float64)
        area = length * size
        change = np.zeros(int(sections.last.max()) + 1)
        np.add.at(change, sections.first, size)
        np.add.at(change, sections.last, -size)
        sums = np.cumsum(change)
        total = _range_maxima(sums, sections.first, sections.last)
        span = (sections.last - sections.first).astype(np.float64)
        for keys in (
            (total, length, area), (total, area, length), (length, area, total), (area, length, total),
            (total, size, length), (span, area, total), (size, length, total),
        ):  # fmt: skip
            yield np.lexsort([-key for key in reversed(keys)]).astype(np.int64)


def _pairs(sections: Sections) -> int:
    """The number of pairs that share time."""
    first, last = np.sort(sections.first), np.sort(sections.last)
    return int(np.arange(len(first)).sum() - np.searchsorted(last, first, side="right").sum())


def _range_maxima(values: Any, first: Int, last: Int) -> Any:
    """The maximum of values[first:last] for each pair, by a table of powers of two."""
    table = [values]
    step = 1
    while 2 * step <= len(values):
        before = table[-1]
        table.append(np.maximum(before[: len(before) - step], before[step:]))
        step *= 2
    power = np.frexp((last - first).astype(np.float64))[1] - 1
    found = np.zeros(len(first))
    for k, row in enumerate(table):
        chosen = power == k
        found[chosen] = np.maximum(row[first[chosen]], row[last[chosen] - 2**k])
    return found
