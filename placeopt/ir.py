"""The compiled problem: read-only arrays, no names to resolve, no units left.

All times are integer ticks, all sizes integer bytes, so that every check is exact.
n tasks, m devices, e edges; tasks and devices stand in the document's order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from placeopt.kernels import kernel
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
    """A metric and its weight in an objective."""

    metric: Metric
    weight: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class Objective:
    """What to minimise: weighted sums in lexicographic order, the most important first."""

    levels: tuple[tuple[Term, ...], ...] = ((Term("makespan"),),)

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
    ValueError
        If the edges contain a cycle (the compiler names it before it comes to this), shared edges of one producer
        differ in payload, the forward task of a task is none, the objective is empty or has a negative weight, or the
        runs before the next change are not a positive number.
    """
    n, m = len(task_names), len(device_names)
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    by_source = np.lexsort((pairs[:, 1], pairs[:, 0]))
    source, target = pairs[by_source, 0], pairs[by_source, 1]

    def numbers(values: Int | Sequence[int] | None, shape: tuple[int, ...], default: int) -> Int:
        if values is None:
            return np.full(shape, default, dtype=np.int64)
        # In the order of C whatever the caller's: compiled code is made once more for arrays in another one.
        return np.array(values, dtype=np.int64, order="C").reshape(shape)

    e = len(pairs)
    edge_payload = numbers(payload, (e,), 0)[by_source]
    edge_shared = (np.zeros(e, np.bool_) if shared is None else np.array(shared, np.bool_).reshape(e))[by_source]
    allowed = np.ones((n, m), np.bool_) if feasible is None else np.array(feasible, np.bool_, order="C").reshape(n, m)
    ticks = np.where(allowed, numbers(duration, (n, m), 0), 0)
    out_start = np.searchsorted(source, np.arange(n + 1)).astype(np.int64)
    in_edge = np.argsort(target, kind="stable").astype(np.int64)
    in_start = np.searchsorted(target[in_edge], np.arange(n + 1)).astype(np.int64)
    order = np.empty(n, dtype=np.int64)
    placed = topological_order.select(n + e)(out_start, target, np.diff(in_start), order)
    if placed < n:
        raise ValueError("the edges contain a cycle")

    link_arrays = {
        "latency": numbers(latency, (m, m), 0) * (1 - np.eye(m, dtype=np.int64)),
        "byte_ticks_num": numbers(byte_ticks_num, (m, m), 0),
        "byte_ticks_den": numbers(byte_ticks_den, (m, m), 1),
        "byte_energy_num": numbers(byte_energy_num, (m, m), 0),
        "byte_energy_den": numbers(byte_energy_den, (m, m), 1),
    }
    first_shared = np.flatnonzero(edge_shared)
    outputs = np.zeros(n, dtype=np.int64)
    outputs[source[first_shared]] = edge_payload[first_shared]
    if (outputs[source[first_shared]] != edge_payload[first_shared]).any():
        raise ValueError("shared edges of one producer carry the same output: their payloads must be equal")
    if objective is not None and any(not level or min(term.weight for term in level) < 0 for level in objective.levels):
        raise ValueError("an objective needs a metric at every level, and weights that are not negative")
    if objective is not None and not objective.levels:
        raise ValueError("an objective needs at least one level")
    if runs_before_next_change <= 0:
        raise ValueError("runs_before_next_change must be positive")
    forwards = np.arange(n) if forward is None else np.array(forward, dtype=np.int64).reshape(n)
    if n and (forwards.min() < 0 or forwards.max() >= n or (forwards[forwards] != forwards).any()):
        raise ValueError("the forward task of a task must be a task that is its own")
    capacities = numbers(capacity, (m,), UNLIMITED)
    powers = numbers(power_num, (m,), 0), numbers(power_den, (m,), 1)
    moves = np.where(allowed, numbers(relocation, (n, m), 0), 0)
    columns = [
        (
            *(table[:, d].tobytes() for table in (ticks, allowed, moves)),
            *map(int, (capacities[d], powers[0][d], powers[1][d])),
        )
        for d in range(m)
    ]
    links = np.stack(list(link_arrays.values()), axis=-1)
    groups = np.arange(n) if group is None else np.unique(np.asarray(group), return_inverse=True)[1]
    problem = Problem(
        name=name,
        description=description,
        resolution=resolution,
        task_names=tuple(task_names),
        device_names=tuple(device_names),
        device_types=tuple(device_types if device_types is not None else device_names),
        duration=ticks,
        feasible=allowed,
        resident=numbers(resident, (n,), 0),
        output=numbers(output, (n,), 0),
        scratch=numbers(scratch, (n,), 0),
        release=numbers(release, (n,), 0),
        deadline=numbers(deadline, (n,), UNLIMITED),
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
        separation=np.array(sorted({(min(a, b), max(a, b)) for a, b in separation}), np.int64).reshape(-1, 2),
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


_DERIVED = {"edge_source", "edge_target", "out_start", "in_start", "in_edge", "order", "device_class"}


def amended(problem: Problem, **changes: Any) -> Problem:
    """The problem with some of what `build_problem` takes changed, and what follows from that worked out anew."""
    given = {field.name: getattr(problem, field.name) for field in fields(problem) if field.name not in _DERIVED}
    edges = np.column_stack((problem.edge_source, problem.edge_target))
    return build_problem(**{**given, "edges": edges, **changes})


@kernel()
def topological_order(out_start: Int, edge_target: Int, in_degree: Int, order: Int) -> int:
    """Fill `order` with a topological order and return how many tasks it holds (fewer than n: a cycle).

    Kahn's algorithm, first in first out: tasks ready from the start by index, then as they become ready.
    """
    waiting = in_degree.copy()
    tail = 0
    for i in range(len(waiting)):
        if waiting[i] == 0:
            order[tail] = i
            tail += 1
    head = 0
    while head < tail:
        i = order[head]
        head += 1
        for k in range(out_start[i], out_start[i + 1]):
            j = edge_target[k]
            waiting[j] -= 1
            if waiting[j] == 0:
                order[tail] = j
                tail += 1
    return tail
