"""Simulated annealing of placement and order, with restarts at several temperatures.

S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi: Optimization by simulated annealing, Science 220 (1983),
doi:10.1126/science.220.4598.671. A move that makes the schedule longer by D is accepted with probability exp(-D / T);
the temperature T falls geometrically. States and moves are those of `placeopt_solvers._local_search`.

Departures: memory and deadlines may be broken on the way, at a price that adapts. Beside the makespan counts, averaged
over the devices, what they work past its lower bound: the makespan alone does not tell how far the other devices are
from letting the last one end earlier. Each cooling starts from the best state so far, at one of several temperatures.
"""

from __future__ import annotations

from typing import ClassVar

from placeopt.model.problem import Problem
from placeopt.solver import ALL_METRICS, Answer, Info, Options

from .._local_search.cooling import annealer, coolings
from ._anytime import SearchSettings, search

CITATION = """\
@article{kirkpatrick1983optimization,
  author = {Kirkpatrick, Scott and Gelatt, C. Daniel and Vecchi, Mario P.},
  title = {Optimization by Simulated Annealing},
  journal = {Science},
  volume = {220},
  number = {4598},
  pages = {671--680},
  year = {1983},
  doi = {10.1126/science.220.4598.671}
}"""


class Annealing:
    """The best state of simulated annealing from the best heuristic schedule or the initial one."""

    name: ClassVar[str] = "annealing"
    info: ClassVar[Info] = Info(
        summary="simulated annealing of placement and order, with restarts (Kirkpatrick et al. 1983)",
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
        return search(problem, options, settings, annealer, coolings)
