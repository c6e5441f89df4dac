"""Periodic schedules: runs that follow each other without end, a period apart.

A schedule states the times of the first run. Run k has the same times, k periods later, on the device of each team
whose turn it is: devices of a team of r serve every r-th run. Each device has up to three tracks, and each operation
takes some of them for its ticks:

    operation           serial     full_duplex   overlap   overlap and full_duplex
    task, with launch   0          0 and 1       0         0
    sending             0          0             1         1
    receiving           0          1             1         2
    synchronising       0          0 and 1       1         1 and 2

The ticks of a track are at most its device's load, hence at most r periods, after which the device repeats its
operations. So they fit side by side, in any order, and each operation may start as many rounds later as its data
requires. `periodic_schedule` uses this twice: first it gives each operation the first free ticks after its data has
arrived; if they become too scattered, it puts the operations of each track next to each other, without gaps.

A device that occupies several machines takes the tracks of all of them. Without gaps, the operations of devices with
more machines then come before those of devices whose machines they include.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from placeopt import engine
from placeopt.errors import UsageError
from placeopt.model.arrays import LARGEST, Int, by_index, inverse
from placeopt.model.period import loads, sends
from placeopt.model.problem import Problem
from placeopt.model.schedule import (
    Schedule,
    Stages,
    Transfers,
    check_schedule,
    durations,
    edge_ticks,
    edge_transfers,
    makespan,
    sequence,
)
from placeopt.model.stages import backward, rules, trivial_stages
from placeopt.simulation.run import checked_placement

TRACKS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Operations:
    """The operations of one run: n tasks, then launches, sends, receives and synchronisations."""

    device: Int
    ticks: Int
    """(k,) device (the leader of its team) and ticks of each operation."""
    tracks: Int
    """(k, 2) tracks of the device that it takes, -1 for none."""
    before: Int
    after: Int
    """(p,) pairs of operations: the second depends on the first."""
    lag: Int
    """(p,) ticks from the start of the first of a pair to the earliest start of the second: a receive may begin with
    its send, but ends no earlier."""
    launch: Int
    send: Int
    receive: Int
    synchronise: Int
    """(n,) launch of each task's stage, (e,) send and receive of each edge's data, (m,) synchronisation of each device;
    -1 for none."""
    carrier: Int
    """(t,) the edge that stands for each transfer."""
    period: int
    team: Int
    """Ticks between two runs; (m,) number of devices of each team."""
    machines: Sequence[Sequence[int]]
    """(m,) the machines that each device occupies."""

    def starts(self, schedule: Schedule) -> Int | None:
        """(k,) start of every operation in a schedule; None if it lacks transfers."""
        start = np.zeros(len(self.device), dtype=np.int64)
        start[: len(schedule.start)] = schedule.start
        table = schedule.transfers
        edges = np.empty(0, dtype=np.int64) if table is None else table.edge
        if not np.array_equal(np.sort(edges), self.carrier):
            return None
        if table is not None:
            start[self.receive[table.edge]] = table.start
            start[self.send[table.edge]] = table.start if table.sent is None else table.sent
        launched = np.flatnonzero(self.launch >= 0)
        at = self.launch[launched]
        first, rows = by_index(np.minimum, at, schedule.start[launched], len(start), LARGEST), np.unique(at)
        start[rows] = first[rows] - self.ticks[rows]
        if schedule.stages is not None:
            teams = np.flatnonzero(self.synchronise >= 0)
            start[self.synchronise[teams]] = schedule.stages.synchronise[teams]
        return start


def operations(problem: Problem, device: Int, stages: Stages) -> Operations:
    """The operations of a placement."""
    pipeline, n, m = rules(problem), problem.n_tasks, problem.n_devices
    load = loads(problem, device, stages)
    number = stages.number if pipeline.numbered else trivial_stages(problem, device).number
    # Launches: the first backward stage of a device also computes again.
    label, member = np.unique(number, return_inverse=True)
    host = np.zeros(len(label), dtype=np.int64)
    host[member] = device
    lead = pipeline.launch[host].copy()
    behind = np.zeros(len(label), dtype=np.bool_)
    behind[member] = backward(problem)
    for d in np.flatnonzero(load.recomputing).tolist():
        later = np.flatnonzero(behind & (host == d))
        lead[later[0] if len(later) else np.flatnonzero(host == d)[-1]] += load.recomputing[d]
    launched = np.flatnonzero(lead)
    stage = np.full(len(label), -1, dtype=np.int64)
    stage[launched] = n + np.arange(len(launched))
    # Transfers
    send_edge, send_ticks, send_place = sends(problem, device)
    representative = edge_transfers(problem, device)
    carrier = np.flatnonzero(representative == np.arange(problem.n_edges))
    first_send = n + len(launched)
    first_receive = first_send + len(send_edge)
    receive_place = np.full(problem.n_edges, -1, dtype=np.int64)
    receive_place[carrier] = first_receive + np.arange(len(carrier))
    moving = representative >= 0
    receive_place[moving] = receive_place[representative[moving]]
    send_place = np.where(moving, send_place + first_send, -1)
    teams = np.flatnonzero(load.synchronised)
    first_synchronise = first_receive + len(carrier)
    synchronise = np.full(m, -1, dtype=np.int64)
    synchronise[teams] = first_synchronise + np.arange(len(teams))

    where = np.concatenate(
        (
            device,
            host[launched],
            device[problem.edge_source[send_edge]],
            device[problem.edge_target[carrier]],
            teams,
        )
    )
    ticks = np.concatenate(
        (
            durations(problem, device),
            lead[launched],
            send_ticks,
            edge_ticks(problem, device)[carrier],
            load.synchronised[teams],
        )
    )
    kind = np.repeat(np.arange(5), (n, len(launched), len(send_edge), len(carrier), len(teams)))
    mode = 2 * pipeline.overlap[where] + pipeline.full_duplex[where]
    tracks = _TRACKS[mode, kind]
    tracks[pipeline.free_transfers[where] & (kind >= 2)] = -1

    source, target = problem.edge_source, problem.edge_target
    near, far = np.flatnonzero(~moving), np.flatnonzero(moving)
    of_stage = np.flatnonzero(stage[member] >= 0)
    ends = np.flatnonzero(synchronise[device] >= 0)
    before = (source[near], source[far], send_place[carrier], receive_place[far], stage[member][of_stage], ends)
    after = (target[near], send_place[far], receive_place[carrier], target[far], of_stage, synchronise[device[ends]])
    lag = [ticks[rows] for rows in before]
    lag[2] = lag[2] - ticks[after[2]]
    return Operations(
        device=where,
        ticks=ticks,
        tracks=tracks,
        before=np.concatenate(before),
        after=np.concatenate(after),
        lag=np.concatenate(lag),
        launch=stage[member],
        send=send_place,
        receive=receive_place,
        synchronise=synchronise,
        carrier=carrier,
        period=int(load.periods.max(initial=0)),
        team=load.team,
        machines=pipeline.machines or [(d,) for d in range(m)],
    )


_TRACKS = np.array(
    [
        [[0, -1], [0, -1], [0, -1], [0, -1], [0, -1]],
        [[0, 1], [0, 1], [0, -1], [1, -1], [0, 1]],
        [[0, -1], [0, -1], [1, -1], [1, -1], [1, -1]],
        [[0, -1], [0, -1], [1, -1], [2, -1], [1, 2]],
    ]
)
"""Tracks by mode (overlap, full duplex) and kind of operation."""


class _NoRoomError(Exception):
    """The free ticks of a track are too scattered for an operation."""


class _Track:
    """Busy intervals on a circle, sorted by begin; those that reach beyond its end are there twice."""

    def __init__(self, round: int) -> None:
        self.round = round
        self.busy: list[tuple[int, int]] = []

    def clash(self, at: int, ticks: int) -> int | None:
        """The ticks until the end of an interval that overlaps [at, at + ticks); None if there is none."""
        for begin in (at, at - self.round):
            end = begin + ticks
            k = bisect_left(self.busy, (end, -1))
            # Intervals do not overlap each other, so only the last that begins before the end matters, and those of
            # no ticks next to it.
            while k > 0:
                k -= 1
                a, b = self.busy[k]
                if b <= begin:
                    if b > a or b < begin:
                        break
                elif a < end:
                    return b - begin
        return None

    def add(self, at: int, ticks: int) -> None:
        """Take [at, at + ticks)."""
        insort(self.busy, (at, at + ticks))
        if at + ticks > self.round:
            insort(self.busy, (at - self.round, at + ticks - self.round))


class _FirstFit:
    """Gives each operation the first free ticks."""

    def __init__(self, ops: Operations) -> None:
        self.ops = ops
        self.round = (ops.team * ops.period).tolist()
        self.tracks: dict[tuple[int, int], _Track] = {}

    def start(self, row: int, ready: int, ticks: int) -> int:
        d = int(self.ops.device[row])
        length = self.round[d]
        used = [k for k in self.ops.tracks[row].tolist() if k >= 0]
        tracks = [self.tracks.setdefault((q, k), _Track(length)) for q in self.ops.machines[d] for k in used]
        if not tracks or length == 0:
            return ready
        at, last = ready, ready + length
        while True:
            clash = next((wait for track in tracks if (wait := track.clash(at % length, ticks)) is not None), None)
            if clash is None:
                for track in tracks:
                    track.add(at % length, ticks)
                return at
            at += clash
            if at > last:
                raise _NoRoomError


class _Compact:
    """Puts the operations of each track next to each other, in the order in which they come."""

    def __init__(self, ops: Operations, problem: Problem) -> None:
        self.ops = ops
        self.round = (ops.team * ops.period).tolist()
        pipeline, m = rules(problem), problem.n_devices
        kinds = ops.tracks
        self.mode = (2 * pipeline.overlap + pipeline.full_duplex).tolist()
        busy = np.zeros(m, dtype=np.int64)
        synchronised = np.zeros(m, dtype=np.int64)
        teams = np.flatnonzero(ops.synchronise >= 0)
        synchronised[teams] = ops.ticks[ops.synchronise[teams]]
        both = kinds[:, 1] >= 0
        np.add.at(busy, ops.device[both], ops.ticks[both])  # what takes two tracks comes first on both
        self.used = [[0, ticks, ticks, 0] for ticks in busy.tolist()]
        self.origin: dict[tuple[int, int], int] = {}
        self.synchronised = synchronised.tolist()
        if pipeline.machines is not None:
            self._divide(ops)

    def _divide(self, ops: Operations) -> None:
        """Give each device a part of the tracks of its machines; groups of tracks are single tracks there."""
        m = len(ops.machines)
        ticks = np.zeros((m, TRACKS), dtype=np.int64)
        rows = np.flatnonzero(ops.tracks[:, 0] >= 0)
        np.add.at(ticks, (ops.device[rows], ops.tracks[rows, 0]), ops.ticks[rows])
        sets = [set(machines) for machines in ops.machines]
        used = np.flatnonzero(np.bincount(ops.device, minlength=m)).tolist()
        for d in used:
            before = [e for e in used if sets[e] > sets[d] or (sets[e] == sets[d] and e < d)]
            self.origin |= {(d, k): int(each) for k, each in enumerate(ticks[before].sum(axis=0))}

    def start(self, row: int, ready: int, ticks: int) -> int:
        d = int(self.ops.device[row])
        first, second = self.ops.tracks[row].tolist()
        length: int = self.round[d]
        if first < 0 or length == 0:
            return ready
        counter, group = self._place(d, first, second)
        at = self.used[d][counter]
        self.used[d][counter] += ticks
        origin = self.origin.setdefault((d, group), ready - at)
        return ready + (origin + at - ready) % length

    def _place(self, d: int, first: int, second: int) -> tuple[int, int]:
        """The counter of a track and the group of tracks whose positions share an origin."""
        if self.mode[d] == 1:  # full duplex: counter 0 takes both tracks, 1 and 2 follow it
            return (0, 0) if second >= 0 else (1 + first, 0)
        if self.mode[d] == 3:
            if first == 0:
                return 3, 0
            return (0, 1) if second >= 0 else (first, first if self.synchronised[d] == 0 else 1)
        return (0, 0) if first == 0 else (1, 1)


def periodic_schedule(
    problem: Problem, device: ArrayLike, stages: Stages | None = None, order: ArrayLike | None = None
) -> Schedule:
    """A periodic schedule of a placement, with its period and an early end of each run.

    Parameters
    ----------
    device
        (n,) device of each task.
    stages
        Replicas and numbers of stages; None for no replicas and, if they matter, numbers by `stage_numbers`.
    order
        (n,) numbers: tasks are scheduled by increasing number, producers first. None for `Problem.order`.
    """
    where = np.asarray(device, dtype=np.int64)
    given = stages
    if stages is None:
        stages = trivial_stages(problem, where)
        if rules(problem).numbered:
            number = stage_numbers(problem, where)
            stages = stages if number is None else Stages(number, stages.leader, stages.recompute, stages.synchronise)
            given = stages
    ops = operations(problem, where, stages)
    tasks = _topological(problem, order)
    try:
        start = _scheduled(problem, ops, tasks, _FirstFit(ops))
    except _NoRoomError:
        start = _scheduled(problem, ops, tasks, _Compact(ops, problem))
    n = problem.n_tasks
    carrier = ops.carrier
    transfers = Transfers(carrier, start[ops.receive[carrier]], start[ops.send[carrier]])
    if given is not None:
        synchronise = np.zeros(problem.n_devices, dtype=np.int64)
        teams = np.flatnonzero(ops.synchronise >= 0)
        synchronise[teams] = start[ops.synchronise[teams]]
        given = Stages(given.number, given.leader, given.recompute, synchronise)
    return Schedule(where, start[:n], transfers, given)


def _topological(problem: Problem, order: ArrayLike | None) -> list[int]:
    """The tasks by increasing number, each after its producers."""
    if order is None:
        return [int(i) for i in problem.order]
    key = np.asarray(order).copy()
    for i in problem.order.tolist():
        a, b = problem.in_start[i], problem.in_start[i + 1]
        if b > a:
            key[i] = max(key[i], key[problem.edge_source[problem.in_edge[a:b]]].max())
    rank = inverse(problem.order)
    return [int(i) for i in np.lexsort((rank, key))]


def _scheduled(problem: Problem, ops: Operations, tasks: list[int], place: _FirstFit | _Compact) -> Int:
    """(k,) start of every operation."""
    n = problem.n_tasks
    start = np.full(len(ops.device), -1, dtype=np.int64)
    ready = [0] * n
    ticks = ops.ticks.tolist()
    out_start, target = problem.out_start.tolist(), problem.edge_target.tolist()
    stages, send, receive = ops.launch.tolist(), ops.send.tolist(), ops.receive.tolist()
    last = [0] * problem.n_devices
    for i in tasks:
        launch = stages[i]
        if launch >= 0 and start[launch] < 0:
            begin = place.start(i, ready[i], ticks[launch] + ticks[i])
            start[launch] = begin
            start[i] = begin + ticks[launch]
        else:
            earliest = ready[i] if launch < 0 else max(ready[i], int(start[launch]) + ticks[launch])
            start[i] = place.start(i, earliest, ticks[i])
        end = int(start[i]) + ticks[i]
        d = int(ops.device[i])
        last[d] = max(last[d], end)
        for k in range(out_start[i], out_start[i + 1]):
            j, arrival = target[k], end
            if send[k] >= 0:
                if start[send[k]] < 0:
                    start[send[k]] = place.start(send[k], end, ticks[send[k]])
                if start[receive[k]] < 0:
                    sent = int(start[send[k]]) + ticks[send[k]] - ticks[receive[k]]
                    start[receive[k]] = place.start(receive[k], sent, ticks[receive[k]])
                arrival = int(start[receive[k]]) + ticks[receive[k]]
            ready[j] = max(ready[j], arrival)
    for d, row in enumerate(ops.synchronise.tolist()):
        if row >= 0:
            start[row] = place.start(row, last[d], ticks[row])
    return start


def stage_numbers(problem: Problem, device: Int) -> Int | None:
    """(n,) numbers of stages within the limits of the devices; None if none are found.

    Stages are taken from the graph one after another: all tasks of one device and direction that depend on no other
    device any more. If a device has more than one stage, the choice of the next is greedy: first one that completes a
    device, then the largest one. If every device has at most one stage in each direction, the search is exact: the next
    stage is one that completes its device and direction.
    """
    pipeline, n = rules(problem), problem.n_tasks
    kind = device + problem.n_devices * backward(problem)
    target = problem.edge_target.tolist()
    out_start = problem.out_start.tolist()
    waiting = np.diff(problem.in_start).tolist()
    left = np.bincount(kind, minlength=2 * problem.n_devices).tolist()
    used = [0] * len(left)
    limit = np.tile(pipeline.segments, 2).tolist()
    label = kind.tolist()
    ready: dict[int, set[int]] = {}
    for i in range(n):
        if waiting[i] == 0:
            ready.setdefault(label[i], set()).add(i)
    number = np.full(n, -1, dtype=np.int64)

    def closure(c: int) -> list[int]:
        taken: list[int] = []
        missing: dict[int, int] = {}
        stack = sorted(ready[c])
        while stack:
            i = stack.pop()
            taken.append(i)
            for k in range(out_start[i], out_start[i + 1]):
                j = target[k]
                missing[j] = missing.get(j, waiting[j]) - 1
                if missing[j] == 0 and label[j] == c:
                    stack.append(j)
        return taken

    stage = 0
    while any(ready.values()):
        able = [c for c in sorted(ready) if ready[c] and used[c] < limit[c]]
        if not able:
            return None
        best: tuple[bool, int] = (False, -1)
        chosen, tasks = -1, []
        for c in able:
            found = closure(c)
            if (len(found) == left[c], len(found)) > best:
                best, chosen, tasks = (len(found) == left[c], len(found)), c, found
            if best[0]:
                break
        if used[chosen] + 1 == limit[chosen] and not best[0]:
            return None
        used[chosen] += 1
        left[chosen] -= len(tasks)
        ready[chosen] = set()
        for i in tasks:
            number[i] = stage
        for i in tasks:
            for k in range(out_start[i], out_start[i + 1]):
                j = target[k]
                waiting[j] -= 1
                if waiting[j] == 0 and number[j] < 0:
                    ready.setdefault(label[j], set()).add(j)
        stage += 1
    return number


def holds(problem: Problem, schedule: Schedule) -> bool:
    """Whether a schedule can be repeated every period: the data arrives in time, and no two operations overlap."""
    stages = schedule.stages or trivial_stages(problem, schedule.device)
    ops = operations(problem, schedule.device, stages)
    start = ops.starts(schedule)
    if start is None or (start < 0).any():
        return False
    if (start[ops.after] < start[ops.before] + ops.lag).any():
        return False
    rounds = ops.team * ops.period
    for k in range(TRACKS):
        rows = np.flatnonzero((ops.tracks == k).any(axis=1) & (rounds[ops.device] > 0))
        device = ops.device[rows]
        at = start[rows] % rounds[device]
        until = at + ops.ticks[rows]
        # Each interval twice, so that those that reach beyond the round meet those of the next.
        counts = np.array([len(machines) for machines in ops.machines])[device]
        rounds_of = np.repeat(rounds[device], counts)
        at, until = np.repeat(at, counts), np.repeat(until, counts)
        device = np.tile(np.array([q for d in device.tolist() for q in ops.machines[d]], dtype=np.int64), 2)
        at, until = np.concatenate((at, at + rounds_of)), np.concatenate((until, until + rounds_of))
        by_time = np.lexsort((until, at, device))
        device, at, until = device[by_time], at[by_time], until[by_time]
        if ((device[1:] == device[:-1]) & (at[1:] < until[:-1])).any():
            return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class PipelineRuns:
    """The `ends` (runs,) of runs that follow each other, in int64 ticks."""

    ends: Int
    cycle: int
    """A multiple of the sizes of all teams, whose devices serve runs in turn."""

    def __repr__(self) -> str:
        return f"<PipelineRuns: {len(self.ends):,} runs, one every {self.mean:.1f} ticks>"

    @property
    def mean(self) -> float:
        """Mean ticks between two results in the second half of the runs, over whole cycles of the teams."""
        some = min(max(len(self.ends) // 2 // self.cycle, 1) * self.cycle, len(self.ends) - 1)
        return float(self.ends[-1] - self.ends[-1 - some]) / some if some else float(self.ends[-1])


def run_pipeline(problem: Problem, schedule: Schedule, runs: int) -> PipelineRuns:
    """Execute runs of a pipeline, each operation as early as its data and its device allow.

    Each track serves its operations in the order of the periodic schedule, without regard to its times: run k of an
    operation comes k periods after its first. Nothing waits for the clock, so that a bottleneck shows.

    Raises
    ------
    UsageError
        If the schedule has no transfers, or the number of runs is not positive.
    """
    check_schedule("run_pipeline", problem, schedule)
    if runs < 1:
        raise UsageError(f"runs is {runs}; expected at least 1")
    stages = schedule.stages or trivial_stages(problem, schedule.device)
    ops = operations(problem, schedule.device, stages)
    start = ops.starts(schedule)
    if start is None:
        raise UsageError("the schedule lacks transfers of the pipeline; expected a schedule of solve or a plan file")
    n_ops, period = len(start), max(ops.period, 1)
    by_after = np.argsort(ops.after, kind="stable")
    in_start = np.searchsorted(ops.after[by_after], np.arange(n_ops + 1)).astype(np.int64)
    lap = start // period
    # At one tick, those of no ticks come first on a track, each after what it depends on.
    in_lap = np.lexsort((_depth(ops, start), ops.ticks > 0, start % period)).astype(np.int64)
    machines, m = rules(problem).machines, problem.n_devices
    if machines is None:
        leader, member = np.sort(stages.leader), np.argsort(stages.leader, kind="stable").astype(np.int64)
    else:
        leader = np.repeat(np.arange(m), [len(each) for each in machines])
        member = np.unique([q for each in machines for q in each], return_inverse=True)[1].astype(np.int64)
    member_start = np.searchsorted(leader, np.arange(m + 1)).astype(np.int64)
    ends = engine.execute_runs(
        in_lap, lap, ops.ticks, ops.device, ops.tracks, in_start, ops.before[by_after], ops.lag[by_after],
        member_start, member, machines is not None, runs, int(lap.max(initial=0)) + 2, engine.current_stop(),
    )  # fmt: skip
    return PipelineRuns(ends, math.lcm(*np.unique(np.maximum(ops.team, 1)).tolist()))


def _depth(ops: Operations, start: Int) -> Int:
    """(k,) the longest chain of operations that start at the same tick and lead to each operation."""
    depth = np.zeros(len(start), dtype=np.int64)
    same = np.flatnonzero(start[ops.before] == start[ops.after])
    while True:  # at most as often as operations of no ticks follow each other
        deeper = depth.copy()
        np.maximum.at(deeper, ops.after[same], depth[ops.before[same]] + 1)
        if np.array_equal(deeper, depth):
            return depth
        depth = deeper


def repeated(problem: Problem, schedule: Schedule) -> Schedule:
    """A periodic schedule with the same placement and stages, whose runs end no later than those of a valid input."""
    device = checked_placement(problem, schedule.device)
    best = schedule if holds(problem, schedule) else None
    order = sequence(problem, schedule)
    while True:
        rank = inverse(order)
        found = periodic_schedule(problem, device, schedule.stages, rank)
        if best is not None and makespan(problem, best) <= makespan(problem, found):
            return best
        best, order = found, sequence(problem, found)
