"""HBMCT: hybrid of ranks and balanced minimum completion time, batches of independent tasks balanced over devices.

R. Sakellariou, H. Zhao, Heterogeneous Computing Workshop at IPDPS 2004, doi:10.1109/IPDPS.2004.1303065. Tasks are
ranked as in HEFT and cut into batches (the paper: groups) in that order: a task that depends on a task of the current
batch opens the next one. The batches are scheduled one after the other by BMCT:

1. Each task goes to the device where its duration is least.
2. Each device runs its tasks of the batch in the order in which their data arrives, after all earlier batches.
3. The device that finishes last gives away a task if it then finishes earlier: to the device that then finishes first
   of those that finish before the giver did. This is repeated until it has no such task.

The paper was not available: this follows later papers and open implementations.

Departures from the paper:

- Ties between devices of equal duration go to the one where the task could end first. Ties between tasks to give away
  go to the task whose data arrives first, then to the task that the device received first. A device runs tasks whose
  data arrives at the same time in that order.
- The finish of a device without a task, or with one more, is computed by a pass over its tasks of the batch.
- Only tasks that are alone in their colocation group are given away.
- Transfers are booked at ports only after the devices of a batch are chosen.
"""

from __future__ import annotations

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int, by_index, inverse
from placeopt.model.problem import Problem
from placeopt.protocol import Settings
from placeopt.protocol.citations import bibtex

from .._constructive.construction import Build, Constructive, filled, heuristic_info
from .._constructive.priorities import priority_list, upward_ranks


class Hbmct(Constructive):
    name = "hbmct"
    info = heuristic_info(
        summary="batches of independent tasks by rank, balanced over the devices (Sakellariou and Zhao 2004)",
        family="list scheduling",
        complexity="O(n log n + (n + e) m), and O(w) for each task moved or tried in a batch of w",
        citation=bibtex("sakellariou2004hybrid"),
    )

    def builder(self, problem: Problem, settings: Settings) -> Build:
        sequence = priority_list(problem, upward_ranks(problem))
        bounds = independent_batches(problem, sequence)
        return lambda groups: filled(problem, groups, engine.balance_batches, sequence, bounds)


def independent_batches(problem: Problem, sequence: Int) -> Int:
    """Return the first position (k + 1,) of each of k batches in `sequence` (n,), a topological order, and its end."""
    position = inverse(sequence)
    last = by_index(np.maximum, position[problem.edge_target], position[problem.edge_source], problem.n_tasks, -1)
    bounds = [0]
    for here, latest_producer in enumerate(last.tolist()):
        if latest_producer >= bounds[-1]:
            bounds.append(here)
    return np.array([*bounds, problem.n_tasks], dtype=np.int64)
