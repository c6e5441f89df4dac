"""LC: linear clustering, with the clusters mapped to devices.

S. J. Kim, J. C. Browne, International Conference on Parallel Processing (ICPP) 1988, volume 3, pages 1-8; as described
by A. Gerasoulis and T. Yang, Journal of Parallel and Distributed Computing 1992, doi:10.1016/0743-7315(92)90012-C. The
tasks on the longest path, durations and transfers added up, become a cluster and are removed from the graph with their
edges. This is repeated until no task is left. `placeopt_solvers.clustering._clusters` maps the clusters to devices; its
departures hold here too.

Departures: the paper weighs durations and transfers by factors of its own, which are 1 here. A path begins at a task
that has no producers left. Of paths of equal length the one whose tasks have the smallest indices comes first.

The longest path from each task is kept exact from one cluster to the next: only those through a removed task are
recomputed, in backward topological order, found by marks in bits. The first task of the next path comes from a heap;
lengths that have shrunk since are pushed again with their current value. In the worst case every cluster changes every
path, O(c (n + e)) for c clusters; on graphs of models and random graphs far fewer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.levels import longest_ways
from placeopt.model.problem import Problem
from placeopt.solver import Info

from .._constructive.heaps import Heaps, make_heaps, pop, push
from ._clusters import Clustering, ClusterSolver, cluster_steps, mean_weights

Task = NDArray[np.int32]


class Lc(ClusterSolver):
    name = "lc"
    info = Info(
        summary="each longest path a cluster, mapped to devices (Kim and Browne 1988)",
        family="clustering",
        tiers=True,
        guarantee="none",
        clusters=True,
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

    def clusters(self, problem: Problem) -> Clustering:
        return linear_clusters(problem)


def linear_clusters(problem: Problem) -> Clustering:
    """Return the linear clusters for an unlimited number of identical devices, longer paths first."""
    n = problem.n_tasks
    work, transfer = mean_weights(problem)
    steps = cluster_steps(problem)
    cluster, position = np.full(n, -1, dtype=np.int64), np.empty(n, dtype=np.int64)
    position[problem.order] = np.arange(n)
    length, onward = np.zeros(n, dtype=np.int64), np.full(n, -1, dtype=np.int32)
    marks = Marks(*(np.zeros(size, dtype=np.int64) for size in (n // 32 + 1, n // 1024 + 1, 1)))
    graph = Graph(
        problem.order, position, problem.out_start, problem.edge_target.astype(np.int32), transfer, problem.in_start,
        problem.edge_source[problem.in_edge].astype(np.int32), work,
    )  # fmt: skip
    cut_paths.select(steps)(graph, cluster, length, onward, np.diff(problem.in_start), marks, make_heaps(n, 1))
    across = np.where(cluster[problem.edge_source] == cluster[problem.edge_target], 0, transfer)
    start = np.zeros(n)
    longest_ways.select(steps)(
        problem.order, problem.out_start, problem.edge_target, work.astype(np.float64), across.astype(np.float64), start
    )
    return Clustering(cluster, start.astype(np.int64))


class Graph(NamedTuple):
    """The graph of n tasks and e edges, with weights."""

    order: Int
    position: Int
    """(n,) a topological order, and the position of each task in it."""
    out_start: Int
    consumer: Task
    transfer: Int
    """The out-edges of task i are out_start[i]..out_start[i + 1]: their consumers and durations."""
    in_start: Int
    producer: Task
    """The in-edges of task i are in_start[i]..in_start[i + 1]: their producers."""
    work: Int
    """(n,) durations."""


class Marks(NamedTuple):
    """A set of positions 0..n - 1 whose maximum is found fast: bits in words of 32, and a bit for each word with any.

    `low` (n / 32 + 1,) and `high` (n / 1024 + 1,); the words of `high` after top[0] are 0.
    """

    low: Int
    high: Int
    top: Int


@kernel(allocates=False)
def find_path(graph: Graph, length: Int, onward: Task, v: int) -> None:
    """Compute the longest path from task v from those of its consumers; removed consumers have a negative length."""
    best, following = 0, -1
    for k in range(graph.out_start[v], graph.out_start[v + 1]):
        j = graph.consumer[k]
        if length[j] >= 0 and (following < 0 or graph.transfer[k] + length[j] > best):
            best, following = graph.transfer[k] + length[j], j
    length[v], onward[v] = graph.work[v] + best, following


@kernel(allocates=False)
def mark(marks: Marks, place: int) -> None:
    """Mark a position."""
    word = place >> 5
    marks.low[word] |= 1 << (place & 31)
    marks.high[word >> 5] |= 1 << (word & 31)
    marks.top[0] = max(marks.top[0], word >> 5)


@kernel(allocates=False)
def highest(word: int) -> int:
    """Return the index of the highest bit of a word, which is not zero."""
    bit = 0
    for step in (16, 8, 4, 2, 1):
        if word >> (bit + step):
            bit += step
    return bit


@kernel(highest, allocates=False)
def unmark_last(marks: Marks) -> int:
    """Remove the last mark and return its position, -1 if there is none."""
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
    """Mark the producers whose longest path leads through task v."""
    for place in range(graph.in_start[v], graph.in_start[v + 1]):
        i = graph.producer[place]
        if onward[i] == v:
            mark(marks, graph.position[i])


@kernel(push, pop, find_path, mark_changed, unmark_last, allocates=False)
def cut_paths(graph: Graph, cluster: Int, length: Int, onward: Task, missing: Int, marks: Marks, heap: Heaps) -> None:
    """Fill `cluster` (n,), -1 at first, with the number of each task's path in the order of removal.

    `length` (n,) are the longest paths, negative for removed tasks. `onward` (n,) are the next tasks on them, -1 at the
    end. `missing` (n,) is the number of producers left of each task.
    """
    n = len(cluster)
    for place in range(n - 1, -1, -1):
        find_path(graph, length, onward, graph.order[place])
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
                find_path(graph, length, onward, v)
                if length[v] < before:
                    mark_changed(graph, onward, marks, v)
            place = unmark_last(marks)
