"""A plan: the layers of each node, and the flow of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from placeopt.errors import UsageError
from placeopt.model.arrays import Int
from placeopt.serving.problem import SECOND, TOKEN, Serving

COORDINATOR = -1
"""Number of the coordinator as an end of an edge."""


@dataclass(frozen=True, slots=True, eq=False)
class ServingPlan:
    """Intervals of layers and a flow of tokens.

    Attributes
    ----------
    begin, end
        (v,) layers of each node: from `begin` to before `end`; equal for nodes that hold none.
    edges
        (e, 2) nodes from and to which tokens go; COORDINATOR for the coordinator.
    flow
        (e,) rates over these edges, in millionths of a token per second.
    groups, period
        If nodes share the requests in flight: the number of groups of requests, and the picoseconds after which one
        group follows another. Each request gets a token every `groups` x `period`.
    routes
        If prefill is separate: nodes that requests pass, first for their prompt and then for each token, with the rate
        of these requests. They add up to the flow.
    """

    begin: Int
    end: Int
    edges: Int
    flow: Int
    groups: int = 0
    period: int = 0
    routes: tuple[tuple[tuple[int, ...], int], ...] = ()

    @property
    def token_time(self) -> int:
        """Picoseconds between two tokens of a request; 0 without groups."""
        return self.groups * self.period

    @property
    def requests(self) -> int:
        """Requests in flight, rounded up; 0 without groups."""
        return -(-self.token_time * self.rate // (TOKEN * SECOND))

    @property
    def rate(self) -> int:
        """Tokens that leave the coordinator, in millionths per second."""
        return sum(self.flow[self.edges[:, 0] == COORDINATOR].tolist())


class Replica(NamedTuple):
    """A complete copy of the model: the numbers of its nodes, and a plan of the problem's part with these nodes."""

    nodes: Int
    plan: ServingPlan


Replicas: TypeAlias = tuple[Replica, ...]


def total_rate(replicas: Replicas) -> int:
    """Tokens that all replicas pass, in millionths per second."""
    return sum(each.plan.rate for each in replicas)


def node_rates(problem: Serving, begin: Int, end: Int) -> Int:
    """(v,) what each node passes with these layers; 0 if it holds none or cannot hold them."""
    found = np.zeros(problem.n_nodes, dtype=np.int64)
    count = end - begin
    fits = (count > 0) & (count <= problem.most) & (begin >= 0) & (end <= problem.layers)
    first = np.zeros_like(begin) if problem.alike else begin
    found[fits] = problem.rate[problem.kind[fits], first[fits], count[fits] - 1]
    return found


def allowed_edges(problem: Serving, begin: Int, end: Int) -> Int:
    """(e, 2) edges over which tokens may go: a node begins where the one before ends, or before that if partial."""
    used = np.flatnonzero(end > begin)
    b, e = begin[used], end[used]
    after = (b[None, :] <= e[:, None]) & (e[None, :] > e[:, None]) if problem.partial else b[None, :] == e[:, None]
    between = used[np.argwhere(after)]
    first = used[b == 0]
    last = used[e == problem.layers]
    enter = np.stack([np.full(len(first), COORDINATOR), first], axis=1)
    leave = np.stack([last, np.full(len(last), COORDINATOR)], axis=1)
    return np.concatenate([enter, between.reshape(-1, 2), leave]).astype(np.int64)


def edge_limits(problem: Serving, begin: Int, edges: Int) -> Int:
    """(e,) rates of the links of edges.

    The first node for decoding receives tokens from the coordinator, and the KV cache from nodes for prefill, which is
    no part of these limits.
    """
    u, v = edges[:, 0], edges[:, 1]
    first = problem.prefill_layers
    # Both are wrong for the coordinator, and replaced.
    found = np.where(begin[v] < first, problem.prefill_link[u, v], problem.link[u, v])
    entry = np.where(begin[v] < first, problem.prefill_entry[v], problem.entry[v])
    found = np.where((u == COORDINATOR) | ((begin[u] < first) & (begin[v] >= first)), entry, found)
    return np.where(v == COORDINATOR, problem.exit[u], found)


def ways_of(plan: ServingPlan) -> Iterator[tuple[list[int], int]]:
    """Ways from the coordinator back to it, as lists of edges, and rates on them that add up to the flow."""
    out: dict[int, list[int]] = {}
    for e, u in enumerate(plan.edges[:, 0].tolist()):
        out.setdefault(u, []).append(e)
    left, to = plan.flow.tolist(), plan.edges[:, 1].tolist()
    while True:
        way: list[int] = []
        at = COORDINATOR
        while not way or at != COORDINATOR:
            while out.get(at) and not left[out[at][-1]]:
                out[at].pop()
            if not out.get(at):
                return
            way.append(out[at][-1])
            at = to[way[-1]]
        amount = min(left[e] for e in way)
        for e in way:
            left[e] -= amount
        yield way, amount


def without_idle(plan: ServingPlan) -> ServingPlan:
    """The plan without the layers of nodes that pass no tokens."""
    passes = np.zeros(len(plan.begin), dtype=np.bool_)
    passes[plan.edges[plan.edges >= 0]] = True
    return replace(plan, begin=np.where(passes, plan.begin, 0), end=np.where(passes, plan.end, 0))


def replica_of(nodes: Int, plan: ServingPlan) -> Replica:
    """The replica of those of some nodes that pass tokens."""
    plan = without_idle(plan)
    used = np.flatnonzero(plan.end > plan.begin)
    number = np.full(len(nodes) + 1, COORDINATOR, dtype=np.int64)  # the coordinator, -1, is the last entry
    number[used] = np.arange(len(used))
    routes = tuple((tuple(number[list(route)].tolist()), rate) for route, rate in plan.routes)
    return Replica(
        nodes[used],
        replace(plan, begin=plan.begin[used], end=plan.end[used], edges=number[plan.edges], routes=routes),
    )


def check_plan(caller: str, plan: object) -> None:
    """Reject anything but a `ServingPlan`."""
    if not isinstance(plan, ServingPlan):
        raise UsageError(f"{caller} takes a ServingPlan, got {type(plan).__name__}; a result has one as `plan`")


def check_replicas(caller: str, replicas: object) -> None:
    """Reject anything but replicas."""
    if not isinstance(replicas, tuple | list) or not all(isinstance(each, Replica) for each in replicas):
        raise UsageError(f"{caller} takes replicas, got {type(replicas).__name__}; a result has them as its `replicas`")
