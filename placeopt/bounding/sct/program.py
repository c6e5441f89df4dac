"""The linear program of Small Communication Times: which child should follow its parent on the same device.

C. Hanen, A. Munier, "An approximation algorithm for scheduling dependent tasks on m processors with small communication
delays", IEEE ETFA 1995 (Discrete Applied Mathematics 108, 2001, doi:10.1016/S0166-218X(00)00179-7), section 3.2; as
equation 2 in B. Jeon et al., "Baechi: fast device placement of machine learning graphs", SoCC 2020,
doi:10.1145/3419111.3421302. With y = 1 - x, durations k and transfer times c:

    minimise w,   s_j >= s_i + k_i + c_ij (1 - y_ij),   s_i + k_i <= w,
    sum over children j of y_ij <= 1,   sum over parents i of y_ij <= 1,   0 <= y <= 1.

y_ij = 1 makes j the favourite child of i, and i the favourite parent of j. y is a fractional matching that minimises
the longest path.

Departures: durations are means over the devices that may run the task, and transfers are means over all pairs of
distinct devices (the paper has identical devices). A task does not start before its release time. Parallel edges count
as one, with the longest transfer; the released code adds up the transfers of different tensors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from placeopt.bounding.quick.classes import LARGEST_TOTAL
from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import Problem

PARTS = 1024
"""Parts of a tick in which times are counted if some mean is not an integer."""

EXACT_BITS = 50
"""Paths shorter than 2**EXACT_BITS parts are exact in double precision, with a margin for sums of shares."""


@dataclass(frozen=True, slots=True, eq=False)
class SctProgram:
    """The linear program of n tasks and e edges, without parallel edges."""

    parts: float  # all times are integers in units of 1 / parts of a tick; a power of two
    order: Int  # (n,) a topological order
    # (n,) k; s >= release; w >= s + k + tail
    length: Int
    release: Int
    tail: Int
    # (e,) sorted by both: s[target] >= s[source] + length[source] + fixed + hidden (1 - y)
    source: Int
    target: Int
    # (e,) the delay of an edge in any case, and the further delay (c) unless it is a favourite
    fixed: Int
    hidden: Int
    # (e,), whether the edge competes with others of its producer, and of its consumer: at most one is the favourite
    out_rival: Bool
    in_rival: Bool


def program_of(problem: Problem) -> SctProgram:
    """The paper's linear program of a problem."""
    count = problem.feasible.sum(axis=1)
    duration = np.where(problem.feasible, problem.duration, 0).sum(axis=1)
    transfer, pairs = _transfers(problem)
    whole = not (duration % np.maximum(count, 1)).any() and not (transfer % max(pairs, 1)).any()
    parts = 1 if whole else PARTS
    source, target, (hidden,) = merged_edges(problem, _mean(transfer, pairs, parts, problem.n_edges))
    rival = np.ones(len(source), dtype=np.bool_)
    return coarse_enough(
        SctProgram(
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
    )


def coarse_enough(program: SctProgram) -> SctProgram:
    """The program in coarser parts, rounded down, if double precision could not count its paths exactly.

    Rounding down shortens paths only, so that a lower bound of w remains one.
    """
    longest = sum(int(ticks.sum()) for ticks in (program.length, program.fixed, program.hidden))
    longest += int(program.release.max(initial=0)) + int(program.tail.max(initial=0))
    bits = max(longest.bit_length() - EXACT_BITS, 0)
    names = ("length", "release", "tail", "fixed", "hidden")
    return replace(program, parts=program.parts / 2**bits, **{name: getattr(program, name) >> bits for name in names})


def merged_edges(problem: Problem, *longest: Int) -> tuple[Int, Int, list[Int]]:
    """Source and target of each pair of adjacent tasks, sorted, and the largest of the values of their edges."""
    n = max(problem.n_tasks, 1)
    keys, first = np.unique(problem.edge_source * n + problem.edge_target, return_index=True)
    # Edges are sorted by both ends, so parallel edges are adjacent.
    return keys // n, keys % n, [np.maximum.reduceat(each, first) if len(first) else each for each in longest]


def link_kinds(problem: Problem) -> list[tuple[int, int, int]]:
    """For each distinct link, one pair of devices and the number of ordered pairs with such a link."""
    source, target = np.nonzero(~np.eye(problem.n_devices, dtype=np.bool_))
    links = (problem.latency, problem.byte_ticks_num, problem.byte_ticks_den)
    table = np.stack([each[source, target] for each in links], axis=1)
    _, first, number = np.unique(table, axis=0, return_index=True, return_counts=True)
    return list(zip(source[first].tolist(), target[first].tolist(), number.tolist(), strict=True))


def _transfers(problem: Problem) -> tuple[Int, int]:
    """(e,) the total transfer time of each edge over all ordered pairs of distinct devices; and the number of pairs."""
    total = np.zeros(problem.n_edges, dtype=np.int64)
    pairs = problem.n_devices * (problem.n_devices - 1)
    for source, target, number in link_kinds(problem):
        ticks = problem.transfer(problem.payload, source, target)
        total += np.minimum(ticks, LARGEST_TOTAL // max(pairs, 1)) * number
    return total, pairs


def _mean(total: Int, count: Int | int, parts: int, items: int) -> Int:
    """Totals divided by counts, in parts of a tick, rounded to nearest; clipped so that the sum of all items fits."""
    number = np.maximum(count, 1)
    whole, rest = total // number, total % number
    most = LARGEST_TOTAL // (parts * max(items, 1))
    return np.where(
        whole < most, np.minimum(whole, most) * parts + (rest * parts + number // 2) // number, most * parts
    )
