"""Execution of placements in first-in-first-out order, with or without noise, and its cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from placeopt.kernels import prepared
from placeopt.model.arrays import Int
from placeopt.model.problem import Objective, Problem
from placeopt.model.schedule import edge_transfers
from placeopt.policies.critical import CriticalPaths
from placeopt.policies.values import Valuation
from placeopt.simulation.loops import FIFO, fill_ticks, make_instance, make_work, run_events, run_fifo
from placeopt.simulation.run import steps_of


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One execution of a placement; times are in ticks."""

    start: Int  # (n,) start of each task
    end: Int  # (n,) end of each task
    edge_ticks: Int  # (e,) transfer time of each edge, without waiting; 0 on the same device
    makespan: int  # end of the last task
    value: float  # of the objective: by default the makespan

    def __post_init__(self) -> None:
        for array in (self.start, self.end, self.edge_ticks):
            array.flags.writeable = False


@dataclass(slots=True)
class Ledger:
    """The cost of a search so far."""

    evaluations: int = 0  # number of placements executed
    estimates: int = 0  # number of finish times computed, each for one task on one device


class Simulator:
    """Executes placements of one problem; not thread-safe, because all executions use the same arrays.

    With `noise`, a task or transfer of w ticks takes a uniformly random time in [w (1 - noise), w (1 + noise)] in each
    execution (GiPH, appendix B.5), as in `placeopt.simulation.simulate_noisy`. `objective` defines the value of a run;
    None is the makespan (`placeopt.policies.values`). With `repeats`, a run has the mean value of this number of
    executions, and the times of the first.
    """

    def __init__(
        self,
        problem: Problem,
        evaluations: int,
        noise: float,
        rng: Generator,
        objective: Objective | None = None,
        repeats: int = 1,
    ) -> None:
        self.problem, self.noise, self.repeats, self.ledger = problem, noise, repeats, Ledger()
        self.valuation = Valuation(problem, objective)
        self._rng, self._instance, self._work = rng, make_instance(problem), make_work(problem)
        self._evaluations = evaluations
        self._critical: CriticalPaths | None = None
        steps = steps_of(problem, self._instance.port) * evaluations * repeats
        instance, work = self._instance, self._work
        self._fill = fill_ticks.select(steps, chunked=True)
        self._filled = prepared(self._fill, instance), prepared(self._fill, work)
        self._move: Any = (run_events if instance.port else run_fifo).select(steps, chunked=True)
        self._moved = prepared(self._move, instance.graph), prepared(self._move, work)

    def run(self, device: Int) -> Run:
        """Execute a placement (n,) without checking it."""
        self.ledger.evaluations += self.repeats
        first = self._execute(device, self.noise)
        if self.repeats == 1:
            return first
        values = [first.value, *(self._execute(device, self.noise).value for _ in range(self.repeats - 1))]
        mean = float(np.mean(values))
        return replace(first, value=round(mean) if self.valuation.whole else mean)

    def expected(self, device: Int) -> float:
        """The value without noise; not counted, because it serves only to assess a search."""
        return self._execute(device, 0.0).value

    def critical_path(self, device: Int, run: Run) -> list[int]:
        """The critical path of an execution, first to last."""
        if self._critical is None:
            self._critical = CriticalPaths(self.problem, self._evaluations)
        before = self._critical.links(device, run.start, run.end).before
        path: list[int] = self._critical.path(run.start, run.end, run.edge_ticks, before).tolist()
        return path

    def _execute(self, device: Int, noise: float) -> Run:
        instance, work = self._instance, self._work
        self._fill(self._filled[0], device, self._filled[1])
        if noise:
            self._disturb(device, noise)
        rule = (FIFO, True) if instance.port else ()
        makespan = int(self._move(self._moved[0], device, *rule, self._moved[1]))
        value = self.valuation(device, work.task_ticks, work.edge_ticks, makespan)
        start = work.start.copy()
        return Run(start, start + work.task_ticks, work.edge_ticks.copy(), makespan, value)

    def _disturb(self, device: Int, noise: float) -> None:
        work, n = self._work, len(device)
        share = noise * (2 * self._rng.random(n + len(work.edge_ticks)) - 1)
        edge_share = share[n:]
        if self.problem.shared.any():  # a transfer with several consumers has one time
            carrier = edge_transfers(self.problem, device)
            edge_share = edge_share[np.where(carrier >= 0, carrier, 0)]
        work.task_ticks[:] += np.rint(work.task_ticks * share[:n]).astype(np.int64)
        work.edge_ticks[:] += np.rint(work.edge_ticks * edge_share).astype(np.int64)
