"""Plan files of serving problems: the layers of each node, and where its tokens come from.

    {
      "placeopt_plan": 1,
      "problem": "llama-70b-24",
      "tokens_per_second": 2045.641047,
      "nodes": {"a100-0": {"layers": [0, 8], "from": {"coordinator": 2045.641047}}, ...},
      "last": {"t4-11": 2045.641047}
    }

Where nodes share the requests in flight, `groups` and `period` are the number of groups of requests, and the seconds
after which one follows another. `layers` are the first one and the one after the last. `last` states what the
coordinator receives of the last nodes. Rates are tokens per second, in millionths.

If prefill is separate, nodes have a `phase`, `prefill` or `decode`. `routes` state the nodes that requests pass for
their prompt and then for each token, and the rates of these requests.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from placeopt.errors import DocumentError, Issue, PlanError, Search, in_file_order, listing, meaning
from placeopt.io.document import read_document
from placeopt.io.files import StrPath, write_whole
from placeopt.io.scalars import Name, Use, Version, Whole
from placeopt.io.spec import Strict
from placeopt.io.syntax import Path
from placeopt.io.validation import validate
from placeopt.model.units import shown
from placeopt.serving.plan import COORDINATOR, ServingPlan
from placeopt.serving.problem import SECOND, TOKEN, UNLIMITED, Serving

ENTRY = "coordinator"
"""Name of the coordinator in `from`."""


class NodePlan(Strict):
    """The layers of a node, and the tokens that it receives."""

    layers: Annotated[list[Annotated[Whole, Field(ge=0)]], Field(min_length=2, max_length=2)]
    phase: Literal["prefill", "decode"] | None = None
    source: dict[Name, Use] = Field(default_factory=dict, alias="from")


class RoutePlan(Strict):
    """Nodes that requests pass in this order, and the rate of these requests."""

    nodes: list[Name]
    tokens_per_second: Use


class ServingPlanFile(Strict):
    """A plan of a serving problem."""

    placeopt_plan: Version
    problem: str = ""
    tokens_per_second: Use | None = None
    nodes: dict[Name, NodePlan]
    last: dict[Name, Use] = Field(default_factory=dict)
    routes: list[RoutePlan] = Field(default_factory=list)
    groups: Annotated[Whole, Field(ge=0, le=2**31)] = 0
    period: Annotated[Use, Field(ge=0, le=10**3)] = Fraction(0)


def _tokens(rate: int) -> float:
    return rate / TOKEN


def serving_plan_document(problem: Serving, plan: ServingPlan) -> dict[str, Any]:
    """The document of a plan file."""
    nodes: dict[str, dict[str, Any]] = {}
    half = problem.prefill_layers
    for n in np.flatnonzero(plan.end > plan.begin).tolist():
        decodes = int(plan.begin[n]) >= half
        phase = {"phase": "decode" if decodes else "prefill"} if half else {}
        layers = [int(layer) - half * decodes for layer in (plan.begin[n], plan.end[n])]
        nodes[problem.node_names[n]] = {"layers": layers, **phase, "from": {}}
    last = {}
    for (u, w), rate in zip(plan.edges.tolist(), plan.flow.tolist(), strict=True):
        if w == COORDINATOR:
            last[problem.node_names[u]] = _tokens(rate)
        else:
            nodes[problem.node_names[w]]["from"][ENTRY if u == COORDINATOR else problem.node_names[u]] = _tokens(rate)
    groups = {"groups": plan.groups, "period": plan.period / SECOND} if plan.groups else {}
    routes = [
        {"nodes": [problem.node_names[n] for n in route], "tokens_per_second": _tokens(rate)}
        for route, rate in plan.routes
    ]
    return {
        "placeopt_plan": 1, "problem": problem.name, "tokens_per_second": _tokens(plan.rate), **groups, "nodes": nodes,
        "last": last, **({"routes": routes} if routes else {}),
    }  # fmt: skip


def write_serving_plan(path: StrPath, problem: Serving, plan: ServingPlan) -> None:
    """Write a plan file; an existing file is replaced as a whole or not at all."""
    write_whole(path, json.dumps(serving_plan_document(problem, plan), indent=1) + "\n")


def read_serving_plan(path: StrPath, problem: Serving) -> ServingPlan:
    """The plan in a file.

    Raises
    ------
    PlanError
        If the file is not a plan, or names nodes that the problem does not have; lists every issue.
    """
    try:
        document = read_document(path)
    except DocumentError as error:
        raise PlanError(error.issues) from None
    checked = validate(document, ServingPlanFile)
    if checked.model is None or checked.issues:
        raise PlanError(in_file_order(checked.issues))
    issues: list[Issue] = []
    search, number = Search(), {name: n for n, name in enumerate(problem.node_names)}

    def find(name: str, where: Path) -> int | None:
        if name in number:
            return number[name]
        near = meaning(search.near_misses("node", name, problem.node_names))
        hint = near or f"; known are {listing(problem.node_names)}"
        issues.append(document.issue(f"unknown node {shown(name)}{hint}", where, at_key=True))
        return None

    def rate(stated: Fraction, where: Path) -> int:
        if stated * TOKEN > UNLIMITED:
            issues.append(document.issue(f"{shown(float(stated))} is more than 10^9 tokens/s", where))
        return min(round(stated * TOKEN), UNLIMITED)

    begin, end = np.zeros((2, problem.n_nodes), dtype=np.int64)
    edges: list[tuple[int, int]] = []
    flow: list[int] = []
    for name, node in checked.model.nodes.items():
        n = find(name, ("nodes", name))
        if n is None:
            continue
        if node.phase is None and problem.prefill_layers:
            issues.append(document.issue("phase is missing; expected prefill or decode", ("nodes", name), at_key=True))
        elif node.phase is not None and not problem.prefill_layers:
            issues.append(
                document.issue("prefill is not separate in the problem", ("nodes", name, "phase"), at_key=True)
            )
        first = problem.prefill_layers if node.phase == "decode" else 0
        begin[n], end[n] = (min(layer, 2**31) + first for layer in node.layers)
        for sender, stated in node.source.items():
            where: Path = ("nodes", name, "from", sender)
            u = COORDINATOR if sender == ENTRY and ENTRY not in number else find(sender, where)
            if u is not None:
                edges.append((u, n))
                flow.append(rate(stated, where))
    for name, stated in checked.model.last.items():
        n = find(name, ("last", name))
        if n is not None:
            edges.append((n, COORDINATOR))
            flow.append(rate(stated, ("last", name)))
    routes = []
    for k, route in enumerate(checked.model.routes):
        found = [find(name, ("routes", k, "nodes", j)) for j, name in enumerate(route.nodes)]
        passed = rate(route.tokens_per_second, ("routes", k, "tokens_per_second"))
        routes.append((tuple(n for n in found if n is not None), passed))
    if issues:
        raise PlanError(in_file_order(issues))
    return ServingPlan(
        begin, end, np.array(edges, dtype=np.int64).reshape(-1, 2), np.array(flow, dtype=np.int64),
        groups=checked.model.groups, period=round(checked.model.period * SECOND), routes=tuple(routes),
    )  # fmt: skip
