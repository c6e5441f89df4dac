"""Two exact passes for tasks that take no time: one removes them, one moves them into the group of a neighbour."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt import engine
from placeopt.errors import counted
from placeopt.model.arrays import Bool, Int
from placeopt.model.native import native
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, durations
from placeopt.passes.protocol import Reduction
from placeopt.passes.rebuilding import (
    Edges,
    contradictory,
    counts_transfers,
    edges_of,
    followed,
    keeps_triangle_inequality,
    leading,
    least_durations,
    movable_zero_time,
    permanent_memory,
    projected_transfers,
    rebuilt,
    relocation_matters,
    restored_transfers,
)

REMOVED = -1
"""Representative of a task that rule 3 removes."""

EARLY, LATE = 1, 2
"""When the proof runs a task that joined: as its last producer ends, or as its first consumer starts."""


class ZeroTime:
    """Removes zero-time tasks that a task of their group can represent.

    Let z be a task that takes no time on any device that its group may use. Three rules, applied to whole chains at
    once:

    1. All producers of z share its group and are, after earlier removals, one task p. Then z runs when p ends.
    2. All consumers of z share its group and are one task c. Then z runs when c starts.
    3. All neighbours of z share its group. If z has no producers, it runs at tick 0; if it has no consumers, it runs
       when its last producer ends.

    The edges of a removed task are moved to its representative p or c (rule 3 leaves none), so the number of edges does
    not grow. The representative also takes over memory, relocation, release time (rule 2) and deadline (rules 1 and 3).

    The pass is exact under every objective, contention and memory model. Tasks that violate a **condition** stay:

    - `peak`: neither z nor any producer of z has an `output`, so nothing depends on the end of z;
    - rules 1 and 3: the release time of z is implied, that is, no later than the release time of p plus its least
      duration (0 without producers);
    - rule 2: the deadline of z is implied, that is, unlimited or no earlier than the latest start that c's deadline
      allows;
    - rule 3: z has no memory and no relocation that matter and is in no separated pair, since it leaves the problem;
    - rule 1, if transfers cost or contend: of p and the tasks that p represents, at most one has an output shared with
      other groups, since a task has only one shared output.

    **Proof.** *From the original to the reduced problem*: remove z from a feasible schedule. Rule 1: let t be the
    transfer time to a consumer c of z, the same from p and z because they share a device. Then start(c) >= end(z) + t
    >= end(p) + t, so the new edge p -> c with z's payload holds; so does p's new deadline, as end(p) <= end(z). Rule 2
    is symmetric, with start(c) >= end(z) >= release(z). With port contention, the same transfers run between the same
    devices at the same times: p may send those of z, and data received before start(z) <= start(c) may be received by
    c.

    *Back*: insert z as the rules say. At that tick a task on its device ends (1, 3) or starts (2), or the tick is 0. So
    z lies strictly inside no other task: that task would overlap. Producers have ended and their data has arrived: in
    rules 1 and 3 they are on the same device; in rule 2 the data has arrived for c. In rule 1 the consumers of z start
    when the data of p has arrived, at the same tick; in rule 2, c starts then; in rule 3 they start at 0 or later.
    Release time and deadline of z hold by the conditions.

    *Values*: the makespan is equal, since z ends no later than another task or at tick 0. Transfers are equal: edges
    within a group cause none, and the others keep payload, devices and sharing (two shared edges of one producer to the
    same task become one; they were one transfer). Duration, load and computing energy of z are 0. Its relocation and
    memory count on the same device, for as long, with its representative. Under `peak` only `resident` counts, because
    its scratch is held for no time and neither p nor z holds an output. ∎

    O(n + e).
    """

    name: ClassVar[str] = "zero-time"
    exact: ClassVar[bool] = True
    summary: ClassVar[str] = "removes zero-time tasks that a task of their group can represent"
    citation: ClassVar[str] = ""

    def apply(self, problem: Problem) -> Reduction | None:
        """The problem without these tasks: first those represented by a producer, then by a consumer."""
        if problem.n_tasks == 0 or contradictory(problem):
            return None
        first = _reduction(problem, forwards=True)
        second = _reduction(problem if first is None else first.problem, forwards=False)
        return second if first is None else first if second is None else _composed(first, second)


def _composed(first: Reduction, second: Reduction) -> Reduction:
    """Two reductions as one."""

    def restore(schedule: Schedule) -> Schedule:
        return first.restore(second.restore(schedule))

    def project(schedule: Schedule) -> Schedule | None:
        halfway = first.project(schedule)
        return None if halfway is None else second.project(halfway)

    explanation = f"{first.explanation}, then {second.explanation}"
    return Reduction(second.problem, restore, project, explanation, followed(first.leader, second.leader))


def _reduction(problem: Problem, *, forwards: bool) -> Reduction | None:
    allowed = problem.group_feasible()
    candidate = movable_zero_time(problem, allowed)
    if not candidate.any():
        return None
    free = _leaves_no_trace(problem)
    given = native(problem), candidate, free, least_durations(problem, allowed), problem.release, problem.deadline
    representative, release, deadline = (
        engine.join_producers(*given, _sharing(problem)) if forwards else engine.join_consumers(*given)
    )
    kept = np.flatnonzero(representative == np.arange(problem.n_tasks))
    if len(kept) == problem.n_tasks:
        return None

    moved = np.flatnonzero((representative != np.arange(problem.n_tasks)) & (representative != REMOVED))
    resident = problem.resident.copy()
    np.add.at(resident, representative[moved], permanent_memory(problem)[moved])
    relocation = problem.relocation.copy()
    np.add.at(relocation, representative[moved], problem.relocation[moved])
    reduced, origin = rebuilt(
        problem,
        tasks=kept,
        edges=_joined(problem, representative),
        feasible=allowed[problem.group],
        resident=resident,
        relocation=relocation,
        release=release,
        deadline=deadline,
        separation=representative[problem.separation],
    )

    def restore(schedule: Schedule) -> Schedule:
        start = np.zeros(problem.n_tasks, dtype=np.int64)
        start[kept] = schedule.start
        where = allowed.argmax(axis=1)  # any allowed device for groups that lost all tasks
        where[problem.group[kept]] = schedule.device
        device = where[problem.group]
        ticks = durations(problem, device)
        start[moved] = start[representative[moved]] + (ticks[representative[moved]] if forwards else 0)
        if not forwards:
            for z in problem.order[representative[problem.order] == REMOVED].tolist():
                start[z] = _last_end(problem, z, start, ticks)
        return Schedule(device, start, restored_transfers(problem, schedule, device, origin))

    def project(schedule: Schedule) -> Schedule:
        device = schedule.device[kept]
        return Schedule(device, schedule.start[kept], projected_transfers(problem, schedule, reduced, device, origin))

    side = "producer" if forwards else "consumer"
    explanation = f"{counted(problem.n_tasks - len(kept), 'zero-time task')} represented by a {side}"
    return Reduction(reduced, restore, project, explanation, leading(problem, kept))


def _leaves_no_trace(problem: Problem) -> Bool:
    """(n,), whether the task has no memory and no relocation that matter and is in no separated pair."""
    free = (permanent_memory(problem) == 0) & ~relocation_matters(problem)
    free[problem.separation] = False
    return np.asarray(free)


def _last_end(problem: Problem, task: int, start: Int, ticks: Int) -> int:
    """The end of the task's last producer, for starts and durations (n,); 0 without producers."""
    producers = problem.edge_source[problem.in_edge[problem.in_start[task] : problem.in_start[task + 1]]]
    return int((start[producers] + ticks[producers]).max(initial=0))


