"""The whole mixed-integer programme of a problem: its objective level by level, hints, how to read a solution."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from placeopt.model.arrays import Bool
from placeopt.model.objective import Value, simplified, task_energy, transfer_energy
from placeopt.model.problem import UNLIMITED, Metric, Problem
from placeopt.model.schedule import Schedule, Transfers, edge_transfers
from placeopt.simulation import simulate

from .linear import Linear, Programme, total
from .memory import Memory, bounded_devices
from .placement import Placement, renumbered
from .times import Times
from .timing import Timing
from .transfers import Move, Moves
from .view import view

LARGEST = 10**8
"""No number in a row may exceed this. Engines let a binary be off by their tolerance, 1e-6 for HiGHS: beyond that, what
they take for a solution has little to do with one."""

LONGEST = 5 * 10**6
"""Nor may a schedule last longer, in ticks that all times are multiples of: one in forty random problems of ten times
that length had its optimum cut off by HiGHS, none of 700 of this length or less."""

LARGEST_OBJECTIVE = 10**9
"""Nor may an objective: a double has sixteen digits, and the bound must be right to a tenth."""

GAP = 1e-3
"""Width of an empty part of [0, 1) between the fractional parts of times, for rounding."""


class TooLargeError(Exception):
    """Some numbers of the problem are too large for the tolerances of floating point; the message names them."""


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the objective in units of `factor`: its coefficients are whole and have no common divisor."""

    expression: Linear
    factor: Fraction

    def scaled(self, value: Value) -> int:
        """The whole number that stands for a value of the level."""
        return int(value / self.factor)

    def value(self, scaled: int | Fraction) -> Value:
        """What a number stands for."""
        return simplified(scaled * self.factor)


class Model:
    """Columns and rows of a problem; the maths stand in `placeopt_solvers.exact.milp`.

    Where neither memory nor the objective nor a deadline depends on starts, none are modelled: any placement then has a
    schedule, for each device can run its tasks in topological order.

    Raises
    ------
    BuildStoppedError
        If `stopped` became true.
    TooLargeError
        If its numbers are not safe in floating point.
    """

    def __init__(
        self, problem: Problem, allowed: Bool, times: Times, symmetry: bool, stopped: Callable[[], bool]
    ) -> None:
        self.problem, self.times, self.symmetry = problem, times, symmetry
        self.programme = Programme(stopped)
        self.placement = Placement(self.programme, problem, allowed, symmetry)
        self.moves = Moves(self.placement)
        self.timing = Timing(self.moves, times) if needs_times(problem) else None
        self.memory = Memory(self.placement, self.timing)
        self.makespan: Linear | None = None
        metrics = {metric: self._metric(metric) for metric in problem.objective.metrics}
        self.levels: list[Level] = []
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
        if self.programme.magnitude > LARGEST:
            raise TooLargeError(f"numbers up to {self.programme.magnitude:,}, where {LARGEST:,} is safe")
        for level in self.levels:
            most = self.programme.most(level.expression)
            if most > LARGEST_OBJECTIVE:
                raise TooLargeError(f"an objective up to {most:,} of its steps, where {LARGEST_OBJECTIVE:,} is safe")

    def hint(self, schedule: Schedule) -> list[float] | None:
        """The value of every column in a schedule; None if the programme excludes it."""
        chosen = renumbered(self.problem, schedule) if self.symmetry else schedule
        return self.programme.values(view(self.problem, chosen))

    def schedule(self, values: Sequence[float]) -> Schedule:
        """The schedule of a solution, in whole ticks."""
        problem, found = self.problem, list(values)
        home = np.array([max(row, key=lambda d: row[d].at(found)) for row in self.placement.x], dtype=np.int64)
        device = home[problem.group]
        if self.timing is None:
            return simulate(problem, device)
        floats = [column.at(found) for column in self.timing.columns]
        ticks = [self.times.unit * whole for whole in rounded(floats)]
        n = problem.n_tasks
        start = np.array(ticks[:n], dtype=np.int64)
        if problem.contention == "none":
            return Schedule(device, start)
        representative = edge_transfers(problem, device)
        sent = {
            int(representative[e]): tick
            for move, tick in zip(self.moves.all, ticks[n:], strict=True)
            for e in move.edges
            if representative[e] >= 0 and move.device in (None, int(device[problem.edge_target[e]]))
        }
        edges = sorted(sent)
        transfers = Transfers(np.array(edges, dtype=np.int64), np.array([sent[e] for e in edges], dtype=np.int64))
        return Schedule(device, start, transfers)

    # Metrics

    def _metric(self, metric: Metric) -> Linear:
        """A metric as an expression that in any solution is at least its value, and in the best one is that."""
        problem, payload = self.problem, self.problem.payload
        if metric == "makespan":
            return self._makespan()
        if metric == "memory_balance":
            return self.memory.balance(lambda view: view.metrics["memory_balance"])
        if metric == "max_load":
            return self._max_load()
        if metric == "communication":
            return total(int(payload[move.payload_edge]) * total(move.ways.values()) for move in self.moves.all)
        if metric == "relocation":
            return total(self.placement.loads(problem.relocation.tolist()))
        amount = problem.duration if metric == "total_cost" else task_energy(problem)
        computing = self.placement.loads(amount.tolist())
        return total([*computing, *(move.cost(self._tariff(metric, move)) for move in self.moves.all)])

    def _tariff(self, metric: Metric, move: Move) -> list[list[int]]:
        """(m rows of m) ticks or nanojoules of a move between any two devices."""
        devices = np.arange(self.problem.n_devices)
        payload, ends = self.problem.payload[move.payload_edge], (devices[:, None], devices[None, :])
        if metric == "total_cost":
            table: list[list[int]] = self.problem.transfer(payload, *ends).tolist()
        else:
            table = transfer_energy(self.problem, payload, *ends).tolist()
        return table

    def _makespan(self) -> Linear:
        """C >= the end of each task, and, what follows but the relaxation lacks, the work on each device."""
        assert self.timing is not None
        unit = self.times.unit
        span = self.programme.column(0, self.times.horizon, lambda view: view.metrics["makespan"] / unit)
        for end in self.timing.end:
            self.programme.at_least(span, end)
        for load in self.placement.loads(self.times.duration):
            self.programme.at_least(span, load)
        return unit * span

    def _max_load(self) -> Linear:
        unit, loads = self.times.unit, self.placement.loads(self.times.duration)
        most = max((self.programme.most(load) for load in loads), default=0)
        busiest = self.programme.column(0, most, lambda view: view.metrics["max_load"] / unit)
        for load in loads:
            self.programme.at_least(busiest, load)
        return unit * busiest


