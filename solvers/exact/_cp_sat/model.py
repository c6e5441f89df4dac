"""The whole CP-SAT model of a problem: its objective level by level, hints, and how to read a solution."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from ortools.sat.python import cp_model

from placeopt.model.objective import Value, simplified, task_energy
from placeopt.model.problem import Metric, Problem
from placeopt.model.schedule import Schedule, Transfers, edge_transfers

from ..._constructive.heft import heft_on_homes
from .base import LARGEST, Base, Expression, Literal, TooLargeError
from .limits import Limits
from .memory import Memory, needs_times
from .placement import Placement
from .timing import Timing
from .transfers import Moves

Read = Callable[[Literal], int]


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the objective as integers: `scale` times its value, which is a multiple of 1 / scale."""

    expression: Expression
    scale: Fraction

    def scaled(self, value: Value) -> int:
        """The integer that stands for a value of the level."""
        return int(value * self.scale)

    def value(self, scaled: int) -> Value:
        """What an integer stands for."""
        return simplified(scaled / self.scale)


class Model:
    """Variables and rows of a problem; see `placeopt_solvers.exact.cp_sat` for the whole.

    Where neither memory nor the objective depends on starts, none are modelled: any
    placement then has a schedule, for each device can run its tasks in topological order.

    `slots` (m,) are the tasks that a device may run at a time, one unless given; see
    `placeopt_solvers.exact._cp_sat.identical_devices`.

    Raises
    ------
    BuildStoppedError
        If `stopped` became true.
    TooLargeError
        If sums do not fit into 64 bits.
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
        self.timing = Timing(self.moves, limits, slots or [1] * problem.n_devices) if needs_times(problem) else None
        self.memory = Memory(self.placement, self.timing)
        metrics = {metric: self._metric(metric) for metric in problem.objective.metrics}
        # The largest number in any row; after the metrics, whose rows have some of them.
        self.magnitude = max(self.memory.magnitude, limits.horizon if self.timing is not None else 0)
        self.levels: list[Level] = []
        for level in problem.objective.levels:
            denominator = math.lcm(*(term.weight.denominator for term in level))
            weights = [int(term.weight * denominator) for term in level]
            common = math.gcd(*weights) or 1
            weights, scale = [w // common for w in weights], Fraction(denominator, common)
            most = sum(w * limits.largest[term.metric] for w, term in zip(weights, level, strict=True))
            self.magnitude = max(self.magnitude, most)
            if most >= LARGEST:
                raise TooLargeError(f"an objective up to {math.floor(most / scale)} in steps of {1 / scale}")
            self.levels.append(
                Level(added(w * metrics[term.metric] for w, term in zip(weights, level, strict=True)), scale)
            )

    def _metric(self, metric: Metric) -> Expression:
        if metric == "makespan":
            assert self.timing is not None
            return self.timing.makespan()
        if metric == "memory_balance":
            return self.memory.balance()
        if metric == "max_load":
            load = self.base.integer(0, self.limits.largest[metric], lambda view: view.metrics["max_load"])
            for each in self.placement.loads(self.problem.duration):
                self.base.cp.add(each <= load)
            return load
        if metric == "relocation":
            return added(self.placement.loads(self.problem.relocation))
        payload = self.problem.payload
        moves = [(move, int(payload[move.edges[0]])) for move in self.moves.all]
        if metric == "communication":
            return added(bytes_ * move.present for move, bytes_ in moves)
        if metric == "energy":
            computing = self.placement.loads(task_energy(self.problem))
            return added([*computing, *(self.moves.cost(move, self.moves.energy(bytes_)) for move, bytes_ in moves)])
        computing = self.placement.loads(self.problem.duration)
        return added([*computing, *(self.moves.cost(move, self.moves.ticks(bytes_)) for move, bytes_ in moves)])

    def schedule(self, read: Read) -> Schedule:
        """The schedule of a solution; with HEFT's times for its placement where none are modelled."""
        problem = self.problem
        home = np.array([next(d for d, x in row.items() if read(x)) for row in self.placement.at], dtype=np.int64)
        device = home[problem.group]
        if self.timing is None:
            return heft_on_homes(problem, home)
        start = np.array([read(start) for start in self.timing.starts], dtype=np.int64)
        if problem.contention == "none":
            return Schedule(device, start)
        representative = edge_transfers(problem, device)
        moves = {
            int(representative[e]): read(sent)
            for move, sent in zip(self.moves.all, self.timing.sent, strict=True)
            if read(move.present)
            for e in move.edges
            if move.device is None or device[problem.edge_target[e]] == move.device
        }
        edges = sorted(moves)
        transfers = Transfers(np.array(edges, dtype=np.int64), np.array([moves[e] for e in edges], dtype=np.int64))
        return Schedule(device, start, transfers)


def added(terms: Iterable[Expression]) -> Expression:
    """A sum in one piece: adding up with + nests as deep as there are terms."""
    total: Expression = cp_model.LinearExpr.sum(list(terms))
    return total
