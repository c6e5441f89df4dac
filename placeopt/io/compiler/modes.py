"""Modes and teams: each device or team in each mode becomes a device of the compiled problem.

A device that tasks use in modes or teams is then a renewable resource of capacity 1, or a machine of a pipeline, and
its memory a budget, so that most rules and solvers need no notion of modes. The devices of the file come first, and
then the further ones in the order of the tasks: "gpu0: int4" is gpu0 in the mode int4, and "gpu0+gpu1: split" a team.

A team of k devices shares work (`flops`, `bytes`) in proportion to the rates of its members: k devices that take t_1,
..., t_k alone take 1 / (1/t_1 + ... + 1/t_k). They divide `shards` of memory likewise, and equally if the time of the
team is stated. Rings (P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, J.
Parallel and Distributed Computing 69, 2009) take 2 (k - 1) steps for an all-reduce and k - 1 for an all-gather; a step
moves one k-th of the data over the slowest link of the ring.

Modes of a task may have different outputs. Its edges then carry the largest of them, and links from the devices of
another mode take the time and the energy of its share of these bytes: such devices are not those of other shares.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from math import ceil

import numpy as np

from placeopt.io.compiler.checks import TaskMemory
from placeopt.io.compiler.durations import DurationTable, feasibility
from placeopt.io.compiler.issues import Gaps, Issues
from placeopt.io.compiler.network import Device, LinkArrays
from placeopt.io.compiler.relations import EdgeArrays
from placeopt.io.compiler.tasks import Parts, Tasks
from placeopt.io.spec import MOST_DEVICES, Durations, ModeSpec, NumberFormat, Spec, TaskSpec
from placeopt.io.syntax import Path
from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import UNLIMITED, Contention, transfer_ticks
from placeopt.model.resources import free_name
from placeopt.model.shared_links import SharedLink, SharedLinks, build_shared_links
from placeopt.model.unavailability import Unavailability, build_unavailability
from placeopt.model.units import shown

METRICS = ("makespan", "total_cost", "energy", "tardiness", "price", "period")
"""Metrics that do not depend on whether two devices of the compiled problem are one device of the file, or know it."""

RINGS = ("all_reduce", "all_gather")
"""The operations in which members of a team exchange data."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A mode of a task, and the devices of the compiled problem that run it."""

    row: int
    mode: ModeSpec
    devices: tuple[int, ...]


