"""Solve a problem within a time limit: a plan, the bound of its rate, and the gap."""

from __future__ import annotations

from collections.abc import Callable

from placeopt.errors import UsageError
from placeopt.model.arrays import Int
from placeopt.serving.feasibility import shortage
from placeopt.serving.problem import Serving
from placeopt.serving.rate_search import RateSearch
from placeopt.serving.request_search import RequestSearch
from placeopt.serving.result import ServingResult
from placeopt.serving.search import search_options
from placeopt.serving.sites import find_sites

DEFAULT_GAP = 1e-4
"""Gap at which a search ends unless another one is asked for."""


def solve_serving(
    problem: Serving,
    *,
    time_limit: float = 60.0,
    gap_limit: float = DEFAULT_GAP,
    seed: int = 0,
    workers: int | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    enough: int | None = None,
    start: tuple[Int, Int] | None = None,
) -> ServingResult:
    """Find a plan with a large rate, and prove a bound.

    Parameters
    ----------
    time_limit
        Seconds. The search ends earlier only if the gap is at most `gap_limit`.
    should_stop
        Called regularly; once true, the best plan so far is returned.
    enough
        The search also ends with a plan of at least this rate, in millionths of a token per second.
    start
        (v,) begin and end of intervals with which the search starts.

    Raises
    ------
    UsageError
        If the problem allows several replicas, or an argument is out of range.
    """
    options = search_options(
        "solve_serving", problem, time_limit, gap_limit=gap_limit, seed=seed, workers=workers, should_stop=should_stop,
        enough=enough,
    )  # fmt: skip
    if problem.replicas > 1:
        raise UsageError(f"the problem allows {problem.replicas:,} replicas; expected replicas: 1 here")
    if shortage(problem) is not None:
        return ServingResult(problem, None, None, 0, "shortage", 0.0, find_sites(problem))
    search = RateSearch if problem.steps is None else RequestSearch
    return search(problem, options, start).run()
