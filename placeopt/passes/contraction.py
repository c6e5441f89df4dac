"""Contract clusters of tasks to one task each, which runs them one after another.

The fused task of a cluster has

- as duration on a device, the sum of the durations; feasible devices are those of all tasks;
- memory at least that of its tasks. `resident` and `output` add up: the fused task starts no later than its tasks and
  holds its output until the last consumer has received it. `scratch` adds up under `sum`; under `peak` the largest
  counts, because only one of the tasks runs at a time;
- as relocation, the sum over the tasks;
- a release time and a deadline such that all tasks keep theirs. The release time of a task counts less the least
  durations of the tasks before it in the cluster, the deadline plus those of the tasks after it;
- no edges inside the cluster. Edges to one other cluster become one edge with the total payload, so each transfer takes
  no longer than the sum. A task has one shared output: of several producers with shared outputs, the one that saves the
  most bytes keeps its output as a separate shared edge to each cluster. The other shared outputs are added to the sum
  once per cluster;
- the role of a backward task if all of its tasks are backward tasks of tasks of one other cluster.

Contracting the clusters must not create a cycle. Each cluster must lie within one (perhaps united) colocation group and
hold no separated pair.

**Restored schedules are valid** if the reduced one is, also before re-timing (with port contention, after it). The
tasks of a cluster replace the fused task in topological order. They start no earlier than it does, when all data from
outside has arrived, and end no later; none of their data is sent before its end. The memory rule holds by the
definition above. ∎

O(n m + e log e) and one `build_problem`.

**Uniting.** `united` unites colocation groups pairwise, where one device can still run the result.
Two groups are united only if some device may run all their tasks and has enough memory for them, and no separated pair
lies across them. Memory is counted as under the `sum` model, which is conservative under `peak`. Each group then has a
device on its own, but all groups together may not fit: passes that unite groups are not exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Bool, Int, by_index
from placeopt.model.building import build_problem
from placeopt.model.problem import UNLIMITED, Problem, group_memory
from placeopt.model.schedule import Schedule, durations
from placeopt.passes.protocol import Reduction
from placeopt.passes.rebuilding import DEVICE_FIELDS, LINK_FIELDS, SETTINGS, rebuilt
from placeopt.simulation import retime


def initial_unions(problem: Problem) -> engine.Unions:
    """The groups of a problem, each a union by itself."""
    left, right = problem.group[problem.separation].T.copy()
    return engine.Unions(problem.group_feasible(), group_memory(problem), problem.capacity, left, right)


def united(problem: Problem, left: Int, right: Int) -> engine.Unions:
    """The groups of a problem after uniting left[k] and right[k] in turn, where allowed."""
    groups = initial_unions(problem)
    groups.unite(left, right)
    return groups


def keeps_groups(group: Int, device: Int) -> bool:
    """Whether a placement (n,) puts all tasks of each group (n,) on one device."""
    home = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.int64)
    home[group] = device
    return bool((home[group] == device).all())


def regrouped(problem: Problem, groups: engine.Unions) -> Reduction | None:
    """The problem with its groups united; None if no groups were united."""
    if (groups.parent == np.arange(problem.n_groups)).all():
        return None
    group = groups.parent[problem.group]
    reduced, _ = rebuilt(problem, group=group)

    def project(schedule: Schedule) -> Schedule | None:
        return schedule if keeps_groups(group, schedule.device) else None

    return Reduction(reduced, lambda schedule: schedule, project, f"{problem.n_groups} -> {reduced.n_groups} groups")


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """A partition of the tasks."""

    label: Int  # (n,) cluster of each task, 0..c-1; the fused tasks have this order
    sequence: Int  # (n,) the tasks cluster by cluster, each cluster in topological order
    start: Int  # (c + 1,) cluster k is sequence[start[k]:start[k + 1]]


def clusters(label: Int, order: Int) -> Clusters:
    """Clusters by label (n,), each in the given topological order (n,) of all tasks."""
    sequence = order[np.argsort(label[order], kind="stable")]
    count = int(label.max(initial=-1)) + 1
    return Clusters(label, sequence, np.searchsorted(label[sequence], np.arange(count + 1)).astype(np.int64))


def contraction(problem: Problem, made: Clusters, group: Int | None = None) -> Reduction:
    """The reduction to the fused tasks; `group` (n,) replaces the colocation groups, if given."""
    reduced = contracted(problem, made, problem.group if group is None else group)

    def restore(schedule: Schedule) -> Schedule:
        device = schedule.device[made.label]
        behind, _ = _beside(made, durations(problem, device))
        return Schedule(device, schedule.start[made.label] + behind)

    def project(schedule: Schedule) -> Schedule | None:
        if not keeps_groups(made.label, schedule.device):
            return None
        first = made.start[:-1]
        start = np.minimum.reduceat(schedule.start[made.sequence], first)
        return retime(reduced, Schedule(schedule.device[made.sequence[first]], start))

    explanation = f"{problem.n_tasks} -> {reduced.n_tasks} tasks, {problem.n_edges} -> {reduced.n_edges} edges"
    return Reduction(reduced, restore, project, explanation, made.label, made.label)


def contracted(problem: Problem, made: Clusters, group: Int) -> Problem:
    """The problem of the fused tasks, without setup times: a fused task may contain several families."""
    count, first = len(made.start) - 1, made.sequence[made.start[:-1]]
    parts = made.start[:-1]
    duration = np.add.reduceat(problem.duration[made.sequence], parts, axis=0)
    feasible = np.logical_and.reduceat(problem.feasible[made.sequence], parts, axis=0)
    source, target, payload, shared = _edges(problem, made.label, count)
    release, deadline = _windows(problem, made, feasible)
    scratch = np.add if problem.memory_model == "sum" else np.maximum

    def gathered(amounts: Int, how: np.ufunc = np.add) -> Int:
        return np.asarray(how.reduceat(amounts[made.sequence], made.start[:-1]), dtype=np.int64)

    return build_problem(
        **{name: getattr(problem, name) for name in (*SETTINGS, *DEVICE_FIELDS, *LINK_FIELDS)},
        task_names=_names(problem, made, first),
        duration=duration,
        feasible=feasible,
        resident=gathered(problem.resident),
        output=gathered(problem.buffer_bytes("output")),
        scratch=gathered(problem.scratch, scratch),
        release=release,
        deadline=deadline,
        edges=np.column_stack((source, target)),
        payload=payload,
        shared=shared,
        due=gathered(problem.due, np.minimum),
        due_weight=gathered(problem.due_weight, np.maximum),
        price=gathered(problem.price) if problem.price.any() else None,
        relocation=gathered(problem.relocation) if problem.relocation.any() else None,
        group=group[first],
        separation=made.label[problem.separation],
        forward=_forward(problem, made, first),
        **{name: rule.merged(made.sequence, parts) for name, rule in problem.stated.items()},
    )


def _names(problem: Problem, made: Clusters, first: Int) -> list[str]:
    """The first task's name and the number of further tasks for each cluster; unique."""
    more = np.diff(made.start) - 1
    names = [
        f"{problem.task_names[i]} +{k}" if k else problem.task_names[i]
        for i, k in zip(first.tolist(), more.tolist(), strict=True)
    ]
    taken = {name for name, k in zip(names, more.tolist(), strict=True) if not k}
    for place, k in enumerate(more.tolist()):
        while k and names[place] in taken:
            names[place] += "'"
        taken.add(names[place])
    return names


