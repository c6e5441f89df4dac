"""dpl: orders of the tasks, each divided into stages by dynamic programming.

The program is that of `ideals` for the sets of one order: the variant DPL ("linearisation") of Tarnawski et al.
(NeurIPS 2020, section 5.1) for large graphs. Departures: several orders, not one; stages end only where little data
crosses; backward stages, replicas, recomputation and memory are those of `placeopt_solvers.pipelines._shared.ideals`.
It supports all rules: where devices may have several stages, its schedules have one on each device. Outputs that
several stages consume count as if stages were parts of equal work; the period of the schedule is exact.
"""

from __future__ import annotations

from typing import ClassVar

from placeopt.model.problem import Problem
from placeopt.protocol import Answer, Info, Options, Settings, Termination
from placeopt.protocol.citations import bibtex

from .._runs.solve_run import SolveRun, nothing_to_place
from ._search.orders import division_points
from ._search.placements import schedule_of, view_of
from ._shared.assessment import pipeline_info


class Dpl:
    """Divides orders of the tasks into stages."""

    name: ClassVar[str] = "dpl"
    info: ClassVar[Info] = pipeline_info(
        summary="orders of the tasks, divided into stages by dynamic programming (Tarnawski et al. 2020)",
        guarantee="none",
        complexity="O(p (n + e) + p^2 m) for p positions where stages may end",
        citation=bibtex("tarnawski2020efficient"),
    )
    settings_type: ClassVar[type[Settings]] = Settings

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        """Return the best division."""
        if problem.n_tasks == 0:
            return nothing_to_place(problem)
        run = SolveRun(problem, options)
        view = view_of(problem)
        points = list(division_points(view, run.stopped))
        if points:
            run.best.offer(schedule_of(view, points[-1]))
            return run.ended(run.stop_reason() or Termination.COMPLETED)
        return run.ended(run.stop_reason() or Termination.FAILED, "no division of the orders that were tried is valid")
