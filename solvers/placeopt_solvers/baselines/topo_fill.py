"""Topo-fill: devices filled one after the other in topological order, each up to its memory.

The simplest placement that keeps neighbours in the graph together if one device is not enough; no paper is known for
it. `m-topo` does the same with less than the whole memory of each device.

- Tasks go in topological order (`Problem.order`) to the first device until one does not fit, then to the next. A full
  device is not used again. A task that the current device may not run goes to the next one that can take it, and to
  an earlier one only if no later one can. Without limits on memory all tasks go to the first device.
- Each device runs its tasks in that order.
"""

from __future__ import annotations

from placeopt.model.problem import Problem
from placeopt.protocol import Settings

from .._constructive.construction import Build, Constructive, heuristic_info
from .._constructive.sequences import fill_devices


class TopoFill(Constructive):
    name = "topo-fill"
    info = heuristic_info(
        summary="one device after the other filled to its memory in topological order",
        family="baselines",
        complexity="O((n + e) m)",
    )

    def builder(self, problem: Problem, settings: Settings) -> Build:
        return lambda groups: fill_devices(problem, groups, problem.order)
