"""Celeritas' operation fusion: cut a topological order into clusters at optimal breakpoints.

H. Xu, Y. Liao, H. Xie, P. Zhou: Celeritas: Fast optimizer for large dataflow graphs, 2022, arXiv:2208.00184, sections
5.1.1 to 5.1.3, Algorithm 1, equations 4 to 6. The tasks in CPD-TOPO order (`placeopt.model.levels`) are cut
at Kernighan's optimal breakpoints into clusters of at most R tasks and M bytes. All edges go forward in the order, so
the cluster graph has no cycle (Lemma 2). `placeopt.passes.contraction` defines the fused task.

Breakpoints: B. W. Kernighan: Optimal sequential partitions of graphs. Journal of the ACM 18(1):34-40, 1971,
doi:10.1145/321623.321627. Let v_j be the node at position j, cost(i, j) the weight of the edges from v_i..v_{j-1} to
v_j and later nodes, S(j) the least cost of cutting all nodes before j, and P(j) the cut before j that achieves it. Then
S(j) = min over i of S(i) + cost(i, j), for all i such that v_i..v_{j-1} may be one cluster. Any part of a cluster may
be a cluster, so the first such i, `low[j]`, does not decrease with j. When j grows by one, the weight that a node still
sends onwards loses the edges that end just before j (the last sum of equation 5); cost(i, j) adds up these weights from
j - 1 downwards. O(e + sum of j - low[j]), in integers: the optimum is exact.

Details that the paper leaves open, and departures:

- M is a share of the smallest capacity among the devices that have enough memory for the largest task. A fused task is
  thus small on each of them, and a device for small tasks does not keep all clusters small. Without capacities M is
  unlimited. A task larger than M is a cluster by itself.
- Transfer times are means over pairs of distinct devices, as in the CCR (`placeopt.model.levels`), in thousandths of a
  tick (in ticks if these exceed 62 bits), so the dynamic program is exact. Every edge counts, even if one transfer
  serves several. Among equally good breakpoints, the one with the longest last cluster is chosen.
- Some device may run all groups of a cluster, and a cluster has no separated tasks.
- Finally, a cluster that no device can hold is cut again.

**Colocation groups**, by the setting `colocation`. Algorithm 1 does not mention groups. Section 6.1 adopts Baechi's
rule for the placement: "if the first node of a co-location group is placed on device d, then all nodes of this group
are placed on d".

- first, the default, is this rule. Groups do not influence the breakpoints. The first task of a group in the order
  leads the group: its cluster takes the memory of the whole group, and has its devices and separations. The other tasks
  only take time in their own clusters. A restored schedule moves them to the device of their leader, and is
  re-timed. The coarse graph is thus an estimate, but memory, separation and feasible devices are kept. Table 2 supports
  this reading: its clusters have 103 to 165 tasks on average, near R = 200, so groups hardly cut them. The paper leaves
  open whether a first task reserves the memory of its whole group; in Baechi (section 3.1) it does.
- keep: the breakpoints are chosen such that no cluster holds tasks of two groups of several tasks. Groups stay as they
  are, and the coarse graph is exact. For a training graph this leaves nearly every task alone.
- unite: the groups that meet in a cluster become one group, and the coarse graph is exact. For a training graph, where
  each forward task shares a group with its backward task, this alone would leave a single group. A union of groups with
  several tasks is therefore limited to M bytes, and to the same share of the total mean duration per device, or
  (1 + share) times its largest group. If groups in some cluster cannot be united, the breakpoints are recomputed such
  that no two remaining groups share a cluster. Far fewer groups remain, and which ones depends on R.

O(n (R + m) + e log e + n log n).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from placeopt import engine
from placeopt.model.arrays import Bool, Int, by_index, csr
from placeopt.model.levels import ORDERS, PARTS_OF_A_TICK, OrderName, cpd_topo, mean_durations, mean_transfers
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule
from placeopt.passes.contraction import Clusters, contraction, initial_unions
from placeopt.passes.protocol import Reduction
from placeopt.passes.rebuilding import contradictory, rebuilt
from placeopt.protocol import Settings
from placeopt.protocol.citations import bibtex
from placeopt.simulation import retime

Colocation = Literal["first", "keep", "unite"]
"""How fusion treats colocation groups."""


class CeleritasFusion(Settings):
    """Fuses neighbours in CPD-TOPO order at optimal breakpoints."""

    name: ClassVar[str] = "celeritas-fusion"
    exact: ClassVar[bool] = False
    summary: ClassVar[str] = "fuses neighbours in CPD-TOPO order such that transfers between clusters cost least"
    gives_up: ClassVar[str] = "schedules that split a cluster, run other tasks in between, or send data before it ends"
    citation: ClassVar[str] = bibtex("xu2022celeritas")

    range: int = Field(default=200, ge=1)
    """R: the maximum number of tasks in a cluster."""
    memory: float = Field(default=0.25, gt=0, le=1)
    """M: the maximum memory of a cluster, as a share of the memory of the smallest device that can hold every task."""
    order: OrderName = "cpd-topo"
    """The topological order whose neighbours are fused: the paper's order, or one that the paper compares with."""

    colocation: Colocation = "first"
    """Colocation groups: first, a group follows its first task, as in the paper; keep, no cluster holds tasks of two
    groups; unite, groups that meet in a cluster become one."""

    def apply(self, problem: Problem) -> Reduction | None:
        """The problem of the clusters."""
        if problem.n_tasks == 0 or contradictory(problem):
            return None
        order = ORDERS[self.order](problem)
        leader = leaders(problem, order) if self.colocation == "first" else np.arange(problem.n_tasks)
        following = bool((leader != np.arange(problem.n_tasks)).any())
        led = _led(problem, leader) if following else problem
        fused = fusion(led, self.range, self.memory, order, keep=self.colocation == "keep")
        if len(fused.clusters.start) > problem.n_tasks:
            return None
        reduction = contraction(led, fused.clusters, fused.group)
        return _following(problem, fused.clusters, leader, reduction) if following else reduction


