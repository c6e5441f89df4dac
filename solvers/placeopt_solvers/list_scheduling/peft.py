"""PEFT: predict earliest finish time, list scheduling with an optimistic estimate of the time after each task.

H. Arabnejad, J. G. Barbosa, IEEE TPDS 2014, doi:10.1109/TPDS.2013.57, section 4. The paper's symbols: OCT(i, k) the
optimistic cost after task i on processor k, the longest path to an exit if every later task has its best processor to
itself; rank_oct the mean of a task's row; O_EFT = EFT + OCT.

    OCT(i, k) = max over consumers j of min over w of (OCT(j, w) + duration of j on w + (0 if w = k else c_ij))

Of the ready tasks the one with the highest rank_oct comes next. It goes to the processor with the least O_EFT, with
insertion. c_ij does not depend on processors, as in the paper, so the minimum is at w = k or at the best w of all: the
table takes O(e m) instead of O(e m²).

Departures from the paper:

- c_ij is a mean of times, rounded to whole ticks; the paper takes the time at the mean bandwidth.
- rank_oct is the mean over the devices that may run the task, and w is one of those that may run j.
"""

from __future__ import annotations

import numpy as np

from placeopt.model.problem import Problem
from placeopt.protocol import Settings
from placeopt.protocol.citations import bibtex

from .._constructive.construction import Build, Constructive, heuristic_info
from .._constructive.priorities import mean_costs, optimistic_costs, ready_order
from .._constructive.sequences import Penalties, insert_tasks


class Peft(Constructive):
    name = "peft"
    info = heuristic_info(
        summary="list scheduling by an optimistic table of what follows each task (Arabnejad, Barbosa 2014)",
        family="list scheduling",
        complexity="O(n log n + (n + e) m) and the gaps searched",
        citation=bibtex("arabnejad2014peft"),
    )

    def builder(self, problem: Problem, settings: Settings) -> Build:
        table = optimistic_costs(problem)
        sequence = ready_order(problem, mean_costs(problem, table))
        penalties = Penalties(np.arange(problem.n_tasks), table)
        return lambda groups: insert_tasks(problem, groups, sequence, penalties)
