"""The rules of plans, and the proof that a flow is the largest for its intervals.

| rule | content |
|---|---|
| `interval` | the layers of a node are an interval of layers that it can hold |
| `edge` | tokens go from a node to one that continues: it holds the next layer, and ends later |
| `link` | no link carries more than its rate |
| `node` | no node passes more than its rate |
| `balance` | what enters a node leaves it |
| `replica` | replicas are no more than allowed, and share no node |
| `requests` | each request gets its next token in time, and nodes have memory for the tokens of requests |
| `routes` | if prefill is separate: routes of requests add up to the flow |
| `transfer` | no link carries more bytes of the KV cache per second than its bandwidth |
| `first token` | each request gets its first token in time |

Nothing here is shared with what finds plans. The largest flow is the least capacity of a cut (L. R. Ford, D. R.
Fulkerson, Canadian Journal of Mathematics 1956). The nodes and links that the flow fills are found by a search in the
residual network, and form such a cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from placeopt.model.arrays import Int, checked_whole, whole_numbers
from placeopt.serving.plan import COORDINATOR, Replicas, ServingPlan, check_plan, check_replicas
from placeopt.serving.problem import LARGEST, SECOND, TOKEN, UNLIMITED, Prompts, Serving, check_serving


@dataclass(frozen=True, slots=True)
class ServingReport:
    """What the verifier found: the rate in millionths of a token per second, and broken rules as (rule, message)."""

    rate: int
    violations: tuple[tuple[str, str], ...]
    largest: bool
    """Whether no flow is larger with the same intervals. False if nodes share requests: it is not decided then."""
    first_token: int | None = None
    """Picoseconds from the arrival of a request to its first token, on the slowest way and without queues; None if
    prompts are left out, or a rule is broken."""

    @property
    def feasible(self) -> bool:
        """Whether no rule is broken."""
        return not self.violations

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON; the rate in tokens per second."""
        return {
            "feasible": self.feasible,
            "tokens_per_second": self.rate / TOKEN,
            "largest_flow": self.largest,
            **({} if self.first_token is None else {"seconds_to_first_token": self.first_token / SECOND}),
            "violations": [{"rule": rule, "message": message} for rule, message in self.violations],
        }


def verify_serving(problem: Serving, plan: ServingPlan) -> ServingReport:
    """Check every rule, in Python integers.

    Raises
    ------
    UsageError
        If the plan has arrays of a wrong shape, or names a node that does not exist.
    """
    check_serving("verify_serving", problem)
    check_plan("verify_serving", plan)
    v = problem.n_nodes
    begin = whole_numbers("begin", plan.begin, (v,), "nodes", least=None).tolist()
    end = whole_numbers("end", plan.end, (v,), "nodes", least=None).tolist()
    for what in ("groups", "period"):
        checked_whole(what, getattr(plan, what), -LARGEST, LARGEST)
    whole_numbers("rates of routes", [rate for _, rate in plan.routes], None, "routes", least=None)
    flow = whole_numbers("flow", plan.flow, None, "edges", least=None).tolist()
    edges = whole_numbers("edges", plan.edges, (len(flow), 2), "edges x 2", least=COORDINATOR, most=v - 1).tolist()
    rates = [problem.rate_of(int(problem.kind[n]), begin[n], end[n]) for n in range(v)]
    violations = (
        *_intervals(problem, begin, end, rates), *_edges(problem, begin, end, rates, edges),
        *_amounts(problem, begin, edges, flow, rates),
    )  # fmt: skip
    routed = problem.prompts is not None and problem.prompts.cache is not None
    if routed and not violations:
        violations = tuple(_routes(problem, begin, end, plan))
    first_token = None
    if problem.steps is not None and not violations:
        violations = tuple(_requests(problem, plan))
        if problem.prompts is not None and not violations:
            first_token = _first_token(problem, problem.prompts, begin, end, plan)
            violations = tuple(_late(first_token, problem.prompts.limit))
    rate = sum(x for (u, _), x in zip(edges, flow, strict=True) if u == COORDINATOR)
    largest = (
        not violations
        and problem.steps is None
        and not routed
        and _is_largest(problem, begin, end, rates, {(u, w): x for (u, w), x in zip(edges, flow, strict=True)})
    )
    return ServingReport(rate, violations, largest, None if violations else first_token)


