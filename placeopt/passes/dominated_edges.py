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

from placeopt.errors import counted
from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Int
from placeopt.model.graph import path_lengths
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
        if problem.contention != "none":
            removable &= inside
        elif counts_transfers(problem):
            removable &= inside | (idle & (problem.payload == 0))
        removable &= (np.diff(problem.out_start)[source] > 1) & (np.diff(problem.in_start)[target] > 1)
        if not removable.any():
            return None
        alive = np.ones(problem.n_edges, dtype=np.bool_)
        drop_implied.select(int(removable.sum()) * BUDGET // 8)(
            problem.out_start, source, target, problem.group,
            path_lengths(problem.order, problem.out_start, target, np.ones(problem.n_tasks, dtype=np.int64)),
            np.where(inside | idle, ANY, problem.payload), np.where(inside, problem.payload.max(), problem.payload),
            removable, keeps_triangle_inequality(problem), BUDGET, alive,
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


@kernel()
def drop_implied(
    out_start: Int, edge_source: Int, edge_target: Int, group: Int, level: Int,
    required: Int, covers: Int, removable: Bool, keeps_triangle_inequality: bool, budget: int, alive: Bool,
) -> None:  # fmt: skip
    """Clear `alive` (e,) for edges that paths over other remaining edges imply.

    `required` (e,) is the payload that a covering part must carry, or ANY. `covers` (e,) is the payload
    that an edge counts for in such a part. The state of a task is 1 on a path that has covered nothing, 2 on a covering
    part that started in u's group, and 3 after a part that ended in v's group. A higher state allows everything that a
    lower one does.
    """
    n = len(group)
    state = np.zeros(n, dtype=np.int64)
    touched = np.empty(n, dtype=np.int64)
    stack = np.empty(3 * n, dtype=np.int64)
    for edge in range(len(edge_source)):
        if not removable[edge]:
            continue
        u, v = edge_source[edge], edge_target[edge]
        count, top, left = 1, 1, budget
        touched[0] = u
        stack[0] = u
        state[u] = 3 if required[edge] < 0 else 2
        found = False
        while top > 0 and left > 0 and not found:
            top -= 1
            x = stack[top]
            reached = state[x]
            for e in range(out_start[x], out_start[x + 1]):
                left -= 1
                if left < 0:
                    break
                y = edge_target[e]
                if not alive[e] or e == edge or (y != v and level[y] >= level[v]):
                    continue
                new = 1
                if reached == 3:
                    new = 3
                elif (
                    reached == 2 and covers[e] >= required[edge] and (keeps_triangle_inequality or group[x] == group[u])
                ):
                    new = 3 if group[y] == group[v] else 2
                if new < 3 and group[y] == group[u]:
                    new = 2
                elif new == 2 and not keeps_triangle_inequality:
                    new = 1
                if y == v:
                    if new == 3:
                        found = True
                        break
                    continue
                if new > state[y]:
                    if state[y] == 0:
                        touched[count] = y
                        count += 1
                    state[y] = new
                    stack[top] = y
                    top += 1
        if found:
            alive[edge] = False
        for k in range(count):
            state[touched[k]] = 0
