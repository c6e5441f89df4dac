"""Arrays of constructive heuristics: the problem that their kernels read, and the timeline that they fill.

A heuristic is a kernel over an `Instance` and a `Timeline` that chooses the next task and its device; `placement_ops`
has its operations.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from placeopt.model.arrays import Bool, Int
from placeopt.model.memory import tier_arrays
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, Transfers, edge_transfers, port_times
from placeopt.model.tiers import TierArrays

from .groups import Groups
from .heaps import Heaps, make_heaps
from .profiles import Live, make_trees

NEVER = 2**62
"""End of the last gap of every device: above any tick, and adding a duration does not overflow."""

NO_GAP = -1
"""In place of a gap, for a task that occupies none: one of no duration at the end of its producer, or one appended."""

DONE = -1
"""Result of a kernel that placed all tasks; otherwise it returns the task that no device can take."""


class Instance(NamedTuple):
    """A problem as arrays for kernels; n tasks, g groups, m devices, e edges, k kinds of links."""

    release: Int
    duration: Int
    group: Int
    """Release times, durations and groups as in `Problem`."""
    feasible: Bool
    memory: Int
    apart_start: Int
    apart: Int
    """Devices, memory and separation as in `Groups`."""
    in_start: Int
    in_source: Int
    in_payload: Int
    """The in-edges of task i are in_start[i]..in_start[i + 1]: their producers and bytes."""
    out_start: Int
    out_target: Int
    out_payload: Int
    """The out-edges of each task, likewise: their consumers and bytes."""
    kind: Int
    """(m, m) the kind of the link from the row's device to the column's. Links of one kind from a device are alike.
    Kind 0 is the link of each device to itself."""
    kinds: Int
    """(m,) number of kinds from each device."""
    latency: Int
    num: Int
    den: Int
    """(m, k) of each kind: ticks of latency, and num ticks move den bytes."""
    port: bool
    """Whether there is port contention."""
    in_edge: Int
    in_shared: Bool
    """The in-edges in the order of in_source, and with ports whether they are shared."""
    insertion: bool
    """Whether `slot` uses gaps between tasks."""
    closing: bool
    """Whether `contends` counts devices without room until they are closed."""
    tiers: TierArrays
    capacity: Int
    """The memory tiers, empty without any, and (m,) bytes."""
    live: Live
    """Live memory as in `Groups`."""


class Timeline(NamedTuple):
    """A schedule under construction."""

    home: Int
    """(g,) device of each group, -1 for groups without a home."""
    room: Int
    """(m,) bytes left on each device; with live memory, bytes beyond the resident ones."""
    closed: Bool
    """(m,) with `closing`: the devices that take no further groups."""
    trees: Int
    """(m, t) with live memory: the profile of each device, see `profiles`."""
    device: Int
    start: Int
    end: Int
    """(n,) of the placed tasks; `device` is -1 for the others."""
    free: Int
    first: Int
    """(m,) end of the last task on each device, and start of the first; NEVER without tasks."""
    ready: Int
    arrival: Int
    """(m,) result and (k,) scratch of `compute_ready_times`."""
    gap_start: Int
    gap_end: Int
    gaps: Int
    """(m, n + 1) twice, and their number (m,): the gaps of each device in order of time, those of positive length, then
    the open end. Only used entries are touched, so unused ones cost nothing."""
    longest: Int
    """(m,) upper bound of the gaps before the open end: a longer task goes to the end without a search."""
    send: Int
    receive: Int
    """(m,) with ports: the ticks from which they are free; the same array if a device has one, see `port_times`."""
    sent: Int
    """(n, m) with ports: arrival of the task's shared output on each device; -1 if it has not been sent."""
    moves: Int
    """(e,) with ports: start of each edge's transfer; -1 for edges without a separate transfer."""
    inputs: Int
    heap: Heaps
    """With ports: (e,) the indices of each task's in-edges in the order of their transfers, and scratch for sorting."""


class Line(Protocol):
    """What repair and schedules read of a timeline: this one, or `placeopt.engine.Timeline`."""

    @property
    def home(self) -> Int: ...
    @property
    def room(self) -> Int: ...
    @property
    def trees(self) -> Int: ...
    @property
    def device(self) -> Int: ...
    @property
    def start(self) -> Int: ...
    @property
    def moves(self) -> Int: ...


def work_steps(problem: Problem) -> int:
    """Return the elementary steps of list scheduling: on each device two for each edge, sixteen for each task."""
    return (16 * problem.n_tasks + 2 * problem.n_edges) * problem.n_devices


