"""The compiled problem: read-only integer arrays, with references resolved and units converted.

Times are integer ticks and sizes integer bytes, so that every check is exact. There are n tasks, m devices and e edges;
tasks and devices are in the order of the document.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from importlib import import_module
from typing import Any, Literal, get_args
from weakref import WeakKeyDictionary

import numpy as np

from placeopt.errors import UsageError, counted, listing, visible
from placeopt.model.arrays import Bool, Int, by_index, choice, csr
from placeopt.model.layout import Layout
from placeopt.model.members import Members, members_by_resource
from placeopt.model.pipeline import Pipeline
from placeopt.model.resources import Resources
from placeopt.model.rules import Rule
from placeopt.model.setups import Setups
from placeopt.model.shared_links import SharedLinks
from placeopt.model.tiers import Tiers
from placeopt.model.unavailability import Unavailability
from placeopt.model.units import exact, is_number, time_text

Contention = Literal["none", "port", "half_duplex"]
MemoryModel = Literal["sum", "peak"]
Metric = Literal[
    "makespan",
    "total_cost",
    "max_load",
    "communication",
    "energy",
    "memory_balance",
    "relocation",
    "tardiness",
    "price",
    "devices",
    "period",
]

UNLIMITED = int(np.iinfo(np.int64).max)
"""Capacity of a device without a memory limit, and deadline of a task without a deadline."""

LARGEST_ALIGNMENT = 2**30
"""Bytes; for all buffers together, alignments and sizes then stay below 2^62."""

NANO = 10**9
PARTS = 10**6
"""memory_balance is counted in parts per million of a capacity."""

COARSE = Fraction(1, 20)
"""Rounding that changes a value by a larger share is reported."""


def ratio_ceil(amount: Any, num: Any, den: Any) -> Any:
    """ceil(amount * num / den) for integers or integer arrays.

    Nothing overflows when num * den < 2**62 and the result fits.
    """
    whole = amount // den
    return whole * num - (-((amount - whole * den) * num) // den)


def transfer_ticks(payload: Any, latency: Any, num: Any, den: Any) -> Any:
    """Ticks that `payload` bytes take between two distinct devices, for integers or integer arrays.

    latency + ceil(payload * num / den), where num ticks move den bytes. All code but the verifier uses this definition.
    """
    return latency + ratio_ceil(payload, num, den)


@dataclass(frozen=True, slots=True)
class Rounding:
    """The time in a document that rounding to whole ticks changes most."""

    share: float
    """|rounded - stated| / stated: 0.4 where 1 ms becomes 1.4 ms."""
    where: str
    """Its path in the document: tasks.conv.time."""

    def to_dict(self) -> dict[str, Any]:
        """The rounding as plain data."""
        return {"share": self.share, "where": self.where}


@dataclass(frozen=True, slots=True)
class Efficiency:
    """The fractions of a device's rates that its tasks reach, where durations depend on them."""

    devices: str
    """Key of the devices in the document."""
    like: str | None
    """The device of the catalogue; None if the document states all rates."""
    compute: Fraction
    memory: Fraction
    """Factors of the speed and of the memory bandwidth."""
    tasks: int
    """Number of tasks whose duration on these devices depends on a factor below 1."""

    def to_dict(self) -> dict[str, Any]:
        """The efficiency as plain data."""
        return {
            "devices": self.devices,
            "like": self.like,
            "compute": float(self.compute),
            "memory": float(self.memory),
            "tasks": self.tasks,
        }


@dataclass(frozen=True, slots=True, init=False)
class Term:
    """A metric and its weight in an objective; a weight of 0.1 is exactly 1/10.

    Raises
    ------
    UsageError
        If the metric is unknown or the weight is negative.
    """

    metric: Metric
    weight: Fraction

    def __init__(self, metric: Metric, weight: Fraction | float = 1) -> None:
        choice("metric", metric, get_args(Metric))
        if not is_number(weight) or weight < 0:
            raise UsageError(f"the weight of {metric} is {weight}; expected a number that is not negative")
        object.__setattr__(self, "metric", metric)
        object.__setattr__(self, "weight", exact(weight))


