"""Changed clusters: what one more node or faster links gain, and new plans after a change that load few weights."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from ortools.graph.python import linear_sum_assignment

from placeopt.errors import UsageError
from placeopt.model.arrays import Int
from placeopt.serving.improving import CoverageSearch
from placeopt.serving.in_flight import best_groups, with_token_time
from placeopt.serving.plan import Replica, Replicas, ServingPlan, check_replicas, node_rates, total_rate, without_idle
from placeopt.serving.prefill import routed
from placeopt.serving.problem import UNLIMITED, Serving, check_serving
from placeopt.serving.replicas import replicated_serving
from placeopt.serving.request_bounds import TimeBounds
from placeopt.serving.result import ReplicatedResult, ServingResult
from placeopt.serving.search import search_options
from placeopt.serving.sites import find_sites
from placeopt.serving.solving import DEFAULT_GAP, solve_serving
from placeopt.serving.verification import verify_replicas

RELUCTANCE = (1.0, 0.3, 0.1, 0.03)
"""What loading a layer costs in a search for a new plan, as shares of the wanted rate."""

SHARES = (0.999, 0.98, 0.95, 0.9, 0.8)
"""Shares of the rate of a new plan for which plans with fewer layers to load are searched."""


@dataclass(frozen=True, slots=True)
class ServingGain:
    """A change of a cluster, and the best plan found after it.

    `least` and `most` are the proved range of the relative gain: 0.1 for 10% more tokens per second. A node less gains
    nothing, and any other change loses nothing. They are None without a plan before the change.
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
            start = _replicas_of(changed, known.problem, known.replicas)
        elif known is not None and known.plan is not None:
            start = _intervals_of(changed, known.problem, known.plan)
        return solve(
            changed, time_limit=time_limit, gap_limit=gap_limit, seed=seed, workers=workers, should_stop=should_stop,
            start=start,
        )  # fmt: skip

    search_options("whatif_serving", problem, time_limit, gap_limit=gap_limit, seed=seed, workers=workers)
    found: dict[str, ServingResult | ReplicatedResult] = {}
    for change, changed in _changes(problem, factor):
        changed = replace(changed, replicas=min(problem.replicas, changed.n_nodes))
        found[change] = solved(changed, found.get("none"))
        if found[change].rate > found["none"].rate and changed.n_nodes < problem.n_nodes:
            found["none"] = solved(problem, found[change])  # a plan of fewer nodes is one of all
        if should_stop():
            break
    first, gains = found["none"], []
    for change, result in found.items():
        least = result.rate / first.bound - 1 if first.bound else None
        most = result.bound / first.rate - 1 if first.rate else None
        if result.problem.n_nodes < problem.n_nodes:
            most = None if most is None else min(most, 0.0)
        else:
            least = None if least is None else max(least, 0.0)
        gains.append(ServingGain(change, result, least, most))
    return gains


def _intervals_of(changed: Serving, problem: Serving, plan: ServingPlan) -> tuple[Int, Int]:
    """The intervals of a plan for the nodes of a changed problem; those of another name are idle."""
    held = {name: (int(plan.begin[n]), int(plan.end[n])) for n, name in enumerate(problem.node_names)}
    now = np.array([held.get(name, (0, 0)) for name in changed.node_names], dtype=np.int64)
    return now[:, 0], now[:, 1]


def _able(problem: Serving, now: Int) -> tuple[Int, Int]:
    """Intervals (v, 2) without those that their nodes cannot hold, after a change."""
    return now[:, 0], np.where(node_rates(problem, now[:, 0], now[:, 1]) > 0, now[:, 1], now[:, 0])


