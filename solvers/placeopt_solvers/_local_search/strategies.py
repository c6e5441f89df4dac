"""Coolings of annealing and of iterated local search, with the tuning of both."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from placeopt.model.problem import Problem

from .search import Cooling, Walker


@dataclass(frozen=True, slots=True)
class AnnealingTuning:
    """Parameters of annealing; `benchmarks/gaps.py --solver annealing` measures their effect."""

    shares: tuple[int, ...] = (30, 10, 22, 14, 16, 8)  # percentages of the kinds of moves (`moves.cpp`)
    # First temperatures of the coolings, used in turn, as parts of the best value divided by the number of tasks.
    # Schedules limited by memory need hot ones, schedules limited by the order cold ones.
    hottest: tuple[float, ...] = (1.5, 6.0, 0.5)
    limit: float = 0.05  # largest first temperature, as a part of the best value
    fall: float = 0.01  # last temperature of a cooling, as a part of its first
    coolings: int = 6  # number of coolings, unless they become too short or too long
    fewest: int = 2_000  # least number of moves of a cooling, per task
    most: int = 10_000  # largest number of moves of a cooling, per task


@dataclass(frozen=True, slots=True)
class DescentTuning:
    """Parameters of iterated local search; `benchmarks/gaps.py --solver local-search` measures their effect."""

    shares: tuple[int, ...] = (26, 14, 22, 12, 16, 10)  # percentages of the kinds of moves (`moves.cpp`)
    descent: int = 40_000  # moves of a descent
    kicks: tuple[int, ...] = (3, 8, 2, 20)  # moves of the perturbations, used in turn


ANNEALING, DESCENT = AnnealingTuning(), DescentTuning()

annealer = partial(Walker, shares=ANNEALING.shares)
"""Makes a walker of annealing."""

descender = partial(Walker, shares=DESCENT.shares)
"""Makes a walker of iterated local search."""


def coolings(problem: Problem, number: int, rounds: int) -> Iterator[Cooling]:
    """Yield the coolings of annealing for a worker, by its number, that has `rounds` moves."""
    tasks, tuning = problem.n_tasks, ANNEALING
    size = max(tuning.fewest * tasks, min(rounds // tuning.coolings, tuning.most * tasks))
    count = max(rounds // size, 1)
    for at in range(count):
        hot = min(tuning.hottest[(at + number) % len(tuning.hottest)] / tasks, tuning.limit)
        yield Cooling(rounds // count, hot, hot * tuning.fall)


def descents(problem: Problem, number: int, rounds: int) -> Iterator[Cooling]:  # noqa: ARG001 - as `coolings`
    """Yield the descents of iterated local search, with a perturbation before each but the first."""
    descent, kicks = DESCENT.descent, DESCENT.kicks
    yield Cooling(min(descent, rounds), 0.0, 0.0)
    for at in range(rounds // descent):
        yield Cooling(kicks[(at + number) % len(kicks)], math.inf, math.inf)
        yield Cooling(descent, 0.0, 0.0, onward=True)
