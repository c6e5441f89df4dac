"""LC: linear clustering, and the clusters put on devices.

S. J. Kim, J. C. Browne: A general approach to mapping of parallel computation upon multiprocessor architectures.
International Conference on Parallel Processing (ICPP) 1988, volume 3, pages 1-8; as A. Gerasoulis and T. Yang tell
it: A comparison of clustering heuristics for scheduling directed acyclic graphs on multiprocessors, Journal of
Parallel and Distributed Computing 16(4):276-291, 1992, doi:10.1016/0743-7315(92)90012-C. The tasks on the longest
path, durations and transfers added up, become a cluster and are taken out of the graph with their edges; this is
repeated until no task is left. How clusters come to devices: `placeopt_solvers._clusters`, whose departures hold here
too.

Departures: the paper weighs durations and transfers by factors of its own, which are 1 here. Of paths that are as
long as each other the first goes: its first task has the smallest index, and so has each next one among its rivals.

The longest way from each task to the end is kept from path to path: with fewer tasks left it can only be shorter, so
the old value is a bound. A heap of these bounds tells which task to look at, and a task's way is found anew only while
its bound is better than the best way known. In the worst case every path changes every bound, O(c (n + e)) for c
clusters; on graphs of models and random ones it is near O((n + e) log n).
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from placeopt.ir import Int, Problem
from placeopt.kernels import kernel
from placeopt.levels import longest_ways
from placeopt.solver import Answer, Info, Options

from ._clusters import Clustering, ClusterSettings, cluster_steps, mapped, mean_weights, ways_behind
from ._pairs import Heaps, pop, push


class Lc:
    """Linear clustering; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "lc"
    info: ClassVar[Info] = Info(
        summary="each longest path a cluster, then put on devices (Kim and Browne 1988)",
        family="clustering",
        guarantee="none",
        complexity="near O((n + e) log n + n m); in the worst case O(c (n + e)) for c clusters",
        citation="""@inproceedings{kim1988linear,
  author    = {S. J. Kim and J. C. Browne},
  title     = {A General Approach to Mapping of Parallel Computation upon Multiprocessor Architectures},
  booktitle = {International Conference on Parallel Processing},
  volume    = {3},
  pages     = {1--8},
  year      = {1988}
}""",
    )
    settings_type: ClassVar[type[ClusterSettings]] = ClusterSettings

    def solve(self, problem: Problem, options: Options, settings: ClusterSettings) -> Answer:  # noqa: ARG002
        """The linear clusters on the problem's devices, or FAILED where they find no room."""
        return mapped(problem, linear_clusters(problem), settings.mapping)


def linear_clusters(problem: Problem) -> Clustering:
    """The linear clusters for any number of identical devices, those of longer paths first."""
    n = problem.n_tasks
    work, transfer = mean_weights(problem)
    steps = cluster_steps(problem)
    bound = work + ways_behind(problem, work, transfer)
    cluster = np.full(n, -1, dtype=np.int64)
    step, stamp = np.full(n, -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    ways = Ways(bound, step, stamp, *(np.zeros(n, dtype=np.int64) for _ in range(3)))
    heap = Heaps(np.empty((n, 1), dtype=np.int64), np.empty((n, 1), dtype=np.int32), np.zeros(1, dtype=np.int64))
    cut_paths.select(steps)(problem.out_start, problem.edge_target, transfer, work, cluster, ways, heap)
    across = np.where(cluster[problem.edge_source] == cluster[problem.edge_target], 0, transfer)
    start = np.zeros(n)
    longest_ways.select(steps)(
        problem.order, problem.out_start, problem.edge_target, work.astype(np.float64), across.astype(np.float64), start
    )
    return Clustering(cluster, start.astype(np.int64))


class Ways(NamedTuple):
    """The longest way from each task to the end, as far as it is known; n tasks.

    Attributes
    ----------
    bound
        (n,) length of the longest way from each task that is left, or more.
    step
        (n,) the edge by which it goes on when `bound` was last exact; -1 at its end.
    stamp
        (n,) the last path before which `bound` was made exact.
    at, reach, stack
        (n,) for the search to scribble on: the edge of each task that is looked at next, the best way on from the
        task so far, and the tasks that wait for one of their consumers.
    """

    bound: Int
    step: Int
    stamp: Int
    at: Int
    reach: Int
    stack: Int


@kernel(allocates=False)
def find_way(
    out_start: Int, consumer: Int, transfer: Int, work: Int, cluster: Int, ways: Ways, origin: int, now: int
) -> None:
    """Make the bound of `origin` exact for the tasks that are left: those without a cluster."""
    bound, step, stamp, at, reach, stack = ways
    top = 0
    stack[0], at[origin] = origin, -1
    while top >= 0:
        v = stack[top]
        k, end = at[v], out_start[v + 1]
        best, chosen, waiting = reach[v], step[v], -1
        if k < 0:
            # The way that was the longest before comes first: it rules out most of the others.
            k = out_start[v]
            if chosen >= 0 and cluster[consumer[chosen]] >= 0:
                chosen = -1
            if chosen >= 0:
                best = transfer[chosen] + bound[consumer[chosen]]
                if stamp[consumer[chosen]] != now:
                    k, waiting = -1, consumer[chosen]
        while waiting < 0 and k < end:
            j = consumer[k]
            if cluster[j] < 0:
                way = transfer[k] + bound[j]
                if chosen < 0 or way > best or (way == best and k < chosen):
                    if stamp[j] != now:
                        waiting = j
                        break
                    best, chosen = way, k
            k += 1
        at[v], reach[v], step[v] = k, best, chosen
        if waiting >= 0:
            top += 1
            stack[top], at[waiting] = waiting, -1
        else:
            bound[v], stamp[v] = work[v] + (best if chosen >= 0 else 0), now
            top -= 1


@kernel(push, pop, find_way, allocates=False)
def cut_paths(out_start: Int, consumer: Int, transfer: Int, work: Int, cluster: Int, ways: Ways, heap: Heaps) -> None:
    """Fill `cluster` (n,), -1 at first, with the place of each task's path among those taken."""
    for i in range(len(work)):
        push(heap, 0, -ways.bound[i], i)
    now = 0
    while heap.size[0] > 0:
        v, known = heap.item[0, 0], -heap.key[0, 0]
        pop(heap, 0)
        if cluster[v] >= 0:
            continue
        if ways.stamp[v] != now:
            find_way(out_start, consumer, transfer, work, cluster, ways, v, now)
        if ways.bound[v] < known:
            push(heap, 0, -ways.bound[v], v)
            continue
        cluster[v] = now
        while ways.step[v] >= 0:
            v = consumer[ways.step[v]]
            cluster[v] = now
        now += 1
