"""The largest flow of tokens for given intervals."""

from __future__ import annotations

import numpy as np
from ortools.graph.python import max_flow

from placeopt.model.arrays import Int
from placeopt.serving.plan import COORDINATOR, ServingPlan, allowed_edges, edge_limits, node_rates
from placeopt.serving.problem import LARGEST, Serving


def best_flow(problem: Serving, begin: Int, end: Int) -> ServingPlan:
    """The plan with the largest flow for these intervals (a maximum flow with capacities of nodes and edges)."""
    return largest_flow(problem, begin, end, node_rates(problem, begin, end))


def largest_flow(problem: Serving, begin: Int, end: Int, rates: Int, unit: int = 1, most: int = LARGEST) -> ServingPlan:
    """The same for (v,) capacities of nodes in units of a rate, and at most `most` units in all."""
    v = problem.n_nodes
    kept = np.where(rates > 0, end, begin)  # a node that passes nothing is left out
    edges = allowed_edges(problem, begin, kept)
    u, w = edges[:, 0], edges[:, 1]
    inside = np.where(u == COORDINATOR, rates[w], np.where(w == COORDINATOR, rates[u], np.minimum(rates[u], rates[w])))
    limit = np.minimum(edge_limits(problem, begin, edges) // unit, inside)
    source, sink, first = 2 * v, 2 * v + 1, 2 * v + 2
    network = max_flow.SimpleMaxFlow()
    used = np.flatnonzero(rates)
    tail = np.concatenate([np.where(u == COORDINATOR, source, v + u), used])
    head = np.concatenate([np.where(w == COORDINATOR, sink, w), v + used])
    arcs = network.add_arcs_with_capacity(tail, head, np.concatenate([limit, rates[used]]))
    network.add_arc_with_capacity(first, source, most)
    if not len(arcs) or network.solve(first, sink) != network.OPTIMAL:
        return ServingPlan(begin.copy(), kept, edges[:0], np.zeros(0, dtype=np.int64))
    flow = np.asarray(network.flows(arcs[: len(edges)]), dtype=np.int64)
    flows = flow > 0
    return ServingPlan(begin.copy(), kept, edges[flows], unit * flow[flows])
