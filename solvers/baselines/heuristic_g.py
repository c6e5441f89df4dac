"""Heuristic-G: the greedy of the TensorFlow white paper, in topological order to where a task completes earliest.

M. Abadi et al.: TensorFlow: Large-scale machine learning on heterogeneous distributed systems, 2015,
doi:10.48550/arXiv.1603.04467, section 3.2.1. What is built here is the form that A. Carbonari, N. Kodirov, M. Golub
evaluate as Heuristic-G (TensorFlow job placement optimization as a submodular function maximization, 2017, sections 1
and 3): the nodes in their topological order, each on the device where it completes first, its inputs' transfers
counted. On a graph it does the same as `mct`, which comes from another field.

Departures from the papers:

- The white paper simulates the run and takes nodes as it reaches them; this goes by `Problem.order`, breadth first.
- Ties, which the papers leave open, go to the device of the lowest index.
- Memory, colocation groups and separation, see `placeopt_solvers._constructive.groups`: the first task of a group to be
  placed decides for all, and devices without room for the whole group, or that may not run some of it, do not count.
  Release times and ports count where a task could start; deadlines do not, and the message says if one is missed.
"""

from __future__ import annotations

from typing import ClassVar

from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options, Settings

from .._constructive.appending import END, appended
from .._constructive.construction import answered


class HeuristicG:
    """The greedy placement of the TensorFlow white paper."""

    name: ClassVar[str] = "heuristic-g"
    info: ClassVar[Info] = Info(
        summary="topological order, each task where it completes earliest (TensorFlow white paper, 2015)",
        family="baselines",
        guarantee="none",
        complexity="O((n + e) m)",
        citation="""@article{abadi2016tensorflow,
  author  = {Mart{\\'i}n Abadi and others},
  title   = {TensorFlow: Large-scale machine learning on heterogeneous distributed systems},
  journal = {arXiv preprint arXiv:1603.04467},
  year    = {2016},
  doi     = {10.48550/arXiv.1603.04467}
}""",
    )
    settings_type: ClassVar[type[Settings]] = Settings

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        """The greedy schedule, or FAILED where there is no placement that fits into memory."""
        return answered(problem, lambda groups: appended(problem, groups, problem.order, END))
