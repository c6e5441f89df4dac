"""A problem, or a block of one, as plain integers: what the claims of a certificate are checked against.

Interchangeable devices form a *class*, which a *leader* represents. The model leaves out what only restricts schedules
further and no claim uses: ports, unavailable windows, setups, limits, and deadlines in claims about bounds. A claim
that holds for the model thus holds for the problem.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from placeopt.errors import CertificateError
from placeopt.model.problem import UNLIMITED, Problem

INFINITE = 1 << 200
"""Ticks that no schedule takes: the value of what is impossible."""

Table = list[list[int]]
"""Amounts by task and class."""

Rate = tuple[int, int, int]
"""A fixed amount, and num / den for each byte."""

Cut = tuple[int, int] | None
"""A task that ends a block, and its device."""


def charge(rate: Rate, payload: int) -> int:
    """Amount for a transfer: fixed + ceil(payload * num / den)."""
    fixed, num, den = rate
    return fixed + -(-payload * num // den)


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge between two tasks of a model, by their place in it."""

    source: int
    target: int
    payload: int
    shared: bool


class Devices:
    """The classes of devices of a problem; each of some devices is a class alone.

    Attributes
    ----------
    class_of, named
        By device, its class: by index, and by name.
    leader, size
        By class, a device of it, by index, and the number of its devices.
    capacity
        By class, bytes of a device; None without a limit.
    parallel
        By class, whether a device runs several tasks at once.
    links
        By two classes, the link from a device of the first to another one of the second; None if there are no two.
    """

    def __init__(self, problem: Problem, alone: Iterable[int] = ()) -> None:
        self.problem = problem
        self.leader, self.size, self.class_of = list[int](), list[int](), list[int]()
        found: dict[tuple[int, int], int] = {}
        apart = set(alone)
        for d, label in enumerate(problem.device_class.tolist()):
            c = found.setdefault((label, d if d in apart else -1), len(self.leader))
            if c == len(self.leader):
                self.leader.append(d)
                self.size.append(0)
            elif not _alike(problem, self.leader[c], d):
                names = problem.device_names
                raise CertificateError(
                    f"devices {names[self.leader[c]]} and {names[d]} count as alike, but they differ"
                )
            self.class_of.append(c)
            self.size[c] += 1
        self.named = dict(zip(problem.device_names, self.class_of, strict=True))
        stated = [int(problem.capacity[d]) for d in self.leader]
        self.capacity = [None if each == UNLIMITED else each for each in stated]
        resources = problem.resources
        self.parallel = [resources is not None and bool(resources.parallel[d]) for d in self.leader]
        self.pairs: list[list[tuple[int, int] | None]] = [[(a, c) for c in self.leader] for a in self.leader]
        for c, first in enumerate(self.leader):
            second = next((d for d, each in enumerate(self.class_of) if each == c and d != first), None)
            self.pairs[c][c] = None if second is None else (first, second)
        self.links = self.rates(problem.latency, problem.byte_ticks_num, problem.byte_ticks_den)

    def rates(self, fixed: Any, num: Any, den: Any) -> list[list[Rate | None]]:
        """By two classes: entries of tables (m, m) for two different devices."""
        return [
            [None if pair is None else (int(fixed[pair]), int(num[pair]), int(den[pair])) for pair in row]
            for row in self.pairs
        ]


