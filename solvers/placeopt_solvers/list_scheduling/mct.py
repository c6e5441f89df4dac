"""MCT: minimum completion time, each task on the device where it ends first.

T. D. Braun et al., Journal of Parallel and Distributed Computing 2001, doi:10.1006/jpdc.2000.1714, section 3: each task
goes to the machine with the least expected completion time.

Departures from the paper:

- The paper's tasks are independent and come in any order. Here they come in topological order (`Problem.order`, breadth
  first) and start when their data has arrived.
- The paper has no gaps. Here a task may start in one, unless `insertion=false`.
- On a graph MCT with `insertion=false` is the same as `heuristic-g`, which comes from another field.
"""

from __future__ import annotations

from placeopt.model.problem import Problem
from placeopt.protocol.citations import bibtex

from .._constructive.construction import Build, Constructive, InsertionSettings, heuristic_info
from .._constructive.sequences import END, list_tasks


class Mct(Constructive):
    name = "mct"
    info = heuristic_info(
        summary="topological order, each task where it ends first (Braun et al. 2001)",
        family="list scheduling",
        complexity="O((n + e) m) and the gaps searched",
        citation=bibtex("braun2001comparison"),
    )
    settings_type = InsertionSettings

    def builder(self, problem: Problem, settings: InsertionSettings) -> Build:
        return lambda groups: list_tasks(problem, groups, problem.order, END, insertion=settings.insertion)
