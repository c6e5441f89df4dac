"""What constructive heuristics share: a problem as their loops read it, and the timelines that they fill.

Under port contention transfers take their turn too: when a task is placed, its missing inputs are booked in the order
of their producers' ends, each once both ports have served all that was booked before (as O. Beaumont,
V. Boudet and Y. Robert schedule it: A realistic model and an efficient heuristic for scheduling with heterogeneous
processors, IPDPS 2002, doi:10.1109/IPDPS.2002.1015663; no gaps between transfers are looked for). So a finished
timeline is a valid schedule under either contention.

A heuristic is a kernel that takes a `Case` and a `Timeline` and decides which task comes next and which device it goes
to; what it asks and does is here:

    note_arrivals    when all data of a task is there, for each device
    arrival_on       the same for one device
    may_take         whether a device may and can take a group that is not placed yet
    earliest         the earliest start on a device, in a gap between tasks (insertion) or after the last
    occupy           put a task there; the first task of a group decides for the whole group
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.ir import Bool, Int, Problem, transfer_ticks
from placeopt.kernels import kernel
from placeopt.schedule import Schedule, Transfers, edge_transfers

from ._placement import Groups

NEVER = 2**62
"""End of the last gap of every device: above any tick, and safe to add a duration to."""

AT_END = -1
"""Instead of a gap: nothing to book there (a task of no duration that touches what it waited for)."""


class Case(NamedTuple):
    """A problem as kernels of heuristics take it; n tasks, g groups, m devices, e edges, k kinds of links.

    Attributes
    ----------
    release, duration, group
        As in `Problem`.
    feasible, memory, apart_start, apart
        As in `Groups`.
    in_start, in_source, in_payload
        The in-edges of task i are in_start[i]..in_start[i + 1]: their producers and bytes.
    out_start, out_target, out_payload
        The same of its out-edges.
    kind
        (m, m) the kind of link from the row's device to the column's: links of one kind from a device take as long.
        Kind 0 of each device is the way to itself.
    kinds
        (m,) how many kinds lead from each device.
    latency, num, den
        (m, k) of each kind: ticks, and num ticks move den bytes.
    port
        Whether ports contend.
    in_edge, in_shared
        With ports: the edges and whether they are shared, in the order of in_source.
    """

    release: Int
    duration: Int
    group: Int
    feasible: Bool
    memory: Int
    apart_start: Int
    apart: Int
    in_start: Int
    in_source: Int
    in_payload: Int
    out_start: Int
    out_target: Int
    out_payload: Int
    kind: Int
    kinds: Int
    latency: Int
    num: Int
    den: Int
    port: bool
    in_edge: Int
    in_shared: Bool


class Timeline(NamedTuple):
    """A schedule being built.

    Attributes
    ----------
    home
        (g,) device of each group that has one, -1 for the others.
    room
        (m,) bytes left on each device.
    device, start, end
        (n,) of the tasks placed; device is -1 for the others.
    free
        (m,) end of the last task on each device.
    ready, arrival
        (m,), (k,) where `note_arrivals` leaves its answer, and for it to scribble on.
    gap_start, gap_end, gaps
        (m, n + 1) twice and (m,): the gaps of each device in order of time, those of positive length and the open
        end. Only what is used is ever touched, so their size costs nothing.
    longest
        (m,) no gap but the open end is longer: a task longer than that goes to the end at once, so that a timeline
        without idle time costs nothing however long it is.
    send, receive
        (m,) with ports: ticks from which they are free.
    sent
        (n, m) with ports: arrival of the task's shared output on each device; -1 where it has not been sent.
    moves
        (e,) with ports: start of each edge's transfer; -1 for edges without one of their own.
    """

    home: Int
    room: Int
    device: Int
    start: Int
    end: Int
    free: Int
    ready: Int
    arrival: Int
    gap_start: Int
    gap_end: Int
    gaps: Int
    longest: Int
    send: Int
    receive: Int
    sent: Int
    moves: Int


def work_steps(problem: Problem) -> int:
    """Elementary steps of list scheduling: every edge meets every device, and a task some eight times as long."""
    return (8 * problem.n_tasks + problem.n_edges) * problem.n_devices


def make_case(problem: Problem, groups: Groups) -> Case:
    """The problem and its groups as kernels take them."""
    port = problem.contention == "port"
    kind, leader = _link_kinds(problem)
    rows = np.arange(problem.n_devices)[:, None]
    return Case(
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
        kind,
        kind.max(axis=1, initial=-1) + 1,
        np.where(leader == rows, 0, problem.latency[rows, leader]),
        np.where(leader == rows, 0, problem.byte_ticks_num[rows, leader]),
        np.where(leader == rows, 1, problem.byte_ticks_den[rows, leader]),
        port,
        problem.in_edge.copy() if port else np.empty(0, dtype=np.int64),
        problem.shared[problem.in_edge] if port else np.empty(0, dtype=np.bool_),
    )


def make_timeline(problem: Problem, groups: Groups) -> Timeline:
    """Nothing placed yet but the groups that have their home."""
    n, m = problem.n_tasks, problem.n_devices
    moved = (n, problem.n_edges) if problem.contention == "port" else (0, 0)
    line = Timeline(
        home=groups.home.copy(),
        room=groups.room.copy(),
        device=np.full(n, -1, dtype=np.int64),
        start=np.zeros(n, dtype=np.int64),
        end=np.zeros(n, dtype=np.int64),
        free=np.zeros(m, dtype=np.int64),
        ready=np.zeros(m, dtype=np.int64),
        arrival=np.zeros(m, dtype=np.int64),
        gap_start=np.empty((m, n + 1), dtype=np.int64),
        gap_end=np.empty((m, n + 1), dtype=np.int64),
        gaps=np.ones(m, dtype=np.int64),
        longest=np.zeros(m, dtype=np.int64),
        send=np.zeros(m, dtype=np.int64),
        receive=np.zeros(m, dtype=np.int64),
        sent=np.full((moved[0], m), -1, dtype=np.int64),
        moves=np.full(moved[1], -1, dtype=np.int64),
    )
    line.gap_start[:, 0], line.gap_end[:, 0] = 0, NEVER
    return line


def schedule_of(problem: Problem, line: Timeline) -> Schedule:
    """The schedule that a finished timeline holds."""
    if problem.contention == "none":
        return Schedule(line.device, line.start)
    moved = np.flatnonzero(line.moves >= 0)
    edge = edge_transfers(problem, line.device)[moved]
    return Schedule(line.device, line.start, Transfers(edge, line.moves[moved]))


def _link_kinds(problem: Problem) -> tuple[Int, Int]:
    """(m, m) the kind of each link, and (m, k) a device to which each kind leads; the device itself leads kind 0."""
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


@kernel(allocates=False)
def in_order_of_ends(case: Case, line: Timeline, i: int) -> None:
    """Sort the in-edges of task i by the ends of their producers: the order in which ports serve them."""
    for k in range(case.in_start[i] + 1, case.in_start[i + 1]):
        source, payload, edge, shared = case.in_source[k], case.in_payload[k], case.in_edge[k], case.in_shared[k]
        hole = k
        while hole > case.in_start[i] and line.end[case.in_source[hole - 1]] > line.end[source]:
            case.in_source[hole] = case.in_source[hole - 1]
            case.in_payload[hole] = case.in_payload[hole - 1]
            case.in_edge[hole] = case.in_edge[hole - 1]
            case.in_shared[hole] = case.in_shared[hole - 1]
            hole -= 1
        case.in_source[hole], case.in_payload[hole] = source, payload
        case.in_edge[hole], case.in_shared[hole] = edge, shared


@kernel(transfer_ticks, allocates=False)
def through_ports(case: Case, line: Timeline, i: int, d: int, book: bool) -> int:
    """The tick from which task i can start on device d when its inputs take their turn; `book` reserves the ports."""
    ready: int = case.release[i]
    free = line.receive[d]
    for k in range(case.in_start[i], case.in_start[i + 1]):
        u = case.in_source[k]
        a = line.device[u]
        there = line.end[u]
        if a != d:
            if case.in_shared[k] and line.sent[u, d] >= 0:
                there = line.sent[u, d]
            else:
                c = case.kind[a, d]
                # A second transfer from the same device waits at the receiving port already.
                begin = max(there, line.send[a], free)
                ticks = transfer_ticks(case.in_payload[k], case.latency[a, c], case.num[a, c], case.den[a, c])
                there = free = begin + ticks
                if book:
                    line.send[a] = line.receive[d] = free
                    line.moves[case.in_edge[k]] = begin
                    if case.in_shared[k]:
                        line.sent[u, d] = free
        if there > ready:
            ready = there
    return ready


@kernel(transfer_ticks, in_order_of_ends, through_ports, allocates=False)
def note_arrivals(case: Case, line: Timeline, i: int) -> None:
    """Fill `line.ready` with the tick from which task i can start on each device, for all its producers are placed."""
    ready, arrival = line.ready, line.arrival
    m = len(ready)
    if case.port:
        in_order_of_ends(case, line, i)
        for d in range(m):
            ready[d] = through_ports(case, line, i, d, False)
        return
    ready[:] = case.release[i]
    for k in range(case.in_start[i], case.in_start[i + 1]):
        u = case.in_source[k]
        payload = case.in_payload[k]
        a = line.device[u]
        end = line.end[u]
        arrival[0] = end
        for c in range(1, case.kinds[a]):
            arrival[c] = end + transfer_ticks(payload, case.latency[a, c], case.num[a, c], case.den[a, c])
        if case.kinds[a] == 2:
            # All links from there are alike: a loop without look-ups, which compiles to one over vectors.
            own, there = ready[a], arrival[1]
            for b in range(m):
                ready[b] = max(ready[b], there)
            ready[a] = max(own, end)
            continue
        for b in range(m):
            there = arrival[case.kind[a, b]]
            if there > ready[b]:
                ready[b] = there


@kernel(transfer_ticks, in_order_of_ends, through_ports, allocates=False)
def arrival_on(case: Case, line: Timeline, i: int, d: int) -> int:
    """The tick from which task i can start on device d, for all its producers are placed."""
    if case.port:
        in_order_of_ends(case, line, i)
        return through_ports(case, line, i, d, False)
    ready: int = case.release[i]
    for k in range(case.in_start[i], case.in_start[i + 1]):
        u = case.in_source[k]
        a = line.device[u]
        there = line.end[u]
        if a != d:
            c = case.kind[a, d]
            there += transfer_ticks(case.in_payload[k], case.latency[a, c], case.num[a, c], case.den[a, c])
        if there > ready:
            ready = there
    return ready


@kernel(allocates=False)
def may_take(case: Case, line: Timeline, g: int, d: int) -> bool:
    """Whether group g, not placed yet, may and can go to device d."""
    if not case.feasible[g, d] or case.memory[g] > line.room[d]:
        return False
    for k in range(case.apart_start[g], case.apart_start[g + 1]):  # noqa: SIM110 - Numba has no all() of a generator
        if line.home[case.apart[k]] == d:
            return False
    return True


@kernel(allocates=False)
def first_gap(gap_start: Int, gap_end: Int, count: int, ready: int, duration: int) -> int:
    """Index of the first of a device's gaps that has room for the duration at or after `ready`."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if gap_end[middle] >= ready + duration:
            high = middle
        else:
            low = middle + 1
    while max(gap_start[low], ready) + duration > gap_end[low]:
        low += 1
    return low


