"""Optimal operation fusion: neighbours in a topological order become one, so that the edges that are left cost least.

H. Xu, Y. Liao, H. Xie, P. Zhou: Celeritas: Fast optimizer for large dataflow graphs, 2022, arXiv:2208.00184, sections
5.1.1 to 5.1.3, Algorithm 1, equations 4 to 6. The tasks in CPD-TOPO order (`placeopt.model.levels`) are cut
up at Kernighan's optimal breakpoints (`placeopt.passes.breakpoints`): clusters of at most R tasks and M bytes, such
that the transfers between clusters take the least time in all. All edges go forward in the order, so the graph of the
clusters has no cycle (the paper's Lemma 2). What a fused task is: `placeopt.passes.contraction`.

What the paper leaves open, and departures from it:

- M is a share of the smallest capacity that a device states, of those with room for the largest task: a fused task is
  to be small on whichever of them it comes to stand, and a device for small tasks only does not keep everything small.
  Without any capacity, M is no limit. A task larger than M is a cluster of its own.
- Transfer times are means over pairs of distinct devices, as in the CCR (`placeopt.model.levels`), here in thousandths
  of a tick (in ticks where these would not fit into 62 bits): the dynamic programme is exact. Every edge counts, also
  where one transfer may serve several. Among equally good breakpoints, those with the longest last cluster are taken.
- A cluster has a device that may run all of its groups, and no separated tasks.
- The paper colocates by placing the rest of a group where its first task went, which would tear clusters apart. Here
  the groups that meet in a cluster become one. Left to itself that ends with a single group for a model in training,
  where every forward task shares a group with its backward task, whose neighbours are others. So groups of several
  tasks are united only as long as they take up no more than the same share of a device: in bytes as above, and in
  mean durations of the sum over all tasks divided by m, or than the largest of them by so much more. Where that fails
  in some cluster, breakpoints are found anew, with no two of the groups that are left in one cluster.
- At the end, a cluster for which no device has room, with all that must stand there too, is cut in turn.

O(n (R + m) + e log e + n log n).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from pydantic import Field

from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.levels import ORDERS, PARTS_OF_A_TICK, OrderName, mean_durations, mean_transfers
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.passes.breakpoints import optimal_breakpoints, windows
from placeopt.passes.contraction import Clusters, contraction
from placeopt.passes.protocol import Reduction
from placeopt.passes.rebuilding import at_odds
from placeopt.passes.uniting import Unions, find, may_unite, unions, unite
from placeopt.solver import Settings


class CeleritasFusion(Settings):
    """Fuses neighbours in CPD-TOPO order at optimal breakpoints."""

    name: ClassVar[str] = "celeritas-fusion"
    exact: ClassVar[bool] = False
    summary: ClassVar[str] = "neighbours in CPD-TOPO order become one, such that transfers between clusters cost least"
    gives_up: ClassVar[str] = "placements that part a cluster, other tasks in between, data sent before it has ended"
    citation: ClassVar[str] = """@article{xu2022celeritas,
  author  = {Hengwei Xu and Yong Liao and Haiyong Xie and Pengyuan Zhou},
  title   = {Celeritas: Fast Optimizer for Large Dataflow Graphs},
  journal = {arXiv preprint arXiv:2208.00184},
  year    = {2022},
  doi     = {10.48550/arXiv.2208.00184}
}"""

    range: int = Field(default=200, ge=1)
    """R: the most tasks of a cluster."""
    memory: float = Field(default=0.25, gt=0, le=1)
    """M: the most that a cluster takes up, as a share of the memory of the smallest device that holds every task."""
    order: OrderName = "cpd-topo"
    """The topological order whose neighbours are fused: the paper's, or one of those that it compares with."""

    def apply(self, problem: Problem) -> Reduction | None:
        """The problem of the clusters."""
        if problem.n_tasks == 0 or at_odds(problem):
            return None
        fused = fusion(problem, self.range, self.memory, self.order)
        if len(fused.clusters.start) > problem.n_tasks:
            return None
        return contraction(problem, fused.clusters, fused.group)


@dataclass(frozen=True, slots=True, eq=False)
class Fusion:
    """Clusters in the order of their tasks, and the colocation groups (n,), those that meet in a cluster united."""

    clusters: Clusters
    group: Int


def fusion(problem: Problem, longest: int, share: float, name: OrderName = "cpd-topo") -> Fusion:
    """The clusters of at most `longest` neighbours in the order of that name that take up at most this share of a
    device."""
    n, order = problem.n_tasks, ORDERS[name](problem)
    most = memory_limit(problem, share)
    first = _breakpoints(problem, order, unions(problem), problem.group, longest, most)
    groups = unions(problem)
    several = np.bincount(problem.group) > 1
    if several.any() and _met(problem, order, first, groups, several, share):
        units = groups.parent[problem.group]
        first = _breakpoints(problem, order, groups, units, longest, most, together=several[problem.group])
    unite_clusters.select(_steps(problem))(groups, order, problem.group, first)
    label = np.empty(n, dtype=np.int64)
    label[order] = np.cumsum(first) - 1
    return Fusion(Clusters(label, order, np.append(np.flatnonzero(first), n)), groups.parent[problem.group])


