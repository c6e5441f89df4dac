"""Decide by CP-SAT whether a fork with fixed ends has a schedule of at most a given makespan.

A literal says on which machine an inner task runs, within its head and its latest end there
(`placeopt_solvers.exact._forks.shape`). What remains is to state that a machine can run its tasks.

*Windows.* Tasks with heads of at least a and latest ends of at most b take at most b - a on one machine. These are
linear rows over the literals, without times. They are necessary. They are sufficient if all heads on the machine are
equal: then the order of latest ends meets all of them, because the tasks up to the one with latest end b end by the
head plus their work (J. R. Jackson: Scheduling a production line to minimize maximum tardiness, UCLA, 1955). Equal
latest ends are the mirror image. The devices of the source and of the sink are mostly such machines, and in a fork or a
join all machines are.

*Intervals.* On any other machine the tasks also have starts, and optional intervals that do not overlap. The rows then
are redundant, and limited to LEVELS heads and latest ends. All of them together would be sufficient for tasks that may
be interrupted (W. A. Horn: Some simple scheduling algorithms, Naval Research Logistics Quarterly 21, 1974,
doi:10.1002/nav.3800210113), so they leave little to the intervals.

*Symmetry.* The k-th machine of a pool may run a task only if the machine before it runs a longer one. That keeps a
schedule of each class of equal ones: number the machines by their longest tasks, with ties by index.

The general model of cp-sat (`placeopt_solvers.exact._cp_sat`) has starts and transfers everywhere instead of rows, and
mostly cannot exclude a makespan of one tick below the optimum; `benchmarks/forks.py` compares both. On the same graphs,
start literals for each tick (a time-indexed formulation) took five times as long, and more if ticks are short; a
cumulative resource for each pool left a tenth of the decisions open.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from placeopt.bounding.engines import cp_sat
from placeopt.engine import StoppedError
from placeopt.model.arrays import Int
from placeopt.model.schedule import Schedule

from .shape import Placed, Pool

Variable = cp_model.IntVar

LEVELS = 32
"""Heads, and latest ends, at most, that the redundant rows of a machine use."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The variables of a device; tasks are positions among the inner tasks."""

    device: int
    pool: Pool
    latest: Int
    on: dict[int, Variable]  # literal of each task that may run here
    start: dict[int, Variable] | None  # None if the order of heads and latest ends gives the times

    def order(self, read: Callable[[Variable], int]) -> list[tuple[int, int]]:
        """Return the tasks of a solution in their order, each with a tick before which it does not start."""
        tasks = [i for i, x in self.on.items() if read(x)]
        begin = {i: int(self.pool.head[i]) if self.start is None else read(self.start[i]) for i in tasks}
        end = self.latest if self.start is None else {i: begin[i] + int(self.pool.duration[i]) for i in tasks}
        return [(i, begin[i]) for i in sorted(tasks, key=lambda i: (begin[i], end[i]))]


class Model:
    """The question whether there is a schedule of at most `makespan` ticks.

    Raises
    ------
    StoppedError
        If `stopped` returned true.
    """

    def __init__(self, placed: Placed, makespan: int, stopped: Callable[[], bool]) -> None:
        self.placed, self.makespan = placed, makespan
        self.cp = cp_model.CpModel()
        self.machines: list[Machine] = []
        for pool in placed.pools:
            same: list[Machine] = []
            for device in pool.devices:
                if stopped():
                    raise StoppedError
                same.append(self._add_machine(pool, device))
            self._order_machines(same)
            self.machines += same
        for i in range(len(placed.fork.inner)):
            self.cp.add_exactly_one(machine.on[i] for machine in self.machines if i in machine.on)

    def _add_machine(self, pool: Pool, device: int) -> Machine:
        """Add the literals of the tasks that a machine may run, and the constraints so that it can run the chosen ones.

        With equal heads or equal latest ends, there is one level of them, and all of the others.
        """
        latest = pool.latest(self.makespan)
        tasks = np.flatnonzero(pool.allowed & (pool.head + pool.duration <= latest)).tolist()
        on = {i: self.cp.new_bool_var("") for i in tasks}
        heads, ends = np.unique(pool.head[tasks]), np.unique(latest[tasks])
        start = None
        if len(heads) > 1 and len(ends) > 1:
            start = {i: self.cp.new_int_var(int(pool.head[i]), int(latest[i] - pool.duration[i]), "") for i in tasks}
            self.cp.add_no_overlap(
                self.cp.new_optional_fixed_size_interval_var(start[i], int(pool.duration[i]), x, "")
                for i, x in on.items()
            )
            heads, ends = _spread(heads), _spread(ends)
        for a, b in itertools.product(heads.tolist(), ends.tolist()):
            inside = [i for i in tasks if pool.head[i] >= a and latest[i] <= b]
            ticks = pool.duration[inside].tolist()
            if sum(ticks) > b - a:
                self.cp.add(cp_model.LinearExpr.weighted_sum([on[i] for i in inside], ticks) <= max(b - a, 0))
        return Machine(device, pool, latest, on, start)

    def _order_machines(self, same: list[Machine]) -> None:
        """Break the symmetry between identical machines, which may run the same tasks."""
        for before, machine in itertools.pairwise(same):
            longer: list[Variable] = []
            for i in sorted(machine.on, key=lambda i: -int(machine.pool.duration[i])):
                self.cp.add_bool_or(~machine.on[i], *longer)
                longer.append(before.on[i])

    def solve(
        self, *, seconds: float | None, work: float | None, seed: int, workers: int, should_stop: Callable[[], bool]
    ) -> cp_sat.Outcome:
        """Search for a schedule, within limits of time and of CP-SAT's deterministic time."""
        limit = {} if work is None else {"max_deterministic_time": work}
        # The linear relaxation proves most: without it a sixth of the decisions stays open.
        return cp_sat.run(
            self.cp,
            largest=self.makespan + sum(self.placed.fork.problem.duration.max(axis=1).tolist()),
            seconds=seconds,
            seed=seed,
            workers=workers,
            should_stop=should_stop,
            parameters={"linearization_level": 2, **limit},
        )

    def schedule(self, read: Callable[[Variable], int]) -> Schedule:
        """Return the schedule of a solution."""
        fork = self.placed.fork
        problem = fork.problem
        device, start = np.zeros(problem.n_tasks, dtype=np.int64), problem.release.copy()
        if fork.source is not None and self.placed.source_device is not None:
            device[fork.source] = self.placed.source_device
        if fork.sink is not None and self.placed.sink_device is not None:
            device[fork.sink] = self.placed.sink_device
            end = min(self.makespan, int(problem.deadline[fork.sink]))
            start[fork.sink] = end - problem.duration[fork.sink, self.placed.sink_device]
        for machine in self.machines:
            free = 0
            for i, begin in machine.order(read):
                task = fork.inner[i]
                device[task], start[task] = machine.device, max(begin, free)
                free = int(start[task] + machine.pool.duration[i])
        return Schedule(device, start)


def _spread(ticks: Int) -> Int:
    """Return at most LEVELS of the ticks, spread evenly."""
    return ticks[np.unique(np.linspace(0, len(ticks) - 1, LEVELS).astype(np.int64))]
