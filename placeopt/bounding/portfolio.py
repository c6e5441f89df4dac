"""Compute all lower bounds of a problem: quick ones first, then those that take time.

    quick         `placeopt.bounding.quick`: integer arithmetic, well under a second
    energetic     `placeopt.bounding.energetic`: makespan only, about a second
    sct-lp        `placeopt.bounding.sct.bound`: makespan only, up to a few seconds
    relaxations   `placeopt.bounding.relaxation`: linear and integer programs, until the time limit

Every bound holds for the original problem. The slow ones are computed after the exact passes, which keep the optimum.
The best bound certifies the gap of any schedule.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from placeopt.bounding import quick
from placeopt.bounding.energetic import energetic_bound
from placeopt.bounding.heuristics import best_heuristic_value
from placeopt.bounding.quick import Bound, narrowed_classes, prove_infeasible
from placeopt.bounding.relaxation import relaxed_bounds
from placeopt.bounding.sct import sct_bound
from placeopt.kernels import WaitingStoppedError, hurried, impatient
from placeopt.model.arrays import checked_call, checked_number, checked_whole
from placeopt.model.objective import Value, simplified
from placeopt.model.problem import Problem, check_problem
from placeopt.passes import EXACT_PASSES, apply_passes
from placeopt.solver import Clock


def bounds(
    problem: Problem,
    *,
    time_limit: float | None = None,
    workers: int | None = 1,
    known: Value | None = None,
    on_bound: Callable[[Bound], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> list[Bound]:
    """Lower bounds of the objective's first level, best first; at least one.

    They mean nothing if the problem is infeasible (`prove_infeasible`).

    Parameters
    ----------
    time_limit
        Seconds for the slow bounds; without it only the quick bounds are computed.
    workers
        Threads to use; None for all cores.
    known
        The objective's first level in a known schedule: a bound that reaches it ends the computation.
    on_bound
        Called with every bound, perhaps from another thread, one call at a time.
    should_stop
        Polled regularly; once true, the bounds proved so far are returned.
    """
    check_problem("bounds", problem)
    checked_number("time_limit", time_limit, positive=True)
    workers = checked_whole("workers", os.cpu_count() or 1 if workers is None else workers, 1, 1000)
    checked_call("should_stop", should_stop)
    clock = Clock(time_limit)
    found: dict[str, Bound] = {}
    best: Value | None = None  # read by several threads while one adds bounds

    def add(bound: Bound) -> None:
        nonlocal best
        found[bound.name] = bound
        best = bound.value if best is None else max(best, bound.value)
        if on_bound is not None:
            on_bound(bound)

    def over() -> bool:
        return (should_stop is not None and should_stop()) or (known is not None and best is not None and best >= known)

    def stopped() -> bool:
        return over() or clock.over

    with hurried(stopped):
        for bound in quick.bounds(problem):
            add(bound)
        searching = time_limit is not None and not over() and prove_infeasible(problem) is None
    if searching:
        with impatient(stopped), suppress(WaitingStoppedError):
            reduced = apply_passes(problem, EXACT_PASSES).problem
            if reduced.n_tasks and reduced.objective.single == "makespan":
                add(energetic_bound(reduced, int(best or 0), stopped))
            metrics = [term.metric for term in reduced.objective.levels[0]]
            if reduced.n_tasks and metrics == ["makespan"] and not stopped():
                add(_sct(reduced, stopped))
            if not over():
                relaxed_bounds(
                    reduced,
                    time_limit=clock.remaining,
                    workers=workers,
                    known=best_heuristic_value(reduced) if known is None else known,
                    on_bound=add,
                    should_stop=over,
                )
    return sorted(found.values(), key=lambda bound: -bound.value)


def _sct(problem: Problem, should_stop: Callable[[], bool]) -> Bound:
    """The bound of the linear program of small communication times."""
    clock = Clock(None)
    ticks, solution = sct_bound(narrowed_classes(problem), should_stop=should_stop)
    explanation = (
        "of the consumers of a task, and of its producers, at most one is adjacent to it on the same device without "
        "a delay: a linear program, "
        + (f"solved to a relative gap of {solution.gap:.0e}" if solution.gap else "solved exactly")
    )
    return Bound("sct-lp", simplified(problem.objective.levels[0][0].weight * ticks), explanation, clock.elapsed)
