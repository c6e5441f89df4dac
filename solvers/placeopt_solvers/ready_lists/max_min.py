"""Max-min: of all ready tasks the one whose earliest end is the latest goes to the device where it ends first.

T. D. Braun et al., Journal of Parallel and Distributed Computing 2001, doi:10.1006/jpdc.2000.1714, section 3: of the
minimum completion times of all unmapped tasks the largest is chosen, and its task is mapped to its machine.

Departures from the paper:

- The paper's tasks are independent. Here the ready tasks are, as in `min-min`, which describes the setting `batches`.
  Completion times include the arrival of all data.
- The paper has no gaps. Here a task may start in one, unless `insertion=false`.
- The paper recomputes every completion time in each step. Here only those of tasks whose best device was used last are
  recomputed, see `neediest.cpp`; the file also describes port contention.
"""

from __future__ import annotations

from placeopt.model.problem import Problem
from placeopt.protocol.citations import bibtex

from .._constructive.construction import Build, Constructive, heuristic_info
from ._pairs import ReadySettings, schedule_neediest


class MaxMin(Constructive):
    name = "max-min"
    info = heuristic_info(
        summary="the ready task whose earliest end is the latest, where it ends first (Braun et al. 2001)",
        family="ready lists",
        complexity="O(n W m + e m) and the gaps searched, W the maximum number of tasks ready at once",
        citation=bibtex("braun2001comparison"),
    )
    settings_type = ReadySettings

    def builder(self, problem: Problem, settings: ReadySettings) -> Build:
        return lambda groups: schedule_neediest(problem, groups, settings, by_gap=False)
