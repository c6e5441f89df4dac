"""The steady state of a plan: tokens pass nodes and links, each of which serves one token at a time.

Tokens enter at the rate of the plan, at equal distances. Where they have a choice, each takes the edge that has fallen
behind its share most. A plan whose flow is sound returns tokens at its rate, and queues stay short.

If nodes share the requests in flight, groups of whole requests enter one period after another. A node computes a step
for the requests of a group as soon as all of them have arrived and it is idle. Requests stay on their ways.

If prefill is separate, each request of a group is followed by another one on its route when its answer is complete. The
prompts of the next ones are processed, and their KV caches sent, meanwhile; if that takes longer, a place stays empty.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.errors import UsageError
from placeopt.model.arrays import checked_whole
from placeopt.serving.in_flight import decoding_flow, edge_delays, times_of, token_times
from placeopt.serving.plan import COORDINATOR, Replicas, ServingPlan, edge_limits, node_rates
from placeopt.serving.prefill import Route, interval_time, link_time, passed_layers, transfers
from placeopt.serving.problem import SECOND, TOKEN, Prompts, Serving
from placeopt.serving.verification import verify_replicas, verify_serving


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
    if problem.steps is not None and problem.prompts is not None and problem.prefill_layers:
        ahead = 1 + (report.first_token or 0) // max(problem.prompts.answer * plan.token_time, 1)
        return _of_routes(problem, problem.prompts, plan, tokens, ahead)
    if problem.prefill_layers:
        raise UsageError("the plan cannot be simulated: nodes have rates alone, which say nothing of prompts")
    if problem.steps is not None:
        return _of_groups(problem, plan, tokens)
    return _of_tokens(problem, plan, tokens)


def simulate_replicas(problem: Serving, replicas: Replicas, *, tokens: int = 20_000) -> list[SteadyState]:
    """Simulate each replica; raises a UsageError if replicas share nodes or are too many, or as `simulate_serving`."""
    for _, message in verify_replicas(problem, replicas).violations[:1]:
        raise UsageError(f"the plan cannot be simulated: {message}")
    if not replicas:
        raise UsageError("the plan cannot be simulated: it has no replica")
    return [simulate_serving(problem.part(nodes), plan, tokens=tokens) for nodes, plan in replicas]


def _of_tokens(problem: Serving, plan: ServingPlan, tokens: int) -> SteadyState:
    """Tokens enter at the rate of the plan, at equal distances."""
    # A node or a link needs this time for a token. The coordinator is the last node.
    on_node = np.append(TOKEN / np.maximum(node_rates(problem, plan.begin, plan.end), 1), 0.0).tolist()
    on_edge = (TOKEN / edge_limits(problem, plan.begin, plan.edges)).tolist()
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


class _Turns:
    """Chooses by turns: what has fallen behind its share most."""

    def __init__(self, rates: Sequence[int]) -> None:
        self._share = [rate / sum(rates) for rate in rates]
        self._behind = [0.0] * len(rates)

    def next(self) -> int:
        """The next number."""
        for k, share in enumerate(self._share):
            self._behind[k] += share
        chosen = max(range(len(self._behind)), key=self._behind.__getitem__)
        self._behind[chosen] -= 1
        return chosen


class _Router:
    """Chooses an edge by turns."""

    def __init__(self, plan: ServingPlan) -> None:
        self._out: dict[int, list[int]] = {}
        for edge, (sender, _) in enumerate(plan.edges.tolist()):
            self._out.setdefault(sender, []).append(edge)
        self._turns = {n: _Turns([int(plan.flow[edge]) for edge in edges]) for n, edges in self._out.items()}

    def next(self, n: int) -> int:
        """The next edge from a node."""
        return self._out[n][self._turns[n].next()]


class _Decoding:
    """Steps of groups of requests on nodes and links."""

    def __init__(self, problem: Serving, plan: ServingPlan) -> None:
        edges, _ = decoding_flow(problem, plan)
        self.edges = edges.tolist()
        self._delay, self._each = edge_delays(problem, edges).tolist(), token_times(problem, plan.begin, edges).tolist()
        self._ends = np.append(plan.end, problem.layers + 1).tolist()
        self._tables = [table.tolist() for table in times_of(problem, plan.begin, plan.end)[1:]]
        self._free_edge, self._free = [0] * len(edges), dict[int, int]()
        self._returned: list[tuple[int, int]] = []
        self.most = 0

    def steps(self, on_edge: Mapping[int, int]) -> list[tuple[int, int, list[tuple[int, int]]]]:
        """Nodes in their order, with their requests, and the edges on which these come, of a group with a number of
        requests on each edge."""
        into: dict[int, list[tuple[int, int]]] = {}
        held: dict[int, int] = {}
        for edge, count in on_edge.items():
            w = self.edges[edge][1]
            into.setdefault(w, []).append((edge, count))
            held[w] = held.get(w, 0) + count
        self.most = max(self.most, max(held.values(), default=0))
        return [(w, held[w], into[w]) for w in sorted(into, key=self._ends.__getitem__)]

    def tokens(self, steps: list[tuple[int, int, list[tuple[int, int]]]], begun: int) -> int:
        """When all requests of a group have a token, for which their steps begin at a time."""
        done, tables = {COORDINATOR: begun}, self._tables
        for w, count, edges in steps:
            arrived = 0
            for edge, sent in edges:
                at = max(done[self.edges[edge][0]], self._free_edge[edge]) + sent * self._each[edge]
                self._free_edge[edge] = at
                arrived = max(arrived, at + self._delay[edge])
            if w == COORDINATOR:
                begun = arrived
                self._returned.append((arrived, count))
                continue
            step = max(tables[0][w] + count * tables[1][w], tables[2][w] + count * tables[3][w])
            self._free[w] = done[w] = max(arrived, self._free.get(w, 0)) + step
        return begun

    def state(self, plan: ServingPlan) -> SteadyState:
        """The rate of the second half of all groups that returned."""
        half = sorted(self._returned)[len(self._returned) // 2 :]
        between = half[-1][0] - half[0][0]
        rate = TOKEN * SECOND * sum(count for _, count in half[1:]) / between if between else float(plan.rate)
        return SteadyState(rate, self.most)


def _numbers(plan: ServingPlan) -> list[int]:
    """Requests of each group."""
    return [(k + 1) * plan.requests // plan.groups - k * plan.requests // plan.groups for k in range(plan.groups)]


def _of_groups(problem: Serving, plan: ServingPlan, tokens: int) -> SteadyState:
    """Groups of requests enter one after another; each request gets its next token when all of its group have one."""
    router, decoding, numbers = _Router(plan), _Decoding(problem, plan), _numbers(plan)
    groups = []
    for number in numbers:
        on_edge: Counter[int] = Counter()
        for _ in range(number):
            n, edge = COORDINATOR, -1
            while edge < 0 or n != COORDINATOR:
                edge = router.next(n)
                on_edge[edge] += 1
                n = int(plan.edges[edge, 1])
        groups.append(decoding.steps(on_edge))
    begun = [k * plan.period for k in range(plan.groups)]
    for _ in range(max(20, -(-tokens // max(sum(numbers), 1)))):
        for group, steps in enumerate(groups):
            begun[group] = decoding.tokens(steps, begun[group])
    return decoding.state(plan)


def _of_routes(problem: Serving, prompts: Prompts, plan: ServingPlan, tokens: int, ahead: int) -> SteadyState:
    """The same if prefill is separate: each request of a group ends after its answer, and another one follows, whose
    prompt arrives `ahead` answers before."""
    decoding, prefill, numbers = _Decoding(problem, plan), _Prefill(problem, prompts, plan), _numbers(plan)
    turns, answer = _Turns([rate for _, rate in plan.routes]), prompts.answer
    place = {(u, w): edge for edge, (u, w) in enumerate(decoding.edges)}
    ways = []
    for route, _ in plan.routes:
        own = [n for n in route if plan.begin[n] >= problem.prefill_layers]
        ways.append([place[edge] for edge in zip((COORDINATOR, *own), (*own, COORDINATOR), strict=True)])
    # Places of requests: group and route. Requests have different parts of their answers at first.
    ages = sorted((j * plan.groups + k, k) for k, number in enumerate(numbers) for j in range(number))
    places = [(k, turns.next()) for _, k in ages]
    ready = [deque[int]() for _ in ways]  # by route
    for _ in range(ahead):
        for _, way in places:
            ready[way].append(prefill.ready(plan.routes[way][0], plan, 0))
    active: list[Counter[int]] = [Counter() for _ in numbers]
    ending: list[dict[int, list[int]]] = [{} for _ in numbers]  # routes of requests, by group and round
    for k, (group, way) in enumerate(places):
        active[group].update(ways[way])
        ending[group].setdefault(1 + k * answer // len(places), []).append(way)
    begun, waiting = [k * plan.period for k in range(plan.groups)], [list[int]() for _ in numbers]
    turn = [0] * plan.groups
    for _ in range(plan.groups * max(20, 2 * answer, -(-tokens // max(sum(numbers), 1)))):
        now, group = min(zip(begun, range(plan.groups), strict=True))
        turn[group] += 1
        ended = ending[group].pop(turn[group], [])
        for way in ended:
            active[group].subtract(ways[way])
        free, waiting[group] = waiting[group] + ended, []
        for way in free:
            if ready[way][0] > now:
                waiting[group].append(way)
                continue
            active[group].update(ways[way])
            ending[group].setdefault(turn[group] + answer, []).append(way)
            ready[way].popleft()
            ready[way].append(prefill.ready(plan.routes[way][0], plan, now))
        idle = min((ready[way][0] for way in waiting[group]), default=now + plan.period)
        steps = decoding.steps(+active[group])
        begun[group] = decoding.tokens(steps, now) if steps else idle
    return decoding.state(plan)


class _Prefill:
    """Prompts on their routes: nodes and links serve one after another."""

    def __init__(self, problem: Serving, prompts: Prompts, plan: ServingPlan) -> None:
        self.problem, self.prompts = problem, prompts
        self._free: dict[tuple[int, ...], int] = {}
        limits = edge_limits(problem, plan.begin, plan.edges).tolist()
        self._limits = {(u, w): limit for (u, w), limit in zip(plan.edges.tolist(), limits, strict=True)}

    def ready(self, route: Route, plan: ServingPlan, at: int) -> int:
        """When decoding of a request may begin that arrives at a time."""
        steps, before = self.problem.steps, COORDINATOR
        assert steps is not None
        for w, begin, end in passed_layers(self.problem, plan, route)[0]:
            at = self._served(at, link_time(self.prompts, self._limits[before, w]), before, w)
            at += int(steps.entry_delay[w] if before == COORDINATOR else steps.delay[before, w])
            at = self._served(at, interval_time(self.problem, self.prompts, w, begin, end), w)
            before = w
        arrived = at
        for u, w, size in transfers(self.problem, self.prompts, plan, route):
            assert self.prompts.transfer is not None
            sent = self._served(at, -(-size * SECOND // int(self.prompts.transfer[u, w])), u, w)
            arrived = max(arrived, sent + int(steps.delay[u, w]))
        return arrived

    def _served(self, at: int, time: int, *place: int) -> int:
        """When a node or a link that is busy until then ends what takes a time."""
        end = max(at, self._free.get(place, 0)) + time
        self._free[place] = end
        return end
