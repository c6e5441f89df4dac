"""CPOP: critical path on a processor, list scheduling by the longest path through each task.

H. Topcuoglu, S. Hariri, M.-Y. Wu, IEEE TPDS 2002, doi:10.1109/71.993206, section 4.2, figure 5. The paper's symbols:
rank_u and rank_d the upward and downward ranks, their sum the priority; SET_CP the tasks of a critical path; p_cp the
processor that runs them in the least time.

Of the ready tasks the one with the highest priority comes next. Tasks of SET_CP go to p_cp, the others to the device
where they end first, with insertion.

Departures from the paper:

- The paper follows tasks whose priority equals that of the entry, which rounding can break. Here the critical path
  starts at the source with the highest upward rank. It continues with the consumer with the longest path to an exit,
  transfer included. Differences below a thousandth of a tick are ties.
- p_cp is the fastest of the devices that may run the whole path, or else of those that may run most of its tasks. A
  task of the path that p_cp cannot take goes to the device where it ends first.
- Mean transfer times are means of times; the paper takes the time at the mean bandwidth.
"""

from __future__ import annotations

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Bool, Float
from placeopt.model.levels import bottom_levels, comparable, mean_transfers, top_levels
from placeopt.model.native import native
from placeopt.model.problem import Problem
from placeopt.protocol import Settings
from placeopt.protocol.citations import bibtex

from .._constructive.construction import Build, Constructive, heuristic_info
from .._constructive.priorities import ready_order
from .._constructive.sequences import Penalties, insert_tasks

FAR = 2**60
"""Penalty in ticks of devices other than p_cp: longer than any schedule."""


class Cpop(Constructive):
    name = "cpop"
    info = heuristic_info(
        summary="list scheduling by longest path, a critical path on one device (Topcuoglu et al. 2002)",
        family="list scheduling",
        complexity="O(n log n + (n + e) m) and the gaps searched",
        citation=bibtex("topcuoglu2002heft"),
    )

    def builder(self, problem: Problem, settings: Settings) -> Build:
        rank = bottom_levels(problem)
        sequence = ready_order(problem, top_levels(problem) + rank)
        path = critical_path(problem, rank)
        penalties = Penalties(path.astype(np.int64), np.zeros((2, problem.n_devices), dtype=np.int64))
        penalties.ticks[1] = FAR
        penalties.ticks[1, critical_device(problem, path)] = 0
        return lambda groups: insert_tasks(problem, groups, sequence, penalties)


def critical_path(problem: Problem, rank: Float) -> Bool:
    """Return whether each task (n,) is in SET_CP, a longest path by upward rank (n,)."""
    on_path = np.zeros(problem.n_tasks, dtype=np.bool_)
    if problem.n_tasks:
        first = int(comparable(rank).argmax())
        behind = comparable(mean_transfers(problem) + rank[problem.edge_target])
        on_path[engine.longest_path(native(problem), first, behind)] = True
    return on_path


def critical_device(problem: Problem, path: Bool) -> int:
    """Return p_cp: of the devices that may run most tasks of the path (n,), the fastest."""
    missing = (~problem.feasible[path]).sum(axis=0)
    return int(np.lexsort((problem.duration[path].sum(axis=0), missing))[0])
