"""The CP-SAT model of a problem: its objective level by level, its run, and the schedule of a solution."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from placeopt.bounding.engines import cp_sat
from placeopt.model.memory import most_swapping
from placeopt.model.objective import task_energy
from placeopt.model.problem import Metric, Problem
from placeopt.model.schedule import Schedule, edge_transfers

from ..._constructive.sequences import heft_on_homes
from ..._runs.exact_run import Level, TooLargeError, View, counted, needs_times, transfers_of
from .addresses import Addresses
from .base import Base, Expression, Literal
from .limits import LARGEST, Limits
from .memory import Memory
from .placement import Moves, Placement
from .resources import Uses
from .timing import Timing, Variable


class Model:
    """Variables and rows of a problem; `placeopt_solvers.exact.cp_sat` describes the whole.

    Starts are modelled only if memory, a deadline or the objective depends on them. Otherwise any placement has a
    schedule, because each device can run its tasks in topological order.

    `slots` (m,) are the tasks that a device may run at a time, one by default; see
    `placeopt_solvers.exact._cp_sat.identical_devices`. A parallel device may run all of them.

    Raises
    ------
    StoppedError
        If `stopped` returned true.
    TooLargeError
        If sums exceed 64 bits.
    """

    def __init__(
        self,
        problem: Problem,
        limits: Limits,
        symmetry: bool,
        stopped: Callable[[], bool],
        slots: Sequence[int] | None = None,
    ) -> None:
        self.problem, self.limits = problem, limits
        self.base = Base(problem, stopped)
        self.placement = Placement(self.base, limits.allowed, symmetry)
        self.moves = Moves(self.placement)
        several = np.array(slots or [1] * problem.n_devices)
        several[problem.parallel] = problem.n_tasks
        self.timing = Timing(self.moves, limits, several.tolist()) if needs_times(problem) else None
        self.memory = Memory(self.placement, self.timing)
        self.addresses: Addresses | None = None
        if problem.alignment is not None:
            self.addresses = Addresses(self.memory, problem.alignment, limits.horizon)
        self.uses = None if problem.resources is None else Uses(self.placement, self.timing, problem.resources)
        swapping = None
        if problem.tiers is not None and self.timing is not None:
            swapping = Swapping(self.placement, self.timing)
        limited = dict(problem.limits)
        metrics = {metric: self._metric(metric) for metric in counted(problem)}
        for metric, most in limited.items():
            if most < limits.largest[metric]:
                self.base.cp.add(metrics[metric] <= most)
        # The largest number in any row, the rows of the metrics included.
        self.magnitude = max(self.memory.magnitude, limits.horizon if self.timing is not None else 0)
        self.magnitude = max(self.magnitude, 0 if self.addresses is None else self.addresses.magnitude)
        self.magnitude = max(self.magnitude, 0 if swapping is None else swapping.magnitude)
        self.magnitude = max(self.magnitude, 0 if self.uses is None else self.uses.magnitude)
        self.levels: list[Level[Expression]] = []
        for level in problem.objective.levels:
            denominator = math.lcm(*(term.weight.denominator for term in level))
            weights = [int(term.weight * denominator) for term in level]
            common = math.gcd(*weights) or 1
            weights, step = [w // common for w in weights], Fraction(common, denominator)
            most = sum(w * limits.largest[term.metric] for w, term in zip(weights, level, strict=True))
            self.magnitude = max(self.magnitude, most)
            if most >= LARGEST:
                raise TooLargeError(f"an objective up to {math.floor(most * step)} in steps of {step}")
            self.levels.append(
                Level(added(w * metrics[term.metric] for w, term in zip(weights, level, strict=True)), step)
            )

        if self.large:
            self._check_sums()

    @property
    def large(self) -> bool:
        """Whether some number is too large for CP-SAT's presolve."""
        return self.magnitude > cp_sat.PRESOLVED

    def _check_sums(self) -> None:
        """Reject sums that CP-SAT refuses: it adds up the coefficients of a task on all devices, though one counts."""
        rows = self.base.cp.clone()
        for level in self.levels:
            rows.add(level.expression >= 0)
        if "overflow" in rows.validate():
            raise TooLargeError("an objective, summed over all devices,")

    def _metric(self, metric: Metric) -> Expression:
        if metric == "makespan":
            assert self.timing is not None
            span = self.timing.makespan()
            if self.uses is not None:
                self.uses.limit_work(span)
            return span
        if metric == "memory_balance":
            return self.memory.balance()
        if metric == "max_load":
            load = self.base.integer(0, self.limits.largest[metric], lambda view: view.metrics["max_load"])
            for each in self.placement.loads(self.problem.duration):
                self.base.cp.add(each <= load)
            return load
        if metric in ("relocation", "price"):
            return added(self.placement.loads(getattr(self.problem, metric)))
        if metric == "tardiness":
            assert self.timing is not None
            return self.timing.tardiness()
        if metric == "devices":
            return added(self.placement.used())
        payload = self.problem.payload
        moves = [(move, int(payload[move.edges[0]])) for move in self.moves.all]
        if metric == "communication":
            return added(bytes_ * move.present for move, bytes_ in moves)
        if metric == "energy":
            computing = self.placement.loads(task_energy(self.problem))
            return added([*computing, *(self.moves.cost(move, self.moves.energy(bytes_)) for move, bytes_ in moves)])
        computing = self.placement.loads(self.problem.duration)
        return added([*computing, *(self.moves.cost(move, self.moves.ticks(bytes_)) for move, bytes_ in moves)])

    def minimise(
        self, level: Level[Expression], start: Schedule | None, on_schedule: Callable[[Schedule], None], **options: Any
    ) -> cp_sat.Outcome:
        """Minimise a level of the objective from a schedule; `options` are those of `cp_sat.run`."""
        self.base.cp.minimize(level.expression)
        areas = [0 if part is None else part.area for part in (self.memory, self.uses, self.addresses)]
        if start is not None:
            self.base.hint(start)
        return cp_sat.run(
            self.base.cp,
            largest=self.magnitude,
            area=max(areas),
            on_solution=lambda read: on_schedule(self.schedule(read)),
            **options,
        )

    def schedule(self, read: Callable[[Literal], int]) -> Schedule:
        """Return the schedule of a solution; HEFT gives the times if none are modelled."""
        found = self._timed(read)
        return found if self.addresses is None else replace(found, offsets=self.addresses.offsets(read, found.device))

    def _timed(self, read: Callable[[Literal], int]) -> Schedule:
        problem = self.problem
        home = np.array([next(d for d, x in row.items() if read(x)) for row in self.placement.at], dtype=np.int64)
        device = home[problem.group]
        if self.timing is None:
            return heft_on_homes(problem, home)
        start = np.array([read(start) for start in self.timing.starts], dtype=np.int64)
        if not problem.contends:
            return Schedule(device, start)
        representative = edge_transfers(problem, device)
        sent = {
            int(representative[e]): read(begin)
            for move, begin in zip(self.moves.all, self.timing.sent, strict=True)
            if read(move.present)
            for e in move.edges
            if move.device is None or device[problem.edge_target[e]] == move.device
        }
        return Schedule(device, start, transfers_of(sent))


