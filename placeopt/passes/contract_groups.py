"""Makes one task of each colocation group, where the value of a schedule hangs on the placement alone.

Applies when the objective has no makespan, no task has a deadline and memory is counted by `sum`. **Then any
placement that keeps feasible devices, groups, separation and capacities can be scheduled**: all tasks one after
another in topological order, each when it has been released and its data has arrived. And no metric looks at times.
So the problem is one of placements:

- Release times and contention do not matter; edges only cost, and those that cost nothing (within a group, or
  without payload where no latency counts) and their order do not matter either.
- A group's durations, memory and relocation add up on the device of the group. Of `energy`, which rounds up for each
  task, they do so only if the rounded sum is the sum of the rounded; else the group stays as it is.
- An edge may leave from and arrive at any task of a group. Consumers of a group that share an output of a producer
  have one transfer: one edge is enough. Edges of their own are a transfer each, which stay apart unless ticks and
  energy are proportional to bytes.
- A task has one shared output. So a group keeps, beside the task that is the whole of it, one empty task for every
  further producer whose output tasks of other groups share.
- Contracted groups may form a cycle, which edges must not. Where a group lies on one, all its in-edges arrive at
  the task that is the whole of it and all its out-edges leave from others, which have no in-edges: so no path leads
  through the group. If its tasks do not suffice for that, it stays as it is.

**Proof.** By the above, feasible placements of the groups are the same in both problems, and every metric has the
same value: loads, durations, memory, energy and relocation add up by groups, and the transfers are the same, of the
same bytes between the same devices. The reduced problem has no cycle: one would lead through contracted groups off all
cycles of groups, through tasks left as they are, or through both; the first contradicts the choice of these groups, the
second the original, and with the third some contracted group would lie on a cycle of groups. A schedule is restored
by re-timing the placement in topological order. ∎

O((n + e) log(n + e) + n m).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from placeopt.errors import UsageError
from placeopt.model.arrays import Bool, Int
from placeopt.model.graph import topological_order
from placeopt.model.objective import task_energy
from placeopt.model.problem import UNLIMITED, Problem, ratio_ceil
from placeopt.model.schedule import Schedule
from placeopt.passes.protocol import Reduction
from placeopt.passes.rebuilding import Edges, at_odds, edges_of, rebuilt
from placeopt.simulation import retime


class ContractGroups:
    """Contracts colocation groups where only the placement counts."""

    name: ClassVar[str] = "contract-groups"
    exact: ClassVar[bool] = True
    summary: ClassVar[str] = "makes one task of each group and drops timing, where only the placement counts"
    citation: ClassVar[str] = ""

    def apply(self, problem: Problem) -> Reduction | None:
        """The problem of the groups."""
        timed = "makespan" in problem.objective.metrics or (problem.deadline != UNLIMITED).any()
        if problem.n_tasks == 0 or timed or problem.memory_model == "peak" or at_odds(problem):
            return None
        edges = _costly(problem)
        roles = _roles(problem, edges)
        joined = _joined(problem, edges, roles)
        kept = np.flatnonzero(roles.kept)
        untimed = problem.contention == "none" and not problem.release.any()
        if len(kept) == problem.n_tasks and len(joined.source) == problem.n_edges and untimed:
            return None
        allowed = problem.group_feasible()
        reduced, _ = rebuilt(
            problem,
            tasks=kept,
            edges=joined,
            feasible=allowed[problem.group],
            **{
                name: _gathered(roles.whole, getattr(problem, name))
                for name in ("duration", "resident", "output", "scratch", "relocation")
            },
            release=np.zeros_like(problem.release),
            separation=roles.whole[problem.separation],
            contention="none",
        )
        placed = roles.whole[kept] == kept

        def restore(schedule: Schedule) -> Schedule:
            where = np.zeros(problem.n_groups, dtype=np.int64)
            where[problem.group[kept]] = schedule.device
            return _in_order(problem, where[problem.group])

        def project(schedule: Schedule) -> Schedule | None:
            try:
                return _in_order(reduced, schedule.device[kept])
            except UsageError:  # the groups are not together
                return None

        told = f"{int((~roles.kept).sum())} tasks contracted into {int(placed.sum())}, timing dropped"
        return Reduction(reduced, restore, project, told)


def _in_order(problem: Problem, device: Int) -> Schedule:
    """The earliest schedule of a placement with the tasks in topological order."""
    place = np.empty(problem.n_tasks, dtype=np.int64)
    place[problem.order] = np.arange(problem.n_tasks)
    return retime(problem, Schedule(device, place))


def _costly(problem: Problem) -> Edges:
    """The edges between groups whose transfer can cost anything."""
    metrics = set(problem.objective.metrics)
    edges = edges_of(problem)
    apart = ~np.eye(problem.n_devices, dtype=np.bool_)
    costs = np.zeros(problem.n_edges, dtype=np.bool_)
    if "communication" in metrics:
        costs |= edges.payload > 0
    if "energy" in metrics and problem.byte_energy_num[apart].any():
        costs |= edges.payload > 0
    if "total_cost" in metrics:
        costs |= bool(problem.latency[apart].any()) | ((edges.payload > 0) & bool(problem.byte_ticks_num[apart].any()))
    return edges.kept(costs & (problem.group[edges.source] != problem.group[edges.target]))


@dataclass(frozen=True, slots=True, eq=False)
class _Roles:
    """(n,) each: the task that is the whole of a task's group, those that its own and its shared out-edges leave
    from."""

    whole: Int
    own: Int
    shared: Int
    kept: Bool


def _roles(problem: Problem, edges: Edges) -> _Roles:
    n, group, tasks = problem.n_tasks, problem.group, np.arange(problem.n_tasks)
    sharing = np.zeros(n, dtype=np.bool_)
    sharing[edges.source[edges.shared]] = True
    sending = np.zeros(problem.n_groups, dtype=np.bool_)  # groups with out-edges of their own
    sending[group[edges.source[~edges.shared]]] = True

    # By group: the first task, the first that shares its output, the first two that do not.
    first = _first(problem, np.ones(n, dtype=np.bool_))
    plain = _first(problem, ~sharing)
    second = _first(problem, ~sharing & (tasks != plain[group]))
    sharer = _first(problem, sharing)
    cyclic = _on_cycles(problem, edges)
    lone = np.bincount(group, minlength=problem.n_groups) == 1
    own = np.where(sharer < n, sharer, second)  # leave a group on a cycle from a task that is not the whole of it
    stays = lone | ~_adds_up(problem) | (cyclic & ((plain == n) | (sending & (own == n))))
    off = np.where(sharer < n, sharer, first)  # the whole of a group off all cycles shares the first of its outputs
    whole = np.where(cyclic, plain, off)
    own = np.where(cyclic, own, whole)

    kept = sharing.copy()
    kept[whole[~stays]] = True
    kept[own[~stays & sending]] = True
    kept |= stays[group]
    return _Roles(np.where(stays[group], tasks, whole[group]), np.where(stays[group], tasks, own[group]), tasks, kept)


def _first(problem: Problem, mask: Bool) -> Int:
    """(g,) the first task of each group that the mask selects, n where there is none."""
    first = np.full(problem.n_groups, problem.n_tasks, dtype=np.int64)
    some = np.flatnonzero(mask)
    np.minimum.at(first, problem.group[some], some)
    return first


def _adds_up(problem: Problem) -> Bool:
    """(g,), whether the energy of the group's work in one piece is that of its tasks."""
    if "energy" not in problem.objective.metrics:
        return np.ones(problem.n_groups, dtype=np.bool_)
    shape = (problem.n_groups, problem.n_devices)
    apart, whole = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    np.add.at(apart, problem.group, task_energy(problem))
    np.add.at(whole, problem.group, problem.duration)
    together = ratio_ceil(whole, problem.power_num, problem.power_den)
    return np.asarray(((apart == together) | ~problem.group_feasible()).all(axis=1))


