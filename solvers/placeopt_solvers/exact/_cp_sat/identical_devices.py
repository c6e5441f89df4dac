"""Pool identical devices with free transfers between them into one device that runs several tasks at once.

Let the k devices of a class have more memory than the tasks could need, and let every transfer between two of them take
no time. Then a schedule is feasible exactly if it is with the class as one pool that runs at most k tasks at a time:
precedence, release times, deadlines and transfers to other devices depend on the class only. One direction is clear.
For the other, take the tasks of the pool by their starts and give each to a device whose last task has ended. One
exists: otherwise k tasks that began no later still run at its start, which makes k + 1. (This colours an interval
graph, which needs as many colours as intervals overlap: M. C. Golumbic, Algorithmic Graph Theory and Perfect Graphs,
1980, chapter 8.)

A class is not pooled if it may run a task of no duration, which can start strictly inside k others; nor if it may run a
task that shares a device with another or is separated from one, because the pool hides the device. Nor is it pooled
under ports, with memory tiers, or if the objective counts transfers or loads by device: `max_load`, `memory_balance`,
`communication` and `energy` do. `makespan` and `relocation` do not; `total_cost` does only if a shared output reaches
consumers in the class, with one transfer for each of their devices.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.problem import UNLIMITED, Problem, devices_by_class
from placeopt.model.schedule import Schedule

from .limits import Limits

BLIND = ("makespan", "total_cost", "relocation", "tardiness", "price")
"""Metrics that depend only on the class on which a task runs, except with shared outputs."""


@dataclass(frozen=True, slots=True)
class Pools:
    """A problem with pooled classes, and how to map schedules to it and back.

    In `problem`, the first device of each pooled class represents all of them, without capacity.
    """

    original: Problem
    problem: Problem
    slots: list[int]  # tasks that each device of `problem` runs at a time
    members: list[list[int]]  # the original devices that each represents

    def limits(self, limits: Limits) -> Limits:
        """Return the limits of the original as those of the pooled problem."""
        first = [devices[0] for devices in self.members]
        return replace(limits, allowed=limits.allowed[:, first], head=limits.head[:, first], tail=limits.tail[:, first])

    def pooled(self, schedule: Schedule) -> Schedule:
        """Return a schedule of the original as one of the pooled problem."""
        place = np.empty(self.original.n_devices, dtype=np.int64)
        for d, devices in enumerate(self.members):
            place[devices] = d
        return Schedule(place[schedule.device], schedule.start, schedule.transfers)

    def spread(self, schedule: Schedule) -> Schedule:
        """Return a schedule of the pooled problem as one of the original."""
        device = np.array([devices[0] for devices in self.members], dtype=np.int64)[schedule.device]
        for d, devices in enumerate(self.members):
            if len(devices) > 1:
                tasks = np.flatnonzero(schedule.device == d)
                device[tasks] = self._coloured(tasks, schedule.start[tasks], d)
        return replace(schedule, device=device)

    def _coloured(self, tasks: Int, start: Int, d: int) -> list[int]:
        """Return a device of the pool for each task."""
        free, busy = list(self.members[d]), list[tuple[int, int]]()
        chosen = [0] * len(tasks)
        for at in np.argsort(start, kind="stable").tolist():
            begin = int(start[at])
            while busy and busy[0][0] <= begin:
                heapq.heappush(free, heapq.heappop(busy)[1])
            chosen[at] = heapq.heappop(free)
            heapq.heappush(busy, (begin + int(self.problem.duration[tasks[at], d]), chosen[at]))
        return chosen


def pools(problem: Problem, wanted: bool) -> Pools:
    """Return the problem with every class pooled that allows it; none unless `wanted`."""
    members: list[list[int]] = []
    for devices in devices_by_class(problem):
        members += [devices] if wanted and _can_be_pooled(problem, devices) else [[d] for d in devices]
    members.sort()
    slots = [len(devices) for devices in members]
    if len(members) == problem.n_devices:
        return Pools(problem, problem, slots, members)
    first = [devices[0] for devices in members]
    columns = {name: getattr(problem, name)[:, first] for name in ("duration", "feasible", "relocation", "price")}
    places = {name: getattr(problem, name)[first] for name in ("power_num", "power_den", "device_class")}
    links = ("latency", "byte_ticks_num", "byte_ticks_den", "byte_energy_num", "byte_energy_den")
    arrays: dict[str, Any] = {
        **columns,
        **places,
        **{name: getattr(problem, name)[np.ix_(first, first)] for name in links},
        "capacity": np.where(np.array(slots) > 1, UNLIMITED, problem.capacity[first]),
    }
    names = tuple(problem.device_names[d] for d in first)
    types = tuple(problem.device_types[d] for d in first)
    return Pools(problem, replace(problem, device_names=names, device_types=types, **arrays), slots, members)


def _can_be_pooled(problem: Problem, devices: list[int]) -> bool:
    """Return whether a class meets the conditions stated above."""
    if len(devices) < 2 or problem.contends or not set(problem.objective.metrics) <= set(BLIND):
        return False
    if problem.rules:
        return False
    first, second = devices[:2]
    here = problem.feasible[:, first]
    sizes = np.bincount(problem.group, minlength=problem.n_groups)
    return bool(
        (problem.capacity[first] == UNLIMITED or sum(problem.memory[here].tolist()) <= problem.capacity[first])
        and not problem.transfer(problem.payload, first, second).any()
        and (problem.duration[here, first] > 0).all()
        and (sizes[problem.group[here]] == 1).all()
        and not here[problem.separation].any()
        and not ("total_cost" in problem.objective.metrics and here[problem.edge_target[problem.shared]].any())
    )
