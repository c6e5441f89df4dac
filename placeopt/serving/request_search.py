"""The search for a plan where nodes share the requests in flight.

The time between two tokens of a request is divided into ranges. A range has a bound (`request_bounds`), whose price of
a request says which rates of nodes are worth their requests at such times; plans are those of a problem with these
rates (`rate_search`), with the largest rate that their proportions sustain. The range with the largest bound is divided
until the bound meets the plan.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from placeopt.model.arrays import Int
from placeopt.serving.chains import best_chain
from placeopt.serving.flow import best_flow
from placeopt.serving.in_flight import GROUPS, NEAR, best_groups, grouped, step_lengths, sustained, with_token_time
from placeopt.serving.plan import ServingPlan, node_rates
from placeopt.serving.prefill import quick
from placeopt.serving.problem import Serving
from placeopt.serving.rate_search import COPIED, RateSearch, first_plans
from placeopt.serving.request_bounds import ALL, STEP, TimeBounds, TimeRange
from placeopt.serving.result import ServingResult
from placeopt.serving.search import Search, SearchOptions

NARROW = 1.0005
"""Ranges whose times differ by this factor at most are not divided."""

FINE = 1.02
"""Plans are not tried again for parts of a range whose times differ by this factor at most."""

COARSE = 1e-2
"""Relative precision of the first bounds."""

KNOWN = 1.5
"""Ranges are divided first until their numbers of groups differ by this factor at most."""

PLANNING = 0.4
"""The least share of the time in which plans are searched."""

SMALL = 12
"""The largest number of nodes whose intervals are also changed at random."""

WORTHS = (1.0, 1.5, 2.5, 0.7)
"""Factors of the price at which rates of nodes are tried."""

QUICK = (None, 0.9, 1.5, 0.6)
"""Shares of the limit of the time to the first token that all layers of a prompt may take on a node, in plans that are
tried. Above 1, quicker nodes are needed, too; with None, only the limit itself counts."""


@dataclass(slots=True)
class _Range:
    """A range of times, and what was tried for it."""

    times: TimeRange
    patterns: bool = False
    plans: int = 0

    @property
    def near(self) -> bool:
        """Whether the numbers of groups are near each other, and so are the times."""
        few, many = self.times.groups
        return many <= KNOWN * few and self.times.most <= STEP * self.times.least

    @property
    def narrow(self) -> bool:
        """Whether it is not worth a division."""
        return self.times.most <= self.times.least * NARROW and self.times.groups[0] == self.times.groups[1]


class RequestSearch(Search):
    """Solves a problem with requests."""

    def __init__(self, problem: Serving, options: SearchOptions, start: tuple[Int, Int] | None = None) -> None:
        super().__init__(problem, options)
        self.bounds = TimeBounds(self.problem)
        self.ranges: list[_Range] = []
        self._planned, self._turn, self._share = 0.0, 0, -1
        self._random = np.random.default_rng(options.seed)
        if start is not None:
            self._keep(best_groups(self.problem, *start))

    def run(self) -> ServingResult:
        self._take_chains()
        if self.plan is not None and len(self.plan.flow):
            self._move_borders()
        if self.sites.number > 1 or self.problem.n_nodes > 2 * COPIED:
            self._plan_parts()
        self._first_ranges()
        self._set_bound()
        while not self._done():
            top = max(self.ranges, key=lambda each: each.times.bound)
            if top.near and not top.patterns:
                self._bound_by_patterns(top)
            elif (top.near and not top.plans) or top.narrow or self._planned < PLANNING * self._elapsed():
                self._plan_promising()
            else:
                self._divide(top)
        return self._result()

    def _plan_parts(self) -> None:
        """Plan each site by itself, and of many nodes in a site a part of each kind, whose plan is repeated.

        All parts have groups of the same period, that of one of them.
        """
        begin, end = np.zeros((2, self.problem.n_nodes), dtype=np.int64)
        found: list[ServingPlan] = []
        for site in range(self.sites.number):
            nodes = np.flatnonzero(self.sites.of_node == site)
            copies = max(len(nodes) // COPIED, 1) if len(nodes) > 2 * COPIED else 1
            of_kind = [nodes[self.problem.kind[nodes] == kind] for kind in range(len(self.problem.counts))]
            counts = [len(each) // copies for each in of_kind]
            part = np.concatenate([each[:count] for each, count in zip(of_kind, counts, strict=True)])
            options = replace(self.options, limit=self.options.limit / (2 * self.sites.number), enough=None)
            plan = RequestSearch(self.problem.part(part), options).run().plan
            if plan is None or self._stopped():
                continue
            found.append(plan)
            for copy in range(copies):
                own = np.concatenate([
                    each[copy * count : (copy + 1) * count] for each, count in zip(of_kind, counts, strict=True)
                ])  # fmt: skip
                begin[own], end[own] = plan.begin, plan.end
        for plan in found:
            for share in NEAR:
                self._keep(grouped(self.problem, begin, end, plan.groups, int(plan.period * share)))

    def _plan_promising(self) -> None:
        ranges = [each for each in self.ranges if each.times.bound > self.rate]
        self._turn += 1
        if self.plan is not None and self.problem.n_nodes <= SMALL and self._turn % 2:
            self._change_at_random(self.options.limit / 20)
        else:
            self._plan(min(ranges, key=lambda each: (each.plans, -each.times.bound)), self.options.limit / 20)

    def _set_bound(self) -> None:
        self.bound = max((each.times.bound for each in self.ranges), default=0)

    def _take(self, plan: ServingPlan) -> bool:
        """Keep the plan with the proportions of another one if it is the best so far."""
        return self._keep(sustained(self.problem, plan))

    def _take_groups(self, begin: Int, end: Int, time: float, numbers: Iterable[int] = GROUPS) -> bool:
        """Keep the best plan of whole requests found for these intervals, and about a time between tokens if there are
        many requests, if it is the best so far."""
        change = np.zeros(self.problem.layers + 1, dtype=np.int64)
        rates = node_rates(self.problem, begin, end)
        np.add.at(change, begin, rates)
        np.add.at(change, end, -rates)
        if np.cumsum(change)[:-1].min() <= self.rate:  # the nodes of a layer pass no more
            return False
        lengths, found = step_lengths(self.problem, begin, end), False
        for groups in numbers:
            if groups <= self.problem.n_nodes + 1:
                for length in lengths or (int(time / groups * share) for share in NEAR):
                    found |= self._keep(grouped(self.problem, begin, end, groups, length))
        return found

    def _take_chains(self) -> None:
        """Keep chains: of all nodes, and of those of some kinds, which join one after the other if that gains."""
        if self.problem.prefill_layers:
            return
        of_kind = [np.flatnonzero(self.problem.kind == kind) for kind in range(len(self.problem.counts))]
        self._take_chain(np.arange(self.problem.n_nodes))
        best, nodes = 0, np.zeros(0, dtype=np.int64)
        for own in sorted(of_kind, key=self._take_chain, reverse=True):
            joined = np.concatenate([nodes, own])
            if (rate := self._take_chain(joined)) > best:
                best, nodes = rate, joined

    def _take_chain(self, nodes: Int) -> int:
        """Keep the chain of some nodes if it is the best so far; return its rate."""
        if not len(nodes) or self._stopped():
            return 0
        found = best_chain(self.problem, nodes, self.sites)
        if found is None:
            return 0
        begin, end = np.zeros((2, self.problem.n_nodes), dtype=np.int64)
        begin[found[0]], end[found[0]] = found[1:]
        plan = sustained(self.problem, best_flow(self.problem, begin, end))
        self._keep(plan)
        return plan.rate

    def _take_like(self, begin: Int, end: Int) -> bool:
        """The same for groups like those of the best plan."""
        assert self.plan is not None
        groups = max(self.plan.groups, 1)
        found = False
        for number in range(max(groups - 1, 1), groups + 2):
            found |= self._take_groups(begin, end, float(self.plan.period * number), [number])
        return found

    def _first_ranges(self) -> None:
        """Ranges of all times, and plans in milliseconds for each; no range if there is no plan."""
        alone = self.problem.without_requests()
        search = RateSearch(alone, replace(self.options, limit=self.options.limit / 10, gap=0.1, enough=None)).run()
        if search.plan is not None:
            self._take(search.plan)
        elif not search.bound:
            return
        at = self.bounds.shortest()
        while at <= self.bounds.most_time:
            rest = self.bounds.bound(at, np.inf, ALL, self.rate, COARSE)
            found = self.bounds.bound(at, at * STEP, ALL, self.rate, COARSE)
            if self._stopped() or (
                rest.bound <= found.bound and rest.bound <= self.rate * (1 + max(self.options.gap, COARSE))
            ):
                self.ranges.append(_Range(rest))
                return
            self.ranges.append(_Range(found))
            plain = self._plain(found, WORTHS[1])
            for begin, end in first_plans(plain, found.bound, self.options.seed):
                self._take(best_flow(plain, begin, end))
                if self.problem.n_nodes <= SMALL:
                    self._take_groups(begin, end, at * STEP)
            at *= STEP

    def _plain(self, times: TimeRange, factor: float) -> Serving:
        """The problem without requests for times in a range."""
        at = (times.least * min(times.most, times.least * STEP)) ** 0.5
        return with_token_time(self._quick(), at, times.worth * factor)

    def _quick(self) -> Serving:
        """The problem without nodes that are too slow for the time to the first token, by one share of it in turn."""
        self._share += 1
        return quick(self.problem, QUICK[self._share % len(QUICK)])

    def _bound_by_patterns(self, top: _Range) -> None:
        found = self.bounds.by_patterns(top.times, self.rate, self._precision(top), self._stopped)
        if found.bound < top.times.bound:
            self.source = "patterns"
        top.times, top.patterns = found, True
        self._set_bound()

    def _precision(self, top: _Range) -> float:
        """The relative precision that is useful for the bound of a range."""
        return max(self.options.gap / 2, (top.times.bound - self.rate) / max(20 * self.rate, 1))

    def _divide(self, top: _Range) -> None:
        """Replace a range by two: of times, or of groups, the one that differs by the larger factor."""
        self.ranges.remove(top)
        (least, most), (few, many) = (top.times.least, top.times.most), top.times.groups
        if many / few > most / least:
            middle = int((few * many) ** 0.5)
            parts = [(least, most, (few, middle)), (least, most, (middle + 1, many))]
        else:
            center = least * (STEP**0.5 if np.isinf(most) else (most / least) ** 0.5)
            parts = [(least, center, (few, many)), (center, most, (few, many))]
        for part in parts:
            found = self.bounds.bound(*part, self.rate, self._precision(top))
            same = part[:2] == (least, most) or part[1] <= part[0] * FINE
            self.ranges.append(_Range(replace(found, bound=min(found.bound, top.times.bound)), plans=top.plans * same))
        self._set_bound()

    def _plan(self, top: _Range, seconds: float) -> None:
        """Plans of the problem with rates for a range."""
        factor = WORTHS[top.plans % len(WORTHS)]
        top.plans += 1
        begun, options = self._elapsed(), self.options
        options = replace(
            options, limit=min(seconds, self._left()), gap=max(options.gap, 1e-3), seed=options.seed + top.plans,
            enough=None,
        )  # fmt: skip
        result = RateSearch(self._plain(top.times, factor), options).run()
        if result.plan is not None and self._take(result.plan):
            self._move_borders()
        self._planned += self._elapsed() - begun

    def _change_at_random(self, seconds: float) -> None:
        """Give one or two nodes of the best plan other intervals."""
        begun, layers = self._elapsed(), self.problem.layers
        while self._elapsed() < begun + seconds and not self._done():
            assert self.plan is not None
            begin, end = self.plan.begin.copy(), self.plan.end.copy()
            ends = np.unique(np.concatenate([begin, end, [0, layers]]))
            for node in self._random.integers(self.problem.n_nodes, size=self._random.integers(1, 3)).tolist():
                # Borders of other intervals are likely ones.
                one, other = (
                    int(self._random.choice(ends))
                    if self._random.random() < 0.5
                    else int(self._random.integers(layers + 1))
                    for _ in range(2)
                )
                begin[node], end[node] = min(one, other), max(one, other)
                half = self.problem.prefill_layers
                if begin[node] < half < end[node]:  # no node holds layers of both phases
                    (begin if self._random.random() < 0.5 else end)[node] = half
                if end[node] - begin[node] > self.problem.most:
                    end[node] = begin[node]
            if self._take_like(begin, end):
                self._move_borders()
        self._planned += self._elapsed() - begun

    def _move_borders(self) -> None:
        """Move borders between intervals, one layer at a time, while that raises the rate."""
        moved = True
        while moved and self.plan is not None and not self._stopped():
            moved = False
            begin, end, at = self.plan.begin, self.plan.end, self.plan.token_time
            times = self.bounds.bound(at, at, ALL, 0, 1e-2)
            plains = [self._plain(times, factor) for factor in WORTHS]
            for border in np.unique(np.concatenate([begin, end]))[1:-1].tolist():
                for step in (1, -1):
                    moves = [np.where((each == border) & (end > begin), border + step, each) for each in (begin, end)]
                    if (moves[1] > moves[0])[end > begin].all() and not self._stopped():
                        for plain in plains:
                            moved |= self._take(best_flow(plain, *moves))
                        moved |= self._take_like(*moves)
            for plain in plains:
                moved |= self._take(best_flow(plain, begin, end))
            moved |= self._take_like(begin, end)
