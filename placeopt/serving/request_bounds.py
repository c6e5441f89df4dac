"""Upper bounds of the rate where nodes share the requests in flight.

Let f be the rate, and t the time between two tokens of a request. Every layer is passed at f, so that the nodes' rates
g times their numbers of layers k add up to at least L f. The requests in their steps, b(g), and on links are at most
f t. For every price w of a request in layers, the sum of w k g - b(g) over the nodes is at most that of its largest
values, and at least f (w L - t). For t between two times, the memory of a node limits its rate by the shorter one, and
the longer one limits the requests. A bound for every range of times together bounds the rate.

If prefill is separate, this holds for the layers and nodes of decoding, and the nodes for prefill pass f, too. A node
counts for what is worth more at prices of layers for prefill and for decoding; the transfer between them is left out.

These bounds are not from the literature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from math import prod, sqrt
from typing import TypeAlias

import numpy as np
from ortools.math_opt.python import mathopt

from placeopt.model.arrays import Bool, Int
from placeopt.serving.bounds import COARSE, REQUEST_STEPS, InFlight, PatternBound, kind_groups, layer_classes
from placeopt.serving.in_flight import MOST_GROUPS, PER, Floats, best_rates, best_rates_of_groups, step_requests
from placeopt.serving.prefill import least_prompt_time
from placeopt.serving.problem import UNLIMITED, Serving

_SAFE = 1 + 1e-9
"""Factor that covers rounding of floating-point numbers."""

ALL = (1, MOST_GROUPS)
"""All numbers of groups."""

STEP = 1.1
"""The longest time of a first range, divided by its shortest."""

FINER = 2**12
"""Parts of a unit of prices in sums of them."""

PRICES = (0.0, 0.1, 0.2, 0.3, 0.45, 0.65, 1.0, 1.5, 2.5)
"""Shares of the price of all nodes that requests are tried to cost together."""

MOST_RANGES = 200
"""The most ranges of times for a bound of replicas; the last one has all longer times."""

FACTORS = tuple(1.0005 * 1.4**k for k in range(12))
"""Prices of a request that are tried for a bound of replicas, as multiples of the time of a layer."""

MOST_PAIRS = 20_000_000
"""All divisions of nodes are looked at up to this number of pairs: nodes of each kind in a replica, and in others."""

RATE_STEP, LEAST_RATE = 0.02, 1e-4
"""Step between rates that are tried to be refuted for numbers of nodes, as a share of the largest one, and the least of
them. Steps shrink with the root of the rate."""

NARROW, PRECISION = 1.01, 2e-3
"""Ranges of times are divided down to this factor for the bound of a replica by patterns, which has this precision."""

NEGLIGIBLE = 1e-2
"""Share of a bound below which longer times are not divided into ranges."""

_TRIES, _POINTS, _DOUBLINGS = 13, 12, 28
"""Rounds of the search for the price of a request, prices in each of them, and first prices."""


Place: TypeAlias = tuple[int, ...]
"""Numbers of nodes of each kind."""


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Times between tokens in ps and numbers of groups, a bound of the rate for them, and the price of a request at it,
    in ps for a layer."""

    least: float
    most: float
    groups: tuple[int, int]
    bound: int
    worth: float


@dataclass(frozen=True, slots=True, eq=False)
class _PriceRange:
    """Times between tokens in ps, (t, K) largest rates of nodes for them, (p, t) prices of nodes of which each row
    bounds the rate of a replica, and such a bound with all nodes."""

    least: float
    most: float
    limit: Floats
    prices: Floats
    bound: float


