"""Submodular-G: placement as the maximisation of a function with diminishing returns, one task on one device each.

A. Carbonari, N. Kodirov, M. Golub: TensorFlow job placement optimization as a submodular function maximization, 2017,
section 2.2, equations 1 to 3. Each round of standard greedy places the pair of task and device that lets

    f(S) = sum over devices i of g(sum over tasks j on i of b_ij),    g(x) = sqrt(x)
    b_ij = (2 - (c_ij + placed_i) / cap_i) * pf_ij

grow most, c_ij being the task's duration there, placed_i that of what stands there already, and pf_ij one more than the
tasks parallel to j on other devices. The settings add what section 5 leaves for future work. Equations, departures from
the paper and what they answer are in `placeopt.submodular.placement`; whether f is submodular, in docs/submodular.md.

Departures beyond those:

- The paper judges a placement by its job completion time (equation 4; `carbonari_jct` in the statistics), in which
  nothing waits for a transfer or a busy device. Here tasks get their places in time as by HEFT on the given devices
  (upward ranks, with insertion), and the schedule is what counts.
- Memory is kept by default (memory = step), with groups, separation and feasible devices; where greedy runs into a dead
  end, others are moved (`placeopt_solvers._constructive.construction`). memory = unlimited is the paper's assumption.
- Ties go to the task, then the device of the lowest index, as in the paper's example.
"""

from __future__ import annotations

from typing import ClassVar

from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options, Settings
from placeopt.solver.citations import CARBONARI

from ._submodular import SubmodularSettings, answered


class SubmodularG:
    """Greedy on the function with the parallelism factor inside the sum."""

    name: ClassVar[str] = "submodular-g"
    info: ClassVar[Info] = Info(
        summary="greedy maximisation, parallelism factor inside the sum (Carbonari et al. 2017, section 2.2)",
        family="submodular",
        guarantee="none: the function is not submodular; 1/2 of its best value with parallelism=false load=false",
        complexity="O(n² m), lazily",
        citation=CARBONARI,
    )
    settings_type: ClassVar[type[Settings]] = SubmodularSettings

    def solve(self, problem: Problem, options: Options, settings: SubmodularSettings) -> Answer:
        """The schedule, or FAILED where it finds no placement that fits into memory."""
        return answered(problem, options, "inside", settings)
