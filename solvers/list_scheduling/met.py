"""MET: minimum execution time, each task where it takes least time.

T. D. Braun et al.: A comparison of eleven static heuristics for mapping a class of independent tasks onto heterogeneous
distributed computing systems. Journal of Parallel and Distributed Computing 61(6):810-837, 2001,
doi:10.1006/jpdc.2000.1714, section 3: each task goes to the machine with the least expected execution
time, however much waits there.

Departures from the paper:

- Its tasks are independent and come in any order. Here they come in topological order, `Problem.order`, breadth first,
  and start when their data is there.
  On like devices all go to the first.
- Ties go to the device of the lowest index; the paper leaves them open.
- Memory, colocation groups and separation, see `placeopt_solvers._constructive.groups`: the first task of a group to be
  placed decides for all, and devices without room for the whole group, or that may not run some of it, do not count.
  Release times and ports count where a task could start; deadlines do not, and the message says if one is missed.
"""

from __future__ import annotations

from typing import ClassVar

from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options, Settings
from placeopt.solver.citations import BRAUN

from .._constructive.appending import WORK, appended
from .._constructive.construction import answered


class Met:
    """The schedule of MET; never overfills a device."""

    name: ClassVar[str] = "met"
    info: ClassVar[Info] = Info(
        summary="topological order, each task where it takes least time (Braun et al. 2001)",
        family="list scheduling",
        guarantee="none",
        complexity="O((n + e) m)",
        citation=BRAUN,
    )
    settings_type: ClassVar[type[Settings]] = Settings

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        """MET's schedule, or FAILED where there is no placement that fits into memory."""
        return answered(problem, lambda groups: appended(problem, groups, problem.order, WORK))
