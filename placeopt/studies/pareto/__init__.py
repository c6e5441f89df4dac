"""Compute the Pareto front of two metrics, with a certified gap at each point.

    front = po.pareto(po.load("problems/mine.yaml"), metrics=("makespan", "energy"), time_limit=60)
    print(front.conclusion)
    for point in front.points:
        print(point.values, point.gap, point.schedule)

The epsilon-constraint method: Y. Haimes, L. Lasdon, D. Wismer: On a bicriterion formulation of the problems of
integrated system identification and system optimization, IEEE Transactions on Systems, Man, and Cybernetics 1 (1971),
doi:10.1109/TSMC.1971.4308298. One metric is minimised under a limit of the other one. Departures:

- The other metric is then minimised under the value found, so that no point is weakly dominated.
- The limit halves the largest open region between two points, as in the box algorithm of H. Hamacher, C. Pedersen, S.
  Ruzika: Finding representative systems for discrete bicriterion optimization problems, Operations Research Letters 35
  (2007), pages 336-344. If a half is empty, one of the other metric follows, unless all points are
  wanted, and then the whole region.
- The lower bound of each solve, also of one that the time limit ended, excludes a part of the plane (`staircase`).

`search` chooses the solves, and `findings` are what it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from placeopt.errors import UnsupportedError, UsageError, counted, listing, suggestion
from placeopt.model.arrays import checked_call, checked_number, checked_whole
from placeopt.model.building import with_changes
from placeopt.model.problem import UNLIMITED, Metric, Objective, Problem, Term, check_problem
from placeopt.model.schedule import Schedule
from placeopt.orchestration.keyboard import stopped_by_keyboard
from placeopt.protocol import ALL_METRICS, Clock
from placeopt.protocol.registry import check_supported, find_solver
from placeopt.studies.pareto.findings import Pareto, Point
from placeopt.studies.pareto.search import Search

__all__ = ["POINTS", "Pareto", "Point", "check_metrics", "pareto"]

POINTS = 9
"""Points of a front, unless another number is asked for."""


def pareto(
    problem: Problem,
    metrics: Sequence[Metric] = ("makespan", "energy"),
    *,
    points: int | None = POINTS,
    solver: str = "cp-sat",
    time_limit: float | None = 60.0,
    seed: int = 0,
    initial: Schedule | str | None = None,
    on_step: Callable[[str], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    **options: Any,
) -> Pareto:
    """Compute points of the Pareto front of two metrics, which replace the objective; all other rules stay.

    The ends of the front come first, then points between them.

    Parameters
    ----------
    metrics
        Two metrics of one run: makespan, total_cost, max_load, communication, energy, memory_balance, relocation,
        tardiness, price or devices. The first one orders the points.
    points
        Number of points; the rest of the time proves them. None: all points of the front.
    solver
        A solver that supports `limits`; one that proves optimality finds the exact front.
    time_limit
        Seconds for all solves; None for no limit.
    initial
        A schedule to start from, or the name of a solver that makes one.
    on_step
        Called before each solve with a text that says what is minimised.
    should_stop
        Called regularly; once it returns true, the points so far are returned. None: Ctrl-C in the main thread does the
        same.
    **options
        Of `placeopt.solve` for each solve: workers, gap_limit, passes, bound_time, and settings of the solver.

    Raises
    ------
    UsageError
        If an argument is invalid, or a metric needs what the problem does not state.
    UnsupportedError
        If the solver does not support the problem, a metric or limits, or the problem is a pipeline.
    InternalError
        If results contradict each other.
    """
    check_problem("pareto", problem)
    chosen = check_metrics(metrics)
    _check_stated(problem, chosen)
    checked_call("on_step", on_step)
    checked_call("should_stop", should_stop)
    wanted = None if points is None else checked_whole("points", points, 2)
    found = find_solver(solver)
    first, second = (with_changes(problem, objective=Objective(((Term(metric),),))) for metric in chosen)
    for each, other in ((first, chosen[1]), (second, chosen[0])):
        check_supported(found, with_changes(each, limits=[(other, UNLIMITED)]))
    clock = Clock(checked_number("time_limit", time_limit, positive=True))
    with stopped_by_keyboard() if should_stop is None else nullcontext(should_stop) as stopped:
        search = Search(
            (first, second), chosen, found, wanted, clock, stopped, on_step or (lambda _text: None), initial,
            {"seed": seed, **options},
        )  # fmt: skip
        termination = search.run()
    return Pareto(
        problem=problem,
        metrics=chosen,
        solver=found.name,
        seed=seed,
        points=tuple(
            Point(
                search.schedules[pair],
                pair,
                (search.proved.least(0, pair[1]), search.proved.least(1, pair[0])),
                search.gaps(pair),
            )
            for pair in search.points
        ),
        proved=search.proved,
        termination=termination,
        solves=len(search.results),
        seconds=clock.elapsed,
        message="" if search.schedules else next((each.message for each in search.results if each.message), ""),
    )


def check_metrics(metrics: Sequence[str], name: str = "metrics") -> tuple[Metric, Metric]:
    """Return two different metrics of one run; anything else is a UsageError, which names the argument."""
    given = [metrics] if isinstance(metrics, str) else list(metrics)
    for metric in given:
        if metric not in ALL_METRICS:
            hint = suggestion(str(metric), ALL_METRICS)
            raise UsageError(
                f"{name}: {metric!r} is not a metric of one run; expected {listing(ALL_METRICS, 20)}{hint}"
            )
    if len(given) != 2:
        raise UsageError(f"{name}: {counted(len(given), 'metric')}; expected two, such as makespan and energy")
    if given[0] == given[1]:
        raise UsageError(f"{name}: {given[0]} is named twice; expected two different metrics")
    first, second = (known for metric in given for known in ALL_METRICS if known == metric)
    return first, second


def _check_stated(problem: Problem, metrics: Sequence[Metric]) -> None:
    """Reject pipelines, and metrics that are 0 because the problem does not state what they need."""
    if problem.pipeline is not None:
        raise UnsupportedError(
            "pareto does not support pipelines (the objective period), since metrics of a pipeline have no limits; "
            "state another objective"
        )
    needs = {
        "energy": ("the power of devices or the energy of links", (problem.power_num, problem.byte_energy_num)),
        "price": ("the price of devices or of tasks", (problem.price,)),
        "tardiness": ("due dates of tasks", (problem.due != UNLIMITED,)),
        "relocation": ("the section current, which states the current placement", (problem.relocation,)),
    }
    for metric in metrics:
        what, stated = needs.get(metric, ("", ()))
        if what and not any(np.any(values) for values in stated):
            raise UsageError(f"{metric} needs {what}; the problem states none")