def _beside(made: Clusters, ticks: Int) -> tuple[Int, Int]:
    """(n, ...) total `ticks` (n, ...) of the tasks before and after each task in its cluster."""
    in_turn = ticks[made.sequence]
    done = np.cumsum(in_turn, axis=0)
    before = done - in_turn
    sizes = np.diff(made.start)
    first, last = np.repeat(made.start[:-1], sizes), np.repeat(made.start[1:] - 1, sizes)
    ahead, behind = np.empty_like(ticks), np.empty_like(ticks)
    ahead[made.sequence], behind[made.sequence] = before - before[first], done[last] - done
    return ahead, behind


def _windows(problem: Problem, made: Clusters, feasible: Bool) -> tuple[Int | None, Int | None]:
    """(c,) release times and deadlines of the fused tasks; None if no task has any."""
    released, due = bool(problem.release.any()), bool((problem.deadline != UNLIMITED).any())
    if not (released or due):
        return None, None
    where = feasible[made.label]
    ahead, behind = (
        np.where(where.any(axis=1), np.where(where, ticks, UNLIMITED).min(axis=1, initial=UNLIMITED), 0)
        for ticks in _beside(made, problem.duration)
    )
    release = np.maximum(problem.release - ahead, 0)[made.sequence]
    late = np.where(problem.deadline == UNLIMITED, UNLIMITED, np.minimum(problem.deadline, UNLIMITED - behind) + behind)
    return np.maximum.reduceat(release, made.start[:-1]), np.minimum.reduceat(late[made.sequence], made.start[:-1])


def _forward(problem: Problem, made: Clusters, first: Int) -> Int:
    """(c,) the cluster of the forward tasks of each backward cluster; its own index for the others."""
    of = made.label[problem.forward]
    backward = problem.forward != np.arange(problem.n_tasks)
    fits = np.logical_and.reduceat((backward & (of == of[first][made.label]))[made.sequence], made.start[:-1])
    own = np.arange(len(first))
    forward = np.where(fits, of[first], own)
    return np.where(forward[forward] == forward, forward, own)


def _edges(problem: Problem, label: Int, count: int) -> tuple[Int, Int, Int, Bool]:
    """The edges between clusters: source, target, payload, shared."""
    outside = np.flatnonzero(label[problem.edge_source] != label[problem.edge_target])
    source, target = problem.edge_source[outside], label[problem.edge_target[outside]]
    payload, shared = problem.payload[outside], problem.shared[outside]
    if shared.any():
        # One transfer of a shared output serves a whole cluster: drop its other edges to that cluster.
        arrival = source * count + target
        again = np.zeros(len(outside), dtype=np.bool_)
        among = np.flatnonzero(shared)
        once = np.unique(arrival[among], return_index=True)[1]
        again[among] = True
        again[among[once]] = False
        source, target, payload, shared = source[~again], target[~again], payload[~again], shared[~again]
        shared = shared & (_sharer(problem, label, count, source[shared])[label[source]] == source)
    key = (label[source] * count + target) * 2 + shared
    kinds, inverse = np.unique(key, return_inverse=True)
    total = by_index(np.add, inverse, payload, len(kinds))
    return kinds // 2 // count, kinds // 2 % count, total, (kinds % 2).astype(np.bool_)


def _sharer(problem: Problem, label: Int, count: int, source: Int) -> Int:
    """(c,) the task of each cluster that keeps its shared output, -1 for none; `source` has one entry per transfer."""
    size = np.zeros(problem.n_tasks, dtype=np.int64)
    size[problem.edge_source[problem.shared]] = problem.payload[problem.shared]
    transfers = np.bincount(source, minlength=problem.n_tasks)
    some = np.flatnonzero(transfers)
    by_saving = some[np.lexsort((some, -(size * (transfers - 1))[some], label[some]))]
    sharer = np.full(count, -1, dtype=np.int64)
    leaders, first = np.unique(label[by_saving], return_index=True)
    sharer[leaders] = by_saving[first]
    return sharer