@dataclass(frozen=True, slots=True, eq=False)
class Fusion:
    """Clusters in the order of their tasks, and the colocation groups (n,) after uniting."""

    clusters: Clusters
    group: Int


def fusion(problem: Problem, longest: int, share: float, order: Int | None = None, *, keep: bool = False) -> Fusion:
    """Cut an order (n,), CPD-TOPO if None, into clusters of at most `longest` tasks that take a share of a device.

    Groups of several tasks that meet in a cluster are united; with `keep` they do not meet.
    """
    n, order = problem.n_tasks, cpd_topo(problem) if order is None else order
    most, groups = memory_limit(problem, share), initial_unions(problem)
    several = np.bincount(problem.group) > 1
    cut = keep and bool(several.any())
    if not cut:
        first = _breakpoints(problem, order, groups, problem.group, longest, most)
        cut = bool(several.any()) and _met(problem, order, first, groups, several, share)
    if cut:
        units = groups.parent[problem.group]
        first = _breakpoints(problem, order, groups, units, longest, most, together=several[problem.group])
    first = groups.unite_clusters(order, problem.group, first)
    label = np.empty(n, dtype=np.int64)
    label[order] = np.cumsum(first) - 1
    return Fusion(Clusters(label, order, np.append(np.flatnonzero(first), n)), groups.parent[problem.group])


def leaders(problem: Problem, order: Int) -> Int:
    """(n,) the first task in `order` (n,) of each task's group."""
    first = np.empty(problem.n_groups, dtype=np.int64)
    first[problem.group[order[::-1]]] = order[::-1]  # the first task of a group is written last
    return np.asarray(first[problem.group])


def _led(problem: Problem, leader: Int) -> Problem:
    """The problem without groups: the `leader` (n,) of a group has its memory, devices, separations and relocation.

    The other tasks may use all devices; where they cannot, they count with their longest duration.
    """
    n, tasks = problem.n_tasks, np.arange(problem.n_tasks)
    memory, relocation = (by_index(np.add, leader, each, n) for each in (problem.memory, problem.relocation))
    leads = (leader == tasks)[:, None]
    longest = problem.duration.max(axis=1, keepdims=True, initial=0)
    nothing = np.zeros(n, dtype=np.int64)
    return rebuilt(
        problem,
        group=tasks,
        resident=memory,
        output=nothing,
        scratch=nothing,
        relocation=relocation,
        duration=np.where(leads | problem.feasible, problem.duration, longest),
        feasible=np.where(leads, problem.group_feasible()[problem.group], True),
        separation=leader[problem.separation],
    )[0]


