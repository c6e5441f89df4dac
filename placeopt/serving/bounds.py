"""Upper bounds of the rate: what layers cost in shares of nodes, and what slow links add to that.

Without links, a flow is at most the least coverage: the sum of the rates of the nodes that hold a layer. For a rate f,
each layer is covered by nodes with a total rate of f, and a node with k layers gives 1/k of itself to each of them. A
linear program covers as many layers as possible by such patterns with the nodes that there are. Its dual values are
prices of nodes; with any prices, f is refuted if the cheapest patterns of all layers cost more than all nodes (A. A.
Farley, Operations Research 1990, doi:10.1287/opre.38.5.922). Rates are rounded up to a grid and prices down, in
integers, so that each refutation is exact.

If the nodes of no site alone pass f, some tokens go from one site to another between two layers. Then one of two things
holds, and both cost more than the cheapest patterns of two layers:

- Nodes of at least two sites pass tokens at one of the two layers.
- All tokens change from one site to another. If a nodes send to b nodes over links of rate c, then each sender passes
  at most b c, and each receiver at most a c.

These crossings are not from the literature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations, product

import numpy as np
from ortools.math_opt.python import mathopt

from placeopt.model.arrays import Int
from placeopt.serving.covers import NEVER, CountedCover, Cover, Nodes, Way
from placeopt.serving.in_flight import PER, Floats, Times, step_requests
from placeopt.serving.problem import LARGEST, UNLIMITED, Serving
from placeopt.serving.sites import Sites

FINE, COARSE = 20_000, 1_000
"""Steps of the grid between 0 and the rate that is to be refuted: for the bound, and for estimates."""

LEVELS = 0.94 ** np.arange(64)
"""Shares of the largest rate of a node for which patterns with requests are made."""

REQUEST_STEPS = 2**20
"""Steps of the grid between 0 and the requests in flight."""

_PRICE = 2**32
"""The largest price."""

_ROUNDS = 200
"""Most rounds of the linear program for one rate."""


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that are alike for bounds: of one kind, in one site."""

    site: int
    kind: int
    count: int


@dataclass(frozen=True, slots=True)
class LayerClass:
    """Layers that are alike: their number, and the largest rate of each kind (rows) with k layers, one of these.

    `decodes` is false for layers that requests in flight do not pass: those for prefill alone.
    """

    number: int
    rates: tuple[tuple[int, ...], ...]
    decodes: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class InFlight:
    """Requests in flight as a further resource of patterns."""

    times: Times
    """(t, K) least times of steps by kind and number of layers."""
    way: Floats
    """(t,) least picoseconds on a link to a node of each kind."""
    most_time: float
    most_requests: float
    """Limits of the time between two tokens of a request, and of the requests; infinite without one."""
    period: float
    """Least picoseconds between two groups of requests."""

    def number(self, rate: float) -> float:
        """The most requests in flight at a rate."""
        return min(self.most_time * rate / PER, self.most_requests)

    def taken(self, kind: int, flows: Floats) -> Floats:
        """(K, n) requests in steps and on links of a node with 1, 2, ... layers that passes each of (K, n) rates."""
        a, b, c, d = (np.asarray(table[kind], dtype=np.float64)[:, None] for table in self.times)
        groups = np.maximum(flows * self.period / PER, 1.0)  # each step is for one request at least
        steps = np.maximum(np.maximum(a + b * groups, c + d * groups) * flows / PER, step_requests((a, b, c, d), flows))
        found: Floats = (steps + flows * (self.way[kind] / PER)) * (1 - 1e-9)
        return found


@dataclass(frozen=True, slots=True)
class _Column:
    """Nodes that cover layers: shares of groups, and of requests after the groups, the number of layers by class, and
    whether these are a crossing."""

    shares: tuple[tuple[int, float], ...]
    layers: tuple[int, ...]
    crossing: bool = False


def kind_groups(problem: Serving) -> list[Group]:
    """The groups of nodes by kind, as if all were in one site."""
    return [Group(0, kind, number) for kind, number in enumerate(problem.counts.tolist()) if number]


