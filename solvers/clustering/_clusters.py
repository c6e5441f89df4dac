"""Clusters of tasks put on devices: what clustering heuristics share.

A clustering is made for any number of identical devices; then its clusters are put on the devices that there are:

- `glb`, guided (or global) load balancing: the clusters in the order in which they start, each to the device with the
  least load so far. A. Radulescu, A. J. C. van Gemund: GLB: a low-cost scheduling algorithm for distributed-memory
  architectures, HiPC 1998, pages 294-301, doi:10.1109/HIPC.1998.738001, as H. Xu et al. tell it (Celeritas, 2022,
  section 2: "allocates the cluster to the devices with the lowest current load in the order of EST").
- `wrap`: the clusters in the order in which they were made, the t-th to device t modulo m.

Last, the tasks on each device are ordered by list scheduling with insertion: by falling bottom level, the longest way
to the end of the schedule in ticks on the devices chosen, transfers between distinct devices alone counted.

Departures from the papers:

- Durations that differ by device: a clustering sees the mean over feasible devices, and for transfers the mean over
  pairs of distinct devices. The load that counts for `glb` is what a device has with the cluster on it, in its own
  ticks; on identical devices that is the same choice.
- A colocation group belongs to the cluster of its first task in topological order.
- A device that may not or cannot take a cluster (memory, feasibility, separation) is passed over. A cluster that no
  device can take is split: its groups in topological order, each to the device of the one before as long as that can
  take it, else to the device that the mapping would choose for it alone. The message says how many were.
- Groups that can go to one device alone are there from the start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.levels import longest_ways, mean_durations, mean_transfers
from placeopt.model.problem import Problem
from placeopt.solver import Answer, Settings

from .._constructive.construction import Built, answered, with_homes
from .._constructive.groups import Groups
from .._constructive.heft import priority_list
from .._constructive.insertion import inserted
from .._constructive.placement_ops import may_take
from .._constructive.timeline import NEVER, Case, Timeline, make_case, make_timeline, work_steps

_PARTS = 1000
"""Parts of a tick in which clusterings count, as far as these fit into 61 bits: means are no whole ticks."""


class ClusterSettings(Settings):
    """Settings of the clustering heuristics."""

    mapping: Literal["glb", "wrap"] = "glb"
    """How clusters come to devices: glb, as they start, to the least loaded; wrap, as they were made, in turn."""


@dataclass(frozen=True, slots=True)
class Clustering:
    """Tasks in clusters.

    Attributes
    ----------
    cluster
        (n,) cluster of each task, 0..c-1 in the order in which they were made.
    start
        (n,) when each task starts if every cluster has a device of its own, in the parts of a tick of `mean_weights`.
    """

    cluster: Int
    start: Int


def mean_weights(problem: Problem) -> tuple[Int, Int]:
    """(n,) durations and (e,) transfers in means over devices, in whole parts of a tick: sums of these are exact."""
    work, transfer = mean_durations(problem), mean_transfers(problem)
    total = float(work.sum() + transfer.sum())
    scale = min(float(_PARTS), 2.0**61 / max(total, 1.0))
    return np.rint(work * scale).astype(np.int64), np.rint(transfer * scale).astype(np.int64)


def cluster_steps(problem: Problem) -> int:
    """Elementary steps of clustering and mapping: heaps make a task and an edge cost some twenty."""
    return 20 * (problem.n_tasks + problem.n_edges) + work_steps(problem)


def ways_behind(problem: Problem, work: Int, transfer: Int) -> Int:
    """(n,) the longest way from the end of each task to the end of all, over `work` (n,) and `transfer` (e,)."""
    ways = np.zeros(problem.n_tasks)
    edge = problem.in_edge
    run = longest_ways.select(cluster_steps(problem))
    run(
        problem.order[::-1].copy(), problem.in_start, problem.edge_source[edge],
        work.astype(np.float64), transfer[edge].astype(np.float64), ways,
    )  # fmt: skip
    return ways.astype(np.int64)


def mapped(problem: Problem, clustering: Clustering, mapping: Literal["glb", "wrap"]) -> Answer:
    """The schedule of a clustering on the problem's devices."""
    first = np.full(problem.n_groups, -1, dtype=np.int64)
    first[problem.group[problem.order[::-1]]] = problem.order[::-1]  # of several tasks the first is written last
    position = np.empty(problem.n_tasks, dtype=np.int64)
    position[problem.order] = np.arange(problem.n_tasks)
    cluster, count = clustering.cluster[first], int(clustering.cluster.max(initial=-1)) + 1
    members = np.lexsort((position[first], cluster))
    member_start = np.searchsorted(cluster[members], np.arange(count + 1)).astype(np.int64)
    turn = np.arange(count)
    if mapping == "glb":
        start = np.full(count, NEVER, dtype=np.int64)
        np.minimum.at(start, cluster[problem.group], clustering.start)
        turn = np.argsort(start, kind="stable")
    work = group_work(problem)
    split = 0

    def build(groups: Groups) -> Built:
        nonlocal split
        line = make_timeline(problem, groups)
        load = np.zeros(problem.n_devices, dtype=np.int64)
        there = np.flatnonzero(line.home >= 0)
        np.add.at(load, line.home[there], work[there, line.home[there]])
        found = np.zeros(1, dtype=np.int64)
        run = map_clusters.select(cluster_steps(problem))
        scratch = np.empty(problem.n_devices, dtype=np.int64)
        stuck = run(
            make_case(problem, groups), line, members, member_start, cluster, turn, work, load, scratch,
            int(mapping == "wrap"), found,
        )  # fmt: skip
        split = int(found[0])
        return Built(line, stuck) if stuck >= 0 else on_homes(problem, groups, line.home)

    answer = answered(problem, build)
    note = ""
    if split and answer.schedule is not None:
        what = "a cluster was split, for no device" if split == 1 else f"{split} clusters were split, for no device"
        note = f"{what} could take all of it"
    message = "; ".join(text for text in (answer.message, note) if text)
    used = int(np.count_nonzero(np.diff(member_start)))
    return replace(answer, message=message, stats={"clusters": used, "split": split})


