"""The search for a plan where nodes pass tokens at given rates, and the bound of its rate."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int
from placeopt.serving.blocks import BlockPlanner
from placeopt.serving.bounds import (
    COARSE,
    FINE,
    PatternBound,
    find_groups,
    kind_groups,
    layer_classes,
    of_sites,
    rate_without_crossing,
)
from placeopt.serving.exact import is_small, solve_exactly
from placeopt.serving.flow import best_flow
from placeopt.serving.improving import CoverageSearch
from placeopt.serving.problem import Serving
from placeopt.serving.result import ServingResult
from placeopt.serving.search import Search, SearchOptions
from placeopt.serving.stages import StagePlanner

COPIED = 30
"""Of more than twice as many nodes in one site, about as many are planned, and the plan is repeated."""

SHARES = (0.8, 0.6, 0.4, 0.2, 0.1)
"""Shares of the bound at which first plans are tried."""

TRIES = ((0.97, 1.15), (0.97, 1.25), (0.95, 1.3), (0.95, 1.45))
"""Shares of the bound for which stages are arranged, and how many times more than is sure for links nodes pass."""

STEPS = 600
"""Steps of a search of stages for each node."""

FACTORS = (1.02, 1.01, 1.005)
"""Factors of the rate of stages for which better ones are searched."""

PRECISION = 5e-5
"""Relative width of the interval of rates at which a search ends."""


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Sites that serve together, the rate of their stages, and the layers of their nodes."""

    members: tuple[int, ...]
    rate: int
    begin: Int
    end: Int


def first_plans(problem: Serving, bound: int, seed: int) -> Iterator[tuple[Int, Int]]:
    """Intervals for large and small rates in milliseconds: each node goes to where coverage lacks most, twice."""
    nodes, none = np.arange(problem.n_nodes), np.zeros(problem.n_nodes, dtype=np.int64)
    search = CoverageSearch(problem, nodes, seed)
    for share in SHARES:
        yield search.search(none, none, max(int(share * bound), 1), 2 * len(nodes), warm=0)[:2]


