"""The compiled problem: read-only arrays, no names to resolve, no units left.

All times are integer ticks, all sizes integer bytes, so that every check is exact.
n tasks, m devices, e edges; tasks and devices stand in the document's order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from placeopt.cycles import find_cycle, topological_order
from placeopt.errors import UsageError, listing, visible
from placeopt.inputs import choice, flags, names, task_pairs, whole_numbers
from placeopt.labels import by_first_appearance, device_classes

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

Contention = Literal["none", "port"]
MemoryModel = Literal["sum", "peak"]
Metric = Literal["makespan", "total_cost", "max_load", "communication", "energy", "memory_balance", "relocation"]

UNLIMITED = int(np.iinfo(np.int64).max)
"""Capacity of a device without a stated memory, deadline of a task without one."""

NANO = 10**9
PARTS = 10**6
"""memory_balance is counted in parts per million of a capacity."""


def ratio_ceil(amount: Any, num: Any, den: Any) -> Any:
    """ceil(amount * num / den) for integers or integer arrays.

    Nothing overflows when num * den < 2**62 and the result fits.
    """
    whole = amount // den
    return whole * num - (-((amount - whole * den) * num) // den)


def transfer_ticks(payload: Any, latency: Any, num: Any, den: Any) -> Any:
    """Ticks that `payload` bytes take between two distinct devices, for integers or integer arrays.

    latency + ceil(payload * num / den), where num ticks move den bytes. The one definition of a
    transfer's duration; only the verifier has its own.
    """
    # Spelt out rather than calling ratio_ceil, so that compiled kernels can inline it alone.
    whole = payload // den
    return latency + whole * num - (-((payload - whole * den) * num) // den)


COARSE = Fraction(1, 20)
"""Rounding that changes a value by a larger share is reported."""


@dataclass(frozen=True, slots=True)
class Rounding:
    """The time of a document that rounding to whole ticks changes most.

    Attributes
    ----------
    share
        |rounded - stated| / stated: 0.4 where 1 ms becomes 1.4 ms.
    where
        Its place in the document: tasks.conv.time.
    """

    share: float
    where: str

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"share": self.share, "where": self.where}


@dataclass(frozen=True, slots=True)
class Term:
    """A metric and its weight in an objective.

    Raises
    ------
    UsageError
        If there is no such metric, or the weight is negative: no solver makes a metric large.
    """

    metric: Metric
    weight: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        choice("metric", self.metric, get_args(Metric))
        if not self.weight >= 0:
            raise UsageError(f"the weight of {self.metric} is {self.weight}; expected a number that is not negative")


@dataclass(frozen=True, slots=True)
class Objective:
    """What to minimise: weighted sums in lexicographic order, the most important first.

    Raises
    ------
    UsageError
        If the objective has no levels, or one of them no metric.
    """

    levels: tuple[tuple[Term, ...], ...] = ((Term("makespan"),),)

    def __post_init__(self) -> None:
        if not self.levels or not all(self.levels):
            raise UsageError("an objective needs at least one level, and a metric at every level")

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Every metric named, in order of first appearance."""
        return tuple(dict.fromkeys(term.metric for level in self.levels for term in level))

    @property
    def single(self) -> Metric | None:
        """The metric, when the objective is just one with weight 1."""
        if len(self.levels) == 1 and len(self.levels[0]) == 1 and self.levels[0][0].weight == 1:
            return self.levels[0][0].metric
        return None

    def __str__(self) -> str:
        return ", then ".join(" + ".join(_term_text(term) for term in level) for level in self.levels)


