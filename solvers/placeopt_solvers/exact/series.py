"""series: an exact solver for graphs that single tasks cut into blocks, one after the other.

Networks are mostly series of small blocks: of Inception-v3's 311 layers, 29 cut the graph. A task that cuts it has all
other tasks before or after it, so all that a block passes on to the next is the device of the cut. The optimum is a
shortest path over pairs of a cut and a device class, whose arcs are the optima of blocks with both ends on given
devices (`_series.blocks` states and proves the conditions). Bounds and schedules improve while it runs:

1. Cuts are found in linear time, then weaker ones in blocks that are still large (`_series.cuts`).
2. Quick bounds of all arcs come first. Only arcs on a shortest path are solved, equal blocks once, several at a time,
   and only until they cannot lie on a better path (`_series.arcs`, `_series.run`).
3. Memory that spans blocks is a resource of the path (`_series.labels`). If much of a model must leave its best
   devices, prices of memory come first (`_series.prices`).
4. Schedules of blocks are joined within the memory of the devices (`_series.joining`).

A graph without cuts is solved as one block. If constraints span blocks, the path may leave a gap between bound and
schedule; the solver of the blocks then continues with the whole problem in the remaining time. `auto`, `cp-sat` and
`milp` use the same decomposition first, where it applies.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import ClassVar

from placeopt import engine
from placeopt.errors import UsageError
from placeopt.model.problem import Problem
from placeopt.protocol import Answer, Info, Options, Settings, Termination
from placeopt.protocol.registry import find_solver

from .._runs.solve_run import SolveRun, nothing_to_place
from .._series.cuts import series_of
from .._series.run import SeriesRun
from .._starts.warm_start import best_start


class SeriesSettings(Settings):
    """Settings of series."""

    blocks: str = "auto"
    """The exact solver of the blocks, with its default settings: auto, cp-sat or milp."""
    whole: bool = True
    """Solve the whole problem if no task cuts the graph, or if constraints that span blocks leave a gap."""


class Series:
    """Solves blocks between cuts, and joins them; proves optimality and infeasibility."""

    name: ClassVar[str] = "series"
    info: ClassVar[Info] = Info(
        summary="exact: a shortest path over blocks between tasks that cut the graph",
        family="exact",
        guarantee="optimal",
        complexity="O(n + e), and the solver of the blocks for the pairs of device classes that matter",
        exact=True,
        anytime=True,
        warm_start=True,
        metrics=("makespan",),
        distributed=True,
    )
    settings_type: ClassVar[type[Settings]] = SeriesSettings

    def solve(self, problem: Problem, options: Options, settings: SeriesSettings) -> Answer:
        """Return the best schedule found and the bound proved within the limits."""
        if problem.n_tasks == 0:
            return nothing_to_place(problem)
        solver = find_solver(settings.blocks)
        if not solver.info.exact or solver.name == self.name:
            raise UsageError(f"series: setting blocks = {solver.name}; expected another exact solver, such as auto")

        kind = solver.settings_type
        alone = kind(**({"series": False} if "series" in kind.model_fields else {}))
        solve = partial(solver.solve, settings=alone)
        run = SolveRun(problem, options)
        start = best_start(problem, options.initial, True, run.stopped)
        if start is not None:
            run.best.offer(start, "start")
        try:
            with engine.stopping(run.stopped):
                series = series_of(problem)
        except engine.StoppedError:
            return run.ended(run.stop_reason() or Termination.INTERRUPTED)
        if series is None and settings.whole:
            return solve(problem, replace(options, time_limit=run.clock.remaining, initial=run.best.schedule))
        if series is None:
            return run.ended(Termination.COMPLETED, "no task cuts the graph")
        answer = SeriesRun(problem, options, series, solve, run.best).answer()
        done = answer.termination is not Termination.COMPLETED or run.first_level_reached(run.best.bound) is not None
        if done or not settings.whole:
            return answer
        # Constraints that span blocks leave a gap.
        whole = solve(problem, replace(options, time_limit=run.clock.remaining, initial=run.best.schedule))
        if whole.schedule is not None:
            run.best.offer(whole.schedule)
        if whole.termination is not Termination.OPTIMAL and answer.bound is not None and run.best.values is not None:
            if whole.bound is None or answer.bound > whole.bound:
                whole = replace(whole, bound=answer.bound)
            if run.best.values[0] == whole.bound:
                whole = replace(whole, termination=Termination.OPTIMAL)
        return replace(
            whole,
            schedule=run.best.schedule,
            stats={**answer.stats, **whole.stats},
            bound_source="",
            varies_by=answer.varies_by or whole.varies_by,
        )
