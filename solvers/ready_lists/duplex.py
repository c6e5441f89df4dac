"""Duplex: the better of the schedules of min-min and max-min.

T. D. Braun et al.: A comparison of eleven static heuristics for mapping a class of independent tasks onto heterogeneous
distributed computing systems. Journal of Parallel and Distributed Computing 61(6):810-837, 2001,
doi:10.1006/jpdc.2000.1714, section 3.

Departures from the paper: those of `min-min` and `max-min`. Of the two schedules the one that misses deadlines by less
is taken, then the shorter one, then that of min-min.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options, Settings
from placeopt.solver.citations import BRAUN

from .._constructive.construction import as_answer, best_of, constructed
from .._constructive.pairs import earliest_pairs
from .._constructive.task_selection import neediest


class Duplex:
    """The better of the schedules of min-min and max-min; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "duplex"
    info: ClassVar[Info] = Info(
        summary="the better of min-min and max-min (Braun et al. 2001)",
        family="ready lists",
        guarantee="none",
        complexity="O(n m log n + n W m + e m), W the most tasks ready at once",
        citation=BRAUN,
    )
    settings_type: ClassVar[type[Settings]] = Settings

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        """The better schedule, or FAILED where neither finds a placement that fits into memory."""
        by_index = np.arange(problem.n_tasks)
        smallest = constructed(problem, lambda groups: earliest_pairs(problem, groups, by_index, problem.duration))
        largest = constructed(problem, lambda groups: neediest(problem, groups, by_gap=False))
        return as_answer(problem, best_of(problem, [smallest, largest]))