@dataclass(frozen=True, eq=False)
class Model:
    """Tasks, edges and classes of devices; lists by task have an entry for each task of the model, in its order.

    Attributes
    ----------
    problem
        The whole problem.
    devices
        The classes of its devices.
    tasks
        The index of each task in the problem.
    feasible, duration
        By task and class.
    group
        By task, the number of its group; groups are 0, 1, ...
    release, after, memory
        By task: the tick before which it does not start; the ticks that remain at its end, 0 unless deadlines count;
        and the memory that it takes during the whole run.
    edges
        All edges between tasks of the model.
    parted
        Pairs of tasks that run on different devices.
    cuts
        Of a block, its first and its last cut with their devices, by their indices in the problem; None for a missing
        one.
    begins
        Whether it begins at tick 0, not at the end of a cut, and the ticks in which devices swap then count.
    """

    problem: Problem
    devices: Devices
    tasks: tuple[int, ...]
    feasible: list[list[bool]]
    duration: Table
    group: list[int]
    release: list[int]
    after: list[int]
    memory: list[int]
    edges: list[Edge]
    parted: tuple[tuple[int, int], ...]
    cuts: tuple[Cut, Cut]
    begins: bool

    @property
    def whole(self) -> bool:
        """Whether it is the whole problem, not a block."""
        return self.cuts == (None, None)

    @property
    def n(self) -> int:
        """The number of tasks."""
        return len(self.tasks)

    @property
    def k(self) -> int:
        """The number of classes."""
        return len(self.devices.leader)

    @cached_property
    def named(self) -> dict[str, int]:
        """The place of each task, by its name."""
        return {self.problem.task_names[task]: i for i, task in enumerate(self.tasks)}

    @cached_property
    def members(self) -> list[list[int]]:
        """The tasks of each group."""
        found: list[list[int]] = [[] for _ in range(max(self.group, default=-1) + 1)]
        for i, g in enumerate(self.group):
            found[g].append(i)
        return found

    @cached_property
    def ins(self) -> list[list[Edge]]:
        """By task, the edges to it."""
        found: list[list[Edge]] = [[] for _ in self.tasks]
        for edge in self.edges:
            found[edge.target].append(edge)
        return found

    @cached_property
    def outs(self) -> list[list[Edge]]:
        """By task, the edges from it."""
        found: list[list[Edge]] = [[] for _ in self.tasks]
        for edge in self.edges:
            found[edge.source].append(edge)
        return found

    @cached_property
    def order(self) -> list[int]:
        """The tasks in a topological order; those on a cycle and after it are missing."""
        waiting = [len(each) for each in self.ins]
        found = [i for i, count in enumerate(waiting) if count == 0]
        for i in found:  # the list grows during iteration
            for edge in self.outs[i]:
                waiting[edge.target] -= 1
                if waiting[edge.target] == 0:
                    found.append(edge.target)
        return found

    @cached_property
    def group_memory(self) -> list[int]:
        """By group."""
        return [sum(self.memory[i] for i in each) for each in self.members]

    @cached_property
    def busy(self) -> Table:
        """Ticks for which each task keeps a device of each class from others."""
        parallel = self.devices.parallel
        return [[0 if many else p for p, many in zip(row, parallel, strict=True)] for row in self.duration]

    @cached_property
    def fits(self) -> list[list[bool]]:
        """By group and class: whether all its tasks may run there, and fit alone."""
        classes = range(len(self.devices.leader))
        return [
            [
                all(self.feasible[i][c] for i in members)
                and ((room := self.devices.capacity[c]) is None or self.need(g, c) <= room)
                for c in classes
            ]
            for g, members in enumerate(self.members)
        ]

    def need(self, g: int, c: int) -> int:
        """Bytes that a group takes of an empty device of a class."""
        need = self.group_memory[g]
        if self.problem.memory_model == "peak":  # a task that takes no time is live at no tick
            live = [self.tasks[i] for i in self.members[g] if self.duration[i][c] > 0]
            need += max((int(self.problem.output[i]) + int(self.problem.scratch[i]) for i in live), default=0)
        return need

    @cached_property
    def allowed(self) -> list[list[bool]]:
        """By task and class: whether its group may run there and fits."""
        return [self.fits[g] for g in self.group]

    @cached_property
    def possible(self) -> bool:
        """Whether every group has a device, and holds no tasks that run on different ones."""
        return all(any(row) for row in self.fits) and all(g != h for g, h in self.apart)

    @cached_property
    def apart(self) -> set[tuple[int, int]]:
        """Pairs of groups that hold tasks on different devices, in both orders."""
        pairs = [(self.group[i], self.group[j]) for i, j in self.parted]
        return {*pairs, *((h, g) for g, h in pairs)}

    def table(self, values: Any) -> Table:
        """Values (n, m) of the problem, by task and class."""
        found: Table = values[np.ix_(np.array(self.tasks, dtype=np.int64), np.array(self.devices.leader))].tolist()
        return found

    def together(self, edge: Edge) -> bool:
        """Whether both ends are in one group."""
        return self.group[edge.source] == self.group[edge.target]


def model_of(problem: Problem) -> Model:
    """The whole problem as a model."""
    return block_of(problem, None, range(problem.n_tasks), None, {})


