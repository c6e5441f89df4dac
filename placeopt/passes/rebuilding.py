"""Rebuild a problem from some of its tasks, edges and devices, and carry its transfers along."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from placeopt.model.arrays import Bool, Int
from placeopt.model.building import build_problem
from placeopt.model.memory import limited
from placeopt.model.problem import RULES, UNLIMITED, Problem
from placeopt.model.schedule import Schedule, Transfers, edge_transfers

SETTINGS = (
    "name", "description", "resolution", "runs_before_next_change", "objective", "consolidate", "contention",
    "memory_model", "alignment", "limits",
)  # fmt: skip
TASK_FIELDS = ("resident", "output", "scratch", "release", "deadline", "due", "due_weight", "group")
DEVICE_FIELDS = ("device_names", "device_types", "capacity", "power_num", "power_den")
LINK_FIELDS = ("latency", "byte_ticks_num", "byte_ticks_den", "byte_energy_num", "byte_energy_den")
"""Fields of a problem: of the whole, one entry per task, per device, and per pair of devices."""

LARGEST_NETWORK = 256
"""Maximum number of devices for which the triangle inequality is checked."""


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Edges of a problem under construction; `origin` (e,) is the index of each edge in the original problem."""

    source: Int
    target: Int
    payload: Int
    shared: Bool
    origin: Int

    def kept(self, which: Any) -> Edges:
        """The edges that a mask or an index array selects."""
        return Edges(
            self.source[which], self.target[which], self.payload[which], self.shared[which], self.origin[which]
        )

    def between(self, source: Int, target: Int) -> Edges:
        """The same edges with other ends."""
        return replace(self, source=source, target=target)


def edges_of(problem: Problem) -> Edges:
    """The edges of a problem."""
    source, target = problem.edge_source, problem.edge_target
    return Edges(source, target, problem.payload, problem.shared, np.arange(problem.n_edges))


def rebuilt(
    problem: Problem, *, edges: Edges | None = None, tasks: Int | None = None, devices: Int | None = None, **arrays: Any
) -> tuple[Problem, Int]:
    """The problem with arrays replaced and tasks and devices removed; and the original index (e,) of each edge.

    `tasks` and `devices` are the indices to keep, ascending. All arrays and the ends of `edges` use the indices of
    `problem`. The tasks of separated pairs must be kept. A backward task whose forward task is removed becomes an
    ordinary task.
    """
    tasks = np.arange(problem.n_tasks) if tasks is None else tasks
    devices = np.arange(problem.n_devices) if devices is None else devices
    edges = edges_of(problem) if edges is None else edges
    place = np.full(problem.n_tasks, -1, dtype=np.int64)
    place[tasks] = np.arange(len(tasks))
    edges = edges.between(place[edges.source], place[edges.target])
    edges = edges.kept(np.lexsort((edges.target, edges.source)))
    forward = place[problem.forward[tasks]]
    whole = len(tasks) == problem.n_tasks and len(devices) == problem.n_devices  # then both problems share the tables
    cells, between = () if whole else np.ix_(tasks, devices), np.ix_(devices, devices)

    stated = problem.stated | {name: arrays.pop(name) for name in RULES if name in arrays}
    rules: dict[str, Any] = {name: rule and rule.part(tasks, devices) for name, rule in stated.items()}

    def of(name: str, *index: Any) -> Any:
        values = arrays.pop(name, getattr(problem, name))
        return values[index] if index else values

    result = build_problem(
        **{name: arrays.pop(name, getattr(problem, name)) for name in SETTINGS},
        task_names=[problem.task_names[i] for i in tasks.tolist()],
        device_names=[problem.device_names[d] for d in devices.tolist()],
        device_types=[problem.device_types[d] for d in devices.tolist()],
        **{name: of(name, *cells) for name in ("duration", "feasible", "relocation", "price")},
        **{name: of(name, tasks) for name in TASK_FIELDS},
        **{name: of(name, devices) for name in ("capacity", "power_num", "power_den")},
        **{name: of(name, *between) for name in LINK_FIELDS},
        edges=np.column_stack((edges.source, edges.target)),
        payload=edges.payload,
        shared=edges.shared,
        separation=place[arrays.pop("separation", problem.separation)],
        forward=np.where(forward < 0, np.arange(len(tasks)), forward),
        **rules,
    )
    assert not arrays, f"unknown arrays {list(arrays)}"
    return result, edges.origin


def leading(problem: Problem, kept: Int) -> Int:
    """(n,) the place in `kept` of the first kept task of each task's group, -1 for none: the leaders of a reduction."""
    first = np.full(problem.n_groups, -1, dtype=np.int64)
    first[problem.group[kept[::-1]]] = np.arange(len(kept))[::-1]  # the first task of a group is written last
    return np.asarray(first[problem.group])


def followed(first: Int | None, second: Int | None) -> Int | None:
    """(n,) the leaders of two reductions, one after the other; -1 for none. None stands for unchanged tasks."""
    if first is None or second is None:
        return first if second is None else second
    found = np.full(len(first), -1, dtype=np.int64)
    led = first >= 0
    found[led] = second[first[led]]
    return found