def _sharing(problem: Problem) -> Bool:
    """(n,), whether the task shares an output with tasks of other groups, if transfers cost or contend."""
    sharing = np.zeros(problem.n_tasks, dtype=np.bool_)
    if counts_transfers(problem) or problem.contends:
        outside = problem.group[problem.edge_source] != problem.group[problem.edge_target]
        sharing[problem.edge_source[outside & problem.shared]] = True
    return sharing


def _joined(problem: Problem, representative: Int) -> Edges:
    """The edges between representatives, without those inside a task; shared edges between the same tasks once."""
    edges = edges_of(problem)
    source, target = representative[edges.source], representative[edges.target]
    inside = problem.group[edges.source] == problem.group[edges.target]
    moved = source != edges.source
    # A task has one shared output. A moved edge need not share it within a group, where nothing is transferred, or if
    # transfers neither cost nor contend.
    shared = edges.shared & ~inside
    if not counts_transfers(problem) and not problem.contends:
        shared &= ~moved
    edges = Edges(source, target, edges.payload, shared, edges.origin)
    edges = edges.kept((source != target) & (source != REMOVED) & (target != REMOVED))
    inside = problem.group[edges.source] == problem.group[edges.target]
    key = np.stack((edges.source, edges.target, edges.payload, edges.shared | inside))
    order = np.lexsort((edges.origin, *key))
    again = np.zeros(len(order), dtype=np.bool_)
    again[1:] = (np.diff(key[:, order]) == 0).all(axis=0) & (key[3, order[1:]] == 1)
    return edges.kept(np.sort(order[~again]))


