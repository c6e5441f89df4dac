"""DSC: dominant sequence clustering, with the clusters mapped to devices.

T. Yang, A. Gerasoulis, IEEE TPDS 1994, doi:10.1109/71.308533, sections 3 and 4. The paper's symbols: tlevel and blevel,
the longest path to a task and from it to the end, its own duration included; a task is free once all its producers are
examined, partially free once some are; its priority is tlevel + blevel (for a partially free task over the producers
examined). `placeopt_solvers.clustering._clusters` maps the clusters to devices; its departures hold here too.

Tasks are examined one by one, each time the free task with the highest priority:

- CT1: it joins the cluster of a producer if it then starts earlier than on a device of its own, after the last task of
  the cluster (the minimisation procedure).
- DSRW (dominant sequence reduction warranty), CT2: if a partially free task has a higher priority, and its tlevel
  could be reduced by joining the cluster of one of its producers now, then no task may join that cluster.

Departures:

- Only the cluster of the producer whose data arrives last can make a task start earlier, so only that is tried.
- The minimisation procedure also moves other producers there before the task, by decreasing arrival of their data,
  while that ends before their data would arrive. Only producers that are alone in their cluster and have no other
  consumer are moved, so that no other task is delayed. The paper orders them by tlevel and finds their number by binary
  search.
- Ties, which the paper leaves open, go by index; of producers whose data arrives together the first noted counts.

The two lists are heaps. Each task stores the latest arrival, and the latest from clusters other than that one. So the
gain of joining is computed without a pass over its producers: O((n + e) log n), as in the paper.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.solver import Info

from .._constructive.heaps import Heaps, make_heaps, pop, push
from .._constructive.priorities import longest_paths_after
from ._clusters import Clustering, ClusterSolver, cluster_steps, mean_weights

FREE, PARTIAL, PULLED = 0, 1, 2
"""The heaps: free tasks, partially free tasks, and producers of one task by arrival."""


class Dsc(ClusterSolver):
    name = "dsc"
    info = Info(
        summary="clusters that shorten the dominant sequence, mapped to devices (Yang and Gerasoulis 1994)",
        family="clustering",
        tiers=True,
        guarantee="none",
        clusters=True,
        complexity="O((n + e) log n + n m)",
        citation="""@article{yang1994dsc,
  author  = {Tao Yang and Apostolos Gerasoulis},
  title   = {{DSC}: Scheduling Parallel Tasks on an Unbounded Number of Processors},
  journal = {IEEE Transactions on Parallel and Distributed Systems},
  volume  = {5},
  number  = {9},
  pages   = {951--967},
  year    = {1994},
  doi     = {10.1109/71.308533}
}""",
    )

    def clusters(self, problem: Problem) -> Clustering:
        return dominant_sequence_clusters(problem)


class Front(NamedTuple):
    """The state of the examination; n tasks."""

    missing: Int
    """(n,) number of each task's producers that are not examined; -1 for a task that is examined."""
    latest: Int
    dominant: Int
    other: Int
    """(n,) of the examined producers: the latest arrival of data, the cluster it comes from (-1 without any), and the
    latest arrival from other clusters."""
    cluster: Int
    start: Int
    """(n,) of the examined tasks."""
    tail: Int
    size: Int
    """(n,) of each cluster: the end of its last task, and its number of tasks."""
    heaps: Heaps
    """The three heaps, by negative priorities or arrivals."""
    pulled: Int
    """(n,) scratch: the producers that are moved before one task."""


def dominant_sequence_clusters(problem: Problem) -> Clustering:
    """Return the clusters of DSC for an unlimited number of identical devices."""
    n, e = problem.n_tasks, problem.n_edges
    work, transfer = mean_weights(problem)
    producer = problem.edge_source[problem.in_edge]
    blevel = work + longest_paths_after(problem, work, transfer)
    latest, other, cluster, start, tail, size, pulled = (np.zeros(n, dtype=np.int64) for _ in range(7))
    dominant = np.full(n, -1, dtype=np.int64)
    missing, heaps = np.diff(problem.in_start), make_heaps(n + e, 3)
    front = Front(missing, latest, dominant, other, cluster, start, tail, size, heaps, pulled)
    examine.select(cluster_steps(problem))(
        problem.in_start, producer, transfer[problem.in_edge], problem.out_start, problem.edge_target, transfer,
        work, blevel, front,
    )  # fmt: skip
    # Clusters that lost their only task are removed; the others keep their order.
    cluster = np.unique(front.cluster, return_inverse=True)[1].reshape(n).astype(np.int64)
    return Clustering(cluster, front.start)


