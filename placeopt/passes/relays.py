"""Lets zero-time tasks that are a group of their own join a neighbour's group, where no other device is better for
them.

z is a task alone in its group that takes no time on any device it may use, has no memory and no relocation that
count, is in no separated pair, and may run wherever the group g that it joins may. It joins g in one of these cases:

1. all neighbours of z are in g;
2. all producers of z are in g, and no consumer gets more bytes from z than z gets from each producer;
3. all consumers of z are in g, and z gets from no producer more bytes than each consumer gets from z.

Cases 2 and 3 only where transfers neither cost nor contend (contention `none`; no total cost, communication or
energy in the objective) and the links keep the triangle inequality, in latency and in rate. Case 1 always.
**Conditions** on times: z can run when its last producer ends, as its release time is implied (no later than some
producer's release plus least duration, 0 without producers); or, where it has consumers and no deadline, when its
first consumer starts. Case 2 needs the former, case 3 the latter. Under `peak` neither z nor any of its producers
has an `output`.

Exact then, under every objective, contention and memory model. **Proof.** The reduced problem has fewer schedules,
those with z on the device a of g, and the same objective for each. Take a feasible schedule of the original with z
on x, and move z to a, to the tick that the conditions name: a task on a ends or starts then (tick 0 without
producers), so z lies strictly inside no other. Case 1: the data of producers is there when they end, and consumers
start no earlier than before; transfers from and to z are gone, which frees ports and saves what they cost. Case 2,
a consumer on b gets q bytes: it started no earlier than end(p) + t(r, a, x) + t(q, x, b) >= end(p) + t(q, a, x) +
t(q, x, b) >= end(p) + t(q, a, b) for every producer p, since r >= q: so it may still start then. Case 3: a producer
on d has its r bytes on a by end(p) + t(r, d, a) <= end(p) + t(r, d, x) + t(r, x, a) <= end(p) + t(r, d, x) + t(q,
x, a) <= start(c) for every consumer c. No duration, load or memory moves with z, and the makespan stays: another
task starts or ends when z runs. Tasks join one after another, each in the problem that those before have left. ∎

O((n + e) + n m).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, durations
from placeopt.passes.protocol import Reduction
from placeopt.passes.rebuilding import (
    at_odds,
    counts_transfers,
    least_durations,
    projected_transfers,
    quiet_zero_time,
    rebuilt,
    relocating,
    standing,
    triangular,
)

EARLY, LATE = 1, 2
"""When a task that joined runs in the proof: as its last producer ends, or as its first consumer starts."""


class Relays:
    """Lets zero-time tasks without a group join a neighbour's."""

    name: ClassVar[str] = "relays"
    exact: ClassVar[bool] = True
    summary: ClassVar[str] = "zero-time tasks on their own join the group of a neighbour, where none is better"
    citation: ClassVar[str] = ""

    def apply(self, problem: Problem) -> Reduction | None:
        """The problem with fewer groups."""
        if problem.n_edges == 0 or at_odds(problem):
            return None
        allowed = problem.group_feasible()
        candidate = quiet_zero_time(problem, allowed) & (standing(problem) == 0) & ~relocating(problem)
        candidate[problem.separation] = False
        size = np.bincount(problem.group)
        candidate &= size[problem.group] == 1
        if not candidate.any():
            return None
        moves_free = not counts_transfers(problem) and problem.contention == "none" and triangular(problem)
        group, when = problem.group.copy(), np.zeros(problem.n_tasks, dtype=np.int64)
        work = problem.n_tasks + problem.n_edges + int(candidate.sum()) * problem.n_devices
        join_neighbours.select(work)(
            problem.order, problem.in_start, problem.in_edge, problem.out_start, problem.edge_source,
            problem.edge_target, problem.payload, allowed, candidate, problem.release, problem.deadline,
            least_durations(problem, allowed), moves_free, UNLIMITED, size, group, when,
        )  # fmt: skip
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

        told = f"{len(joined)} tasks that take no time put into a neighbour's group"
        return Reduction(reduced, lambda schedule: schedule, project, told)


@kernel(allocates=False)
def join_neighbours(
    order: Int, in_start: Int, in_edge: Int, out_start: Int, edge_source: Int, edge_target: Int, payload: Int,
    allowed: Bool, candidate: Bool, release: Int, deadline: Int, least: Int, moves_free: bool, unlimited: int,
    size: Int, group: Int, when: Int,
) -> None:  # fmt: skip
    """Change `group` (n,) and the `size` (g,) of groups by the three cases, producers first; `when` (n,) tells the
    proof's tick."""
    for z in order:
        own = group[z]
        if not candidate[z] or size[own] > 1:
            continue
        # The group of all producers, -1 if there are several, -2 if there are no producers; of all consumers alike.
        before, after, implied = -2, -2, 0
        least_in, most_in, least_out, most_out = unlimited, -1, unlimited, -1
        for k in range(in_start[z], in_start[z + 1]):
            e = in_edge[k]
            p = edge_source[e]
            before = group[p] if before == -2 or before == group[p] else -1
            implied = max(implied, release[p] + least[p])
            least_in, most_in = min(least_in, payload[e]), max(most_in, payload[e])
        for e in range(out_start[z], out_start[z + 1]):
            c = edge_target[e]
            after = group[c] if after == -2 or after == group[c] else -1
            least_out, most_out = min(least_out, payload[e]), max(most_out, payload[e])
        early = release[z] <= implied
        late = after != -2 and deadline[z] == unlimited
        target = -1
        if before == after or after == -2:
            target = before
        elif before == -2:
            target = after
        if target < 0 or not (early or late):
            target = -1
            if moves_free and before >= 0 and after != -2 and early and least_in >= most_out:
                target, late = before, False
            elif moves_free and after >= 0 and before != -2 and late and most_in <= least_out:
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
            when[z] = 1 if early else 2


def _moved(problem: Problem, schedule: Schedule, group: Int, when: Int, joined: Int) -> Schedule:
    """A schedule with the tasks that joined where the proof puts them, one after another."""
    device, start = schedule.device.copy(), schedule.start.copy()
    ticks = durations(problem, device)
    stays = when == 0
    where = np.zeros(problem.n_groups, dtype=np.int64)
    where[group[stays]] = device[stays]
    for z in joined.tolist():
        if when[z] == EARLY:
            producers = problem.edge_source[problem.in_edge[problem.in_start[z] : problem.in_start[z + 1]]]
            start[z] = (start[producers] + ticks[producers]).max(initial=0)
        else:
            start[z] = start[problem.edge_target[problem.out_start[z] : problem.out_start[z + 1]]].min()
    device[joined] = where[group[joined]]
    return Schedule(device, start)
