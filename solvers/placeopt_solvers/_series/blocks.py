"""Blocks as separate problems, with both ends pinned to devices.

**What a block is.** Between two cuts a and b, the *block problem* of devices d and e contains the tasks between the
cuts; a with duration 0, pinned to d; b pinned to e. Before the first cut, a is missing and releases and deadlines hold;
after the last cut, b is missing. Its optimum is t(d, e).

**Claim: a bound.** Let D(c) be the device of cut c in some feasible schedule. Then its makespan is at least the sum of
t(D(a), D(b)) over consecutive cuts a, b, hence at least the length of a shortest path over pairs (cut, device).

Proof. Shift the part of the schedule between the end of a and the end of b to begin at tick 0. The tasks of the block
are descendants of a and ancestors of b, so they lie in this part, and so do the transfers between them: a transfer lies
between the end of its producer and the start of its consumer. Precedence, devices, ports, feasibility, groups and
separations within the block hold as in the whole; memory holds, because the tasks of the block are some of those on a
device, and no output is freed later if it has fewer consumers. Hence the part is a schedule of the block problem, of
length end(b) - end(a) >= t(D(a), D(b)). In the first block, end(a) is 0; in the last one, end(b) is the makespan. So
the sum of these lengths is the makespan. ∎

Loose tasks, bypassing edges, groups and separations that span blocks, and release times and deadlines after the first
cut are left out. The bound stays valid but becomes weaker. `labels` and `prices` account for memory that spans blocks.

**Claim: an optimal schedule.** Without any of those, and if no capacity can be exceeded, schedules of the blocks on a
path, one after the other, are a feasible schedule of the whole, whose makespan is the length of the path. So the
shortest path is the optimum.

Proof. When a block begins, all earlier tasks have ended. Every transfer to one of them has arrived, so that all ports
are free; the output of a leaves when a ends, in the block problem at tick 0. No edge leads from before a to after it. ∎

In general, the joined schedule is re-timed in its order and checked (`joining`). It counts only if it is feasible, and
with its own makespan. If that equals the bound, it is optimal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.problem import UNLIMITED, Objective, Problem
from placeopt.passes.rebuilding import edges_of, rebuilt

from .cuts import Block


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A block as a problem whose ends may run on any of their devices."""

    problem: Problem
    """Names of tasks are numbers, so that equal blocks have equal fingerprints."""
    tasks: Int
    edges: Int
    """The original index of each task and edge."""
    first: int
    last: int
    """The places of the cuts in `tasks`; -1 for a missing one."""

    def pinned(self, start: int, end: int, capacity: Int) -> Problem:
        """Return the block problem of two devices with these capacities; a device of -1 leaves its cut free."""
        feasible = self.problem.feasible.copy()
        for cut, device in ((self.first, start), (self.last, end)):
            if cut >= 0 and device >= 0:
                kept = feasible[cut, device]
                feasible[cut] = False
                feasible[cut, device] = kept
        duration = np.where(feasible, self.problem.duration, 0)
        return rebuilt(self.problem, feasible=feasible, duration=duration, capacity=capacity)[0]


def part_of(problem: Problem, block: Block) -> Part:
    """Return a block as a problem. O(n + e)."""
    ends = [v for v in (block.first, block.last) if v >= 0]
    tasks = np.sort(np.concatenate((block.inner, np.array(ends, dtype=np.int64))))
    inside = np.zeros(problem.n_tasks, dtype=np.bool_)
    inside[tasks] = True
    edges = edges_of(problem)
    apart = problem.separation[inside[problem.separation].all(axis=1)]
    part, origin = rebuilt(
        problem,
        objective=Objective(),
        edges=edges.kept(inside[edges.source] & inside[edges.target]),
        tasks=tasks,
        separation=apart,
    )
    first = int(np.searchsorted(tasks, block.first)) if block.first >= 0 else -1
    if first >= 0:
        duration = part.duration.copy()
        duration[first] = 0
        nothing, never = np.zeros_like(part.release), np.full_like(part.deadline, UNLIMITED)
        part, again = rebuilt(part, duration=duration, release=nothing, deadline=never)
        origin = origin[again]
    part = replace(part, task_names=tuple(map(str, range(part.n_tasks))), name="", description="")
    last = int(np.searchsorted(tasks, block.last)) if block.last >= 0 else -1
    return Part(part, tasks, origin, first, last)
