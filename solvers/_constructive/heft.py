"""HEFT as a function, for solvers that start from its schedule; see `placeopt_solvers.list_scheduling.heft`."""

from __future__ import annotations

from collections.abc import Callable

from placeopt.model.arrays import Float, Int
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, lateness, makespan

from .construction import Build, Construction, best_of, construct_with_repair, with_port_times
from .groups import grouped, with_homes
from .insertion import insert_tasks
from .priorities import deadline_ranks, priority_list, upward_ranks


def heft(problem: Problem) -> Construction:
    """Return HEFT's schedule; if it misses a deadline, the better of it and one with ranks against deadlines."""
    return _ranked(problem, lambda rank: construct_with_repair(problem, by_rank(problem, rank)))


def heft_on_homes(problem: Problem, home: Int) -> Schedule:
    """Return HEFT's schedule with every group on a given device (g,)."""
    groups = with_homes(grouped(problem), home)
    found = _ranked(problem, lambda rank: Construction(with_port_times(problem, by_rank(problem, rank)(groups).line)))
    assert found.schedule is not None, "every group has its device"
    return found.schedule


def by_rank(problem: Problem, rank: Float) -> Build:
    """Return list scheduling with insertion by decreasing rank (n,)."""
    sequence = priority_list(problem, rank)
    return lambda groups: insert_tasks(problem, groups, sequence)


def _ranked(problem: Problem, construct: Callable[[Float], Construction]) -> Construction:
    found = construct(upward_ranks(problem))
    if found.schedule is None or not lateness(problem, found.schedule):
        return found
    rank = deadline_ranks(problem, makespan(problem, found.schedule))
    return best_of(problem, [found, construct(rank)])
