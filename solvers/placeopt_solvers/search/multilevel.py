"""multilevel: coarsen the graph, improve the schedule of the coarse graph, and refine it level by level.

B. Hendrickson, R. Leland: A multilevel algorithm for partitioning graphs, Supercomputing 1995,
doi:10.1145/224170.224228. J. Herrmann, M. Y. Özkaya, B. Uçar, K. Kaya, Ü. V. Çatalyürek: Multilevel algorithms for
acyclic partitioning of directed acyclic graphs, SIAM Journal on Scientific Computing 41, 2019, doi:10.1137/18M1176865.

Each level fuses pairs of tasks along heavy edges; every level is improved by the windows of `forward-backward`
(`_intervals.multilevel`). The first cycle starts from the best heuristic's schedule of the coarsest graph. Later cycles
fuse only tasks that share a device in the best schedule, which the search continues from.

Under port contention, levels are annealed, because windows ignore ports.

Departures: windows minimise the makespan of a schedule with exact times, not the cut of a partition. The model is that
of `forward-backward`, on every level.
"""

from __future__ import annotations

from typing import ClassVar

from placeopt.model.problem import Problem
from placeopt.protocol import Answer, Info, Options
from placeopt.protocol.citations import bibtex

from ._intervals.anytime import SweepSettings, improved_by
from ._intervals.multilevel import Multilevel


class MultilevelSearch:
    """Improves a schedule anytime; the result is never longer than the start."""

    name: ClassVar[str] = "multilevel"
    info: ClassVar[Info] = Info(
        summary="windows on coarser and coarser graphs, refined level by level (Hendrickson, Leland 1995)",
        family="search",
        guarantee="none",
        complexity="anytime; O(n m + e log e) to coarsen, then as forward-backward on every level",
        citation=bibtex("hendrickson1995multilevel"),
        anytime=True,
        warm_start=True,
    )
    settings_type: ClassVar[type[SweepSettings]] = SweepSettings

    def solve(self, problem: Problem, options: Options, settings: SweepSettings) -> Answer:
        """Return the best schedule found within the limits."""
        return improved_by(problem, options, settings, Multilevel)
