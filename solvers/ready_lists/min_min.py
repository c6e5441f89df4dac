"""Min-min: of all ready tasks the one that can end first goes where it does.

T. D. Braun et al.: A comparison of eleven static heuristics for mapping a class of independent tasks onto heterogeneous
distributed computing systems. Journal of Parallel and Distributed Computing 61(6):810-837, 2001,
doi:10.1006/jpdc.2000.1714, section 3: of the minimum completion times of all unmapped tasks the smallest is taken, and
its task is mapped to its machine.

Departures from the paper:

- The paper's tasks are independent. Here only those compete whose producers are placed, as in workflow scheduling, and
  the completion time counts the arrival of all data.
- The paper looks at every pair in each step, O(n² m); a queue of pairs makes it O(n m log n), see `_pairs`.
- Ties go by the lower index of the task, then of the device.
- Memory, colocation groups and separation, see `placeopt_solvers._constructive.groups`: a pair whose device lacks the
  memory of the task's whole group leaves the queue, and the first task of a group to be placed decides for all.
- No task starts before its release time. Deadlines are not looked at; the message says if one is missed.
- Under port contention transfers take their turn at both ports when their consumer is placed (`_booking`), and pairs
  in the queue that this delays go back into it.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options, Settings
from placeopt.solver.citations import BRAUN

from .._constructive.construction import answered
from .._constructive.pairs import earliest_pairs


class MinMin:
    """The schedule of min-min; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "min-min"
    info: ClassVar[Info] = Info(
        summary="the earliest end of all ready tasks and devices (Braun et al. 2001)",
        family="ready lists",
        guarantee="none",
        complexity="O(n m log n + e m)",
        citation=BRAUN,
    )
    settings_type: ClassVar[type[Settings]] = Settings

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        """Min-min's schedule, or FAILED where it finds no placement that fits into memory."""
        by_index = np.arange(problem.n_tasks)
        return answered(problem, lambda groups: earliest_pairs(problem, groups, by_index, problem.duration))