def restored_transfers(problem: Problem, reduced: Schedule, device: Int, origin: Int) -> Transfers | None:
    """The transfers of the original with its tasks on `device`; edge k of the reduced problem was edge origin[k]."""
    if reduced.transfers is None or not problem.contends:
        return None
    table = reduced.transfers
    sound = (table.edge >= 0) & (table.edge < len(origin))
    transfer_of = edge_transfers(problem, device)
    edge, first = np.unique(transfer_of[origin[table.edge[sound]]], return_index=True)
    return Transfers(edge[edge >= 0], table.start[sound][first][edge >= 0])


def projected_transfers(
    problem: Problem, schedule: Schedule, reduced: Problem, device: Int, origin: Int
) -> Transfers | None:
    """The transfers of the reduced problem with its tasks on `device`; None if the start of one is unknown."""
    table = schedule.transfers
    if table is None or not problem.contends:
        return None
    starts = np.full(problem.n_edges, -1, dtype=np.int64)
    sound = (table.edge >= 0) & (table.edge < problem.n_edges)
    starts[table.edge[sound]] = table.start[sound]
    needed = np.flatnonzero(edge_transfers(reduced, device) == np.arange(reduced.n_edges))
    transfer_of = edge_transfers(problem, schedule.device)[origin[needed]]
    known = (transfer_of >= 0) & (starts[transfer_of] >= 0)
    return Transfers(needed, starts[transfer_of]) if known.all() else None


def counts_transfers(problem: Problem) -> bool:
    """Whether the objective counts transfers, in ticks, bytes or energy."""
    return bool({"total_cost", "communication", "energy"} & set(problem.objective.metrics))


def relocation_matters(problem: Problem) -> Bool:
    """(n,), whether the objective depends on the task's device through its relocation."""
    if "relocation" not in problem.objective.metrics:
        return np.zeros(problem.n_tasks, dtype=np.bool_)
    return np.asarray(problem.relocation.any(axis=1))


def output_is_free(problem: Problem) -> Bool:
    """(n,), whether it does not matter how long the task's output is held.

    True under the `sum` memory model, without capacities, and for tasks without output.
    """
    if problem.memory_model == "sum" or not limited(problem):
        return np.ones(problem.n_tasks, dtype=np.bool_)
    return np.asarray(problem.output == 0)


def permanent_memory(problem: Problem) -> Int:
    """(n,) bytes that a zero-time task whose output is free always takes; 0 if no device has a capacity."""
    if not limited(problem):
        return np.zeros(problem.n_tasks, dtype=np.int64)
    return problem.memory if problem.memory_model == "sum" else problem.resident


def contradictory(problem: Problem) -> bool:
    """Whether a separated pair shares a group, or a group has no device: no schedule is feasible then."""
    ends = problem.group[problem.separation]
    return bool((ends[:, 0] == ends[:, 1]).any() or not problem.group_feasible().any(axis=1).all())


def least_durations(problem: Problem, allowed: Bool) -> Int:
    """(n,) the shortest duration of each task on the devices (g, m) that its group may use; 0 if there are none."""
    where = allowed[problem.group]
    least = np.where(where, problem.duration, UNLIMITED).min(axis=1, initial=UNLIMITED)
    return np.where(where.any(axis=1), least, 0)


def movable_zero_time(problem: Problem, allowed: Bool) -> Bool:
    """(n,), whether the task takes no time on any device (g, m) of its group, and its start affects no held output.

    Under `peak`, neither the task nor any of its producers may have an output: its lifetime could change. With memory
    tiers none is movable: on another device, it would wait until that one has swapped.
    """
    if problem.rules:
        return np.zeros(problem.n_tasks, dtype=np.bool_)
    free = output_is_free(problem)
    movable = free & ~(problem.duration.astype(np.bool_) & allowed[problem.group]).any(axis=1)
    movable[problem.edge_target[~free[problem.edge_source]]] = False
    return np.asarray(movable & (problem.deadline >= 0))


def keeps_triangle_inequality(problem: Problem) -> bool:
    """Whether no detour over a third device is shorter, in latency or in rate (ticks per byte).

    Checks at most three devices of each class: they represent all detours. O(k^3) for these k devices; False,
    unchecked, if k exceeds LARGEST_NETWORK.
    """
    label = problem.device_class
    some = [d for c in np.unique(label) for d in np.flatnonzero(label == c)[:3].tolist()]
    if not 0 < len(some) <= LARGEST_NETWORK:
        return False
    between = np.ix_(some, some)
    num, den = problem.byte_ticks_num[between].astype(object), problem.byte_ticks_den[between].astype(object)
    np.fill_diagonal(num, 0)
    unit = 1
    for each in np.unique(problem.byte_ticks_den[between]).tolist():
        unit = math.lcm(unit, each)
        if unit.bit_length() > 256:
            return False
    rate = num * (unit // den)  # integers, in 1 / unit of a tick per byte
    if int(rate.max()) < 2**62:
        rate = rate.astype(np.int64)
    ways = problem.latency[between], rate
    return all(bool((way <= way[:, [x]] + way[[x], :]).all()) for way in ways for x in range(len(some)))
