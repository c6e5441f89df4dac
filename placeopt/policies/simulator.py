"""Execution of placements in first-in-first-out order, with or without noise, and its cost."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from placeopt import engine
from placeopt.model.arrays import Int, freeze
from placeopt.model.problem import Objective, Problem
from placeopt.model.schedule import edge_transfers
from placeopt.policies.critical import CriticalPaths
from placeopt.policies.values import Valuation
from placeopt.simulation.run import FIFO, make_simulation


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One execution of a placement; times are in ticks."""

    start: Int  # (n,) start of each task
    end: Int  # (n,) end of each task
    edge_ticks: Int  # (e,) transfer time of each edge, without waiting; 0 on the same device
    makespan: int  # end of the last task
    value: float  # of the objective: by default the makespan

    def __post_init__(self) -> None:
        freeze(self.start, self.end, self.edge_ticks)


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
        noise: float,
        rng: Generator,
        objective: Objective | None = None,
        repeats: int = 1,
    ) -> None:
        self.problem, self.noise, self.repeats, self.ledger = problem, noise, repeats, Ledger()
        self.valuation = Valuation(problem, objective)
        self._rng, self._simulation = rng, make_simulation(problem)
        self._critical: CriticalPaths | None = None

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
            self._critical = CriticalPaths(self.problem)
        before = self._critical.links(device, run.start, run.end).before
        path: list[int] = self._critical.path(run.start, run.end, run.edge_ticks, before).tolist()
        return path

    def _execute(self, device: Int, noise: float) -> Run:
        simulation = self._simulation
        simulation.place(device)
        if noise:
            self._disturb(device, noise)
        makespan = simulation.run(FIFO, engine.current_stop())
        task_ticks, edge_ticks = simulation.task_ticks, simulation.edge_ticks.copy()
        value = self.valuation(device, task_ticks, edge_ticks, makespan)
        start = simulation.start.copy()
        return Run(start, start + task_ticks, edge_ticks, makespan, value)

    def _disturb(self, device: Int, noise: float) -> None:
        task_ticks, edge_ticks = self._simulation.task_ticks, self._simulation.edge_ticks
        n = len(device)
        share = noise * (2 * self._rng.random(n + len(edge_ticks)) - 1)
        edge_share = share[n:]
        if self.problem.shared.any():  # a transfer with several consumers has one time
            carrier = edge_transfers(self.problem, device)
            edge_share = edge_share[np.where(carrier >= 0, carrier, 0)]
        self._simulation.set_ticks(
            task_ticks + np.rint(task_ticks * share[:n]).astype(np.int64),
            edge_ticks + np.rint(edge_ticks * edge_share).astype(np.int64),
        )
