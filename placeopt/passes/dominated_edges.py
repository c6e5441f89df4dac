"""Removes edges that follow from others, as far as they only say when a task may start.

Edge u -> v asks for start(v) >= end(u) + t(p, a, b), where t are the ticks that its payload p takes from u's device
a to v's device b, 0 if they are the same. Along a path each task starts when the one before has ended and its data
has arrived. So the edge follows from the others if there is another path from u to v

- of any edges: where u and v share a group, or no two devices take any ticks for p (an edge without payload and
  latency);
- of which a *covering* part leads from a task of u's group to one of v's, over edges that each have at least p as
  their payload or stay within a group: any path where the links keep the triangle inequality, else a single edge.

**Proof.** In the first case t = 0, and durations are not negative. In the second, if a = b, the same. Else the
covering part begins on a and ends on b, and on its way over devices a = d_0, d_1, ..., d_k = b its transfers take
at least sum t(p, d_i, d_{i+1}) >= t(p, a, b): transfers grow with the payload, and t = latency + ceil(p x rate)
keeps the triangle inequality where latency and rate do, since ceil(x + y) <= ceil(x) + ceil(y). (An edge within a
group has d_i = d_{i+1}.) Before and after it times do not decrease. Edges are removed one after another, each
justified by those that are left. ∎

So the feasible starts stay as they are, for every placement. The rest must not look at the edge:

- `peak`: u has no output (an output is held until its last consumer has it);
- `port` contention: u and v share a group, so that the edge never is a transfer;
- metrics that count transfers (total cost, communication, energy): the same, or the edge has no payload and takes
  no ticks.

Then every schedule keeps its feasibility and its objective: exact, also with release times and deadlines.

Paths are looked for by depth-first search among tasks on levels below v's, over at most LOOKED edges, so that the
pass takes O(LOOKED e) at worst; an edge for which that is not enough stays, which is exact too.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Int
from placeopt.model.graph import path_lengths
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.passes.protocol import Reduction
from placeopt.passes.rebuilding import (
    counts_transfers,
    edges_of,
    projected_transfers,
    rebuilt,
    restored_transfers,
    silent,
    triangular,
)

LOOKED = 256
"""Edges looked at for one edge, at most."""

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
        removable = silent(problem)[source]
        if problem.contention == "port":
            removable &= inside
        elif counts_transfers(problem):
            removable &= inside | (idle & (problem.payload == 0))
        removable &= (np.diff(problem.out_start)[source] > 1) & (np.diff(problem.in_start)[target] > 1)
        if not removable.any():
            return None
        alive = np.ones(problem.n_edges, dtype=np.bool_)
        drop_implied.select(int(removable.sum()) * LOOKED // 8)(
            problem.out_start, source, target, problem.group,
            path_lengths(problem.order, problem.out_start, target, np.ones(problem.n_tasks, dtype=np.int64)),
            np.where(inside | idle, ANY, problem.payload), np.where(inside, problem.payload.max(), problem.payload),
            removable, triangular(problem), LOOKED, alive,
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

        return Reduction(reduced, restore, project, f"{int((~alive).sum())} edges that follow from others removed")


def _takes_no_ticks(problem: Problem) -> Bool:
    """(e,), whether the payload takes no ticks between any two devices."""
    apart = ~np.eye(problem.n_devices, dtype=np.bool_)
    if problem.latency[apart].any():
        return np.zeros(problem.n_edges, dtype=np.bool_)
    return np.asarray((problem.payload == 0) | (not problem.byte_ticks_num[apart].any()))


@kernel()
def drop_implied(
    out_start: Int, edge_source: Int, edge_target: Int, group: Int, level: Int,
    asked: Int, covers: Int, removable: Bool, triangular: bool, looked: int, alive: Bool,
) -> None:  # fmt: skip
    """Clear `alive` (e,) for edges that paths over other living edges imply.

    `asked` (e,) is the payload that a covering part must have, ANY for none; `covers` (e,) the payload that an edge
    passes for as a part. A task is reached in one of three states: 1, along a path that has covered nothing yet;
    2, on a covering part that began in u's group; 3, after one that ended in v's. A higher state can do all that
    a lower one can.
    """
    n = len(group)
    state = np.zeros(n, dtype=np.int64)
    touched = np.empty(n, dtype=np.int64)
    stack = np.empty(3 * n, dtype=np.int64)
    for edge in range(len(edge_source)):
        if not removable[edge]:
            continue
        u, v = edge_source[edge], edge_target[edge]
        count, top, left = 1, 1, looked
        touched[0] = u
        stack[0] = u
        state[u] = 3 if asked[edge] < 0 else 2
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
                elif reached == 2 and covers[e] >= asked[edge] and (triangular or group[x] == group[u]):
                    new = 3 if group[y] == group[v] else 2
                if new < 3 and group[y] == group[u]:
                    new = 2
                elif new == 2 and not triangular:
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