@kernel(first_gap, allocates=False)
def earliest(case: Case, line: Timeline, i: int, d: int, ready: int) -> tuple[int, int]:
    """The earliest start of task i on device d from `ready` on, and the gap that it lies in, for `occupy`."""
    ticks = case.duration[i, d]
    if ticks == 0:
        # What takes no time may also start where two tasks touch; only right after a producer is that looked for.
        if ready == 0:
            return ready, AT_END
        for k in range(case.in_start[i], case.in_start[i + 1]):
            u = case.in_source[k]
            if line.device[u] == d and line.end[u] == ready:
                return ready, AT_END
    gap = line.gaps[d] - 1
    if ticks <= line.longest[d]:
        gap = first_gap(line.gap_start[d], line.gap_end[d], line.gaps[d], ready, ticks)
    return max(ready, line.gap_start[d, gap]), gap


@kernel(in_order_of_ends, through_ports, allocates=False)
def settle(case: Case, line: Timeline, i: int, d: int, start: int) -> None:
    """Put task i on device d from `start` on: its group goes there too, and with ports its inputs are sent."""
    g = case.group[i]
    if line.home[g] < 0:
        line.home[g] = d
        line.room[d] -= case.memory[g]
    if case.port:
        in_order_of_ends(case, line, i)
        through_ports(case, line, i, d, True)
    line.device[i], line.start[i] = d, start
    line.end[i] = start + case.duration[i, d]


