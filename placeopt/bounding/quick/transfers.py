"""Unavoidable transfers: the bytes, ticks or energy that every placement moves between devices.

A transfer of b bytes costs fixed + ceil(b num / den) on its link, whichever of the three is counted. Two facts force
transfers:

*forced edges*: the two groups of an edge have no common device, are separated, or fit together on no device. Such an
edge needs a transfer, at least at the price of the cheapest link that the two may use. One transfer may serve several
shared edges of a producer: the most expensive counts.

*split components*: groups connected by edges that have no common device, or whose memory needs j > 1 devices (the j - 1
largest that they may use are too small), use at least j devices. Their edges connect these devices, so at least j - 1
transfers run between different pairs of them. These serve different edges, so they cost at least as much as the j - 1
cheapest edges of the component.

Each edge belongs to one component: the bound is the sum over components of the larger of the two costs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.bounding.quick.classes import Classes, device_sets
from placeopt.model.arrays import Bool, Int, by_index
from placeopt.model.graph import components
from placeopt.model.problem import transfer_ticks

KINDS = 64
"""Maximum number of pairs of device sets whose cheapest link is determined; with more, the cheapest link of all is
used."""

EXACT_TOTAL = 1 << 52
"""Memory up to which the capacities of a thousand devices add up within 64 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class TransferCost:
    """The cost of a transfer between two distinct devices: (k, k) arrays, by class of source and target."""

    fixed: Int
    num: Int
    den: Int

    def cheapest(self, payload: Int, links: Bool) -> Int:
        """(x,) the cost of each payload over the best of the `links` (k, k); 0 without links."""
        rows = np.unique(np.stack((self.fixed[links], self.num[links], self.den[links]), axis=1), axis=0)
        best = np.full(len(payload), np.iinfo(np.int64).max)
        slowest = np.inf
        for fixed, num, den in rows.tolist():  # by increasing fixed cost; a higher rate cannot win
            if num / den <= slowest:
                slowest = num / den
                best = np.minimum(best, transfer_ticks(payload, fixed, num, den))
        return best if len(rows) else np.zeros_like(payload)


def unavoidable_cost(classes: Classes, tariff: TransferCost) -> int:
    """A lower bound of the total cost of all transfers."""
    problem = classes.problem
    if problem.n_edges == 0:
        return 0
    component, count = components(
        problem.n_groups, problem.group[problem.edge_source], problem.group[problem.edge_target]
    )
    by_edge = component[problem.group[problem.edge_source]]
    forced = np.flatnonzero(_forced(classes))
    charge = _charges(classes, tariff, forced)
    shared = problem.shared[forced]
    least = by_index(np.add, by_edge[forced[~shared]], charge[~shared], count)
    dearest = by_index(np.maximum, problem.edge_source[forced[shared]], charge[shared], problem.n_tasks)
    np.add.at(least, component[problem.group], dearest)

    cuts = _devices_needed(classes, component, count) - 1
    crossing = np.flatnonzero(~classes.together & (cuts[by_edge] > 0))
    price = tariff.cheapest(problem.payload[crossing], classes.linked)
    order = np.lexsort((price, by_edge[crossing]))
    owner = by_edge[crossing][order]
    rank = np.arange(len(owner)) - np.searchsorted(owner, owner)
    among = rank < cuts[owner]
    split = by_index(np.add, owner[among], price[order][among], count)
    return int(np.maximum(least, split).sum())


def _forced(classes: Classes) -> Bool:
    """(e,), whether no device can run both ends of the edge."""
    problem = classes.problem
    source, target = problem.group[problem.edge_source], problem.group[problem.edge_target]
    both = classes.group_memory[source] + classes.group_memory[target]
    common = classes.together.copy()
    for c in range(classes.n_classes):
        fits = classes.allowed[source, c] & classes.allowed[target, c] & (both <= classes.capacity[c])
        common |= fits & ~classes.apart
    return np.asarray(~common)


def _charges(classes: Classes, tariff: TransferCost, edges: Int) -> Int:
    """(x,) the least cost of a transfer for each edge, between devices that its ends may use."""
    problem = classes.problem
    kinds, kind = device_sets(classes)
    payload = problem.payload[edges]
    pairs = (
        kind[problem.group[problem.edge_source[edges]]] * len(kinds) + kind[problem.group[problem.edge_target[edges]]]
    )
    found = np.unique(pairs)
    if len(found) > KINDS:
        return tariff.cheapest(payload, classes.linked)
    charge = np.zeros(len(edges), dtype=np.int64)
    for pair in found.tolist():
        members = pairs == pair
        usable = classes.linked & kinds[pair // len(kinds)][:, None] & kinds[pair % len(kinds)]
        charge[members] = tariff.cheapest(payload[members], usable)
    return charge


def _devices_needed(classes: Classes, component: Int, count: int) -> Int:
    """(count,) a lower bound of the number of devices for the groups of each component."""
    shared = np.ones((count, classes.n_classes), dtype=np.bool_)
    usable = np.zeros((count, classes.n_classes), dtype=np.bool_)
    order = np.argsort(component, kind="stable")
    starts = np.searchsorted(component[order], np.arange(count))
    np.logical_and.reduceat(classes.allowed[order], starts, axis=0, out=shared)
    np.logical_or.reduceat(classes.allowed[order], starts, axis=0, out=usable)
    needed = np.where(shared.any(axis=1), 1, 2)
    memory = np.add.reduceat(classes.group_memory[order], starts)
    if memory.sum() < EXACT_TOTAL:
        of_device = classes.problem.device_class
        room = np.where(usable[:, of_device], np.minimum(classes.capacity[of_device], memory[:, None]), 0)
        held = np.cumsum(-np.sort(-room, axis=1), axis=1)
        needed = np.maximum(needed, (held < memory[:, None]).sum(axis=1) + 1)
    return np.minimum(needed, np.bincount(component, minlength=count))
