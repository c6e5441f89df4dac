"""The steady state of a plan: tokens pass nodes and links, each of which serves one token at a time.

Tokens enter at the rate of the plan, at equal distances. Where they have a choice, each takes the edge that has fallen
behind its share most. A plan whose flow is sound returns tokens at its rate, and queues stay short.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from placeopt.errors import UsageError
from placeopt.model.arrays import checked_whole
from placeopt.serving.plan import COORDINATOR, ServingPlan, edge_limits, node_rates
from placeopt.serving.problem import TOKEN, Serving
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
    # A node or a link needs this time for a token. The coordinator is the last node.
    on_node = np.append(TOKEN / np.maximum(node_rates(problem, plan.begin, plan.end), 1), 0.0).tolist()
    on_edge = (TOKEN / edge_limits(problem, plan.edges)).tolist()
    out: dict[int, list[int]] = {}
    for edge, (sender, _) in enumerate(plan.edges.tolist()):
        out.setdefault(sender, []).append(edge)
    total = {n: sum(int(plan.flow[edge]) for edge in edges) for n, edges in out.items()}
    share = [int(plan.flow[edge]) / total[sender] for edge, (sender, _) in enumerate(plan.edges.tolist())]
    behind, free_edge = [0.0] * len(share), [0.0] * len(share)
    free_node, queued = [0.0] * (problem.n_nodes + 1), [0] * problem.n_nodes
    distance, waiting = TOKEN / report.rate, 0
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
        for edge in out[n]:
            behind[edge] += share[edge]
        chosen = max(out[n], key=behind.__getitem__)
        behind[chosen] -= 1
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