@kernel(settle, allocates=False)
def occupy(case: Case, line: Timeline, i: int, d: int, start: int, gap: int) -> None:
    """Put task i on device d from `start` on, inside the gap that `earliest` told; its group goes there too."""
    settle(case, line, i, d, start)
    end = line.end[i]
    if end > line.free[d]:
        line.free[d] = end
    if gap < 0:
        return
    gap_start, gap_end = line.gap_start[d], line.gap_end[d]
    last = line.gaps[d] - 1
    before = start - gap_start[gap]
    after = gap_end[gap] - end
    if before > line.longest[d]:
        line.longest[d] = before
    if gap < last and after > line.longest[d]:
        line.longest[d] = after
    if before > 0 and after > 0:
        for k in range(last, gap - 1, -1):
            gap_start[k + 1] = gap_start[k]
            gap_end[k + 1] = gap_end[k]
        line.gaps[d] += 1
        gap_end[gap] = start
        gap_start[gap + 1] = end
    elif before > 0:
        gap_end[gap] = start
    elif after > 0:
        gap_start[gap] = end
    else:
        line.gaps[d] -= 1
        for k in range(gap, last):
            gap_start[k] = gap_start[k + 1]
            gap_end[k] = gap_end[k + 1]


@kernel(settle, allocates=False)
def append(case: Case, line: Timeline, i: int, d: int, start: int) -> None:
    """Put task i on device d from `start` on, after all that runs there; for heuristics that look for no gaps."""
    settle(case, line, i, d, start)
    line.free[d] = line.end[i]