class TimeBounds:
    """Bounds of the rate for ranges of the time between two tokens of a request."""

    def __init__(self, problem: Serving) -> None:
        assert problem.steps is not None
        self.problem, steps = problem, problem.steps
        self._counts = problem.counts.astype(np.float64)
        self._sizes = np.arange(1, problem.most + 1, dtype=np.float64)
        first = problem.prefill_layers
        self._layers = problem.layers - first
        self._prefill = problem.rate[:, :first].max(axis=1, initial=0).astype(np.float64)
        # Of unlike layers, those with the largest rate, the largest room and the shortest steps, each by itself.
        holds = problem.rate[:, first:] > 0
        self._rate, self._room = (
            table[:, first:].max(axis=1).astype(np.float64) for table in (problem.rate, steps.room)
        )
        a, b, c, d = (
            np.where(holds, table[:, first:], table.max(initial=0)).min(axis=1).astype(np.float64)
            for table in (steps.reading, steps.token, steps.overhead, steps.work)
        )
        self._times = a, b, c, d
        between, entering = (
            delay + np.where(rate < UNLIMITED, PER // np.maximum(rate, 1), 0)  # of one token at least
            for delay, rate in ((steps.delay, problem.link), (steps.entry_delay, problem.entry))
        )
        between = np.where(np.eye(problem.n_nodes, dtype=np.bool_), np.inf, between)
        into = np.minimum(between.min(axis=0), entering)
        self._ways = np.array(
            [into[problem.kind == kind].min(initial=np.inf) for kind in range(len(self._counts))]
        )[:, None]  # fmt: skip
        self._ways[self._counts == 0] = 0
        self.most_time = np.inf if steps.token_time is None else float(steps.token_time)
        if problem.prompts is not None and problem.prompts.limit is not None:
            self.most_time = min(self.most_time, problem.prompts.limit - least_prompt_time(problem, problem.prompts))
        self.most_requests = np.inf if steps.requests is None else float(steps.requests)

    def shortest(self) -> float:
        """A time of at least 1 ps below which no request gets its next token: the fastest steps for all layers."""
        a, b, c, d = self._times
        fixed = np.maximum(a + b, c + d) + self._ways
        each = np.where((self._rate > 0) & (self._counts > 0)[:, None], fixed / self._sizes, np.inf)
        return max(float(each.min()) * self._layers / _SAFE, 1.0)

    def bound(self, least: float, most: float, groups: tuple[int, int], above: int, precision: float) -> TimeRange:
        """The bound for times from `least` to `most`, which may be infinite, and for numbers of groups from one to
        another; at least `above`, to some precision."""
        limit = self._limits(least, most, groups)
        high = self._area(limit, np.inf) / self._layers
        high = min(high, self.most_requests * PER / max(least, 1.0))
        low, worth = min(float(above), high), 0.0
        period = _least_period(least, groups)
        while high - low > max(precision * high, 1.0):  # rates are whole numbers
            middle = (low + high) / 2
            refuted, worth = self._refuted(middle, limit, min(most, self.most_time), period)
            low, high = (low, middle) if refuted else (middle, high)
        return TimeRange(least, most, groups, int(high * _SAFE) + 1, worth)

    def refutes(self, rate: int, should_stop: Callable[[], bool]) -> bool:
        """Whether no plan passes a rate, as far as ranges of times show in short time."""
        at = self.shortest()
        while at <= self.most_time and not should_stop():
            if self._refutes(rate, at, np.inf):
                return True
            if not self._refutes(rate, at, at * STEP):
                return False
            at *= STEP
        return at > self.most_time

    def _refutes(self, rate: int, least: float, most: float) -> bool:
        limit = self._limits(least, most, ALL)
        return self._refuted(rate, limit, min(most, self.most_time), _least_period(least, ALL))[0]

    def least_prices(
        self, rate: int, prices: Sequence[int], should_stop: Callable[[], bool]
    ) -> Iterator[tuple[TimeRange, int]]:
        """Ranges that together have all times with which a plan may pass a rate, and the least price of shares of nodes
        that do, given the price of a node of each group."""
        at = self.shortest()
        while at <= self.most_time and not should_stop():
            if self._refutes(rate, at, np.inf):
                return
            if not self._refutes(rate, at, at * STEP):
                found = self.bound(at, at * STEP, ALL, rate, 1e-2)
                patterns = self._patterns(found, should_stop)
                # With a price of requests, nodes and requests cost at least as much; the requests are subtracted.
                scaled, trials = [price * FINER for price in prices], [0]
                for share in PRICES:
                    each = int(sum(scaled) / len(scaled) * self.problem.n_nodes * share) // REQUEST_STEPS
                    least = patterns.least_price(rate, [*scaled, each])
                    trials.append(0 if least is None else least - each * (REQUEST_STEPS + 1))
                yield found, max(trials) // FINER
            at *= STEP

    def of_replicas(self, most: int, should_stop: Callable[[], bool] = lambda: False) -> tuple[int, str, Floats]:
        """A bound of the rate of at most `most` replicas, what proves it ("prices" or "divisions"), and (t,) prices.

        A replica with a rate of f and a time t has f (w L - t) <= the sum of its nodes' largest w k g - b(g), for
        every w, so f is at most the sum of the prices of its nodes for this w, and for means of several prices. A node
        costs its largest price over all times, for which a linear program chooses the means.

        For few numbers of nodes of each kind, the bound of a replica with each of them limits all divisions.
        """
        ranges = list(self._price_ranges())
        found = self._cheapest_means([each.prices for each in ranges])
        single = max((each.bound for each in ranges), default=0.0)
        bound, source = min(float((self._counts * found).sum()), most * single), "prices"
        pairs = prod((count + 1) * (count + 2) // 2 for count in self.problem.counts.tolist())
        if pairs <= MOST_PAIRS:
            bound, source = min((bound, source), (self._of_divisions(ranges, most, should_stop), "divisions"))
        return int(bound * _SAFE) + 1, source, found

    def _price_ranges(self) -> Iterator[_PriceRange]:
        """Ranges that together have all times of replicas."""
        single, at, number = 0.0, self.shortest(), 0
        while at <= self.most_time and np.isfinite(at):
            found = self._price_range(at, min(at * STEP, self.most_time))
            yield found
            single, number, at = max(single, found.bound), number + 1, at * STEP
            rest = self._price_range(at, np.inf)
            if number == MOST_RANGES or float((rest.prices @ self._counts).min()) <= NEGLIGIBLE * single:
                yield rest
                return

    def _price_range(self, least: float, most: float) -> _PriceRange:
        """Prices for a range of times. No node passes more than a replica of all nodes does."""
        limit = self._limits(least, most, ALL)
        requests = self.most_requests * PER / least * _SAFE
        prices = self._prices(least, most, limit)
        found = _PriceRange(least, most, limit, prices, min(float((prices @ self._counts).min()), requests))
        if not np.isfinite(most):
            return found
        low, high = 0.0, found.bound
        while high - low > RATE_STEP * high and high > LEAST_RATE * found.bound:
            rate = (low + high) / 2
            low, high = (low, rate) if self._refuted_for(self._counts[None], rate, found)[0] else (rate, high)
        limit = np.minimum(limit, high * _SAFE)
        return _PriceRange(least, most, limit, self._prices(least, most, limit), high)

    def _prices(self, least: float, most: float, limit: Floats) -> Floats:
        """(p, t) prices of nodes, one of layers alone, and others for prices of requests."""
        rows = [self._layer_rates(limit)[None]]
        if np.isfinite(most):
            price = np.array(FACTORS) * most / self.problem.layers
            gains = self._gains(limit, price[:, None, None], _least_period(least, ALL))
            rows.append(gains * (PER / (price * self.problem.layers - most))[:, None] * _SAFE)
        return np.concatenate(rows)

    def _of_divisions(self, ranges: Sequence[_PriceRange], most: int, should_stop: Callable[[], bool]) -> float:
        """The largest sum of bounds of replicas over all divisions of the nodes among at most `most` of them.

        Replicas of the division with the largest sum are bounded by patterns of layers, which bound all replicas of
        fewer nodes, too; until this changes nothing, or the time is over.
        """
        shape = tuple(count + 1 for count in self.problem.counts.tolist())
        nodes = np.indices(shape).reshape(len(shape), -1).T.astype(np.float64)
        one, most_of_all = np.zeros(len(nodes)), max((each.bound for each in ranges), default=0.0)
        for each in ranges:
            one = np.maximum(one, self._of_nodes(nodes, each, one, most_of_all, should_stop))
        one, best, known = one.reshape(shape), np.inf, set[Place]()
        while (found := _best_division(one, most, should_stop)) is not None:
            best = min(best, found[0])
            # First of all, a replica of all nodes: its bound holds for all numbers of them.
            parts = found[1] if known else [tuple(size - 1 for size in shape)]
            unknown = [part for part in parts if part not in known]
            if not unknown or should_stop():
                break
            place = max(unknown, key=lambda part: float(one[part]))
            known.add(place)
            fewer = tuple(slice(n + 1) for n in place)
            one[fewer] = np.minimum(one[fewer], self._of_counts(np.array(place), should_stop))
        return best

    def _of_counts(self, counts: Int, should_stop: Callable[[], bool]) -> float:
        """A bound of a replica with numbers of nodes of each kind, by patterns of layers for short ranges of times."""
        part = copy(self)
        of_kind = [np.flatnonzero(self.problem.kind == kind)[:count] for kind, count in enumerate(counts.tolist())]
        part.problem, part._counts = self.problem.part(np.concatenate(of_kind)), counts.astype(np.float64)
        left = [(-each.bound, each.least, each.most, False) for each in part._price_ranges()]
        heapify(left)
        while left and not should_stop():
            bound, least, most, exact = heappop(left)
            if not exact:
                times = part.by_patterns(TimeRange(least, most, ALL, int(-bound) + 1, 0.0), 0, PRECISION, should_stop)
                heappush(left, (max(bound, -float(times.bound)), least, most, True))
            elif most > NARROW * least and np.isfinite(most):
                for ends in ((least, sqrt(least * most)), (sqrt(least * most), most)):
                    heappush(left, (max(bound, -part._price_range(*ends).bound), *ends, False))
            else:
                heappush(left, (bound, least, most, True))
                break
        return -left[0][0] if left else 0.0

    def _of_nodes(
        self, nodes: Floats, given: _PriceRange, above: Floats, top: float, should_stop: Callable[[], bool]
    ) -> Floats:
        """(c,) bounds of one replica with (c, t) numbers of nodes, for a range of times, as far as they are `above`
        others; `top` bounds all replicas."""
        found: Floats = np.minimum((nodes @ given.prices.T).min(axis=1), self.most_requests * PER / given.least * _SAFE)
        held = np.where(given.limit > 0, self._sizes, 0.0).max(axis=1)
        found[nodes @ held < self._layers] = 0.0  # some layer has no node
        if not np.isfinite(given.most):
            return found
        rate = float(found.max(initial=0.0))
        unknown = found > above
        while rate > LEAST_RATE * top and unknown.any() and not should_stop():
            rate /= 1 + RATE_STEP * sqrt(top / rate)
            tried = np.flatnonzero(unknown & (found > rate))
            refuted = self._refuted_for(nodes[tried], rate, given)
            found[tried[refuted]] = rate
            unknown[tried[~refuted]] = False
            unknown &= found > above
        return found

    def _refuted_for(self, nodes: Floats, rate: float, given: _PriceRange) -> Bool:
        """(c,) whether no replica with (c, t) numbers of nodes passes a rate, for a range of times."""
        limit, layers = np.minimum(given.limit, rate), self._layers
        in_flight = min(given.most * rate / PER, self.most_requests)
        prices = np.array(FACTORS) * in_flight * PER / rate / layers
        gains = self._gains(limit, prices[:, None, None], _least_period(given.least, ALL))
        needed = prices * layers * rate / PER / _SAFE - in_flight * _SAFE
        total = (limit * self._sizes).max(axis=1)
        found: Bool = ((nodes @ gains.T) * _SAFE < needed).any(axis=1) | (nodes @ total * _SAFE < layers * rate)
        return found

    def _layer_rates(self, limit: Floats) -> Floats:
        """(t,) layers x rate of a node of each kind, for each layer."""
        found: Floats = (limit * self._sizes).max(axis=1) / self.problem.layers
        return found

    def _cheapest_means(self, rows: list[Floats]) -> Floats:
        """(t,) the largest prices over the ranges, each a mean of prices there, for which all nodes cost least."""
        if not rows:
            return np.zeros(len(self._counts))
        unit = max(float(row.max()) for row in rows) or 1.0
        model = mathopt.Model()
        prices = [model.add_variable(lb=0.0) for _ in self._counts]
        shares = [[model.add_variable(lb=0.0) for _ in row] for row in rows]
        for row, own in zip(rows, shares, strict=True):
            model.add_linear_constraint(mathopt.LinearSum(own) == 1.0)
            for kind, price in enumerate(prices):
                mean = mathopt.LinearSum([float(each[kind]) / unit * x for each, x in zip(row, own, strict=True)])
                model.add_linear_constraint(mean <= price)
        model.minimize(
            mathopt.LinearSum([count * price for count, price in zip(self._counts.tolist(), prices, strict=True)])
        )
        result = mathopt.solve(model, mathopt.SolverType.GLOP)
        means = []
        for row, own in zip(rows, shares, strict=True):
            weights = np.eye(1, len(row))[0]
            if result.termination.reason == mathopt.TerminationReason.OPTIMAL:
                weights = np.maximum([float(result.variable_values(x)) for x in own], 0.0)
            means.append(weights @ row / weights.sum())
        found: Floats = np.max(means, axis=0) * _SAFE
        return found

    def worth(self, time: float) -> float:
        """The price of a request at a time between tokens, for `with_token_time`."""
        return self.bound(time, time, ALL, 0, 1e-2).worth

    def _limits(self, least: float, most: float, groups: tuple[int, int]) -> Floats:
        """(t, K) the largest rates of nodes for some times and groups."""
        room = self._room if groups[0] < groups[1] else self._room // groups[0] * groups[0]
        limit = np.minimum(self._rate, room * (PER / max(least, 1.0)))
        period = max(min(most, self.most_time), 1.0) / groups[0]  # no step is longer
        for fixed, each in (self._times[:2], self._times[2:]):
            with np.errstate(divide="ignore", invalid="ignore"):
                limit = np.minimum(limit, np.where(each > 0, np.maximum(1 - fixed / period, 0.0) / each * PER, np.inf))
        found: Floats = limit * _SAFE
        return found

    def by_patterns(self, found: TimeRange, above: int, precision: float, should_stop: Callable[[], bool]) -> TimeRange:
        """The range with its bound by patterns of layers, at least `above`."""
        return replace(found, bound=self._patterns(found, should_stop).bound(precision, above, found.bound))

    def _patterns(self, found: TimeRange, should_stop: Callable[[], bool]) -> PatternBound:
        limit = np.minimum(self._limits(found.least, found.most, found.groups) + 1, self._rate)
        most = min(found.most, self.most_time)
        in_flight = None
        if np.isfinite(most) or np.isfinite(self.most_requests):
            period = _least_period(found.least, found.groups)
            in_flight = InFlight(self._times, self._ways[:, 0], most, self.most_requests, period)
        classes = layer_classes(self.problem, limit.astype(np.int64))
        return PatternBound(
            classes, kind_groups(self.problem), np.zeros((1, 1), dtype=np.int64), should_stop, COARSE, in_flight
        )

    def _refuted(self, rate: float, limit: Floats, most: float, period: float) -> tuple[bool, float]:
        """Whether no plan passes a rate with times of at most `most`, and the price of a request that shows most."""
        in_flight = min(most * rate / PER, self.most_requests)
        limit, layers = np.minimum(limit, rate), self._layers
        if not np.isfinite(in_flight):  # a request costs nothing
            return self._area(limit, rate) * _SAFE < layers * rate, np.inf
        prefill = (np.minimum(self._prefill, rate) * self._sizes).max(axis=1) / PER

        def missing(prices: Floats) -> Floats:
            gains = self._gains(limit, prices[:, None, None], period)
            total = (gains @ self._counts) * _SAFE
            if self.problem.prefill_layers:  # at the price of layers for prefill that shows most
                each = gains / np.maximum(prefill, 1e-30)
                sums = np.maximum(gains[:, None], each[:, :, None] * prefill) @ self._counts * _SAFE
                total = (sums - each * layers * rate / PER / _SAFE).min(axis=1)
            found: Floats = total + in_flight * _SAFE - prices * layers * rate / PER / _SAFE
            return found

        # A convex function of the price: first twice as large prices are tried, and then prices between the best ones.
        tried = 10 * in_flight * PER / rate / layers * np.concatenate([[0.0], 2.0 ** np.arange(_DOUBLINGS)])
        for _ in range(_TRIES):
            values = missing(tried)
            best = int(values.argmin())
            if values[best] < 0:
                return True, float(tried[best])
            low, high = tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)]
            tried = np.linspace(low, high, _POINTS)
        return False, float((low + high) / 2)

    def _area(self, limit: Floats, most: float) -> float:
        """The largest sum over the nodes of layers x rate in decoding, with (t, K) limits of rates.

        If prefill is separate, a node counts for one of the phases, at shares of both for which the sum is the least.
        Its rate for prefill is at most `most`.
        """
        one = (limit * self._sizes).max(axis=1)
        if not self.problem.prefill_layers:
            return float((self._counts * one).sum())
        other = (np.minimum(self._prefill, most) * self._sizes).max(axis=1)
        shares = (one / np.maximum(one + other, 1.0))[:, None]
        return float((np.maximum(shares * other, (1 - shares) * one) @ self._counts).min())

    def _gains(self, limit: Floats, price: float | Floats, period: float) -> Floats:
        """(t,) the largest layers x rate x price - requests in steps and on links of a node, rounded up; (p, t) for
        (p, 1, 1) prices."""
        worth = np.maximum(price * self._sizes - self._ways, 0.0)
        flow = best_rates(self._times, limit, worth)
        gain = worth * flow / PER * _SAFE - step_requests(self._times, flow) / _SAFE
        flow = best_rates_of_groups(self._times, limit, worth, period)
        a, b, c, d = self._times
        taken = np.maximum(a + b * flow * period / PER, c + d * flow * period / PER) * flow / PER
        gain = np.minimum(gain, worth * flow / PER * _SAFE - taken / _SAFE)
        # Each step is for one request at least.
        gain = np.minimum(gain, limit / PER * np.maximum(worth * _SAFE - np.maximum(a + b, c + d) / _SAFE, 0.0))
        gain = np.where((self._rate > 0) & (gain > 0), gain, 0.0)
        found: Floats = gain.max(axis=-1)
        return found


