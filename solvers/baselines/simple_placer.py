"""Simple placer: everything on the first device, as TensorFlow's placer of that name does.

Described by A. Carbonari, N. Kodirov, M. Golub: TensorFlow job placement optimization as a submodular function
maximization, 2017, footnote 1: devices are sorted, and all nodes without a constraint of their own go to the first.

Departures from it:

- Devices are taken in the order of the document. A task that may not or cannot go to the first goes to the first of the
  others that can take it.
- Tasks run in topological order, `Problem.order`.
- Memory, colocation groups and separation, see `placeopt_solvers._constructive.groups`: the first task of a group to be
  placed decides for all, and devices without room for the whole group, or that may not run some of it, do not count.
  Release times and ports count where a task could start; deadlines do not, and the message says if one is missed.
"""

from __future__ import annotations

from typing import ClassVar

from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options, Settings

from .._constructive.appending import INDEX, appended
from .._constructive.construction import answered


class SimplePlacer:
    """Everything on the first device that can take it."""

    name: ClassVar[str] = "simple-placer"
    info: ClassVar[Info] = Info(
        summary="everything on the first device that can take it (TensorFlow's simple placer)",
        family="baselines",
        guarantee="none",
        complexity="O((n + e) m)",
        citation="""@techreport{carbonari2017submodular,
  author = {Amanda Carbonari and Nodir Kodirov and Maximilian Golub},
  title  = {TensorFlow job placement optimization as a submodular function maximization},
  year   = {2017}
}""",
    )
    settings_type: ClassVar[type[Settings]] = Settings

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        """The schedule on the first devices, or FAILED where there is no placement that fits into memory."""
        return answered(problem, lambda groups: appended(problem, groups, problem.order, INDEX))
