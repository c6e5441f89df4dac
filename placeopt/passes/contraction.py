"""Contraction: clusters of tasks as one task each, which runs them one after another.

What the fused task of a cluster is:

- Duration: the sum of the durations, per device; feasible where all of them are. No gap stands between them.
- Memory, never less than what the tasks hold: `resident` and `output` add up, since a fused task starts no later than
  each of its tasks and its output is held until the last consumer of any of them has its data. `scratch` adds up under
  the `sum` memory model; under `peak` the largest counts, as they run one at a time.
- Relocation: the sum of the tasks' own.
- Release time and deadline: such that all tasks keep theirs. A task that stands behind others need not wait
  for its own release time at the start of the fused task, by what those take at least.
- Edges within a cluster are gone. Those between two clusters become one whose payload is the sum, so that no
  transfer of it takes longer than the whole. A task has one shared output: of several producers with shared
  outputs in a cluster the one that saves the most bytes keeps its own, as a shared edge of its own to each
  cluster; the others' go into the sum, once to each cluster.
- A fused task is backward of another if all its tasks are backward tasks of tasks of that cluster.

Clusters must be such that no cycle comes of it; and each within one colocation group and without separated pairs, or
the groups united before.

**Restored schedules are valid** where the reduced one is, before re-timing already (ports contending: after): the tasks
of a cluster run in the place of the fused one in a topological order, start no earlier than it, where all data has
arrived that any of them needs from outside, and end no later, before which none of theirs is sent. Memory holds by
the above. ∎

O(n m + e log e) and one `build_problem`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Int
from placeopt.model.building import build_problem
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, durations
from placeopt.passes.protocol import Reduction
from placeopt.passes.uniting import keeps_groups
from placeopt.simulation import retime


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """Which tasks become one.

    Attributes
    ----------
    label
        (n,) cluster of each task, 0..c-1; the fused tasks stand in this order.
    sequence
        (n,) the tasks cluster by cluster, those of each in a topological order.
    start
        (c + 1,) cluster k is sequence[start[k]:start[k + 1]].
    """

    label: Int
    sequence: Int
    start: Int


def clusters(label: Int, order: Int) -> Clusters:
    """Clusters by label (n,), each in the order (n,) of all tasks, a topological one."""
    sequence = order[np.argsort(label[order], kind="stable")]
    count = int(label.max(initial=-1)) + 1
    return Clusters(label, sequence, np.searchsorted(label[sequence], np.arange(count + 1)).astype(np.int64))


def contraction(problem: Problem, made: Clusters, group: Int | None = None) -> Reduction:
    """The problem of the fused tasks; `group` (n,) the colocation groups, where they have been united."""
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

    told = f"{problem.n_tasks} -> {reduced.n_tasks} tasks, {problem.n_edges} -> {reduced.n_edges} edges"
    return Reduction(reduced, restore, project, told)


def contracted(problem: Problem, made: Clusters, group: Int) -> Problem:
    """The problem of the fused tasks."""
    count, first = len(made.start) - 1, made.sequence[made.start[:-1]]
    duration = np.zeros((count, problem.n_devices), dtype=np.int64)
    feasible = np.ones((count, problem.n_devices), dtype=np.bool_)
    add_up.select(3 * problem.duration.size)(made.label, problem.duration, problem.feasible, duration, feasible)
    source, target, payload, shared = _edges(problem, made.label, count)
    release, deadline = _windows(problem, made, feasible)
    scratch = np.add if problem.memory_model == "sum" else np.maximum

    def gathered(amounts: Int, how: np.ufunc = np.add) -> Int:
        return np.asarray(how.reduceat(amounts[made.sequence], made.start[:-1]), dtype=np.int64)

    return build_problem(
        name=problem.name,
        description=problem.description,
        resolution=problem.resolution,
        task_names=_names(problem, made, first),
        device_names=problem.device_names,
        device_types=problem.device_types,
        duration=duration,
        feasible=feasible,
        resident=gathered(problem.resident),
        output=gathered(problem.output),
        scratch=gathered(problem.scratch, scratch),
        release=release,
        deadline=deadline,
        capacity=problem.capacity,
        edges=np.column_stack((source, target)),
        payload=payload,
        shared=shared,
        latency=problem.latency,
        byte_ticks_num=problem.byte_ticks_num,
        byte_ticks_den=problem.byte_ticks_den,
        power_num=problem.power_num,
        power_den=problem.power_den,
        byte_energy_num=problem.byte_energy_num,
        byte_energy_den=problem.byte_energy_den,
        relocation=gathered(problem.relocation) if problem.relocation.any() else None,
        runs_before_next_change=problem.runs_before_next_change,
        group=group[first],
        separation=made.label[problem.separation],
        forward=_forward(problem, made, first),
        objective=problem.objective,
        contention=problem.contention,
        memory_model=problem.memory_model,
    )


@kernel(allocates=False)
def add_up(label: Int, duration: Int, feasible: Bool, total: Int, everywhere: Bool) -> None:
    """Durations (n, m) added up by label in `total` (c, m), and where all of a label are feasible."""
    for i in range(len(label)):
        k = label[i]
        for d in range(duration.shape[1]):
            total[k, d] += duration[i, d]
            everywhere[k, d] = everywhere[k, d] and feasible[i, d]


def _names(problem: Problem, made: Clusters, first: Int) -> list[str]:
    """The name of the first task of each cluster, and how many more there are; no name twice."""
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
    """(n, ...) what the tasks of its cluster before each take, and those behind it; tasks take `ticks` (n, ...)."""
    in_turn = ticks[made.sequence]
    done = np.cumsum(in_turn, axis=0)
    before = done - in_turn
    sizes = np.diff(made.start)
    first, last = np.repeat(made.start[:-1], sizes), np.repeat(made.start[1:] - 1, sizes)
    ahead, behind = np.empty_like(ticks), np.empty_like(ticks)
    ahead[made.sequence], behind[made.sequence] = before - before[first], done[last] - done
    return ahead, behind


def _windows(problem: Problem, made: Clusters, feasible: Bool) -> tuple[Int | None, Int | None]:
    """(c,) release times and deadlines of the fused tasks; None where no task has any."""
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
    """(c,) the cluster whose tasks those of each cluster are backward tasks of; its own index where there is none."""
    of = made.label[problem.forward]
    backward = problem.forward != np.arange(problem.n_tasks)
    fits = np.logical_and.reduceat((backward & (of == of[first][made.label]))[made.sequence], made.start[:-1])
    own = np.arange(len(first))
    forward = np.where(fits, of[first], own)
    return np.where(forward[forward] == forward, forward, own)


def _edges(problem: Problem, label: Int, count: int) -> tuple[Int, Int, Int, Bool]:
    """Edges between clusters: source, target, payload, whether shared."""
    outside = np.flatnonzero(label[problem.edge_source] != label[problem.edge_target])
    source, target = problem.edge_source[outside], label[problem.edge_target[outside]]
    payload, shared = problem.payload[outside], problem.shared[outside]
    if shared.any():
        # One transfer of a shared output serves a whole cluster: its further edges there go.
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
    total = np.zeros(len(kinds), dtype=np.int64)
    np.add.at(total, inverse, payload)
    return kinds // 2 // count, kinds // 2 % count, total, (kinds % 2).astype(np.bool_)


def _sharer(problem: Problem, label: Int, count: int, source: Int) -> Int:
    """(c,) the task of each cluster that keeps a shared output, -1 for none; `source` holds that of each transfer."""
    size = np.zeros(problem.n_tasks, dtype=np.int64)
    size[problem.edge_source[problem.shared]] = problem.payload[problem.shared]
    transfers = np.bincount(source, minlength=problem.n_tasks)
    some = np.flatnonzero(transfers)
    by_saving = some[np.lexsort((some, -(size * (transfers - 1))[some], label[some]))]
    sharer = np.full(count, -1, dtype=np.int64)
    leaders, first = np.unique(label[by_saving], return_index=True)
    sharer[leaders] = by_saving[first]
    return sharer
