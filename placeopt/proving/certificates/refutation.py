"""Search a tree of cases that refutes all schedules below a makespan, as a claim.

The cases and the decisions that divide them are those of the checker (`placeopt.verifier.certificates.refutation`), so
a tree that is found here is one that it accepts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import ceil

import numpy as np

from placeopt.model.problem import UNLIMITED, Problem
from placeopt.proving.certificates.leaves import Claim, infeasible_claim
from placeopt.verifier.certificates import exact
from placeopt.verifier.certificates.devices import charge, cheapest
from placeopt.verifier.certificates.model import Model, within
from placeopt.verifier.certificates.refutation import (
    PARTS,
    ClosedError,
    Limit,
    decided,
    least_work,
    narrowed,
    open_orders,
    spending,
)

FEW, LARGE, MOST = 60, 40, 10_000
"""Tasks beyond which each decision of a tree must close a part; the most cases of such a tree, and of others."""


class LimitError(Exception):
    """The tree has too many cases or takes too much work, or the time is over, or a case is a schedule of the model."""


def refutation_claim(
    model: Model,
    names: Sequence[str],
    value: int | Fraction,
    should_stop: Callable[[], bool],
    most: int = MOST,
    limit_of: Limit | None = None,
) -> Claim | None:
    """A claim that the makespan is at least a value; None if none is found. `names` are those of the model's tasks.

    With `limit_of`, it is about a sum of metrics: schedules of a case end by its limit if the sum is below the value.
    """
    end = ceil(value) - 1
    left, limit, spend = most, limit_of or (lambda _: end), spending(LimitError())
    root = model if limit_of is not None or model.cuts[0] is not None else within(model, end)

    def proof(case: Model) -> Claim | None:
        """The proof of a case; None if narrowing closes it."""
        nonlocal left
        left -= 1
        try:
            case = narrowed(case, limit, spend)
        except ClosedError:
            return None
        if left < 2 or should_stop():
            raise LimitError
        decision, closed = (_undecided(case), set[str]()) if case.n <= FEW else probed(case)
        if decision is None:
            raise LimitError
        kind, i, j = decision
        other = case.problem.device_names[case.devices.leader[j]] if kind == "class" else names[j]
        parts = zip(PARTS[kind], decided(case, kind, i, j, end), strict=True)
        return {kind: [names[i], other], **{key: None if key in closed else proof(part) for key, part in parts}}

    def probed(case: Model) -> tuple[tuple[str, int, int] | None, set[str]]:
        """A decision that closes a part of a large case, and the parts that it closes; None without one."""
        for i, j in _joined(case):
            closed = set[str]()
            for name, part in zip(PARTS["pair"], decided(case, "pair", i, j, end), strict=True):
                if should_stop():
                    return None, closed
                try:
                    narrowed(part, limit, spend)
                except ClosedError:
                    closed.add(name)
            if closed:
                return ("pair", i, j), closed
        return None, set()

    try:
        return {"claim": "refutation", "value": exact(value), "proof": proof(root)}
    except (LimitError, RecursionError):
        return None


def due_claim(model: Model, problem: Problem, ticks: int) -> Claim | None:
    """A claim that the makespan is at least `ticks`, by a quick bound with deadlines; None if there is none.

    The makespan is the objective of the problem, which is that of the model.
    """
    if ticks < 1 or (problem.deadline == UNLIMITED).all():
        return None
    sooner = replace(problem, deadline=np.minimum(problem.deadline, ticks - 1))
    claim = infeasible_claim(sooner, within(model, ticks - 1), ticks)
    return None if claim is None else {"claim": "refutation", "value": ticks, "proof": claim}


def _undecided(model: Model) -> tuple[str, int, int] | None:
    """A decision that divides the case; None if all is decided.

    Groups with few classes are first, as in a search for a solution that fails first, then those on the longest path.
    """

    def work(i: int) -> int:
        return model.least(i, model.duration)

    def longest(g: int) -> int:
        return max(model.least(i, model.head, model.duration, model.tail) for i in model.members[g])

    several = [g for g, row in enumerate(model.fits) if sum(row) > 1]
    if several:
        members = model.members[max(several, key=lambda g: (-sum(model.fits[g]), longest(g)))]
        last = {
            c: max(model.head[i][c] + model.duration[i][c] + model.tail[i][c] for i in members)
            for c, may in enumerate(model.allowed[members[0]])
            if may
        }
        return "class", members[0], min(last, key=last.__getitem__)
    rates = [rate for row in model.devices.links for rate in row if rate is not None]
    groups = set(_open_groups(model))
    pairs = []
    for edge in model.edges:
        i, j = edge.source, edge.target
        if (model.group[i], model.group[j]) in groups or (model.group[j], model.group[i]) in groups:
            ticks = min((charge(rate, edge.payload) for rate in rates), default=0)
            pairs.append((model.least(i, model.head) + work(i) + ticks + work(j) + model.least(j, model.tail), i, j))
    if pairs:
        _, i, j = max(pairs)
        return "pair", i, j
    orders = []
    for i, j in open_orders(model):
        c = model.fits[model.group[i]].index(True)
        both = model.duration[i][c] + model.duration[j][c]
        ends = sorted((model.head[i][c] + both + model.tail[j][c], model.head[j][c] + both + model.tail[i][c]))
        orders.append((ends[0], ends[1], i, j))
    if orders:
        _, _, i, j = max(orders)
        return "order", i, j
    far = [(work(model.members[g][0]) + work(model.members[h][0]), g, h) for g, h in groups]
    if far:
        g, h = max(far)[1:]
        return "pair", model.members[g][0], model.members[h][0]
    return None


def _joined(model: Model) -> list[tuple[int, int]]:
    """Edges between groups that may share a device or not; first those of groups with the most edges between them.

    Of these, the ones that take long both with a transfer and on one device are first.
    """
    longest, number, columns = dict[tuple[int, int], tuple[int, int, int]](), Counter[tuple[int, int]](), range(model.k)
    for edge in model.edges:
        i, j, pair = edge.source, edge.target, (model.group[edge.source], model.group[edge.target])
        if any(model.may_share(*pair, c) for c in columns) and pair[0] != pair[1]:
            moving = cheapest(model.devices.links, edge.payload, model.open[i], model.open[j])
            ticks = model.least(i, model.head, model.duration) + moving + model.least(j, model.duration, model.tail)
            longest[pair], number[pair] = max(longest.get(pair, (0, 0, 0)), (ticks, i, j)), number[pair] + 1

    def score(pair: tuple[int, int]) -> tuple[int, int]:
        tasks, shared = (
            [*model.members[pair[0]], *model.members[pair[1]]],
            [c for c in columns if model.may_share(*pair, c)],
        )
        together = min(
            least_work([(model.head[i][c], model.tail[i][c], model.busy[i][c]) for i in tasks], 1) for c in shared
        )
        return number[pair], min(longest[pair][0], together)

    return [longest[pair][1:] for pair in sorted(longest, key=score, reverse=True)]


def _open_groups(model: Model) -> list[tuple[int, int]]:
    """Pairs of groups of which it is not decided whether they share a device."""
    return [
        (g, h)
        for g, h in combinations(range(len(model.members)), 2)
        if (g, h) not in model.apart and any(a and b for a, b in zip(model.fits[g], model.fits[h], strict=True))
    ]
