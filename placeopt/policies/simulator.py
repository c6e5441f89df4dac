"""Placements executed first in first out, with or without noise, and counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from placeopt.kernels import prepared
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.model.schedule import edge_transfers
from placeopt.simulation.loops import FIFO, fill_ticks, make_instance, make_work, run_events, run_fifo
from placeopt.simulation.run import steps_of


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What one execution of a placement came to.

    Attributes
    ----------
    start, end
        (n,) ticks at which each task started and ended.
    edge_ticks
        (e,) ticks that the data of each edge took, once it was sent; 0 on the same device.
    makespan
        Ticks from 0 to the end of the last task.
    """

    start: Int
    end: Int
    edge_ticks: Int
    makespan: int

    def __post_init__(self) -> None:
        for array in (self.start, self.end, self.edge_ticks):
            array.flags.writeable = False


@dataclass(slots=True)
class Ledger:
    """What a search has cost so far.

    Attributes
    ----------
    evaluations
        Placements executed.
    estimates
        Finish times worked out, of a task on a device beside the rest of a placement.
    """

    evaluations: int = 0
    estimates: int = 0


class Simulator:
    """Executes placements of one problem, one after another on the same arrays (so in one thread only).

    With `noise` a task or transfer of w ticks takes a time uniform in [w (1 - noise), w (1 + noise)], drawn anew for
    each execution (GiPH, appendix B.5), as in `placeopt.simulation.simulate_noisy`.
    """

    def __init__(self, problem: Problem, evaluations: int, noise: float, rng: Generator) -> None:
        self.problem, self.noise, self.ledger = problem, noise, Ledger()
        self._rng, self._instance, self._work = rng, make_instance(problem), make_work(problem)
        steps = steps_of(problem, self._instance.port) * evaluations
        self._fill, self._fifo, self._events = (
            fill_ticks.select(steps, chunked=True),
            run_fifo.select(steps, chunked=True),
            run_events.select(steps, chunked=True),
        )
        instance, graph, work = self._instance, self._instance.graph, self._work
        self._filled = prepared(self._fill, instance), prepared(self._fill, work)
        move = self._events if instance.port else self._fifo
        self._moved = prepared(move, graph), prepared(move, work)

    def run(self, device: Int) -> Run:
        """Execute a placement (n,); it is not checked."""
        self.ledger.evaluations += 1
        return self._execute(device, self.noise)

    def expected(self, device: Int) -> int:
        """The makespan without noise, in ticks; for whoever judges a search, so not counted."""
        return self._execute(device, 0.0).makespan

    def _execute(self, device: Int, noise: float) -> Run:
        instance, work = self._instance, self._work
        self._fill(self._filled[0], device, self._filled[1])
        if noise:
            self._disturb(device, noise)
        if instance.port:
            makespan = self._events(self._moved[0], device, FIFO, True, self._moved[1])
        else:
            makespan = self._fifo(self._moved[0], device, self._moved[1])
        start = work.start.copy()
        return Run(start, start + work.task_ticks, work.edge_ticks.copy(), int(makespan))

    def _disturb(self, device: Int, noise: float) -> None:
        work, n = self._work, len(device)
        share = noise * (2 * self._rng.random(n + len(work.edge_ticks)) - 1)
        edge_share = share[n:]
        if self.problem.shared.any():  # one transfer for several consumers takes one time
            carrier = edge_transfers(self.problem, device)
            edge_share = edge_share[np.where(carrier >= 0, carrier, 0)]
        work.task_ticks[:] += np.rint(work.task_ticks * share[:n]).astype(np.int64)
        work.edge_ticks[:] += np.rint(work.edge_ticks * edge_share).astype(np.int64)
