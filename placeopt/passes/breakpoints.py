"""Optimal sequential partitions: where to cut a sequence of nodes so that the edges across the cuts cost least.

B. W. Kernighan: Optimal sequential partitions of graphs. Journal of the ACM 18(1):34-40, 1971,
doi:10.1145/321623.321627; as Celeritas uses it (H. Xu et al., 2022, arXiv:2208.00184, section 5.1.3, equations 4 to 6).
The papers' symbols: v_j the node at position j of the sequence, cost(i, j) what edges from v_i..v_{j-1} to v_j and
beyond weigh, S(j) the least cost of cutting up all nodes before j, P(j) the cut before j where that is achieved.

S(j) = min over i of S(i) + cost(i, j), for all i from which on the nodes before j may be one cluster. If they may, so
may any part of them: the first such i, `low[j]`, never falls as j grows. As j grows by one, what a node still sends to
j and beyond loses the edges that end just before j (the last sum of equation 5); cost(i, j) adds that up from j - 1
downwards. O(e + sum of j - low[j]), in whole numbers: the optimum is exact.
"""

from __future__ import annotations

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Int


def optimal_breakpoints(source: Int, target: Int, weight: Int, low: Int) -> Bool:
    """(n,) the positions at which a cluster begins, 0 among them, such that the edges between clusters weigh least.

    Of equally good ones that with the longest last cluster, then the longest before it, and so on.

    Parameters
    ----------
    source, target, weight
        (e,) positions at both ends of each edge, the source first in the sequence, and a whole number.
    low
        (n + 1,) the first position from which on all nodes before j may be one cluster; below j for j > 0, never
        falling.
    """
    n = len(low) - 1
    by_target = np.argsort(target, kind="stable")
    in_start = np.searchsorted(target[by_target], np.arange(n + 1)).astype(np.int64)
    onwards = np.zeros(n, dtype=np.int64)
    np.add.at(onwards, source, weight)
    least, cut = np.zeros(n + 1, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
    steps = len(source) + int((np.arange(n + 1) - low).sum())
    least_cuts.select(steps)(in_start, source[by_target], weight[by_target], low, onwards, least, cut)
    first = np.zeros(n, dtype=np.bool_)
    j = n
    while j > 0:
        j = int(cut[j])
        first[j] = True
    return first


@kernel(allocates=False)
def least_cuts(in_start: Int, source: Int, weight: Int, low: Int, onwards: Int, least: Int, cut: Int) -> None:
    """Fill S in `least` (n + 1,) and P in `cut` (n + 1,).

    `onwards` (n,) is what each node sends in all at first; the edges into v_j are in_start[j]..in_start[j + 1].
    """
    for j in range(1, len(low)):
        for k in range(in_start[j - 1], in_start[j]):
            onwards[source[k]] -= weight[k]
        cost = onwards[j - 1]
        best, place = least[j - 1] + cost, j - 1
        for i in range(j - 2, low[j] - 1, -1):
            cost += onwards[i]
            if least[i] + cost <= best:
                best, place = least[i] + cost, i
        least[j], cut[j] = best, place


@kernel(allocates=False)
def windows(
    sequence: Int, group: Int, memory: Int, feasible: Bool, apart_start: Int, apart: Int,
    longest: int, most: int, barred: Int, latest: Int, low: Int,
) -> None:  # fmt: skip
    """Fill `low` (n + 1,) for clusters of at most `longest` tasks and `most` bytes that one device may run.

    `feasible` (g, m) and separation, group k apart from apart[apart_start[k]:apart_start[k + 1]], are those of the
    groups (n,). A task larger than `most` is a cluster of its own. `barred` (m,) and `latest` (g,), -1 at first, hold
    the last positions of a task that the device may not run, and of the group.
    """
    first, held, room = 0, 0, 0
    for j in range(len(sequence)):
        i = sequence[j]
        g = group[i]
        common = j
        for d in range(len(barred)):
            if not feasible[g, d]:
                barred[d] = j
            common = min(common, barred[d] + 1)
        first = max(first, common, j + 1 - longest)
        for k in range(apart_start[g], apart_start[g + 1]):
            first = max(first, latest[apart[k]] + 1)
        latest[g] = j
        held += memory[i]
        while (held > most and room < j) or room < first:
            held -= memory[sequence[room]]
            room += 1
        first = max(first, room)
        low[j + 1] = first
