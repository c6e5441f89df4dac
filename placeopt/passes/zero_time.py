"""Two exact passes for tasks that take no time: one removes them, one moves them into the group of a neighbour."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from placeopt.errors import counted
from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import UNLIMITED, Problem
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

KERNEL_STEPS = 4
"""Elementary steps of a kernel per task and edge, for the choice between plain and compiled code."""

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
    release, deadline = problem.release.copy(), problem.deadline.copy()
    representative = np.arange(problem.n_tasks)
    least = least_durations(problem, allowed)
    graph, tasks = _graph(problem, problem.group), Tasks(candidate, free, least, release, deadline)
    work = KERNEL_STEPS * (problem.n_tasks + problem.n_edges)
    if forwards:
        join_producers.select(work)(graph, tasks, _sharing(problem), representative)
    else:
        join_consumers.select(work)(graph, tasks, representative)
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
    if counts_transfers(problem) or problem.contention != "none":
        outside = problem.group[problem.edge_source] != problem.group[problem.edge_target]
        sharing[problem.edge_source[outside & problem.shared]] = True
    return sharing


class Graph(NamedTuple):
    """The edges of a problem and the groups of its tasks, as in `Problem`."""

    order: Int
    in_start: Int
    in_edge: Int
    out_start: Int
    edge_source: Int
    edge_target: Int
    group: Int


class Tasks(NamedTuple):
    """What the rules ask of the tasks."""

    candidate: Bool  # (n,)
    free: Bool  # (n,) whether the task leaves no trace
    least: Int  # (n,) least duration
    release: Int
    deadline: Int


def _graph(problem: Problem, group: Int) -> Graph:
    starts = problem.in_start, problem.in_edge, problem.out_start
    return Graph(problem.order, *starts, problem.edge_source, problem.edge_target, group)


@kernel(allocates=False)
def join_producers(graph: Graph, tasks: Tasks, sharing: Bool, representative: Int) -> None:
    """Apply rules 1 and 3 (no producers) to every candidate, producers first.

    Changes `sharing`, `representative` and the times of `tasks`.
    """
    group, release, deadline, least = graph.group, tasks.release, tasks.deadline, tasks.least
    for z in graph.order:
        if not tasks.candidate[z]:
            continue
        producer, joins = -1, True
        for k in range(graph.in_start[z], graph.in_start[z + 1]):
            p = graph.edge_source[graph.in_edge[k]]
            if group[p] != group[z]:
                joins = False
                break
            p = representative[p]
            if p >= 0 and p != producer:
                if producer >= 0:
                    joins = False
                    break
                producer = p
        if not joins:
            continue
        if producer < 0:
            if not tasks.free[z] or release[z] > 0:
                continue
            for e in range(graph.out_start[z], graph.out_start[z + 1]):
                if group[graph.edge_target[e]] != group[z]:
                    joins = False
                    break
            if joins:
                representative[z] = -1
            continue
        if release[z] > release[producer] + least[producer] or (sharing[z] and sharing[producer]):
            continue
        sharing[producer] = sharing[producer] or sharing[z]
        deadline[producer] = min(deadline[producer], deadline[z])
        representative[z] = producer


@kernel(allocates=False)
def join_consumers(graph: Graph, tasks: Tasks, representative: Int) -> None:
    """Apply rules 2 and 3 (no consumers) to every candidate, consumers first.

    Changes `representative` and the times of `tasks`.
    """
    group, release, deadline, least = graph.group, tasks.release, tasks.deadline, tasks.least
    for i in range(len(graph.order) - 1, -1, -1):
        z = graph.order[i]
        if not tasks.candidate[z]:
            continue
        consumer, joins = -1, True
        for e in range(graph.out_start[z], graph.out_start[z + 1]):
            c = graph.edge_target[e]
            if group[c] != group[z]:
                joins = False
                break
            c = representative[c]
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
            representative[z] = consumer
            continue
        implied = 0
        for k in range(graph.in_start[z], graph.in_start[z + 1]):
            p = graph.edge_source[graph.in_edge[k]]
            if group[p] != group[z]:
                joins = False
                break
            implied = max(implied, release[p] + least[p])
        if joins and tasks.free[z] and release[z] <= implied:
            representative[z] = -1
            for k in range(graph.in_start[z], graph.in_start[z + 1]):
                p = graph.edge_source[graph.in_edge[k]]
                deadline[p] = min(deadline[p], deadline[z])


def _joined(problem: Problem, representative: Int) -> Edges:
    """The edges between representatives, without those inside a task; shared edges between the same tasks once."""
    edges = edges_of(problem)
    source, target = representative[edges.source], representative[edges.target]
    inside = problem.group[edges.source] == problem.group[edges.target]
    moved = source != edges.source
    # A task has one shared output. A moved edge need not share it within a group, where nothing is transferred, or if
    # transfers neither cost nor contend.
    shared = edges.shared & ~inside
    if not counts_transfers(problem) and problem.contention == "none":
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
        moves_free = (
            not counts_transfers(problem) and problem.contention == "none" and keeps_triangle_inequality(problem)
        )
        group, when = problem.group.copy(), np.zeros(problem.n_tasks, dtype=np.int64)
        work = problem.n_tasks + problem.n_edges + int(candidate.sum()) * problem.n_devices
        tasks = Tasks(candidate, candidate, least_durations(problem, allowed), problem.release, problem.deadline)
        graph = _graph(problem, group)
        join_neighbours.select(work)(graph, tasks, problem.payload, allowed, moves_free, size, when)
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


@kernel(allocates=False)
def join_neighbours(
    graph: Graph, tasks: Tasks, payload: Int, allowed: Bool, moves_free: bool, size: Int, when: Int
) -> None:
    """Apply the cases, producers first: update `graph.group` and the `size` (g,); `when` (n,) is EARLY, LATE or 0."""
    group = graph.group
    for z in graph.order:
        own = group[z]
        if not tasks.candidate[z] or size[own] > 1:
            continue
        before, after, implied = NONE, NONE, 0
        least_in, most_in, least_out, most_out = UNLIMITED, -1, UNLIMITED, -1
        for k in range(graph.in_start[z], graph.in_start[z + 1]):
            e = graph.in_edge[k]
            p = graph.edge_source[e]
            before = group[p] if before == NONE or before == group[p] else SEVERAL
            implied = max(implied, tasks.release[p] + tasks.least[p])
            least_in, most_in = min(least_in, payload[e]), max(most_in, payload[e])
        for e in range(graph.out_start[z], graph.out_start[z + 1]):
            c = graph.edge_target[e]
            after = group[c] if after == NONE or after == group[c] else SEVERAL
            least_out, most_out = min(least_out, payload[e]), max(most_out, payload[e])
        early = tasks.release[z] <= implied
        late = after != NONE and tasks.deadline[z] == UNLIMITED
        target = SEVERAL
        if before == after or after == NONE:
            target = before
        elif before == NONE:
            target = after
        if target < 0 or not (early or late):
            target = SEVERAL
            if moves_free and before >= 0 and after != NONE and early and least_in >= most_out:
                target = before
            elif moves_free and after >= 0 and before != NONE and late and most_in <= least_out:
                target, early = after, False
        if target < 0:
            continue
        fits = True
        for d in range(allowed.shape[1]):
            if allowed[target, d] and not allowed[own, d]:
                fits = False
                break
        if fits:
            size[own] -= 1
            size[target] += 1
            group[z] = target
            when[z] = EARLY if early else LATE


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
