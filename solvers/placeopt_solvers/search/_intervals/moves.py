"""Moves in the windows of a large graph, on one or more threads; each thread has a range of the sequence.

`placeopt_solvers._local_search.windows` has the moves. With more threads, the ranges are others in each turn, and the
results of a turn are joined (`ranges`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, makespan

from ..._local_search.windows.search import WindowSearch, rounds_in
from ..._runs.validity import valid
from .ranges import change_of, joined, ranges
from .state import State

TURN = 5.0
"""Maximum number of seconds of the ranges of one turn."""


class Moves:
    """Improves a valid schedule; `schedule` is the best one so far. Deadlines do not influence the moves."""

    def __init__(
        self,
        problem: Problem,
        schedule: Schedule,
        seed: int,
        stopped: Callable[[], bool],
        on_better: Callable[[Schedule], object],
        workers: int = 1,
        planned: float = 60.0,
    ) -> None:
        self.problem, self.seed, self.workers, self.planned = problem, seed, workers, planned
        self.stopped, self.on_better = stopped, on_better
        self.relaxed = replace(problem, deadline=np.full_like(problem.deadline, UNLIMITED))
        self.schedule, self.span = schedule, makespan(problem, schedule)
        self._done = 0  # windows of earlier searches
        self._turns = itertools.count()
        self._search: WindowSearch | None = None  # of one thread, which continues

    @property
    def tried(self) -> int:
        """Windows so far."""
        return self._done + (0 if self._search is None else self._search.windows)

    def go_to(self, schedule: Schedule) -> None:
        """Continue from a schedule."""
        self._done, self._search = self.tried, None
        self.schedule, self.span = schedule, makespan(self.problem, schedule)

    def run(self, seconds: float, bound: float, patience: float = math.inf) -> bool:
        """Try the moves of about `seconds`, or until the makespan is at most a bound.

        Return whether plain Python, which runs while kernels are compiled, was cut short after `patience` seconds.
        """
        cut = False
        while seconds > 0 and not cut and self.span > bound and not self.stopped():
            turn, number = min(seconds, TURN), next(self._turns)
            parts = ranges(self.problem.n_tasks, self.workers, number)
            cut = (
                self._continued(turn, bound, patience)
                if len(parts) == 1
                else self._divided(parts, turn, self.seed + 31 * number, bound, patience)
            )
            seconds -= turn
        return cut

    def _continued(self, seconds: float, bound: float, patience: float) -> bool:
        if self._search is None:
            self._search = WindowSearch(self.relaxed, self.schedule, self.seed, rounds_in(self.planned))
        return self._search.run(rounds_in(seconds), self.stopped, self._offer, bound, patience)

    def _divided(self, parts: list[tuple[int, int]], seconds: float, seed: int, bound: float, patience: float) -> bool:
        """Search in each range, and join the results, those of the shortest schedules first."""
        rounds, state = rounds_in(seconds), State(self.relaxed, self.schedule)
        searches = [
            WindowSearch(self.relaxed, self.schedule, seed + 7919 * at, rounds, part=part)
            for at, part in enumerate(parts)
        ]

        def run(search: WindowSearch) -> bool:
            return search.run(rounds, self.stopped, enough=bound, patience=patience)

        with ThreadPoolExecutor(len(parts), thread_name_prefix="windows") as pool:
            cut = any(list(pool.map(run, searches)))
        shorter = sorted((each for each in searches if each.span < state.span), key=lambda each: each.span)
        self._offer(joined(state, [change_of(state, *each.part, each.best()) for each in shorter]).schedule)
        self._done += sum(each.windows for each in searches)
        return cut

    def _offer(self, schedule: Schedule) -> None:
        span = makespan(self.problem, schedule)
        if span < self.span and valid(self.problem, schedule):
            self.schedule, self.span = schedule, span
            self.on_better(schedule)