class Links(NamedTuple):
    """The links of m devices by kinds, as in `Instance`."""

    kind: Int
    kinds: Int
    latency: Int
    num: Int
    den: Int


def links_of(problem: Problem) -> Links:
    """Return the links of a problem's devices by kinds."""
    kind, leader = _link_kinds(problem)
    rows = np.arange(problem.n_devices)[:, None]
    return Links(
        kind,
        kind.max(axis=1, initial=-1) + 1,
        np.where(leader == rows, 0, problem.latency[rows, leader]),
        np.where(leader == rows, 0, problem.byte_ticks_num[rows, leader]),
        np.where(leader == rows, 1, problem.byte_ticks_den[rows, leader]),
    )


def make_instance(
    problem: Problem, groups: Groups, insertion: bool = False, links: Links | None = None, closing: bool = False
) -> Instance:
    """Return the problem and its groups as arrays for kernels.

    `insertion` and `closing` are as in `Instance`; `links` are those of the problem by kinds, if they are known.
    """
    port = problem.contention != "none"
    return Instance(
        problem.release,
        problem.duration,
        problem.group,
        groups.feasible,
        groups.memory,
        groups.apart_start,
        groups.apart,
        problem.in_start,
        problem.edge_source[problem.in_edge],
        problem.payload[problem.in_edge],
        problem.out_start,
        problem.edge_target,
        problem.payload,
        *(links_of(problem) if links is None else links),
        port,
        problem.in_edge,
        problem.shared[problem.in_edge] if port else problem.shared[:0],
        insertion,
        closing,
        tier_arrays(problem),
        problem.capacity,
        groups.live,
    )


def make_timeline(problem: Problem, groups: Groups) -> Timeline:
    """Return an empty timeline; groups with a home have their memory reserved."""
    n, m = problem.n_tasks, problem.n_devices
    moved = (n, problem.n_edges) if problem.contention != "none" else (0, 0)
    degree = int(np.diff(problem.in_start).max(initial=0)) if moved[1] else 0
    sizes = {"start": n, "end": n, "free": m, "ready": m, "arrival": m, "longest": m}
    send, receive = port_times(problem)
    line = Timeline(
        **{name: np.zeros(size, dtype=np.int64) for name, size in sizes.items()},
        home=groups.home.copy(),
        room=groups.room.copy(),
        closed=np.zeros(m, dtype=np.bool_),
        trees=make_trees(groups.live, groups.home, m),
        first=np.full(m, NEVER, dtype=np.int64),
        device=np.full(n, -1, dtype=np.int64),
        gap_start=np.empty((m, n + 1), dtype=np.int64),
        gap_end=np.empty((m, n + 1), dtype=np.int64),
        gaps=np.ones(m, dtype=np.int64),
        send=send,
        receive=receive,
        sent=np.full((moved[0], m), -1, dtype=np.int64),
        moves=np.full(moved[1], -1, dtype=np.int64),
        inputs=np.arange(moved[1]),
        heap=make_heaps(degree, 1),
    )
    line.gap_start[:, 0], line.gap_end[:, 0] = 0, NEVER
    return line


def schedule_of(problem: Problem, line: Line) -> Schedule:
    """Return the schedule of a finished timeline."""
    device, start = line.device.copy(), line.start.copy()
    if problem.contention == "none":
        return Schedule(device, start)
    moved = np.flatnonzero(line.moves >= 0)
    edge = edge_transfers(problem, device)[moved]
    return Schedule(device, start, Transfers(edge, line.moves[moved]))


def _link_kinds(problem: Problem) -> tuple[Int, Int]:
    """Return the kind of each link (m, m), and a device that each kind leads to (m, k); for kind 0 itself."""
    m = problem.n_devices
    kind = np.zeros((m, m), dtype=np.int64)
    leaders: list[list[int]] = []
    columns = [problem.latency.tolist(), problem.byte_ticks_num.tolist(), problem.byte_ticks_den.tolist()]
    for a in range(m):
        number: dict[tuple[int, ...], int] = {}
        leaders.append([a])
        for b, link in enumerate(zip(*(column[a] for column in columns), strict=True)):
            if b != a:
                if link not in number:
                    number[link] = len(leaders[a])
                    leaders[a].append(b)
                kind[a, b] = number[link]
    most = max(map(len, leaders), default=0)
    padded = [row + row[:1] * (most - len(row)) for row in leaders]
    return kind, np.array(padded, dtype=np.int64).reshape(m, most)