class Relays:
    """Moves zero-time tasks that are alone in their group into a neighbour's group, if no other device is better.

    Let z be a zero-time task alone in its group. It has no memory and no relocation that matter and is in no separated
    pair. Let g be a group such that z may run wherever g may. Then z joins g in these cases:

    1. all neighbours of z are in g;
    2. all producers of z are in g, and no consumer gets more bytes from z than z gets from each producer;
    3. all consumers of z are in g, and z gets from no producer more bytes than each consumer gets from z.

    Cases 2 and 3 require that transfers neither cost nor contend (contention `none`; no total cost, communication or
    energy in the objective) and that the links satisfy the triangle inequality in latency and rate.

    **Conditions** on times: either z can run when its last producer ends, because its release time is implied (no later
    than some producer's release plus least duration, 0 without producers); or z has consumers and no deadline, and runs
    when its first consumer starts. Case 2 needs the former, case 3 the latter. Under `peak`, neither z nor any of its
    producers has an `output`.

    Exact under every objective, contention and memory model. **Proof.** The reduced problem keeps the schedules with z
    on the device a of g, with the same objective values. Take a feasible schedule of the original with z on device x.
    Move z to a, to the tick that the conditions name. At that tick a task on a ends or starts (or it is tick 0), so z
    lies strictly inside no other task.

    Case 1: the data of the producers is there when they end, and consumers start no earlier than before. Transfers from
    and to z disappear, which frees ports and saves their cost. Case 2: let p be a producer with payload r, and let a
    consumer on b get q <= r bytes. It started no earlier than end(p) + t(r, a, x) + t(q, x, b) >= end(p) + t(q, a, x) +
    t(q, x, b) >= end(p) + t(q, a, b), so it may still start then. Case 3: the r <= q bytes of a producer on d arrive on
    a by end(p) + t(r, d, a) <= end(p) + t(r, d, x) + t(r, x, a) <= end(p) + t(r, d, x) + t(q, x, a) <= start(c) for
    every consumer c.

    No duration, load or memory moves with z. The makespan stays equal, because another task starts or ends when z runs.
    Tasks join one after another, each in the problem that the previous steps leave. ∎

    O((n + e) + n m).
    """

    name: ClassVar[str] = "relays"
    exact: ClassVar[bool] = True
    summary: ClassVar[str] = "moves single zero-time tasks into a neighbour's group if no other device is better"
    citation: ClassVar[str] = ""

    def apply(self, problem: Problem) -> Reduction | None:
        """The problem with fewer groups."""
        if problem.n_edges == 0 or contradictory(problem):
            return None
        allowed = problem.group_feasible()
        size = np.bincount(problem.group)
        candidate = movable_zero_time(problem, allowed) & _leaves_no_trace(problem) & (size[problem.group] == 1)
        if not candidate.any():
            return None
        moves_free = not counts_transfers(problem) and not problem.contends and keeps_triangle_inequality(problem)
        least = least_durations(problem, allowed)
        group, when = engine.join_neighbours(native(problem), candidate, least, problem.deadline, allowed, moves_free)
        joined = problem.order[when[problem.order] > 0]
        if len(joined) == 0:
            return None
        feasible = problem.feasible.copy()
        feasible[joined] = allowed[group[joined]]
        reduced, origin = rebuilt(problem, group=group, feasible=feasible)

        def project(schedule: Schedule) -> Schedule:
            moved = _moved(problem, schedule, group, when, joined)
            table = projected_transfers(problem, schedule, reduced, moved.device, origin)
            return Schedule(moved.device, moved.start, table)

        explanation = f"{counted(len(joined), 'zero-time task')} moved into a neighbour's group"
        return Reduction(reduced, lambda schedule: schedule, project, explanation)


SEVERAL, NONE = -1, -2
"""The common group of tasks in several groups, and of no tasks."""


def _moved(problem: Problem, schedule: Schedule, group: Int, when: Int, joined: Int) -> Schedule:
    """The schedule with the joined tasks placed as in the proof, one after another."""
    device, start = schedule.device.copy(), schedule.start.copy()
    ticks = durations(problem, device)
    stays = when == 0
    where = np.zeros(problem.n_groups, dtype=np.int64)
    where[group[stays]] = device[stays]
    for z in joined.tolist():
        if when[z] == EARLY:
            start[z] = _last_end(problem, z, start, ticks)
        else:
            start[z] = start[problem.edge_target[problem.out_start[z] : problem.out_start[z + 1]]].min()
    device[joined] = where[group[joined]]
    return Schedule(device, start)