class Modes:
    """The devices of the compiled problem, m in all, of which the first are those of the file.

    Attributes
    ----------
    index, table
        All devices, and the durations of all tasks on them.
    members
        (m,) the devices of the file that each one occupies; the first has its inputs and outputs.
    variants
        What each mode of each task is, by its name in `tasks`.
    tasks
        The modes as tasks.
    output
        The bytes of the edges of each task that has modes, by its row: the largest output of a mode.
    notes
        A text for each mode that no device can run, as a resource is too small (`shared_resources`).
    """

    notes: tuple[str, ...] = ()

    def __init__(
        self, parts: Parts, table: DurationTable, operations: dict[str, Durations], precision: NumberFormat,
        links: LinkArrays,
    ) -> None:  # fmt: skip
        self._parts, self._links, self._operations = parts, links, operations
        index, issues = parts.index, parts.issues
        self.tasks = Tasks()
        rows: dict[str, tuple[int, str, ModeSpec]] = {}
        for row, name, task in parts.tasks.stating("modes"):
            for label, mode in task.modes.items() if not issues.touch("tasks", name) else ():
                key = f"{name} in mode {label}"
                while key in parts.tasks or key in rows:
                    key += "'"
                self.tasks[key] = _merged(task, mode)
                rows[key] = row, label, mode
                issues.modes[key] = (*_place(parts.spec, name, task), label), ("tasks", name)
        allowed = feasibility(self.tasks, index, parts.gaps, issues)
        alone = DurationTable(index, parts.scales, allowed, parts.gaps, issues)
        alone.fill(self.tasks, operations, precision)
        self.members: list[tuple[int, ...]] = [(d,) for d in range(len(index))]
        self._shares = self._output_shares({key: row for key, (row, _, _) in rows.items()})
        names: dict[tuple[tuple[int, ...], str, Fraction], int] = {}
        cells: dict[tuple[int, int], int] = {}
        self._shards: list[tuple[int, int, int, int]] = []  # row, column, device of the file, bytes
        self.variants: dict[str, Variant] = {}
        for k, (key, (row, label, mode)) in enumerate(rows.items()):
            found = []
            whole = 0 if mode.shards is None else parts.scales.size(mode.shards, ("tasks", key, "shards"))
            for team, ticks, shares in self._teams(key, mode, alone.duration[k], alone.feasible[k]):
                column = names.setdefault((team, label, self._shares[key]), len(self.members))
                if column == len(self.members):
                    self.members.append(team)
                if len(self.members) > MOST_DEVICES:
                    message = f"all teams and modes make more than {MOST_DEVICES} devices; name the members of teams"
                    issues.add(message, ("tasks", key))
                    raise issues.error()
                cells[row, column] = ticks
                found.append(column)
                divided = zip(team, shares, strict=True) if whole else ()
                self._shards += [(row, column, d, ceil(whole * share)) for d, share in divided]
            if not found and not issues.touch("tasks", key) and not issues.touch("devices"):
                issues.add("no device, or no team of devices, can run the task in this mode", ("tasks", key))
            self.variants[key] = Variant(row, mode, tuple(found))
        taken = {device.name for device in index.devices}
        self.index = index.extended([self._device(team, label, taken) for team, label, _ in names])
        wide = (len(parts.tasks), len(self.members))
        duration, feasible = np.zeros(wide, dtype=np.int64), np.zeros(wide, dtype=np.bool_)
        single = slice(None), slice(0, len(index))
        duration[single], feasible[single] = table.duration, table.feasible
        feasible[[variant.row for variant in self.variants.values()]] = False
        for cell, ticks in cells.items():
            duration[cell], feasible[cell] = ticks, True
        self.table = table.extended(self.index, duration, feasible)
        self._first = {c: key for key, variant in reversed(self.variants.items()) for c in variant.devices}
        self._occupied = {d: key for c, key in self._first.items() for d in self.members[c]}

    @property
    def home(self) -> Int:
        """(m,) the first member of each device."""
        return np.array([team[0] for team in self.members], dtype=np.int64)

    @property
    def occupied(self) -> list[int]:
        """The devices of the file that some task uses in a mode or a team."""
        return sorted(self._occupied)

    def allowed(self, allowed: Bool) -> Bool:
        """(n, m) devices that the keys of tasks without modes allow, as in `allowed`, and those that run a mode."""
        found = self.table.feasible.copy()
        plain = np.setdiff1d(np.arange(len(found)), [variant.row for variant in self.variants.values()])
        found[plain, : allowed.shape[1]] = allowed[plain]
        return found

    def restrict(self, fixed: Int) -> tuple[Int, Int]:
        """Restrict tasks with modes that are fixed (n,) on a device of the file to its modes.

        Return the same with one of these devices for each, and with -1 for them; -1 is a free task.
        """
        one, others, home = fixed.copy(), fixed.copy(), self.home
        for row in sorted({variant.row for variant in self.variants.values()}):
            if 0 <= fixed[row] < len(self._parts.index):
                able = np.flatnonzero(self.table.feasible[row] & (home == fixed[row]))
                if len(able):
                    self.table.feasible[row, home != fixed[row]] = False
                    one[row], others[row] = able[0], -1
        return one, others

    def check(self, spec: Spec, capacity: Int) -> None:
        """Report what modes do not support: rings that need ports, and rules of their devices of `capacity` (m,)."""
        for key, variant in self.variants.items() if spec.contention != "none" or spec.links.shared else ():
            for name in (name for name in RINGS if getattr(variant.mode, name)):
                message = f"{name} is not supported with contention and shared links, as it uses no ports"
                self._parts.issues.add(message, ("tasks", key, name))
        in_team: dict[int, str] = {}  # the first mode with a team of each device
        for key, variant in self.variants.items():
            for team in (self.members[d] for d in variant.devices if len(self.members[d]) > 1):
                in_team = dict.fromkeys(team, key) | in_team
        for d in self.occupied:
            device, path = self._parts.index.devices[d], ("tasks", self._occupied[d])
            if device.spec.tiers:
                self._parts.issues.add(f"{device.name} has memory tiers, which are not supported with modes", path)
            if device.spec.setup and d in in_team:
                message = f"{device.name} has setup times, which are not supported in teams"
                self._parts.issues.add(message, ("tasks", in_team[d]))
            if spec.memory_model != "sum" and capacity[d] != UNLIMITED:
                message = f"{device.name} has limited memory, for which modes need memory_model: sum"
                self._parts.issues.add(message, path)

    def edges(self, edges: EdgeArrays) -> EdgeArrays:
        """The edges with the payloads of tasks with modes."""
        payload, names = edges.payload.copy(), list(self._parts.tasks)
        uneven = {self.variants[key].row for key, share in self._shares.items() if share != 1}
        for e in np.flatnonzero(np.isin(edges.pairs[:, 0], list(self.output))).tolist():
            source, target = edges.pairs[e].tolist()
            if edges.shared[e]:
                payload[e] = self.output[source]
            elif source in uneven:
                message = f"an own payload is not supported with modes of {shown(names[source])} that state output"
                self._parts.issues.add(message, ("tasks", names[target], "after", names[source]))
        return replace(edges, payload=payload)

    def links(self) -> LinkArrays:
        """The links between all devices: those between their first members, for their share of the payloads."""
        between = np.ix_(self.home, self.home)
        found = LinkArrays(*(array[between] for array in self._links))
        for c, key in self._first.items():
            if (share := self._shares[key]) != 1:
                for num, den in (found[1:3], found[3:5]):
                    kinds, kind = np.unique(np.stack((num[c], den[c])), axis=1, return_inverse=True)
                    path = ("tasks", key, "output")
                    ratios = [self._parts.scales.share(each, share, path) for each in kinds.T.tolist()]
                    num[c], den[c] = np.array(ratios, dtype=np.int64).T[:, kind.reshape(-1)]
        return found

    def shared_links(self, shared: SharedLinks | None, contention: Contention) -> SharedLinks | None:
        """The shared links of all devices; the ports of a device of the file become one, its uplink."""
        found = {} if shared is None else shared.links()
        devices = self._parts.index.devices if contention != "none" and len(self._parts.index) > 1 else []
        for d, device in enumerate(devices):
            found[free_name(f"port of {device.name}", found)] = SharedLink([d], half=contention == "half_duplex")
        groups = {
            name: link._replace(devices=np.flatnonzero(np.isin(self.home, link.devices)).tolist())
            for name, link in found.items()
        }
        return build_shared_links(len(self.members), groups)

    def power(self, power: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The power of all devices: the sum of those of their members."""
        sums = [sum((Fraction(*power[d]) for d in team), Fraction(0)) for team in self.members]
        return [(each.numerator, each.denominator) for each in sums]

    def capacity(self, capacity: Int) -> Int:
        """(m,) the memory of all devices; that of occupied ones is a budget instead."""
        found = np.full(len(self.members), UNLIMITED, dtype=np.int64)
        found[: len(capacity)] = capacity
        found[self.occupied] = UNLIMITED
        return found

    def unavailable(self, windows: Unavailability | None) -> Unavailability | None:
        """When devices are unavailable: whenever a member is."""
        if windows is None:
            return None
        return build_unavailability([[window for d in team for window in windows.of(d)] for team in self.members])

    def memory(self, of_tasks: TaskMemory, of_modes: TaskMemory, kept: Int) -> Int:
        """(n, m) bytes on each member of each device, with the outputs of `kept` (n,) further runs."""
        rows = [variant.row for variant in self.variants.values()]
        held = np.repeat(of_tasks.kept(kept)[:, None], len(self.members), axis=1)
        for variant, size in zip(self.variants.values(), of_modes.kept(kept[rows]).tolist(), strict=True):
            held[variant.row, list(variant.devices)] = size
        return held

    def shards(self, places: set[int]) -> Int:
        """(n, m) bytes of shards on some devices of the file."""
        held = np.zeros((len(self._parts.tasks), len(self.members)), dtype=np.int64)
        for row, column, d, size in self._shards:
            held[row, column] += size if d in places else 0
        return held

    def cores(self) -> Int:
        """(n, m) cores on each member of each device."""
        used = np.ones((len(self._parts.tasks), len(self.members)), dtype=np.int64)
        for row, _, task in self._parts.tasks.stating("cores"):
            used[row] = task.cores or 1
        for key, variant in self.variants.items():
            used[variant.row, list(variant.devices)] = self.tasks[key].cores or 1
        return used

    def _output_shares(self, rows: dict[str, int]) -> dict[str, Fraction]:
        """The output of each mode as a share of the largest one of its task, and `output`."""
        sizes, scales = dict.fromkeys(rows, 0), self._parts.scales
        for _, key, task in self.tasks.stating("output"):
            sizes[key] = 0 if task.output is None else scales.size(task.output, ("tasks", key, "output"))
        self.output: dict[int, int] = {}
        for key, row in rows.items():
            self.output[row] = max(self.output.get(row, 0), sizes[key])
        return {
            key: Fraction(sizes[key], size) if (size := self.output[row]) else Fraction(1) for key, row in rows.items()
        }

    def _device(self, team: tuple[int, ...], label: str, taken: set[str]) -> Device:
        """The device of the compiled problem for a team in a mode, whose name is `taken` then."""
        devices = [self._parts.index.devices[d] for d in team]
        name = free_name(f"{'+'.join(device.name for device in devices)}: {label}", taken)
        taken.add(name)
        return Device(name, devices[0].pool, devices[0].type, devices[0].spec)

    def _teams(
        self, key: str, mode: ModeSpec, duration: Int, feasible: Int
    ) -> Iterator[tuple[tuple[int, ...], int, list[Fraction]]]:
        """The teams of a mode, or single devices without a team: their ticks, and the share of each member."""
        index, scales, issues, path = self._parts.index, self._parts.scales, self._parts.issues, ("tasks", key)
        stated = {name: getattr(mode, name) for name in RINGS}
        if mode.team is None:
            for name in (name for name, amounts in stated.items() if amounts):
                issues.add(f"{name} needs a team", (*path, name))
            for d in np.flatnonzero(feasible).tolist():
                yield (d,), int(duration[d]), [Fraction(1)]
            return
        choices = []
        for reference, count in mode.team.items():
            able = [d for d in index.find(reference, (*path, "team", reference)) if feasible[d]]
            choices.append(list(combinations(able, count)))
        task = self.tasks[key]
        moved = [(name, scales.size(amount, (*path, name))) for name, amounts in stated.items() for amount in amounts]
        seen = set()
        for parts in product(*choices):
            team = tuple(sorted(d for part in parts for d in part))
            if len(set(team)) < len(team) or team in seen:
                continue
            seen.add(team)
            alone = [int(duration[d]) for d in team]
            ticks, shares = max(alone), [Fraction(1, len(team))] * len(team)
            if task.time is None and task.op not in self._operations and min(alone) > 0:
                rate = sum((Fraction(1, each) for each in alone), Fraction(0))
                ticks, shares = ceil(1 / rate), [1 / (each * rate) for each in alone]
            yield team, ticks + sum(self._ring(team, name, size) for name, size in moved), shares

    def _ring(self, team: tuple[int, ...], operation: str, size: int) -> int:
        """Ticks of a collective operation."""
        k, links = len(team), self._links
        steps = (k - 1) * (2 if operation == "all_reduce" else 1)
        way = [
            int(
                transfer_ticks(
                    -(-size // k), links.latency[a, b], links.byte_ticks_num[a, b], links.byte_ticks_den[a, b]
                )
            )
            for a, b in zip(team, (*team[1:], team[0]), strict=True)
        ]
        return steps * max(way)


def _merged(task: TaskSpec, mode: ModeSpec) -> TaskSpec:
    """The task as the mode states it."""
    own = {"team", "shards", "all_reduce", "all_gather", "uses"}
    stated = {key: getattr(mode, key) for key in mode.model_fields_set - own}
    changes: dict[str, object] = {"modes": {}, "uses": {**task.uses, **mode.uses}}
    if mode.time is not None:
        changes |= {"op": None, "flops": None, "bytes": None}
    elif mode.flops is not None or mode.bytes is not None:
        changes |= {"op": None, "time": None, "flops": None, "bytes": None}
    return task.model_copy(update={**changes, **stated})


def inherit_modes(tasks: Tasks, spec: Spec, operations: Collection[str], gaps: Gaps, issues: Issues) -> None:
    """Give tasks without modes those of their operation."""
    if not spec.modes:
        return
    known = {*operations, *(task.op for task in tasks.values() if task.op is not None)}
    for name, task in tasks.items():
        if task.op in spec.modes and not task.modes:
            tasks[name] = task.model_copy(update={"modes": spec.modes[task.op]})
    for op in spec.modes:
        if op not in known and not (gaps.tasks or gaps.operations):
            issues.unknown("operation", op, sorted(known), ("modes", op), at_key=True)


TEAMLESS = " without a team"
"""How the name of a mode without its team ends."""


def unrestricted(task: TaskSpec) -> TaskSpec:
    """Return a task without what excludes devices for it; a mode with a team is also one without a team."""
    free: dict[str, object] = {"devices": None, "requires": [], "pin": None, "separate": []}
    modes = {label: mode.model_copy(update={"devices": None}) for label, mode in task.modes.items()}
    alone: dict[str, object] = {"team": None, **{ring: [] for ring in RINGS}}
    teams = [label for label, mode in task.modes.items() if mode.team is not None]
    modes |= {free_name(label + TEAMLESS, modes): modes[label].model_copy(update=alone) for label in teams}
    stated = {key: value for key, value in free.items() if key in task.model_fields_set}
    return task.model_copy(update=stated | ({"modes": modes} if modes else {})) if stated or modes else task


def _place(spec: Spec, name: str, task: TaskSpec) -> Path:
    """Where the modes of a task are stated: for it, or for its operation."""
    op = task.op or ""
    return ("modes", op) if spec.modes.get(op) is task.modes else ("tasks", name, "modes")


def check_modes(spec: Spec, tasks: Tasks, issues: Issues) -> bool:
    """Return whether tasks have modes; reports what is not supported with them."""
    first = next((_place(spec, name, task) for _, name, task in tasks.stating("modes") if task.modes), None)
    if first is None:
        return False
    for metric in (metric for level in spec.objective for metric in level if metric not in METRICS):
        issues.add(f"modes are not supported with the objective {metric}; expected {', '.join(METRICS)}", first)
    for stated in (key for key, most in spec.limits if most is not None and key not in METRICS):
        issues.add(f"{stated} is not supported with modes; expected {', '.join(METRICS[:-1])}", ("limits", stated))
    if spec.addresses is not None:
        issues.add("modes are not supported with addresses", first)
    return True
