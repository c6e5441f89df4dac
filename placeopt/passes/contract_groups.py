"""Contract each colocation group to one task, if the objective depends only on the placement.

The pass applies if the objective has no makespan, no task has a deadline, and memory is counted by `sum`. **Any
placement with feasible devices, groups, separation and capacities then has a feasible schedule**: run all tasks one
after another in topological order, each after its release time and after its data has arrived. No metric depends on
times. Hence:

- Release times and contention are irrelevant. Edges matter only by their cost. Free edges (within a group, or without
  payload where no latency counts) are irrelevant too.
- Durations, memory and relocation of a group add up on its device. `energy` is rounded up per task: if the rounded sum
  differs from the sum of the rounded values, the group stays unchanged.
- An edge may start and end at any task of the groups. Consumers in one group that share an output need one transfer, so
  one edge is enough. Unshared edges are one transfer each. They are merged only if ticks and energy are proportional to
  bytes.
- A task has one shared output. A contracted group therefore has one main task, and keeps an empty task for each further
  producer whose output is shared with other groups.
- Contracted groups may form a cycle, but edges must not. In a group on a cycle of groups, all in-edges end at the main
  task and all out-edges start at other tasks, which have no in-edges. No path then leads through the group. If the
  group has too few tasks for this, it stays unchanged.

**Proof.** By the statement above, both problems have the same feasible placements of groups. Every metric has the same
value: loads, durations, memory, energy and relocation add up by group, and the same bytes move between the same
devices. The reduced problem has no cycle. By construction, no path leads through a contracted group that lies on a
cycle of groups. So a cycle visits only unchanged tasks and contracted groups off all cycles of groups. If it visits
such a group, the group lies on a cycle of groups: a contradiction. Otherwise it is a cycle of the original. A schedule
is restored by re-timing the placement in topological order. ∎

O((n + e) log(n + e) + n m).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from placeopt import engine
from placeopt.errors import UsageError, counted
from placeopt.model.arrays import Bool, Int, by_index
from placeopt.model.objective import task_energy
from placeopt.model.problem import UNLIMITED, Problem, ratio_ceil
from placeopt.model.schedule import Schedule
from placeopt.passes.protocol import Reduction
from placeopt.passes.rebuilding import Edges, contradictory, edges_of, leading, rebuilt
from placeopt.simulation import retime


class ContractGroups:
    """Contracts colocation groups if only the placement matters."""

    name: ClassVar[str] = "contract-groups"
    exact: ClassVar[bool] = True
    summary: ClassVar[str] = "contracts each group to one task and drops timing, if only the placement matters"
    citation: ClassVar[str] = ""

    def apply(self, problem: Problem) -> Reduction | None:
        """The problem of the groups."""
        timed = "makespan" in problem.objective.metrics or (problem.deadline != UNLIMITED).any()
        if problem.n_tasks == 0 or timed or problem.memory_model == "peak" or contradictory(problem):
            return None
        edges = _costly(problem)
        roles = _roles(problem, edges)
        joined = _joined(problem, edges, roles)
        kept = np.flatnonzero(roles.kept)
        untimed = not problem.contends and not problem.release.any()
        if len(kept) == problem.n_tasks and len(joined.source) == problem.n_edges and untimed:
            return None
        reduced, _ = rebuilt(
            problem,
            tasks=kept,
            edges=joined,
            feasible=problem.group_feasible()[problem.group],
            **{
                name: _gathered(roles.main, getattr(problem, name))
                for name in ("duration", "resident", "output", "scratch", "relocation")
            },
            release=np.zeros_like(problem.release),
            separation=roles.main[problem.separation],
            contention="none",
        )
        placed = roles.main[kept] == kept

        def restore(schedule: Schedule) -> Schedule:
            where = np.zeros(problem.n_groups, dtype=np.int64)
            where[problem.group[kept]] = schedule.device
            return _in_order(problem, where[problem.group])

        def project(schedule: Schedule) -> Schedule | None:
            try:
                return _in_order(reduced, schedule.device[kept])
            except UsageError:  # some group is split
                return None

        dropped = int((~roles.kept).sum())
        explanation = f"{counted(dropped, 'task')} contracted into {int(placed.sum()):,}, timing dropped"
        return Reduction(reduced, restore, project, explanation, leading(problem, kept))


def _in_order(problem: Problem, device: Int) -> Schedule:
    """The earliest schedule of a placement with the tasks in topological order."""
    return retime(problem, Schedule(device, np.argsort(problem.order)))


def _costly(problem: Problem) -> Edges:
    """The edges between groups whose transfer may cost something."""
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
    """Roles of tasks, (n,) each."""

    main: Int  # the main task of the task's group
    own: Int  # where the task's unshared out-edges start
    kept: Bool


def _roles(problem: Problem, edges: Edges) -> _Roles:
    n, group, tasks = problem.n_tasks, problem.group, np.arange(problem.n_tasks)
    sharing = np.zeros(n, dtype=np.bool_)
    sharing[edges.source[edges.shared]] = True
    sending = np.zeros(problem.n_groups, dtype=np.bool_)  # groups with unshared out-edges
    sending[group[edges.source[~edges.shared]]] = True

    # By group: the first task, the first with a shared output, the first two without.
    first = _first(problem, np.ones(n, dtype=np.bool_))
    plain = _first(problem, ~sharing)
    second = _first(problem, ~sharing & (tasks != plain[group]))
    sharer = _first(problem, sharing)
    cyclic = _on_cycles(problem, edges)
    lone = np.bincount(group, minlength=problem.n_groups) == 1
    own = np.where(sharer < n, sharer, second)  # on a cycle: not the main task
    stays = lone | ~_adds_up(problem) | (cyclic & ((plain == n) | (sending & (own == n))))
    off = np.where(sharer < n, sharer, first)  # off all cycles: the main task keeps the first shared output
    main = np.where(cyclic, plain, off)
    own = np.where(cyclic, own, main)

    kept = sharing.copy()
    kept[main[~stays]] = True
    kept[own[~stays & sending]] = True
    kept |= stays[group]
    return _Roles(np.where(stays[group], tasks, main[group]), np.where(stays[group], tasks, own[group]), kept)


def _first(problem: Problem, mask: Bool) -> Int:
    """(g,) the first task of each group that the mask selects, n if there is none."""
    some = np.flatnonzero(mask)
    return by_index(np.minimum, problem.group[some], some, problem.n_groups, problem.n_tasks)


def _adds_up(problem: Problem) -> Bool:
    """(g,), whether the energy of the whole group is the sum over its tasks, despite rounding."""
    if "energy" not in problem.objective.metrics:
        return np.ones(problem.n_groups, dtype=np.bool_)
    amounts = (task_energy(problem), problem.duration)
    apart, whole = (by_index(np.add, problem.group, each, problem.n_groups) for each in amounts)
    together = ratio_ceil(whole, problem.power_num, problem.power_den)
    return np.asarray(((apart == together) | ~problem.group_feasible()).all(axis=1))


def _on_cycles(problem: Problem, edges: Edges) -> Bool:
    """(g,), whether the group lies on a cycle of groups or on a path between two cycles."""
    count = problem.n_groups
    stuck = np.ones(count, dtype=np.bool_)
    for source, target in ((edges.source, edges.target), (edges.target, edges.source)):
        ends = problem.group[source], problem.group[target]
        ordered = np.lexsort(ends[::-1])
        start = np.searchsorted(ends[0][ordered], np.arange(count + 1)).astype(np.int64)
        stuck[engine.topological_order(start, ends[1][ordered])] = False
    return stuck


def _joined(problem: Problem, edges: Edges, roles: _Roles) -> Edges:
    """The edges between the tasks that stay."""
    source = np.where(edges.shared, edges.source, roles.own[edges.source])
    target = roles.main[edges.target]
    edges = edges.between(source, target)
    if len(source) == 0:
        return edges
    own = np.where(edges.shared | _proportional(problem), 0, 1 + np.arange(len(source)))
    key = np.stack((edges.source, edges.target, edges.shared.astype(np.int64), own))
    _, first, inverse = np.unique(key, axis=1, return_index=True, return_inverse=True)
    payload = by_index(np.add, inverse.reshape(-1), edges.payload, len(first))
    payload = np.where(edges.shared[first], edges.payload[first], payload)
    return Edges(edges.source[first], edges.target[first], payload, edges.shared[first], edges.origin[first])


def _proportional(problem: Problem) -> bool:
    """Whether the counted cost of a transfer is proportional to its bytes, without rounding."""
    metrics = set(problem.objective.metrics)
    if "total_cost" in metrics and (problem.latency.any() or (problem.byte_ticks_den != 1).any()):
        return False
    return "energy" not in metrics or bool((problem.byte_energy_den == 1).all())


def _gathered(main: Int, amounts: Int) -> Int:
    """Amounts (n, ...) added up at the main task of each group."""
    return by_index(np.add, main, amounts, len(amounts))
