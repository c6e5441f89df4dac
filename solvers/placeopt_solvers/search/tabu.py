"""tabu: tabu search over placement and order.

F. Glover: Tabu search, part I, ORSA Journal on Computing 1 (1989), doi:10.1287/ijoc.1.3.190.
The engine's `walk.cpp` states what is forbidden, and the aspiration criterion; `placeopt_solvers._local_search`
describes states and moves.

Departures: violations of memory and deadlines are allowed with an adaptive penalty (strategic oscillation, part II of
the article). The search has several parts, and each starts from the best state so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from pydantic import Field

from placeopt import engine
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.protocol import Answer, Info, Options
from placeopt.protocol.citations import bibtex

from .._local_search.search import Cooling, Walker
from ._anytime import SearchSettings, search, search_info

SHARES = (30, 14, 26, 10, 12, 8)
"""Percentages of the kinds of moves, in the order of the engine's `moves.cpp`."""

PARTS = 8
"""Parts of a search."""


class TabuSettings(SearchSettings):
    """Settings of tabu search."""

    candidates: int = Field(default=24, ge=1)
    """Moves that each round evaluates, of which it makes the best."""

    tenure: int = Field(default=8, ge=0)
    """Least number of rounds for which a move must not be reversed; the largest is twice as many."""


class Tabu:
    """Tabu search from the best heuristic schedule or the initial one."""

    name: ClassVar[str] = "tabu"
    info: ClassVar[Info] = search_info("tabu search over placement and order (Glover 1989)", bibtex("glover1989tabu"))
    settings_type: ClassVar[type[TabuSettings]] = TabuSettings

    def solve(self, problem: Problem, options: Options, settings: TabuSettings) -> Answer:
        """Return the best schedule found within the limits."""
        return search(problem, options, settings, partial(TabuWalker, settings=settings), parts)


class TabuWalker(Walker):
    """A walker that makes rounds of tabu search."""

    def __init__(self, problem: Problem, start: Schedule, seed: int, bound: int, settings: TabuSettings) -> None:
        super().__init__(problem, start, seed, bound, SHARES)
        self._settings, self._round = settings, 0

    def step(self, count: int, hot: float, cold: float, enough: float, stop: engine.Stop) -> int:  # noqa: ARG002
        """Try `count` moves, in whole rounds; return how many were evaluated."""
        candidates, first = self._settings.candidates, self._round
        rounds = -(-count // candidates)
        self._round += rounds
        return self.state.tabu(self.shares, first, rounds, candidates, self._settings.tenure, enough, stop)


def parts(problem: Problem, number: int, rounds: int) -> Iterator[Cooling]:  # noqa: ARG001 - the same for all workers
    """Yield the parts of a search with `rounds` moves."""
    for _ in range(PARTS):
        yield Cooling(max(rounds // PARTS, 1), 0.0, 0.0)
