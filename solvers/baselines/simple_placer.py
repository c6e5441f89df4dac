"""Simple placer: all tasks on the first device, as TensorFlow's placer of that name does.

Described by A. Carbonari, N. Kodirov, M. Golub: TensorFlow job placement optimization as a submodular function
maximization, 2017, footnote 1: devices are sorted, and all nodes without a constraint of their own go to the first.

Departures from it:

- Devices are in the order of the problem file. A task that the first cannot take goes to the first of the others that
  can.
- Tasks run in topological order, `Problem.order`.
"""

from __future__ import annotations

from placeopt.model.problem import Problem
from placeopt.solver import Info, Settings
from placeopt.solver.citations import CARBONARI

from .._constructive.appending import INDEX, append_tasks
from .._constructive.construction import Build, Constructive


class SimplePlacer(Constructive):
    name = "simple-placer"
    info = Info(
        summary="everything on the first device that can take it (TensorFlow's simple placer)",
        family="baselines",
        guarantee="none",
        complexity="O((n + e) m)",
        citation=CARBONARI,
    )

    def builder(self, problem: Problem, settings: Settings) -> Build:
        return lambda groups: append_tasks(problem, groups, problem.order, INDEX)
