"""All plans of a small problem in one model of CP-SAT: an interval for each node, and the flow between nodes.

Rates are rounded up to a grid, so that the model's bound holds. Intervals and flows are those of Mei et al. (Helix,
ASPLOS 2025, section 4); beyond them, the model states that the nodes of every layer pass all tokens together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from ortools.sat.python import cp_model

from placeopt.bounding.engines import cp_sat
from placeopt.model.arrays import Int
from placeopt.serving.plan import ServingPlan
from placeopt.serving.problem import Serving

STEPS = 2**20
"""Steps of the grid between 0 and the bound that is known."""

MOST_NODES, MOST_INTERVALS = 12, 3_000
"""Most nodes in a model, and most intervals that they can hold; larger models do not even match other searches."""


@dataclass(frozen=True, slots=True)
class _Node:
    """Variables of a node: its interval, and the tokens over its links."""

    begin: cp_model.IntVar
    end: cp_model.IntVar
    used: cp_model.IntVar
    choices: list[tuple[int, int, int, cp_model.IntVar]]  # begin, end, rate in steps, whether it is this interval
    into: list[cp_model.IntVar]
    out: list[cp_model.IntVar]


def intervals_of(problem: Serving, node: int) -> Iterator[tuple[int, int]]:
    """The intervals that a node can hold."""
    kind = int(problem.kind[node])
    for begin in range(problem.layers):
        for end in range(begin + 1, min(begin + problem.most, problem.layers) + 1):
            if problem.rate_of(kind, begin, end):
                yield begin, end


def is_small(problem: Serving) -> bool:
    """Whether the model of a problem is small enough to be worth a try."""
    if problem.n_nodes > MOST_NODES:
        return False
    by_kind = {int(kind): n for n, kind in enumerate(problem.kind)}
    sizes = {kind: sum(1 for _ in intervals_of(problem, n)) for kind, n in by_kind.items()}
    return sum(sizes[int(kind)] for kind in problem.kind) <= MOST_INTERVALS


def solve_exactly(
    problem: Serving, upper: int, start: ServingPlan | None, seconds: float, seed: int, workers: int,
    should_stop: Callable[[], bool],
) -> tuple[tuple[Int, Int] | None, int]:  # fmt: skip
    """The intervals of the best plan found, None without one, and a bound of the rate that is at most `upper`."""
    unit = max(1, -(-upper // STEPS))
    model = cp_model.CpModel()
    nodes = [_add_node(model, problem, n, unit) for n in range(problem.n_nodes)]
    for n, node in enumerate(nodes):
        node.into.append(_add_edge(model, [node.begin == 0, node.used == 1], problem.prefill_entry[n], unit))
        node.out.append(_add_edge(model, [node.end == problem.layers], problem.exit[n], unit))
    entering = [node.into[0] for node in nodes]
    link = problem.link
    if problem.prefill_layers:  # of the limits at different layers, the largest one
        link = np.maximum(np.maximum(link, problem.prefill_link), problem.entry[None, :])
    for (u, sender), (w, receiver) in permutations(enumerate(nodes), 2):
        joins = receiver.begin <= sender.end if problem.partial else receiver.begin == sender.end
        later = [joins, receiver.end > sender.end, sender.used == 1]  # an idle node has neither begin nor end: 0
        flow = _add_edge(model, later, link[u, w], unit)
        sender.out.append(flow)
        receiver.into.append(flow)
    total = model.new_int_var(0, _steps(upper, unit), "rate")
    model.add(total == sum(entering))
    for node in nodes:
        model.add(sum(node.into) == sum(node.out))
        model.add(sum(node.into) <= sum(rate * x for _, _, rate, x in node.choices))
    for layer in range(problem.layers):
        held = [rate * x for node in nodes for begin, end, rate, x in node.choices if begin <= layer < end]
        model.add(sum(held) >= total)
    for a, b in _alike(problem):
        model.add(nodes[a].begin <= nodes[b].begin)
    if start is not None:
        for n, node in enumerate(nodes):
            for begin, end, _, x in node.choices:
                model.add_hint(x, (begin, end) == (start.begin[n], start.end[n]))
    model.minimize(-total)
    outcome = cp_sat.run(
        model, largest=STEPS * problem.n_nodes, seconds=seconds, seed=seed, workers=workers, should_stop=should_stop
    )
    bound = upper if outcome.bound is None else min(upper, -outcome.bound * unit)
    if not outcome.solved:
        return None, bound
    value = outcome.solver.value
    return (np.array([value(n.begin) for n in nodes]), np.array([value(n.end) for n in nodes])), bound


def _steps(rate: int, unit: int) -> int:
    return int(min(-(-int(rate) // unit), STEPS))


def _add_node(model: cp_model.CpModel, problem: Serving, n: int, unit: int) -> _Node:
    kind = int(problem.kind[n])
    choices = [
        (begin, end, _steps(problem.rate_of(kind, begin, end), unit), model.new_bool_var(f"holds{n},{begin},{end}"))
        for begin, end in intervals_of(problem, n)
    ]
    used = model.new_bool_var(f"used{n}")
    model.add_exactly_one([used.negated(), *(x for *_, x in choices)])
    begin, end = (model.new_int_var(0, problem.layers, f"{what}{n}") for what in ("begin", "end"))
    model.add(begin == sum(first * x for first, _, _, x in choices))
    model.add(end == sum(after * x for _, after, _, x in choices))
    return _Node(begin, end, used, choices, [], [])


def _add_edge(
    model: cp_model.CpModel, conditions: Iterable[cp_model.BoundedLinearExpression | bool], most: int, unit: int
) -> cp_model.IntVar:
    """The flow over an edge, which is 0 unless all conditions hold."""
    limit = _steps(most, unit)
    flow, flows = model.new_int_var(0, limit, "flow"), model.new_bool_var("flows")
    model.add(flow <= limit * flows)
    for condition in conditions:
        model.add(condition).only_enforce_if(flows)
    return flow


def _alike(problem: Serving) -> Iterator[tuple[int, int]]:
    """Pairs of nodes that may change places, so that the first of them begins first in some best plan."""
    before: list[int] = []
    for n in range(problem.n_nodes):
        same = next((m for m in reversed(before) if _may_swap(problem, m, n)), None)
        if same is not None:
            yield same, n
        before.append(n)


def _may_swap(problem: Serving, m: int, n: int) -> bool:
    """Whether nodes have the same kind, and the same links to all others."""
    order = np.arange(problem.n_nodes)
    order[[m, n]] = n, m
    arrays = (problem.kind, problem.entry, problem.exit)
    link = problem.link.copy()
    np.fill_diagonal(link, 0)
    return all(np.array_equal(x, x[order]) for x in arrays) and np.array_equal(link, link[np.ix_(order, order)])
