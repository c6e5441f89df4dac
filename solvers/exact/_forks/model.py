"""Decide by CP-SAT whether a fork with fixed ends has a schedule of at most a given makespan.

Each inner task runs in one pool (`placeopt_solvers.exact._forks.shape`), within its head and its latest end there. A
literal says so. What remains is to state that k machines can run the tasks of a pool:

*One machine, equal heads.* Tasks of a set can run from the common head h on if and only if, for each latest end b, the
tasks with latest ends up to b take at most b - h: then the order of latest ends meets all of them (J. R. Jackson,
Scheduling a production line to minimize maximum tardiness, 1955). So linear rows over the literals are exact, without
times. Equal latest ends are the mirror image. The source's device and the sink's device are mostly such machines.

*Start literals.* Otherwise a literal for each task and tick says that the task starts then. At each tick at most k
tasks run. That suffices: take tasks by their starts, each on a machine whose last task has ended. One exists, else k
tasks that began no later still run at its start, which makes k + 1 (all tasks take time). This is the time-indexed
formulation (J. P. Sousa, L. A. Wolsey: A time indexed formulation of non-preemptive single machine scheduling problems,
Mathematical Programming 54, 1992, doi:10.1007/BF01586059). Its linear relaxation is strong, and CP-SAT uses all of it.

*Intervals.* With more than STARTS start literals, tasks are intervals on a cumulative resource of k units. The rows of
the energy in windows are redundant: tasks with heads of at least a and latest ends of at most b take at most k (b - a).

Measured on forks, joins and fork-joins of 21 and 30 tasks on 2 and 4 devices: `benchmarks/forks.py`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np
from ortools.sat.python import cp_model

from placeopt.bounding.engines import cp_sat
from placeopt.model.arrays import Int
from placeopt.model.schedule import Schedule

from .shape import Placed, Pool

Literal = cp_model.IntVar
Starts = dict[int, cp_model.IntVar] | dict[int, list[tuple[int, Literal]]] | None
"""Start of each task of a pool: a variable, or its ticks with their literals; None if it follows from the order."""

STARTS = 20_000
"""Start literals of a pool at most."""

LEVELS = 16
"""Heads, and latest ends, at most, that the rows for windows use."""


class Model:
    """The question whether there is a schedule of at most `makespan` ticks; the inner tasks are 0..k-1 here."""

    def __init__(self, placed: Placed, makespan: int) -> None:
        self.placed, self.makespan = placed, makespan
        self.cp = cp_model.CpModel()
        self.on: list[dict[int, Literal]] = []
        self.starts: list[Starts] = []
        for pool in placed.pools:
            self._add_pool(pool)
        for i in range(len(placed.fork.inner)):
            self.cp.add_exactly_one(here[i] for here in self.on if i in here)

    def _add_pool(self, pool: Pool) -> None:
        """Add the literals of the tasks that a pool may run, and rows so that its machines can run the chosen ones."""
        latest, machines = pool.latest(self.makespan), len(pool.devices)
        tasks = np.flatnonzero(pool.allowed & (pool.head + pool.duration <= latest)).tolist()
        here = {i: self.cp.new_bool_var("") for i in tasks}
        self.on.append(here)
        heads, ends = {int(pool.head[i]) for i in tasks}, {int(latest[i]) for i in tasks}
        if len(tasks) <= machines:
            self.starts.append(None)
        elif machines == 1 and (len(heads) == 1 or len(ends) == 1):
            self.starts.append(None)
            for a in sorted(heads):
                for b in sorted(ends):
                    self._limit_work(pool, latest, a, b)
        elif sum(int(latest[i] - pool.duration[i] - pool.head[i]) + 1 for i in tasks) <= STARTS:
            self.starts.append(self._by_tick(pool, latest))
        else:
            self.starts.append(self._by_interval(pool, latest))

    def _limit_work(self, pool: Pool, latest: Int, a: int, b: int) -> None:
        """Limit the work of the tasks that must run between ticks a and b."""
        here = self.on[-1]
        inside = [i for i in here if pool.head[i] >= a and latest[i] <= b]
        ticks = [int(pool.duration[i]) for i in inside]
        if sum(ticks) > len(pool.devices) * (b - a):
            work = cp_model.LinearExpr.weighted_sum([here[i] for i in inside], ticks)
            self.cp.add(work <= len(pool.devices) * max(b - a, 0))

    def _by_tick(self, pool: Pool, latest: Int) -> dict[int, list[tuple[int, Literal]]]:
        """Add the start literals."""
        starts: dict[int, list[tuple[int, Literal]]] = {}
        running: dict[int, list[Literal]] = {}
        for i, x in self.on[-1].items():
            ticks = int(pool.duration[i])
            possible = range(int(pool.head[i]), int(latest[i]) - ticks + 1)
            starts[i] = [(tick, self.cp.new_bool_var("")) for tick in possible]
            for tick, literal in starts[i]:
                for busy in range(tick, tick + ticks):
                    running.setdefault(busy, []).append(literal)
            self.cp.add(cp_model.LinearExpr.sum([literal for _, literal in starts[i]]) == x)
        for literals in running.values():
            self.cp.add(cp_model.LinearExpr.sum(literals) <= len(pool.devices))
        self._limit_windows(pool, latest)
        return starts

    def _by_interval(self, pool: Pool, latest: Int) -> dict[int, cp_model.IntVar]:
        """Add the intervals and the rows for windows."""
        starts: dict[int, cp_model.IntVar] = {}
        intervals = []
        for i, x in self.on[-1].items():
            ticks = int(pool.duration[i])
            starts[i] = self.cp.new_int_var(int(pool.head[i]), int(latest[i]) - ticks, "")
            intervals.append(self.cp.new_optional_fixed_size_interval_var(starts[i], ticks, x, ""))
        self.cp.add_cumulative(intervals, [1] * len(intervals), len(pool.devices))
        self._limit_windows(pool, latest)
        return starts

    def _limit_windows(self, pool: Pool, latest: Int) -> None:
        """Add the rows for windows."""
        tasks = list(self.on[-1])
        for a in _levels(pool.head[tasks]):
            for b in _levels(latest[tasks]):
                self._limit_work(pool, latest, a, b)

    def solve(
        self, *, seconds: float | None, work: float | None, seed: int, workers: int, should_stop: Callable[[], bool]
    ) -> cp_sat.Outcome:
        """Search for a schedule, within limits of time and of CP-SAT's deterministic time."""
        limit = {} if work is None else {"max_deterministic_time": work}
        problem = self.placed.fork.problem
        return cp_sat.run(
            self.cp,
            largest=(self.makespan + int(problem.duration.max())) * (problem.n_devices + problem.n_tasks),
            seconds=seconds,
            seed=seed,
            workers=workers,
            should_stop=should_stop,
            parameters={"linearization_level": 2, **limit},
        )

    def schedule(self, read: Callable[[Literal], int]) -> Schedule:
        """Return the schedule of a solution."""
        fork = self.placed.fork
        problem = fork.problem
        device, start = np.zeros(problem.n_tasks, dtype=np.int64), problem.release.copy()
        if fork.source is not None and self.placed.source_device is not None:
            device[fork.source] = self.placed.source_device
        if fork.sink is not None and self.placed.sink_device is not None:
            sink, there = fork.sink, self.placed.sink_device
            device[sink] = there
            start[sink] = min(self.makespan, int(problem.deadline[sink])) - problem.duration[sink, there]
        for pool, here, starts in zip(self.placed.pools, self.on, self.starts, strict=True):
            latest = pool.latest(self.makespan)
            chosen = [i for i, x in here.items() if read(x)]
            begin = {i: int(pool.head[i]) if starts is None else _start(starts[i], read) for i in chosen}
            free = [(0, d) for d in pool.devices]
            for i in sorted(chosen, key=lambda i: (begin[i], latest[i])):
                ready, d = heapq.heappop(free)
                # Only without times may a machine be busy at the task's head.
                device[fork.inner[i]], start[fork.inner[i]] = d, max(begin[i], ready)
                heapq.heappush(free, (int(start[fork.inner[i]] + pool.duration[i]), d))
        return Schedule(device, start)


def _start(start: cp_model.IntVar | list[tuple[int, Literal]], read: Callable[[Literal], int]) -> int:
    """Return the start of a task in a solution."""
    return next(tick for tick, x in start if read(x)) if isinstance(start, list) else read(start)


def _levels(ticks: Int) -> list[int]:
    """Return up to LEVELS of the different ticks, spread evenly."""
    known = np.unique(ticks)
    return known[np.unique(np.linspace(0, len(known) - 1, LEVELS).astype(np.int64))].tolist() if len(known) else []