def _on_cycles(problem: Problem, edges: Edges) -> Bool:
    """(g,), whether the group lies on a cycle of groups, or on a way from one cycle to another."""
    count = problem.n_groups
    stuck = np.ones(count, dtype=np.bool_)
    for source, target in ((edges.source, edges.target), (edges.target, edges.source)):
        ends = problem.group[source], problem.group[target]
        ordered = np.lexsort(ends[::-1])
        start = np.searchsorted(ends[0][ordered], np.arange(count + 1))
        order = np.empty(count, dtype=np.int64)
        degree = np.bincount(ends[1], minlength=count)
        placed = topological_order.select(count + len(source))(start, ends[1][ordered], degree, order)
        stuck[order[:placed]] = False
    return stuck


def _joined(problem: Problem, edges: Edges, roles: _Roles) -> Edges:
    """The edges between the tasks that are kept."""
    source = np.where(edges.shared, roles.shared[edges.source], roles.own[edges.source])
    target = roles.whole[edges.target]
    edges = edges.between(source, target)
    if len(source) == 0:
        return edges
    own = np.where(edges.shared | _proportional(problem), 0, 1 + np.arange(len(source)))
    key = np.stack((edges.source, edges.target, edges.shared.astype(np.int64), own))
    _, first, inverse = np.unique(key, axis=1, return_index=True, return_inverse=True)
    payload = np.zeros(len(first), dtype=np.int64)
    np.add.at(payload, inverse.reshape(-1), edges.payload)
    payload = np.where(edges.shared[first], edges.payload[first], payload)
    return Edges(edges.source[first], edges.target[first], payload, edges.shared[first], edges.origin[first])


def _proportional(problem: Problem) -> bool:
    """Whether what counts of transfers is proportional to their bytes, without rounding."""
    metrics = set(problem.objective.metrics)
    if "total_cost" in metrics and (problem.latency.any() or (problem.byte_ticks_den != 1).any()):
        return False
    return "energy" not in metrics or bool((problem.byte_energy_den == 1).all())


def _gathered(whole: Int, amounts: Int) -> Int:
    """Amounts (n, ...) added up at the task that is the whole of each group."""
    total = np.zeros_like(amounts)
    np.add.at(total, whole, amounts)
    return total