def verify_replicas(problem: Serving, replicas: Replicas) -> ServingReport:
    """Check that replicas share no node and are not too many, and the rules of the plan of each."""
    check_serving("verify_replicas", problem)
    check_replicas("verify_replicas", replicas)
    violations: list[tuple[str, str]] = []
    if len(replicas) > problem.replicas:
        violations.append(("replica", f"{len(replicas):,} replicas; allowed are {problem.replicas:,}"))
    reports, seen = list[ServingReport](), set[int]()
    for number, (nodes, plan) in enumerate(replicas):
        own = whole_numbers("nodes", nodes, None, "nodes", most=problem.n_nodes - 1).tolist()
        for n in own:
            if n in seen:
                violations.append(("replica", f"{problem.node_names[n]} is in two replicas, or twice in one"))
            seen.add(n)
        report = verify_serving(problem.part(own), plan)
        place = f"replica {number}: " if len(replicas) > 1 else ""
        violations += [(rule, f"{place}{message}") for rule, message in report.violations]
        reports.append(report)
    first = [each.first_token for each in reports if each.first_token is not None]
    largest = len(reports) == 1 and reports[0].largest and not violations
    return ServingReport(sum(each.rate for each in reports), tuple(violations), largest, max(first, default=None))


def _name(problem: Serving, n: int) -> str:
    return "the coordinator" if n == COORDINATOR else problem.node_names[n]


def _intervals(problem: Serving, begin: list[int], end: list[int], rates: list[int]) -> Iterator[tuple[str, str]]:
    for n, (b, e) in enumerate(zip(begin, end, strict=True)):
        if b != e and not rates[n]:
            yield "interval", f"{problem.node_names[n]} cannot hold the layers {b} to {e - 1}"


def _continues(problem: Serving, begin: list[int], end: list[int], u: int, w: int) -> bool:
    """Whether tokens may go from u to w."""
    done = 0 if u == COORDINATOR else end[u]
    if w == COORDINATOR:
        return u != COORDINATOR and done == problem.layers
    return end[w] > done and (begin[w] <= done if problem.partial and u != COORDINATOR else begin[w] == done)


def _edges(
    problem: Serving, begin: list[int], end: list[int], rates: list[int], edges: list[list[int]]
) -> Iterator[tuple[str, str]]:
    seen: set[tuple[int, int]] = set()
    for u, w in edges:
        if (u, w) in seen:
            yield "edge", f"{_name(problem, u)} to {_name(problem, w)} is listed twice"
        seen.add((u, w))
        holders = all(n == COORDINATOR or rates[n] for n in (u, w))
        if u == w or not holders or not _continues(problem, begin, end, u, w):
            yield "edge", f"{_name(problem, w)} does not continue after {_name(problem, u)}"


def _amounts(
    problem: Serving, begin: list[int], edges: list[list[int]], flow: list[int], rates: list[int]
) -> Iterator[tuple[str, str]]:
    into, out = [0] * problem.n_nodes, [0] * problem.n_nodes
    for (u, w), x in zip(edges, flow, strict=True):
        if x < 0:
            yield "link", f"{_name(problem, u)} to {_name(problem, w)}: the flow is negative"
        elif x > (most := _limit(problem, begin, u, w)):
            carried = f"carries {x / TOKEN:,.6f} tokens/s, its link at most {most / TOKEN:,.6f}"
            yield "link", f"{_name(problem, u)} to {_name(problem, w)} {carried}"
        if u != COORDINATOR:
            out[u] += x
        if w != COORDINATOR:
            into[w] += x
    for n, (a, b) in enumerate(zip(into, out, strict=True)):
        if a != b:
            yield "balance", f"{problem.node_names[n]} receives {a / TOKEN:,.6f} tokens/s and sends {b / TOKEN:,.6f}"
        if a > rates[n]:
            yield "node", f"{problem.node_names[n]} passes {a / TOKEN:,.6f} tokens/s, at most {rates[n] / TOKEN:,.6f}"