@dataclass(frozen=True, slots=True)
class Objective:
    """What to minimise: weighted sums of metrics in lexicographic order, the most important first.

        Objective(((Term("makespan"), Term("energy", 0.5)), (Term("communication"),)))

    Raises
    ------
    UsageError
        If the objective has no level, or a level is not a tuple of terms.
    """

    levels: tuple[tuple[Term, ...], ...] = ((Term("makespan"),),)

    def __post_init__(self) -> None:
        if not isinstance(self.levels, tuple):
            raise UsageError(f"levels of the objective is {self.levels!r}; expected a tuple of levels")
        if not self.levels or not all(self.levels):
            raise UsageError("an objective needs at least one level, and a metric at every level")
        for place, level in enumerate(self.levels):
            if not isinstance(level, tuple) or not all(isinstance(term, Term) for term in level):
                raise UsageError(f"levels[{place}] of the objective is {level!r}; expected a tuple of Terms")

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Every metric named, in order of first appearance."""
        return tuple(dict.fromkeys(term.metric for level in self.levels for term in level))

    @property
    def leading_metric(self) -> Metric | None:
        """The metric of the first level, if that is one metric of weight 1; else None."""
        first, *others = self.levels[0]
        return first.metric if not others and first.weight == 1 else None

    @property
    def single(self) -> Metric | None:
        """The metric if the objective is one metric with weight 1; else None."""
        return self.leading_metric if len(self.levels) == 1 else None

    def __str__(self) -> str:
        return ", then ".join(" + ".join(_term_text(term) for term in level) for level in self.levels)


def _term_text(term: Term) -> str:
    if term.weight == 1:
        return term.metric
    if term.metric == "relocation" and term.weight.numerator == 1:  # divided by the number of runs
        return f"{term.metric} / {term.weight.denominator}"
    return f"{float(term.weight):g} {term.metric}"


DELAYS = {
    "tiers": "memory tiers",
    "unavailable": "devices that are unavailable for a time",
    "setups": "setup times",
    "shared_links": "shared links",
    "resources": "resources",
    "parallel": "devices that run several tasks at once",
}
"""What messages call the rules that only cause delays, by their names in `Problem.rules`."""

KINDS = {**DELAYS, "machines": "modes and teams in a pipeline", "budgets": "budgets", "limits": "limits of metrics"}
"""The same for all rules that not all solvers support."""

RULES = ("pipeline", "tiers", "unavailable", "setups", "shared_links", "resources", "layout")
"""The fields of `Problem` that are rules of execution (`placeopt.model.rules`)."""

BUSY: dict[str, Any] = {"unavailable": None, "setups": None}
"""Values without the rules that keep devices idle between tasks."""

CATALOGUE = "x-catalogue"
"""The section of `Problem.provenance` with the device of the catalogue of each device that states one with `like`."""

CONSOLIDATE = Fraction(1, 100)
"""The share by which plans of imported models may be worse, for fewer pieces; costs are hardly more accurate."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Problem:
    """A compiled placement problem.

    Attributes
    ----------
    resolution
        Seconds per tick.
    duration
        (n, m) ticks of each task on each device; 0 where not feasible. To search for the fastest device, use
        `feasible_duration`.
    feasible
        (n, m), whether the device may run the task.
    resident, output, scratch
        (n,) bytes held on the task's device: for the whole run; from the task's start until its last consumer has the
        data; while the task runs.
    release
        (n,) earliest start of each task, in ticks.
    deadline
        (n,) latest end of each task, in ticks; UNLIMITED without a deadline.
    capacity
        (m,) bytes, of all memory tiers together; UNLIMITED without a limit.
    edge_source, edge_target
        (e,) producer and consumer of each edge, sorted by producer.
    payload
        (e,) bytes.
    shared
        (e,), whether the edge carries its producer's output: one transfer then serves all such consumers on a device.
    latency
        (m, m) ticks from the row's device to the column's; zero on the diagonal.
    byte_ticks_num, byte_ticks_den
        (m, m): num ticks move den bytes (the exact inverse of the bandwidth); num is zero for an infinite bandwidth.
        num * den is below 2**62, here and in the two pairs below.
    power_num, power_den
        (m,): num nanojoules are spent in den ticks of computing.
    byte_energy_num, byte_energy_den
        (m, m): num nanojoules move den bytes.
    due, due_weight
        (n,) due date of each task, in ticks, UNLIMITED without one; (n,) weight of a tick after it.
    price
        (n, m) price of each task on each device, in billionths; 0 where not feasible.
    relocation
        (n, m) ticks to move a task from its current device to each device and start it there; 0 where it stays or is
        not feasible (`placeopt.model.objective`).
    runs_before_next_change
        Number of runs that the placement serves. The weight of `relocation` in the objective is already divided by it.
    group
        (n,) colocation group of each task, 0..g-1 in order of first appearance; a task without one is a group of its
        own. Tasks of one group share a device.
    separation
        (k, 2) pairs of tasks that must be on different devices, each the smaller index first.
    forward
        (n,) the task whose gradient each task computes; its own index if it is not a backward task. Without a pipeline,
        it does not affect feasibility or value, and only passes use it.
    pipeline
        How runs follow each other, if the objective contains `period`; else None.
    alignment
        Bytes of which the offsets of buffers are multiples (`placeopt.model.schedule.Offsets`); None if schedules need
        no offsets.
    layout
        Outputs that may share bytes, which `output` counts as 0, and reserved bytes (`placeopt.model.layout`); None if
        there are neither.
    tiers
        The memory tiers of the devices (`placeopt.model.tiers`); None if each device has one only.
    unavailable
        The windows in which devices run no task (`placeopt.model.unavailability`); None if there are none.
    setups
        The setup times between tasks of different families (`placeopt.model.setups`); None if there are none.
    shared_links
        Links that several pairs of devices transfer over (`placeopt.model.shared_links`); None if there are none.
    resources
        What tasks share besides devices, and which devices run several tasks at once (`placeopt.model.resources`); None
        if there are neither.
    limits
        Metrics and the largest value that a schedule may have, each metric once.
    consolidate
        Share by which each level may be worse than the solver's, to use fewer devices, segments and transfers
        (`placeopt.orchestration.consolidation`); 0 for none. Solvers ignore it. The fingerprint does not include it.
    rounding
        The time that was rounded most at compilation; None if all times are whole ticks or none were stated. The
        fingerprint does not include it.
    efficiency
        The efficiencies below 1 on which durations depend, by key of devices in the document. The durations contain
        them. The fingerprint does not include them.
    notes
        Notes about amounts of the document that are probably meant otherwise. The fingerprint does not include them.
    provenance
        Where the problem comes from, as its document states it: `source`, and the sections `x-...`, such as `x-torch`,
        which exports read; `x-catalogue` has the device of the catalogue of each device with `like`. Documents keep it.
        Smaller problems have none, as it is about all tasks. The fingerprint does not include it.
    out_start, in_start, in_edge
        The edges as CSR in both directions: task i has the out-edges out_start[i]..out_start[i+1] and the in-edges
        in_edge[in_start[i]:in_start[i+1]].
    order
        (n,) a topological order: tasks without producers by index, then each once all its producers have been listed.
    device_class
        (m,) device class of each device, 0.. in order of first appearance: devices of one class are interchangeable
        (same durations, feasibility, memory, power, links and relocation).
    """

    name: str
    description: str
    resolution: Fraction
    task_names: tuple[str, ...]
    device_names: tuple[str, ...]
    device_types: tuple[str, ...]
    duration: Int
    feasible: Bool
    resident: Int
    output: Int
    scratch: Int
    release: Int
    deadline: Int
    capacity: Int
    edge_source: Int
    edge_target: Int
    payload: Int
    shared: Bool
    latency: Int
    byte_ticks_num: Int
    byte_ticks_den: Int
    power_num: Int
    power_den: Int
    byte_energy_num: Int
    byte_energy_den: Int
    due: Int
    due_weight: Int
    price: Int
    relocation: Int
    runs_before_next_change: Fraction
    group: Int
    separation: Int
    forward: Int
    pipeline: Pipeline | None
    objective: Objective
    contention: Contention
    memory_model: MemoryModel
    alignment: int | None
    layout: Layout | None
    tiers: Tiers | None
    unavailable: Unavailability | None
    setups: Setups | None
    shared_links: SharedLinks | None
    resources: Resources | None
    limits: tuple[tuple[Metric, int], ...]
    consolidate: Fraction
    rounding: Rounding | None
    efficiency: tuple[Efficiency, ...]
    notes: tuple[str, ...]
    provenance: Mapping[str, Any]
    out_start: Int
    in_start: Int
    in_edge: Int
    order: Int
    device_class: Int

    def __post_init__(self) -> None:
        """Copy arrays that are not contiguous, such as columns of another problem: loops expect entries in a row."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray) and not value.flags.c_contiguous:
                object.__setattr__(self, field.name, np.ascontiguousarray(value))

    def __repr__(self) -> str:
        name = f"{visible(self.name)}: " if self.name else ""
        return f"<Problem {name}{sizes(self)}>"

    def _repr_html_(self) -> str:
        # Not an import statement, since that module imports this one.
        text: str = import_module("placeopt.model.problem_html").problem_html(self)
        return text

    @property
    def n_tasks(self) -> int:
        """Number of tasks, n."""
        return len(self.task_names)

    @property
    def n_devices(self) -> int:
        """Number of devices, m."""
        return len(self.device_names)

    @property
    def n_edges(self) -> int:
        """Number of edges, e."""
        return len(self.edge_source)

    @property
    def n_groups(self) -> int:
        """Number of colocation groups, g, single tasks included."""
        return int(self.group.max()) + 1 if self.n_tasks else 0

    @property
    def members(self) -> Members | None:
        """(m,) the devices that each one occupies, itself or as a mode or a team of others; None without modes."""
        if self.pipeline is not None:
            machines = self.pipeline.machines
            first = 0 if machines is None else 1 + max(map(max, machines), default=-1)
            # The compiler numbers machines as devices. Other machines need not be devices.
            return machines if machines is not None and machines[:first] == tuple((d,) for d in range(first)) else None
        if self.resources is None:
            return None
        if self not in _members:
            _members[self] = members_by_resource(self.device_names, self.feasible, self.resources)
        return _members[self]

    @property
    def has_modes(self) -> bool:
        """Whether some devices are modes or teams, which occupy other devices (`placeopt.io.compiler.modes`)."""
        return self.members is not None

    @property
    def stated(self) -> dict[str, Rule]:
        """The rules of execution that are not None, by field."""
        return {name: rule for name in RULES if (rule := getattr(self, name)) is not None}

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules that hold besides those of tasks, links and memory (`KINDS`)."""
        found = [kind for name, rule in self.stated.items() for kind in rule.kinds(name)]
        return (*found, "limits") if self.limits else tuple(found)

    @property
    def parallel(self) -> Bool:
        """(m,), whether the device runs several tasks at once."""
        return np.zeros(self.n_devices, dtype=np.bool_) if self.resources is None else self.resources.parallel

    def within_budgets(self, device: Int) -> bool:
        """Whether a placement (n,) keeps all budgets."""
        return self.resources is None or self.resources.within_budgets(device)

    @property
    def latest_opening(self) -> int:
        """The tick from which neither release times nor rules, apart from swapping, close a device for a task."""
        return max([int(self.release.max(initial=0)), *(rule.over() for rule in self.stated.values())])

    def delays(self, feasible: Bool) -> Int:
        """(n,) ticks that rules add before each task at most, on the devices (n, m) that may run it."""
        zero: Any = np.zeros(self.n_tasks, dtype=np.int64)
        return np.asarray(sum((rule.delays(feasible) for rule in self.stated.values()), zero))

    @property
    def contends(self) -> bool:
        """Whether transfers may wait for each other: with port contention, or with shared links."""
        return self.contention != "none" or self.shared_links is not None

    @property
    def memory(self) -> Int:
        """(n,) bytes of each task under the `sum` memory model."""
        return self.resident + self.output + self.scratch

    def transfer(self, payload: Int | int, source: Int | int, target: Int | int) -> Int:
        """Ticks of transfers between devices, elementwise; zero on the same device."""
        ticks = transfer_ticks(
            np.asarray(payload, dtype=np.int64),
            self.latency[source, target],
            self.byte_ticks_num[source, target],
            self.byte_ticks_den[source, target],
        )
        return np.where(np.asarray(source) == np.asarray(target), 0, ticks)

    def feasible_duration(self) -> np.ma.MaskedArray[Any, np.dtype[np.int64]]:
        """(n, m) `duration` as a masked array, masked where not feasible.

        `min`, `argmin`, `mean` and `sort` ignore masked entries: `problem.feasible_duration().argmin(axis=1)` is the
        fastest device of each task. The result shares the memory of `duration`; the mask takes n * m bytes.
        """
        return np.ma.MaskedArray(self.duration, mask=~self.feasible)

    def group_feasible(self) -> Bool:
        """(g, m), whether every task of the group may run on the device."""
        if self.n_groups == self.n_tasks:
            return self.feasible.copy()
        members = np.argsort(self.group, kind="stable")
        first = np.searchsorted(self.group[members], np.arange(self.n_groups))
        return np.asarray(np.logical_and.reduceat(self.feasible[members], first, axis=0))

    def buffer_bytes(self, kind: str) -> Int:
        """(n,) bytes of each task's buffer of a kind; for outputs that may share bytes, `output` counts none."""
        sizes: Int = self.layout.output if kind == "output" and self.layout is not None else getattr(self, kind)
        return sizes

    def to_document(self) -> dict[str, Any]:
        """The problem as a document in the format of problem files: plain data, from which `po.compile` makes it again.

        Times are ticks and sizes bytes, without units. A problem that no file may state, such as one with a deadline
        that cannot be met, has a document too; compiling it is the error.

        Raises
        ------
        UsageError
            If the format cannot state a part of the problem, such as parallel edges.
        """
        # Not an import statement, since that module imports this one.
        document: dict[str, Any] = import_module("placeopt.model.documents").exact_document(self)
        return document

    def fingerprint(self) -> str:
        """A short hash of everything that decides which schedules are feasible, and their values.

        Unused relocation is left out, so that such a problem keeps the hash of versions without relocation.
        """
        digest = hashlib.sha256()
        idle = {"name", "description", "forward", "consolidate", "rounding", "efficiency", "notes", "provenance"}
        idle |= {name for name in ("relocation", "price") if not getattr(self, name).any()}
        idle |= set() if self.limits else {"limits"}
        idle |= set() if self.alignment is not None else {"alignment"}
        idle |= {"due", "due_weight"} if (self.due == UNLIMITED).all() else set()
        idle |= set() if self.runs_before_next_change != 1 else {"runs_before_next_change"}
        idle -= set() if self.pipeline is None else {"forward"}
        idle |= set(RULES)
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in idle}
        for name, rule in self.stated.items():
            values |= rule.hashed(name)
        for name, value in values.items():
            digest.update(name.encode())
            if isinstance(value, np.ndarray):
                digest.update(str(value.shape).encode())
                digest.update(np.ascontiguousarray(value).ravel().data)
            else:
                digest.update(repr(value).encode())
        return digest.hexdigest()[:16]


