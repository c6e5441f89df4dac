"""Duplex: the better of the schedules of min-min and max-min.

T. D. Braun et al., Journal of Parallel and Distributed Computing 2001, doi:10.1006/jpdc.2000.1714, section 3.

Departures from the paper: those of `min-min` and `max-min`. The better schedule is the one with less lateness, then the
shorter one, then that of min-min.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from placeopt.model.problem import Problem
from placeopt.protocol import Options
from placeopt.protocol.citations import bibtex

from .._constructive.construction import (
    Build,
    Construction,
    Constructive,
    best_until_stopped,
    construct_with_repair,
    heuristic_info,
)
from ._pairs import ReadySettings, schedule_neediest, schedule_pairs


class Duplex(Constructive):
    name = "duplex"
    info = heuristic_info(
        summary="the better of min-min and max-min (Braun et al. 2001)",
        family="ready lists",
        complexity="O(n m log n + n W m + e m) and the gaps searched, W the maximum number of tasks ready at once",
        citation=bibtex("braun2001comparison"),
    )
    settings_type = ReadySettings

    def construct(self, problem: Problem, options: Options, settings: ReadySettings) -> Construction:
        by_index, how = np.arange(problem.n_tasks), {"batches": settings.batches, "insertion": settings.insertion}
        builds: list[Build] = [
            lambda groups: schedule_pairs(problem, groups, by_index, problem.duration, **how),
            lambda groups: schedule_neediest(problem, groups, settings, by_gap=False),
        ]
        return best_until_stopped(problem, (partial(construct_with_repair, problem, build) for build in builds))
