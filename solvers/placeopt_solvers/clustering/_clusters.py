"""Mapping of clusters of tasks to devices, shared by clustering heuristics.

A clustering is made for an unlimited number of identical devices. Then its clusters are mapped to the real devices:

- `glb`, guided (or global) load balancing: the clusters in the order in which they start, each to the device with the
  least load so far (A. Radulescu, A. J. C. van Gemund, HiPC 1998, doi:10.1109/HIPC.1998.738001, as described by H. Xu
  et al., Celeritas, 2022, section 2).
- `wrap`: the clusters in the order in which they were made, the t-th to device t modulo m.

Finally the tasks are ordered by list scheduling with insertion, by decreasing bottom level: the longest path to the end
in ticks on the chosen devices, with transfers between distinct devices only.

Departures from the papers:

- A clustering uses mean durations and mean transfer times. The load of a device for `glb` includes the cluster, in the
  device's own ticks; on identical devices the choice is the same.
- A colocation group belongs to the cluster of its first task in topological order.
- A device that cannot take a cluster is passed over. A cluster that no device can take is split: its groups follow in
  topological order, each on the device of the one before if that can take it, else on the device that the mapping
  chooses for the group alone. The message reports the number of split clusters.
- Groups with a single possible device are there from the start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from placeopt.kernels import Kernel, kernel
from placeopt.model.arrays import Int
from placeopt.model.levels import mean_durations, mean_transfers
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.solver import Answer, Options, Settings

from .._constructive.construction import Constructive, PartialSchedule, run_heuristic
from .._constructive.groups import Groups, with_homes
from .._constructive.placement_ops import assign_group, can_host
from .._constructive.priorities import longest_paths_after, priority_list
from .._constructive.profiles import count_group
from .._constructive.sequences import insert_tasks
from .._constructive.timeline import DONE, NEVER, Instance, Timeline, make_instance, make_timeline, work_steps

_PARTS = 1000
"""Parts of a tick in which clusterings count, because means are not whole ticks; fewer if sums exceed 61 bits."""


class ClusterSettings(Settings):
    """Settings of the clustering heuristics."""

    mapping: Literal["glb", "wrap"] = "glb"
    """Mapping of clusters: glb, in order of start to the least loaded device; wrap, as made to each device in turn."""


@dataclass(frozen=True, slots=True)
class Clustering:
    """Tasks in clusters."""

    cluster: Int
    """(n,) cluster of each task, 0..c-1 in the order in which they were made."""
    start: Int
    """(n,) start of each task if every cluster has a separate device, in the parts of a tick of `mean_weights`."""


class ClusterSolver(Constructive):
    """Base class of solvers that make clusters and map them to devices."""

    settings_type = ClusterSettings

    def clusters(self, problem: Problem) -> Clustering:
        """Return the clustering for an unlimited number of identical devices."""
        raise NotImplementedError

    def solve(self, problem: Problem, options: Options, settings: ClusterSettings) -> Answer:
        """Return the schedule, or FAILED if the clusters' tasks find no room."""
        clustering = self.clusters(problem)
        first = np.full(problem.n_groups, -1, dtype=np.int64)
        first[problem.group[problem.order[::-1]]] = problem.order[::-1]  # the first task of a group is written last
        position = np.empty(problem.n_tasks, dtype=np.int64)
        position[problem.order] = np.arange(problem.n_tasks)
        cluster, count = clustering.cluster[first], int(clustering.cluster.max(initial=-1)) + 1
        members = np.lexsort((position[first], cluster))
        member_start = np.searchsorted(cluster[members], np.arange(count + 1)).astype(np.int64)
        turn = np.arange(count)
        if settings.mapping == "glb":
            start = np.full(count, NEVER, dtype=np.int64)
            np.minimum.at(start, cluster[problem.group], clustering.start)
            turn = np.argsort(start, kind="stable")
        work = group_work(problem)
        split_on: dict[bytes, int] = {}  # by the devices of the groups

        def build(groups: Groups) -> PartialSchedule:
            load, ticks = (np.zeros(problem.n_devices, dtype=np.int64) for _ in range(2))
            there = np.flatnonzero(groups.home >= 0)
            np.add.at(load, groups.home[there], work[there, groups.home[there]])
            splits, wrap = np.zeros(1, dtype=np.int64), int(settings.mapping == "wrap")
            clusters = members, member_start, cluster, turn
            found = schedule_by_homes(problem, groups, map_clusters, *clusters, work, load, ticks, wrap, splits)
            split_on[found.line.home.tobytes()] = int(splits[0])
            return found

        answer = run_heuristic(problem, build)
        note, split = "", 0
        if answer.schedule is not None:
            split = split_on[answer.schedule.device[first].tobytes()]
        if split:
            what = "a cluster was" if split == 1 else f"{split} clusters were"
            note = f"{what} split because no device could take the whole cluster"
        message = "; ".join(text for text in (answer.message, note) if text)
        used = int(np.count_nonzero(np.diff(member_start)))
        stats = {"clusters": used, "split": split}
        return replace(
            answer, message=message, stats=stats, clusters=as_placed(cluster[problem.group], answer.schedule)
        )