def rounded(values: Sequence[float]) -> list[int]:
    """Times rounded to whole numbers so that all rows between them still hold.

    Times only meet in rows such as t >= s + p with whole p and in whole bounds. Rounding all of them at one threshold
    theta in (0, 1), floor(t - theta) + 1, keeps such a row, and does so even if it fails by a little, as long as no
    fractional part lies within that little of theta. The highest such theta is taken: 2.999999 becomes 3, 2.4
    becomes 2 unless something is in the way.
    """
    parts = sorted({0.0, 1.0, *(value % 1.0 for value in values)})
    gaps = [(low, high) for low, high in itertools.pairwise(parts) if high - low >= GAP]
    low, high = gaps[-1] if gaps else (0.0, 1.0)
    theta = (low + high) / 2
    return [math.floor(value - theta) + 1 for value in values]


def needs_times(problem: Problem) -> bool:
    """Whether memory, the objective or a deadline depends on when tasks run, not only on where."""
    if "makespan" in problem.objective.metrics or bool((problem.deadline != UNLIMITED).any()):
        return True
    return problem.memory_model == "peak" and bool(bounded_devices(problem))


def model_size(problem: Problem, after: list[int]) -> int:
    """About how many columns, rows and products the programme has; `after` as in `Times`."""
    n, m = problem.n_tasks, problem.n_devices
    group = problem.group
    pairs = len(np.unique(np.stack((group[problem.edge_source], group[problem.edge_target])), axis=1).T)
    size = problem.n_groups * (m + 1) + pairs * (m * m + 2 * m)
    if needs_times(problem):
        unordered = n * (n - 1) // 2 - sum(bits.bit_count() for bits in after)
        size += 3 * n + problem.n_edges + unordered * (5 + m)
        if problem.contention == "port":
            own = int((~problem.shared).sum())
            moves = own + m * len(np.unique(problem.edge_source[problem.shared]))
            size += moves * 4 + moves * (moves - 1) // 2 * (4 + 2 * m)
        if problem.memory_model == "peak":
            size += int((problem.output > 0).sum()) * n * 6
    return size