def added(terms: Iterable[Expression]) -> Expression:
    """Return a sum as one expression; the operator + would nest as deep as there are terms."""
    total: Expression = cp_model.LinearExpr.sum(list(terms))
    return total


class Swapping:
    """No task starts before its device has swapped.

    Variables: S[d], at least the swap time of device d; z[d, k], its bytes exceed tiers 0..k-1. With bytes u, tier k of
    rate r[k] ticks per byte behind end[k-1] bytes, and C[j] the ticks of the full tier j, the swap time is the maximum
    over the tiers k with u > end[k-1] of

        C[1] + ... + C[k-1] + ceil(r[k] (u - end[k-1])).

    Beyond tier k that is no more than the swap time, since tiers become slower: r[k] <= r[k+1]. Before tier k it may be
    more, because C is rounded up; there z[d, k] disables the row. For k = 1 it is at most 0 there.

    `magnitude` is the largest number in the rows.
    """

    def __init__(self, placement: Placement, timing: Timing) -> None:
        self.placement, self.timing, self.base = placement, timing, placement.base
        self.problem = placement.problem
        self.magnitude = 0
        most, amounts = most_swapping(self.problem), self.problem.memory
        self.unit = math.gcd(*amounts.tolist()) or 1
        for d, used in enumerate(placement.loads(np.repeat(amounts[:, None] // self.unit, len(most), axis=1))):
            if most[d]:
                timing.swaps[d] = self._add_device(d, used, most[d])

    def _add_device(self, d: int, used: Expression, most: int) -> Variable:
        """Add the swap time of a device, whose tasks need `used` units of bytes, and let its tasks wait for it."""
        cp, problem = self.base.cp, self.problem
        assert problem.tiers is not None
        swap = self.base.integer(0, most, lambda view: view.swap[d])
        ends = problem.tiers.end[d].tolist()
        needed, before = int(problem.memory.sum()), 0
        for k in range(1, len(ends)):
            num, den = int(problem.tiers.byte_ticks_num[d, k]), int(problem.tiers.byte_ticks_den[d, k])
            start = ends[k - 1]
            if start >= min(needed, ends[k]):
                break
            full = None if k == 1 else self._exceeds(d, used, start)
            # den (swap - before) >= num (unit used - start), in lowest terms.
            common = math.gcd(den, num * self.unit)
            rate, scale = num * self.unit // common, den // common
            self.magnitude = max(self.magnitude, rate * (needed // self.unit), scale * most)
            if self.magnitude >= LARGEST:
                raise TooLargeError(f"the swap time of {problem.device_names[d]}, in steps of 1/{scale} ticks,")
            row = cp.add(scale * swap - rate * used >= -((num * start - den * before) // common))
            if full is not None:
                row.only_enforce_if(full)
            before += -((start - ends[k]) * num // den)
        for i, g in enumerate(self.placement.group):
            x = self.placement.at[g].get(d)
            if x is not None:
                cp.add(self.timing.starts[i] >= swap).only_enforce_if(x)
        return swap

    def _exceeds(self, d: int, used: Expression, limit: int) -> Literal:
        """Add the literal that a device needs more bytes than a limit; it is true if so."""

        def value(view: View) -> bool:
            return view.used[d] > limit

        exceeds = self.base.literal(value)
        self.base.cp.add(used <= limit // self.unit).only_enforce_if(~exceeds)
        return exceeds
