"""windows: annealing of one window of a large graph after the other, with moves that cost only what they change.

Rolling horizon: S. Sethi, G. Sorger: A theory of rolling horizon decision making, Annals of Operations Research 29,
1991, doi:10.1007/BF02283607. Moves to the best place between two tasks of a device: M. Mastrolilli, L. M. Gambardella:
Effective neighbourhood functions for the flexible job shop problem, Journal of Scheduling 3, 2000,
doi:10.1002/(SICI)1099-1425(200001/02)3:1<3::AID-JOS32>3.0.CO;2-Y.

The times before a window and the ticks that must follow each task after it are known, so the makespan is exact after
each move, and a move is timed only up to the borders of the window (`placeopt_solvers._local_search.windows`).

Departures: windows on a task graph with transfers; no deadlines: they do not influence the moves, and a schedule that
misses one is discarded. With one worker, seconds are converted to moves, so the same seed gives the same schedule. With
more, each thread moves the tasks of another range of the schedule, and the results are joined.
"""

from __future__ import annotations

from typing import ClassVar

from placeopt.model.problem import Problem
from placeopt.protocol import Answer, Info, Options
from placeopt.protocol.citations import bibtex

from ._intervals.anytime import SweepSettings, improved_by
from ._intervals.moves import Moves


class Windows:
    """Improves a schedule anytime; the result is never longer than the start."""

    name: ClassVar[str] = "windows"
    info: ClassVar[Info] = Info(
        summary="annealing of large graphs, window by window with exact makespans (Sethi, Sorger 1991)",
        family="search",
        guarantee="none",
        complexity="anytime; O(n + e) per sweep, and moves that cost what they change",
        citation=bibtex("mastrolilli2000effective"),
        anytime=True,
        warm_start=True,
        contentions=("none",),
        memory_models=("sum",),
    )
    settings_type: ClassVar[type[SweepSettings]] = SweepSettings

    def solve(self, problem: Problem, options: Options, settings: SweepSettings) -> Answer:
        """Return the best schedule found within the limits."""
        return improved_by(problem, options, settings, Moves)
