"""The steady state of a plan: tokens pass nodes and links, each of which serves one token at a time.

Tokens enter at the rate of the plan, at equal distances. Where they have a choice, each takes the edge that has fallen
behind its share most. A plan whose flow is sound returns tokens at its rate, and queues stay short.

If nodes share the requests in flight, groups of whole requests enter one period after another. A node computes a step
for the requests of a group as soon as all of them have arrived and it is idle. Requests stay on their ways.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from placeopt.errors import UsageError
from placeopt.model.arrays import checked_whole
from placeopt.serving.in_flight import edge_delays, times_of, token_times
from placeopt.serving.plan import COORDINATOR, ServingPlan, edge_limits, node_rates
from placeopt.serving.problem import SECOND, TOKEN, Serving
from placeopt.serving.verification import verify_serving


@dataclass(frozen=True, slots=True)
class SteadyState:
    """What a simulation measured.

    Attributes
    ----------
    rate
        Tokens that returned in the second half of the time in which tokens enter, in millionths per second.
    waiting
        The most tokens that waited for a node at a time.
    """

    rate: float
    waiting: int


def simulate_serving(problem: Serving, plan: ServingPlan, *, tokens: int = 20_000) -> SteadyState:
    """Simulate a number of tokens.

    Raises
    ------
    UsageError
        If the plan breaks a rule or passes no tokens, or an argument is out of range.
    """
    tokens = checked_whole("tokens", tokens, 1, 10**6)
    report = verify_serving(problem, plan)
    if report.violations or not report.rate:
        why = report.violations[0][1] if report.violations else "it passes no tokens"
        raise UsageError(f"the plan cannot be simulated: {why}")
    if problem.steps is not None:
        return _of_groups(problem, plan, tokens)
    return _of_tokens(problem, plan, tokens)


def _of_tokens(problem: Serving, plan: ServingPlan, tokens: int) -> SteadyState:
    """Tokens enter at the rate of the plan, at equal distances."""
    # A node or a link needs this time for a token. The coordinator is the last node.
    on_node = np.append(TOKEN / np.maximum(node_rates(problem, plan.begin, plan.end), 1), 0.0).tolist()
    on_edge = (TOKEN / edge_limits(problem, plan.edges)).tolist()
    router = _Router(plan)
    free_edge = [0.0] * len(plan.flow)
    free_node, queued = [0.0] * (problem.n_nodes + 1), [0] * problem.n_nodes
    distance, waiting = TOKEN / plan.rate, 0
    events = [(k * distance, 0, k, COORDINATOR) for k in range(tokens)]  # arrival, whether served, token, node
    returned = []
    while events:
        now, served, token, n = heapq.heappop(events)
        if n >= 0 and not served:
            queued[n] += 1
            waiting = max(waiting, queued[n] - 1)
            free_node[n] = max(now, free_node[n]) + on_node[n]
            heapq.heappush(events, (free_node[n], 1, token, n))
            continue
        if n >= 0:
            queued[n] -= 1
        chosen = router.next(n)
        free_edge[chosen] = max(now, free_edge[chosen]) + on_edge[chosen]
        to = int(plan.edges[chosen, 1])
        if to == COORDINATOR:
            returned.append(free_edge[chosen])
        else:
            heapq.heappush(events, (free_edge[chosen], 0, token, to))
    entered = tokens * distance  # the time after which no token enters
    counted = sum(entered / 2 < end <= entered for end in returned)
    rate = TOKEN * counted / (entered / 2)
    return SteadyState(rate, waiting)


class _Router:
    """Chooses an edge: the one that has fallen behind its share most."""

    def __init__(self, plan: ServingPlan) -> None:
        self._out: dict[int, list[int]] = {}
        for edge, (sender, _) in enumerate(plan.edges.tolist()):
            self._out.setdefault(sender, []).append(edge)
        total = {n: sum(int(plan.flow[edge]) for edge in edges) for n, edges in self._out.items()}
        self._share = [int(plan.flow[edge]) / total[sender] for edge, (sender, _) in enumerate(plan.edges.tolist())]
        self._behind = [0.0] * len(self._share)

    def next(self, n: int) -> int:
        """The next edge from a node."""
        for edge in self._out[n]:
            self._behind[edge] += self._share[edge]
        chosen = max(self._out[n], key=self._behind.__getitem__)
        self._behind[chosen] -= 1
        return chosen


def _of_groups(problem: Serving, plan: ServingPlan, tokens: int) -> SteadyState:
    """Groups of requests enter one after another; each request gets its next token when all of its group have one."""
    router = _Router(plan)
    numbers = [(k + 1) * plan.requests // plan.groups - k * plan.requests // plan.groups for k in range(plan.groups)]
    delay, each = (of(problem, plan.edges).tolist() for of in (edge_delays, token_times))
    ends = np.append(plan.end, problem.layers + 1).tolist()
    tables = [table.tolist() for table in times_of(problem, plan.begin, plan.end)[1:]]
    groups: list[list[tuple[int, int, list[tuple[int, int]]]]] = []  # by group: node, requests, edges and requests
    waiting = 0
    for number in numbers:
        on_edge = dict[int, int]()
        for _ in range(number):
            n, edge = COORDINATOR, -1
            while edge < 0 or n != COORDINATOR:
                edge = router.next(n)
                on_edge[edge] = on_edge.get(edge, 0) + 1
                n = int(plan.edges[edge, 1])
        into: dict[int, list[tuple[int, int]]] = {}
        held: dict[int, int] = {}
        for edge, count in on_edge.items():
            w = int(plan.edges[edge, 1])
            into.setdefault(w, []).append((edge, count))
            held[w] = held.get(w, 0) + count
        waiting = max(waiting, max(held.values(), default=0))
        groups.append([(w, held[w], into[w]) for w in sorted(into, key=lambda w: ends[w])])
    senders, free_edge = plan.edges[:, 0].tolist(), [0] * len(each)
    free, begun = dict[int, int](), [k * plan.period for k in range(plan.groups)]
    rounds = max(20, -(-tokens // max(sum(numbers), 1)))
    returned: list[tuple[int, int]] = []
    for _ in range(rounds):
        for group, nodes in enumerate(groups):
            done = {COORDINATOR: begun[group]}
            for w, count, edges in nodes:
                arrived = 0
                for edge, sent in edges:
                    free_edge[edge] = max(done[senders[edge]], free_edge[edge]) + sent * each[edge]
                    arrived = max(arrived, free_edge[edge] + delay[edge])
                if w == COORDINATOR:
                    begun[group] = arrived
                    returned.append((arrived, count))
                    continue
                step = max(tables[0][w] + count * tables[1][w], tables[2][w] + count * tables[3][w])
                free[w] = done[w] = max(arrived, free.get(w, 0)) + step
    half = sorted(returned)[len(returned) // 2 :]
    between = half[-1][0] - half[0][0]
    rate = TOKEN * SECOND * sum(count for _, count in half[1:]) / between if between else float(plan.rate)
    return SteadyState(rate, waiting)
