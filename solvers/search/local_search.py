"""Iterated local search: moves that do not cost more, and a few random ones whenever they are used up.

H. R. Lourenço, O. C. Martin, T. Stützle: Iterated local search, in Handbook of Metaheuristics (2003),
doi:10.1007/0-306-48056-5_11. The local search is a stochastic descent: moves of `placeopt_solvers._local_search` are
drawn one by one and accepted if the state does not cost more; it ends after a number of moves, not at a proven local
optimum. The perturbation is a few moves accepted whatever they cost; the next descent starts from the best state so
far, perturbed.
"""

from __future__ import annotations

from typing import ClassVar

from placeopt.model.problem import Problem
from placeopt.solver import ALL_METRICS, Answer, Info, Options

from .._local_search.descents import descender, descents
from ._anytime import SearchSettings, search

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
