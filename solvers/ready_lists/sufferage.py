"""Sufferage: of all ready tasks the one that would lose most without its best device gets it.

M. Maheswaran, S. Ali, H. J. Siegel, D. Hensgen, R. F. Freund: Dynamic mapping of a class of independent tasks onto
heterogeneous computing systems. Journal of Parallel and Distributed Computing 59(2):107-131, 1999,
doi:10.1006/jpdc.1999.1581: the sufferage of a task is the difference between its second earliest and its earliest
completion time. With tasks of a workflow, one after the other: H. Casanova, A. Legrand, D. Zagorodnov, F. Berman:
Heuristics for scheduling parameter sweep applications in grid environments. Heterogeneous Computing Workshop (HCW),
2000, doi:10.1109/HCW.2000.843757.

Departures from the paper:

- The paper's tasks are independent. Here only those compete whose producers are placed, as in workflow scheduling, and
  the completion time counts the arrival of all data.
- The paper maps at most one task to each machine before it works out the completion times anew; here, as in the later
  work, one task is placed, then all is as it is after that.
- A task that can go to one device only has nothing to fall back on and comes before those with a choice; of several
  such the one that ends first.
- Ties go by the lower index of the task, then of the device.
- Memory, colocation groups and separation, see `placeopt_solvers._constructive.groups`: completion times are over the
  devices that have room for the task's whole group, and the first task of a group to be placed decides for all.
- No task starts before its release time. Deadlines are not looked at; the message says if one is missed. For what is
  done under port contention see `_completion`.
"""

from __future__ import annotations

from typing import ClassVar

from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options, Settings

from .._constructive.construction import answered
from .._constructive.task_selection import neediest


class Sufferage:
    """The schedule of sufferage; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "sufferage"
    info: ClassVar[Info] = Info(
        summary="the ready task that loses most without its best device (Maheswaran et al. 1999)",
        family="ready lists",
        guarantee="none",
        complexity="O(n W m + e m), W the most tasks ready at once",
        citation="""@article{maheswaran1999dynamic,
  author  = {Muthucumaru Maheswaran and Shoukat Ali and Howard Jay Siegel and Debra Hensgen and Richard F. Freund},
  title   = {Dynamic mapping of a class of independent tasks onto heterogeneous computing systems},
  journal = {Journal of Parallel and Distributed Computing},
  volume  = {59},
  number  = {2},
  pages   = {107--131},
  year    = {1999},
  doi     = {10.1006/jpdc.1999.1581}
}""",
    )
    settings_type: ClassVar[type[Settings]] = Settings

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        """The schedule of sufferage, or FAILED where it finds no placement that fits into memory."""
        return answered(problem, lambda groups: neediest(problem, groups, by_gap=True))
