"""Prefill: the time to the first token, and the transfer of the KV cache to nodes that decode.

With mixed prefill, a node processes a prompt within a step of its group. With separate prefill, some nodes process
prompts, one at a time, and others decode, so that neither waits for the other (Y. Zhong et al., DistServe, OSDI 2024;
P. Patel et al., Splitwise, ISCA 2024, doi:10.1109/ISCA59077.2024.00019). A request has a route: nodes that process its
prompt, and then nodes that decode. Each layer of its KV cache goes from the node that computed it to the one that
decodes with it.

Searches plan without this transfer. `routed` then chooses routes for the flow of a plan by a linear program, whose rate
is smaller where links do not pass the transfer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Any

import numpy as np
from ortools.math_opt.python import mathopt

from placeopt.serving.plan import COORDINATOR, ServingPlan, edge_limits, ways_of
from placeopt.serving.problem import SECOND, TOKEN, UNLIMITED, Prompts, Serving

MOST_WAYS = 30
"""The most ways through the nodes of a phase that are combined to routes, besides those of the flow."""

MOST_PAIRS = 2_000
"""About the most routes among which a linear program chooses."""

Route = tuple[int, ...]
"""Nodes of a request in their order."""

Link = tuple[str, int, int]
"""What limits routes: the flow between two nodes, what enters decoding, or the transfer between two nodes."""


def quick(problem: Serving, share: float | None = None) -> Serving:
    """The problem without intervals on which a prompt takes longer than the limit of the time to the first token.

    With `share`, it may take this share of the limit for all layers, and less for fewer.
    """
    prompts = problem.prompts
    if prompts is None or prompts.limit is None:
        return problem
    rows, most = prompts.time.shape[1:]
    part = 1.0 if share is None else share * np.arange(1, most + 1) / (problem.prefill_layers or problem.layers)
    rate = problem.rate.copy()
    rate[:, :rows][prompts.time > part * prompts.limit] = 0
    return replace(problem, rate=np.minimum.accumulate(rate, axis=2))


def most_token_time(problem: Serving, plan: ServingPlan) -> int | None:
    """The longest time between two tokens of a request with which a plan keeps all limits of time; None without one."""
    assert problem.steps is not None
    prompts, longest = problem.prompts, problem.steps.token_time
    if prompts is None or prompts.limit is None:
        return longest
    left = prompts.limit - prompt_time(problem, prompts, plan)
    return left if longest is None else min(left, longest)


def prompt_time(problem: Serving, prompts: Prompts, plan: ServingPlan) -> int:
    """At most how many picoseconds pass from the arrival of a request to its first step of decoding.

    With mixed prefill, it is how much longer the prompt takes than a token that is decoded.
    """
    assert problem.steps is not None
    first, edges = problem.prefill_layers, plan.edges.tolist()
    limits = edge_limits(problem, plan.begin, plan.edges).tolist()
    ends = [0, *plan.end.tolist(), 0]
    reached, longest = {COORDINATOR: 0}, 0
    for e in sorted(range(len(edges)), key=lambda e: plan.end[edges[e][1]] if edges[e][1] >= 0 else problem.layers + 1):
        u, w = edges[e]
        if w == COORDINATOR or (first and plan.begin[w] >= first):
            longest = max(longest, reached.get(u, 0))
            continue
        at = reached.get(u, 0) + interval_time(problem, prompts, w, ends[u + 1] if u >= 0 else 0, int(plan.end[w]))
        at += link_time(prompts, limits[e])
        if first:
            at += int(problem.steps.entry_delay[w] if u == COORDINATOR else problem.steps.delay[u, w])
        reached[w] = max(reached.get(w, 0), at)
    return longest + (_slowest_transfer(problem, prompts, plan) if first else 0)


def least_prompt_time(problem: Serving, prompts: Prompts) -> float:
    """Picoseconds that nodes need for a prompt at least: on the quickest ones for all layers."""
    sizes, present = np.arange(1, prompts.time.shape[2] + 1), problem.counts > 0
    each = np.where((prompts.time > 0) & present[:, None, None], prompts.time / sizes, np.inf)
    return float(each.min()) * (problem.layers - problem.prefill_layers) * (1 - 1e-9)


def interval_time(problem: Serving, prompts: Prompts, n: int, begin: int, end: int) -> int:
    """Picoseconds in which a node processes the layers of an interval for a prompt."""
    rows = prompts.time.shape[1]
    return int(prompts.time[problem.kind[n], begin if rows > 1 else 0, end - begin - 1])


def link_time(prompts: Prompts, rate: int) -> int:
    """Picoseconds of a prompt on a link with a rate in tokens of answers."""
    if rate >= UNLIMITED:
        return 0
    whole = -(-prompts.answer * TOKEN * SECOND // max(rate, 1))
    return whole if prompts.separate else -(-whole * prompts.tokens // (prompts.tokens + prompts.answer))


def _slowest_transfer(problem: Serving, prompts: Prompts, plan: ServingPlan) -> int:
    """At most how many picoseconds a transfer from a node for prefill to one that decodes takes."""
    assert problem.steps is not None
    if prompts.cache is None or prompts.transfer is None:
        return 0
    first, used = problem.prefill_layers, np.unique(plan.edges[plan.edges >= 0])
    one, other = used[plan.begin[used] < first], used[plan.begin[used] >= first]
    sums = np.concatenate([[0], np.cumsum(prompts.cache)])
    begin = np.maximum(plan.begin[one][:, None], plan.begin[other][None, :] - first)
    end = np.minimum(plan.end[one][:, None], plan.end[other][None, :] - first)
    size = np.where(end > begin, sums[np.minimum(end, first)] - sums[np.minimum(begin, first)], 0)
    links = prompts.transfer[np.ix_(one, other)]
    sent = np.ceil(size * (SECOND * (1 + 1e-12)) / np.maximum(links, 1))
    time = problem.steps.delay[np.ix_(one, other)] + np.where(links < UNLIMITED, sent, 0)
    return int(time[(size > 0) & (links > 0)].max(initial=0))


def routed(problem: Serving, plan: ServingPlan) -> ServingPlan:
    """The plan with routes for its flow, and with less flow where links do not pass the KV cache."""
    prompts = problem.prompts
    if prompts is None or prompts.cache is None:
        return plan
    routes = [(tuple(plan.edges[way[:-1], 1].tolist()), rate) for way, rate in ways_of(plan)]
    links = _Links(problem, prompts, plan)
    if any(links.take(route, rate) < rate for route, rate in routes):
        routes = _joined(_Links(problem, prompts, plan), plan, routes)
    total: Counter[tuple[int, int]] = Counter()
    for route, rate in routes:
        total.update(dict.fromkeys(zip((COORDINATOR, *route), (*route, COORDINATOR), strict=True), rate))
    edges = np.array(sorted(total), dtype=np.int64).reshape(-1, 2)
    flow = np.array([total[u, w] for u, w in edges.tolist()], dtype=np.int64)
    return replace(plan, edges=edges, flow=flow, routes=tuple(routes))


def passed_layers(
    problem: Serving, plan: ServingPlan, route: Route
) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    """The nodes of a route with the first layer that each of them computes, and its end: of prefill, and of decoding.

    Layers are those of the model. A node computes what is left for it of its interval.
    """
    found: tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]] = ([], [])
    for n in route:
        decodes = int(plan.begin[n] >= problem.prefill_layers)
        own = found[decodes]
        own.append((n, own[-1][2] if own else 0, int(plan.end[n]) - problem.prefill_layers * decodes))
    return found


def transfers(problem: Serving, prompts: Prompts, plan: ServingPlan, route: Route) -> list[tuple[int, int, int]]:
    """Parts of the KV cache of a request: from a node, to a node, and the bytes."""
    assert prompts.cache is not None
    found = []
    for (u, begin, end), (w, after, last) in product(*passed_layers(problem, plan, route)):
        size = int(prompts.cache[max(begin, after) : max(min(end, last), 0)].sum())
        if size:
            found.append((u, w, size))
    return found


class _Links:
    """What each route uses of links, in whole numbers, and what is left."""

    def __init__(self, problem: Serving, prompts: Prompts, plan: ServingPlan) -> None:
        self.problem, self.prompts, self._plan = problem, prompts, plan
        self._uses: dict[Route, dict[Link, int]] = {}
        self.left: dict[Link, int] = {
            ("flow", u, w): rate for (u, w), rate in zip(plan.edges.tolist(), plan.flow.tolist(), strict=True)
        }
        self.decodes = (plan.begin >= problem.prefill_layers).tolist()

    def uses(self, route: Route) -> dict[Link, int]:
        """What a route uses of each link for one unit of its rate."""
        if route not in self._uses:
            assert self.prompts.transfer is not None
            found: dict[Link, int] = {}
            for u, w in zip((COORDINATOR, *route), (*route, COORDINATOR), strict=True):
                if u != COORDINATOR and w != COORDINATOR and self.decodes[w] and not self.decodes[u]:
                    found["entry", COORDINATOR, w] = 1
                    self.left.setdefault(("entry", COORDINATOR, w), int(self.problem.entry[w]))
                else:
                    found["flow", u, w] = 1
            for u, w, size in transfers(self.problem, self.prompts, self._plan, route):
                most = int(self.prompts.transfer[u, w])
                if most < UNLIMITED:
                    found["transfer", u, w] = size
                    self.left.setdefault(("transfer", u, w), most * self.prompts.answer * TOKEN)
            self._uses[route] = found
        return self._uses[route]

    def most(self, route: Route) -> int:
        """The largest rate of a route that the links pass with what is left."""
        return min(self.left[link] // amount for link, amount in self.uses(route).items())

    def take(self, route: Route, most: int) -> int:
        """The rate of a route, at most `most`, that the links pass; it is subtracted from what is left."""
        rate = min(most, self.most(route))
        for link, amount in self.uses(route).items():
            self.left[link] -= rate * amount
        return rate


def _joined(links: _Links, plan: ServingPlan, routes: Sequence[tuple[Route, int]]) -> list[tuple[Route, int]]:
    """Routes with the largest sum of rates among those that join ways of both phases."""
    after: dict[int, list[int]] = {}
    for u, w in plan.edges.tolist():
        after.setdefault(u, []).append(w)

    def ways(n: int, decodes: bool) -> Iterator[Route]:
        """Ways from a node on through nodes of its phase."""
        for w in after[n]:
            if w == COORDINATOR or links.decodes[w] != decodes:
                yield (n,)
                return
            yield from ((n, *way) for way in ways(w, decodes))

    borders = [(route, sum(not links.decodes[n] for n in route)) for route, _ in routes]
    starts, ends = (
        list(dict.fromkeys([*own, *islice((way for n in firsts for way in ways(n, decodes)), MOST_WAYS)]))
        for own, firsts, decodes in (
            ([route[:k] for route, k in borders], after[COORDINATOR], False),
            ([route[k:] for route, k in borders], sorted({route[k] for route, k in borders}), True),
        )
    )
    each = max(MOST_PAIRS // len(starts), 1)
    pairs = [start + ends[(k + j) % len(ends)] for k, start in enumerate(starts) for j in range(min(each, len(ends)))]
    pairs = [pair for pair in dict.fromkeys([*(route for route, _ in routes), *pairs]) if links.most(pair)]
    model, rows, total = mathopt.Model(), dict[Link, list[Any]](), max(plan.rate, 1)
    amounts = [model.add_variable(lb=0.0, ub=1.0) for _ in pairs]
    for pair, x in zip(pairs, amounts, strict=True):
        for link, amount in links.uses(pair).items():
            rows.setdefault(link, []).append(amount * total / max(links.left[link], 1) * x)
    for terms in rows.values():
        model.add_linear_constraint(mathopt.LinearSum(terms) <= 1.0)
    model.maximize(mathopt.LinearSum(amounts))
    result = mathopt.solve(model, mathopt.SolverType.GLOP)
    optimal = result.termination.reason == mathopt.TerminationReason.OPTIMAL
    wanted = [int(float(result.variable_values(x)) * total) if optimal else 0 for x in amounts]
    order = sorted(range(len(pairs)), key=lambda k: -wanted[k])
    rates = [0] * len(pairs)
    for most in (wanted, [total] * len(pairs)):  # then what rounding left
        for k in order:
            rates[k] += links.take(pairs[k], most[k])
    return [(pair, rate) for pair, rate in zip(pairs, rates, strict=True) if rate]
