"""Max-min: of all ready tasks the one whose earliest end is the latest goes where it ends first.

T. D. Braun et al.: A comparison of eleven static heuristics for mapping a class of independent tasks onto heterogeneous
distributed computing systems. Journal of Parallel and Distributed Computing 61(6):810-837, 2001,
doi:10.1006/jpdc.2000.1714, section 3: of the minimum completion times of all unmapped tasks the largest is taken, and
its task is mapped to its machine.

Departures from the paper:

- The paper's tasks are independent. Here only those compete whose producers are placed, as in workflow scheduling, and
  the completion time counts the arrival of all data.
- The paper works out every completion time in each step; here only those of tasks whose best device was used last, see
  `_completion`, also for what is done under port contention.
- Ties go by the lower index of the task, then of the device.
- Memory, colocation groups and separation, see `placeopt_solvers._constructive.groups`: the minimum is over the devices
  that have room for the task's whole group, and the first task of a group to be placed decides for all.
- No task starts before its release time. Deadlines are not looked at; the message says if one is missed.
"""

from __future__ import annotations

from typing import ClassVar

from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options, Settings
from placeopt.solver.citations import BRAUN

from .._constructive.construction import answered
from .._constructive.task_selection import neediest


class MaxMin:
    """The schedule of max-min; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "max-min"
    info: ClassVar[Info] = Info(
        summary="the ready task whose earliest end is the latest, where it ends first (Braun et al. 2001)",
        family="ready lists",
        guarantee="none",
        complexity="O(n W m + e m), W the most tasks ready at once",
        citation=BRAUN,
    )
    settings_type: ClassVar[type[Settings]] = Settings

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        """Max-min's schedule, or FAILED where it finds no placement that fits into memory."""
        return answered(problem, lambda groups: neediest(problem, groups, by_gap=False))