def _replicas_of(changed: Serving, problem: Serving, replicas: Replicas) -> Replicas:
    """The replicas of a problem all of whose nodes a changed problem has."""
    number = {name: n for n, name in enumerate(changed.node_names)}
    numbers = [[number.get(problem.node_names[n]) for n in each.nodes.tolist()] for each in replicas]
    return tuple(
        Replica(np.array(nodes, dtype=np.int64), each.plan)
        for nodes, each in zip(numbers, replicas, strict=True)
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
    """Replicas after a change, and the number of layers that nodes load for them, summed over the nodes."""

    replicas: Replicas
    loaded: int

    @property
    def rate(self) -> int:
        """The rate of all replicas, in millionths of a token per second."""
        return total_rate(self.replicas)

    @property
    def plan(self) -> ServingPlan:
        """The plan of the only replica.

        Raises
        ------
        UsageError
            If the problem allows several.
        """
        if len(self.replicas) != 1:
            raise UsageError(f"there are {len(self.replicas)} replicas; expected one, or use replicas")
        return self.replicas[0].plan


def replace_serving(
    problem: Serving,
    before: Serving,
    plan: ServingPlan | Replicas,
    *,
    time_limit: float = 30.0,
    seed: int = 0,
    workers: int | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> tuple[list[Replanned], ServingResult | ReplicatedResult]:
    """Plans for a changed cluster, from few layers to load to a large rate, and the result of a solve without them.

    Replicas whose nodes are all left stay as they are, and each of the others is planned again for the nodes that it
    has left; the last plan may be another one.

    Parameters
    ----------
    problem
        The cluster after the change, with the same layers. Nodes of the same name hold what they held.
    before, plan
        The cluster before the change, and its plan, or its replicas if it allows several.

    Raises
    ------
    UsageError
        If an argument is out of range.
    """
    search_options("replace_serving", problem, time_limit, seed=seed, workers=workers)
    check_serving("replace_serving", before)
    options = _Options(time_limit, seed, workers, should_stop)
    if isinstance(plan, ServingPlan):
        return _replaced_plan(problem, before, plan, options)
    check_replicas("replace_serving", plan)
    return _replaced_replicas(problem, before, plan, options)


class _Options(NamedTuple):
    time_limit: float
    seed: int
    workers: int | None
    should_stop: Callable[[], bool]


def _replaced_plan(
    problem: Serving, before: Serving, plan: ServingPlan, options: _Options
) -> tuple[list[Replanned], ServingResult]:
    until, seed = time.monotonic() + options.time_limit, options.seed

    def stopped() -> bool:
        return options.should_stop() or time.monotonic() > until

    now = np.stack(_intervals_of(problem, before, plan), axis=1)
    able = _able(problem, now)
    half = options._replace(time_limit=options.time_limit / 2)
    result = solve_serving(problem, start=able, **half._asdict())
    tried = [able]
    if result.plan is not None:
        place = _least_loaded(problem, now, result.plan.begin, result.plan.end)
        tried += [(result.plan.begin, result.plan.end), (result.plan.begin[place], result.plan.end[place])]
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
                begin, end, _ = search.search(*able, wanted, steps, stopped, stay=(now, int(reluctance * wanted) + 1))
                tried.append((begin, end))
    plans = [without_idle(routed(problem, best_groups(problem, begin, end))) for begin, end in tried]
    every = np.arange(problem.n_nodes)
    found = _ascending([_replanned(problem, now, (Replica(every, each),)) for each in plans])
    return [each for each in found if each.rate], result


def _replaced_replicas(
    problem: Serving, before: Serving, replicas: Replicas, options: _Options
) -> tuple[list[Replanned], ReplicatedResult]:
    number = {name: n for n, name in enumerate(problem.node_names)}
    now = np.zeros((problem.n_nodes, 2), dtype=np.int64)
    lost: list[tuple[Int, Replica]] = []  # nodes that are left of replicas that lose some
    for each in replicas:
        names = [before.node_names[n] for n in each.nodes.tolist()]
        left = [(number[name], k) for k, name in enumerate(names) if name in number]
        nodes, places = np.array(left, dtype=np.int64).reshape(-1, 2).T
        now[nodes, 0], now[nodes, 1] = each.plan.begin[places], each.plan.end[places]
        if 0 < len(nodes) < len(names):
            lost.append((nodes, each))
    found = [Replanned(_replicas_of(problem, before, replicas), 0)]
    for nodes, each in lost:
        asked = options._replace(time_limit=options.time_limit / 4 / len(lost))
        plans, _ = _replaced_plan(problem.part(nodes), before.part(each.nodes), each.plan, asked)
        found = _ascending([
            *found,
            *(
                Replanned((*known.replicas, Replica(nodes, new.plan)), known.loaded + new.loaded)
                for known in found
                for new in plans
            ),
        ])  # fmt: skip
    half = options._replace(time_limit=options.time_limit / 2)
    result = replicated_serving(problem, start=found[-1].replicas, **half._asdict())
    whole = [result.replicas]
    begin, end = np.zeros((2, problem.n_nodes), dtype=np.int64)
    for nodes, plan in result.replicas:
        begin[nodes], end[nodes] = plan.begin, plan.end
    node = np.argsort(_least_loaded(problem, now, begin, end))
    moved = tuple(Replica(node[nodes], plan) for nodes, plan in result.replicas)
    if verify_replicas(problem, moved).feasible:
        whole.append(moved)
    found = _ascending([*found, *(_replanned(problem, now, each) for each in whole)])
    return [each for each in found if each.rate], result


def _replanned(problem: Serving, now: Int, replicas: Replicas) -> Replanned:
    loaded = sum(loaded_layers(now[nodes], plan, problem.prefill_layers) for nodes, plan in replicas)
    return Replanned(replicas, loaded)


def _ascending(found: Sequence[Replanned]) -> list[Replanned]:
    """Those with a larger rate than all that load no more layers."""
    kept: list[Replanned] = []
    for each in sorted(found, key=lambda x: (x.loaded, -x.rate)):
        if not kept or each.rate > kept[-1].rate:
            kept.append(each)
    return kept


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


def _least_loaded(problem: Serving, now: Int, begin: Int, end: Int) -> Int:
    """(v,) for each node, the node of the same kind and site whose intervals it takes so that few layers are loaded."""
    place = np.arange(problem.n_nodes)
    groups = np.stack([problem.kind, find_sites(problem).of_node], axis=1)
    for group in np.unique(groups, axis=0):
        nodes = np.flatnonzero((groups == group).all(axis=1))
        held = np.stack([begin[nodes], end[nodes]], axis=1)
        common = _common(held[None], now[nodes][:, None], problem.prefill_layers)
        assignment = linear_sum_assignment.SimpleLinearSumAssignment()
        left, right = (index.reshape(-1) for index in np.indices(common.shape))
        assignment.add_arcs_with_cost(left, right, -common.reshape(-1))
        if assignment.solve() == assignment.OPTIMAL:
            place[nodes] = nodes[[assignment.right_mate(k) for k in range(len(nodes))]]
    return place
