"""Makespans of many placements in turn, for search loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placeopt.kernels import prepared
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.simulation.loops import Case, Work, fifo_makespan, make_case, make_work
from placeopt.simulation.run import checked_placement, steps_of


@dataclass(frozen=True, slots=True, eq=False)
class Evaluator:
    """FIFO makespans of many placements, one after another on the same work arrays (so in one thread only).

    Inside a compiled loop call `fifo_makespan(case, device, work)` itself.
    """

    problem: Problem
    case: Case
    work: Work
    function: Callable[[Any, Int, Any], int]
    given: tuple[Any, Any]
    """Case and work as the function takes them."""

    def __call__(self, device: Sequence[int] | Int) -> int:
        """Makespan in ticks; `device` (n,) must hold feasible devices, which is not checked.

        Raises
        ------
        UsageError
            If there is not one device for each task, or a device does not exist.
        """
        given = np.asarray(device)
        if (
            given.shape != (self.problem.n_tasks,)
            or int(given.min(initial=0)) < 0
            or int(given.max(initial=-1)) >= self.problem.n_devices
        ):
            checked_placement(self.problem, given)  # says what is wrong
        case, work = self.given
        return int(self.function(case, np.array(given, dtype=np.int64), work))


def make_evaluator(problem: Problem, evaluations: int = 1) -> Evaluator:
    """An Evaluator for a search; many `evaluations` to come are worth compiled code."""
    case = make_case(problem)
    run = fifo_makespan.select(steps_of(problem, case.port) * evaluations, chunked=True)
    work = make_work(problem)
    return Evaluator(problem, case, work, run, (prepared(run, case), prepared(run, work)))
