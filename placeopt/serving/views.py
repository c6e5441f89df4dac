"""Serving problems and plans in words and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from placeopt.errors import counted
from placeopt.serving.changes import Replanned, ServingGain
from placeopt.serving.cheapest import CheapestResult
from placeopt.serving.in_flight import node_steps
from placeopt.serving.plan import COORDINATOR, Replicas, ServingPlan, node_rates, total_rate
from placeopt.serving.prefill import interval_time
from placeopt.serving.problem import SECOND, TOKEN, Serving, tokens_text
from placeopt.serving.result import ReplicatedResult, ServingResult
from placeopt.serving.steady_state import SteadyState
from placeopt.serving.verification import ServingReport
from placeopt.views.facts import Grid


def problem_line(problem: Serving) -> str:
    """What a problem is about."""
    kinds = Counter(problem.kind_names[k] for k in problem.kind.tolist())
    nodes = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
    layers = counted(problem.layers - problem.prefill_layers, "layer")
    apart = " for prefill, and again for decoding," if problem.prefill_layers else ""
    size = f"{layers}{apart} on {counted(problem.n_nodes, 'node')}"
    return f"{problem.name or 'serving'}: {size} ({nodes})"


BOUNDS = {
    "area": "layers times tokens of all nodes",
    "patterns": "patterns of layers",
    "crossings": "patterns and slow links",
    "cp-sat": "a model of all plans in CP-SAT",
    "prices": "prices of nodes",
    "divisions": "divisions of nodes",
}
"""What proves a bound, in words."""


def result_facts(result: ServingResult | ReplicatedResult) -> list[tuple[str, str]]:
    """The rate, its bound, and the nodes of a result."""
    replicas = result.replicas
    facts = [("rate", tokens_text(result.rate) if replicas else result.message)]
    if result.bound:
        gap = "" if result.gap is None else f", gap {result.gap:.2%}"
        source = result.bound_source if isinstance(result, ServingResult) else result.source
        facts.append(("bound", f"at most {tokens_text(result.bound)} by {BOUNDS.get(source, source)}{gap}"))
    if isinstance(result, ReplicatedResult):
        requests = sum(each.plan.requests for each in replicas)
        facts.append(("replicas", f"{len(replicas):,}, with {requests:,} requests in flight"))
    else:
        if result.sites.number > 1:
            facts.append(("sites", f"{result.sites.number}, with slow links between them"))
        if result.plan is not None and result.plan.groups:
            facts.append(("requests", _requests_text(result.plan)))
    if result.first_token is not None:
        facts.append(("first token", f"{result.first_token / SECOND:,.3f} s, without queues"))
    if replicas:
        used = sum(int((plan.end > plan.begin).sum()) for _, plan in replicas)
        facts.append(("nodes", f"{used} used, {result.problem.n_nodes - used} idle"))
    return [*facts, ("time", f"{result.seconds:.2f} s")]


def plan_grid(problem: Serving, replicas: Replicas) -> Grid:
    """The stages of a plan; of several replicas, their nodes, rates and requests."""
    if len(replicas) == 1:
        return _stage_grid(problem.part(replicas[0].nodes), replicas[0].plan)
    rows = []
    for number, (nodes, plan) in enumerate(replicas):
        kinds = Counter(problem.kind_names[k] for k in problem.kind[nodes].tolist())
        rows.append((
            f"{number}", ", ".join(f"{count} {kind}" for kind, count in kinds.items()), f"{plan.rate / TOKEN:,.1f}",
            f"{plan.requests:,}", f"{plan.groups:,}", f"{plan.token_time / SECOND * 1e3:,.1f} ms",
        ))  # fmt: skip
    return Grid(("replica", "nodes", "tokens/s", "requests", "groups", "a token every"), tuple(rows), left=2)


def _requests_text(plan: ServingPlan) -> str:
    groups = f"in {counted(plan.groups, 'group')}" if plan.groups > 1 else "in one group"
    return f"{plan.requests:,} in flight {groups}; each gets a token every {plan.token_time / SECOND * 1e3:,.1f} ms"


def price_facts(problem: Serving, replicas: Replicas, cheapest: CheapestResult | None) -> list[tuple[str, str]]:
    """The price of the nodes that a plan uses, and its lower bound; nothing without prices."""
    if problem.price is None or not replicas:
        return []
    used = np.concatenate([nodes[plan.end > plan.begin] for nodes, plan in replicas])
    hour = int(problem.price[problem.kind[used]].sum()) / TOKEN
    least = "" if cheapest is None else f", at least {cheapest.bound / TOKEN:,.2f} for {tokens_text(cheapest.demand)}"
    each = hour * 10**6 / (3600 * total_rate(replicas) / TOKEN)
    return [("price", f"{hour:,.2f} an hour{least}; {each:,.4f} for a million tokens")]


def report_line(report: ServingReport, replicas: Replicas) -> str:
    """The verdict of the verifier."""
    if not report.feasible:
        return f"infeasible: {counted(len(report.violations), 'rule')} broken"
    if len(replicas) != 1:
        requests = sum(each.plan.requests for each in replicas)
        return f"feasible: {tokens_text(report.rate)}; {len(replicas):,} replicas, {requests:,} requests in flight"
    plan = replicas[0].plan
    if plan.groups:
        first = "" if report.first_token is None else f", the first one after {report.first_token / SECOND:,.3f} s"
        return f"feasible: {tokens_text(report.rate)}; {_requests_text(plan)}{first}"
    largest = "no flow is larger with these layers" if report.largest else "a larger flow exists with these layers"
    return f"feasible: {tokens_text(report.rate)}; {largest}"


def state_line(states: Sequence[SteadyState], replicas: Replicas) -> str:
    """What simulations of all replicas measured."""
    rate, most = sum(each.rate for each in states), max(each.waiting for each in states)
    share = f"{rate / total_rate(replicas):.1%} of the plan"
    waiting = f"at most {counted(most, 'token')} before a node"
    if any(each.plan.groups for each in replicas):
        waiting = f"at most {counted(most, 'request')} in a step"
    return f"steady state: {tokens_text(round(rate))}, {share}; {waiting}"


def _stage_grid(problem: Serving, plan: ServingPlan) -> Grid:
    """Intervals of layers with the nodes that hold them: what they can pass, and what they pass."""
    passed = np.zeros(problem.n_nodes, dtype=np.int64)
    for (_, w), rate in zip(plan.edges.tolist(), plan.flow.tolist(), strict=True):
        if w != COORDINATOR:
            passed[w] += rate
    rates = node_rates(problem, plan.begin, plan.end)
    groups: dict[tuple[int, int], list[int]] = {}
    for n in np.flatnonzero(plan.end > plan.begin).tolist():
        groups.setdefault((int(plan.begin[n]), int(plan.end[n])), []).append(n)
    steps = None if problem.steps is None or not plan.period else node_steps(problem, plan)
    half, rows = problem.prefill_layers, []
    for (begin, end), nodes in sorted(groups.items()):
        names = ", ".join(_names([problem.node_names[n] for n in nodes], problem, nodes))
        able, used = int(rates[nodes].sum()), int(passed[nodes].sum())
        shown = [f"{able / TOKEN:,.1f}", f"{used / TOKEN:,.1f}", f"{used / able:.0%}" if able else ""]
        if steps is not None:
            most, longest = (max(int(of[n]) for n in nodes) for of in steps)
            busy = longest / plan.period
            if begin < half and problem.prompts is not None:  # a step is for a prompt
                longest = max(interval_time(problem, problem.prompts, n, begin, end) for n in nodes)
                most, busy = 1, used / able
            shown = [f"{used / TOKEN:,.1f}", f"{most:,}", f"{longest / SECOND * 1e3:,.1f} ms", f"{busy:.0%}"]
        phase = ["prefill" if begin < half else "decode"] if half else []
        begin, end = (layer - half * (begin >= half) for layer in (begin, end))
        rows.append((f"{begin}" if end == begin + 1 else f"{begin} to {end - 1}", names, *phase, *shown))
    left = ["layers", "nodes", "phase"] if half else ["layers", "nodes"]
    right = ["tokens/s at most", "tokens/s", "used"]
    if steps is not None:
        right = ["tokens/s", "requests a step", "step", "busy"]
    return Grid((*left, *right), tuple(rows), left=len(left))


def _names(names: list[str], problem: Serving, nodes: list[int]) -> list[str]:
    """Names, or numbers by kind of many nodes."""
    if len(names) <= 2:
        return names
    kinds = Counter(problem.kind_names[int(problem.kind[n])] for n in nodes)
    return [f"{number} {kind}" for kind, number in kinds.items()]


def gains_grid(found: Sequence[ServingGain]) -> Grid:
    """What changes of a cluster gain."""
    rows = [
        (
            each.change, f"{each.result.rate / TOKEN:,.1f}", f"{each.result.bound / TOKEN:,.1f}",
            *(("", "") if not k else ("-" if gain is None else f"{gain:+.1%}" for gain in (each.least, each.most))),
        )
        for k, each in enumerate(found)
    ]  # fmt: skip
    return Grid(("change", "tokens/s", "at most", "gain at least", "gain at most"), tuple(rows), left=1)


def replaced_grid(
    before: ServingPlan | Replicas, found: Sequence[Replanned], result: ServingResult | ReplicatedResult
) -> Grid:
    """Plans after a change: layers to load, rates, shares of the bound and of the rate before."""
    known = before.rate if isinstance(before, ServingPlan) else total_rate(before)
    rows = [
        (
            f"{each.loaded:,}", f"{each.rate / TOKEN:,.1f}", f"{each.rate / result.bound:.1%}",
            f"{each.rate / known:.1%}" if known else "-",
        )
        for each in found
    ]  # fmt: skip
    return Grid(("layers to load", "tokens/s", "of the bound", "of the rate before"), tuple(rows), left=0)