_members: WeakKeyDictionary[Problem, Members | None] = WeakKeyDictionary()
"""The members of problems with resources, which reports ask for repeatedly."""


def check_problem(caller: str, problem: object) -> None:
    """Reject anything but a `Problem`."""
    if not isinstance(problem, Problem):
        kind = type(problem).__name__
        way = _WAYS.get(kind, "placeopt.load makes one from a file")
        raise UsageError(f"{caller} takes a Problem, got {kind}; {way}")


_WAYS = {
    "dict": "placeopt.compile makes one from a document",
    "Model": "its method problem() returns one",
    "Imported": "placeopt.compile makes one from its document",
    "DaskImport": "placeopt.compile makes one from its document",
    "Serving": "placeopt.solve_serving takes a serving problem",
}
"""How a caller gets a problem from what was passed, by the name of its class."""


def sizes(problem: Problem) -> str:
    """The numbers of tasks, edges and devices, as text."""
    own = problem.n_devices
    if problem.members is not None:
        own = sum(team == (d,) for d, team in enumerate(problem.members))
    counts = (problem.n_tasks, "task"), (problem.n_edges, "edge"), (own, "device")
    more = problem.n_devices - own
    text = ", ".join(counted(number, noun) for number, noun in counts)
    return f"{text}, {more:,} {'mode or team' if more == 1 else 'modes and teams'}" if more else text


