"""What a spec demands beyond durations and edges: each demand a constraint with its place, which can be left out.

Without any of them every problem has a schedule: everything on devices that have a duration for it, one after another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from placeopt.errors import Issue, listing, visible
from placeopt.io.compiler import Compilation
from placeopt.io.compiler.durations import DurationTable, feasibility
from placeopt.io.compiler.issues import Issues
from placeopt.io.compiler.network import DeviceIndex
from placeopt.io.compiler.scales import LARGEST, Scales
from placeopt.io.document import Document
from placeopt.io.spec import TaskSpec
from placeopt.model.arrays import Bool, Int
from placeopt.model.building import build_problem
from placeopt.model.problem import UNLIMITED, Objective, Problem
from placeopt.model.units import size_text, time_text

Kind = Literal[
    "memory", "placement", "pin", "devices", "requires", "colocate", "separate", "deadline", "release"
]  # fmt: skip

RESTRICTIONS: tuple[Kind, ...] = ("placement", "pin", "devices", "requires")
"""Kinds that keep a task off some devices."""


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """A demand of the spec, in one place.

    Attributes
    ----------
    place
        File, line, column and path, as an issue without a message.
    text
        What it demands, as a clause for people.
    task
        The task it is about; None for the memory of devices.
    label
        The colocation or separation label, the feature, or the key of the devices; empty for the others.
    allowed
        (m,) the devices that a restriction leaves to the task; None for the other kinds.
    amount
        Bytes of `memory`, ticks of `deadline` and `release`; None for the others.
    """

    kind: Kind
    place: Issue
    text: str
    task: int | None = None
    label: str = ""
    allowed: Bool | None = None
    amount: int | None = None


Change = int | Bool
"""Another value for a constraint: an amount, or the devices (m,) that it allows."""


class System:
    """A problem taken apart: its constraints, and the problem that remains with some of them.

    `ticks` (n, m) and `runnable` (n, m) are durations and where there are any, before anything restricts the devices.
    """

    def __init__(self, compilation: Compilation) -> None:
        self.problem = compilation.problem()
        self._compilation = compilation
        # Everything has been checked by now. What the search without restrictions has to say, about rates that are
        # missing where no task may run, say, is no mistake.
        self._scratch = Issues(Document({}))
        self._index = DeviceIndex(compilation.spec.devices, self._scratch)
        self.ticks, self.runnable = self._durations()
        self.constraints: tuple[Constraint, ...] = tuple(self._constraints())
        self.pools: dict[str, list[int]] = {}
        for d, device in enumerate(self._index.devices):
            self.pools.setdefault(device.pool, []).append(d)

    def relaxed(self, active: Collection[int], changed: Mapping[int, Change] | None = None) -> Problem:
        """The problem with the `active` constraints alone, some with another value; its objective is the makespan."""
        problem, changed = self.problem, changed or {}
        n, m = problem.n_tasks, problem.n_devices
        feasible = self.runnable.copy()
        capacity = np.full(m, UNLIMITED, dtype=np.int64)
        release = np.zeros(n, dtype=np.int64)
        deadline = np.full(n, UNLIMITED, dtype=np.int64)
        together: dict[str, list[int]] = {}
        apart: dict[str, list[int]] = {}
        for number in sorted(active):
            constraint = self.constraints[number]
            stated = constraint.amount if constraint.allowed is None else constraint.allowed
            value = changed.get(number, stated)
            if isinstance(value, np.ndarray):
                feasible[constraint.task] &= value
            elif value is None:
                labels = together if constraint.kind == "colocate" else apart
                assert constraint.task is not None
                labels.setdefault(constraint.label, []).append(constraint.task)
            elif constraint.kind == "memory":
                capacity[self.pools[constraint.label]] = value
            else:
                (deadline if constraint.kind == "deadline" else release)[constraint.task] = value
        return build_problem(
            name=problem.name,
            resolution=problem.resolution,
            task_names=problem.task_names,
            device_names=problem.device_names,
            device_types=problem.device_types,
            duration=np.where(feasible, self.ticks, 0),
            feasible=feasible,
            resident=problem.resident,
            output=problem.output,
            scratch=problem.scratch,
            release=release,
            deadline=deadline,
            capacity=capacity,
            edges=np.stack((problem.edge_source, problem.edge_target), axis=1),
            payload=problem.payload,
            shared=problem.shared,
            latency=problem.latency,
            byte_ticks_num=problem.byte_ticks_num,
            byte_ticks_den=problem.byte_ticks_den,
            power_num=problem.power_num,
            power_den=problem.power_den,
            byte_energy_num=problem.byte_energy_num,
            byte_energy_den=problem.byte_energy_den,
            group=_joined(n, together),
            separation=[(a, b) for rows in apart.values() for i, a in enumerate(rows) for b in rows[i + 1 :]],
            objective=Objective(),
            contention=problem.contention,
            memory_model=problem.memory_model,
        )

    def _durations(self) -> tuple[Int, Bool]:
        """(n, m) ticks and whether there are any, had no task `devices`, `requires`, `pin` or `placement`."""
        compilation, problem, index = self._compilation, self.problem, self._index
        scales = Scales(problem.resolution, compilation.spec.units, self._scratch)
        anywhere = np.ones((problem.n_tasks, problem.n_devices), dtype=np.bool_)
        table = DurationTable(index, scales, anywhere, compilation.gaps, self._scratch)
        table.fill(compilation.tasks, compilation.operations)
        slow = {path[1] for path in self._scratch.paths if path[:1] == ("devices",)}
        for row, task in enumerate(compilation.tasks.values()):
            if task.time is None and (task.flops is not None or task.bytes is not None) and slow:
                for d, device in enumerate(index.devices):
                    table.feasible[row, d] &= device.pool not in slow or bool(problem.feasible[row, d])
        # Sums over all tasks must stay within 64 bits on devices that the compiler did not look at, too.
        table.feasible &= problem.feasible | (table.duration <= LARGEST // max(1, problem.n_tasks))
        return np.where(table.feasible, table.duration, 0), table.feasible

    def _constraints(self) -> Iterator[Constraint]:
        """Every constraint that could matter, those of devices first, then those of tasks in their order."""
        compilation, problem = self._compilation, self.problem
        issues, tasks = compilation.issues, compilation.tasks
        pools = dict.fromkeys(device.pool for device in self._index.devices)
        for pool in pools:
            members = [d for d, device in enumerate(self._index.devices) if device.pool == pool]
            amount = int(problem.capacity[members[0]])
            if amount != UNLIMITED:
                names = listing([self._index.devices[d].name for d in members], 3)
                text = f"{names} {'has' if len(members) == 1 else 'have'} {size_text(amount)} of memory"
                text += "" if len(members) == 1 else " each"
                yield Constraint("memory", issues.place(("devices", pool, "memory")), text, label=pool, amount=amount)
        fixed = compilation.placement.devices(tasks, self._index, compilation.gaps)
        crowds = {key: _members(tasks, key) for key in ("colocate", "separate")}
        for row, (name, task) in enumerate(tasks.items()):
            at = ("tasks", name)
            if fixed[row] >= 0:
                device = problem.device_names[fixed[row]]
                mask = np.arange(problem.n_devices) == fixed[row]
                yield from self._restriction(
                    row, "placement", compilation.placement.place(name), f"is fixed on {visible(device)}", mask
                )
            for kind, value in (("pin", task.pin), ("devices", task.devices)):
                if value is not None:
                    names = listing([value] if isinstance(value, str) else value)
                    text = f"is pinned to {names}" if kind == "pin" else f"may run on {names} only"
                    mask = self._mask(TaskSpec(pin=task.pin) if kind == "pin" else TaskSpec(devices=task.devices))
                    yield from self._restriction(row, kind, issues.place((*at, kind)), text, mask)  # type: ignore[arg-type]
            for feature in dict.fromkeys(task.requires):
                mask = self._mask(TaskSpec(requires=[feature]))
                place = issues.place((*at, "requires", feature))
                yield from self._restriction(row, "requires", place, f"requires {visible(feature)}", mask, feature)
            for kind, verb in (("colocate", "shares a device with"), ("separate", "is apart from")):
                for label in dict.fromkeys(getattr(task, kind)):
                    crowd = crowds[kind][label]
                    if len(crowd) > 1:
                        text = f"task {visible(name)} {verb} {_others(crowd, name)} (label {visible(label)})"
                        yield Constraint(kind, issues.place((*at, kind, label)), text, row, label)  # type: ignore[arg-type]
            if task.deadline is not None:
                amount = int(problem.deadline[row])
                text = f"task {visible(name)} must have ended by {time_text(amount, problem.resolution)}"
                yield Constraint("deadline", issues.place((*at, "deadline")), text, row, amount=amount)
            if problem.release[row]:
                amount = int(problem.release[row])
                text = f"task {visible(name)} may not start before {time_text(amount, problem.resolution)}"
                yield Constraint("release", issues.place((*at, "release")), text, row, amount=amount)

    def _mask(self, task: TaskSpec) -> Bool:
        """(m,) the devices that a task with one restriction may use."""
        rows: Bool = feasibility({"": task}, self._index, self._compilation.gaps, self._scratch)
        return rows.reshape(-1)

    def _restriction(
        self, row: int, kind: Kind, place: Issue, text: str, mask: Bool, feature: str = ""
    ) -> Iterator[Constraint]:
        if (self.runnable[row] & ~mask).any():  # else it keeps the task off nothing
            name = visible(self.problem.task_names[row])
            yield Constraint(kind, place, f"task {name} {text}", row, feature, allowed=mask)


def _members(tasks: Mapping[str, TaskSpec], key: str) -> dict[str, list[str]]:
    """Names of the tasks with each label."""
    found: dict[str, list[str]] = {}
    for name, task in tasks.items():
        for label in dict.fromkeys(getattr(task, key)):
            found.setdefault(label, []).append(name)
    return found


def _others(crowd: list[str], name: str) -> str:
    """The crowd without one of its members, for a message."""
    first = [other for other in crowd[:5] if other != name][:4]
    more = len(crowd) - 1 - len(first)
    return listing(first) + (f" and {more} more" if more else "")


def _joined(n: int, together: Mapping[str, list[int]]) -> Int:
    """(n,) equal numbers for tasks that labels join; a task with two labels joins their groups."""
    group = list(range(n))

    def root(row: int) -> int:
        while group[row] != row:
            group[row] = group[group[row]]
            row = group[row]
        return row

    for rows in together.values():
        for row in rows[1:]:
            a, b = root(rows[0]), root(row)
            group[max(a, b)] = min(a, b)
    return np.array([root(row) for row in range(n)], dtype=np.int64)
