"""Min-min: of all ready tasks the one that can end first goes to the device where it does.

T. D. Braun et al., Journal of Parallel and Distributed Computing 2001, doi:10.1006/jpdc.2000.1714, section 3: of the
minimum completion times of all unmapped tasks the smallest is chosen, and its task is mapped to its machine.

Departures from the paper:

- The paper's tasks are independent. Here the ready tasks are, those whose producers are placed. By default the
  algorithm places all of them, and then those that have become ready meanwhile, as for workflows (J. Yu, R. Buyya,
  K. Ramamohanarao, Workflow scheduling algorithms for grid computing, 2008, doi:10.1007/978-3-540-69277-5_7). With
  `batches=false` a task competes as soon as it is ready. Completion times include the arrival of all data.
- The paper has no gaps. Here a task may start in one, unless `insertion=false`. With `batches=false` this changes
  nothing, if durations are positive and there is no port contention: each task placed ends no earlier than the one
  before, so tasks that become ready later start after all gaps, and no ready task fits into a gap that another leaves.
- The paper examines every pair in each step, O(n² m). A queue of pairs makes it O(n m log n), see `pairs.hpp`.
- A pair leaves the queue if its device cannot take the task. Under port contention queued pairs are delayed by later
  transfers, see `pairs.hpp`.
"""

from __future__ import annotations

import numpy as np

from placeopt.model.problem import Problem
from placeopt.protocol.citations import bibtex

from .._constructive.construction import Build, Constructive, heuristic_info
from ._pairs import ReadySettings, schedule_pairs


class MinMin(Constructive):
    name = "min-min"
    info = heuristic_info(
        summary="the earliest end of all ready tasks and devices (Braun et al. 2001)",
        family="ready lists",
        complexity="O(n m log n + e m) and the gaps searched",
        citation=bibtex("braun2001comparison"),
    )
    settings_type = ReadySettings

    def builder(self, problem: Problem, settings: ReadySettings) -> Build:
        by_index = np.arange(problem.n_tasks)
        batches, insertion = settings.batches, settings.insertion
        return lambda groups: schedule_pairs(
            problem, groups, by_index, problem.duration, batches=batches, insertion=insertion
        )
