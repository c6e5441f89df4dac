"""Search a schedule window by window, from its begin to its end and again.

In a window of consecutive positions of the order, all moves have known surroundings: the ends of the tasks before it,
and the ticks that must follow each task after it. A move therefore costs only what it changes, and the makespan stays
exact (`engine.WindowMoves`; `native/window_moves.cpp` states the moves and their source). Windows slide over the order,
again and again.

This works without contention, deadlines, live memory and memory tiers; the rest of `_local_search` supports them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placeopt import engine
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, sequence

from .instance import make_instance


class Tuning(NamedTuple):
    """Parameters of the moves; `benchmarks/search_speed.py` measures their effect."""

    moves: int = 50  # percentages of the kinds of moves; the rest are clusters
    shifts: int = 20
    swaps: int = 10
    ejections: int = 5
    tries: int = 30  # at most as many random tasks are drawn to change the one on the longest path
    choices: int = 6  # devices that a move compares
    near: int = 85  # percentage of these devices that are those of producers or consumers
    least: int = 1  # fewest tasks of the group of the task to change


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes, temperatures, and seconds that only affect budgets; `benchmarks/search_speed.py` measures them."""

    size: int = 1_000  # tasks of a window
    advance: int = 500  # tasks from one window to the next
    rounds: int = 10_000  # moves in a window, at most
    # first temperatures in windows, in turn, as parts of the makespan divided by the number of tasks
    hot: tuple[float, ...] = (1.0, 4.0, 16.0)
    fall: float = 0.02  # last temperature in a window, as a part of its first
    report: int = 16  # windows between two reports of a better schedule
    move: float = 4e-6  # seconds of a move


PLAN = Plan()
TUNING = Tuning()

WIDE = Tuning(moves=70, shifts=0, swaps=10, ejections=0, least=2)
"""Tuning of moves of groups that lie in no window."""


@dataclass(frozen=True, slots=True)
class Window:
    """Positions [low, high) of the order, and a walk in it; each of its moves takes as long as `cost` usual ones."""

    low: int
    high: int
    rounds: int
    hot: float
    tuning: Tuning
    cost: int


def searches_windows(problem: Problem) -> bool:
    """Return whether the search applies: to the makespan alone, where tasks share only devices, links and memory."""
    return (
        problem.objective.single == "makespan"
        and not problem.contends
        and problem.memory_model == "sum"
        and not problem.rules
        and problem.pipeline is None
        and problem.n_tasks > 0
        and bool((problem.deadline == UNLIMITED).all())
    )


def rounds_in(seconds: float) -> int:
    """Estimate the moves that a core tries in a few seconds."""
    return int(seconds / PLAN.move)


class WindowSearch:
    """A search in windows: its state and the best schedule so far. Memory O(n m + e).

    `rounds` is the number of moves of the whole search. It decides how many moves each window gets. With a `part`
    [first, last) of the positions in the start's sequence, the tasks outside keep their order and their devices.
    """

    def __init__(
        self,
        problem: Problem,
        start: Schedule,
        seed: int,
        rounds: int,
        plan: Plan = PLAN,
        part: tuple[int, int] | None = None,
    ) -> None:
        self.problem, self.plan = problem, plan
        self.part = (0, problem.n_tasks) if part is None else part
        n = self.part[1] - self.part[0]
        self.instance = make_instance(problem)
        self.state = engine.WindowMoves(self.instance, seed)
        self._judge = engine.WindowMoves(self.instance, seed)
        self.tried = self.windows = 0
        self._count = max(-(-(n - plan.size) // plan.advance), 0) + 1
        self._each = max(min(rounds // self._count, plan.rounds), 1)
        self.state.load(sequence(problem, start), start.device)
        self.state.keep_best()
        self._windows = self._sweeps()

    @property
    def span(self) -> int:
        """The makespan of the best schedule so far, in ticks."""
        return self.state.held

    @property
    def evaluated(self) -> int:
        """Moves that were timed so far."""
        return self.state.evaluated

    def _sweeps(self) -> Iterator[Window]:
        """Yield the windows, sweep after sweep; every second sweep lies half an advance lower.

        The temperatures of a window differ from sweep to sweep. Before each sweep, the order becomes that of the starts
        in the best state. After it, groups that are too wide for a window move for as much time as their share of all
        tasks justifies.
        """
        plan, state, instance = self.plan, self.state, self.instance
        begin, end = self.part
        n = end - begin
        size = np.diff(instance.member_start)
        offset, cost = 0, 1 + n // plan.size
        for turn in itertools.count():
            state.load(state.best_order, state.best_device)
            by_start = sequence(self.problem, Schedule(state.device.copy(), state.end - state.ticks))
            # The tasks of the part stay within it: none depends on a task behind the part.
            order, place = state.order.copy(), state.position[by_start]
            order[begin:end] = by_start[(place >= begin) & (place < end)]
            state.load(order, state.device.copy())
            state.keep_best()
            for at, low in enumerate(range(-offset, max(n - plan.size, 0) + plan.advance, plan.advance), turn):
                first = min(max(low, 0), max(n - plan.size, 0))
                hot = plan.hot[at % len(plan.hot)]
                yield Window(begin + first, begin + min(first + plan.size, n), self._each, hot, TUNING, 1)
                if first + plan.size >= n:
                    break
            offset = plan.advance // 2 - offset
            if n < self.problem.n_tasks:
                continue
            place = state.position[instance.member]
            heads = instance.member_start[:-1]
            width = np.maximum.reduceat(place, heads) - np.minimum.reduceat(place, heads)
            share = size[width > plan.size - plan.advance].sum() / n
            rounds = int(self._count * self._each * share / cost)
            if n > plan.size and rounds > 0:
                state.load(state.order.copy(), state.device.copy())
                state.keep_best()
                yield Window(0, n, rounds, plan.hot[turn % len(plan.hot)], WIDE, cost)

    def step(self, stopped: Callable[[], bool], most: int) -> None:
        """Try moves in the next window, at most `most`."""
        window, state, plan = next(self._windows), self.state, self.plan
        state.enter(window.low, window.high)
        self.windows += 1
        hot = window.hot * self.span / self.problem.n_tasks
        rounds, stop = min(window.rounds, -(-most // window.cost)), engine.Stop(stopped)
        if not stopped():
            self.tried += state.walk(window.tuning, 0, rounds, rounds, hot, hot * plan.fall, stop) * window.cost
        state.settle()

    def run(
        self,
        rounds: int,
        stopped: Callable[[], bool],
        better: Callable[[Schedule], object] = lambda schedule: None,  # noqa: ARG005
        enough: float = -math.inf,
    ) -> None:
        """Try `rounds` more moves.

        `better` gets better schedules from time to time. The search also ends at a makespan of `enough`.
        """
        last, reported = self.tried + rounds, self.span
        while self.tried < last and self.span > enough and not stopped():
            self.step(stopped, last - self.tried)
            if self.windows % self.plan.report == 0 and self.span < reported:
                reported = self.span
                better(self.best())
        if self.span < reported:
            better(self.best())

    def best(self) -> Schedule:
        """Return the best schedule so far."""
        judge = self._judge
        judge.load(self.state.best_order, self.state.best_device)
        return Schedule(judge.device.copy(), judge.end - judge.ticks)
