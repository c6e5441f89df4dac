"""OLB: opportunistic load balancing, each task on the device that is free first.

T. D. Braun et al., Journal of Parallel and Distributed Computing 2001, doi:10.1006/jpdc.2000.1714, section 3: each task
goes to the machine that is expected to be available next, regardless of the execution time there.

Departures from the paper:

- The paper's tasks are independent and come in any order. Here they come in topological order (`Problem.order`, breadth
  first) and start when their data has arrived, which does not influence the choice of devices.
- The paper has no gaps. Here a task may start in one, unless `insertion=false`. A device is free after its last task.
"""

from __future__ import annotations

from placeopt.model.problem import Problem
from placeopt.protocol.citations import bibtex

from .._constructive.construction import Build, Constructive, InsertionSettings, heuristic_info
from .._constructive.sequences import IDLE, list_tasks


class Olb(Constructive):
    name = "olb"
    info = heuristic_info(
        summary="topological order, each task on the device that is free first (Braun et al. 2001)",
        family="list scheduling",
        complexity="O((n + e) m) and the gaps searched",
        citation=bibtex("braun2001comparison"),
    )
    settings_type = InsertionSettings

    def builder(self, problem: Problem, settings: InsertionSettings) -> Build:
        return lambda groups: list_tasks(problem, groups, problem.order, IDLE, insertion=settings.insertion)
