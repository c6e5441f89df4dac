"""Split a problem into optional constraints, each with its place in the spec, and the problem without them.

Without these constraints every problem is feasible: all tasks run in sequence on devices that have a duration for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from placeopt.errors import Issue, UnsupportedError, counted, listing, visible
from placeopt.io.compiler import Compilation
from placeopt.io.compiler.checks import TaskMemory
from placeopt.io.compiler.durations import DurationTable, feasibility
from placeopt.io.compiler.issues import Issues
from placeopt.io.compiler.network import DeviceIndex
from placeopt.io.compiler.resources import shared_resources
from placeopt.io.compiler.scales import Scales
from placeopt.io.compiler.tasks import Parts, Tasks
from placeopt.io.document import Document
from placeopt.io.spec import TaskSpec
from placeopt.io.syntax import Path
from placeopt.model.arrays import Bool, Int
from placeopt.model.building import simplest, with_changes
from placeopt.model.pipeline import UNBOUNDED, Pipeline
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.ranges import LARGEST
from placeopt.model.resource_use import use_over_time
from placeopt.model.resources import POOL, Resources
from placeopt.model.schedule import Schedule
from placeopt.model.unavailability import build_unavailability
from placeopt.model.units import exact_size, size_text, time_text

Kind = Literal[
    "memory", "placement", "pin", "devices", "requires", "colocate", "separate", "deadline", "release", "stages",
    "in_flight", "unavailable", "resource", "cores", "budget", "pool", "addresses",
]  # fmt: skip

RESTRICTIONS: tuple[Kind, ...] = ("placement", "pin", "devices", "requires")
"""Kinds that exclude devices for a task."""

CAPACITIES: tuple[Kind, ...] = ("memory", "resource", "cores", "budget", "pool")
"""Kinds that limit what tasks use together."""


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """A constraint at one place of the spec."""

    kind: Kind
    place: Issue  # file, line, column and path, as an issue without a message
    text: str  # the constraint as a clause
    task: int | None = None  # the constrained task; None for the memory of devices
    label: str = ""  # the colocation or separation label, the feature, or the key of the devices
    allowed: Bool | None = None  # (m,) the devices that a restriction allows
    amount: int | None = None  # bytes of `memory`, an alignment, ticks of `deadline` and `release`, units of a resource
    resources: tuple[int, ...] = ()  # those that a capacity other than `memory` limits
    window: tuple[int, int] | None = None  # ticks from and to which devices are unavailable


Change = int | Bool
"""A different value of a constraint: an amount, or the allowed devices (m,)."""


_MODES = "explain does not support modes; state one of them for each task"


def refusal(problem: Problem) -> str | None:
    """State why `explain` does not support a problem, and what to do instead; None if it does."""
    if problem.tiers is not None:
        return "explain does not support memory tiers; state a memory without tiers"
    if problem.limits:
        return "explain does not support limits of metrics; without them, `placeopt solve` states possible values"
    return _MODES if problem.has_modes else None


class System:
    """A problem as a set of constraints, and the problems with subsets of them.

    `ticks` (n, m) are durations, and `runnable` (n, m) where they exist, before any restriction of devices.
    """

    def __init__(self, compilation: Compilation) -> None:
        self.problem = compilation.problem()
        refused = refusal(self.problem) or (_MODES if any(task.modes for task in compilation.tasks.values()) else None)
        if refused is not None:
            raise UnsupportedError(refused)
        self._compilation = compilation
        # The spec is already checked. Issues without the restrictions, such as missing rates of devices that no task
        # may use, are not errors and are discarded.
        self._scratch = Issues(Document({}))
        self._index = DeviceIndex(compilation.spec.devices, self._scratch)
        self.ticks, self.runnable = self._durations()
        self.resources = self._resources()
        self.pools: dict[str, list[int]] = {}
        for d, device in enumerate(self._index.devices):
            self.pools.setdefault(device.pool, []).append(d)
        self.constraints: tuple[Constraint, ...] = tuple(self._constraints())

    def relaxed(self, active: Collection[int], changed: Mapping[int, Change] | None = None) -> Problem:
        """Return the problem with only the `active` constraints, some of them changed, and the simplest objective.

        Without a limit of stages, a pipeline keeps outputs for one run only if `in_flight` counts stages.
        """
        problem, changed = self.problem, changed or {}
        n, m = problem.n_tasks, problem.n_devices
        feasible = self.runnable.copy()
        capacity = np.full(m, UNLIMITED, dtype=np.int64)
        release = np.zeros(n, dtype=np.int64)
        deadline = np.full(n, UNLIMITED, dtype=np.int64)
        together: dict[str, list[int]] = {}
        apart: dict[str, list[int]] = {}
        limits: set[Kind] = set()
        windows: list[list[tuple[int, int]]] = [[] for _ in range(m)]
        amounts: dict[int, int] = {}
        alignment: int | None = None
        for number in sorted(active):
            constraint = self.constraints[number]
            if constraint.kind in ("stages", "in_flight"):
                limits.add(constraint.kind)
                continue
            if constraint.window is not None:
                for d in self.pools[constraint.label]:
                    windows[d].append(constraint.window)
                continue
            stated = constraint.amount if constraint.allowed is None else constraint.allowed
            value = changed.get(number, stated)
            if isinstance(value, np.ndarray):
                feasible[constraint.task] &= value
            elif value is None:
                labels = together if constraint.kind == "colocate" else apart
                assert constraint.task is not None
                labels.setdefault(constraint.label, []).append(constraint.task)
            elif constraint.resources:
                amounts |= dict.fromkeys(constraint.resources, int(value))
            elif constraint.kind == "addresses":
                alignment = int(value)
            elif constraint.kind == "memory":
                capacity[self.pools[constraint.label]] = value
            else:
                (deadline if constraint.kind == "deadline" else release)[constraint.task] = value
        resources = None if self.resources is None else _limited(self.resources, amounts, feasible)
        if problem.pipeline is None:
            rules: dict[str, Any] = {"forward": None}
            group = _joined(n, together)
        else:
            rules = {"pipeline": _pipeline(problem.pipeline, limits)}
            paired = zip(problem.forward.tolist(), range(n), strict=True) if "stages" in limits else ()
            group = _joined(n, together, paired)
        return with_changes(
            simplest(problem),
            duration=np.where(feasible, self.ticks, 0),
            feasible=feasible,
            release=release,
            deadline=deadline,
            capacity=capacity,
            alignment=alignment,
            layout=None if alignment is None else problem.layout,
            group=group,
            separation=[(a, b) for rows in apart.values() for i, a in enumerate(rows) for b in rows[i + 1 :]],
            relocation=None,
            unavailable=build_unavailability(windows),
            resources=resources,
            **rules,
        )

    def _durations(self) -> tuple[Int, Bool]:
        """Return durations (n, m) in ticks, and where they exist, without `devices`, `requires`, `pin`, `placement`."""
        compilation, problem, index = self._compilation, self.problem, self._index
        scales = Scales(problem.resolution, compilation.spec.units, self._scratch)
        anywhere = np.ones((problem.n_tasks, problem.n_devices), dtype=np.bool_)
        table = DurationTable(index, scales, anywhere, compilation.gaps, self._scratch)
        table.fill(compilation.tasks, compilation.operations, compilation.spec.precision)
        slow = {path[1] for path in self._scratch.paths if path[:1] == ("devices",)}
        for row, task in enumerate(compilation.tasks.values()):
            if task.time is None and (task.flops is not None or task.bytes is not None) and slow:
                for d, device in enumerate(index.devices):
                    table.feasible[row, d] &= device.pool not in slow or bool(problem.feasible[row, d])
        # Sums over all tasks must stay within 64 bits also on devices that the compiler did not check.
        table.feasible &= problem.feasible | (table.duration <= LARGEST // max(1, problem.n_tasks))
        return np.where(table.feasible, table.duration, 0), table.feasible

    def _resources(self) -> Resources | None:
        """Return the resources, with what tasks use of them wherever durations exist."""
        if self.problem.resources is None:
            return None
        compilation, problem, unused = self._compilation, self.problem, Issues(Document({}))
        scales = Scales(problem.resolution, compilation.spec.units, unused)
        parts = Parts(compilation.spec, compilation.tasks, self._index, scales, compilation.gaps, unused)
        memory = TaskMemory(problem.resident, problem.output, problem.scratch)
        return shared_resources(parts, None, memory, None, problem.capacity, self.ticks, self.runnable.copy())

    def needed(self, constraint: Constraint, problem: Problem, schedule: Schedule) -> int:
        """Return what a schedule needs of resources that a constraint limits, in units; for several, the most."""
        assert problem.resources is not None
        return max(
            int(use_over_time(problem, schedule, r)[1].max())
            if problem.resources.renewable[r]
            else int(problem.resources.placed(r, schedule.device).sum())
            for r in constraint.resources
        )

    def _constraints(self) -> Iterator[Constraint]:
        """Return every relevant constraint: those of devices first, then those of tasks in order."""
        compilation, problem = self._compilation, self.problem
        issues, tasks = compilation.issues, compilation.tasks
        for pool, members in self.pools.items():
            amount = int(problem.capacity[members[0]])
            if amount != UNLIMITED:
                names = listing([self._index.devices[d].name for d in members], 3)
                text = f"{names} {'has' if len(members) == 1 else 'have'} {size_text(amount)} of memory"
                text += "" if len(members) == 1 else " each"
                yield Constraint("memory", issues.place(("devices", pool, "memory")), text, label=pool, amount=amount)
            yield from self._windows(pool, members)
        yield from self._limits()
        yield from self._capacities()
        if problem.alignment is not None:
            text = f"offsets of buffers are multiples of {exact_size(problem.alignment)}"
            yield Constraint("addresses", issues.place(("addresses",)), text, amount=problem.alignment)
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
                    text = f"is pinned to {names}" if kind == "pin" else f"may only run on {names}"
                    mask = self._mask(TaskSpec(pin=task.pin) if kind == "pin" else TaskSpec(devices=task.devices))
                    yield from self._restriction(row, kind, issues.place((*at, kind)), text, mask)  # type: ignore[arg-type]
            for feature in dict.fromkeys(task.requires):
                mask = self._mask(TaskSpec(requires=[feature]))
                place = issues.place((*at, "requires", feature))
                yield from self._restriction(row, "requires", place, f"requires {visible(feature)}", mask, feature)
            for kind, verb in (("colocate", "shares a device with"), ("separate", "is separated from")):
                for label in dict.fromkeys(getattr(task, kind)):
                    crowd = crowds[kind][label]
                    if len(crowd) > 1:
                        text = f"task {visible(name)} {verb} {_others(crowd, name)} (label {visible(label)})"
                        yield Constraint(kind, issues.place((*at, kind, label)), text, row, label)  # type: ignore[arg-type]
            if task.deadline is not None:
                amount = int(problem.deadline[row])
                text = f"task {visible(name)} must end by {time_text(amount, problem.resolution)}"
                yield Constraint("deadline", issues.place((*at, "deadline")), text, row, amount=amount)
            if problem.release[row]:
                amount = int(problem.release[row])
                text = f"task {visible(name)} may not start before {time_text(amount, problem.resolution)}"
                yield Constraint("release", issues.place((*at, "release")), text, row, amount=amount)

    def _windows(self, pool: str, members: list[int]) -> Iterator[Constraint]:
        """Return the windows in which the devices of a pool are unavailable, those that touch as one."""
        problem, issues = self.problem, self._compilation.issues
        for begin, end in [] if problem.unavailable is None else problem.unavailable.of(members[0]):
            names = listing([self._index.devices[d].name for d in members], 3)
            times = [time_text(ticks, problem.resolution) for ticks in (begin, end)]
            text = f"{names} {'is' if len(members) == 1 else 'are'} unavailable from {times[0]} to {times[1]}"
            place = issues.place(("devices", pool, "unavailable"))
            yield Constraint("unavailable", place, text, label=pool, window=(begin, end))

    def _capacities(self) -> Iterator[Constraint]:
        """Return the capacities of resources that some task uses."""
        resources, spec, issues = self.resources, self._compilation.spec, self._compilation.issues
        if resources is None:
            return
        found: dict[Path, tuple[Kind, str, list[int]]] = {}
        for r, name in enumerate(resources.names):
            if not resources.amounts(r).any():
                continue
            amount = int(resources.capacity[r])
            owner = next(
                (d for d, device in enumerate(self._index.devices) if resources.cores_of(device.name) == r), None
            )
            pool = name.removeprefix(POOL).rstrip("'")
            if owner is not None:
                key = self._index.devices[owner].pool
                names = listing([self._index.devices[d].name for d in self.pools[key]], 3)
                many = len(self.pools[key]) > 1
                text = f"{names} {'have' if many else 'has'} {counted(amount, 'core')}{' each' * many}"
                found.setdefault(("devices", key, "cores"), ("cores", text, []))[2].append(r)
            elif name in spec.resources or name in spec.budgets:
                section, when = ("resources", "at one time") if resources.renewable[r] else ("budgets", "in all")
                text = f"{visible(name)} has {resources.text(r, amount)} {when}"
                kind: Kind = "resource" if resources.renewable[r] else "budget"
                found[section, name] = (kind, text, [r])
            else:
                text = f"{visible(listing(spec.pools[pool].devices, 3))} share {size_text(amount)} of memory"
                found["pools", pool, "memory"] = ("pool", text, [r])
        for path, (kind, text, members) in found.items():
            amount = int(resources.capacity[members[0]])
            yield Constraint(
                kind, issues.place(path), text, label=str(path[1]), amount=amount, resources=tuple(members)
            )

    def _limits(self) -> Iterator[Constraint]:
        """Return what limits the stages of a pipeline, and the runs whose outputs it keeps."""
        pipeline, spec, issues = self.problem.pipeline, self._compilation.spec, self._compilation.issues
        if pipeline is None:
            return
        limited = pipeline.segments[pipeline.segments != UNBOUNDED]
        if len(limited):
            most = int(limited.min())
            text = f"a device has at most {counted(most, 'stage')}" + (" in each direction" if self._trains() else "")
            stated = spec.pipeline
            whole = stated is not None and (stated.stages == "contiguous" or stated.segments is not None)
            own = next((key for key, device in spec.devices.items() if device.pipeline is not None), "")
            section = ("pipeline",) if whole else ("devices", own, "pipeline")
            layer = stated if whole else spec.devices[own].pipeline
            key = "segments" if layer is not None and layer.segments is not None else "stages"
            yield Constraint("stages", issues.place((*section, key)), text)
        kept = {
            "inference": "a device keeps the outputs of two runs",
            "1f1b": "stage s of S keeps the outputs of S - s + 1 runs",
            "gpipe": f"a device keeps the outputs of {counted(pipeline.microbatches, 'run')}",
        }
        if pipeline.in_flight in kept:
            yield Constraint("in_flight", issues.place(("pipeline", "in_flight")), kept[pipeline.in_flight])

    def _trains(self) -> bool:
        return bool((self.problem.forward != np.arange(self.problem.n_tasks)).any())

    def _mask(self, task: TaskSpec) -> Bool:
        """Return (m,) the devices that a task with one restriction may use."""
        rows: Bool = feasibility(Tasks({"": task}), self._index, self._compilation.gaps, self._scratch)
        return rows.reshape(-1)

    def _restriction(
        self, row: int, kind: Kind, place: Issue, text: str, mask: Bool, feature: str = ""
    ) -> Iterator[Constraint]:
        if (self.runnable[row] & ~mask).any():  # otherwise it excludes no device
            name = visible(self.problem.task_names[row])
            yield Constraint(kind, place, f"task {name} {text}", row, feature, allowed=mask)


def _members(tasks: Mapping[str, TaskSpec], key: str) -> dict[str, list[str]]:
    """Return the names of the tasks with each label."""
    found: dict[str, list[str]] = {}
    for name, task in tasks.items():
        for label in dict.fromkeys(getattr(task, key)):
            found.setdefault(label, []).append(name)
    return found


def _others(crowd: list[str], name: str) -> str:
    """List the members of a crowd except one, for a message."""
    first = [other for other in crowd[:5] if other != name][:4]
    more = len(crowd) - 1 - len(first)
    return listing(first) + (f" and {more} more" if more else "")


def _limited(resources: Resources, amounts: Mapping[int, int], feasible: Bool) -> Resources:
    """Return resources with these capacities and no other limit; a task that exceeds one is not `feasible` there."""
    capacity = resources.capacity.copy()
    for r in range(len(capacity)):
        used = resources.amounts(r)
        capacity[r] = amounts.get(r, used.max(axis=1, initial=0).sum())
        feasible &= used <= capacity[r]
    return resources.changed(capacity=capacity)


def _pipeline(pipeline: Pipeline, limits: Collection[Kind]) -> Pipeline:
    """Return a pipeline with some of its limits."""
    kept = "in_flight" in limits and (pipeline.in_flight != "1f1b" or "stages" in limits)
    return replace(
        pipeline,
        segments=pipeline.segments if "stages" in limits else np.full_like(pipeline.segments, UNBOUNDED),
        in_flight=pipeline.in_flight if kept else "none",
    )


def _joined(n: int, together: Mapping[str, list[int]], paired: Iterable[tuple[int, int]] = ()) -> Int:
    """Return (n,) group numbers, equal for tasks joined by labels or pairs.

    A task with two labels joins their groups.
    """
    group = list(range(n))

    def root(row: int) -> int:
        while group[row] != row:
            group[row] = group[group[row]]
            row = group[row]
        return row

    for one, other in (*((rows[0], row) for rows in together.values() for row in rows[1:]), *paired):
        a, b = root(one), root(other)
        group[max(a, b)] = min(a, b)
    return np.array([root(row) for row in range(n)], dtype=np.int64)
