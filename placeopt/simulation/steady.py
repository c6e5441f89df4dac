"""The operations of many runs of a pipeline, and those of its steady state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from placeopt.errors import counted
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.model.stages import trivial_stages
from placeopt.simulation.pipelines import Operations, operations

Kind = Literal["task", "launch", "send", "receive", "synchronise"]
KINDS: tuple[Kind, ...] = get_args(Kind)
PERIODS, MOST_PERIODS = 3, 6


@dataclass(frozen=True, slots=True, eq=False)
class Occurrences:
    """Operations of some runs, one entry for each run of each operation, sorted by start, device and operation."""

    kind: Int
    """(k,) place in `KINDS`. A launch includes what is computed again."""
    device: Int
    """(k,) device that executes it, a replica in its turn."""
    run: Int
    """(k,) number of the run, from 0."""
    start: Int
    end: Int
    """(k,) ticks."""
    tracks: Int
    """(k, 2) tracks of the device, -1 for none (`placeopt.simulation.pipelines`)."""
    task: Int
    """(k,) task that runs, whose output moves, or that starts the stage; -1 for synchronising."""
    edge: Int
    """(k,) edge that stands for a send or a receive; -1 otherwise."""
    period: int
    """Ticks between two runs."""
    begin: int
    periods: int
    """The first period of the window, from 0, and the number of periods in it."""

    def __repr__(self) -> str:
        return f"<Occurrences: {len(self.kind):,} in {self.periods} periods of {self.period:,} ticks>"

    @property
    def window(self) -> tuple[int, int]:
        """First tick of the window, and the first one after it."""
        return self.begin * self.period, (self.begin + self.periods) * self.period

    @property
    def caption(self) -> str:
        """What the window shows, in words."""
        first = f"{ordinal(self.begin + 1)} on; the runs that fill the pipeline before are not shown"
        periods = counted(self.periods, "period")
        return f"steady state: {periods} from the {first if self.begin else 'first on'}"


def ordinal(number: int) -> str:
    """Return 1st, 2nd, 3rd, 4th and so on."""
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def steady_periods(problem: Problem, schedule: Schedule) -> int | None:
    """Number of periods until the steady state, in which each operation takes place once in each period.

    None if the schedule lacks transfers or takes no time.
    """
    ops, start = _operations(problem, schedule)
    if start is None or ops.period == 0:
        return None
    # All operations of the run before the first one would end before, or begin before if they take no time.
    return max(-(-int((start + ops.ticks).max(initial=0)) // ops.period) - 1, int(start.max(initial=0)) // ops.period)


def steady_state(problem: Problem, schedule: Schedule, periods: int | None = None) -> Occurrences | None:
    """The operations in some periods of the steady state, also those that begin before or end after them.

    By default, these are `PERIODS` periods; with replicas, as many as the largest team has devices, up to
    `MOST_PERIODS`.
    None if the schedule lacks transfers or takes no time.
    """
    begin = steady_periods(problem, schedule)
    if periods is None:
        leader = np.arange(problem.n_devices) if schedule.stages is None else schedule.stages.leader
        periods = min(max(PERIODS, int(np.bincount(leader).max(initial=1))), MOST_PERIODS)
    return None if begin is None else _occurrences(problem, schedule, begin, periods, whole=False)


def runs_of(problem: Problem, schedule: Schedule, runs: int) -> Occurrences | None:
    """All operations of the first runs; None if the schedule lacks transfers or takes no time."""
    if steady_periods(problem, schedule) is None:
        return None
    return _occurrences(problem, schedule, 0, runs, whole=True)


def _operations(problem: Problem, schedule: Schedule) -> tuple[Operations, Int | None]:
    ops = operations(problem, schedule.device, schedule.stages or trivial_stages(problem, schedule.device))
    return ops, ops.starts(schedule)


def _occurrences(problem: Problem, schedule: Schedule, begin: int, periods: int, *, whole: bool) -> Occurrences:
    ops, start = _operations(problem, schedule)
    assert start is not None
    end, length = start + ops.ticks, ops.period
    if whole:
        first, last = np.zeros(len(start), dtype=np.int64), np.full(len(start), periods)
    else:
        low, high = begin * length, (begin + periods) * length
        # Run k is in the window if start + k period < high and end + k period > low, or starts in it.
        first = np.minimum((low - end) // length + 1, -((start - low) // length))
        last = -((start - high) // length)
    counts = np.maximum(last - first, 0)
    which = np.repeat(np.arange(len(start)), counts)
    run = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
    kind, task, edge = _labels(problem, ops)
    leader = np.arange(problem.n_devices) if schedule.stages is None else schedule.stages.leader
    members = np.argsort(leader, kind="stable")
    place = np.searchsorted(leader[members], np.arange(problem.n_devices))
    lead = ops.device[which]
    own = members[place[lead] + run % np.maximum(ops.team, 1)[lead]]
    begun = start[which] + run * length
    order = np.lexsort((which, own, begun))
    return Occurrences(
        kind=kind[which][order],
        device=own[order],
        run=run[order],
        start=begun[order],
        end=(begun + ops.ticks[which])[order],
        tracks=ops.tracks[which][order],
        task=task[which][order],
        edge=edge[which][order],
        period=length,
        begin=begin,
        periods=periods,
    )


def _labels(problem: Problem, ops: Operations) -> tuple[Int, Int, Int]:
    """The kind, task and edge of each operation."""
    n, count = problem.n_tasks, len(ops.device)
    kind, edge = np.zeros(count, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    task = np.full(count, -1, dtype=np.int64)
    task[:n] = np.arange(n)
    launched = np.flatnonzero(ops.launch >= 0)[::-1]
    kind[ops.launch[launched]] = KINDS.index("launch")
    task[ops.launch[launched]] = launched
    for name, place in (("send", ops.send), ("receive", ops.receive)):
        moving = np.flatnonzero(place >= 0)[::-1]
        kind[place[moving]] = KINDS.index(name)
        edge[place[moving]] = moving
        task[place[moving]] = problem.edge_source[moving]
    kind[ops.synchronise[ops.synchronise >= 0]] = KINDS.index("synchronise")
    return kind, task, edge
