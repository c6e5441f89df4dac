"""Searches from the incumbent with other seeds, in the slots of a pool."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from itertools import count

from placeopt.model.packing import pack
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.solver import Answer, Options, unsupported
from placeopt.solver.pool import Pool
from placeopt.solver.registry import find_solver
from placeopt.solver.remote import submitted

from .._runs.validity import valid_forms

SEARCHES = ("annealing", "lns", "local-search")
"""Solvers that take turns."""

SECONDS, SHARE, LEAST = 8.0, 0.4, 0.5
"""Time limit of a search, its largest share of the remaining time, and the seconds below which none starts."""

AHEAD = 2
"""Searches submitted per slot, so that no slot waits for the end of a turn on this machine."""

OTHER = 10_000
"""The first seed after that of the run."""


class Restarts:
    """A context manager that cancels its searches in the end. They are collected between turns on this machine."""

    def __init__(self, problem: Problem, pool: Pool, seed: int) -> None:
        self._problem, self._pool = problem, pool
        self._packed = pack(problem)
        self._seeds: Iterator[int] = count(seed + OTHER)
        solvers = [solver for solver in map(find_solver, SEARCHES) if unsupported(solver.info, problem) is None]
        self._searches = [partial(solver.solve, settings=solver.settings_type()) for solver in solvers]
        self._running: list[Future[Answer]] = []

    def __enter__(self) -> Restarts:
        return self

    def __exit__(self, *_: object) -> None:
        for future in self._running:
            future.cancel()

    def submit(self, start: Schedule, remaining: float | None) -> None:
        """Fill the slots with searches from a schedule."""
        seconds = SECONDS if remaining is None else min(SECONDS, SHARE * remaining)
        if seconds < LEAST or not self._searches:
            return
        for _ in range(AHEAD * self._pool.slots() - len(self._running)):
            seed = next(self._seeds)
            search = self._searches[seed % len(self._searches)]
            options = Options(time_limit=seconds, seed=seed, initial=start)
            self._running.append(submitted(self._pool, search, self._packed, options))

    def collect(self, offer: Callable[[Schedule], None]) -> None:
        """Offer the feasible schedules of the searches that have ended."""
        running, self._running = self._running, []
        for future in running:
            if not future.done() and self._pool.slots():
                self._running.append(future)
                continue
            answer = self._pool.result(future)
            if answer is not None and answer.schedule is not None:
                for form in valid_forms(self._problem, answer.schedule):
                    offer(form)
