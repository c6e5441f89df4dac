"""Topo-fill: the devices filled one after the other in topological order, each up to its memory.

The least that keeps a graph's neighbours together where one device is not enough; no paper is known that claims it.
`m-topo` does the same with less than the whole memory of each device.

- Tasks go in topological order, `Problem.order`, onto the first device until one does not fit, then onto the next; a
  full device is not returned to. A task that may not run on the current device goes to the next that can take it, and
  only when there is none behind to what room is left before. Without limits on memory all go to the first device.
- Each device runs its tasks in that order.
- Memory, colocation groups and separation, see `placeopt_solvers._constructive.groups`: the first task of a group to be
  placed decides for all, and devices without room for the whole group, or that may not run some of it, do not count.
  Release times and ports count where a task could start; deadlines do not, and the message says if one is missed.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options, Settings

from .._constructive.appending import filled
from .._constructive.construction import answered


class TopoFill:
    """One device after the other, each filled up."""

    name: ClassVar[str] = "topo-fill"
    info: ClassVar[Info] = Info(
        summary="one device after the other filled to its memory in topological order",
        family="baselines",
        guarantee="none",
        complexity="O((n + e) m)",
    )
    settings_type: ClassVar[type[Settings]] = Settings

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        """The schedule, or FAILED where there is no placement that fits into memory."""
        keep = np.zeros(problem.n_devices, dtype=np.int64)
        return answered(problem, lambda groups: filled(problem, groups, problem.order, keep))
