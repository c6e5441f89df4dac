"""stage-search: simulated annealing of the stages and devices of a pipeline.

S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi: Optimization by simulated annealing, Science 220 (1983),
doi:10.1126/science.220.4598.671. It starts from a given schedule, else from the divisions of `dpl`, or, if none has
enough memory, from one that ignores capacities. Several coolings follow each other, each from the best placement so
far. Those of large graphs begin with merged units (`placeopt_solvers.pipelines._search.levels`).
Memory above capacities is penalised, so that the search passes through infeasible states.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from placeopt.bounding.quick import best_bound
from placeopt.model.problem import Problem
from placeopt.protocol import Answer, Info, Options, Settings, Termination
from placeopt.protocol.citations import bibtex

from .._runs.solve_run import SolveRun, nothing_to_place
from ._search.orders import division_points
from ._search.placements import given_point, schedule_of, view_of
from ._search.walks import Search, seconds_of
from ._shared.assessment import pipeline_info

DEFAULT = 10.0
"""Planned seconds without a time limit and without a number of moves."""

SHARE = 0.4
"""Share of the time limit for which moves are planned; they end by their number, not by the clock."""

NONE = "no placement that was tried has enough memory"


class StageSearchSettings(Settings):
    """Settings of stage-search."""

    moves: int | None = Field(default=None, gt=0)
    """About the number of moves to try; slow ones, those of merged units, count for more. By default, as many as fit
    into the time limit, a number that depends only on the problem and the limit; without a time limit, as many as a
    core tries in about ten seconds."""


class StageSearch:
    """Improves the best division into stages."""

    name: ClassVar[str] = "stage-search"
    info: ClassVar[Info] = pipeline_info(
        summary="simulated annealing of the stages and devices of pipelines (Kirkpatrick et al. 1983)",
        guarantee="none",
        complexity="O(d m) per move of a task of degree d, as many moves as time allows",
        citation=bibtex("kirkpatrick1983optimization"),
        warm_start=True,
    )
    settings_type: ClassVar[type[Settings]] = StageSearchSettings

    def solve(self, problem: Problem, options: Options, settings: StageSearchSettings) -> Answer:
        """Return the best placement found within the limits."""
        if problem.n_tasks == 0:
            return nothing_to_place(problem)
        run = SolveRun(problem, options)
        view = view_of(problem)
        given = None if options.initial is None else given_point(view, options.initial)
        points = list(division_points(view, run.stopped)) if given is None else [given]
        if not points and not run.stopped():
            points = list(division_points(view, run.stopped, strict=False))
        if not points:
            return run.ended(run.stop_reason() or Termination.FAILED, NONE)
        start = points[-1]
        if start.fits:
            run.best.offer(schedule_of(view, start), "start")
        least = best_bound(problem).value if problem.objective.single == "period" else None
        seconds = DEFAULT if options.planned_seconds is None else SHARE * options.planned_seconds
        if settings.moves is not None:
            seconds = settings.moves * seconds_of(view)
        search = Search(view, start, options.seed)
        if run.first_level_reached(least) is None:
            for point in search.run(seconds, run.stopped):
                run.best.offer(schedule_of(view, point), "annealing")
                if run.first_level_reached(least) is not None:
                    break
        run.stats = {"moves": search.tried}
        if run.best.schedule is None:
            return run.ended(run.stop_reason() or Termination.FAILED, NONE)
        if least is not None and run.best.values == (least,):
            run.best.raise_bound(least)
            return run.ended(Termination.OPTIMAL)
        return run.ended(run.stop_reason() or Termination.COMPLETED)
