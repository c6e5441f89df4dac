"""The rules of plans, and the proof that a flow is the largest for its intervals.

| rule | content |
|---|---|
| `interval` | the layers of a node are an interval of layers that it can hold |
| `edge` | tokens go from a node to one that continues: it holds the next layer, and ends later |
| `link` | no link carries more than its rate |
| `node` | no node passes more than its rate |
| `balance` | what enters a node leaves it |

Nothing here is shared with what finds plans. The largest flow is the least capacity of a cut (L. R. Ford, D. R.
Fulkerson, Canadian Journal of Mathematics 1956). The nodes and links that the flow fills are found by a search in the
residual network, and form such a cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from placeopt.model.arrays import whole_numbers
from placeopt.serving.plan import COORDINATOR, ServingPlan
from placeopt.serving.problem import TOKEN, Serving


@dataclass(frozen=True, slots=True)
class ServingReport:
    """What the verifier found: the rate in millionths of a token per second, and broken rules as (rule, message)."""

    rate: int
    violations: tuple[tuple[str, str], ...]
    largest: bool
    """Whether no flow is larger with the same intervals."""

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
            "violations": [{"rule": rule, "message": message} for rule, message in self.violations],
        }


def verify_serving(problem: Serving, plan: ServingPlan) -> ServingReport:
    """Check every rule, in Python integers.

    Raises
    ------
    UsageError
        If the plan has arrays of a wrong shape, or names a node that does not exist.
    """
    v = problem.n_nodes
    begin = whole_numbers("begin", plan.begin, (v,), "nodes", least=None).tolist()
    end = whole_numbers("end", plan.end, (v,), "nodes", least=None).tolist()
    flow = whole_numbers("flow", plan.flow, None, "edges", least=None).tolist()
    edges = whole_numbers("edges", plan.edges, (len(flow), 2), "edges x 2", least=COORDINATOR, most=v - 1).tolist()
    rates = [problem.rate_of(int(problem.kind[n]), begin[n], end[n]) for n in range(v)]
    violations = (
        *_intervals(problem, begin, end, rates), *_edges(problem, begin, end, rates, edges),
        *_amounts(problem, edges, flow, rates),
    )  # fmt: skip
    rate = sum(x for (u, _), x in zip(edges, flow, strict=True) if u == COORDINATOR)
    largest = not violations and _is_largest(
        problem, begin, end, rates, {(u, w): x for (u, w), x in zip(edges, flow, strict=True)}
    )
    return ServingReport(rate, violations, largest)


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


def _amounts(problem: Serving, edges: list[list[int]], flow: list[int], rates: list[int]) -> Iterator[tuple[str, str]]:
    into, out = [0] * problem.n_nodes, [0] * problem.n_nodes
    for (u, w), x in zip(edges, flow, strict=True):
        if x < 0:
            yield "link", f"{_name(problem, u)} to {_name(problem, w)}: the flow is negative"
        elif x > (most := _limit(problem, u, w)):
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


def _limit(problem: Serving, u: int, w: int) -> int:
    if u == COORDINATOR:
        return int(problem.entry[w])
    return int(problem.exit[u]) if w == COORDINATOR else int(problem.link[u, w])


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
                if open_to and flow.get((n, w), 0) < _limit(problem, n, w):
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