def model_hash(model: Model, fingerprint: str, metric: str, value: int | str) -> str:
    """SHA-256 of what a trusted claim is about: a metric of the tasks, with their windows, and its least value."""
    problem = model.problem
    names, devices = problem.task_names, problem.device_names
    stated = {
        "problem": fingerprint,
        "metric": metric,
        "value": value,
        "tasks": [names[task] for task in model.tasks],
        "release": model.release,
        "after": model.after,
        "cuts": [None if cut is None else [names[cut[0]], devices[cut[1]]] for cut in model.cuts],
    }
    return sha256(json.dumps(stated, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def horizon(model: Model) -> int:
    """A tick by which some schedule ends if any is feasible: the last deadline, or all work without a pause."""
    problem, rates = model.problem, {rate for row in model.devices.links for rate in row if rate is not None}
    moving = sum(max((charge(rate, edge.payload) for rate in rates), default=0) for edge in model.edges)
    working = sum(max(row, default=0) for row in model.duration)
    last = max((int(each) for each in problem.deadline), default=0)
    return min(max(model.release, default=0) + working + moving, last)


def block_of(
    problem: Problem, first: int | None, inner: Sequence[int], last: int | None, ends: dict[int, int]
) -> Model:
    """The model of the tasks between two cuts, which run on given devices: `ends` are devices by task.

    The first cut takes no time; without one, the block begins at tick 0, and releases hold.
    """
    tasks = tuple(sorted({*inner, *(task for task in (first, last) if task is not None)}))
    devices = Devices(problem, ends.values())
    kept, place = np.array(tasks, dtype=np.int64), {task: i for i, task in enumerate(tasks)}
    cells = np.ix_(kept, np.array(devices.leader, dtype=np.int64))
    feasible: list[list[bool]] = problem.feasible[cells].tolist()
    duration: Table = problem.duration[cells].tolist()
    for task, d in ends.items():
        feasible[place[task]] = [may and devices.leader[c] == d for c, may in enumerate(feasible[place[task]])]
    if first is not None:
        duration[place[first]] = [0] * len(devices.leader)
    groups: dict[int, int] = {}
    columns = problem.edge_source, problem.edge_target, problem.payload, problem.shared
    rows = zip(*(each.tolist() for each in columns), strict=True)
    held = problem.resident if problem.memory_model == "peak" else problem.resident + problem.output + problem.scratch

    def at(cut: int | None) -> Cut:
        return None if cut is None else (cut, ends[cut])

    model = Model(
        problem=problem,
        devices=devices,
        tasks=tasks,
        feasible=feasible,
        duration=duration,
        group=[groups.setdefault(int(problem.group[i]), len(groups)) for i in tasks],
        release=[int(problem.release[i]) if first is None else 0 for i in tasks],
        after=[0] * len(tasks),
        memory=[int(held[i]) for i in tasks],
        edges=[Edge(place[u], place[v], bytes_, many) for u, v, bytes_, many in rows if u in place and v in place],
        parted=tuple((place[i], place[j]) for i, j in problem.separation.tolist() if i in place and j in place),
        cuts=(at(first), at(last)),
        begins=first is None,
    )
    if len(model.order) < len(tasks):
        raise CertificateError("the tasks of the problem depend on each other in a cycle")
    return model


def _alike(problem: Problem, a: int, b: int) -> bool:
    """Whether two devices may be exchanged."""
    rows = [problem.feasible, problem.duration, problem.price, problem.relocation]
    each: list[Any] = [problem.capacity, problem.power_num, problem.power_den]
    if problem.resources is not None:
        rows.append(problem.resources.need)
        each.append(problem.resources.parallel)
    if problem.shared_links is not None:
        rows.append(problem.shared_links.member)
    if problem.tiers is not None:
        each += [problem.tiers.end, problem.tiers.byte_ticks_num, problem.tiers.byte_ticks_den]
    if not all((row[:, a] == row[:, b]).all() for row in rows):
        return False
    if not all(np.array_equal(values[a], values[b]) for values in each):
        return False
    swapped = np.arange(problem.n_devices)
    swapped[[a, b]] = b, a
    tables = (
        problem.latency, problem.byte_ticks_num, problem.byte_ticks_den,
        problem.byte_energy_num, problem.byte_energy_den,
    )  # fmt: skip
    return all(
        (table[a] == table[b][swapped]).all() and (table[:, a] == table[swapped][:, b]).all() for table in tables
    )
