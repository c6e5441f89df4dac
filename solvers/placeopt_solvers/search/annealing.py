"""annealing: simulated annealing of placement and order, with restarts at several temperatures.

S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi: Optimization by simulated annealing, Science 220 (1983),
doi:10.1126/science.220.4598.671. A move that increases the cost by D is accepted with probability exp(-D / T); the
temperature T falls geometrically. States and moves are those of `placeopt_solvers._local_search`.

Departures: violations of memory and deadlines are allowed with an adaptive penalty. The cost contains, besides the
makespan, how far each device works past the lower bound of the makespan, averaged over the devices. It guides the
search if one device alone determines the makespan. Each cooling starts from the best state so far, at one of several
temperatures.
"""

from __future__ import annotations

from typing import ClassVar

from placeopt.model.problem import Problem
from placeopt.protocol import Answer, Info, Options
from placeopt.protocol.citations import bibtex

from .._local_search.strategies import annealer, coolings
from ._anytime import SearchSettings, search, search_info


class Annealing:
    """Simulated annealing from the best heuristic schedule or the initial one."""

    name: ClassVar[str] = "annealing"
    info: ClassVar[Info] = search_info(
        "simulated annealing of placement and order, with restarts (Kirkpatrick et al. 1983)",
        bibtex("kirkpatrick1983optimization"),
    )
    settings_type: ClassVar[type[SearchSettings]] = SearchSettings

    def solve(self, problem: Problem, options: Options, settings: SearchSettings) -> Answer:
        """Return the best schedule found within the limits."""
        return search(problem, options, settings, annealer, coolings)
