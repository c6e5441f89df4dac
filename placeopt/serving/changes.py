"""Changed clusters: what one more node or faster links gain, and new plans after a change that load few weights."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from ortools.graph.python import linear_sum_assignment

from placeopt.model.arrays import Int
from placeopt.orchestration.settings import make_options
from placeopt.serving.improving import CoverageSearch
from placeopt.serving.in_flight import best_groups, with_token_time
from placeopt.serving.plan import Replica, Replicas, ServingPlan, without_idle
from placeopt.serving.prefill import routed
from placeopt.serving.problem import UNLIMITED, Serving
from placeopt.serving.replicas import replicated_serving
from placeopt.serving.request_bounds import TimeBounds
from placeopt.serving.result import ReplicatedResult, ServingResult
from placeopt.serving.sites import find_sites
from placeopt.serving.solving import DEFAULT_GAP, solve_serving

RELUCTANCE = (1.0, 0.3, 0.1, 0.03)
"""What loading a layer costs in a search for a new plan, as shares of the wanted rate."""

SHARES = (0.999, 0.98, 0.95, 0.9, 0.8)
"""Shares of the rate of a new plan for which plans with fewer layers to load are searched."""


@dataclass(frozen=True, slots=True)
class ServingGain:
    """A change of a cluster, and the best plan found after it.

    `least` and `most` are the proved range of the relative gain: 0.1 for 10% more tokens per second. They are None
    without a plan before the change.
    """

    change: str
    result: ServingResult | ReplicatedResult
    least: float | None
    most: float | None


def whatif_serving(
    problem: Serving,
    *,
    factor: int = 2,
    time_limit: float = 10.0,
    gap_limit: float = DEFAULT_GAP,
    seed: int = 0,
    workers: int | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[ServingGain]:
    """What changes gain: nothing, one node less and one more of each kind, and links that are `factor` times as fast.

    Each problem is solved within `time_limit` seconds. Gains are at least the new rate over the old bound, and at most
    the new bound over the old rate.

    Raises
    ------
    UsageError
        If an argument is out of range.
    """

    def solved(changed: Serving, known: ServingResult | ReplicatedResult | None) -> ServingResult | ReplicatedResult:
        solve = replicated_serving if problem.replicas > 1 else solve_serving
        start: Any = None
        if isinstance(known, ReplicatedResult):
            start = _replicas_of(changed, known)
        elif known is not None and known.plan is not None:
            start = _intervals_of(changed, known.problem, known.plan)
        return solve(
            changed, time_limit=time_limit, gap_limit=gap_limit, seed=seed, workers=workers, should_stop=should_stop,
            start=start,
        )  # fmt: skip

    found: dict[str, ServingResult | ReplicatedResult] = {}
    for change, changed in _changes(problem, factor):
        changed = replace(changed, replicas=min(problem.replicas, changed.n_nodes))
        found[change] = solved(changed, found.get("none"))
        if found[change].rate > found["none"].rate and changed.n_nodes < problem.n_nodes:
            found["none"] = solved(problem, found[change])  # a plan of fewer nodes is one of all
        if should_stop():
            break
    first = found["none"]
    return [
        ServingGain(
            change, result, result.rate / first.bound - 1 if first.bound else None,
            result.bound / first.rate - 1 if first.rate else None,
        )
        for change, result in found.items()
    ]  # fmt: skip


def _intervals_of(changed: Serving, problem: Serving, plan: ServingPlan) -> tuple[Int, Int]:
    """The intervals of a plan for the nodes of a changed problem; those of another name are idle."""
    held = {name: (int(plan.begin[n]), int(plan.end[n])) for n, name in enumerate(problem.node_names)}
    now = np.array([held.get(name, (0, 0)) for name in changed.node_names], dtype=np.int64)
    return now[:, 0], now[:, 1]


def _replicas_of(changed: Serving, known: ReplicatedResult) -> Replicas:
    """The known replicas whose nodes a changed problem has."""
    number = {name: n for n, name in enumerate(changed.node_names)}
    numbers = [[number.get(known.problem.node_names[n]) for n in each.nodes.tolist()] for each in known.replicas]
    return tuple(
        Replica(np.array(nodes, dtype=np.int64), each.plan)
        for nodes, each in zip(numbers, known.replicas, strict=True)
        if None not in nodes
    )


def _changes(problem: Serving, factor: int) -> Iterator[tuple[str, Serving]]:
    yield "none", problem
    of_kind = [(name, np.flatnonzero(problem.kind == kind)) for kind, name in enumerate(problem.kind_names)]
    for name, nodes in of_kind:
        if len(nodes) and problem.n_nodes > 1:
            yield f"one {name} less", problem.part(np.delete(np.arange(problem.n_nodes), nodes[-1]))
    for name, nodes in of_kind:
        if len(nodes):
            yield f"one {name} more", _with_copy(problem, int(nodes[0]))
    sites = find_sites(problem).of_node
    between = sites[:, None] != sites[None, :]
    for what, links in ((" between sites", between), ("", np.ones_like(between))):
        faster = np.where(links, np.minimum(problem.link * factor, UNLIMITED), problem.link)
        if links.any() and (problem.link[links] < UNLIMITED).any():
            prompts = problem.prompts
            if prompts is not None and prompts.transfer is not None:
                transfer = np.where(links, np.minimum(prompts.transfer * factor, UNLIMITED), prompts.transfer)
                prompts = replace(prompts, transfer=transfer)
            yield f"links{what} {factor} times as fast", replace(problem, link=faster, prompts=prompts)


def _with_copy(problem: Serving, node: int) -> Serving:
    """The problem with one node more, like another and with its links; as fast to that as the fastest of them."""
    nodes = np.append(np.arange(problem.n_nodes), node)
    more = problem.part(nodes)
    numbered = (f"{problem.node_names[node]}+{k}" for k in range(1, problem.n_nodes + 2))
    name = next(each for each in numbered if each not in problem.node_names)
    link, prompts = _joined(more.link, node), more.prompts
    if prompts is not None and prompts.transfer is not None:
        prompts = replace(prompts, transfer=_joined(prompts.transfer, node))
    steps = more.steps
    if steps is not None:
        delay = steps.delay.copy()
        others = np.delete(delay[node, :-1], node)
        delay[node, -1] = delay[-1, node] = others.min() if len(others) else 0
        steps = replace(steps, delay=delay)
    return replace(more, node_names=(*problem.node_names, name), link=link, steps=steps, prompts=prompts)


def _joined(rates: Int, node: int) -> Int:
    """Rates of links, of which the last node has those of another one, with the fastest of them between the two."""
    found = rates.copy()
    others = np.delete(rates[node, :-1], node)
    found[node, -1] = found[-1, node] = others.max(initial=0) if len(others) else UNLIMITED
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Replanned:
    """A plan after a change, and the number of layers that nodes load for it, summed over the nodes."""

    plan: ServingPlan
    loaded: int


def replace_serving(
    problem: Serving,
    before: Serving,
    plan: ServingPlan,
    *,
    time_limit: float = 30.0,
    seed: int = 0,
    workers: int | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> tuple[list[Replanned], ServingResult]:
    """Plans for a changed cluster, from few layers to load to a large rate, and the result of a solve without them.

    Parameters
    ----------
    problem
        The cluster after the change, with the same layers. Nodes of the same name hold what they held.
    before, plan
        The cluster before the change, and its plan.

    Raises
    ------
    UsageError
        If an argument is out of range.
    """
    make_options(time_limit=time_limit, gap_limit=None, seed=seed, workers=workers)
    until = time.monotonic() + time_limit

    def stopped() -> bool:
        return should_stop() or time.monotonic() > until

    now = np.stack(_intervals_of(problem, before, plan), axis=1)
    result = solve_serving(
        problem,
        time_limit=time_limit / 2,
        seed=seed,
        workers=workers,
        should_stop=should_stop,
        start=(now[:, 0], now[:, 1]),
    )
    tried = [(now[:, 0], now[:, 1])]
    if result.plan is not None:
        tried += [(result.plan.begin, result.plan.end), _moved_least(problem, now, result.plan)]
    plain = problem
    if problem.steps is not None and result.plan is not None:
        time_between = result.plan.token_time
        plain = with_token_time(problem, time_between, TimeBounds(problem).worth(time_between))
    search = CoverageSearch(plain, np.arange(problem.n_nodes), seed)
    for share in SHARES:
        for reluctance in RELUCTANCE:
            if not stopped():
                wanted = max(int(share * result.rate), 1)
                steps = 200 * problem.n_nodes
                begin, end, _ = search.search(
                    now[:, 0], now[:, 1], wanted, steps, stopped, stay=(now, int(reluctance * wanted) + 1)
                )
                tried.append((begin, end))
    plans = [without_idle(routed(problem, best_groups(problem, begin, end))) for begin, end in tried]
    replanned = [Replanned(each, loaded_layers(now, each, problem.prefill_layers)) for each in plans]
    found: list[Replanned] = []
    for each in sorted(replanned, key=lambda x: (x.loaded, -x.plan.rate)):
        if each.plan.rate > (found[-1].plan.rate if found else 0):
            found.append(each)
    return found, result


def loaded_layers(now: Int, plan: ServingPlan, prefill_layers: int = 0) -> int:
    """The number of layers of a plan that nodes do not hold now, given as (v, 2) intervals.

    With separate prefill, the same weights serve for both phases.
    """
    common = _common(np.stack([plan.begin, plan.end], axis=1), now, prefill_layers)
    return int((plan.end - plan.begin - common).sum())


def _common(one: Int, other: Int, prefill_layers: int) -> Int:
    """Numbers of layers of the model that intervals (..., 2) have in common."""
    one, other = (each - prefill_layers * (each[..., :1] >= prefill_layers) for each in (one, other))
    common: Int = np.minimum(one[..., 1], other[..., 1]) - np.maximum(one[..., 0], other[..., 0])
    return np.maximum(common, 0)


def _moved_least(problem: Serving, now: Int, plan: ServingPlan) -> tuple[Int, Int]:
    """The intervals of a plan, distributed among nodes of the same kind and site so that few layers are loaded."""
    begin, end = plan.begin.copy(), plan.end.copy()
    groups = np.stack([problem.kind, find_sites(problem).of_node], axis=1)
    for group in np.unique(groups, axis=0):
        nodes = np.flatnonzero((groups == group).all(axis=1))
        held = np.stack([begin[nodes], end[nodes]], axis=1)
        common = _common(held[None], now[nodes][:, None], problem.prefill_layers)
        assignment = linear_sum_assignment.SimpleLinearSumAssignment()
        left, right = (index.reshape(-1) for index in np.indices(common.shape))
        assignment.add_arcs_with_cost(left, right, -common.reshape(-1))
        if assignment.solve() == assignment.OPTIMAL:
            order = [assignment.right_mate(k) for k in range(len(nodes))]
            begin[nodes], end[nodes] = begin[nodes][order], end[nodes][order]
    return begin, end