def on_homes(problem: Problem, groups: Groups, home: Int) -> Built:
    """List scheduling with insertion on a given placement (g,), by falling bottom level there."""
    device = home[problem.group]
    source, target = problem.edge_source, problem.edge_target
    work = problem.duration[np.arange(problem.n_tasks), device]
    transfer = problem.transfer(problem.payload, device[source], device[target])
    level = (work + ways_behind(problem, work, transfer)).astype(np.float64)
    return inserted(problem, with_homes(groups, home), priority_list(problem, level))


def group_work(problem: Problem) -> Int:
    """(g, m) ticks of all tasks of each group on each device."""
    if problem.n_groups == problem.n_tasks:
        return problem.duration
    work = np.zeros((problem.n_groups, problem.n_devices), dtype=np.int64)
    np.add.at(work, problem.group, problem.duration)
    return work


@kernel(may_take, allocates=False)
def map_clusters(
    case: Case,
    line: Timeline,
    members: Int,
    member_start: Int,
    cluster: Int,
    turn: Int,
    work: Int,
    load: Int,
    ticks: Int,
    wrap: int,
    split: Int,
) -> int:
    """Give every group a home; -1, or the group that no device can take.

    The groups of cluster c are members[member_start[c]:member_start[c + 1]]. `load` (m,) is what each device has to
    do, `ticks` (m,) is to scribble on, `split[0]` counts clusters that no device could take whole.
    """
    m = len(load)
    for position in range(len(turn)):
        c = turn[position]
        low, high = member_start[c], member_start[c + 1]
        memory, free, whole = 0, 0, True
        ticks[:] = 0
        for k in range(low, high):
            g = members[k]
            if line.home[g] >= 0:
                continue
            free += 1
            memory += case.memory[g]
            for d in range(m):
                if case.feasible[g, d] and ticks[d] >= 0:
                    ticks[d] += work[g, d]
                else:
                    ticks[d] = -1
            for r in range(case.apart_start[g], case.apart_start[g + 1]):
                rival = case.apart[r]
                if line.home[rival] >= 0:
                    ticks[line.home[rival]] = -1
                elif cluster[rival] == c:
                    whole = False
        if free == 0:
            continue
        best, least = -1, NEVER
        for step in range(m):
            d = (position + step) % m if wrap else step
            if whole and ticks[d] >= 0 and memory <= line.room[d]:
                worth = step if wrap else load[d] + ticks[d]
                if worth < least:
                    best, least = d, worth
        if best >= 0:
            for k in range(low, high):
                g = members[k]
                if line.home[g] < 0:
                    line.home[g] = best
            line.room[best] -= memory
            load[best] += ticks[best]
            continue
        if free > 1:
            split[0] += 1
        for k in range(low, high):
            g = members[k]
            if line.home[g] >= 0:
                continue
            if best < 0 or not may_take(case, line, g, best):
                best, least = -1, NEVER
                for step in range(m):
                    d = (position + step) % m if wrap else step
                    worth = step if wrap else load[d] + work[g, d]
                    if worth < least and may_take(case, line, g, d):
                        best, least = d, worth
                if best < 0:
                    stuck: int = g
                    return stuck
            line.home[g] = best
            line.room[best] -= case.memory[g]
            load[best] += work[g, best]
    return -1
