"""MCT: minimum completion time, each task on the device where it ends first.

T. D. Braun et al.: A comparison of eleven static heuristics for mapping a class of independent tasks onto heterogeneous
distributed computing systems. Journal of Parallel and Distributed Computing 61(6):810-837, 2001,
doi:10.1006/jpdc.2000.1714, section 3: each task goes to the machine with the least expected completion time.

Departures from the paper:

- The paper's tasks are independent and come in any order. Here they come in topological order (`Problem.order`, breadth
  first) and start when their data has arrived.
- On a graph MCT is the same as `heuristic-g`, which comes from another field.
"""

from __future__ import annotations

from placeopt.model.problem import Problem
from placeopt.solver import Info, Settings
from placeopt.solver.citations import BRAUN

from .._constructive.appending import END, append_tasks
from .._constructive.construction import Build, Constructive


class Mct(Constructive):
    name = "mct"
    info = Info(
        summary="topological order, each task where it ends first (Braun et al. 2001)",
        family="list scheduling",
        guarantee="none",
        complexity="O((n + e) m)",
        citation=BRAUN,
    )

    def builder(self, problem: Problem, settings: Settings) -> Build:
        return lambda groups: append_tasks(problem, groups, problem.order, END)