def _term_text(term: Term) -> str:
    if term.weight == 1:
        return term.metric
    if term.metric == "relocation" and term.weight.numerator == 1:  # divided by the runs that it serves
        return f"{term.metric} / {term.weight.denominator}"
    return f"{float(term.weight):g} {term.metric}"


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A placement problem, ready to be solved.

    Attributes
    ----------
    resolution
        Seconds per tick.
    duration
        (n, m) ticks of a task on a device; 0 where not feasible.
    feasible
        (n, m), whether the device may run the task.
    resident, output, scratch
        (n,) bytes held for the whole run; from the task's start until its last consumer has its
        data; while it runs. All three on the task's own device.
    release
        (n,) ticks before which a task may not start.
    deadline
        (n,) ticks by which a task must have ended, UNLIMITED where it states none.
    capacity
        (m,) bytes, UNLIMITED where the device states none.
    edge_source, edge_target
        (e,) producer and consumer of each edge, sorted by producer.
    payload
        (e,) bytes.
    shared
        (e,), whether the edge carries its producer's output: one transfer then serves every
        such consumer on the same device.
    latency
        (m, m) ticks from the row's device to the column's; zero on the diagonal.
    byte_ticks_num, byte_ticks_den
        (m, m): num ticks move den bytes (the inverse of a bandwidth, exactly); num is zero for an
        infinite bandwidth. num * den is below 2**62, here and in the two pairs below.
    power_num, power_den
        (m,): num nanojoules are spent in den ticks of computing.
    byte_energy_num, byte_energy_den
        (m, m): num nanojoules move den bytes.
    relocation
        (n, m) ticks that it takes to have a task on a device from now on, in place of where it is now: its data moves
        there and it starts up. 0 where it stays, and where not feasible (`placeopt.relocation`).
    runs_before_next_change
        How many runs the placement serves. The weights of `relocation` in the objective are divided by it already.
    group
        (n,) colocation group of each task, 0..g-1 in order of first appearance; a task in no
        group is a group of its own. Tasks of one group share a device.
    separation
        (k, 2) pairs of tasks that must be on different devices, each the smaller index first.
    forward
        (n,) the task whose gradient each task computes; its own index for one that is no backward task. It decides
        nothing: passes look at it.
    rounding
        The time that was rounded most when the problem was compiled; None if all are whole ticks or none were stated.
        It describes how the problem was made; the fingerprint does not include it.
    out_start, in_start, in_edge
        The edges as CSR both ways: out-edges of task i are out_start[i]..out_start[i+1], its in-edges
        in_edge[in_start[i]:in_start[i+1]].
    order
        (n,) a topological order: the tasks without producers by index, then each as its last producer goes by.
    device_class
        (m,) class of each device, 0.. in order of first appearance: devices of one class are
        interchangeable (same durations, feasibility, capacity, power, links and relocation).
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
    relocation: Int
    runs_before_next_change: Fraction
    group: Int
    separation: Int
    forward: Int
    objective: Objective
    contention: Contention
    memory_model: MemoryModel
    rounding: Rounding | None
    out_start: Int
    in_start: Int
    in_edge: Int
    order: Int
    device_class: Int

    def __repr__(self) -> str:
        from placeopt.overview import problem_text

        return problem_text(self)

    def _repr_html_(self) -> str:
        from placeopt.overview import problem_html

        return problem_html(self)

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
        """Number of colocation groups, tasks on their own included."""
        return int(self.group.max()) + 1 if self.n_tasks else 0

    @property
    def memory(self) -> Int:
        """(n,) bytes that each task counts for under the `sum` memory model."""
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

    def group_feasible(self) -> Bool:
        """(g, m), whether every task of the group may run on the device."""
        if self.n_groups == self.n_tasks:
            return self.feasible.copy()
        members = np.argsort(self.group, kind="stable")
        first = np.searchsorted(self.group[members], np.arange(self.n_groups))
        return np.asarray(np.logical_and.reduceat(self.feasible[members], first, axis=0))

    def fingerprint(self) -> str:
        """A short hash of everything that decides which schedules are feasible and how good they are.

        A problem without relocation has the hash that it had before there was any.
        """
        digest = hashlib.sha256()
        idle = {"name", "description", "forward", "rounding"}
        idle |= set() if self.relocation.any() else {"relocation"}
        idle |= set() if self.runs_before_next_change != 1 else {"runs_before_next_change"}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in idle:
                continue
            digest.update(field.name.encode())
            if isinstance(value, np.ndarray):
                digest.update(str(value.shape).encode())
                digest.update(np.ascontiguousarray(value).tobytes())
            else:
                digest.update(repr(value).encode())
        return digest.hexdigest()[:16]


