"""LC: linear clustering, and the clusters put on devices.

S. J. Kim, J. C. Browne: A general approach to mapping of parallel computation upon multiprocessor architectures.
International Conference on Parallel Processing (ICPP) 1988, volume 3, pages 1-8; as A. Gerasoulis and T. Yang tell it:
A comparison of clustering heuristics for scheduling directed acyclic graphs on multiprocessors, Journal of Parallel and
Distributed Computing 16(4):276-291, 1992, doi:10.1016/0743-7315(92)90012-C. The tasks on the longest path, durations
and transfers added up, become a cluster and are taken out of the graph with their edges; this is repeated until no task
is left. How clusters come to devices: `placeopt_solvers.clustering._clusters`, whose departures hold here too.

Departures: the paper weighs durations and transfers by factors of its own, which are 1 here. A path begins at a task
without producers left. Of paths that are as long as each other the first goes: its first task has the smallest index,
and so has each next one among its rivals.

The longest way from each task to the end is kept exact from path to path: only the ways that led through a task just
taken have to be found anew, in backward topological order, which marks in bits keep. The task to begin with comes from
a heap, where lengths that have shrunk since go back in with the present one. In the worst case every path changes
every way, O(c (n + e)) for c clusters; on graphs of models and random ones far less.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.levels import longest_ways
from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options

from .._constructive.heaps import Heaps, pop, push
from ._clusters import Clustering, ClusterSettings, cluster_steps, mapped, mean_weights

Task = NDArray[np.int32]


class Lc:
    """Linear clustering; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "lc"
    info: ClassVar[Info] = Info(
        summary="each longest path a cluster, then put on devices (Kim and Browne 1988)",
        family="clustering",
        guarantee="none",
        complexity="about O((n + e) log n + n m); in the worst case O(c (n + e)) for c clusters",
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
    cluster, position = np.full(n, -1, dtype=np.int64), np.empty(n, dtype=np.int64)
    position[problem.order] = np.arange(n)
    length, onward = np.zeros(n, dtype=np.int64), np.full(n, -1, dtype=np.int32)
    heap = Heaps(np.empty((n, 1), dtype=np.int64), np.empty((n, 1), dtype=np.int32), np.zeros(1, dtype=np.int64))
    marks = Marks(*(np.zeros(size, dtype=np.int64) for size in (n // 32 + 1, n // 1024 + 1, 1)))
    graph = Graph(
        problem.order, position, problem.out_start, problem.edge_target.astype(np.int32), transfer, problem.in_start,
        problem.edge_source[problem.in_edge].astype(np.int32), work,
    )  # fmt: skip
    cut_paths.select(steps)(graph, cluster, length, onward, np.diff(problem.in_start), marks, heap)
    across = np.where(cluster[problem.edge_source] == cluster[problem.edge_target], 0, transfer)
    start = np.zeros(n)
    longest_ways.select(steps)(
        problem.order, problem.out_start, problem.edge_target, work.astype(np.float64), across.astype(np.float64), start
    )
    return Clustering(cluster, start.astype(np.int64))


class Graph(NamedTuple):
    """The tasks, n, and edges, e, with their weights.

    Attributes
    ----------
    order, position
        (n,) a topological order, and the place of each task in it.
    out_start, consumer, transfer
        Task i sends by edges out_start[i]..out_start[i + 1]: to whom, and for how long.
    in_start, producer
        Task i receives in_start[i]..in_start[i + 1]: from whom.
    work
        (n,) durations.
    """

    order: Int
    position: Int
    out_start: Int
    consumer: Task
    transfer: Int
    in_start: Int
    producer: Task
    work: Int


class Marks(NamedTuple):
    """Marked places 0..n - 1, of which the last is found at once: bits in words of 32, and bits for words with any.

    `low` (n / 32 + 1,) and `high` (n / 1024 + 1,); no word of `high` beyond top[0] has any.
    """

    low: Int
    high: Int
    top: Int


@kernel(allocates=False)
def find_way(graph: Graph, length: Int, onward: Task, v: int) -> None:
    """Find the longest way from task v on, those of its consumers known; consumers with a negative one are gone."""
    best, following = 0, -1
    for k in range(graph.out_start[v], graph.out_start[v + 1]):
        j = graph.consumer[k]
        if length[j] >= 0 and (following < 0 or graph.transfer[k] + length[j] > best):
            best, following = graph.transfer[k] + length[j], j
    length[v], onward[v] = graph.work[v] + best, following


@kernel(allocates=False)
def mark(marks: Marks, place: int) -> None:
    """Mark a place."""
    word = place >> 5
    marks.low[word] |= 1 << (place & 31)
    marks.high[word >> 5] |= 1 << (word & 31)
    marks.top[0] = max(marks.top[0], word >> 5)


@kernel(allocates=False)
def highest(word: int) -> int:
    """The place of the highest bit of a word that is not zero."""
    bit = 0
    for step in (16, 8, 4, 2, 1):
        if word >> (bit + step):
            bit += step
    return bit


@kernel(highest, allocates=False)
def unmark_last(marks: Marks) -> int:
    """Take away the last mark: its place, -1 where there is none."""
    while marks.top[0] >= 0 and marks.high[marks.top[0]] == 0:
        marks.top[0] -= 1
    if marks.top[0] < 0:
        return -1
    word = marks.top[0] << 5 | highest(marks.high[marks.top[0]])
    place: int = word << 5 | highest(marks.low[word])
    marks.low[word] ^= 1 << (place & 31)
    if marks.low[word] == 0:
        marks.high[word >> 5] ^= 1 << (word & 31)
    return place


@kernel(mark, allocates=False)
def mark_changed(graph: Graph, onward: Task, marks: Marks, v: int) -> None:
    """Mark the producers whose way led through task v."""
    for place in range(graph.in_start[v], graph.in_start[v + 1]):
        i = graph.producer[place]
        if onward[i] == v:
            mark(marks, graph.position[i])


@kernel(push, pop, find_way, mark_changed, unmark_last, allocates=False)
def cut_paths(graph: Graph, cluster: Int, length: Int, onward: Task, missing: Int, marks: Marks, heap: Heaps) -> None:
    """Fill `cluster` (n,), -1 at first, with the place of each task's path among those taken.

    `length` (n,) are the longest ways, negative for tasks taken, `onward` (n,) the tasks that they lead to, -1 at the
    end; `missing` (n,) is how many producers each task has that are left.
    """
    n = len(cluster)
    for place in range(n - 1, -1, -1):
        find_way(graph, length, onward, graph.order[place])
        if missing[graph.order[place]] == 0:
            push(heap, 0, -length[graph.order[place]], graph.order[place])
    taken = 0
    while heap.size[0] > 0:
        origin, known = heap.item[0, 0], -heap.key[0, 0]
        pop(heap, 0)
        if length[origin] < known:
            if length[origin] >= 0:
                push(heap, 0, -length[origin], origin)
            continue
        v = origin
        while v >= 0:
            following = onward[v]
            cluster[v], length[v], onward[v] = taken, -1, -1
            mark_changed(graph, onward, marks, v)
            for k in range(graph.out_start[v], graph.out_start[v + 1]):
                j = graph.consumer[k]
                missing[j] -= 1
                if missing[j] == 0 and length[j] >= 0:
                    push(heap, 0, -length[j], j)
            v = following
        taken += 1
        place = unmark_last(marks)
        while place >= 0:
            v = graph.order[place]
            before = length[v]
            if before >= 0:
                find_way(graph, length, onward, v)
                if length[v] < before:
                    mark_changed(graph, onward, marks, v)
            place = unmark_last(marks)
