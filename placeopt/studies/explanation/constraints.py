"""Split a problem into optional constraints, each with its place in the spec, and the problem without them.

Without these constraints every problem is feasible: all tasks run in sequence on devices that have a duration for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from placeopt.errors import Issue, SpecError, UnsupportedError, UsageError, counted, listing, visible
from placeopt.io.compiler import Compilation
from placeopt.io.compiler.durations import feasibility
from placeopt.io.compiler.modes import TEAMLESS
from placeopt.io.compiler.network import DeviceIndex
from placeopt.io.compiler.resources import separations
from placeopt.io.compiler.tasks import Tasks
from placeopt.io.spec import MOST_DEVICES, TaskSpec
from placeopt.io.syntax import Path
from placeopt.model.arrays import Bool, Int
from placeopt.model.building import simplest, with_changes
from placeopt.model.memory import used_memory
from placeopt.model.modes import PRIME
from placeopt.model.pipeline import UNBOUNDED, Pipeline
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.ranges import LARGEST
from placeopt.model.resource_use import use_over_time
from placeopt.model.resources import CORES, POOL, Resources, Share, assembled
from placeopt.model.schedule import Schedule
from placeopt.model.stages import trivial_stages
from placeopt.model.tiers import build_tiers
from placeopt.model.unavailability import build_unavailability
from placeopt.model.units import exact_size, size_text, time_text
from placeopt.views.facts import amount_text

Kind = Literal[
    "memory", "placement", "pin", "devices", "requires", "team", "colocate", "separate", "deadline", "release",
    "stages", "in_flight", "unavailable", "resource", "cores", "budget", "pool", "addresses", "limit",
]  # fmt: skip

RESTRICTIONS: tuple[Kind, ...] = ("placement", "pin", "devices", "requires", "team")
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
    amount: int | None = None  # bytes of `memory`, an alignment, ticks, units of a resource or a metric
    resources: tuple[int, ...] = ()  # those that a capacity other than `memory` limits
    window: tuple[int, int] | None = None  # ticks from and to which devices are unavailable


Change = int | Bool
"""A different value of a constraint: an amount, or the allowed devices (m,)."""


def refusal(problem: Problem) -> str | None:
    """State why `explain` does not support a problem, and what to do instead; None if it does."""
    if any(metric == "memory_balance" for metric, _ in problem.limits):
        return "explain does not support a limit of memory_balance, which depends on the memory of devices"
    if problem.has_modes and (problem.memory_model != "sum" or problem.tiers is not None):
        return "explain supports modes only with memory_model: sum and without memory tiers"
    return None


class System:
    """A problem as a set of constraints, and the problems with subsets of them.

    Attributes
    ----------
    stated
        The problem of the file.
    problem
        The problem without what excludes devices for a task, which may have more devices, of modes and teams.
    members
        (m,) the devices of the file that each device of `problem` occupies.
    ticks, runnable
        (n, m) durations, and where they exist.
    memory
        (m,) bytes of the first memory of each device.
    pools
        The devices of the file by their key in the file.
    """

    def __init__(self, compilation: Compilation) -> None:
        self.stated = compilation.problem()
        refused = refusal(self.stated)
        if refused is not None:
            raise UnsupportedError(refused)
        self._compilation, self._free = compilation, compilation.unrestricted()
        try:
            problem = self._free.problem()
        except SpecError:
            message = f"explain tries all devices in all modes, here more than {MOST_DEVICES:,}; name fewer modes"
            raise UnsupportedError(message) from None
        except UsageError as error:  # about setup times
            raise UnsupportedError(f"explain tries all devices for each task: {error}") from None
        self._index = DeviceIndex(compilation.spec.devices, self._free.issues)
        modes, self.resources = self._free.modes, self._free.resources
        self.members = [(d,) for d in range(problem.n_devices)] if modes is None else modes.members
        teams = [d for team in self.members if len(team) > 1 for d in team]
        if problem.setups is not None and problem.setups.used()[teams].any():
            raise UnsupportedError("explain tries further teams of devices with setup times; list the members of teams")
        self._fixed = compilation.placement.devices(compilation.tasks, self._index, compilation.gaps)
        self._owners = list(self._resource_owners())
        self._keys: dict[int, list[str]] = {}
        for key, variant in {} if compilation.modes is None else compilation.modes.variants.items():
            self._keys.setdefault(variant.row, []).append(key)
        # Sums over all tasks must stay within 64 bits also on devices that the compiler did not check.
        most = np.maximum(self.stated.duration.max(axis=1, initial=0), LARGEST // max(1, problem.n_tasks))
        self.runnable: Bool = problem.feasible & (problem.duration <= most[:, None])
        self.ticks: Int = np.where(self.runnable, problem.duration, 0)
        self.pools: dict[str, list[int]] = {}
        for d, device in enumerate(self._index.devices):
            self.pools.setdefault(device.pool, []).append(d)
        self.memory: Int = problem.capacity if problem.tiers is None else problem.tiers.end[:, 0]
        lasting = {"feasible": self.runnable, "duration": self.ticks}
        self.problem = with_changes(problem, **lasting, resources=self._limited({}, {}))
        self.constraints: tuple[Constraint, ...] = tuple(self._constraints())

    def of_file(self, schedule: Schedule) -> Schedule:
        """Return a schedule of `problem` that keeps all constraints as one of the problem of the file."""
        device = schedule.device.copy()
        modes = self._compilation.modes
        variants, members = ({}, []) if modes is None else (modes.variants, modes.members)
        for key, variant in variants.items():
            if self._columns(key)[d := int(schedule.device[variant.row])]:
                device[variant.row] = next(c for c in variant.devices if members[c] == self.members[d])
        stages = schedule.stages
        if stages is not None and modes is not None:  # without replicas and recomputation
            stages = replace(trivial_stages(self.stated, device), number=stages.number)
        return replace(schedule, device=device, stages=stages)

    def limited(self, constraint: Constraint) -> list[int]:
        """Return the devices whose memory a constraint limits, without those of modes, whose memory is a budget."""
        return [d for d in self.pools[constraint.label] if self.memory[d] != UNLIMITED]

    def beyond(self, constraint: Constraint) -> int:
        """Return the bytes of memory tiers after the first memory of a device that a constraint limits."""
        d = self.pools[constraint.label][0]
        return int(self.problem.capacity[d] - self.memory[d])

    @property
    def occupied(self) -> list[int]:
        """The resources that are devices, which modes and teams occupy."""
        return [r for r, owner in enumerate(self._owners) if owner is None]

    def inside(self, constraint: Constraint) -> list[int]:
        """Return the devices of a key of the file, in all modes and teams."""
        return [d for d, team in enumerate(self.members) if not set(team).isdisjoint(self.pools[constraint.label])]

    def relaxed(self, active: Collection[int], changed: Mapping[int, Change] | None = None) -> Problem:
        """Return the problem with only the `active` constraints, some of them changed, and the simplest objective.

        Without a limit of stages, a pipeline keeps outputs for one run only if `in_flight` counts stages.
        """
        problem, changed = self.problem, changed or {}
        n, m = problem.n_tasks, problem.n_devices
        feasible = self.runnable.copy()
        memory = np.full(m, UNLIMITED, dtype=np.int64)
        release = np.zeros(n, dtype=np.int64)
        deadline = np.full(n, UNLIMITED, dtype=np.int64)
        together: dict[str, list[int]] = {}
        apart: dict[str, list[int]] = {}
        limits: set[Kind] = set()
        windows: list[list[tuple[int, int]]] = [[] for _ in range(m)]
        amounts: dict[int, int] = {}
        alignment: int | None = None
        most: list[tuple[str, int]] = []
        for number in sorted(active):
            constraint = self.constraints[number]
            if constraint.kind in ("stages", "in_flight"):
                limits.add(constraint.kind)
                continue
            if constraint.window is not None:
                for d in self.inside(constraint):
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
            elif constraint.kind in CAPACITIES:
                amounts |= dict.fromkeys(constraint.resources, int(value))
                if constraint.kind == "memory":
                    memory[self.limited(constraint)] = value
            elif constraint.kind == "addresses":
                alignment = int(value)
            elif constraint.kind == "limit":
                most.append((constraint.label, int(value)))
            else:
                (deadline if constraint.kind == "deadline" else release)[constraint.task] = value
        tiers = problem.tiers
        if tiers is not None:
            tiers = build_tiers(memory, [tiers.further(d) if memory[d] < UNLIMITED else [] for d in range(m)])
        if problem.pipeline is None:
            rules: dict[str, Any] = {"forward": None}
            group = _joined(n, together)
        else:
            rules = {"pipeline": _pipeline(problem.pipeline, limits, bool(self._keys))}
            paired = zip(problem.forward.tolist(), range(n), strict=True) if "stages" in limits else ()
            group = _joined(n, together, paired)
        return with_changes(
            simplest(problem),
            duration=np.where(feasible, self.ticks, 0),
            feasible=feasible,
            release=release,
            deadline=deadline,
            capacity=memory if tiers is None else tiers.capacity,
            tiers=tiers,
            alignment=alignment,
            layout=None if alignment is None else problem.layout,
            group=group,
            separation=[] if self._keys else [pair for rows in apart.values() for pair in combinations(rows, 2)],
            relocation=problem.relocation if "relocation" in dict(most) else None,
            limits=most,
            unavailable=build_unavailability(windows),
            resources=self._limited(amounts, apart),
            **rules,
        )

    def _limited(self, amounts: Mapping[int, int], apart: Mapping[str, list[int]]) -> Resources | None:
        """Return the resources with these capacities; others are unlimited, except that modes occupy devices.

        With modes, budgets keep the tasks of each label in `apart` apart.
        """
        found, shares, several = self.resources, list[Share](), np.zeros(len(self.members), dtype=np.bool_)
        if found is not None:
            capacity = found.capacity.copy()
            for r, owner in enumerate(self._owners):
                if owner is not None:
                    capacity[r] = amounts.get(r, found.amounts(r).max(axis=1, initial=0).sum())
            found = found.changed(capacity=capacity)
            shares, several = found.shares(), found.parallel
        if not apart or not self._keys:
            return found
        n, names = len(self.ticks), [device.name for device in self._index.devices]
        shares += separations(apart, names, self.members, n, {each.name for each in shares})
        return assembled(shares, several, n)

    def needed(self, constraint: Constraint, problem: Problem, schedule: Schedule) -> int:
        """Return what a schedule needs of a capacity, in bytes or units; of several devices or resources, the most."""
        used: list[int] = []
        if constraint.kind == "memory":
            used = used_memory(problem, schedule)[self.limited(constraint)].tolist()
        for r in constraint.resources:
            assert problem.resources is not None
            if problem.resources.renewable[r]:
                used.append(int(use_over_time(problem, schedule, r)[1].max()))
            else:
                used.append(int(problem.resources.placed(r, schedule.device).sum()))
        return max(used)

    def _constraints(self) -> Iterator[Constraint]:
        """Return every relevant constraint: those of devices first, then those of tasks in order."""
        compilation, problem = self._compilation, self.problem
        issues, tasks = compilation.issues, compilation.tasks
        for pool, members in self.pools.items():
            path: Path = ("devices", pool, "memory")
            budgets = tuple(r for r, owner in enumerate(self._owners) if owner == ("memory", path))
            amounts = [int(self.memory[d]) for d in members if self.memory[d] != UNLIMITED]
            amounts += [] if self.resources is None else self.resources.capacity[list(budgets)].tolist()
            for amount in amounts[:1]:
                text = self._have(pool, f"{size_text(amount)} of memory")
                made = Constraint("memory", issues.place(path), text, label=pool, amount=amount, resources=budgets)
                yield replace(made, text=f"{text}, and memory tiers after it") if self.beyond(made) else made
            yield from self._windows(pool, members)
        yield from self._limits()
        yield from self._capacities()
        for metric, amount in problem.limits:
            text = f"{metric} is at most {amount_text(amount, metric, problem.resolution, ticks=False)}"
            yield Constraint("limit", issues.place(("limits", metric)), text, label=metric, amount=amount)
        if problem.alignment is not None:
            text = f"offsets of buffers are multiples of {exact_size(problem.alignment)}"
            yield Constraint("addresses", issues.place(("addresses",)), text, amount=problem.alignment)
        crowds = {key: _members(tasks, key) for key in ("colocate", "separate")}
        for row, (name, task) in enumerate(tasks.items()):
            at = ("tasks", name)
            yield from self._restrictions(row, name, task)
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

    def _have(self, pool: str, what: str) -> str:
        """Return a sentence that states what each device of a pool has."""
        names = [self._index.devices[d].name for d in self.pools[pool]]
        return f"{listing(names, 3)} {'have' if names[1:] else 'has'} {what}{' each' * bool(names[1:])}"

    def _resource_owners(self) -> Iterator[tuple[Kind, Path] | None]:
        """Yield for each resource what it is and where it is stated; None for a device that modes occupy."""
        spec, resources = self._compilation.spec, self.resources
        pools = {device.name: device.pool for device in self._index.devices}
        shared = set(spec.pools)
        for name, renewable in () if resources is None else zip(resources.names, resources.renewable, strict=True):
            word = name.removeprefix(CORES if renewable else POOL).rstrip(PRIME)
            if name in spec.resources or name in spec.budgets:
                yield ("resource", ("resources", name)) if renewable else ("budget", ("budgets", name))
            elif renewable:
                yield ("cores", ("devices", pools[word], "cores")) if name.startswith(CORES) else None
            elif word in shared:  # these come before the memory of devices
                shared.remove(word)
                yield "pool", ("pools", word, "memory")
            else:
                yield "memory", ("devices", pools[word], "memory")

    def _capacities(self) -> Iterator[Constraint]:
        """Return the capacities of resources that some task uses, without the memory of devices."""
        resources, spec = self.resources, self._compilation.spec
        found: dict[tuple[Kind, Path], list[int]] = {}
        for r, owner in enumerate(self._owners):
            if owner is not None and owner[0] != "memory" and resources is not None and resources.amounts(r).any():
                found.setdefault(owner, []).append(r)
        for (kind, path), members in found.items():
            assert resources is not None
            amount, label = int(resources.capacity[members[0]]), str(path[1])
            if kind == "cores":
                text = self._have(label, counted(amount, "core"))
            elif kind == "pool":
                text = f"{visible(listing(spec.pools[label].devices, 3))} share {size_text(amount)} of memory"
            else:
                when = "at one time" if kind == "resource" else "in all"
                text = f"{visible(label)} has {resources.text(members[0], amount)} {when}"
            place = self._compilation.issues.place(path)
            yield Constraint(kind, place, text, label=label, amount=amount, resources=tuple(members))

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
        if pipeline.in_flight in kept and not self._keys:  # with modes, their budgets contain these outputs
            yield Constraint("in_flight", issues.place(("pipeline", "in_flight")), kept[pipeline.in_flight])

    def _trains(self) -> bool:
        return bool((self.problem.forward != np.arange(self.problem.n_tasks)).any())

    def _restrictions(self, row: int, name: str, task: TaskSpec) -> Iterator[Constraint]:
        """Return what excludes devices for a task: for all its modes, or for one of them."""
        issues, found = self._compilation.issues, dict[tuple[Kind, Path], tuple[Issue, str, str, Bool]]()
        if (home := int(self._fixed[row])) >= 0:
            place = self._compilation.placement.place(name)
            text = f"is fixed on {visible(self.problem.device_names[home])}"
            found["placement", ()] = place, text, "", np.array([team[0] == home for team in self.members])
        for key, entry, mine in self._entries(row, name, task):
            stated: list[tuple[Kind, str, str, Bool]] = []
            if entry.pin is not None:
                stated.append(("pin", "", f"is pinned to {visible(entry.pin)}", self._mask(TaskSpec(pin=entry.pin))))
            if entry.devices is not None:
                text = f"may only run on {listing(entry.devices)}"
                stated.append(("devices", "", text, self._mask(TaskSpec(devices=entry.devices))))
            for feature in dict.fromkeys(entry.requires):
                text = f"requires {visible(feature)}"
                stated.append(("requires", feature, text, self._mask(TaskSpec(requires=[feature]))))
            if (alone := self._columns(key + TEAMLESS)).any() and self._compilation.modes is not None:
                team = self._compilation.modes.variants[key].mode.team or {}
                text = f"needs a team ({listing([word if k == 1 else f'{k} of {word}' for word, k in team.items()])})"
                stated.append(("team", "", text, ~alone))
            of_mode = issues.modes[key][0] if task.modes else (None,)
            for kind, label, text, mask in stated:
                place = issues.place(("tasks", key, kind, *([label] if label else [])))
                if place.path[: len(of_mode)] == of_mode:
                    text = f"in mode {visible(str(of_mode[-1]))} {text}"
                *_, known = found.get((kind, place.path), (np.True_,))
                found[kind, place.path] = place, text, label, (mask | ~mine) & known
        for (kind, _), (place, text, label, mask) in found.items():
            if (self.runnable[row] & ~mask).any():  # otherwise it excludes no device
                yield Constraint(kind, place, f"task {visible(name)} {text}", row, label, allowed=mask)

    def _entries(self, row: int, name: str, task: TaskSpec) -> Iterator[tuple[str, TaskSpec, Bool]]:
        """Yield a task, or each of its modes: the name as a task, the entry, and the devices (m,) of `problem`."""
        modes = self._compilation.modes
        if modes is None or not task.modes:
            yield name, task, np.ones(self.problem.n_devices, dtype=np.bool_)
            return
        for key in self._keys[row]:
            yield key, modes.tasks[key], self._columns(key) | self._columns(key + TEAMLESS)

    def _columns(self, key: str) -> Bool:
        """Return (m,) the devices of `problem` that run a mode, by its name as a task; none for another name."""
        variants = {} if self._free.modes is None else self._free.modes.variants
        found = np.zeros(self.problem.n_devices, dtype=np.bool_)
        found[list(variants[key].devices) if key in variants else []] = True
        return found

    def _mask(self, task: TaskSpec) -> Bool:
        """Return (m,) the devices that a task with one restriction may use."""
        able = feasibility(Tasks({"": task}), self._index, self._free.gaps, self._free.issues)[0]
        return np.array([able[list(team)].all() for team in self.members], dtype=np.bool_)


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


def _pipeline(pipeline: Pipeline, limits: Collection[Kind], modes: bool) -> Pipeline:
    """Return a pipeline with some of its limits; with modes, `in_flight` is none of them."""
    kept = ("in_flight" in limits or modes) and (pipeline.in_flight != "1f1b" or "stages" in limits)
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
