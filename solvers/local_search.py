"""Iterated local search: moves that do not cost more, and a few random ones whenever they are used up.

H. R. Lourenço, O. C. Martin, T. Stützle: Iterated local search, in Handbook of Metaheuristics (2003),
doi:10.1007/0-306-48056-5_11. The local search is a stochastic descent: moves of `placeopt.search` are drawn one by one
and accepted if the state does not cost more; it ends after a number of moves, not at a proven local optimum. The
perturbation is a few moves accepted whatever they cost; the next descent starts from the best state so far, perturbed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from placeopt.ir import Problem
from placeopt.solver import ALL_METRICS, Answer, Info, Options

from ._anytime import SearchSettings, search
from ._search import Cooling, Search

SHARES = (26, 14, 22, 12, 16, 10)
"""Percentages of the kinds of moves, as `placeopt.search.proposals` lists them."""

DESCENT = 40_000
"""Moves of a descent."""

KICKS = (3, 8, 2, 20)
"""Moves of a perturbation, one size after the other."""

descender = partial(Search, shares=SHARES)
"""A walker of local search."""

CITATION = """\
@incollection{lourenco2003iterated,
  author = {Louren{\\c{c}}o, Helena R. and Martin, Olivier C. and St{\\"u}tzle, Thomas},
  title = {Iterated Local Search},
  booktitle = {Handbook of Metaheuristics},
  year = {2003},
  doi = {10.1007/0-306-48056-5_11}
}"""


class LocalSearch:
    """The best state of an iterated local search from the best heuristic schedule or the initial one."""

    name: ClassVar[str] = "local-search"
    info: ClassVar[Info] = Info(
        summary="iterated local search over placement and order (Lourenço et al. 2003)",
        family="search",
        guarantee="none",
        complexity="O(n + e) a move at most, as many as time allows",
        citation=CITATION,
        anytime=True,
        warm_start=True,
        metrics=ALL_METRICS,
        combined=True,
    )
    settings_type: ClassVar[type[SearchSettings]] = SearchSettings

    def solve(self, problem: Problem, options: Options, settings: SearchSettings) -> Answer:
        """The best schedule found within the limits."""
        return search(problem, options, settings, descender, descents)


def descents(problem: Problem, number: int, rounds: int) -> Iterator[Cooling]:  # noqa: ARG001 - as other searches' coolings
    """Perturbations and descents of a worker with so many moves."""
    yield Cooling(min(DESCENT, rounds), 0.0, 0.0)
    for at in range(rounds // DESCENT):
        yield Cooling(KICKS[(at + number) % len(KICKS)], math.inf, math.inf)
        yield Cooling(DESCENT, 0.0, 0.0, onward=True)