def _following(problem: Problem, made: Clusters, leader: Int, led: Reduction) -> Reduction:
    """The reduction in which each task follows its leader; `led` is that of the problem without groups."""
    leads, feasible = leader == np.arange(problem.n_tasks), led.problem.feasible
    position = np.argsort(made.sequence)
    deciding = np.lexsort((position, ~leads, made.label))[made.start[:-1]]  # (c,) the first leader, else the first task
    led_by_none = ~leads[deciding]

    def restore(schedule: Schedule) -> Schedule:
        spread = led.restore(schedule)
        return retime(problem, Schedule(spread.device[leader], spread.start))

    def project(schedule: Schedule) -> Schedule | None:
        home = schedule.device[deciding]
        able = feasible[np.arange(len(home)), home]
        if not (able | led_by_none).all():
            return None
        home = np.where(able, home, np.argmax(feasible, axis=1))
        return led.project(Schedule(np.where(leads, schedule.device, home[made.label]), schedule.start))

    return Reduction(led.problem, restore, project, led.explanation, made.label[leader], made.label)


def memory_limit(problem: Problem, share: float) -> int:
    """Maximum number of bytes of a cluster; UNLIMITED if no device that counts has a capacity."""
    counts = problem.capacity >= problem.memory.max()
    least = int(problem.capacity[counts].min() if counts.any() else problem.capacity.min())
    return UNLIMITED if least == UNLIMITED else int(least * share)


def _breakpoints(
    problem: Problem,
    order: Int,
    groups: engine.Unions,
    group: Int,
    longest: int,
    most: int,
    together: Bool | None = None,
) -> Bool:
    """(n,), whether a cluster starts at the position in `order`, for the optimal breakpoints.

    The groups (n,) are the unions of `groups`. Tasks of two groups that `together` (n,) selects do not share a cluster.
    """
    ends = group[problem.separation]
    apart_start, apart = csr(problem.n_groups, np.concatenate((ends, ends[:, ::-1])))
    low = groups.first_positions(order, group, problem.memory, apart_start, apart, longest, most)
    if together is not None:
        low[1:] = np.maximum(low[1:], _runs(group[order], together[order]))
    position = np.argsort(order)
    transfer = mean_transfers(problem)
    parts = PARTS_OF_A_TICK if transfer.sum() * PARTS_OF_A_TICK < 2**62 else 1
    weight = np.rint(transfer * parts).astype(np.int64)
    return optimal_breakpoints(position[problem.edge_source], position[problem.edge_target], weight, low)


def _runs(unit: Int, together: Bool) -> Int:
    """(n,) for each position, the first from which on all tasks that `together` selects are of one unit."""
    low = np.zeros(len(unit), dtype=np.int64)
    some = np.flatnonzero(together)
    other = 1 + np.flatnonzero(unit[some][1:] != unit[some][:-1])
    low[some[other]] = some[other - 1] + 1
    return np.maximum.accumulate(low)


def _met(problem: Problem, order: Int, first: Bool, groups: engine.Unions, several: Bool, share: float) -> bool:
    """Unite the groups of several tasks that meet in clusters; return whether some could not be united."""
    work = np.zeros(problem.n_groups)
    np.add.at(work, problem.group, mean_durations(problem))
    most = share * float(work.sum()) / problem.n_devices
    small = np.minimum(problem.capacity, memory_limit(problem, share))
    return groups.unite_meeting(small, work, most, 1 + share, order, problem.group, several, first)


def optimal_breakpoints(source: Int, target: Int, weight: Int, low: Int) -> Bool:
    """(n,), whether a cluster starts at the position, 0 included, such that the edges between clusters weigh least.

    Of equally good solutions, the one with the longest last cluster, then the longest before it, and so on. `source`,
    `target` and `weight` are the positions of both ends and an integer weight for each edge. `low` (n + 1,), below j
    for j > 0 and non-decreasing, is the first position from which all nodes before j may be one cluster.
    """
    n = len(low) - 1
    by_target = np.argsort(target, kind="stable")
    in_start = np.searchsorted(target[by_target], np.arange(n + 1)).astype(np.int64)
    cut = engine.least_cuts(in_start, source[by_target], weight[by_target], low, engine.current_stop())
    first = np.zeros(n, dtype=np.bool_)
    j = n
    while j > 0:
        j = int(cut[j])
        first[j] = True
    return first
