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

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int, by_index, inverse
from placeopt.model.levels import mean_durations, mean_transfers
from placeopt.model.native import native
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule
from placeopt.protocol import Answer, Options, Settings

from .._constructive.construction import Constructive, PartialSchedule, run_heuristic
from .._constructive.groups import Groups, with_homes
from .._constructive.priorities import longest_paths_after, priority_list
from .._constructive.sequences import insert_tasks
from .._constructive.timeline import DONE

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
        position = inverse(problem.order)
        cluster, count = clustering.cluster[first], int(clustering.cluster.max(initial=-1)) + 1
        members = np.lexsort((position[first], cluster))
        member_start = np.searchsorted(cluster[members], np.arange(count + 1)).astype(np.int64)
        turn = np.arange(count)
        if settings.mapping == "glb":
            start = by_index(np.minimum, cluster[problem.group], clustering.start, count, UNLIMITED)
            turn = np.argsort(start, kind="stable")
        work = group_work(problem)
        split_on: dict[bytes, int] = {}  # by the devices of the groups

        def build(groups: Groups) -> PartialSchedule:
            splits = 0

            def assign(line: engine.Timeline, stop: engine.Stop) -> int:
                nonlocal splits
                clusters, wrap = (members, member_start, cluster, turn), settings.mapping == "wrap"
                stuck, splits = engine.map_clusters(line, *clusters, work, wrap, stop)
                return stuck

            found = schedule_by_homes(problem, groups, assign)
            split_on[found.line.home.tobytes()] = splits
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


def schedule_by_homes(
    problem: Problem, groups: Groups, assign: Callable[[engine.Timeline, engine.Stop], int]
) -> PartialSchedule:
    """Assign homes to all groups, then schedule with insertion by decreasing bottom level on them.

    `assign` fills the homes of a timeline. It returns DONE or a group that no device can take.
    """
    line = engine.Timeline(native(problem), groups)
    stuck = assign(line, engine.current_stop())
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
    return by_index(np.add, problem.group, problem.duration, problem.n_groups)
