"""Removes tasks that take no time, where a task of their group can stand in for them.

z is a task that takes no time on every device that its group may use. Three rules, each followed through whole
chains at once:

1. All producers of z share its group and are, after earlier removals, one task p: z runs when p ends.
2. All consumers of z share its group and are one task c: z runs when c starts.
3. All neighbours of z share its group and z has no producers: it runs at tick 0; or no consumers: when its last
producer ends.

The edges of a removed task become edges of the one that stands in for it (in rule 3 none are left to carry over),
so there are never more than before. Its memory, relocation, release time (rule 2) and deadline (rules 1 and 3) go there
too.

Exact under every objective, both contentions and both memory models, under these **conditions**, else the task stays:

- `peak`: neither z nor any of its producers has an `output`, so that nothing hangs on when z ends;
- rule 1 and 3: the release time of z is implied, no later than that of p and p's least duration (0 without
  producers);
- rule 2: the deadline of z is implied, unlimited or no earlier than the latest start that c's own leaves;
- rule 3: z has no memory and no relocation that count and is in no separated pair, for it leaves the problem
  altogether;
- rule 1, where transfers cost or contend: at most one of p and those that it stands in for has an output shared
  outside the group, for one task has one shared output.

**Proof.** *From the original to the reduced problem*: take a feasible schedule and leave z out. Rule 1: a consumer
c of z starts at or after end(z) + t >= end(p) + t, t being the ticks of the transfer, the same for p and z, which
share a device: so the edge p -> c with z's payload holds, and so does p's new deadline, as end(p) <= end(z). Rule 2
is its mirror image, with start(c) >= end(z) >= release(z). Under port contention the same transfers between the
same devices run at the same times: those sent by z may be sent by p, those received by z before start(z) <=
start(c).

*Back*: put z where the rules say. Its tick is that at which a task on its own device ends (1, 3) or starts (2), or
tick 0, so it lies strictly inside no other: whatever ran across it would overlap that task. Producers have ended
and their data has arrived by then: in rules 1 and 3 they are on the device and the last ends then, in rule 2 the
data has arrived for c. Consumers of z in rule 1 start when the data of p has arrived, the same tick; in rule 2 c
starts then; in rule 3 they start at 0 or later. The release time and the deadline of z hold by the conditions.

*Values*: the makespan is the same, since z ends no later than some other task or at tick 0. Transfers are the same:
edges within a group are none, and the others keep their payload, the devices at both ends, and whether they share a
transfer (two shared edges of one producer to the same task become one, and were one transfer). Durations, loads and
the energy of computing of z are 0. Its relocation to the device of its group is counted with that of the task that
stands in for it. Its memory, held on the device of its group for as long as before, is that of that task too; under
`peak` only its `resident` counts, as its scratch is held for no time and no output of p or z is held at all. ∎

O(n + e).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, durations
from placeopt.passes.protocol import Reduction
from placeopt.passes.rebuilding import (
    Edges,
    at_odds,
    counts_transfers,
    edges_of,
    least_durations,
    projected_transfers,
    quiet_zero_time,
    rebuilt,
    relocating,
    restored_transfers,
    standing,
)

KERNEL_STEPS = 4
"""Elementary steps of a kernel for each task and edge, for the choice between plain and compiled code."""

NOBODY = -1
"""Stands in for a task of rule 3."""


class ZeroTime:
    """Removes zero-time tasks beside which a task of their group stands."""

    name: ClassVar[str] = "zero-time"
    exact: ClassVar[bool] = True
    summary: ClassVar[str] = "removes tasks that take no time, where a task of their group can stand in for them"
    citation: ClassVar[str] = ""

    def apply(self, problem: Problem) -> Reduction | None:
        """The problem without those tasks: first those that a producer stands in for, then those of a consumer."""
        if problem.n_tasks == 0 or at_odds(problem):
            return None
        first = _reduction(problem, forwards=True)
        second = _reduction(problem if first is None else first.problem, forwards=False)
        return second if first is None else first if second is None else _composed(first, second)


def _composed(first: Reduction, second: Reduction) -> Reduction:
    """One reduction after the other, as one."""

    def project(schedule: Schedule) -> Schedule | None:
        halfway = first.project(schedule)
        return None if halfway is None else second.project(halfway)

    told = f"{first.explanation}, then {second.explanation}"
    return Reduction(second.problem, lambda schedule: first.restore(second.restore(schedule)), project, told)


def _reduction(problem: Problem, *, forwards: bool) -> Reduction | None:
    allowed = problem.group_feasible()
    candidate = quiet_zero_time(problem, allowed)
    if not candidate.any():
        return None
    free = standing(problem) == 0
    free[problem.separation] = False
    free &= ~relocating(problem)
    release, deadline = problem.release.copy(), problem.deadline.copy()
    stand_in = np.arange(problem.n_tasks)
    least = least_durations(problem, allowed)
    given = (
        problem.order,
        problem.in_start,
        problem.in_edge,
        problem.out_start,
        problem.edge_source,
        problem.edge_target,
    )
    work = KERNEL_STEPS * (problem.n_tasks + problem.n_edges)
    if forwards:
        sharing = _sharing(problem)
        join_producers.select(work)(*given, problem.group, candidate, free, least, sharing, release, deadline, stand_in)
    else:
        join_consumers.select(work)(*given, problem.group, candidate, free, least, release, deadline, stand_in)
    kept = np.flatnonzero(stand_in == np.arange(problem.n_tasks))
    if len(kept) == problem.n_tasks:
        return None

    moved = np.flatnonzero((stand_in != np.arange(problem.n_tasks)) & (stand_in != NOBODY))
    resident = problem.resident.copy()
    np.add.at(resident, stand_in[moved], standing(problem)[moved])
    relocation = problem.relocation.copy()
    np.add.at(relocation, stand_in[moved], problem.relocation[moved])
    reduced, origin = rebuilt(
        problem,
        tasks=kept,
        edges=_joined(problem, stand_in),
        feasible=allowed[problem.group],
        resident=resident,
        relocation=relocation,
        release=release,
        deadline=deadline,
        separation=stand_in[problem.separation],
    )
    return Reduction(
        reduced,
        lambda schedule: _restored(problem, schedule, kept, stand_in, origin, forwards=forwards),
        lambda schedule: _projected(problem, schedule, reduced, kept, origin),
        f"{problem.n_tasks - len(kept)} tasks that take no time left to a {'producer' if forwards else 'consumer'}",
    )


def _sharing(problem: Problem) -> Bool:
    """(n,), whether the task has an output that tasks of other groups share and that costs or contends."""
    sharing = np.zeros(problem.n_tasks, dtype=np.bool_)
    if counts_transfers(problem) or problem.contention == "port":
        outside = problem.group[problem.edge_source] != problem.group[problem.edge_target]
        sharing[problem.edge_source[outside & problem.shared]] = True
    return sharing


@kernel(allocates=False)
def join_producers(
    order: Int, in_start: Int, in_edge: Int, out_start: Int, edge_source: Int, edge_target: Int,
    group: Int, candidate: Bool, free: Bool, least: Int, sharing: Bool, release: Int, deadline: Int, stand_in: Int,
) -> None:  # fmt: skip
    """Rules 1 and 3 (no producers) for every candidate, producers first; changes the last four arrays."""
    for z in order:
        if not candidate[z]:
            continue
        producer, joins = -1, True
        for k in range(in_start[z], in_start[z + 1]):
            p = edge_source[in_edge[k]]
            if group[p] != group[z]:
                joins = False
                break
            p = stand_in[p]
            if p >= 0 and p != producer:
                if producer >= 0:
                    joins = False
                    break
                producer = p
        if not joins:
            continue
        if producer < 0:
            if not free[z] or release[z] > 0:
                continue
            for e in range(out_start[z], out_start[z + 1]):
                if group[edge_target[e]] != group[z]:
                    joins = False
                    break
            if joins:
                stand_in[z] = -1
            continue
        if release[z] > release[producer] + least[producer] or (sharing[z] and sharing[producer]):
            continue
        sharing[producer] = sharing[producer] or sharing[z]
        deadline[producer] = min(deadline[producer], deadline[z])
        stand_in[z] = producer


@kernel(allocates=False)
def join_consumers(
    order: Int, in_start: Int, in_edge: Int, out_start: Int, edge_source: Int, edge_target: Int,
    group: Int, candidate: Bool, free: Bool, least: Int, release: Int, deadline: Int, stand_in: Int,
) -> None:  # fmt: skip
    """Rules 2 and 3 (no consumers) for every candidate, consumers first; changes the last three arrays."""
    for i in range(len(order) - 1, -1, -1):
        z = order[i]
        if not candidate[z]:
            continue
        consumer, joins = -1, True
        for e in range(out_start[z], out_start[z + 1]):
            c = edge_target[e]
            if group[c] != group[z]:
                joins = False
                break
            c = stand_in[c]
            if c >= 0 and c != consumer:
                if consumer >= 0:
                    joins = False
                    break
                consumer = c
        if not joins:
            continue
        if consumer >= 0:
            if deadline[z] < deadline[consumer] - least[consumer]:
                continue
            release[consumer] = max(release[consumer], release[z])
            stand_in[z] = consumer
            continue
        implied = 0
        for k in range(in_start[z], in_start[z + 1]):
            p = edge_source[in_edge[k]]
            if group[p] != group[z]:
                joins = False
                break
            implied = max(implied, release[p] + least[p])
        if joins and free[z] and release[z] <= implied:
            stand_in[z] = -1
            for k in range(in_start[z], in_start[z + 1]):
                p = edge_source[in_edge[k]]
                deadline[p] = min(deadline[p], deadline[z])


def _joined(problem: Problem, stand_in: Int) -> Edges:
    """The edges between those that stand in; none within a task, and a shared one to the same task once."""
    edges = edges_of(problem)
    source, target = stand_in[edges.source], stand_in[edges.target]
    inside = problem.group[edges.source] == problem.group[edges.target]
    moved = source != edges.source
    # One task has one shared output: within a group nothing moves, and where transfers neither cost nor contend a moved
    # edge may as well have its own.
    shared = edges.shared & ~inside
    if not counts_transfers(problem) and problem.contention == "none":
        shared &= ~moved
    edges = Edges(source, target, edges.payload, shared, edges.origin)
    edges = edges.kept((source != target) & (source != NOBODY) & (target != NOBODY))
    inside = problem.group[edges.source] == problem.group[edges.target]
    key = np.stack((edges.source, edges.target, edges.payload, edges.shared | inside))
    order = np.lexsort((edges.origin, *key))
    again = np.zeros(len(order), dtype=np.bool_)
    again[1:] = (np.diff(key[:, order]) == 0).all(axis=0) & (key[3, order[1:]] == 1)
    return edges.kept(np.sort(order[~again]))


def _restored(
    problem: Problem, schedule: Schedule, kept: Int, stand_in: Int, origin: Int, *, forwards: bool
) -> Schedule:
    start = np.zeros(problem.n_tasks, dtype=np.int64)
    start[kept] = schedule.start
    where = problem.group_feasible().argmax(axis=1)  # of a group that nothing is left of, any device it may use
    where[problem.group[kept]] = schedule.device
    device = where[problem.group]
    moved = np.flatnonzero((stand_in != np.arange(problem.n_tasks)) & (stand_in != NOBODY))
    ticks = durations(problem, device)
    start[moved] = start[stand_in[moved]] + (ticks[stand_in[moved]] if forwards else 0)
    if not forwards:
        _set_ends(problem, stand_in, start, ticks)
    return Schedule(device, start, restored_transfers(problem, schedule, device, origin))


def _set_ends(problem: Problem, stand_in: Int, start: Int, ticks: Int) -> None:
    """Start what nobody stands in for when its last producer ends."""
    for z in problem.order[stand_in[problem.order] == NOBODY].tolist():
        producers = problem.edge_source[problem.in_edge[problem.in_start[z] : problem.in_start[z + 1]]]
        start[z] = (start[producers] + ticks[producers]).max(initial=0)


def _projected(problem: Problem, schedule: Schedule, reduced: Problem, kept: Int, origin: Int) -> Schedule:
    device = schedule.device[kept]
    return Schedule(device, schedule.start[kept], projected_transfers(problem, schedule, reduced, device, origin))