def memory_limit(problem: Problem, share: float) -> int:
    """Bytes that a cluster may have, UNLIMITED where no device that counts states a capacity."""
    counts = problem.capacity >= problem.memory.max()
    least = int(problem.capacity[counts].min() if counts.any() else problem.capacity.min())
    return UNLIMITED if least == UNLIMITED else int(least * share)


def _steps(problem: Problem) -> int:
    """Elementary steps of looking at every task on every device."""
    return problem.n_tasks * (8 + 3 * problem.n_devices)


def _breakpoints(
    problem: Problem, order: Int, groups: Unions, group: Int, longest: int, most: int, together: Bool | None = None
) -> Bool:
    """(n,) whether a cluster begins at the position in `order`, at the optimal breakpoints.

    The groups (n,) are the unions of `groups`. No two of them meet in tasks that `together` (n,) selects.
    """
    n, m = problem.n_tasks, problem.n_devices
    ends = group[problem.separation]
    apart = np.unique(np.concatenate((ends, ends[:, ::-1])), axis=0)
    apart_start = np.searchsorted(apart[:, 0], np.arange(problem.n_groups + 1)).astype(np.int64)
    low = np.zeros(n + 1, dtype=np.int64)
    nowhere = np.full(m, -1, dtype=np.int64), np.full(problem.n_groups, -1, dtype=np.int64)
    given = (order, group, problem.memory, groups.feasible, apart_start, apart[:, 1].copy(), longest, most)
    windows.select(_steps(problem))(*given, *nowhere, low)
    if together is not None:
        low[1:] = np.maximum(low[1:], _runs(group[order], together[order]))
    position = np.empty(n, dtype=np.int64)
    position[order] = np.arange(n)
    transfer = mean_transfers(problem)
    parts = PARTS_OF_A_TICK if transfer.sum() * PARTS_OF_A_TICK < 2**62 else 1
    weight = np.rint(transfer * parts).astype(np.int64)
    return optimal_breakpoints(position[problem.edge_source], position[problem.edge_target], weight, low)


def _runs(unit: Int, together: Bool) -> Int:
    """(n,) by position, the first one from which on all tasks that `together` selects are of the same unit."""
    low = np.zeros(len(unit), dtype=np.int64)
    some = np.flatnonzero(together)
    other = 1 + np.flatnonzero(unit[some][1:] != unit[some][:-1])
    low[some[other]] = some[other - 1] + 1
    return np.maximum.accumulate(low)


def _met(problem: Problem, order: Int, first: Bool, groups: Unions, several: Bool, share: float) -> bool:
    """Unite the groups of several tasks that meet in clusters; whether some meet that may not be united."""
    work = np.zeros(problem.n_groups)
    np.add.at(work, problem.group, mean_durations(problem))
    most = share * float(work.sum()) / problem.n_devices
    small = groups._replace(capacity=np.minimum(problem.capacity, memory_limit(problem, share)))
    run = unite_meeting.select(_steps(problem))
    return run(small, work, work.copy(), most, 1 + share, order, problem.group, several, first)


@kernel(find, may_unite, unite, allocates=False)
def unite_meeting(
    groups: Unions, work: Float, core: Float, most: float, growth: float,
    order: Int, group: Int, several: Bool, first: Bool,
) -> bool:  # fmt: skip
    """Unite groups that `several` (g,) selects where tasks of them meet between two `first` (n,) positions.

    A union has up to `most` of `work` (g,), or `growth` times that of the largest group in it, `core` (g,); both follow
    the unions. Whether some meet all the same that are not united.
    """
    torn, unit = False, -1
    for j in range(len(order)):
        g = group[order[j]]
        if first[j]:
            unit = -1
        if not several[g]:
            continue
        other = find(groups.parent, g)
        if unit < 0 or unit == other:
            unit = other
        else:
            total, largest = work[unit] + work[other], max(core[unit], core[other])
            if total <= max(most, growth * largest) and may_unite(groups, unit, other):
                unite(groups, unit, other)
                unit = min(unit, other)
                work[unit], core[unit] = total, largest
            else:
                torn, unit = True, other
    for g in range(len(groups.parent)):
        groups.parent[g] = find(groups.parent, g)
    return torn


@kernel(find, may_unite, unite, allocates=False)
def unite_clusters(groups: Unions, order: Int, group: Int, first: Bool) -> None:
    """Unite all groups that meet between two `first` (n,) positions; another cluster begins where that may not be."""
    unit = -1
    for j in range(len(order)):
        other = find(groups.parent, group[order[j]])
        if unit >= 0:
            unit = find(groups.parent, unit)
        if first[j] or unit == other:
            unit = other
        elif may_unite(groups, unit, other):
            unite(groups, unit, other)
            unit = min(unit, other)
        else:
            first[j] = True
            unit = other
    for g in range(len(groups.parent)):
        groups.parent[g] = find(groups.parent, g)