class RateSearch(Search):
    """Solves a problem without requests."""

    def __init__(self, problem: Serving, options: SearchOptions, start: tuple[Int, Int] | None = None) -> None:
        super().__init__(problem, options)
        self.groups, self.classes = find_groups(self.problem, self.sites), layer_classes(self.problem)
        self.patterns = self._patterns(range(self.sites.number))
        self.bound = self.patterns.area()
        self._seed = options.seed  # of the next search of stages
        if start is not None:
            self._take(*start)

    def run(self) -> ServingResult:
        self._first_plans()
        with self._within(self.options.limit / 4):
            found = self._patterns(None).bound(PRECISION)
        if found < self.bound:
            self.bound, self.source = found, "patterns"
        if self.sites.number == 1 and self.problem.n_nodes > 2 * COPIED:
            self._plan_copies()
        self._plan_parts()
        if is_small(self.problem) and not self._done():
            self._solve_exactly()
        self._improve()
        before = 0
        while self.sites.number > 1 and self.rate > before and not self._done():
            before = self.rate
            self._part(tuple(range(self.sites.number)), before, self._left())
        return self._result()

    def _take(self, begin: Int, end: Int) -> None:
        self._keep(best_flow(self.problem, begin, end))

    def _first_plans(self) -> None:
        for begin, end in first_plans(self.problem, self.bound, self.options.seed):
            self._take(begin, end)
            if self._stopped():
                return

    def _plan_copies(self) -> None:
        """Solve for a part of the nodes of each kind, and repeat its plan; the nodes that are left serve together."""
        copies = self.problem.n_nodes // COPIED
        counts = self.problem.counts // copies
        of_kind = [np.flatnonzero(self.problem.kind == kind) for kind in range(len(counts))]
        first = np.concatenate([nodes[:count] for nodes, count in zip(of_kind, counts, strict=True)])
        options = replace(self.options, limit=self._left() / 4, enough=None)
        found = RateSearch(self.problem.part(first), options).run()
        if found.plan is None:
            return
        begin, end = np.zeros((2, self.problem.n_nodes), dtype=np.int64)
        for copy in range(copies):
            nodes = [of[copy * count : (copy + 1) * count] for of, count in zip(of_kind, counts, strict=True)]
            begin[np.concatenate(nodes)], end[np.concatenate(nodes)] = found.plan.begin, found.plan.end
        self._take(begin, end)
        rest = np.concatenate([of[copies * count :] for of, count in zip(of_kind, counts, strict=True)])
        if len(rest):
            search = CoverageSearch(self.problem, rest, self.options.seed)
            for share in SHARES:
                wanted = max(int(share * (self.bound - self.rate)), 1)
                self._take(*search.search(begin, end, wanted, 50 * len(rest), self._stopped)[:2])

    def _plan_parts(self) -> None:
        """Each site alone, all together, and then pairs of parts that gain from serving together."""
        number = self.sites.number
        parts = [self._part((site,), 0, self.options.limit / (4 * number)) for site in range(number)]
        self._take_parts(parts)
        if number > 1 and not self._done():
            large = self.problem.n_nodes > 2 * COPIED
            self._part(None, self.rate, self.options.limit * 0.1)
            if not self.problem.prefill_layers:  # tokens may change the site between prefill and decoding
                with self._within(self.options.limit / (20 if large else 6)):
                    self._bound_crossings()
            if large:
                self._arrange()
            else:
                self._take_parts([self._part(tuple(range(number)), self.rate, self.options.limit / 3)])
        tried: set[tuple[int, ...]] = set()
        while len(parts) > 2 and not self._done():
            pairs = []
            for one, other in combinations(parts, 2):
                members = tuple(sorted(one.members + other.members))
                if members not in tried:
                    bound = min(self._patterns(members, COARSE).bound(1e-2), self.bound)
                    pairs.append((bound - one.rate - other.rate, members, one, other))
            if not pairs:
                return
            gain, members, one, other = max(pairs, key=lambda pair: pair[:2])
            if gain <= self.options.gap * self.rate:
                return
            tried.add(members)
            joint = self._part(members, one.rate + other.rate, self.options.limit / 10)
            if joint.rate > one.rate + other.rate:
                parts = [part for part in parts if part not in (one, other)] + [joint]
                self._take_parts(parts)

    def _solve_exactly(self) -> None:
        """The best plan of a small problem, or at least a better bound."""
        seconds = 3 / 4 * self._left()
        intervals, bound = solve_exactly(
            self.problem, self.bound, self.plan, seconds, self.options.seed, self.options.workers, self._stopped
        )
        if intervals is not None:
            self._take(*intervals)
        if bound < self.bound:
            self.bound, self.source = bound, "cp-sat"

    def _take_parts(self, parts: list[_Part]) -> None:
        used = [part for part in parts if part.rate]
        if used:
            self._take(np.sum([part.begin for part in used], axis=0), np.sum([part.end for part in used], axis=0))

    def _patterns(self, members: Sequence[int] | None, grid: int = FINE) -> PatternBound:
        """The bound of some sites with their links, or of all nodes without links if `members` is None."""
        groups = kind_groups(self.problem) if members is None else of_sites(self.groups, members)
        return PatternBound(self.classes, groups, self.sites.fastest, self._stopped, grid)

    def _part(self, members: tuple[int, ...] | None, least: int, seconds: float) -> _Part:
        """Bisect the rate of stages, in blocks without members, from one that is easy, above `least`."""
        patterns = self._patterns(members, COARSE)
        bound = min(patterns.bound(1e-2), self.bound)
        kind = BlockPlanner if members is None else StagePlanner
        planner = kind(
            self.problem, self.sites, members or (), patterns, self.options.seed, self.options.workers, self._stopped
        )
        until = time.monotonic() + seconds
        found = _Part(members or (), 0, *np.zeros((2, self.problem.n_nodes), dtype=np.int64))
        low, high = least, bound
        wanted = max(bound * 9 // 10, low + 1)
        while high - low > PRECISION * high and not self._done() and time.monotonic() < until:
            stages = planner.stages(wanted, min(self._left(), seconds / (4 if members is None else 2)))
            if stages is not None:
                begin, end = planner.intervals(stages)
                rate = best_flow(self.problem, begin, end).rate
                found = _Part(members or (), rate, begin, end) if rate > found.rate else found
                low = max(wanted, rate)
                self._take(begin, end)
            else:
                high = wanted - 1
            wanted = (low + high + 1) // 2
        return found

    def _arrange(self) -> None:
        """Stages whose nodes pass more than is sure for their links, and then other orders and nodes of these stages,
        with which the links pass it.

        What two successive stages pass is the largest flow from the nodes of one to those of the other. A step changes
        one or two stages at random, and keeps the change by the rule of simulated annealing. For a wanted rate f, the
        cost is a sum of squares: of the share of f that each pair of successive stages lacks, and of the share that the
        flow through all of them lacks. This flow is computed only if the pairs alone do not refute the change.
        """
        patterns = self._patterns(None, COARSE)
        patterns.bound(1e-3)
        steps = STEPS * self.problem.n_nodes
        best: tuple[Int, Int, int] | None = None
        for share, slack in TRIES:
            planner = BlockPlanner(
                self.problem, self.sites, (), patterns, self.options.seed, self.options.workers, self._stopped, slack
            )
            stages = None if self._done() else planner.stages(int(share * self.bound), self.options.limit / 10)
            if stages is not None:
                wanted = int(share * self.bound)
                found = self._search_stages(*self._arranged(*planner.intervals(stages), wanted, steps), steps)
                best = found if best is None or found[2] > best[2] else best
        while best is not None and not self._done():
            steps *= 2
            best = self._search_stages(*best, steps)

    def _arranged(self, begin: Int, end: Int, wanted: int, steps: int) -> tuple[Int, Int, int]:
        """The intervals with the largest flow that searches from those of stages find, one a worker, and this flow."""

        def found(seed: int) -> tuple[Int, Int, int]:
            stop = engine.Stop(self._stopped)
            return engine.arrange_stages(self.problem, self.sites.of_node, begin, end, wanted, steps, seed, stop)

        first, workers = self._seed, self.options.workers
        self._seed += workers
        with ThreadPoolExecutor(workers) as pool:
            return max(pool.map(found, range(first, self._seed)), key=lambda each: each[2])

    def _search_stages(self, begin: Int, end: Int, rate: int, steps: int) -> tuple[Int, Int, int]:
        """Search stages for a rate that is a little larger than theirs, until that fails with each of some factors: the
        last stages, and their rate."""
        self._take(begin, end)
        failed = 0
        while failed < len(FACTORS) and not self._done():
            before, wanted = rate, min(int(rate * FACTORS[failed]) + 1, self.bound)
            begin, end, rate = self._arranged(begin, end, wanted, steps)
            self._take(begin, end)
            failed = 0 if rate > before else failed + 1
        return begin, end, rate

    def _improve(self) -> None:
        """Raise the coverage of sites that hold all layers, towards the bound, until the time is over."""
        if self.plan is None:
            return
        number = self.sites.number
        parts = [np.flatnonzero(self.sites.of_node == site) for site in range(number)]
        parts += [np.arange(self.problem.n_nodes)] if number > 1 else []
        searches = [CoverageSearch(self.problem, nodes, self.options.seed + k) for k, nodes in enumerate(parts)]
        begin, end = self.plan.begin, self.plan.end
        searches = [search for search in searches if search.coverage(begin, end).all()]
        part, effort = 0.5, 1
        while searches and not self._done():
            improved = False
            for search in searches:
                now = int(search.coverage(begin, end).min())
                wanted = now + max(int(part * (self.bound - self.rate) / len(searches)), 1)
                steps = effort * (50 * len(search.nodes) + 2_000)
                new_begin, new_end, reached = search.search(begin, end, wanted, steps, self._stopped)
                if reached:
                    before = self.rate
                    self._take(new_begin, new_end)
                    if self.rate > before:
                        begin, end, improved = new_begin, new_end, True
            if not improved:
                part *= 0.7
            if part < 0.02:
                part, effort = 0.5, 2 * effort

    def _bound_crossings(self) -> None:
        """Refute rates up to the bound by their crossings."""
        high = self.bound
        low = max(self.rate, rate_without_crossing(self.problem, self.sites, high, self._stopped))
        while high - low > PRECISION * high and not self._stopped():
            middle = (low + high + 1) // 2
            refuted = self.patterns.refuted(middle, crossings=1)
            low, high = (middle, high) if refuted is None else (low, refuted - 1)
        if high < self.bound:
            self.bound, self.source = high, "crossings"
