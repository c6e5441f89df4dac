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

With several `replicas`, each of them states these keys for its own nodes.
"""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from placeopt.errors import DocumentError, Issue, PlanError, Search, counted, in_file_order, listing, meaning
from placeopt.io.document import Document, read_document
from placeopt.io.files import StrPath, write_whole
from placeopt.io.scalars import Name, Use, Version, Whole
from placeopt.io.spec import Strict
from placeopt.io.syntax import Path
from placeopt.io.validation import valid
from placeopt.model.arrays import Int
from placeopt.model.units import shown
from placeopt.serving.plan import (
    COORDINATOR,
    Replica,
    Replicas,
    ServingPlan,
    check_plan,
    check_replicas,
    total_rate,
)
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


class ReplicaPlan(Strict):
    """The plan of one replica."""

    tokens_per_second: Use | None = None
    nodes: dict[Name, NodePlan] = Field(default_factory=dict)
    last: dict[Name, Use] = Field(default_factory=dict)
    routes: list[RoutePlan] = Field(default_factory=list)
    groups: Annotated[Whole, Field(ge=0, le=2**31)] = 0
    period: Annotated[Use, Field(ge=0, le=2000)] = Fraction(0)


class ServingPlanFile(ReplicaPlan):
    """A plan of a serving problem: of one replica, or of several."""

    placeopt_plan: Version
    problem: str = ""
    replicas: list[ReplicaPlan] = Field(default_factory=list)


def serving_plan_document(problem: Serving, plan: ServingPlan) -> dict[str, Any]:
    """The document of a plan file."""
    return {"placeopt_plan": 1, "problem": problem.name, **_replica_document(problem, plan)}


def replicas_document(problem: Serving, replicas: Replicas) -> dict[str, Any]:
    """The document of a plan file; of a single plan if the problem has one replica."""
    if problem.replicas == 1 and len(replicas) == 1:
        return serving_plan_document(problem.part(replicas[0].nodes), replicas[0].plan)
    return {
        "placeopt_plan": 1,
        "problem": problem.name,
        "tokens_per_second": total_rate(replicas) / TOKEN,
        "replicas": [_replica_document(problem.part(nodes), plan) for nodes, plan in replicas],
    }


def _replica_document(problem: Serving, plan: ServingPlan) -> dict[str, Any]:
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
            last[problem.node_names[u]] = rate / TOKEN
        else:
            nodes[problem.node_names[w]]["from"][ENTRY if u == COORDINATOR else problem.node_names[u]] = rate / TOKEN
    groups = {"groups": plan.groups, "period": plan.period / SECOND} if plan.groups else {}
    routes = [
        {"nodes": [problem.node_names[n] for n in route], "tokens_per_second": rate / TOKEN}
        for route, rate in plan.routes
    ]
    return {
        "tokens_per_second": plan.rate / TOKEN, **groups, "nodes": nodes, "last": last,
        **({"routes": routes} if routes else {}),
    }  # fmt: skip


def write_serving_plan(path: StrPath, problem: Serving, plan: ServingPlan) -> None:
    """Write a plan file; an existing file is replaced as a whole or not at all."""
    check_plan("write_serving_plan", plan)
    write_whole(path, json.dumps(serving_plan_document(problem, plan), indent=1) + "\n")


def write_replicas(path: StrPath, problem: Serving, replicas: Replicas) -> None:
    """Write a plan file with replicas, as `write_serving_plan` does."""
    check_replicas("write_replicas", replicas)
    write_whole(path, json.dumps(replicas_document(problem, replicas), indent=1) + "\n")


def read_serving_plan(path: StrPath, problem: Serving) -> ServingPlan:
    """The plan in a file, of one replica.

    Raises
    ------
    PlanError
        If the file is not a plan, has several replicas, or names nodes that the problem does not have; lists every
        issue.
    """
    file, document = _read(path)
    if file.replicas:
        what = f"{counted(len(file.replicas), 'replica')}; expected the plan of one, without this key"
        raise PlanError([document.issue(what, ("replicas",), at_key=True)])
    reader = _Reader(problem, document)
    plan = reader.plan(file, ())
    reader.finish()
    return plan


def read_replicas(path: StrPath, problem: Serving) -> Replicas:
    """The replicas in a file; one for a file without `replicas`.

    Raises
    ------
    PlanError
        If the file is not a plan, or names nodes that the problem does not have; lists every issue.
    """
    file, document = _read(path)
    reader = _Reader(problem, document)
    stated = [key for key in ("nodes", "last", "routes", "groups", "period") if key in file.model_fields_set]
    if file.replicas and stated:
        what = "expected it in each of the replicas, not beside them"
        raise PlanError([document.issue(what, (stated[0],), at_key=True)])
    if not file.replicas:
        plan = reader.plan(file, ())
        reader.finish()
        return (Replica(np.arange(problem.n_nodes), plan),)
    found = []
    for k, part in enumerate(file.replicas):
        plan = reader.plan(part, ("replicas", k))
        nodes = np.array(reader.listed, dtype=np.int64)
        if not len(nodes):
            reader.issues.append(document.issue("a replica without nodes", ("replicas", k)))
        for u, w in plan.edges[~np.isin(plan.edges, [COORDINATOR, *reader.listed]).all(axis=1)].tolist():
            names = " to ".join("the coordinator" if n == COORDINATOR else problem.node_names[n] for n in (u, w))
            reader.issues.append(document.issue(f"{names}: expected nodes of this replica", ("replicas", k)))
        if not reader.issues:
            found.append(Replica(nodes, _part(plan, nodes)))
    reader.finish()
    reader.check_rate(file, sum(each.plan.rate for each in found), ())
    reader.finish()
    return tuple(found)


def _part(plan: ServingPlan, nodes: Int) -> ServingPlan:
    """The plan with the numbers of some of the nodes, which it uses."""
    number = {COORDINATOR: COORDINATOR, **{n: k for k, n in enumerate(nodes.tolist())}}
    edges = np.array([[number[n] for n in edge] for edge in plan.edges.tolist()], dtype=np.int64).reshape(-1, 2)
    return replace(plan, begin=plan.begin[nodes], end=plan.end[nodes], edges=edges)


def _read(path: StrPath) -> tuple[ServingPlanFile, Document]:
    try:
        document = read_document(path)
    except DocumentError as error:
        raise PlanError(error.issues) from None
    return valid(document, ServingPlanFile, PlanError), document


class _Reader:
    """Reads plans of a file, and collects issues; `listed` are the nodes of the last one."""

    def __init__(self, problem: Serving, document: Document) -> None:
        self.problem, self.document = problem, document
        self.issues, self.listed = list[Issue](), list[int]()
        self._search, self._number = Search(), {name: n for n, name in enumerate(problem.node_names)}

    def finish(self) -> None:
        """Raise a PlanError if there are issues."""
        named = self.document.data.get("problem")
        if self.issues and isinstance(named, str) and named != self.problem.name:
            what = f"the plan is of the problem {shown(named)}, and this one is {shown(self.problem.name)}"
            raise PlanError([self.document.issue(what, ("problem",)), *in_file_order(self.issues)[:1]])
        if self.issues:
            raise PlanError(in_file_order(self.issues))

    def plan(self, stated: ReplicaPlan, at: Path) -> ServingPlan:
        """A plan of all nodes of the problem, those of other replicas idle."""
        problem = self.problem
        begin, end = np.zeros((2, problem.n_nodes), dtype=np.int64)
        edges: list[tuple[int, int]] = []
        flow: list[int] = []
        self.listed = []
        for name, node in stated.nodes.items():
            n = self._find(name, (*at, "nodes", name))
            if n is None:
                continue
            self.listed.append(n)
            self._check_phase(node, (*at, "nodes", name))
            first = problem.prefill_layers if node.phase == "decode" else 0
            begin[n], end[n] = (min(layer, 2**31) + first for layer in node.layers)
            for sender, rate in node.source.items():
                where: Path = (*at, "nodes", name, "from", sender)
                u = COORDINATOR if sender == ENTRY and ENTRY not in self._number else self._find(sender, where)
                if u is not None:
                    edges.append((u, n))
                    flow.append(self._rate(rate, where))
        for name, rate in stated.last.items():
            n = self._find(name, (*at, "last", name))
            if n is not None:
                edges.append((n, COORDINATOR))
                flow.append(self._rate(rate, (*at, "last", name)))
        routes = []
        for k, route in enumerate(stated.routes):
            found = [self._find(name, (*at, "routes", k, "nodes", j)) for j, name in enumerate(route.nodes)]
            passed = self._rate(route.tokens_per_second, (*at, "routes", k, "tokens_per_second"))
            routes.append((tuple(n for n in found if n is not None), passed))
        if routes and not problem.prefill_layers:
            what = "prefill is not separate in the problem"
            self.issues.append(self.document.issue(what, (*at, "routes"), at_key=True))
        self.check_rate(stated, sum(x for (u, _), x in zip(edges, flow, strict=True) if u == COORDINATOR), at)
        return ServingPlan(
            begin, end, np.array(edges, dtype=np.int64).reshape(-1, 2), np.array(flow, dtype=np.int64),
            groups=stated.groups, period=round(stated.period * SECOND), routes=tuple(routes),
        )  # fmt: skip

    def check_rate(self, stated: ReplicaPlan, rate: int, at: Path) -> None:
        """Report a stated rate that is not that of the flow."""
        if stated.tokens_per_second is not None and abs(stated.tokens_per_second * TOKEN - rate) > max(1, rate >> 50):
            what = f"the flow has {rate / TOKEN:,.6f} tokens/s; expected the same"
            self.issues.append(self.document.issue(what, (*at, "tokens_per_second")))

    def _check_phase(self, node: NodePlan, where: Path) -> None:
        if node.phase is None and self.problem.prefill_layers:
            what = "phase is missing; expected prefill or decode"
            self.issues.append(self.document.issue(what, where, at_key=True))
        elif node.phase is not None and not self.problem.prefill_layers:
            what = "prefill is not separate in the problem"
            self.issues.append(self.document.issue(what, (*where, "phase"), at_key=True))
        elif self.problem.prefill_layers and max(node.layers) > self.problem.prefill_layers:
            what = f"the last layer is {max(node.layers) - 1}; the model has {self.problem.prefill_layers}"
            self.issues.append(self.document.issue(what, (*where, "layers")))

    def _find(self, name: str, where: Path) -> int | None:
        if name in self._number:
            return self._number[name]
        near = meaning(self._search.near_misses("node", name, self.problem.node_names))
        hint = near or f"; known are {listing(self.problem.node_names)}"
        self.issues.append(self.document.issue(f"unknown node {shown(name)}{hint}", where, at_key=True))
        return None

    def _rate(self, stated: Fraction, where: Path) -> int:
        if stated * TOKEN > UNLIMITED:
            self.issues.append(self.document.issue(f"{shown(float(stated))} is more than 10^9 tokens/s", where))
        return min(round(stated * TOKEN), UNLIMITED)
