"""Model memory in CP-SAT, under both memory models, exactly as `placeopt.model.memory` defines it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from placeopt.model.problem import PARTS

from ..._runs.exact_run import TooLargeError, View, bounded_devices, counted
from .base import Expression, Literal
from .limits import LARGEST
from .placement import Placement
from .timing import Interval, Timing, Variable


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory of a task that is live for a part of the time, if the task is on the device of the interval."""

    task: int
    kind: str
    interval: Interval
    present: Literal
    length: Variable | None = None  # of the interval; None if it is not 0


class Memory:
    """The constraint that no device exceeds its capacity.

    Bytes are counted in units of their greatest common divisor, and capacities are rounded down to units. Sums of
    multiples of the unit respect one capacity exactly if they respect the other.

    Variables: f[i], when the output of task i is released, and h[i], for how long it is held; room[d], the capacity
    that the resident bytes of device d leave; used[d], if the objective needs it. `magnitude` is the largest number
    in the rows, `area` the largest sum of bytes times ticks under the model `peak`, in units. `live` are the buffers
    of each device whose capacity is limited under `peak`, other than the resident ones.
    """

    def __init__(self, placement: Placement, timing: Timing | None) -> None:
        self.placement, self.base, self.problem = placement, placement.base, placement.problem
        problem = self.problem
        balance = "memory_balance" in counted(problem)
        amounts = [*problem.resident.tolist(), *problem.output.tolist(), *problem.scratch.tolist()]
        self.unit = math.gcd(*amounts) or 1
        if sum(amounts) // self.unit >= LARGEST:
            raise TooLargeError(f"the {sum(amounts)} bytes of all tasks")
        bounded = bounded_devices(problem)
        self.capacity = {d: min(int(problem.capacity[d]), sum(amounts)) // self.unit for d in bounded}
        self.used: dict[int, Expression] = {}
        self.magnitude = sum(amounts) // self.unit if bounded else 0
        self.area = 0
        self.live: dict[int, list[Buffer]] = {}
        self.timing, self.freed = timing, dict[int, tuple[Variable, Variable]]()
        if problem.memory_model == "sum":
            self._limit_sums(bounded)
        elif timing is not None and bounded:
            self.area = self.magnitude * timing.horizon
            self._limit_peaks(bounded, timing, balance)

    def _limit_sums(self, devices: list[int]) -> None:
        held = np.repeat(self.problem.memory[:, None] // self.unit, self.problem.n_devices, axis=1)
        for d, load in enumerate(self.placement.loads(held)):
            if d in devices:
                self.used[d] = load
                self.base.cp.add(load <= self.capacity[d])

    def _limit_peaks(self, devices: list[int], timing: Timing, balance: bool) -> None:
        problem = self.problem
        resident = np.repeat(problem.resident[:, None] // self.unit, problem.n_devices, axis=1)
        for i in np.flatnonzero(problem.output).tolist():
            self.freed[i] = self.hold(i, timing)
        for d, load in enumerate(self.placement.loads(resident)):
            if d in devices:
                self._limit_peak(d, load, timing, balance)

    def _limit_peak(self, d: int, resident: Expression, timing: Timing, balance: bool) -> None:
        problem, cp, unit = self.problem, self.base.cp, self.unit
        capacity = self.capacity[d]
        heavy = np.flatnonzero(problem.resident).tolist()

        def stays(view: View) -> int:
            return sum(int(problem.resident[i]) for i in heavy if view.device[i] == d)

        if balance:
            limit: Expression = self.base.integer(0, capacity, lambda view: view.used[d] // unit)
            self.used[d] = limit
            room = self.base.integer(0, capacity, lambda view: (view.used[d] - stays(view)) // unit)
        else:
            limit = capacity
            room = self.base.integer(0, capacity, lambda view: capacity - stays(view) // unit)
        cp.add(room + resident <= limit)
        live = self.live[d] = list[Buffer]()
        for i, interval in timing.running[d].items():
            x = self.placement.at[self.placement.group[i]][d]
            # Scratch memory of a task without duration is never live.
            if problem.scratch[i] and problem.duration[i, d]:
                live.append(Buffer(i, "scratch", interval, x))
            if i in self.freed:
                freed, length = self.freed[i]
                interval = cp.new_optional_interval_var(timing.starts[i], length, freed, x, "")
                live.append(Buffer(i, "output", interval, x, length))
        demands = [int(getattr(problem, each.kind)[each.task]) // unit for each in live]
        cp.add_cumulative([each.interval for each in live], demands, room)

    def hold(self, i: int, timing: Timing, without: int = -1) -> tuple[Variable, Variable]:
        """Add when a task's output is released, and for how long it is held: until its last consumer has it.

        One consumer may be excepted; the values of schedules are then too late.
        """
        problem, placement, cp = self.problem, self.placement, self.base.cp
        freed = self.base.integer(0, timing.horizon, lambda view: view.release[i])
        length = self.base.integer(0, timing.horizon, lambda view: view.release[i] - view.start[i])
        cp.add(freed >= timing.ends[i])
        g = placement.group[i]
        for e in range(int(problem.out_start[i]), int(problem.out_start[i + 1])):
            v = int(problem.edge_target[e])
            if v == without:
                continue
            h = placement.group[v]
            if not timing.moves.possible(g, h):
                cp.add(freed >= timing.ends[v])
                continue
            timing.after_arrival(freed, e)
            differs = placement.differs(g, h)
            if differs is not self.base.true:
                cp.add(freed >= timing.ends[v]).only_enforce_if(~differs)
        return freed, length

    def balance(self) -> Variable:
        """Add a variable that is at least the largest used share of a capacity, in parts per million, rounded up."""
        share = self.base.integer(0, PARTS, lambda view: view.metrics["memory_balance"])
        for d, used in self.used.items():
            # share >= used * unit * PARTS / capacity, in lowest terms.
            capacity = max(int(self.problem.capacity[d]), 1)
            common = math.gcd(capacity, self.unit * PARTS)
            per_unit, whole = self.unit * PARTS // common, capacity // common
            self.magnitude = max(self.magnitude, per_unit * self.capacity[d], whole * PARTS)
            if self.magnitude >= LARGEST:
                raise TooLargeError(
                    f"{self.problem.device_names[d]} has {capacity} bytes, counted in parts per million"
                )
            self.base.cp.add(whole * share >= per_unit * used)
        return share
