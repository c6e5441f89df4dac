"""Memory in a mixed-integer programme under both models, exactly as `placeopt.model.memory` defines it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from placeopt.model.problem import PARTS, UNLIMITED, Problem

from .linear import Linear, total
from .placement import Placement
from .timing import Timing


class Memory:
    """No device holds more than its capacity; U[d], what device d uses, where the objective asks for it.

    Bytes are counted in units of their greatest common divisor, and capacities rounded down to that: sums of multiples
    of the unit stay within one exactly if they stay within the other.

    Under `sum` the tasks of a device add up. Under `peak`, where outputs are let go at r[i], memory only rises when a
    task starts; so it is enough that for each task j on a device the output of j, its scratch, and the outputs live at
    its start fit beside what is resident. L[i, j], the output of i is live at the start of j on the same device,
    is forced by

        y[i, j] <= L[i, j] + A[i, j] + R[i, j]

    where the binary A says that i starts later, s[i] >= s[j] + 1, and R that it is released by then, s[j] >= r[i]. All
    times are whole in these units, so "later" is "by 1 or more". Where j takes time, A is the o[j, i] of the
    disjunction. The scratch of another task is never live at the start of j, unless j takes no time and that
    task starts at the same tick: then the row of that task counts both.
    """

    def __init__(self, placement: Placement, timing: Timing | None) -> None:
        self.placement, self.timing = placement, timing
        self.problem, self.programme = placement.problem, placement.programme
        problem = self.problem
        amounts = np.stack((problem.resident, problem.output, problem.scratch))
        self.unit = math.gcd(*amounts.ravel().tolist()) or 1
        self.resident, self.output, self.scratch = (amounts // self.unit).tolist()
        self.balanced = "memory_balance" in problem.objective.metrics
        self.used: dict[int, Linear] = {}
        devices = bounded_devices(problem)
        if problem.memory_model == "sum":
            self._add_up(devices)
        elif devices and timing is not None:
            self._follow(devices, timing)

    def _add_up(self, devices: list[int]) -> None:
        held = [
            [sum(parts)] * self.problem.n_devices
            for parts in zip(self.resident, self.output, self.scratch, strict=True)
        ]
        for d, load in enumerate(self.placement.loads(held)):
            if d in devices:
                self.used[d] = load
                self.programme.at_least(self._room(d), load)

    def _room(self, d: int) -> int:
        """What a device can hold, or all there is."""
        everything = sum(self.resident) + sum(self.output) + sum(self.scratch)
        return min(int(self.problem.capacity[d]) // self.unit, int(everything))

    def _follow(self, devices: list[int], timing: Timing) -> None:
        stays = self.placement.loads([[amount] * self.problem.n_devices for amount in self.resident])
        for d in devices:
            self.used[d] = self._use(d) if self.balanced else Linear(constant=self._room(d))
            self.programme.at_least(self.used[d], stays[d])
        self._release = {i: self._let_go(i, timing) for i in range(self.problem.n_tasks) if self.output[i]}
        for j in range(self.problem.n_tasks):
            row = self.placement.x[self.placement.group[j]]
            there = [d for d in devices if d in row]
            if there and (self.output[j] or self.scratch[j]):
                live = {i: self.output[i] * self._live(i, j, timing) for i in self._release}
                others = total(each for i, each in live.items() if i != j)
                for d in there:
                    if timing.times.duration[j][d]:
                        needed = others + self.output[j] + self.scratch[j]
                    else:  # never running, its output perhaps never held
                        needed = others + live.get(j, 0)
                    slack = self.programme.most(needed) * (1 - row[d])
                    self.programme.at_least(self.used[d], needed + stays[d] - slack)

    def _use(self, d: int) -> Linear:
        return self.programme.column(0, self._room(d), lambda view: view.used[d] / self.unit)

    def _let_go(self, i: int, timing: Timing) -> Linear:
        """r[i]: no earlier than the task's own end, the ends of consumers beside it, the arrivals at the others."""
        problem, placement, times = self.problem, self.placement, timing.times
        g = placement.group[i]
        release = self.programme.column(
            times.earliest[i] + times.least[i], times.horizon, lambda view: view.release[i] / times.unit
        )
        self.programme.at_least(release, timing.end[i])
        for e in range(int(problem.out_start[i]), int(problem.out_start[i + 1])):
            v = int(problem.edge_target[e])
            beside = placement.together(g, placement.group[v])
            timing.if_one(release, timing.end[v], beside, times.latest[v])
            self.programme.at_least(release, timing.end[i] + timing.travel(e))
        if problem.contention == "port":
            for move, arrival in zip(timing.moves.all, timing.arrival, strict=True):
                if move.producer == i:
                    for e in move.edges:
                        served = timing.moves.serving(timing.moves.target[e], move)
                        timing.if_one(release, arrival, served, times.horizon)
        return release

    def _live(self, i: int, j: int, timing: Timing) -> Linear:
        """L[i, j]; with i = j, whether a task's own output is held at all at its start."""
        placement, programme, times = self.placement, self.programme, timing.times
        g, h = placement.group[i], placement.group[j]
        lasting = times.least[j] > 0
        if i == j and lasting:
            return Linear(constant=1)
        if not (g == h or placement.may_share(g, h)) or (times.after[j] >> i & 1 and lasting):
            return Linear()
        start, release, unit = timing.start, self._release[i], times.unit
        excuses: list[Linear] = []
        if i != j and not times.after[i] >> j & 1:
            if lasting:
                excuses.append(timing.before[j, i])
            else:
                later = programme.binary(lambda view: view.start[i] >= view.start[j] + unit)
                slack = times.latest[j] - times.least[j] + 1 - times.earliest[i]
                timing.if_one(start[i], start[j] + 1, later, slack)
                excuses.append(later)
        gone = programme.binary(lambda view: view.release[i] <= view.start[j])
        timing.if_one(start[j], release, gone, times.horizon - times.earliest[j])
        excuses.append(gone)
        live = programme.column(
            0, 1, lambda view: view.home[g] == view.home[h] and view.start[i] <= view.start[j] < view.release[i]
        )
        programme.at_least(total((live, *excuses)), placement.together(g, h))
        return live

    def balance(self, value: Callable[..., float]) -> Linear:
        """At least the largest used part of a capacity, in parts per million, rounded up; whole."""
        share = self.programme.column(0, PARTS, value, whole=True)
        for d, used in self.used.items():
            # share >= used * unit * PARTS / capacity
            capacity = max(int(self.problem.capacity[d]), 1)
            self.programme.at_least(capacity * share, self.unit * PARTS * used)
        return share


def bounded_devices(problem: Problem) -> list[int]:
    """Devices whose capacity can matter: all that state one if the objective compares them, else the overfillable."""
    limited = np.flatnonzero(problem.capacity != UNLIMITED).tolist()
    if "memory_balance" in problem.objective.metrics:
        return limited
    memory = problem.memory.tolist()
    return [
        d for d in limited if sum(memory[i] for i in np.flatnonzero(problem.feasible[:, d])) > int(problem.capacity[d])
    ]
