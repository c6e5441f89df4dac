"""Schedules that an exact solver or a search can start from."""

from __future__ import annotations

from placeopt.errors import UsageError
from placeopt.ir import Problem
from placeopt.objective import evaluate
from placeopt.schedule import Schedule
from placeopt.simulation import retime

from ._heft import heft
from ._serial import best_serial
from ._validity import valid


def best_start(problem: Problem, initial: Schedule | None, heuristics: bool) -> Schedule | None:
    """The best valid schedule among the initial one and, if wanted, those of HEFT and of single devices.

    Each is also tried re-timed. A schedule that breaks a rule, whoever it comes from, is left out.
    """
    candidates = [initial, *((heft(problem)[0], best_serial(problem)[0]) if heuristics else ())]
    given = [schedule for schedule in candidates if schedule is not None]
    found = [each for schedule in given for each in (_retimed(problem, schedule), schedule) if each is not None]
    found = [schedule for schedule in found if valid(problem, schedule)]
    return min(found, key=lambda schedule: evaluate(problem, schedule), default=None)


def _retimed(problem: Problem, schedule: Schedule) -> Schedule | None:
    try:
        return retime(problem, schedule)
    except UsageError:  # no placement of this problem
        return None
