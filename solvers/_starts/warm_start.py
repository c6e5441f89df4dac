"""Schedules that an exact solver or a search can start from."""

from __future__ import annotations

from collections.abc import Callable

from placeopt.bounding.quick import best_bound
from placeopt.errors import UsageError
from placeopt.model.objective import evaluate
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.simulation import retime
from placeopt.solver import Clock, Options

from .._constructive.heft import heft
from .._local_search.cooling import annealer, coolings
from .._local_search.search import LOADING, rounds_in, searched, sufficient
from .._runs.incumbent import Incumbent
from .._runs.validity import valid
from .segments import segmented
from .serial import best_serial


def best_start(problem: Problem, initial: Schedule | None, heuristics: bool) -> Schedule | None:
    """The best valid schedule among the initial one and, if wanted, those of HEFT, of single devices and of segments.

    Each is also tried re-timed. A schedule that breaks a rule, whoever it comes from, is left out.
    """
    candidates = [initial]
    if heuristics:
        candidates += [heft(problem).schedule, best_serial(problem)[0], *segmented(problem)]
    given = [schedule for schedule in candidates if schedule is not None]
    found = [each for schedule in given for each in (_retimed(problem, schedule), schedule) if each is not None]
    found = [schedule for schedule in found if valid(problem, schedule)]
    return min(found, key=lambda schedule: evaluate(problem, schedule), default=None)


def annealed_start(
    problem: Problem, start: Schedule, seconds: float, seed: int, stopped: Callable[[], bool]
) -> tuple[Schedule | None, bool]:
    """A better schedule than a valid one, by annealing for about so long; None if none is found.

    The seconds become a number of moves, so that the same seed gives the same schedule on a slow machine too. The
    second value is whether annealing was cut short because it ran in plain Python.
    """
    best = Incumbent(problem, Options(), Clock(None))
    best.offer(start)
    rounds, cut = rounds_in(problem, seconds), False
    if rounds:
        walked = searched(
            problem,
            start,
            annealer,
            lambda number: coolings(problem, number, rounds),
            best,
            enough=sufficient(problem, float(best_bound(problem).value)),
            seed=seed,
            moves=rounds,
            stopped=stopped,
            patience=seconds + LOADING,
        )
        cut = walked.cut
    return (None if best.schedule is start else best.schedule), cut


def _retimed(problem: Problem, schedule: Schedule) -> Schedule | None:
    try:
        return retime(problem, schedule)
    except UsageError:  # no placement of this problem
        return None