def as_placed(cluster: Int, schedule: Schedule | None) -> Int | None:
    """Return the clusters (n,) of a schedule: each of `cluster` (n,), or its parts on several devices."""
    if schedule is None:
        return None
    _, label = np.unique(np.stack((cluster, schedule.device)), axis=1, return_inverse=True)
    return label.reshape(-1).astype(np.int64)


def mean_weights(problem: Problem) -> tuple[Int, Int]:
    """Return mean durations (n,) and mean transfer times (e,) in whole parts of a tick, such that sums are exact."""
    work, transfer = mean_durations(problem), mean_transfers(problem)
    total = float(work.sum() + transfer.sum())
    scale = min(float(_PARTS), 2.0**61 / max(total, 1.0))
    return np.rint(work * scale).astype(np.int64), np.rint(transfer * scale).astype(np.int64)


def cluster_steps(problem: Problem) -> int:
    """Return the elementary steps of clustering and mapping: some twenty for a task or an edge, because of heaps."""
    return 20 * (problem.n_tasks + problem.n_edges) + work_steps(problem)


def schedule_by_homes(
    problem: Problem, groups: Groups, loop: Kernel[..., int], *arguments: Int | int
) -> PartialSchedule:
    """Assign homes to all groups with a kernel, then schedule with insertion by decreasing bottom level on them.

    The kernel takes an `Instance`, a `Timeline` and the arguments. It returns DONE or a group that no device can take.
    """
    line = make_timeline(problem, groups)
    stuck = loop.select(cluster_steps(problem))(make_instance(problem, groups), line, *arguments)
    if stuck != DONE:
        return PartialSchedule(line, stuck)
    device = line.home[problem.group]
    source, target = problem.edge_source, problem.edge_target
    work = problem.duration[np.arange(problem.n_tasks), device]
    transfer = problem.transfer(problem.payload, device[source], device[target])
    level = (work + longest_paths_after(problem, work, transfer)).astype(np.float64)
    return insert_tasks(problem, with_homes(groups, line.home), priority_list(problem, level))


def group_work(problem: Problem) -> Int:
    """Return the total ticks (g, m) of each group's tasks on each device."""
    if problem.n_groups == problem.n_tasks:
        return problem.duration
    work = np.zeros((problem.n_groups, problem.n_devices), dtype=np.int64)
    np.add.at(work, problem.group, problem.duration)
    return work


@kernel(count_group, allocates=False)
def fits_whole(instance: Instance, line: Timeline, members: Int, low: int, high: int, memory: int, d: int) -> bool:
    """Return whether device d has room for the groups without a home among members[low:high], `memory` in all."""
    room = line.room[d] - memory
    if room < 0 or not instance.live.on:
        return bool(room >= 0)
    tree = line.trees[d]
    for k in range(low, high):
        if line.home[members[k]] < 0:
            count_group(instance.live, tree, members[k], 1)
    fits = tree[1] <= room
    for k in range(low, high):
        if line.home[members[k]] < 0:
            count_group(instance.live, tree, members[k], -1)
    return bool(fits)


@kernel(assign_group, can_host, fits_whole, allocates=False)
def map_clusters(
    instance: Instance, line: Timeline, members: Int, member_start: Int, cluster: Int, turn: Int, work: Int, load: Int,
    ticks: Int, wrap: int, split: Int,
) -> int:  # fmt: skip
    """Assign a home to every group; return DONE or the group that no device can take.

    The groups of cluster c are members[member_start[c]:member_start[c + 1]]. `load` (m,) are the ticks of each device,
    `ticks` (m,) is scratch, `split[0]` counts clusters that no device could take whole.
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
            memory += instance.memory[g]
            for d in range(m):
                if instance.feasible[g, d] and ticks[d] >= 0:
                    ticks[d] += work[g, d]
                else:
                    ticks[d] = -1
            for r in range(instance.apart_start[g], instance.apart_start[g + 1]):
                rival = instance.apart[r]
                if line.home[rival] >= 0:
                    ticks[line.home[rival]] = -1
                elif cluster[rival] == c:
                    whole = False
        if free == 0:
            continue
        best, least = -1, NEVER
        for step in range(m):
            d = (position + step) % m if wrap else step
            if whole and ticks[d] >= 0:
                worth = step if wrap else load[d] + ticks[d]
                if worth < least and fits_whole(instance, line, members, low, high, memory, d):
                    best, least = d, worth
        if best >= 0:
            for k in range(low, high):
                assign_group(instance, line, members[k], best)
            load[best] += ticks[best]
            continue
        if free > 1:
            split[0] += 1
        for k in range(low, high):
            g = members[k]
            if line.home[g] >= 0:
                continue
            if best < 0 or not can_host(instance, line, g, best):
                best, least = -1, NEVER
                for step in range(m):
                    d = (position + step) % m if wrap else step
                    worth = step if wrap else load[d] + work[g, d]
                    if worth < least and can_host(instance, line, g, d):
                        best, least = d, worth
                if best < 0:
                    return int(g)
            assign_group(instance, line, g, best)
            load[best] += work[g, best]
    return DONE