def find_groups(problem: Serving, sites: Sites) -> list[Group]:
    """The groups of nodes, by site and kind."""
    pairs = Counter(zip(sites.of_node.tolist(), problem.kind.tolist(), strict=True))
    return [Group(site, kind, number) for (site, kind), number in sorted(pairs.items())]


def of_sites(groups: Sequence[Group], members: Collection[int]) -> list[Group]:
    """The groups, without nodes in other sites."""
    return [group if group.site in members else replace(group, count=0) for group in groups]


def layer_classes(problem: Serving, limit: Int | None = None) -> list[LayerClass]:
    """The classes of layers; `limit` states (t, K) largest rates of kinds with 1, 2, ... layers in decoding."""
    if problem.alike:
        rate = problem.rate[:, 0] if limit is None else np.minimum(problem.rate[:, 0], limit)
        return [LayerClass(problem.layers, tuple(map(tuple, rate.tolist())))]
    best = np.zeros((problem.layers, len(problem.kind_names), problem.most), dtype=np.int64)
    for k in range(1, problem.most + 1):  # intervals of k layers begin up to k - 1 layers before a layer that they hold
        begins = np.zeros((len(best) + k - 1, len(problem.kind_names)), dtype=np.int64)
        begins[k - 1 :] = problem.rate[:, :, k - 1].T
        width = 1
        while 2 * width <= k:
            begins = np.maximum(begins[:-width], begins[width:])
            width *= 2
        best[:, :, k - 1] = np.maximum(begins[: len(best)], begins[k - width :][: len(best)])
    if limit is not None:
        best[problem.prefill_layers :] = np.minimum(best[problem.prefill_layers :], limit)
    found: Counter[tuple[bytes, bool]] = Counter()
    for layer, rates in enumerate(best):
        found[rates.tobytes(), layer >= problem.prefill_layers] += 1
    shape = best.shape[1:]
    return [
        LayerClass(number, tuple(map(tuple, np.frombuffer(rates, dtype=np.int64).reshape(shape).tolist())), decodes)
        for (rates, decodes), number in found.items()
    ]


