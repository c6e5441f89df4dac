"""Sufferage: the ready task that would lose most without its best device goes there.

M. Maheswaran et al., Journal of Parallel and Distributed Computing 1999, doi:10.1006/jpdc.1999.1581: the sufferage of a
task is the difference between its second earliest and its earliest completion time. For tasks of a workflow, one after
the other: H. Casanova, A. Legrand, D. Zagorodnov, F. Berman, Heterogeneous Computing Workshop (HCW) 2000,
doi:10.1109/HCW.2000.843757.

Departures from the paper:

- The paper's tasks are independent. Here the ready tasks are, as in `min-min`, which describes the setting `batches`.
  Completion times include the arrival of all data.
- The paper has no gaps. Here a task may start in one, unless `insertion=false`.
- The paper maps at most one task to each machine before it recomputes the completion times. Here, as in the later work,
  they are current after each placement.
- A task that only one device can take comes before tasks with a choice; of several such tasks the one that ends first.
- Port contention: see `neediest.cpp`.
"""

from __future__ import annotations

from placeopt.model.problem import Problem
from placeopt.protocol.citations import bibtex

from .._constructive.construction import Build, Constructive, heuristic_info
from ._pairs import ReadySettings, schedule_neediest


class Sufferage(Constructive):
    name = "sufferage"
    info = heuristic_info(
        summary="the ready task that loses most without its best device (Maheswaran et al. 1999)",
        family="ready lists",
        complexity="O(n W m + e m) and the gaps searched, W the maximum number of tasks ready at once",
        citation=bibtex("maheswaran1999dynamic"),
    )
    settings_type = ReadySettings

    def builder(self, problem: Problem, settings: ReadySettings) -> Build:
        return lambda groups: schedule_neediest(problem, groups, settings, by_gap=True)
