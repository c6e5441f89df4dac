"""The best division of whole groups among the devices: a relaxation without any transfers, solved by CP-SAT.

    sum_(c, d) x[k, d] = groups of kind k          x integer; groups are of one kind if they may run on the same classes
                                                   and take the same amount there
    sum_k amount[k, c] x[k, d] <= T                each device d of class c

Amounts and T are divided by a power of two and rounded down: amounts that add up to at most T still do so. Devices of a
class are in the order of their loads. Every placement without replicas within the period T is a solution, if the
amounts of each of its devices add up to at most T.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
from ortools.sat.python import cp_model

from placeopt.bounding.engines import cp_sat
from placeopt.bounding.quick.loads import Sharing
from placeopt.protocol import Clock

PARTS = (1 << 14, 1 << 28)
"""The sum of all amounts stays below the first of these, which is fast, and then below the second, which is precise."""

MOST = 2_000
"""Maximum number of variables."""


def variables(sharing: Sharing) -> int:
    """Number of variables of the program."""
    return sum(sharing.size[list(places)].sum() for places, _ in _kinds(sharing))


def divides(
    sharing: Sharing, limit: int, *, seconds: float | None, workers: int, should_stop: Callable[[], bool]
) -> bool | None:
    """Whether the groups can be divided so that no device has more than `limit`; None if neither is proved in time."""
    clock, found = Clock(seconds), None
    for parts in PARTS:
        found = _divides(sharing, limit, parts, clock.remaining, workers, should_stop)
        if found is False or clock.over or should_stop():
            break
    return found


def _divides(
    sharing: Sharing, limit: int, parts: int, seconds: float | None, workers: int, should_stop: Callable[[], bool]
) -> bool | None:
    """Return `divides` with amounts that add up to less than `parts`."""
    total = int(np.where(sharing.allowed, sharing.amount, 0).max(axis=1, initial=0).sum()) + limit
    shift = max(total.bit_length() - parts.bit_length() + 1, 0)
    limit >>= shift
    model = cp_model.CpModel()
    loads: dict[tuple[int, int], list[cp_model.LinearExprT]] = {
        (c, d): [] for c, size in enumerate(sharing.size.tolist()) for d in range(size)
    }
    for (places, amounts), count in _kinds(sharing).items():
        row = []
        for c, amount in zip(places, amounts, strict=True):
            for d in range(int(sharing.size[c])):
                x = model.new_int_var(0, count, "")
                row.append(x)
                loads[c, d].append((amount >> shift) * x)
        model.add(sum(row) == count)
    before: cp_model.LinearExprT = 0
    for (_, d), terms in loads.items():
        load = sum(terms)
        model.add(load <= limit)
        if d:
            model.add(load <= before)
        before = load
    outcome = cp_sat.run(model, largest=parts, seconds=seconds, seed=0, workers=workers, should_stop=should_stop)
    if outcome.status == "INFEASIBLE":
        return False
    return True if outcome.solved else None


def _kinds(sharing: Sharing) -> Counter[tuple[tuple[int, ...], tuple[int, ...]]]:
    """How many groups may run on the same classes and take the same amounts, by these."""
    found: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
    for amount, allowed in zip(sharing.amount.tolist(), sharing.allowed.tolist(), strict=True):
        places = tuple(c for c, able in enumerate(allowed) if able)
        amounts = tuple(amount[c] for c in places)
        if any(amounts):
            found[places, amounts] += 1
    return found
