"""MET: minimum execution time, each task on the device where its duration is least.

T. D. Braun et al., Journal of Parallel and Distributed Computing 2001, doi:10.1006/jpdc.2000.1714, section 3: each task
goes to the machine with the least expected execution time, regardless of that machine's load.

Departures from the paper:

- The paper's tasks are independent and come in any order. Here they come in topological order (`Problem.order`, breadth
  first) and start when their data has arrived. On identical devices all tasks go to the first.
- The paper has no gaps. Here a task may start in one, unless `insertion=false`.
"""

from __future__ import annotations

from placeopt.model.problem import Problem
from placeopt.protocol.citations import bibtex

from .._constructive.construction import Build, Constructive, InsertionSettings, heuristic_info
from .._constructive.sequences import WORK, list_tasks


class Met(Constructive):
    name = "met"
    info = heuristic_info(
        summary="topological order, each task where it takes least time (Braun et al. 2001)",
        family="list scheduling",
        complexity="O((n + e) m) and the gaps searched",
        citation=bibtex("braun2001comparison"),
    )
    settings_type = InsertionSettings

    def builder(self, problem: Problem, settings: InsertionSettings) -> Build:
        return lambda groups: list_tasks(problem, groups, problem.order, WORK, insertion=settings.insertion)