def build_problem(
    *,
    task_names: Sequence[str],
    device_names: Sequence[str],
    duration: Int,
    edges: Sequence[tuple[int, int]] | Int = (),
    name: str = "",
    description: str = "",
    resolution: Fraction = Fraction(1, NANO),
    device_types: Sequence[str] | None = None,
    feasible: Bool | None = None,
    resident: Int | None = None,
    output: Int | None = None,
    scratch: Int | None = None,
    release: Int | None = None,
    deadline: Int | None = None,
    capacity: Int | None = None,
    payload: Int | Sequence[int] | None = None,
    shared: Bool | Sequence[bool] | None = None,
    latency: Int | None = None,
    byte_ticks_num: Int | None = None,
    byte_ticks_den: Int | None = None,
    power_num: Int | None = None,
    power_den: Int | None = None,
    byte_energy_num: Int | None = None,
    byte_energy_den: Int | None = None,
    relocation: Int | None = None,
    runs_before_next_change: Fraction | int = 1,
    group: Int | None = None,
    separation: Iterable[tuple[int, int]] | Int = (),
    forward: Int | None = None,
    objective: Objective | None = None,
    contention: Contention = "none",
    memory_model: MemoryModel = "sum",
    rounding: Rounding | None = None,
) -> Problem:
    """A Problem from its essential arrays; the derived ones are computed, all become read-only.

    Edges may come in any order; `payload` and `shared` follow them. `group` holds any labels.
    What is left out is zero, unlimited, feasible everywhere, or free of charge.

    Raises
    ------
    UsageError
        If an array has the wrong shape, holds something else than whole numbers, or an entry is out of range: times,
        amounts and costs are not negative, denominators are positive, tasks are named by their indices. If a name comes
        twice, the edges contain a cycle, a task is separated from itself, shared edges of one producer differ in
        payload, the forward task of a task has another one, or the runs before the next change are not a positive
        number.
    """
    choice("contention", contention, get_args(Contention))
    choice("memory_model", memory_model, get_args(MemoryModel))
    if objective is not None and not isinstance(objective, Objective):
        raise UsageError(f"objective is a {type(objective).__name__}; expected an Objective")
    if not resolution > 0:
        raise UsageError(f"resolution is {resolution}; expected a positive number of seconds")
    tasks, devices = names("task_names", task_names, unique=True), names("device_names", device_names, unique=True)
    n, m = len(tasks), len(devices)
    by_task, by_device, by_both = (n,), (m,), (n, m)
    pairs = task_pairs("edges", edges, n)
    e = len(pairs)
    by_source = np.lexsort((pairs[:, 1], pairs[:, 0]))
    source, target = pairs[by_source, 0], pairs[by_source, 1]
    edge_payload = whole_numbers("payload", payload, (e,), "edges", default=0)[by_source]
    edge_shared = flags("shared", shared, (e,), "edges", default=False)[by_source]
    allowed = flags("feasible", feasible, by_both, "tasks x devices", default=True)
    ticks = whole_numbers("duration", duration, by_both, "tasks x devices", where=allowed)
    out_start = np.searchsorted(source, np.arange(n + 1)).astype(np.int64)
    in_edge = np.argsort(target, kind="stable").astype(np.int64)
    in_start = np.searchsorted(target[in_edge], np.arange(n + 1)).astype(np.int64)
    order = np.empty(n, dtype=np.int64)
    placed = topological_order.select(n + e)(out_start, target, np.diff(in_start), order)
    if placed < n:
        around = [tasks[i] for i in find_cycle(pairs, n)]
        raise UsageError(f"the edges contain a cycle: {listing(around, 8, ' -> ')} -> {visible(around[0])}")

    def link(what: str, values: Int | None, default: int, where: Bool | None = None) -> Int:
        return whole_numbers(what, values, (m, m), "devices x devices", default=default, least=default, where=where)

    def each_device(what: str, values: Int | None, default: int, least: int = 0) -> Int:
        return whole_numbers(what, values, by_device, "devices", default=default, least=least)

    def each_task(what: str, values: Int | None, default: int = 0, least: int | None = 0) -> Int:
        return whole_numbers(what, values, by_task, "tasks", default=default, least=least)

    link_arrays = {
        "latency": link("latency", latency, 0, ~np.eye(m, dtype=np.bool_)),
        "byte_ticks_num": link("byte_ticks_num", byte_ticks_num, 0),
        "byte_ticks_den": link("byte_ticks_den", byte_ticks_den, 1),
        "byte_energy_num": link("byte_energy_num", byte_energy_num, 0),
        "byte_energy_den": link("byte_energy_den", byte_energy_den, 1),
    }
    powers = each_device("power_num", power_num, 0), each_device("power_den", power_den, 1, least=1)
    for what, num, den in (
        ("byte_ticks", link_arrays["byte_ticks_num"], link_arrays["byte_ticks_den"]),
        ("byte_energy", link_arrays["byte_energy_num"], link_arrays["byte_energy_den"]),
        ("power", *powers),
    ):
        _check_products(what, num, den)
    first_shared = np.flatnonzero(edge_shared)
    outputs = np.zeros(n, dtype=np.int64)
    outputs[source[first_shared]] = edge_payload[first_shared]
    unequal = first_shared[outputs[source[first_shared]] != edge_payload[first_shared]]
    if len(unequal):
        edge = int(unequal[0])
        raise UsageError(
            f"payload: shared edges of {visible(tasks[source[edge]])} have {edge_payload[edge]} and "
            f"{outputs[source[edge]]} bytes; expected the same: they carry one output"
        )
    if not runs_before_next_change > 0:
        raise UsageError(f"runs_before_next_change is {runs_before_next_change}; expected a positive number")
    forwards = np.arange(n)
    if forward is not None:
        forwards = whole_numbers("forward", forward, by_task, "tasks", most=n - 1)
        if (chained := np.flatnonzero(forwards[forwards] != forwards)).size:
            i, j = int(chained[0]), int(forwards[chained[0]])
            raise UsageError(
                f"forward[{i}] is {j}, which has the forward task {forwards[j]}; expected one that is its own"
            )
    apart = task_pairs("separation", separation, n)
    if (alone := np.flatnonzero(apart[:, 0] == apart[:, 1])).size:
        row = int(alone[0])
        raise UsageError(f"separation[{row}] separates {visible(tasks[apart[row, 0]])} from itself; expected two tasks")
    capacities = each_device("capacity", capacity, UNLIMITED)
    moves = whole_numbers("relocation", relocation, by_both, "tasks x devices", default=0, where=allowed)
    columns = [
        (
            *(table[:, d].tobytes() for table in (ticks, allowed, moves)),
            *map(int, (capacities[d], powers[0][d], powers[1][d])),
        )
        for d in range(m)
    ]
    links = np.stack(list(link_arrays.values()), axis=-1)
    groups = np.arange(n) if group is None else whole_numbers("group", group, by_task, "tasks", least=None)
    problem = Problem(
        name=name,
        description=description,
        resolution=resolution,
        task_names=tasks,
        device_names=devices,
        device_types=devices if device_types is None else names("device_types", device_types, count=m),
        duration=ticks,
        feasible=allowed,
        resident=each_task("resident", resident),
        output=each_task("output", output),
        scratch=each_task("scratch", scratch),
        release=each_task("release", release),
        deadline=each_task("deadline", deadline, UNLIMITED, least=None),
        capacity=capacities,
        edge_source=source,
        edge_target=target,
        payload=edge_payload,
        shared=edge_shared,
        power_num=powers[0],
        power_den=powers[1],
        relocation=moves,
        runs_before_next_change=Fraction(runs_before_next_change),
        group=by_first_appearance(groups),
        separation=np.unique(np.sort(apart, axis=1), axis=0),
        forward=forwards,
        objective=objective or Objective(),
        contention=contention,
        memory_model=memory_model,
        rounding=rounding,
        out_start=out_start,
        in_start=in_start,
        in_edge=in_edge,
        order=order,
        device_class=device_classes(columns, links),
        **link_arrays,
    )
    for field in fields(problem):
        value = getattr(problem, field.name)
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return problem


def _check_products(what: str, num: Int, den: Int) -> None:
    """Refuse a ratio whose numerator times denominator is not below 2^62: see `ratio_ceil`."""
    wrong = np.argwhere(num > (2**62 - 1) // den)
    if len(wrong):
        place = tuple(map(int, wrong[0]))
        at = ", ".join(map(str, place))
        raise UsageError(
            f"{what}_num[{at}] is {num[place]} and {what}_den[{at}] is {den[place]}; expected a product below 2^62: "
            "rounded to fewer digits"
        )


_DERIVED = {"edge_source", "edge_target", "out_start", "in_start", "in_edge", "order", "device_class"}


def amended(problem: Problem, **changes: Any) -> Problem:
    """The problem with some of what `build_problem` takes changed, and what follows from that worked out anew."""
    given = {field.name: getattr(problem, field.name) for field in fields(problem) if field.name not in _DERIVED}
    edges = np.column_stack((problem.edge_source, problem.edge_target))
    return build_problem(**{**given, "edges": edges, **changes})
