"""The cheapest nodes that pass a given rate, with a proved least price.

Numbers of nodes by kind are looked at in the order of their price. The bound by patterns refutes most of them, and all
smaller numbers with each. The cheapest numbers that are not refuted are a lower bound of the price; the first ones
with a plan are the answer. A first plan is that of the cheapest stages (`stages`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from placeopt.errors import UsageError
from placeopt.model.arrays import Int
from placeopt.serving.bounds import COARSE, Group, PatternBound, kind_groups, layer_classes
from placeopt.serving.feasibility import shortage
from placeopt.serving.in_flight import with_token_time
from placeopt.serving.problem import UNLIMITED, Serving
from placeopt.serving.request_bounds import TimeBounds
from placeopt.serving.result import ServingResult
from placeopt.serving.search import Timed, search_options
from placeopt.serving.sites import one_site
from placeopt.serving.solving import solve_serving
from placeopt.serving.stages import StagePlanner

LEAST = 1.0
"""Seconds in which a plan of all nodes is searched at least; it ends with the first one."""

MOST_CHOICES = 1_000_000
"""Most numbers of nodes by kind that are looked at. Beyond it, the bound is that of the cheapest patterns alone."""


@dataclass(frozen=True, slots=True, eq=False)
class CheapestResult:
    """The cheapest nodes found, and a lower bound of their price.

    Attributes
    ----------
    result
        The plan with these nodes; without a plan, of the problem with all nodes.
    demand
        The rate that was asked for.
    price, bound
        Price of an hour, and the least price with which a plan may exist; `price` is None without a plan.
    """

    result: ServingResult
    demand: int
    price: int | None
    bound: int

    def to_dict(self) -> dict[str, Any]:
        """The prices as JSON."""
        price = None if self.price is None else self.price / 10**6
        return {"price": price, "price_bound": self.bound / 10**6, "demand": self.demand / 10**6}


def cheapest_serving(
    problem: Serving,
    rate: int | None = None,
    *,
    time_limit: float = 60.0,
    seed: int = 0,
    workers: int | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> CheapestResult:
    """Find the cheapest nodes of a problem with prices that pass at least `rate`, in millionths of a token per second.

    Without `rate`, the `demand` of the problem is asked for. Of the nodes of a kind, the first ones are used. The lower
    bound does not know links.

    Raises
    ------
    UsageError
        If the problem has no prices, no plan can pass the rate, or an argument is out of range.
    """
    options = search_options("cheapest_serving", problem, time_limit, seed=seed, workers=workers)
    if problem.price is None:
        raise UsageError("the problem has no prices; expected `price` of each device")
    rate = problem.demand if rate is None else rate
    if isinstance(rate, bool) or not isinstance(rate, int) or not 1 <= rate <= UNLIMITED:
        raise UsageError(f"rate is {rate!r}; expected a whole number from 1 to {UNLIMITED:,}")
    return _Search(problem, problem.price, rate, time_limit, seed, options.workers, should_stop).run()


class _Search(Timed):
    def __init__(
        self, problem: Serving, price: Int, rate: int, limit: float, seed: int, workers: int, asked: Callable[[], bool]
    ) -> None:
        self.problem, self.price, self.rate, self.seed, self.workers = problem, price, rate, seed, workers
        super().__init__(limit, asked)
        self.classes, self.groups = layer_classes(problem), kind_groups(problem)
        self.found: ServingResult | None = None
        self.least: int | None = None  # the price of `found`

    def run(self) -> CheapestResult:
        patterns = self._patterns(self.groups)
        bound = patterns.least_price(self.rate, [int(self.price[group.kind]) for group in self.groups])
        if bound is None or patterns.refuted(self.rate) is not None:
            raise self._impossible()
        if self.problem.steps is None:
            self._cheapest_stages(self.problem, patterns, self._left() / 4)
        else:
            self._try(self.problem.counts, self._left() / 10)
            bound = max(bound, self._cheapest_of_times())
        if self.found is None:
            self._try(self.problem.counts, self._left() / 4)
        if prod((self.problem.counts + 1).tolist()) <= MOST_CHOICES:
            bound = max(bound, self._look_through(bound))
        if self.found is None:
            self._try(self.problem.counts, LEAST)
        whole = self.found or solve_serving(self.problem, time_limit=0.1, seed=self.seed, workers=self.workers)
        bound = bound if self.least is None else min(bound, self.least)
        whole.seconds = self._elapsed()
        return CheapestResult(whole, self.rate, self.least, bound)

    def _impossible(self) -> UsageError:
        lacking = shortage(self.problem)
        why = "" if lacking is None else f": {lacking}"
        return UsageError(f"no plan passes {self.rate / 10**6:,.2f} tokens/s with these nodes{why}")

    def _patterns(self, groups: list[Group]) -> PatternBound:
        return PatternBound(self.classes, groups, one_site(self.problem).fastest, self._stopped, COARSE)

    def _cheapest_of_times(self) -> int:
        """Plans of the cheapest stages for the times between tokens that may be the cheapest ones; a lower bound."""
        bounds = TimeBounds(self.problem)
        prices = [int(self.price[group.kind]) for group in self.groups]
        times = sorted(bounds.least_prices(self.rate, prices, self._stopped), key=lambda each: each[1])
        if self._stopped():
            return 0
        if not times:
            raise self._impossible()
        until = time.monotonic() + self._left() / 3
        for found, least in times:
            if time.monotonic() > until or (self.least is not None and least >= self.least):
                break
            plain = with_token_time(self.problem, found.most, found.worth)
            patterns = PatternBound(
                layer_classes(plain), self.groups, one_site(plain).fastest, self._stopped, COARSE
            )  # fmt: skip
            self._cheapest_stages(plain, patterns, 2.0)
        return times[0][1]

    def _cheapest_stages(self, problem: Serving, patterns: PatternBound, seconds: float) -> None:
        """A plan of the cheapest stages of a problem without requests."""
        planner = StagePlanner(
            problem, one_site(problem), (0,), patterns, self.seed, self.workers, self._stopped
        )  # fmt: skip
        stages = planner.stages(self.rate, seconds, [int(self.price[group.kind]) for group in self.groups])
        if stages is not None:
            begin, end = planner.intervals(stages)
            counts = np.bincount(self.problem.kind[end > begin], minlength=len(self.price))
            price = int(counts @ self.price)
            if self.least is None or price < self.least:
                self._try(counts, min(self._left() / 10, 2.0), (begin, end))

    def _try(self, counts: Int, seconds: float, start: tuple[Int, Int] | None = None) -> bool:
        """Whether a plan of these numbers of nodes passes the rate; the nodes that it needs are the best so far."""
        nodes = self._first_nodes(counts)
        first = None if start is None else (start[0][nodes], start[1][nodes])
        result = solve_serving(
            self.problem.part(nodes), time_limit=max(seconds, 0.01), seed=self.seed, workers=self.workers,
            should_stop=self._should_stop, enough=self.rate, start=first,
        )  # fmt: skip
        if result.plan is None or result.rate < self.rate:
            return False
        used = np.flatnonzero(result.plan.end > result.plan.begin)
        price = int(self.price[result.problem.kind[used]].sum())
        if self.least is None or price < self.least:
            self.found, self.least = result, price
        return True

    def _look_through(self, bound: int) -> int:
        """Look at numbers of nodes in the order of their price; a lower bound of it."""
        counts = self.problem.counts
        choices = np.stack([index.reshape(-1) for index in np.indices(tuple((counts + 1).tolist()))], axis=1)
        prices = choices @ self.price
        kept = (prices >= bound) & (prices < (self.least if self.least is not None else prices.max() + 1))
        order = np.argsort(prices[kept], kind="stable")
        choices, prices = choices[kept][order], prices[kept][order]
        open_, proved, at = np.ones(len(choices), dtype=np.bool_), None, 0
        while not self._stopped():
            rest = np.flatnonzero(open_[at:])
            if not len(rest) or (self.least is not None and prices[at + rest[0]] >= self.least):
                return self.least if proved is None and self.least is not None else proved or bound
            at += int(rest[0])
            if proved is None:
                refuted = self._refuted_above(choices[at])
                if refuted is not None:
                    open_ &= (choices > refuted).any(axis=1)
                    continue
                proved = int(prices[at])
            if self._try(choices[at], min(self._left(), 2.0)) and proved == self.least:
                return proved
            open_[at] = False
        return proved if proved is not None else int(prices[at]) if at < len(prices) else bound

    def _refuted_above(self, chosen: Int) -> Int | None:
        """Numbers of nodes that cannot pass the rate, of which there are at least the chosen ones."""
        found = None
        for part in (0.0, 0.25, 0.5):  # numbers between the chosen ones and all
            counts = chosen + ((self.problem.counts - chosen) * part).astype(np.int64)
            groups = [replace(group, count=int(counts[group.kind])) for group in self.groups]
            if self._patterns(groups).refuted(self.rate) is None and not self._refuted_by_times(counts):
                break
            found = counts
        return found

    def _refuted_by_times(self, counts: Int) -> bool:
        """Whether requests in flight show that these numbers of nodes do not pass the rate."""
        part = self.problem.part(self._first_nodes(counts))
        return part.steps is not None and TimeBounds(part).refutes(self.rate, self._stopped)

    def _first_nodes(self, counts: Int) -> Int:
        of_kind = [np.flatnonzero(self.problem.kind == kind)[:count] for kind, count in enumerate(counts.tolist())]
        return np.sort(np.concatenate(of_kind))