def _best_division(one: Floats, most: int, should_stop: Callable[[], bool]) -> tuple[float, list[Place]] | None:
    """The largest sum for at most `most` replicas, with the numbers of nodes of each, given the bound of one with any
    numbers; None if stopped."""
    shape = one.shape
    some = [place for place in np.ndindex(shape) if one[place] > 0]
    sums = [one]
    for _ in range(most - 1):
        joined = sums[-1].copy()
        for place in some:  # a further replica with these nodes
            if should_stop():
                return None
            whole = tuple(slice(n, None) for n in place)
            rest = tuple(slice(size - n) for n, size in zip(place, shape, strict=True))
            joined[whole] = np.maximum(joined[whole], sums[-1][rest] + one[place])
        if np.array_equal(joined, sums[-1]):
            break
        sums.append(joined)
    left, parts = tuple(size - 1 for size in shape), list[Place]()
    for k in range(len(sums) - 1, 0, -1):
        for place in some:
            rest_of = tuple(n - taken for n, taken in zip(left, place, strict=True))
            if min(rest_of) >= 0 and sums[k - 1][rest_of] + one[place] == sums[k][left] > sums[k - 1][left]:
                left = rest_of
                parts.append(place)
                break
    return float(sums[-1].max()), [*parts, left]


def _least_period(least: float, groups: tuple[int, int]) -> float:
    """The least period of groups with a time between tokens of at least `least`; more groups than are tried may be."""
    return 0.0 if groups[1] >= MOST_GROUPS else least / groups[1]
