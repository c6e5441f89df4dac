"""local-search: iterated local search over placement and order.

H. R. Lourenço, O. C. Martin, T. Stützle: Iterated local search, in Handbook of Metaheuristics (2003),
doi:10.1007/0-306-48056-5_11. The local search is a stochastic descent: random moves of `placeopt_solvers._local_search`
are accepted if they do not increase the cost. It ends after a number of moves, not at a proved local optimum. The
perturbation accepts a few moves at any cost. Each descent starts from the best state so far, perturbed.
"""

from __future__ import annotations

from typing import ClassVar

from placeopt.model.problem import Problem
from placeopt.protocol import Answer, Info, Options
from placeopt.protocol.citations import bibtex

from .._local_search.strategies import descender, descents
from ._anytime import SearchSettings, search, search_info


class LocalSearch:
    """Iterated local search from the best heuristic schedule or the initial one."""

    name: ClassVar[str] = "local-search"
    info: ClassVar[Info] = search_info(
        "iterated local search over placement and order (Lourenço et al. 2003)", bibtex("lourenco2003iterated")
    )
    settings_type: ClassVar[type[SearchSettings]] = SearchSettings

    def solve(self, problem: Problem, options: Options, settings: SearchSettings) -> Answer:
        """Return the best schedule found within the limits."""
        return search(problem, options, settings, descender, descents)