def rounding_text(problem: Problem) -> str | None:
    """How much rounding to ticks changes the times of the document at most; None if that is little."""
    rounding = problem.rounding
    if rounding is None or rounding.share <= COARSE:
        return None
    share = f"{rounding.share:,.0%}" if rounding.share < 1e4 else "more than 1,000,000%"
    tick = time_text(1, problem.resolution)
    return f"times are rounded to the {tick} tick, by up to {share} ({rounding.where}); a finer resolution avoids it"


def document_facts(problem: Problem) -> list[tuple[str, str]]:
    """Labels and texts of what the document says less clearly than it seems: efficiencies, rounding, notes."""
    rounded = rounding_text(problem)
    return [
        *_efficiency_facts(problem),
        *(() if rounded is None else (("rounding", rounded),)),
        *(("" if place else "note", text) for place, text in enumerate(problem.notes)),
    ]


def _efficiency_facts(problem: Problem) -> list[tuple[str, str]]:
    """Labels and texts of the efficiencies on which durations depend: one text for all devices with the same ones."""
    alike: dict[tuple[Fraction, Fraction], list[str]] = {}
    for found in problem.efficiency:
        alike.setdefault((found.compute, found.memory), []).append(found.devices)
    texts = []
    for factors, devices in alike.items():
        rates = zip(factors, ("speed", "memory bandwidth"), strict=True)
        reached = " and ".join(f"{float(factor):.4g} of the {rate}" for factor, rate in rates if factor < 1)
        texts.append(f"{reached}: {listing(devices)}")
    return [("" if place else "efficiency", text) for place, text in enumerate(texts)]


def group_memory(problem: Problem) -> Int:
    """(g,) bytes of all tasks of each colocation group, under the `sum` memory model."""
    if problem.n_groups == problem.n_tasks:  # each task is a group, in order
        return problem.memory
    return by_index(np.add, problem.group, problem.memory, problem.n_groups)


def group_separation(problem: Problem) -> tuple[Int, Int]:
    """Separated groups as CSR, start (g + 1,) and other (p,): group k must be apart from other[start[k]:start[k + 1]].

    That includes k itself if two of its tasks must be apart.
    """
    both = np.concatenate((problem.separation, problem.separation[:, ::-1]))
    return csr(problem.n_groups, problem.group[both])


def devices_by_class(problem: Problem) -> list[list[int]]:
    """The devices of each device class, in order of first appearance."""
    classes: dict[int, list[int]] = {}
    for device, label in enumerate(problem.device_class.tolist()):
        classes.setdefault(label, []).append(device)
    return list(classes.values())