@kernel(allocates=False)
def note_arrival(front: Front, j: int, c: int, arrival: int) -> None:
    """Note the arrival of data from cluster c for task j, if j is not in c."""
    if front.dominant[j] == c:
        front.latest[j] = max(front.latest[j], arrival)
    elif front.dominant[j] < 0 or arrival > front.latest[j]:
        front.other[j] = front.latest[j]
        front.latest[j], front.dominant[j] = arrival, c
    else:
        front.other[j] = max(front.other[j], arrival)


@kernel(push, pop, allocates=False)
def minimised(
    in_start: Int, producer: Int, in_transfer: Int, out_start: Int, work: Int, front: Front, x: int, c: int
) -> int:
    """Return the start of task x at the end of cluster c, after producers that serve only x are moved there before it.

    They are moved only if x then starts earlier than on a separate device.
    """
    heaps, pulled = front.heaps, front.pulled
    heaps.size[PULLED] = 0
    for k in range(in_start[x], in_start[x + 1]):
        p = producer[k]
        if front.cluster[p] != c:
            push(heaps, PULLED, -(front.start[p] + work[p] + in_transfer[k]), p)
    tail, count = front.tail[c], 0
    # The latest arrival decides the start, so the loop ends at the first producer that cannot be moved.
    while heaps.size[PULLED] > 0:
        p = heaps.item[0, PULLED]
        if front.size[front.cluster[p]] > 1 or out_start[p + 1] - out_start[p] > 1:
            break
        arrival = front.other[p] if front.dominant[p] == c else front.latest[p]
        end = max(tail, arrival) + work[p]
        if end >= max(tail, -heaps.key[0, PULLED]):
            break
        tail = end
        pulled[count] = p
        count += 1
        pop(heaps, PULLED)
    start: int = tail
    if heaps.size[PULLED] > 0:
        start = max(tail, -heaps.key[0, PULLED])
    if start < front.latest[x]:
        for k in range(count):
            p = pulled[k]
            arrival = front.other[p] if front.dominant[p] == c else front.latest[p]
            front.size[front.cluster[p]] -= 1
            front.cluster[p], front.start[p] = c, max(front.tail[c], arrival)
            front.tail[c] = front.start[p] + work[p]
            front.size[c] += 1
    return start


@kernel(note_arrival, minimised, push, pop, allocates=False)
def examine(
    in_start: Int, producer: Int, in_transfer: Int, out_start: Int, consumer: Int, out_transfer: Int, work: Int,
    blevel: Int, front: Front,
) -> None:  # fmt: skip
    """Fill `front.cluster` and `front.start`; cluster numbers are positions in the order of examination."""
    heaps = front.heaps
    n = len(work)
    for i in range(n):
        if front.missing[i] == 0:
            push(heaps, FREE, -blevel[i], i)
    for made in range(n):
        x = heaps.item[0, FREE]
        priority = -heaps.key[0, FREE]
        pop(heaps, FREE)
        barred = -1
        while heaps.size[PARTIAL] > 0:
            y = heaps.item[0, PARTIAL]
            if front.missing[y] > 0 and -heaps.key[0, PARTIAL] == front.latest[y] + blevel[y]:
                if front.latest[y] + blevel[y] > priority:
                    c = front.dominant[y]
                    if max(front.tail[c], front.other[y]) < front.latest[y]:
                        barred = c
                break
            pop(heaps, PARTIAL)
        c, start = front.dominant[x], front.latest[x]
        if c >= 0 and c != barred and front.tail[c] < start:
            start = minimised(in_start, producer, in_transfer, out_start, work, front, x, c)
        if start >= front.latest[x]:
            c = made
        front.cluster[x], front.start[x], front.missing[x] = c, start, -1
        front.tail[c] = start + work[x]
        front.size[c] += 1
        for k in range(out_start[x], out_start[x + 1]):
            j = consumer[k]
            before = front.latest[j]
            first = front.dominant[j] < 0
            note_arrival(front, j, c, start + work[x] + out_transfer[k])
            front.missing[j] -= 1
            if front.missing[j] == 0:
                push(heaps, FREE, -(front.latest[j] + blevel[j]), j)
            elif first or front.latest[j] > before:
                push(heaps, PARTIAL, -(front.latest[j] + blevel[j]), j)