def _limit(problem: Serving, begin: list[int], u: int, w: int) -> int:
    """The rate of a link; for prefill, of tokens of answers that stand for their parts of prompts."""
    if w == COORDINATOR:
        return int(problem.exit[u])
    prefill = begin[w] < problem.prefill_layers
    if u == COORDINATOR or (not prefill and begin[u] < problem.prefill_layers):
        limit = int(problem.entry[w])  # decoding begins: tokens come from the coordinator
    else:
        limit = int(problem.link[u, w])
    if prefill and problem.prompts is not None and limit < UNLIMITED:
        limit = min(limit * problem.prompts.answer // problem.prompts.tokens, UNLIMITED)
    return limit


def _is_largest(
    problem: Serving, begin: list[int], end: list[int], rates: list[int], flow: dict[tuple[int, int], int]
) -> bool:
    """Whether no path in the residual network leads from the coordinator back to it.

    Each node is counted twice: before and after its layers. (n, False) and (n, True) are these two places.
    """
    used = [n for n in range(problem.n_nodes) if rates[n]]
    passed = dict.fromkeys(used, 0)
    senders: dict[int, list[int]] = {n: [] for n in used}
    for (u, w), x in flow.items():
        if w != COORDINATOR:
            passed[w] += x
            senders[w] += [u] if x else []
    reached = {(COORDINATOR, True)}
    waiting = deque(reached)

    def reach(place: tuple[int, bool]) -> None:
        if place not in reached:
            reached.add(place)
            waiting.append(place)

    while waiting:
        n, after = waiting.popleft()
        if after:
            for w in used:
                open_to = w != n and (w, False) not in reached and _continues(problem, begin, end, n, w)
                if open_to and flow.get((n, w), 0) < _limit(problem, begin, n, w):
                    reach((w, False))
            if n != COORDINATOR:
                if end[n] == problem.layers and flow.get((n, COORDINATOR), 0) < int(problem.exit[n]):
                    return False
                if passed[n]:
                    reach((n, False))
        else:
            if passed[n] < rates[n]:
                reach((n, True))
            for u in senders[n]:
                reach((u, True))
    return True


def _requests(problem: Serving, plan: ServingPlan) -> Iterator[tuple[str, str]]:
    """What does not hold of groups of requests that follow each other, in a plan that breaks no other rule."""
    steps, groups, period = problem.steps, plan.groups, plan.period
    assert steps is not None
    if groups < 1 or period < 1:
        what = "expected at least one group, and at least 1 ps"
        yield "requests", f"{groups:,} groups of requests, one every {_seconds(period)}; {what}"
        return
    begin = plan.begin.tolist()
    passed, arrived = [0] * problem.n_nodes, dict[int, int]()
    sent = dict[tuple[int, int], int]()  # tokens of answers, which nodes for prefill do not pass
    decodes = [b >= problem.prefill_layers for b in begin]
    for (u, w), flow in zip(plan.edges.tolist(), plan.flow.tolist(), strict=True):
        if w == COORDINATOR or decodes[w]:
            sender = u if u == COORDINATOR or decodes[u] else COORDINATOR
            sent[sender, w] = sent.get((sender, w), 0) + flow
            if w != COORDINATOR:
                passed[w] += flow
    taken = []
    for n, flow in enumerate(passed):
        room, *times = (
            _entry(problem, table, plan, n)
            for table in (steps.room, steps.reading, steps.token, steps.overhead, steps.work)
        )
        number = -(-flow * period // (TOKEN * SECOND))  # requests of the largest step
        taken.append(max(times[0] + number * times[1], times[2] + number * times[3]) if number else 0)
        if taken[n] > period:
            yield (
                "requests",
                f"{problem.node_names[n]} needs {_seconds(taken[n])} for each group, every {_seconds(period)}",
            )
        if steps.batch is not None and number > steps.batch:
            yield "requests", f"{problem.node_names[n]} has {number:,} requests in a step; allowed are {steps.batch:,}"
        if groups * number > room:
            kept = f"keeps the tokens of {groups * number:,} requests, its memory those of {room:,}"
            yield "requests", f"{problem.node_names[n]} {kept}"
    longest = 0
    for u, w in sorted(sent, key=lambda edge: _end(problem, plan, edge[1])):
        way = arrived.get(u, 0) + (taken[u] if u != COORDINATOR else 0)
        most = _limit(problem, begin, u, w)
        if most < UNLIMITED:  # the tokens of a group follow each other
            way += -(-sent[u, w] * period // (TOKEN * SECOND)) * (TOKEN * SECOND // most)
        if w == COORDINATOR:
            longest = max(longest, way + int(steps.exit_delay[u]))
        else:
            way += int(steps.entry_delay[w] if u == COORDINATOR else steps.delay[u, w])
            arrived[w] = max(arrived.get(w, 0), way)
    time = groups * period
    if longest > time:
        yield "requests", f"a token needs {_seconds(longest)}, and its request gets one every {_seconds(time)}"
    if steps.token_time is not None and time > steps.token_time:
        yield "requests", f"a request gets a token every {_seconds(time)}; allowed are {_seconds(steps.token_time)}"
    number = -(-time * plan.rate // (TOKEN * SECOND))
    if steps.requests is not None and number > steps.requests:
        yield "requests", f"{number:,} requests are in flight; allowed are {steps.requests:,}"


def _end(problem: Serving, plan: ServingPlan, n: int) -> int:
    """The layer after those that are done after a node."""
    return problem.layers + 1 if n == COORDINATOR else int(plan.end[n])


def _entry(problem: Serving, table: Int, plan: ServingPlan, n: int) -> int:
    """The entry of a table for the layers of a node; 0 if it holds none."""
    begin, count = int(plan.begin[n]), int(plan.end[n] - plan.begin[n])
    return int(table[problem.kind[n], 0 if problem.alike else begin, count - 1]) if count > 0 else 0


def _routes(problem: Serving, begin: list[int], end: list[int], plan: ServingPlan) -> Iterator[tuple[str, str]]:
    """What does not hold of routes, in a plan that breaks no rule of flows."""
    prompts, half = problem.prompts, problem.prefill_layers
    assert prompts is not None
    assert prompts.transfer is not None
    carried, total, entered = dict[tuple[int, int], int](), dict[tuple[int, int], int](), dict[int, int]()
    flow = {(u, w): x for (u, w), x in zip(plan.edges.tolist(), plan.flow.tolist(), strict=True) if x}
    for nodes, rate in plan.routes:
        if rate <= 0:
            yield "routes", f"a route has {rate / TOKEN:,.6f} tokens/s; expected more than 0"
            return
        for edge in zip((COORDINATOR, *nodes), (*nodes, COORDINATOR), strict=True):
            total[edge] = total.get(edge, 0) + rate
    for u, w in sorted(flow.keys() | total.keys()):
        stated, passed = total.get((u, w), 0), flow.get((u, w), 0)
        if stated != passed:
            name = " to ".join(_name(problem, n) if n < problem.n_nodes else f"unknown node {n}" for n in (u, w))
            yield "routes", f"{name}: routes have {stated / TOKEN:,.6f} tokens/s, the flow {passed / TOKEN:,.6f}"
            return
    for nodes, rate in plan.routes:
        for u, w, size in _transfers(problem, prompts, end, nodes):
            carried[u, w] = carried.get((u, w), 0) + size * rate
        receiver = next(n for n in nodes if begin[n] >= half)
        entered[receiver] = entered.get(receiver, 0) + rate
    for w, rate in entered.items():
        if rate > (most := int(problem.entry[w])):
            what = f"receives {rate / TOKEN:,.6f} tokens/s, its link from the coordinator carries {most / TOKEN:,.6f}"
            yield "link", f"{problem.node_names[w]} {what}"
    for (u, w), size in carried.items():  # bytes for each request times millionths of a token per second
        most = int(prompts.transfer[u, w])
        if most < UNLIMITED and size > most * prompts.answer * TOKEN:
            sent = f"{size / prompts.answer / TOKEN:,.0f} bytes/s of the KV cache, its link carries {most:,}"
            yield "transfer", f"{problem.node_names[u]} to {problem.node_names[w]}: {sent}"


def _passed(nodes: Sequence[int], end: list[int], first: int, last: int) -> Iterator[tuple[int, int, int]]:
    """Nodes of a route with the layers from `first` to before `last` that each computes: what is left for it."""
    done = first
    for n in nodes:
        if first < end[n] <= last:
            yield n, done, end[n]
            done = end[n]


def _transfers(
    problem: Serving, prompts: Prompts, end: list[int], nodes: Sequence[int]
) -> Iterator[tuple[int, int, int]]:
    """Nodes that send and receive a part of the KV cache of a request on its route, and the bytes of this part."""
    half = problem.prefill_layers
    for u, first, after in _passed(nodes, end, 0, half):
        for w, low, high in _passed(nodes, end, half, problem.layers):
            held = range(max(first, low - half), min(after, high - half))
            size = sum(int(prompts.cache[layer]) for layer in held) if prompts.cache is not None else 0
            if size:
                yield u, w, size


def _first_token(problem: Serving, prompts: Prompts, begin: list[int], end: list[int], plan: ServingPlan) -> int:
    """Picoseconds to the first token on the slowest way: the prompt, the transfer of its KV cache, and a token.

    With mixed prefill, each step on the way of the prompt is longer by the time of the prompt.
    """
    steps, half = problem.steps, problem.prefill_layers
    assert steps is not None

    def on_link(u: int, w: int) -> int:
        """A prompt on a link, of which mixed prefill uses the share of prompts among all tokens."""
        most = _limit(problem, begin, u, w)
        time = 0 if most >= UNLIMITED else -(-prompts.answer * TOKEN * SECOND // max(most, 1))
        return time if half else -(-time * prompts.tokens // (prompts.tokens + prompts.answer))

    def on_node(w: int, first: int, after: int) -> int:
        return int(prompts.time[problem.kind[w], first if len(prompts.time[0]) > 1 else 0, after - first - 1])

    longest = 0
    if not half:
        reached = {COORDINATOR: 0}
        for u, w in sorted(plan.edges.tolist(), key=lambda edge: _end(problem, plan, edge[1])):
            if w == COORDINATOR:
                longest = max(longest, reached.get(u, 0))
            else:
                added = on_link(u, w) + on_node(w, 0 if u == COORDINATOR else end[u], end[w])
                reached[w] = max(reached.get(w, 0), reached.get(u, 0) + added)
    for nodes, _ in plan.routes:
        way, before = 0, COORDINATOR
        for w, first, after in _passed(nodes, end, 0, half):
            way += int(steps.entry_delay[w] if before == COORDINATOR else steps.delay[before, w])
            way += on_link(before, w) + on_node(w, first, after)
            before = w
        last = 0  # parts of the KV cache go over different links at the same time
        for u, w, size in _transfers(problem, prompts, end, nodes):
            most = UNLIMITED if prompts.transfer is None else int(prompts.transfer[u, w])
            sent = 0 if most >= UNLIMITED else -(-size * SECOND // max(most, 1))
            last = max(last, int(steps.delay[u, w]) + sent)
        longest = max(longest, way + last)
    return longest + plan.token_time


def _late(time: int, limit: int | None) -> Iterator[tuple[str, str]]:
    if limit is not None and time > limit:
        yield "first token", f"a request gets its first token after {_seconds(time)}; allowed are {_seconds(limit)}"


def _seconds(time: int) -> str:
    """A time without loss, so that a limit that is missed by 1 ps does not look the same."""
    return f"{time // SECOND:,}.{time % SECOND:012}".rstrip("0").rstrip(".") + " s"
