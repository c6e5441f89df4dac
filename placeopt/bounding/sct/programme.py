"""The linear programme of Small Communication Times: which child should follow its parent on the same device.

C. Hanen, A. Munier, "An approximation algorithm for scheduling dependent tasks on m processors with small communication
delays", IEEE ETFA 1995 (Discrete Applied Mathematics 108, 2001, doi:10.1016/S0166-218X(00)00179-7), section 3.2; as
equation 2 in B. Jeon et al., "Baechi: fast device placement of machine learning graphs", SoCC 2020,
doi:10.1145/3419111.3421302. With y = 1 - x, k the durations and c the
transfer times:

    minimise w,   s_j >= s_i + k_i + c_ij (1 - y_ij),   s_i + k_i <= w,
    sum over children j of y_ij <= 1,   sum over parents i of y_ij <= 1,   0 <= y <= 1.

y_ij = 1 makes j the favourite child of i, and i the favourite parent of j; y is a fractional matching that shortens the
longest path.

Departures: durations are means over the devices that may run the task, transfers means over all pairs of distinct
devices (the paper has equal devices); a task does not start before its release; several edges from one task to another
count as one, as long as the longest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.bounding.quick.classes import LARGEST_TOTAL
from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import Problem

PARTS = 1024
"""Parts of a tick in which times are counted where means are no whole numbers of ticks."""


@dataclass(frozen=True, slots=True, eq=False)
class Programme:
    """The linear programme of n tasks and e edges, no two of which join the same tasks.

    Attributes
    ----------
    parts
        All times are whole numbers of 1 / parts of a tick.
    order
        (n,) a topological order.
    length, release, tail
        (n,) k; s >= release; w >= s + k + tail.
    source, target
        (e,) sorted by both: s[target] >= s[source] + length[source] + fixed + hidden (1 - y).
    fixed, hidden
        (e,) what an edge takes always, and what it takes besides unless it is a favourite: c.
    out_rival, in_rival
        (e,), whether the edge is one of those of its producer, of its consumer, of which one is the favourite at most.
    """

    parts: int
    order: Int
    length: Int
    release: Int
    tail: Int
    source: Int
    target: Int
    fixed: Int
    hidden: Int
    out_rival: Bool
    in_rival: Bool


def programme_of(problem: Problem) -> Programme:
    """The programme of the paper."""
    count = problem.feasible.sum(axis=1)
    duration = np.where(problem.feasible, problem.duration, 0).sum(axis=1)
    transfer, pairs = _transfers(problem)
    whole = not (duration % np.maximum(count, 1)).any() and not (transfer % max(pairs, 1)).any()
    parts = 1 if whole else PARTS
    source, target, (hidden,) = merged_edges(problem, _mean(transfer, pairs, parts, problem.n_edges))
    rival = np.ones(len(source), dtype=np.bool_)
    return Programme(
        parts=parts,
        order=problem.order,
        length=_mean(duration, count, parts, problem.n_tasks),
        release=np.minimum(problem.release, LARGEST_TOTAL // parts) * parts,
        tail=np.zeros(problem.n_tasks, dtype=np.int64),
        source=source,
        target=target,
        fixed=np.zeros_like(hidden),
        hidden=hidden,
        out_rival=rival,
        in_rival=rival,
    )


def merged_edges(problem: Problem, *longest: Int) -> tuple[Int, Int, list[Int]]:
    """Source and target of each pair of tasks that an edge joins, sorted, and the largest of their edges' values."""
    n = max(problem.n_tasks, 1)
    keys, first = np.unique(problem.edge_source * n + problem.edge_target, return_index=True)
    # Edges are sorted by both ends: those of one pair stand together.
    return keys // n, keys % n, [np.maximum.reduceat(each, first) if len(first) else each for each in longest]


def link_kinds(problem: Problem) -> list[tuple[int, int, int]]:
    """A pair of distinct devices for each kind of link, and how many ordered pairs have it."""
    source, target = np.nonzero(~np.eye(problem.n_devices, dtype=np.bool_))
    links = (problem.latency, problem.byte_ticks_num, problem.byte_ticks_den)
    table = np.stack([each[source, target] for each in links], axis=1)
    _, first, number = np.unique(table, axis=0, return_index=True, return_counts=True)
    return list(zip(source[first].tolist(), target[first].tolist(), number.tolist(), strict=True))


def _transfers(problem: Problem) -> tuple[Int, int]:
    """(e,) the sum over all ordered pairs of distinct devices of what each edge's transfer takes, and their number."""
    total = np.zeros(problem.n_edges, dtype=np.int64)
    pairs = problem.n_devices * (problem.n_devices - 1)
    for source, target, number in link_kinds(problem):
        ticks = problem.transfer(problem.payload, source, target)
        total += np.minimum(ticks, LARGEST_TOTAL // max(pairs, 1)) * number
    return total, pairs


def _mean(total: Int, count: Int | int, parts: int, items: int) -> Int:
    """Sums over counts in parts of a tick, to the nearest; no larger than lets the sum over all items fit."""
    number = np.maximum(count, 1)
    whole, rest = total // number, total % number
    most = LARGEST_TOTAL // (parts * max(items, 1))
    return np.where(
        whole < most, np.minimum(whole, most) * parts + (rest * parts + number // 2) // number, most * parts
    )
