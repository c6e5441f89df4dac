"""Model memory in a mixed-integer program, under both memory models, as `placeopt.model.memory` defines it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from placeopt.model.problem import PARTS

from ..._runs.exact_run import View, bounded_devices, counted
from ..._runs.linear import Linear, total
from .placement import Placement
from .timing import Timing


class Memory:
    """The constraint that no device exceeds its capacity; column U[d], the bytes used, if the objective needs it.

    Bytes are counted in units of their greatest common divisor, and capacities are rounded down to units. Sums of
    multiples of the unit respect one capacity exactly if they respect the other.

    Under `sum` the tasks of a device add up. Under `peak`, where outputs are released at r[i], memory rises only when a
    task starts. So one row per task j on a device is enough: the output of j, its scratch, the outputs live at its
    start and the resident bytes must fit. L[i, j], the output of i is live at the start of j, follows from

        y[i, j] <= L[i, j] + A[i, j] + R[i, j]

    where the binary A says that i starts later, s[i] >= s[j] + 1, and R that it is released by then, s[j] >= r[i]. All
    times are integers in these units, so "later" is "by 1 or more". If j has a duration, A is the o[j, i] of the
    disjunction. The scratch of another task is live at the start of j only if j has no duration and the other task
    starts at the same tick; the row of that task then counts both. On a parallel device, i may start while j runs, and
    the scratch of all tasks that run at the start of j is live; both then depend on A and o.
    """

    def __init__(self, placement: Placement, timing: Timing | None) -> None:
        self.placement, self.timing = placement, timing
        self.problem, self.program = placement.problem, placement.program
        problem = self.problem
        amounts = np.stack((problem.resident, problem.output, problem.scratch))
        self.unit = math.gcd(*amounts.ravel().tolist()) or 1
        self.resident, self.output, self.scratch = (amounts // self.unit).tolist()
        self._parallel = bool(problem.parallel.any())
        self.balanced = "memory_balance" in counted(problem)
        self.used: dict[int, Linear] = {}
        devices = bounded_devices(problem)
        if problem.memory_model == "sum":
            self._limit_sums(devices)
        elif devices and timing is not None:
            self._limit_peaks(devices, timing)

    def _limit_sums(self, devices: list[int]) -> None:
        amounts = zip(self.resident, self.output, self.scratch, strict=True)
        held = [[sum(parts)] * self.problem.n_devices for parts in amounts]
        for d, load in enumerate(self.placement.loads(held)):
            if d in devices:
                self.used[d] = load
                self.program.at_least(self._room(d), load)

    def _room(self, d: int) -> int:
        """Return the capacity of a device, at most the memory of all tasks."""
        everything = sum(self.resident) + sum(self.output) + sum(self.scratch)
        return min(int(self.problem.capacity[d]) // self.unit, int(everything))

    def _limit_peaks(self, devices: list[int], timing: Timing) -> None:
        stays = self.placement.loads([[amount] * self.problem.n_devices for amount in self.resident])
        for d in devices:
            self.used[d] = self._use(d) if self.balanced else Linear(constant=self._room(d))
            self.program.at_least(self.used[d], stays[d])
        self._release = {i: self._add_release(i, timing) for i in range(self.problem.n_tasks) if self.output[i]}
        for j in range(self.problem.n_tasks):
            row = self.placement.x[self.placement.group[j]]
            there = [d for d in devices if d in row]
            if there and (self.output[j] or self.scratch[j]):
                live = {i: self.output[i] * self._live(i, j, timing) for i in self._release}
                others = total(each for i, each in live.items() if i != j)
                if self._parallel:
                    others = others + self._running(j, timing)
                for d in there:
                    if timing.times.duration[j][d]:
                        needed = others + self.output[j] + self.scratch[j]
                    else:  # no scratch, and perhaps its output is never held
                        needed = others + live.get(j, 0)
                    slack = self.program.most(needed) * (1 - row[d])
                    self.program.at_least(self.used[d], needed + stays[d] - slack)

    def _use(self, d: int) -> Linear:
        return self.program.column(0, self._room(d), lambda view: view.used[d] / self.unit)

    def _add_release(self, i: int, timing: Timing) -> Linear:
        """Add r[i], at least the task's end, the ends of consumers on its device, and the arrivals at the others."""
        problem, placement, times = self.problem, self.placement, timing.times
        g = placement.group[i]
        release = self.program.column(
            times.earliest[i] + times.least[i], times.horizon, lambda view: view.release[i] / times.unit
        )
        self.program.at_least(release, timing.end[i])
        for e in range(int(problem.out_start[i]), int(problem.out_start[i + 1])):
            v = int(problem.edge_target[e])
            together = placement.together(g, placement.group[v])
            timing.if_one(release, timing.end[v], together, times.latest[v])
            self.program.at_least(release, timing.end[i] + timing.travel(e))
        if problem.contends:
            for move, arrival in zip(timing.moves.all, timing.arrival, strict=True):
                if move.producer == i:
                    for e in move.edges:
                        served = timing.moves.serving(timing.moves.target[e], move)
                        timing.if_one(release, arrival, served, times.horizon)
        return release

    def _running(self, j: int, timing: Timing) -> Linear:
        """Return the scratch of the other tasks that run on the device of a task at its start."""
        placement, group = self.placement, self.placement.group
        parts = []
        for i in range(self.problem.n_tasks):
            if i == j or not self.scratch[i] or timing.times.ordered(i, j):
                continue
            g, h = group[i], group[j]
            if g != h and not placement.may_share(g, h):
                continue
            running = self.program.column(0, 1, partial(_runs_beside, i=i, j=j))
            ended = timing.order(i, j) + timing.later(i, j)
            self.program.at_least(running + ended, placement.together(g, h))
            parts.append(self.scratch[i] * running)
        return total(parts)

    def _live(self, i: int, j: int, timing: Timing) -> Linear:
        """Return L[i, j]; for i = j, whether a task's own output is held at its start."""
        placement, program, times = self.placement, self.program, timing.times
        g, h = placement.group[i], placement.group[j]
        lasting = times.least[j] > 0
        if i == j and lasting:
            return Linear(constant=1)
        if not (g == h or placement.may_share(g, h)) or (times.after[j] >> i & 1 and lasting):
            return Linear()
        start, release = timing.start, self._release[i]
        excuses: list[Linear] = []
        if i != j and not times.after[i] >> j & 1:
            if lasting and not self._parallel:
                excuses.append(timing.before[j, i])
            else:
                excuses.append(timing.later(i, j))
        gone = program.binary(lambda view: view.release[i] <= view.start[j])
        timing.if_one(start[j], release, gone, times.horizon - times.earliest[j])
        excuses.append(gone)
        live = program.column(
            0, 1, lambda view: view.home[g] == view.home[h] and view.start[i] <= view.start[j] < view.release[i]
        )
        program.at_least(total((live, *excuses)), placement.together(g, h))
        return live

    def balance(self, value: Callable[..., float]) -> Linear:
        """Add a column that is at least the largest used share of a capacity, in parts per million, rounded up."""
        share = self.program.column(0, PARTS, value, whole=True)
        for d, used in self.used.items():
            # share >= used * unit * PARTS / capacity
            capacity = max(int(self.problem.capacity[d]), 1)
            self.program.at_least(capacity * share, self.unit * PARTS * used)
        return share


def _runs_beside(view: View, *, i: int, j: int) -> bool:
    """Return whether task i runs on the device of task j at the start of j."""
    return view.device[i] == view.device[j] and view.start[i] <= view.start[j] < view.end[i]
