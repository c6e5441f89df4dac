"""How annealing cools: how often, how long, from which temperatures."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from placeopt.model.problem import Problem

from .search import Cooling, Search

SHARES = (30, 10, 22, 14, 16, 8)
"""Percentages of the kinds of moves, as `placeopt_solvers._local_search.proposals` lists them."""

HOTTEST = (1.5, 6.0, 0.5)
"""First temperatures of the coolings, one after the other, then again; as parts of the best value shared out over the
tasks: what a task weighs in it. Schedules that full memory decides want hot ones, those that the order decides cold."""

LIMIT = 0.05
"""The most that a first temperature is of the best value."""

COLD = 0.01
"""The last temperature of a cooling as a part of its first."""

COOLINGS = 6
"""Coolings that a search is cut into, unless they come out too short or too long."""

FEWEST, MOST = 2_000, 10_000
"""Moves of a cooling for each task, at least and at most."""

annealer = partial(Search, shares=SHARES)
"""A walker of annealing."""


def coolings(problem: Problem, number: int, rounds: int) -> Iterator[Cooling]:
    """Those of a worker with so many moves."""
    tasks = problem.n_tasks
    size = max(FEWEST * tasks, min(rounds // COOLINGS, MOST * tasks))
    count = max(rounds // size, 1)
    for at in range(count):
        hot = min(HOTTEST[(at + number) % len(HOTTEST)] / tasks, LIMIT)
        yield Cooling(rounds // count, hot, hot * COLD)
