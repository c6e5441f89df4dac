"""Schedules: the device and start of each task, the start of each transfer, and times derived from them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from placeopt.errors import UsageError, counted, visible
from placeopt.model.arrays import Int, abbreviated, inverse, whole_numbers
from placeopt.model.problem import UNLIMITED, Problem, check_problem

BUFFERS = ("resident", "output", "scratch")
"""The buffers of a task."""


def _read_only_fields(instance: object, *names: str) -> None:
    for name in names:
        array = whole_numbers(name, getattr(instance, name), None, "", least=None)
        array.flags.writeable = False
        object.__setattr__(instance, name, array)


def _restored(self: Any, state: list[Any]) -> None:
    """Restore the fields of a pickled object; arrays that a cluster sent may lie where the engine cannot read them."""
    for field, value in zip(fields(self), state, strict=True):
        kept = np.require(value, requirements="A") if isinstance(value, np.ndarray) else value
        object.__setattr__(self, field.name, kept)


@dataclass(frozen=True, slots=True, eq=False)
class Transfers:
    """The transfers of a schedule under contention, one row each.

    Attributes
    ----------
    edge
        (t,) the edge whose payload moves. If one transfer serves several consumers (shared edges of one producer to one
        device), the lowest of their edges.
    start
        (t,) ticks; in a pipeline, when the receiver starts to receive.
    sent
        (t,) ticks: when the sender starts to send, in a pipeline; None otherwise, where it is `start`.
    """

    edge: Int
    start: Int
    sent: Int | None = None

    __setstate__ = _restored

    def __post_init__(self) -> None:
        _read_only_fields(self, "edge", "start", *(["sent"] if self.sent is not None else []))

    def __repr__(self) -> str:
        return f"<Transfers: {self.edge.size:,}; edge {abbreviated(self.edge)}, start {abbreviated(self.start)}>"


@dataclass(frozen=True, slots=True, eq=False)
class Stages:
    """The stages of a pipeline, and the devices that serve them.

    Attributes
    ----------
    number
        (n,) number of the stage of each task. The tasks of a stage share a device, and all are forward tasks or all are
        backward tasks. No edge leads to a lower number.
    leader
        (m,) the device whose tasks each device runs: itself, unless it is a replica.
    recompute
        (m,), whether the device discards the outputs of its forward tasks and computes them again.
    synchronise
        (m,) ticks at which the device, if it has replicas, begins to synchronise gradients.
    """

    number: Int
    leader: Int
    recompute: Int
    synchronise: Int

    __setstate__ = _restored

    def __post_init__(self) -> None:
        _read_only_fields(self, "number", "leader", "recompute", "synchronise")

    def __repr__(self) -> str:
        teams = counted(int((self.leader != np.arange(self.leader.size)).sum()), "replica")
        return f"<Stages: {counted(np.unique(self.number).size, 'stage')}, {teams}; number {abbreviated(self.number)}>"


@dataclass(frozen=True, slots=True, eq=False)
class Offsets:
    """Where the buffers of each task lie in the memory of its device.

    Attributes
    ----------
    resident, output, scratch
        (n,) bytes from the begin of the memory; of no meaning for buffers of 0 bytes.
    """

    resident: Int
    output: Int
    scratch: Int

    __setstate__ = _restored

    def __post_init__(self) -> None:
        _read_only_fields(self, *BUFFERS)

    def __repr__(self) -> str:
        return "<Offsets: " + ", ".join(f"{kind} {abbreviated(getattr(self, kind))}" for kind in BUFFERS) + ">"


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """A device and a start for every task.

    Attributes
    ----------
    device
        (n,) the device of each task.
    start
        (n,) ticks; task i occupies its device in [start, start + duration).
        In a pipeline, these are the starts of the first run. Each further run starts a period later.
    transfers
        None unless the problem has port contention or shared links, or is a pipeline: a transfer then starts when its
        producer ends.
    stages
        The stages of a pipeline; None if they do not matter and no device has replicas.
    offsets
        The addresses of buffers; None unless the problem asks for them.
    """

    device: Int
    start: Int
    transfers: Transfers | None = None
    stages: Stages | None = None
    offsets: Offsets | None = None

    __setstate__ = _restored

    def __post_init__(self) -> None:
        _read_only_fields(self, "device", "start")

    def __repr__(self) -> str:
        moves = "" if self.transfers is None else f", {counted(self.transfers.edge.size, 'transfer')}"
        tasks = counted(self.device.size, "task")
        return f"<Schedule of {tasks}: device {abbreviated(self.device)}, start {abbreviated(self.start)}{moves}>"


def check_types(caller: str, problem: object, schedule: object) -> None:
    """Reject anything but a problem and a schedule."""
    check_problem(caller, problem)
    if not isinstance(schedule, Schedule):
        kind = type(schedule).__name__
        raise UsageError(f"{caller} takes a Schedule, got {kind}; results and plans have one as their `schedule`")


def check_schedule(caller: str, problem: Problem, schedule: Schedule) -> None:
    """Reject anything but a problem and a schedule with one entry per task, on devices and edges that exist."""
    check_types(caller, problem, schedule)
    _check_shapes(counted(problem.n_tasks, "task"), problem.n_tasks, device=schedule.device, start=schedule.start)
    check_devices(problem, schedule.device)
    table, stages = schedule.transfers, schedule.stages
    if table is not None:
        rows = {"start": table.start} if table.sent is None else {"start": table.start, "sent": table.sent}
        _check_shapes(f"{table.edge.size} edges of the transfers", table.edge.size, **rows)
        last = problem.n_edges - 1
        if len(outside := table.edge[(table.edge < 0) | (table.edge > last)]):
            raise UsageError(f"transfers: edge {outside[0]} does not exist; expected an index from 0 to {last}")
    if schedule.offsets is not None:
        found = {kind: getattr(schedule.offsets, kind) for kind in BUFFERS}
        _check_shapes(counted(problem.n_tasks, "task"), problem.n_tasks, **found)
    if stages is not None:
        _check_shapes(counted(problem.n_tasks, "task"), problem.n_tasks, number=stages.number)
        of_devices = {"leader": stages.leader, "recompute": stages.recompute, "synchronise": stages.synchronise}
        _check_shapes(counted(problem.n_devices, "device"), problem.n_devices, **of_devices)
        if len(outside := stages.leader[(stages.leader < 0) | (stages.leader >= problem.n_devices)]):
            raise UsageError(f"leader: device {outside[0]} does not exist; expected 0 to {problem.n_devices - 1}")


def _check_shapes(owners: str, length: int, **arrays: Int) -> None:
    for name, array in arrays.items():
        if array.shape != (length,):
            raise UsageError(f"{name}: has shape {array.shape}; expected one {name} for each of {owners}")


def check_devices(problem: Problem, device: Int) -> None:
    """Reject a placement (n,) on a device that does not exist."""
    outside = np.flatnonzero((device < 0) | (device >= problem.n_devices))
    if len(outside):
        i = int(outside[0])
        raise UsageError(
            f"device: task {visible(problem.task_names[i])} is on device {device[i]}; "
            f"expected an index from 0 to {problem.n_devices - 1}"
        )


def sequence(problem: Problem, schedule: Schedule) -> Int:
    """(n,) the tasks sorted by start, then by end, then as in `Problem.order`.

    This is a topological order if no task starts before its inputs arrive.
    """
    rank = inverse(problem.order)
    end = schedule.start + durations(problem, schedule.device)
    return np.lexsort((rank, end, schedule.start)).astype(np.int64)


def durations(problem: Problem, device: Int) -> Int:
    """(n,) ticks of every task on its device."""
    return problem.duration[np.arange(problem.n_tasks), device]


def edge_transfers(problem: Problem, device: Int) -> Int:
    """(e,) the representative edge of each edge's transfer, -1 if both tasks share a device.

    Edges served by one transfer (shared edges of one producer to one device) have the lowest of them.
    """
    source, target = device[problem.edge_source], device[problem.edge_target]
    edges = np.arange(problem.n_edges)
    representative = np.where(source == target, -1, edges)
    moving = np.flatnonzero((source != target) & problem.shared)
    if len(moving):
        key = problem.edge_source[moving] * problem.n_devices + target[moving]
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        representative[moving] = moving[first][inverse]
    return representative.astype(np.int64)


def edge_ticks(problem: Problem, device: Int) -> Int:
    """(e,) ticks of each edge's transfer under a placement; zero on the same device."""
    return problem.transfer(problem.payload, device[problem.edge_source], device[problem.edge_target])


