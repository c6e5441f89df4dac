"""Tabu search over placement and order.

F. Glover: Tabu search, part I, ORSA Journal on Computing 1 (1989), doi:10.1287/ijoc.1.3.190. What is forbidden, and
when it is done all the same, stands in `placeopt_solvers._local_search.tabu`; states and moves in
`placeopt_solvers._local_search`.

Departures: memory and deadlines may be broken on the way, at a price that adapts (strategic oscillation, part II of the
article). Each of the search's parts but the first starts from the best state so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

import numpy as np
from pydantic import Field

from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.solver import ALL_METRICS, Answer, Info, Options

from .._local_search.search import Cooling, Search
from .._local_search.tabu import prowl
from ._anytime import SearchSettings, search

SHARES = (30, 14, 26, 10, 12, 8)
"""Percentages of the kinds of moves, as `placeopt_solvers._local_search.proposals` lists them."""

PARTS = 8
"""Parts of a search, each from the best state so far."""

CITATION = """\
@article{glover1989tabu,
  author = {Glover, Fred},
  title = {Tabu Search, Part {I}},
  journal = {ORSA Journal on Computing},
  volume = {1},
  number = {3},
  pages = {190--206},
  year = {1989},
  doi = {10.1287/ijoc.1.3.190}
}"""


class TabuSettings(SearchSettings):
    """Settings of tabu search."""

    candidates: int = Field(default=24, ge=1)
    """Moves that each round looks at, of which it makes the best."""

    tenure: int = Field(default=8, ge=0)
    """Rounds for which a move may not be taken back, at least; at most twice as many."""


class Tabu:
    """The best state of a tabu search from the best heuristic schedule or the initial one."""

    name: ClassVar[str] = "tabu"
    info: ClassVar[Info] = Info(
        summary="tabu search over placement and order (Glover 1989)",
        family="search",
        guarantee="none",
        complexity="O(n + e) a move at most, as many as time allows",
        citation=CITATION,
        anytime=True,
        warm_start=True,
        metrics=ALL_METRICS,
        combined=True,
    )
    settings_type: ClassVar[type[TabuSettings]] = TabuSettings

    def solve(self, problem: Problem, options: Options, settings: TabuSettings) -> Answer:
        """The best schedule found within the limits."""
        return search(problem, options, settings, partial(TabuSearch, settings=settings), parts)


class TabuSearch(Search):
    """One walker of a tabu search."""

    def __init__(
        self, problem: Problem, start: Schedule, seed: int, moves: int, bound: int, settings: TabuSettings
    ) -> None:
        super().__init__(problem, start, seed, moves, bound, SHARES)
        self._settings, self._round = settings, 0
        self._move = prowl.select(self.steps, chunked=True)
        self._until = np.zeros((problem.n_groups, problem.n_devices), dtype=np.int64)
        self._still = np.zeros(problem.n_tasks, dtype=np.int64)

    def step(self, begin: int, end: int, count: int, hot: float, cold: float, enough: float) -> int:  # noqa: ARG002
        """Try the moves `begin` to `end` of a chunk, in whole rounds; how many were evaluated. Nothing cools here."""
        candidates, first = self._settings.candidates, self._round
        rounds = -(-end // candidates) + (-begin // candidates)
        self._round += rounds
        return self._move(
            self.case,
            self.state,
            self.shares,
            self._until,
            self._still,
            first,
            rounds,
            candidates,
            self._settings.tenure,
            enough,
        )


def parts(problem: Problem, number: int, rounds: int) -> Iterator[Cooling]:  # noqa: ARG001 - all workers do the same
    """The parts of a worker with so many moves."""
    for _ in range(PARTS):
        yield Cooling(max(rounds // PARTS, 1), 0.0, 0.0)
