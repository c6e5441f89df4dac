"""What a schedule uses: of renewable resources at one time, of budgets in all, and the lanes of parallel devices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np

from placeopt.errors import counted, visible
from placeopt.model.arrays import Int, by_index
from placeopt.model.modes import memory_budget
from placeopt.model.ports import channels
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, check_schedule, durations, transfer_times
from placeopt.model.units import size_text


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """Use of one resource by a schedule, in the unit of the problem file.

    Attributes
    ----------
    renewable
        Whether `used` is the most at one time; else it is the sum over all tasks, of a budget.
    memory
        Whether it is memory that devices share, in bytes.
    """

    name: str
    renewable: bool
    memory: bool
    capacity: int | float
    used: int | float

    @property
    def share(self) -> float:
        """The used share of the capacity."""
        return self.used / self.capacity if self.capacity else 0.0

    @property
    def text(self) -> str:
        """The use in words, as "0.08 of 0.1"."""
        used, capacity = (amount_text(amount, memory=self.memory) for amount in (self.used, self.capacity))
        return f"{'at most ' * self.renewable}{used} of {capacity}{' at one time' * self.renewable}"

    def to_dict(self) -> dict[str, Any]:
        """Return the use as plain data."""
        return asdict(self)


def resource_uses(problem: Problem, schedule: Schedule) -> tuple[ResourceUse, ...]:
    """Compute the use of each resource by a schedule; O(r n log n)."""
    check_schedule("resource_uses", problem, schedule)
    resources, found = problem.resources, []
    for r, name in enumerate(() if resources is None else resources.names):
        assert resources is not None
        renewable = bool(resources.renewable[r])
        used = (
            int(use_over_time(problem, schedule, r)[1].max())
            if renewable
            else int(resources.placed(r, schedule.device).sum())
        )
        amounts = (resources.stated(r, amount) for amount in (int(resources.capacity[r]), used))
        found.append(ResourceUse(name, renewable, resources.is_memory(r), *amounts))
    return tuple(found)


def device_resources(problem: Problem) -> set[int]:
    """The resources that are devices with modes, or their memory: documents state no such resources."""
    members, resources = problem.members, problem.resources
    if members is None or resources is None:
        return set()
    occupied = sorted({each for d, team in enumerate(members) if team != (d,) for each in team})
    found = [resources.occupying(problem.device_names[d]) for d in occupied if problem.pipeline is None]
    return {r for r in (*found, *(memory_budget(problem, d) for d in occupied)) if r is not None}


def stated_uses(problem: Problem, schedule: Schedule) -> list[ResourceUse]:
    """`resource_uses` without `device_resources`, whose use that of devices contains."""
    hidden = device_resources(problem)
    return [use for r, use in enumerate(resource_uses(problem, schedule)) if r not in hidden]


def use_over_time(problem: Problem, schedule: Schedule, r: int) -> tuple[Int, Int]:
    """Ticks of change (k,) of the use of a renewable resource, and the units in use from each of them on (k,).

    The first tick is 0, or the first start before it.
    """
    assert problem.resources is not None
    amount = problem.resources.placed(r, schedule.device)
    end = schedule.start + durations(problem, schedule.device)
    return _levels(amount, schedule.start, end)


def channel_use(problem: Problem, schedule: Schedule) -> list[tuple[str, Int, Int]]:
    """Each channel of the shared links: its name, ticks of change (k,), and transfers from each of them on (k,)."""
    if schedule.transfers is None:
        return []
    found = channels(problem)
    edges, sent, arrived = transfer_times(problem, schedule)
    sender, receiver = schedule.device[problem.edge_source[edges]], schedule.device[problem.edge_target[edges]]
    over = [np.any([a[sender] & b[receiver] for a, b in ways], axis=0) for _, ways in found]
    each = [_levels(used.astype(np.int64), sent, arrived) for used in over]
    return [(name, *levels) for name, levels in zip((name for name, _ in found), each, strict=True)]


def _levels(amount: Int, start: Int, end: Int) -> tuple[Int, Int]:
    own = np.flatnonzero((amount > 0) & (start < end))
    times = np.concatenate(([0], start[own], end[own]))
    ticks, position = np.unique(times, return_inverse=True)
    steps = by_index(np.add, position, np.concatenate(([0], amount[own], -amount[own])), len(ticks))
    return ticks, np.cumsum(steps)


def lanes(intervals: Iterable[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Track and lane of each interval (track, start, end), given in the order of starts; O(n log n).

    An interval uses the first free lane of its track: lane 0 where nothing overlaps.
    """
    busy: dict[int, list[tuple[int, int]]] = {}  # by track, ends and lanes
    free: dict[int, list[int]] = {}
    found = []
    for track, start, end in intervals:
        taken, idle = busy.setdefault(track, []), free.setdefault(track, [])
        while taken and taken[0][0] <= start:
            heappush(idle, heappop(taken)[1])
        lane = heappop(idle) if idle else len(taken)
        heappush(taken, (end, lane))
        found.append((track, lane))
    return found


def task_lanes(problem: Problem, schedule: Schedule) -> Int:
    """(n,) the lane of each task among those that a parallel device runs at once; 0 on other devices."""
    found = np.zeros(problem.n_tasks, dtype=np.int64)
    end = schedule.start + durations(problem, schedule.device)
    tasks = np.flatnonzero(problem.parallel[schedule.device])
    tasks = tasks[np.lexsort((tasks, end[tasks], schedule.start[tasks]))]
    columns = schedule.device[tasks].tolist(), schedule.start[tasks].tolist(), end[tasks].tolist()
    found[tasks] = [lane for _, lane in lanes(zip(*columns, strict=True))]
    return found


def occupied_devices(problem: Problem, schedule: Schedule) -> tuple[Int, Int]:
    """Pairs of a task and a device that it occupies, (b,) each, in the order of tasks.

    A task that runs in a mode or in a team occupies its members; the first one has its inputs and its output. Any other
    task occupies its own device.
    """
    members = problem.members
    if members is None:
        return np.arange(problem.n_tasks), schedule.device
    pairs = [(i, each) for i, d in enumerate(schedule.device.tolist()) for each in members[d]]
    task, device = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return task, device


def amount_text(amount: float, *, memory: bool) -> str:
    """An amount of a resource for people; bytes in a suitable unit."""
    return size_text(int(amount)) if memory else f"{amount:,.10g}"


SHOWN = 12
"""Maximum number of resources that texts name one by one."""


def use_facts(problem: Problem, schedule: Schedule) -> list[tuple[str, str, str]]:
    """Names of resources, the used share of each, and the use in words; those used most if there are many."""
    uses = stated_uses(problem, schedule)
    chosen = sorted(sorted(range(len(uses)), key=lambda r: -uses[r].share)[:SHOWN])
    facts = [(visible(uses[r].name, 40), f"{uses[r].share:.1%}", uses[r].text) for r in chosen]
    if len(uses) > SHOWN:
        rest = max(use.share for r, use in enumerate(uses) if r not in chosen)
        facts.append((counted(len(uses) - SHOWN, "other resource"), f"{rest:.1%}", "at most; --json lists all"))
    return facts
