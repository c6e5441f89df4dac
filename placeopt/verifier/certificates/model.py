"""A problem, or a block of one, as plain integers: what the claims of a certificate are checked against.

Heads and tails state how early a task can start on a class of device, and how much must follow its end.

The model leaves out what only restricts schedules further and no claim uses: ports, unavailable windows, setups,
limits, and deadlines in claims about bounds. A claim that holds for the model thus holds for the problem.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from hashlib import sha256
from typing import Any

import numpy as np

from placeopt.errors import CertificateError
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.verifier.certificates.devices import INFINITE, Devices, Table, cells, charge

Cut = tuple[int, int] | None
"""A task that ends a block, and its device."""

NARROWED = 4
"""Rounds in which deadlines exclude classes, at most."""

ROUNDS = 1000
"""Largest number of times that one start is raised."""

FOLLOWED, LEAST, BUDGET = 1 << 23, 16, 1 << 23
"""Edges that are followed if each start is raised once, for one start at least, and in all.

Fewer tied tasks prove less, and nothing wrong: beyond these, large problems count with the arrivals of their data.
"""


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge between two tasks of a model, by their place in it."""

    source: int
    target: int
    payload: int
    shared: bool


@dataclass(frozen=True, eq=False)
class Model:
    """Tasks, edges and classes of devices; lists by task have an entry for each task of the model, in its order.

    Attributes
    ----------
    problem, devices
        The whole problem, and the classes of its devices.
    tasks
        The index of each task in the problem.
    feasible, duration
        By task and class.
    group
        By task, the number of its group; groups are 0, 1, ...
    release
        By task and class, the tick before which the task does not start.
    after, memory
        By task: the ticks that remain at its end, 0 unless deadlines or decisions state more; and the memory that it
        takes during the whole run.
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
    release: Table
    after: list[int]
    memory: list[int]
    edges: list[Edge]
    parted: tuple[tuple[int, int], ...]
    cuts: tuple[Cut, Cut]
    begins: bool

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
    def outs(self) -> list[list[Edge]]:
        """By task, the edges from it."""
        found: list[list[Edge]] = [[] for _ in self.tasks]
        for edge in self.edges:
            found[edge.source].append(edge)
        return found

    @cached_property
    def payload(self) -> dict[tuple[int, int], int]:
        """By two tasks with an edge, its bytes: of parallel edges, the most, which take longest."""
        return {(edge.source, edge.target): edge.payload for edge in sorted(self.edges, key=lambda edge: edge.payload)}

    @cached_property
    def order(self) -> list[int]:
        """The tasks in a topological order; none if they depend on each other in a cycle."""
        graph: dict[int, list[int]] = {i: [] for i in range(self.n)}
        for u, v in self.payload:
            graph[v].append(u)
        try:
            return list(TopologicalSorter(graph).static_order())
        except CycleError:
            return []

    @cached_property
    def group_memory(self) -> list[int]:
        """By group."""
        return [sum(self.memory[i] for i in each) for each in self.members]

    @cached_property
    def busy(self) -> Table:
        """Ticks for which each task keeps a device of each class from others."""
        return cells(lambda p, many: 0 if many else p, self.duration, [self.devices.parallel] * self.n)

    @cached_property
    def fits(self) -> list[list[bool]]:
        """By group and class: whether all its tasks may run there, and fit alone."""
        rooms = list(enumerate(self.devices.capacity))
        return [
            [all(self.feasible[i][c] for i in members) and self.need(g, c) <= room for c, room in rooms]
            for g, members in enumerate(self.members)
        ]

    def need(self, g: int, c: int) -> int:
        """Bytes that a group takes of an empty device of a class."""
        need = self.group_memory[g]
        if self.problem.memory_model == "peak":  # a task that takes no time is live at no tick
            live = [self.tasks[i] for i in self.members[g] if self.duration[i][c] > 0]
            need += max((int(self.problem.output[i]) + int(self.problem.scratch[i]) for i in live), default=0)
        return need

    def may_share(self, g: int, h: int, c: int) -> bool:
        """Whether a device of a class can hold two groups."""
        held = self.group_memory[g] + (self.group_memory[h] if g != h else 0)
        return (g, h) not in self.apart and held <= self.devices.capacity[c] and self.fits[g][c] and self.fits[h][c]

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

    @cached_property
    def head(self) -> Table:
        """By task and class: the tick before which it does not start."""
        return Heads(self, False).found()

    @cached_property
    def tail(self) -> Table:
        """By task and class: what follows its end."""
        return Heads(self, True).found()

    @cached_property
    def followed(self) -> list[int]:
        """Edges that were followed for heads, and for tails, once these are known."""
        return []

    @cached_property
    def open(self) -> list[list[bool]]:
        """By task and class: whether it may run there, and ends with its tail at some tick."""
        return self.in_time(INFINITE - 1)

    def in_time(self, end: int) -> list[list[bool]]:
        """By task and class: whether a schedule that ends by a tick may run it there."""
        ticks = self.head, self.duration, self.tail
        return cells(lambda may, *each: may and sum(each) <= end, self.allowed, *ticks)

    def least(self, i: int, *tables: Table) -> int:
        """The least sum of amounts of a task, over the classes on which it may run."""
        return min((sum(t[i][c] for t in tables) for c, may in enumerate(self.open[i]) if may), default=INFINITE)

    @cached_property
    def longest(self) -> int:
        """The critical path: no task can end and be followed by its tail before the makespan."""
        return max((self.least(i, self.head, self.duration, self.tail) for i in range(self.n)), default=0)

    def table(self, values: Any) -> Table:
        """Values (n, m) of the problem, by task and class."""
        found: Table = values[np.ix_(self.tasks, self.devices.leader)].tolist()
        return found

    def resources(self, renewable: bool) -> dict[str, int]:
        """The numbers of renewable resources, or of budgets, by name."""
        own = self.problem.resources
        return {} if own is None else {name: r for r, name in enumerate(own.names) if own.renewable[r] == renewable}

    def use(self, r: int) -> tuple[Table, int]:
        """What tasks use of a resource or a budget, by class, and how much there is."""
        assert self.problem.resources is not None  # it has the resource
        return self.table(self.problem.resources.amounts(r)), int(self.problem.resources.capacity[r])


class Heads:
    """The heads of a model, by task and class; its tails `backwards`.

    Let L[v][c] be a tick before which task v cannot start on class c, at first its release. If a producer u of v runs
    on another device, its data arrives no earlier than

        remote(u, v) = min over classes a of L[u][a] + duration(u, a) + transfer(a, c).

    Assume that v starts at t. A producer with remote(u, v) > t then runs on the device of v; it ends by t, so it starts
    by t - duration(u, c), and so on for its producers. All these tasks are *tied* to v. They may share the device, fit
    into it, and run one after the other: for every R, those with L >= R end R + their durations or later. If they
    cannot, v starts later than t. Tails are the heads of the reversed graph. There, a task is released by what its
    deadline leaves after it, if deadlines count.
    """

    def __init__(self, model: Model, backwards: bool) -> None:
        classes, links = range(model.k), model.devices.links
        self.model, self.order = model, model.order[::-1] if backwards else model.order
        self.rank = {i: place for place, i in enumerate(self.order)}
        self.outs: list[list[tuple[int, int]]] = [[] for _ in range(model.n)]  # the other task, and bytes
        for (u, v), payload in model.payload.items():
            self.outs[v if backwards else u].append((u if backwards else v, payload))
        # By task: its producers, the arrivals from other devices, and whether the two cannot share one.
        self.ins: list[list[tuple[int, list[int], bool]]] = [[] for _ in range(model.n)]
        rates = [[(a, links[c][a] if backwards else links[a][c]) for a in classes] for c in classes]
        self.sources = [[(a, rate) for a, rate in row if rate is not None] for row in rates]
        self.rates = {rate for row in self.sources for _, rate in row}
        self.most, self.left = max(FOLLOWED // max(model.n * model.k, 1), LEAST), BUDGET
        start = [[ticks] * model.k for ticks in model.after] if backwards else model.release
        self.head = cells(lambda ticks, may: ticks if may else INFINITE, start, model.allowed)

    def found(self) -> Table:
        """Visit the tasks in topological order."""
        model, classes = self.model, range(self.model.k)
        for v in self.order:
            row, late = self.head[v], [0] * model.k
            for u, remote, _ in self.ins[v]:
                before, work = self.head[u], model.duration[u]
                for c in classes:
                    row[c] = max(row[c], min(remote[c], before[c] + work[c]))
                    late[c] = max(late[c], remote[c])
            for c in classes:
                row[c] = min(self._raised(v, c, row[c]) if late[c] > row[c] else row[c], INFINITE)
            for w, payload in self.outs[v]:
                pair = model.group[v], model.group[w]
                self.ins[w].append((v, self._remote(v, payload, pair[0] == pair[1]), pair in model.apart))
        model.followed.append(BUDGET - self.left)
        return self.head

    def _remote(self, u: int, payload: int, together: bool) -> list[int]:
        """By class of the consumer: the least arrival of data from another device."""
        if together:
            return [INFINITE] * self.model.k
        end = [start + work for start, work in zip(self.head[u], self.model.duration[u], strict=True)]
        ticks = {rate: charge(rate, payload) for rate in self.rates}
        return [min((end[a] + ticks[rate] for a, rate in sources), default=INFINITE) for sources in self.sources]

    def _raised(self, v: int, c: int, t: int) -> int:
        """The head of v on c, by raising t as long as tied tasks leave too little time."""
        for _ in range(ROUNDS):
            if t >= INFINITE or self.left <= 0:
                break
            fits, busy, change = self._tied(v, c, t)
            if fits and busy <= t:
                break
            t = min(busy, change) if fits else change
        return t

    def _tied(self, v: int, c: int, t: int) -> tuple[bool, int, int]:
        """Whether the tasks tied to v fit, the tick from which they leave the device, and when fewer are tied."""
        model, head, rank = self.model, self.head, self.rank
        after, pending, change, fits, loose, followed, work = {v: 0}, [(-rank[v], v)], INFINITE, True, False, 0, 0
        while pending and followed < self.most:
            u = heapq.heappop(pending)[1]
            if not pending and not loose:  # all tied tasks so far run between u's start and t
                after[u] = max(after[u], work)
            leaf, later = True, after[u]
            followed += len(self.ins[u])
            for w, remote, parted in self.ins[u]:
                if remote[c] > t - later:
                    leaf, behind = False, later + model.duration[w][c]
                    change = min(change, remote[c] + later)
                    fits = fits and not parted and head[w][c] < INFINITE
                    if w not in after:
                        work += model.busy[w][c]
                        heapq.heappush(pending, (-rank[w], w))
                    after[w] = behind if behind > after.get(w, -1) else after[w]
            loose = loose or leaf
        self.left -= followed
        fits = fits and sum(model.group_memory[g] for g in {model.group[w] for w in after}) <= model.devices.capacity[c]
        busy, total = 0, 0
        for start, ticks in sorted([(head[w][c], model.busy[w][c]) for w in after if w != v], reverse=True):
            total += ticks
            busy = max(busy, start + total)
        return fits, busy, change


def joined(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """By number, one of the numbers that pairs connect with it, the same for all of these."""
    up = list(range(count))

    def root(g: int) -> int:
        while up[g] != g:
            up[g] = up[up[g]]
            g = up[g]
        return g

    for g, h in pairs:
        up[root(g)] = root(h)
    return [root(g) for g in range(count)]


def model_of(problem: Problem) -> Model:
    """The whole problem as a model."""
    return block_of(problem, Devices(problem), range(problem.n_tasks))


def block_of(problem: Problem, devices: Devices, inner: Iterable[int], first: Cut = None, last: Cut = None) -> Model:
    """The model of the tasks between two cuts, which run on given devices.

    The first cut takes no time; without one, the block begins at tick 0, and releases hold. Each device of a cut is a
    class alone in `devices`.
    """
    ends = dict(cut for cut in (first, last) if cut is not None)
    tasks = tuple(sorted({*inner, *ends}))
    place, groups = {task: i for i, task in enumerate(tasks)}, dict[int, int]()
    cells = np.ix_(tasks, devices.leader)
    feasible: list[list[bool]] = problem.feasible[cells].tolist()
    duration: Table = problem.duration[cells].tolist()
    for task, d in ends.items():
        row = feasible[place[task]]
        feasible[place[task]] = [may and devices.leader[c] == d for c, may in enumerate(row)]
    if first is not None:
        duration[place[first[0]]] = [0] * len(devices.leader)
    edges = [e for task in tasks for e in range(*problem.out_start[task : task + 2].tolist())]
    pairs, columns = problem.separation, (problem.edge_source, problem.edge_target, problem.payload, problem.shared)
    rows = zip(*(each[edges].tolist() for each in columns), strict=True)
    held = problem.resident if problem.memory_model == "peak" else problem.resident + problem.output + problem.scratch
    model = Model(
        problem=problem, devices=devices, tasks=tasks, feasible=feasible, duration=duration,
        group=[groups.setdefault(int(problem.group[i]), len(groups)) for i in tasks],
        release=[[int(problem.release[i]) if first is None else 0] * len(devices.leader) for i in tasks],
        after=[0] * len(tasks), memory=[int(held[i]) for i in tasks],
        edges=[Edge(place[u], place[v], bytes_, many) for u, v, bytes_, many in rows if v in place],
        parted=tuple((place[i], place[j]) for i, j in pairs[np.isin(pairs, tasks).all(axis=1)].tolist()),
        cuts=(first, last), begins=first is None,
    )  # fmt: skip
    if len(model.order) < len(tasks):
        raise CertificateError("the tasks of the problem depend on each other in a cycle")
    return model


def timely(problem: Problem) -> tuple[Model, int]:
    """The problem with its deadlines as tails, and a tick T by which some schedule ends if any is feasible.

    So a claim that the makespan exceeds T proves that no schedule is feasible. T is the last deadline, or the end of
    all work and transfers without a pause. It counts no ticks in which devices swap, and neither do claims
    (`swapping`).
    """
    model = model_of(problem)
    rates = {rate for row in model.devices.links for rate in row if rate is not None}
    moving = sum(max((charge(rate, edge.payload) for rate in rates), default=0) for edge in model.edges)
    working = sum(max(row, default=0) for row in model.duration)
    end = min(max(problem.release.tolist(), default=0) + working + moving, max(problem.deadline.tolist(), default=0))
    return within(replace(model, begins=False), end), end


def within(model: Model, end: int) -> Model:
    """A model that begins at tick 0 with its deadlines as tails, for schedules that end by a tick.

    A deadline before it is met if end - deadline ticks remain at the end of the task. Classes on which a task cannot
    end in time with its tail are left out, in some rounds.
    """
    deadlines = (int(model.problem.deadline[task]) for task in model.tasks)
    late = [0 if deadline == UNLIMITED else max(end - deadline, 0) for deadline in deadlines]
    model = replace(model, after=late)
    for _ in range(NARROWED if any(late) else 0):
        feasible = model.in_time(end)
        if feasible == model.allowed or not model.possible:
            break
        model = replace(model, feasible=feasible)
    return model


def model_hash(model: Model, metric: str, value: int | str) -> str:
    """SHA-256 of what a trusted claim is about: a metric of the tasks, with their windows, and its least value."""
    names, devices = model.problem.task_names, model.problem.device_names
    cuts = [None if cut is None else [names[cut[0]], devices[cut[1]]] for cut in model.cuts]
    stated = {
        "problem": model.problem.fingerprint(), "metric": metric, "value": value, "after": model.after, "cuts": cuts,
        "release": [0 if cuts[0] else int(model.problem.release[task]) for task in model.tasks],
        "tasks": [names[task] for task in model.tasks],
    }  # fmt: skip
    return sha256(json.dumps(stated, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