@dataclass
class PatternBound:
    """Refutes rates of a problem; the columns of one rate help to refute lower ones.

    `groups` are all of the problem's, or some, for a bound of what these pass alone.
    """

    classes: list[LayerClass]
    groups: list[Group]
    fastest: Int  # (s, s) largest rate of a link between two sites
    should_stop: Callable[[], bool] = lambda: False
    grid: int = FINE
    in_flight: InFlight | None = None
    _columns: dict[_Column, int] = field(init=False, default_factory=dict)  # and the largest rate that each covers

    @property
    def n_layers(self) -> int:
        """Number of layers."""
        return sum(layers.number for layers in self.classes)

    def area(self) -> int:
        """A first bound: layers times tokens that all nodes pass in a second, divided by the layers."""
        return sum(best * group.count for best, group in zip(self._best(), self.groups, strict=True)) // self.n_layers

    def _best(self) -> list[int]:
        """The most layers times tokens that a node of each group passes."""
        return [
            max(k * rate for layers in self.classes for k, rate in enumerate(layers.rates[group.kind], 1))
            for group in self.groups
        ]

    def bound(self, precision: float, low: int = 0, high: int = LARGEST) -> int:
        """The lowest rate that is known to be refuted without crossings, minus one, to a relative precision.

        It is known to be at least `low`, which needs no proof, and at most `high`.
        """
        high = min(self.area(), high)
        while high - low > precision * high and not self.should_stop():
            middle = (low + high + 1) // 2
            refuted = self.refuted(middle)
            low, high = (middle, high) if refuted is None else (low, refuted - 1)
        return high

    def refuted(self, rate: int, crossings: int = 0) -> int | None:
        """A rate of at most `rate` that no plan with `crossings` crossings that share no layer passes; None if unknown.

        The linear program gets more columns until its prices refute the rate, or it covers all layers.
        """
        unit = max(1, -(-rate // self.grid))
        target = -(-rate // unit)
        for _ in range(_ROUNDS):
            if self.should_stop():
                return None
            covered, prices = self._priced(rate, crossings)
            money = sum(price * group.count for price, group in zip(prices, self.groups, strict=False))
            if self.in_flight is not None:
                money += prices[-1] * (REQUEST_STEPS + 1)
            covers = [self._cover(layers, prices, unit, target) for layers in self.classes]
            cost = sum(
                layers.number * int(cover.least[target]) for layers, cover in zip(self.classes, covers, strict=True)
            )
            columns = []
            if cost < NEVER:
                columns = [self._column(cover.nodes(target), [c]) for c, cover in enumerate(covers)]
                if crossings:
                    extra, pair = self._crossing(prices, unit, target, covers)
                    cost += crossings * extra
                    columns += [] if pair is None else [pair]
            if cost > money:
                return rate if crossings else self._least_refuted(covers, money, unit, rate)
            new = [column for column in columns if self._columns.get(column, -1) < rate]
            if covered >= self.n_layers - 1e-6 or not new:
                return None
            self._columns |= dict.fromkeys(new, rate)
        return None

    def least_price(self, rate: int, prices: Sequence[int]) -> int | None:
        """The least price of shares of nodes, given the price of a node of each group, that pass a rate; None if none
        do."""
        unit = max(1, -(-rate // self.grid))
        target = -(-rate // unit)
        costs = [
            layers.number * int(self._cover(layers, prices, unit, target).least[target]) for layers in self.classes
        ]
        return None if max(costs) >= NEVER else sum(costs)

    def _column(self, nodes: Nodes, layers: list[int]) -> _Column:
        """Nodes that cover one layer, or two with a crossing between them, of the listed classes."""
        shares: dict[int, float] = {}
        for (g, k, requests), number in nodes.items():
            shares[g] = shares.get(g, 0.0) + number / k
            if self.in_flight is not None:
                shares[len(self.groups)] = shares.get(len(self.groups), 0.0) + number * requests / k
        numbers = tuple(layers.count(c) for c in range(len(self.classes)))
        return _Column(tuple(sorted(shares.items())), numbers, crossing=len(layers) > 1)

    def _least_refuted(self, covers: list[Cover], money: int, unit: int, rate: int) -> int:
        """The lowest rate that the same prices refute."""
        costs = sum(
            (
                layers.number * np.minimum(cover.least, NEVER // self.n_layers)
                for layers, cover in zip(self.classes, covers, strict=True)
            ),
            start=np.zeros(len(covers[0].least), dtype=np.int64),
        )
        # Of rates above (size - 1) units, nodes of `size` units are needed.
        return min(rate, (int(np.argmax(costs > money)) - 1) * unit + 1)

    def _priced(self, rate: int, crossings: int) -> tuple[float, list[int]]:
        """How many layers the columns cover at a rate, and the prices of groups in integers."""
        model = mathopt.Model()
        amounts = [(column, model.add_variable(lb=0.0)) for column, most in self._columns.items() if most >= rate]
        rows = []
        limits = [float(group.count) for group in self.groups]
        request = 1.0  # the requests of a step of their grid
        if self.in_flight is not None:
            request = self.in_flight.number(rate) / REQUEST_STEPS
            limits.append(float(REQUEST_STEPS))
        for g, limit in enumerate(limits):
            each = 1.0 if g < len(self.groups) else 1 / request
            terms = [share * each * x for column, x in amounts for h, share in column.shares if h == g]
            rows.append(model.add_linear_constraint(mathopt.LinearSum(terms) <= limit))
        for c, layers in enumerate(self.classes):
            covered = mathopt.LinearSum([column.layers[c] * x for column, x in amounts if column.layers[c]])
            model.add_linear_constraint(covered <= layers.number)
        # Crossings that no column pays for cost more than there is.
        missing = model.add_variable(lb=0.0, ub=float(crossings))
        crossed = mathopt.LinearSum([*(x for column, x in amounts if column.crossing), missing])
        model.add_linear_constraint(crossed >= crossings)
        model.maximize(
            mathopt.LinearSum([sum(column.layers) * x for column, x in amounts]) - 2 * self.n_layers * missing
        )
        result = mathopt.solve(model, mathopt.SolverType.GLOP)
        optimal = result.termination.reason == mathopt.TerminationReason.OPTIMAL
        duals = [max(float(result.dual_values(row)), 0.0) for row in rows] if optimal else []
        most = max(duals, default=0.0)
        if most <= 0:
            duals = [float(best) for best in self._best()] + [0.0] * (self.in_flight is not None)
            most = max(*duals, 1.0)
        return float(result.objective_value()) if optimal else 0.0, [round(dual / most * _PRICE) for dual in duals]

    def prices(self, rate: int) -> list[int]:
        """The prices of the groups at a rate."""
        return self._priced(rate, 0)[1]

    def _ways(
        self, layers: LayerClass, prices: Sequence[int], unit: int, groups: Iterable[int], most: int = UNLIMITED
    ) -> list[Way]:
        """The ways in which nodes of some groups, each of which passes at most `most`, cover one of these layers."""
        if self.in_flight is not None and layers.decodes:
            return [way for g in groups for way in self._ways_of_requests(layers, prices, unit, g, self.in_flight)]
        return [
            Way(g, k, -(-min(rate, most) // unit), prices[g] // k)
            for g in groups
            for k, rate in enumerate(layers.rates[self.groups[g].kind], 1)
            if rate
        ]

    def _ways_of_requests(
        self, layers: LayerClass, prices: Sequence[int], unit: int, g: int, in_flight: InFlight
    ) -> list[Way]:
        """The ways of a node of a group at different rates: each stands for the rates down to that of the one before,
        whose requests it needs at least."""
        kind = self.groups[g].kind
        largest = -(-np.array(layers.rates[kind], dtype=np.int64) // unit)
        sizes = np.maximum(np.ceil(largest[:, None] * LEVELS), 1).astype(np.int64)
        sizes[:, 0] = np.minimum(np.maximum(largest - 1, 1), sizes[:, 0])
        sizes = np.concatenate([largest[:, None], np.sort(sizes, axis=1)[:, ::-1]], axis=1)
        lower = np.concatenate([sizes[:, 1:], np.zeros_like(sizes[:, :1])], axis=1)
        requests = np.minimum(in_flight.taken(kind, lower * float(unit)), 1e12)
        grid = in_flight.number(unit * self.grid) / REQUEST_STEPS
        taken = np.minimum(requests / grid, 2 * REQUEST_STEPS).astype(np.int64)
        counts = np.arange(1, len(largest) + 1)[:, None]
        cost = (prices[g] + prices[-1] * taken) // counts
        kept = (largest[:, None] > 0) & (sizes > lower)
        order = np.lexsort((-sizes[kept], cost[kept]))
        size, cost_of = sizes[kept][order], cost[kept][order]
        count = np.broadcast_to(counts, sizes.shape)[kept][order]
        best = np.concatenate([[True], size[1:] > np.maximum.accumulate(size)[:-1]]) if len(size) else kept[:0, 0]
        return [
            Way(g, int(k), int(s), int(c), float(r))
            for k, s, c, r in zip(count[best], size[best], cost_of[best], requests[kept][order][best], strict=True)
        ]

    def _cover(
        self, layers: LayerClass, prices: Sequence[int], unit: int, target: int, groups: Sequence[int] | None = None
    ) -> Cover:
        among = [g for g in (range(len(self.groups)) if groups is None else groups) if self.groups[g].count]
        return Cover(self._ways(layers, prices, unit, among), [group.count for group in self.groups], target)

    def _crossing(
        self, prices: Sequence[int], unit: int, target: int, covers: list[Cover]
    ) -> tuple[int, _Column | None]:
        """What two layers with a crossing between them cost more than without, at least, and their nodes."""
        least, found = NEVER, None
        floor = [int(cover.least[target]) for cover in covers]
        mixed = [self._mixed(layers, prices, unit, target) for layers in self.classes]
        for c, d in product(range(len(self.classes)), repeat=2):
            for e, other in ((c, d), (d, c)):  # the layer of class e is passed in two sites
                cost, nodes = mixed[e]
                if cost - floor[e] < least and nodes is not None:
                    both = nodes + covers[other].nodes(target)
                    least, found = cost - floor[e], self._column(both, [c, d])
            for g, h in permutations(sorted({group.site for group in self.groups}), 2):
                if self.should_stop():
                    return 0, None
                cost, nodes = self._full(c, d, g, h, prices, unit, target, least + floor[c] + floor[d])
                if cost - floor[c] - floor[d] < least and nodes is not None:
                    least, found = cost - floor[c] - floor[d], self._column(nodes, [c, d])
        return max(least, 0), found

    def _mixed(self, layers: LayerClass, prices: Sequence[int], unit: int, target: int) -> tuple[int, Nodes | None]:
        """The cheapest nodes of at least two sites that cover a layer together."""
        least, found = NEVER, None
        for site in sorted({group.site for group in self.groups}):
            own = [g for g, group in enumerate(self.groups) if group.site == site]
            rest = [g for g, group in enumerate(self.groups) if group.site != site]
            first, second = (self._cover(layers, prices, unit, target, groups) for groups in (own, rest))
            costs = first.least[1:target] + second.least[1:target][::-1]
            if len(costs) and int(costs.min()) < least:
                size = int(costs.argmin()) + 1
                least, found = int(costs.min()), first.nodes(size) + second.nodes(target - size)
        return least, found

    def _full(
        self, c: int, d: int, g: int, h: int, prices: Sequence[int], unit: int, target: int, limit: int
    ) -> tuple[int, Nodes | None]:
        """The cheapest nodes for all tokens to go from site g after a layer of class c to site h, below `limit`."""
        rate = int(self.fastest[g, h])
        if not rate:
            return NEVER, None
        senders, receivers = ([k for k, group in enumerate(self.groups) if group.site == site] for site in (g, h))
        found, sending, receiving = None, dict[int, CountedCover](), dict[int, CountedCover]()
        n_senders, n_receivers = (sum(self.groups[k].count for k in each) for each in (senders, receivers))
        enough = -(-target * unit // rate)  # with this number of partners, links do not limit a node
        cheapest = [
            min((way.cost for way in self._ways(self.classes[e], prices, unit, each)), default=NEVER)
            for e, each in ((c, senders), (d, receivers))
        ]
        for a, b in product(range(1, n_senders + 1), range(1, n_receivers + 1)):
            if a * b * rate < (target - 1) * unit or a * cheapest[0] + b * cheapest[1] >= limit:
                continue
            for table, e, groups, partners, most in (
                (sending, c, senders, b, n_senders), (receiving, d, receivers, a, n_receivers)
            ):  # fmt: skip
                partners = min(partners, enough)
                if partners not in table:
                    most = min(most, limit // max(min(cheapest), 1))
                    table[partners] = CountedCover(
                        self._ways(self.classes[e], prices, unit, groups, partners * rate), target, most
                    )
            first, second = sending[min(b, enough)], receiving[min(a, enough)]
            cost = first.cost(a) + second.cost(b)
            if cost < min(limit, NEVER):
                limit, found = cost, first.nodes(a) + second.nodes(b)
        return (limit, found) if found is not None else (NEVER, None)


def rate_without_crossing(problem: Serving, sites: Sites, most: int, should_stop: Callable[[], bool]) -> int:
    """The rate above which some tokens go from one site to another, or `most` if it is at least that.

    Tokens that stay in one site are bounded by what the nodes there pass alone.
    """
    groups, classes, total = find_groups(problem, sites), layer_classes(problem), 0
    for site in range(sites.number):
        if total < most:
            patterns = PatternBound(classes, of_sites(groups, [site]), sites.fastest, should_stop, COARSE)
            total += patterns.bound(1e-2)
    return min(total, most)
