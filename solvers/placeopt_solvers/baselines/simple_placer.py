"""Simple placer: all tasks on the first device, as TensorFlow's placer of that name does.

A. Carbonari, N. Kodirov, M. Golub (2017, footnote 1) describe it: devices are sorted, and all nodes without a
constraint of their own go to the first.

Departures from it:

- Devices are in the order of the problem file. A task that the first cannot take goes to the first of the others that
  can.
- Tasks run in topological order, `Problem.order`.
"""

from __future__ import annotations

from placeopt.model.problem import Problem
from placeopt.protocol import Settings
from placeopt.protocol.citations import bibtex

from .._constructive.construction import Build, Constructive, heuristic_info
from .._constructive.sequences import INDEX, list_tasks


class SimplePlacer(Constructive):
    name = "simple-placer"
    info = heuristic_info(
        summary="everything on the first device that can take it (TensorFlow's simple placer)",
        family="baselines",
        complexity="O((n + e) m)",
        citation=bibtex("carbonari2017submodular"),
    )

    def builder(self, problem: Problem, settings: Settings) -> Build:
        return lambda groups: list_tasks(problem, groups, problem.order, INDEX)
