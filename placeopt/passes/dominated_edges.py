"""Remove edges whose timing follows from other edges.

Edge u -> v requires start(v) >= end(u) + t(p, a, b). Here t(p, a, b) is the number of ticks for its payload p from u's
device a to v's device b; it is 0 if a = b. Along a path, each task starts after the previous one has ended and its data
has arrived. The edge therefore follows from the others if there is another path from u to v

- over arbitrary edges, if u and v share a group or p takes no ticks between any two devices;
- otherwise with a *covering* part from a task of u's group to a task of v's group: each of its edges carries at least p
  or stays within a group. If the links satisfy the triangle inequality the part may be any path, else it must be a
  single edge.

**Proof.** In the first case t = 0, and durations are not negative. In the second case, a = b gives t = 0 again.
Otherwise the covering part starts on a, ends on b, and visits devices a = d_0, d_1, ..., d_k = b. Its transfers take at
least sum t(p, d_i, d_{i+1}) >= t(p, a, b): transfer times grow with the payload, and t = latency + ceil(p x rate)
satisfies the triangle inequality if latency and rate do, since ceil(x + y) <= ceil(x) + ceil(y). An edge within a group
has d_i = d_{i+1}. Times do not decrease before and after the part. Edges are removed one by one, each justified by the
remaining ones. ∎

The feasible start times thus stay the same for every placement. Nothing else may depend on the edge:

- `peak`: u has no output, because an output is held until its last consumer has received it;
- `port` contention: u and v share a group, so the edge is never a transfer;
- metrics that count transfers (total cost, communication, energy): as for `port`, or the edge has no payload and takes
  no ticks.

Every schedule then keeps its feasibility and objective, also with release times and deadlines: the pass is exact.

A depth-first search over tasks on levels below v's looks for a path. It visits at most BUDGET edges, so the pass takes
O(BUDGET e). If the limit is reached the edge stays, which is exact too.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt import engine
from placeopt.errors import counted
from placeopt.model.arrays import Bool
from placeopt.model.graph import path_lengths
from placeopt.model.native import native
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.passes.protocol import Reduction
from placeopt.passes.rebuilding import (
    counts_transfers,
    edges_of,
    keeps_triangle_inequality,
    output_is_free,
    projected_transfers,
    rebuilt,
    restored_transfers,
)

BUDGET = 256
"""Maximum number of edges visited to justify removing one edge."""

ANY = -1
"""Payload of an edge that any path implies."""


class DominatedEdges:
    """Removes edges that other paths imply."""

    name: ClassVar[str] = "dominated-edges"
    exact: ClassVar[bool] = True
    summary: ClassVar[str] = "removes edges whose timing other paths imply"
    citation: ClassVar[str] = ""

    def apply(self, problem: Problem) -> Reduction | None:
        """The problem with fewer edges."""
        if problem.n_edges == 0:
            return None
        source, target = problem.edge_source, problem.edge_target
        inside = problem.group[source] == problem.group[target]
        idle = _takes_no_ticks(problem)
        removable = output_is_free(problem)[source]
        if problem.contends:
            removable &= inside
        elif counts_transfers(problem):
            removable &= inside | (idle & (problem.payload == 0))
        removable &= (np.diff(problem.out_start)[source] > 1) & (np.diff(problem.in_start)[target] > 1)
        if not removable.any():
            return None
        alive = engine.not_implied(
            native(problem),
            path_lengths(problem.order, problem.out_start, target, np.ones(problem.n_tasks, dtype=np.int64)),
            np.where(inside | idle, ANY, problem.payload), np.where(inside, problem.payload.max(), problem.payload),
            removable, keeps_triangle_inequality(problem), BUDGET, engine.current_stop(),
        )  # fmt: skip
        if alive.all():
            return None
        reduced, origin = rebuilt(problem, edges=edges_of(problem).kept(alive))

        def restore(schedule: Schedule) -> Schedule:
            transfers = restored_transfers(problem, schedule, schedule.device, origin)
            return Schedule(schedule.device, schedule.start, transfers)

        def project(schedule: Schedule) -> Schedule:
            transfers = projected_transfers(problem, schedule, reduced, schedule.device, origin)
            return Schedule(schedule.device, schedule.start, transfers)

        return Reduction(reduced, restore, project, f"{counted(int((~alive).sum()), 'edge')} that others imply removed")


def _takes_no_ticks(problem: Problem) -> Bool:
    """(e,), whether the payload takes no ticks between any two devices."""
    apart = ~np.eye(problem.n_devices, dtype=np.bool_)
    if problem.latency[apart].any():
        return np.zeros(problem.n_edges, dtype=np.bool_)
    return np.asarray((problem.payload == 0) | (not problem.byte_ticks_num[apart].any()))
