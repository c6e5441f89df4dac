"""The largest flow of tokens for given intervals."""

from __future__ import annotations

import numpy as np
from ortools.graph.python import max_flow

from placeopt.model.arrays import Int
from placeopt.serving.plan import COORDINATOR, ServingPlan, allowed_edges, edge_limits, node_rates
from placeopt.serving.problem import Serving


def best_flow(problem: Serving, begin: Int, end: Int) -> ServingPlan:
    """The plan with the largest flow for these intervals (a maximum flow with capacities of nodes and edges)."""
    v = problem.n_nodes
    rates = node_rates(problem, begin, end)
    kept = np.where(rates > 0, end, begin)  # a node that passes nothing is left out
    edges = allowed_edges(problem, begin, kept)
    u, w = edges[:, 0], edges[:, 1]
    inside = np.where(u == COORDINATOR, rates[w], np.where(w == COORDINATOR, rates[u], np.minimum(rates[u], rates[w])))
    limit = np.minimum(edge_limits(problem, edges), inside)
    source, sink = 2 * v, 2 * v + 1
    network = max_flow.SimpleMaxFlow()
    used = np.flatnonzero(rates)
    tail = np.concatenate([np.where(u == COORDINATOR, source, v + u), used])
    head = np.concatenate([np.where(w == COORDINATOR, sink, w), v + used])
    arcs = network.add_arcs_with_capacity(tail, head, np.concatenate([limit, rates[used]]))
    if not len(arcs) or network.solve(source, sink) != network.OPTIMAL:
        return ServingPlan(begin.copy(), kept, edges[:0], np.zeros(0, dtype=np.int64))
    flow = np.asarray(network.flows(arcs[: len(edges)]), dtype=np.int64)
    flows = flow > 0
    return ServingPlan(begin.copy(), kept, edges[flows], flow[flows])
