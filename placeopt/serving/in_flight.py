"""Requests in flight: what nodes pass that share them.

A request waits for its next token while one node after another computes it, and keeps memory on all of them. If every
request gets a token each t seconds, f tokens per second belong to f t requests, and a node that passes g tokens per
second keeps the tokens of g t requests (J. D. C. Little, Operations Research 1961, doi:10.1287/opre.9.3.383). It can
pass g only in steps for at least b requests, the least number with b / step(b) >= g. These steps and the links on the
ways of tokens take t at most, on average.

A plan divides the requests into groups, which follow each other at equal times, a period. Every node computes one step
in each period, for its share of a group: a step takes at most a period, and the steps and links on every way of tokens
take at most as many periods as there are groups.

If prefill is separate, all of this is about decoding: nodes for prefill have rates alone.

`with_token_time` states a problem without requests, for a fixed t: the rate of a node is what its memory allows, and
what it passes in steps that are worth their time. `sustained` finds groups for a plan.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from placeopt.model.arrays import Int, by_index
from placeopt.serving.flow import best_flow, largest_flow
from placeopt.serving.plan import COORDINATOR, ServingPlan, edge_limits, node_rates, ways_of
from placeopt.serving.prefill import most_token_time
from placeopt.serving.problem import LARGEST, LONGEST, SECOND, TOKEN, UNLIMITED, Serving, Steps

Floats: TypeAlias = NDArray[np.float64]

Times: TypeAlias = tuple[Int | Floats, Int | Floats, Int | Floats, Int | Floats]
"""`reading`, `token`, `overhead` and `work` of nodes."""

MOST_GROUPS = 1_000
"""The largest number of groups that is tried."""

GROUPS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)
"""Numbers of groups that are tried, up to the number of nodes and one more."""

WIDE, NEAR = (0.2, 0.35, 0.5, 0.7, 0.85, 1.2, 1.5), (1.0, 1.02, 1.1, 0.97, 0.9, 0.75)
"""Factors of a time between tokens for which groups are tried."""

FEW_REQUESTS = 60
"""The most requests for which all times of steps are tried."""

MOST_REQUESTS = 10**6
"""The largest group of a node whose memory does not limit it."""

PER = TOKEN * SECOND
"""A rate times a time is a number of requests divided by this."""


def with_token_time(problem: Serving, time: float, worth: float) -> Serving:
    """The problem without requests, with the rates that nodes pass if each request gets a token every `time` ps.

    `worth` states how long steps may be: each node passes the rate g for which (number of its layers) x `worth` x g -
    (requests of a step) is the largest.
    """
    assert problem.steps is not None
    limit = np.minimum(problem.rate, problem.steps.room * (PER / max(time, 1.0)))
    sizes = np.arange(1, problem.most + 1, dtype=np.float64)
    flow = best_rates(_times(problem.steps), limit, worth * sizes)
    return problem.without_requests(np.minimum.accumulate(flow.astype(np.int64), axis=2))


def _times(steps: Steps) -> Times:
    return steps.reading, steps.token, steps.overhead, steps.work


def best_rates(times: Times, limit: Floats, worth: Floats) -> Floats:
    """The rates g of at most `limit` for which `worth` g - (requests of a step) is the largest."""
    a, b, c, d = (np.asarray(x, dtype=np.float64) for x in times)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Requests of a step are the larger of a g / (1 - b g) and c g / (1 - d g), where a >= c.
        change = np.where(a * d > c * b, (a - c) / (a * d - c * b), np.inf)
        first, second = (
            np.where(fixed <= worth, (1 - np.sqrt(fixed / worth)) / each, 0.0) for fixed, each in ((a, b), (c, d))
        )
    return _best_of_two(first, second, change, limit)


def best_rates_of_groups(times: Times, limit: Floats, worth: Floats, period: float) -> Floats:
    """The rates g of at most `limit` for which `worth` g - (requests in steps for all of a period) is the largest."""
    a, b, c, d = (np.asarray(x, dtype=np.float64) for x in times)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Requests in steps are the larger of g (a + b g period) and g (c + d g period), where a >= c.
        change = np.where(d > b, (a - c) / (d - b) / period, np.inf)
        first, second = (
            np.where(fixed < worth, (worth - fixed) / (2 * each * period), 0.0) for fixed, each in ((a, b), (c, d))
        )
    return _best_of_two(first, second, change, limit)


def _best_of_two(first: Floats, second: Floats, change: Floats, limit: Floats) -> Floats:
    """Where a concave function is the largest that is one of two, the second one beyond `change`; each of them is the
    largest at its own place."""
    free = np.where(first <= change, first, np.maximum(change, second)) * PER
    return np.minimum(np.where(np.isnan(free), np.inf, np.maximum(free, 0.0)), limit)


def step_requests(times: Times, flow: Floats) -> Floats:
    """The least requests of a step that passes a rate; infinite if none does."""
    found: Floats = flow / PER * _step_times(times, flow)
    return found


def _step_times(times: Times, flow: Floats) -> Floats:
    reading, token, overhead, work = times
    with np.errstate(divide="ignore", invalid="ignore"):
        found = [
            np.where(fixed > 0, np.where(flow * each < PER, fixed / (1 - flow * each / PER), np.inf), 0.0)
            for fixed, each in ((reading, token), (overhead, work))
        ]
    return np.maximum(*found)


def times_of(problem: Serving, begin: Int, end: Int) -> tuple[Int, Int, Int, Int, Int]:
    """(v,) room, and the times of steps, of each node with these layers; 0 for nodes without layers."""
    assert problem.steps is not None
    steps, used = problem.steps, end > begin
    first = np.zeros_like(begin) if problem.alike else begin
    place = problem.kind[used], first[used], (end - begin)[used] - 1
    found = []
    for table in (steps.room, steps.reading, steps.token, steps.overhead, steps.work):
        values = np.zeros(problem.n_nodes, dtype=np.int64)
        values[used] = table[place]
        found.append(values)
    return found[0], found[1], found[2], found[3], found[4]


def token_times(problem: Serving, begin: Int, edges: Int) -> Int:
    """(e,) picoseconds for each token on each edge; 0 without a limit."""
    limits = edge_limits(problem, begin, edges)
    return np.where(limits < UNLIMITED, PER // np.maximum(limits, 1), 0)


def decoding_flow(problem: Serving, plan: ServingPlan) -> tuple[Int, Int]:
    """(e, 2) edges and (e,) rates of tokens of answers, which the coordinator sends to the first node that decodes."""
    first, (u, w) = problem.prefill_layers, plan.edges.T
    if not first:
        return plan.edges, plan.flow
    chosen = (w == COORDINATOR) | (plan.begin[w] >= first)
    edges = np.stack([np.where(plan.begin[u] < first, COORDINATOR, u), w], axis=1)[chosen]
    edges, place = np.unique(edges, axis=0, return_inverse=True)
    flow = by_index(np.add, place.reshape(-1), plan.flow[chosen], len(edges))
    return edges, flow


def edge_delays(problem: Serving, edges: Int) -> Int:
    """(e,) latencies of edges, in picoseconds."""
    assert problem.steps is not None
    u, w = edges[:, 0], edges[:, 1]
    found = np.where(u == COORDINATOR, problem.steps.entry_delay[w], problem.steps.delay[u, w])
    return np.where(w == COORDINATOR, problem.steps.exit_delay[u], found)


def sustained(problem: Serving, plan: ServingPlan) -> ServingPlan:
    """The plan with the largest rate found whose flow has the proportions of a plan, and its groups of requests.

    For each number of groups, these are as large as the memory of the nodes allows.
    """
    steps = problem.steps
    assert steps is not None
    none = replace(plan, edges=plan.edges[:0], flow=plan.flow[:0])
    if not len(plan.flow):
        return none
    ways = _Ways(problem, plan)
    best, chosen = Fraction(0), (0, 0)
    groups, most = 0, 1
    while groups < most:
        groups += 1
        size = ways.largest(groups)
        if size:
            period, longest, step = ways.period(size, groups)
            if period <= LONGEST and Fraction(size, max(period, 1)) > best:
                best, chosen = Fraction(size, max(period, 1)), (groups, period)
            most = min(longest // max(step, 1) + 2, MOST_GROUPS)
    if not best:
        return none
    share = min(best * PER / ways.rate, Fraction(1))
    return replace(_scaled(plan, share), groups=chosen[0], period=chosen[1])


def grouped(problem: Serving, begin: Int, end: Int, groups: int, longest: int) -> ServingPlan:
    """The plan with the most whole requests in a group for these intervals, with steps of at most `longest` ps."""
    steps = problem.steps
    assert steps is not None
    size = _group_sizes(problem, begin, end, groups, longest)
    limit = LARGEST if steps.requests is None else steps.requests // groups
    unit = max(PER // max(longest, 1), 1)  # the rate of a request in each group
    plan = largest_flow(problem, begin, end, size, unit, limit)
    ways = _Ways(problem, plan)
    number = ways.rate // unit
    period = ways.period(Fraction(number), groups)[0] if number else 0
    passed, rates = ways.passed, node_rates(problem, begin, end).tolist()
    limits = edge_limits(problem, begin, plan.edges).tolist()
    for flow, most in [*zip(plan.flow.tolist(), limits, strict=True), *((x, rates[n]) for n, x in passed.items())]:
        period = max(period, -(-(flow // unit * PER) // most))
    if not number or period > LONGEST or (ways.most_time is not None and period * groups > ways.most_time):
        return replace(plan, edges=plan.edges[:0], flow=plan.flow[:0])
    period = max(period, 1)
    return replace(plan, flow=plan.flow // unit * (PER // period), groups=groups, period=period)


def _group_sizes(problem: Serving, begin: Int, end: Int, groups: int, longest: int) -> Int:
    """(v,) the most requests of a group that each node has memory and, in steps of at most `longest` ps, time for."""
    assert problem.steps is not None
    longest = min(longest, LARGEST)
    room, reading, token, overhead, work = times_of(problem, begin, end)
    batch = MOST_REQUESTS if problem.steps.batch is None else problem.steps.batch
    size = np.minimum(room // groups, np.where(begin < problem.prefill_layers, MOST_REQUESTS, batch))
    for fixed, each in ((reading, token), (overhead, work)):
        size = np.minimum(size, np.where(each > 0, (longest - fixed) // np.maximum(each, 1), size))
        size = np.where(fixed > longest, 0, size)
    # Nodes with measured rates, and for prefill, take no time for steps; the period is made long enough for all later.
    most = node_rates(problem, begin, end) * (longest / PER) * (1 + 1e-5) + 1e-5
    return np.maximum(np.minimum(size, most.astype(np.int64)), 0)


def best_groups(problem: Serving, begin: Int, end: Int) -> ServingPlan:
    """The best plan found for these intervals: the largest flow if nodes share no requests."""
    best = best_flow(problem, begin, end)
    if problem.steps is None:
        return best
    best = sustained(problem, best)
    time = best.token_time or int(times_of(problem, begin, end)[1].max(initial=1)) * problem.n_nodes
    for shares in (WIDE, NEAR):
        for groups in GROUPS:
            if groups <= problem.n_nodes + 1:
                for share in shares:
                    found = grouped(problem, begin, end, groups, int(time / groups * share))
                    best = max(best, found, key=lambda plan: plan.rate)
        time = best.token_time or time
    return best


def step_lengths(problem: Serving, begin: Int, end: Int) -> list[int] | None:
    """The different times of steps for 1, 2, ... requests, in ps; None if the nodes hold more than a few requests."""
    room, reading, token, overhead, work = times_of(problem, begin, end)
    room = np.where(begin < problem.prefill_layers, 0, room)
    if int(room.sum()) > FEW_REQUESTS:
        return None
    return sorted({
        max(a + k * b, c + k * d)
        for most, a, b, c, d in zip(*(x.tolist() for x in (room, reading, token, overhead, work)), strict=True)
        for k in range(1, most + 1)
    })  # fmt: skip


def able_rates(problem: Serving, plan: ServingPlan) -> Floats:
    """(v,) what each node can pass: with groups of requests, in steps of a period and with its memory."""
    if not plan.groups:
        return node_rates(problem, plan.begin, plan.end).astype(np.float64)
    size = _group_sizes(problem, plan.begin, plan.end, plan.groups, plan.period)
    passed = size.astype(np.float64) * (PER / max(plan.period, 1))
    return np.where(plan.begin < problem.prefill_layers, node_rates(problem, plan.begin, plan.end), passed)


def node_steps(problem: Serving, plan: ServingPlan) -> tuple[Int, Int]:
    """(v,) the most requests in a step of each node, and the ps that it takes; 0 for nodes that do not decode."""
    requests, taken = np.zeros((2, problem.n_nodes), dtype=np.int64)
    for n, (passed, _, reading, token, overhead, work) in _Ways(problem, plan).nodes.items():
        requests[n] = number = -(-passed * plan.period // PER)
        taken[n] = max(reading + number * token, overhead + number * work)
    return requests, taken


class _Ways:
    """Times of the ways of tokens through the nodes of a plan, for groups of requests of any size."""

    def __init__(self, problem: Serving, plan: ServingPlan) -> None:
        assert problem.steps is not None
        self.steps = problem.steps
        passed = [0] * problem.n_nodes
        self.rate = 0
        for (_, w), x in zip(plan.edges.tolist(), plan.flow.tolist(), strict=True):
            if w == COORDINATOR:
                self.rate += x
            else:
                passed[w] += x
        self.passed = {n: x for n, x in enumerate(passed) if x}  # by each node
        tables = [table.tolist() for table in times_of(problem, plan.begin, plan.end)]
        self.nodes = {
            n: (x, *(table[n] for table in tables))
            for n, x in self.passed.items()
            if plan.begin[n] >= problem.prefill_layers
        }  # passed, room, times of steps
        pairs, rates = decoding_flow(problem, plan)
        edges, flow, delay = pairs.tolist(), rates.tolist(), edge_delays(problem, pairs).tolist()
        ends = [problem.layers + 1 if w == COORDINATOR else int(plan.end[w]) for _, w in edges]
        order = sorted(range(len(edges)), key=ends.__getitem__)
        each = token_times(problem, plan.begin, pairs).tolist()
        self.edges = [(*edges[e], flow[e], delay[e], each[e]) for e in order if flow[e]]
        self.most_time = most_token_time(problem, plan)

    def largest(self, groups: int) -> Fraction:
        """The most requests in a group, on average: all groups together have a whole number."""
        most = MOST_REQUESTS if self.steps.batch is None else self.steps.batch
        limits = [Fraction(min(room // groups, most) * self.rate, x) for x, room, *_ in self.nodes.values()]
        if self.steps.requests is not None:
            limits.append(Fraction(self.steps.requests, groups))
        size = Fraction(int(min(limits) * groups), groups)
        longest = self.most_time
        if longest is None or not size or self.period(size, groups)[0] * groups <= longest:
            return size
        low, high = 0, int(size * groups)
        while high - low > 1:
            middle = (low + high) // 2
            fits = self.period(Fraction(middle, groups), groups)[0] * groups <= longest
            low, high = (middle, high) if fits else (low, middle)
        return Fraction(low, groups)

    def period(self, size: Fraction, groups: int) -> tuple[int, int, int]:
        """The time between two groups, the longest way of a token, and the longest step, in ps."""
        taken = {}
        whole, parts = size.numerator, size.denominator * self.rate
        for n, (passed, _, reading, token, overhead, work) in self.nodes.items():
            number = -(-whole * passed // parts)
            taken[n] = max(reading + number * token, overhead + number * work)
        reached = {COORDINATOR: 0}
        longest = 0
        for u, w, passed, delay, each in self.edges:
            at = reached[u] + delay + each * -(-whole * passed // parts)
            if w == COORDINATOR:
                longest = max(longest, at)
            else:
                reached[w] = max(reached.get(w, 0), at + taken[w])
        step = max(taken.values())
        return max(step, -(-longest // groups)), longest, step


def _scaled(plan: ServingPlan, share: Fraction) -> ServingPlan:
    """The plan with a share of its flow on each way, rounded down."""
    scaled = [0] * len(plan.flow)
    for way, amount in ways_of(plan):
        for e in way:
            scaled[e] += int(amount * share)
    flow = np.array(scaled, dtype=np.int64)
    return replace(plan, edges=plan.edges[flow > 0], flow=flow[flow > 0])