def arrivals(problem: Problem, schedule: Schedule) -> Int:
    """(e,) tick at which each edge's data is available to its consumer."""
    device = schedule.device
    ends = (schedule.start + durations(problem, device))[problem.edge_source]
    ticks = edge_ticks(problem, device)
    if schedule.transfers is None:
        return ends + ticks
    moves = np.full(problem.n_edges, -1, dtype=np.int64)
    moves[schedule.transfers.edge] = schedule.transfers.start
    representative = edge_transfers(problem, device)
    return np.where(representative >= 0, moves[representative] + ticks, ends)


def transfer_times(problem: Problem, schedule: Schedule) -> tuple[Int, Int, Int]:
    """All transfers: (t,) their edges, ascending, (t,) their starts, (t,) their ends."""
    carrier = edge_transfers(problem, schedule.device)
    edges = np.flatnonzero(carrier == np.arange(problem.n_edges))
    sent = (schedule.start + durations(problem, schedule.device))[problem.edge_source]
    if schedule.transfers is not None:
        booked = carrier[schedule.transfers.edge] == schedule.transfers.edge
        sent[schedule.transfers.edge[booked]] = schedule.transfers.start[booked]
    return edges, sent[edges], (sent + edge_ticks(problem, schedule.device))[edges]


def lateness(problem: Problem, schedule: Schedule) -> int:
    """Largest number of ticks by which a task misses its deadline; 0 if all deadlines are met."""
    check_schedule("lateness", problem, schedule)
    due = np.flatnonzero(problem.deadline != UNLIMITED)
    end = schedule.start[due] + problem.duration[due, schedule.device[due]]
    return int((end - problem.deadline[due]).max(initial=0))


def makespan(problem: Problem, schedule: Schedule) -> int:
    """Ticks from time zero to the end of the last task; 0 without tasks."""
    if problem.n_tasks == 0:
        return 0
    return int((schedule.start + durations(problem, schedule.device)).max())
