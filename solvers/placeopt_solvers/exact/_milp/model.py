"""The mixed-integer program of a problem: its objective level by level, hints, and the schedule of a solution."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from placeopt.model.arrays import Bool
from placeopt.model.objective import task_energy, transfer_energy
from placeopt.model.ports import n_ports
from placeopt.model.problem import Metric, Problem
from placeopt.model.schedule import Schedule, edge_transfers
from placeopt.simulation import simulate

from ..._runs.exact_run import Level, TooLargeError, View, counted, needs_times, relabelled, transfers_of, view
from ..._runs.linear import Linear, total
from .linear import Program
from .memory import Memory
from .placement import Move, Moves, Placement
from .resources import Uses
from .timing import Times, Timing

LARGEST = 10**8
"""Largest number allowed in a row. Engines accept a binary that is off by their tolerance, 1e-6 for HiGHS; with larger
numbers, what they accept is far from a solution."""

LONGEST = 5 * 10**6
"""Longest schedule allowed, in units of time. HiGHS cut off the optimum of one in forty random problems of ten times
this length, and of none of 700 of this length or less."""

LARGEST_OBJECTIVE = 10**9
"""Largest objective allowed: a double has sixteen digits, and the bound must be right to a tenth."""

GAP = 1e-3
"""Smallest gap between the fractional parts of times in which the threshold of rounding may lie."""


class Model:
    """Columns and rows of a problem; `placeopt_solvers.exact.milp` states the formulas.

    Starts are modelled only if memory, a deadline or the objective depends on them. Otherwise any placement has a
    schedule, because each device can run its tasks in topological order.

    Raises
    ------
    StoppedError
        If `stopped` returned true.
    TooLargeError
        If its numbers are not safe in floating point.
    """

    def __init__(
        self, problem: Problem, allowed: Bool, times: Times, symmetry: bool, stopped: Callable[[], bool]
    ) -> None:
        self.problem, self.times, self.symmetry = problem, times, symmetry
        self.program = Program(stopped)
        self.placement = Placement(self.program, problem, allowed, symmetry)
        self.moves = Moves(self.placement)
        self.timing = Timing(self.moves, times) if needs_times(problem) else None
        self.memory = Memory(self.placement, self.timing)
        if problem.resources is not None:
            Uses(self.placement, self.timing, problem.resources)
        self.makespan: Linear | None = None
        limited = dict(problem.limits)
        metrics = {metric: self._metric(metric) for metric in counted(problem)}
        for metric, most in limited.items():
            self.program.at_least(Linear({}, most), metrics[metric])
        self.levels: list[Level[Linear]] = []
        for terms in problem.objective.levels:
            scale = math.lcm(*(term.weight.denominator for term in terms))
            expression = total(int(term.weight * scale) * metrics[term.metric] for term in terms)
            common = math.gcd(expression.constant, *expression.terms.values()) or 1
            reduced = Linear({c: a // common for c, a in expression.terms.items()}, expression.constant // common)
            self.levels.append(Level(reduced, Fraction(common, scale)))
        self._check_numbers()

    def _check_numbers(self) -> None:
        if self.times.horizon > LONGEST:
            raise TooLargeError(f"schedules of up to {self.times.horizon:,} ticks, where {LONGEST:,} is safe")
        if self.program.magnitude > LARGEST:
            raise TooLargeError(f"numbers up to {self.program.magnitude:,}, where {LARGEST:,} is safe")
        for level in self.levels:
            most = self.program.most(level.expression)
            if most > LARGEST_OBJECTIVE:
                raise TooLargeError(f"an objective up to {most:,} of its steps, where {LARGEST_OBJECTIVE:,} is safe")

    def hint(self, schedule: Schedule) -> list[float] | None:
        """Return the value of every column in a schedule; None if the program excludes it."""
        chosen = relabelled(self.problem, schedule) if self.symmetry else schedule
        return self.program.values(view(self.problem, chosen))

    def schedule(self, values: Sequence[float]) -> Schedule:
        """Return the schedule of a solution, in whole ticks."""
        problem, found = self.problem, list(values)
        home = np.array([max(row, key=lambda d: row[d].at(found)) for row in self.placement.x], dtype=np.int64)
        device = home[problem.group]
        if self.timing is None:
            return simulate(problem, device)
        floats = [column.at(found) for column in self.timing.columns]
        ticks = [self.times.unit * whole for whole in rounded(floats)]
        n = problem.n_tasks
        start = np.array(ticks[:n], dtype=np.int64)
        if not problem.contends:
            return Schedule(device, start)
        representative = edge_transfers(problem, device)
        sent = {
            int(representative[e]): tick
            for move, tick in zip(self.moves.all, ticks[n:], strict=True)
            for e in move.edges
            if representative[e] >= 0 and move.device in (None, int(device[problem.edge_target[e]]))
        }
        return Schedule(device, start, transfers_of(sent))

    # Metrics

    def _metric(self, metric: Metric) -> Linear:
        """Return an expression that is at least the value of a metric in any solution, and equal in the best one."""
        problem, payload = self.problem, self.problem.payload
        if metric == "makespan":
            return self._makespan()
        if metric == "memory_balance":
            return self.memory.balance(lambda view: view.metrics["memory_balance"])
        if metric == "max_load":
            return self._max_load()
        if metric == "communication":
            return total(int(payload[move.edges[0]]) * total(move.ways.values()) for move in self.moves.all)
        if metric in ("relocation", "price"):
            return total(self.placement.loads(getattr(problem, metric).tolist()))
        if metric == "tardiness":
            return self._tardiness()
        if metric == "devices":
            return self._devices()
        amount = problem.duration if metric == "total_cost" else task_energy(problem)
        computing = self.placement.loads(amount.tolist())
        return total([*computing, *(move.cost(self._tariff(metric, move)) for move in self.moves.all)])

    def _tariff(self, metric: Metric, move: Move) -> list[list[int]]:
        """Return the ticks or nanojoules (m rows of m) of a move between any two devices."""
        devices = np.arange(self.problem.n_devices)
        payload, ends = self.problem.payload[move.edges[0]], (devices[:, None], devices[None, :])
        if metric == "total_cost":
            table: list[list[int]] = self.problem.transfer(payload, *ends).tolist()
        else:
            table = transfer_energy(self.problem, payload, *ends).tolist()
        return table

    def _makespan(self) -> Linear:
        """Add C >= the end of each task, and >= the work on each device, which tightens the relaxation."""
        assert self.timing is not None
        unit = self.times.unit
        span = self.program.column(0, self.times.horizon, lambda view: view.metrics["makespan"] / unit)
        for end in self.timing.end:
            self.program.at_least(span, end)
        for d, load in enumerate(self.placement.loads(self.times.duration)):
            if not self.problem.parallel[d]:
                self.program.at_least(span, load)
        return unit * span

    def _tardiness(self) -> Linear:
        """Add L >= the end of each task minus its due date."""
        assert self.timing is not None
        unit, late = self.times.unit, []
        for i, end in enumerate(self.timing.end):
            due, weight = int(self.problem.due[i]), int(self.problem.due_weight[i])
            if due // unit < self.times.horizon and weight:
                column = self.program.column(0, self.times.horizon, partial(_late, i, due, unit))
                self.program.at_least(column, end - due // unit)
                late.append(weight * unit * column)
        return total(late)

    def _devices(self) -> Linear:
        """Add U >= each group on a device, for each device."""
        used = []
        for d in range(self.problem.n_devices):
            on = [row[d] for row in self.placement.x if d in row]
            if on:
                column = self.program.column(0, 1, partial(_runs_tasks, d))
                for x in on:
                    self.program.at_least(column, x)
                used.append(column)
        return total(used)

    def _max_load(self) -> Linear:
        unit, loads = self.times.unit, self.placement.loads(self.times.duration)
        most = max((self.program.most(load) for load in loads), default=0)
        busiest = self.program.column(0, most, lambda view: view.metrics["max_load"] / unit)
        for load in loads:
            self.program.at_least(busiest, load)
        return unit * busiest


def _late(i: int, due: int, unit: int, view: View) -> float:
    return max(view.end[i] - due, 0) / unit


def _runs_tasks(d: int, view: View) -> float:
    return float(d in view.device)


def rounded(values: Sequence[float]) -> list[int]:
    """Return times rounded to whole numbers so that all rows between them still hold.

    Times occur only in integer bounds and in rows such as t >= s + p with an integer p. Rounding all of them at one
    threshold theta in (0, 1), floor(t - theta) + 1, keeps such a row. It repairs a small violation, too, unless a
    fractional part is that close to theta. The highest possible theta is used: 2.999999 becomes 3, and 2.4 becomes 2
    unless other fractional parts prevent it.
    """
    parts = sorted({0.0, 1.0, *(value % 1.0 for value in values)})
    gaps = [(low, high) for low, high in itertools.pairwise(parts) if high - low >= GAP]
    low, high = gaps[-1] if gaps else (0.0, 1.0)
    theta = (low + high) / 2
    return [math.floor(value - theta) + 1 for value in values]


def model_size(problem: Problem, after: list[int]) -> int:
    """Estimate the number of columns, rows and products of the program; `after` as in `Times`."""
    n, m = problem.n_tasks, problem.n_devices
    group = problem.group
    pairs = len(np.unique(np.stack((group[problem.edge_source], group[problem.edge_target])), axis=1).T)
    size = problem.n_groups * (m + 1) + pairs * (m * m + 2 * m)
    if needs_times(problem):
        unordered = n * (n - 1) // 2 - sum(bits.bit_count() for bits in after)
        size += 3 * n + problem.n_edges + unordered * (5 + m)
        if problem.contends:
            own = int((~problem.shared).sum())
            moves = own + m * len(np.unique(problem.edge_source[problem.shared]))
            common = {"none": 0, "port": 2, "half_duplex": 4}[problem.contention] * m
            common += n_ports(problem) - 2 * m
            size += moves * 4 + moves * (moves - 1) // 2 * (4 + common)
        if problem.memory_model == "peak":
            size += int((problem.output > 0).sum()) * n * 6
        if problem.resources is not None:
            size += unordered * 8 * int(problem.resources.renewable.sum())
    return size
