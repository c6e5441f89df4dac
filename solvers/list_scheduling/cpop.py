"""CPOP: critical path on a processor, list scheduling by the longest path through each task.

H. Topcuoglu, S. Hariri, M.-Y. Wu: Performance-effective and low-complexity task scheduling for
heterogeneous computing. IEEE Transactions on Parallel and Distributed Systems 13(3):260-274, 2002,
doi:10.1109/71.993206; section 4.2, figure 5. The paper's symbols: rank_u and rank_d the upward and downward ranks,
their sum the priority; SET_CP the tasks of a critical path; p_cp the processor that runs them in the least time.

Of the tasks whose producers are placed the one of highest priority comes next. Tasks of SET_CP go to p_cp, the others
where they end first, gaps included.

Departures from the paper:

- The paper follows tasks whose priority equals that of the entry, which rounding can break. Here the critical path
  starts at the source of highest upward rank, and goes on with the consumer behind which most follows, transfer
  included; each step by the lowest index of those less than a thousandth of a tick apart.
- p_cp is the fastest of the devices that may run the whole path; where there is none, of those that may run most of its
  tasks. A task of the path that it may not or cannot take goes where it ends first.
- Means of durations are over feasible devices, those of transfer times over pairs of distinct devices (the paper: the
  time at the mean bandwidth).
- Ties go by index, those of devices too.
- Memory, colocation groups and separation, see `placeopt_solvers._constructive.groups`: the first task of a group to be
  placed decides for all, and devices without room for the whole group, or that may not run some of it, do not count.
  Release times and ports count where a task could start; deadlines do not, and the message says if one is missed.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.levels import bottom_levels, comparable, mean_transfers, top_levels
from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options, Settings
from placeopt.solver.citations import TOPCUOGLU

from .._constructive.construction import Built, answered
from .._constructive.groups import Groups
from .._constructive.insertion import Penalties, inserted
from .._constructive.priorities import ready_order
from .._constructive.timeline import work_steps

FAR = 2**60
"""Penalty of a device other than p_cp: more ticks than any schedule has."""


class Cpop:
    """The schedule of CPOP; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "cpop"
    info: ClassVar[Info] = Info(
        summary="list scheduling by longest path, a critical path on one device (Topcuoglu et al. 2002)",
        family="list scheduling",
        guarantee="none",
        complexity="O(n log n + (n + e) m) and the gaps searched",
        citation=TOPCUOGLU,
    )
    settings_type: ClassVar[type[Settings]] = Settings

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        """CPOP's schedule, or FAILED where it finds no placement that fits into memory."""
        rank = bottom_levels(problem)
        sequence = ready_order(problem, top_levels(problem) + rank)
        path = critical_path(problem, rank)
        penalties = Penalties(path.astype(np.int64), np.zeros((2, problem.n_devices), dtype=np.int64))
        penalties.ticks[1] = FAR
        penalties.ticks[1, critical_device(problem, path)] = 0

        def build(groups: Groups) -> Built:
            return inserted(problem, groups, sequence, penalties)

        return answered(problem, build)


def critical_path(problem: Problem, rank: Float) -> Bool:
    """(n,) whether each task is in SET_CP, a longest path by upward rank (n,)."""
    on_path = np.zeros(problem.n_tasks, dtype=np.bool_)
    if problem.n_tasks:
        first = int(comparable(rank).argmax())
        behind = comparable(mean_transfers(problem) + rank[problem.edge_target])
        run = mark_longest_way.select(work_steps(problem))
        run(first, problem.out_start, problem.edge_target, behind, on_path)
    return on_path


def critical_device(problem: Problem, path: Bool) -> int:
    """p_cp: the device that may run most tasks of the path (n,), and of those the one that needs least time for it."""
    missing = (~problem.feasible[path]).sum(axis=0)
    return int(np.lexsort((problem.duration[path].sum(axis=0), missing))[0])


@kernel(allocates=False)
def mark_longest_way(first: int, out_start: Int, edge_target: Int, behind: Float, on_path: Bool) -> None:
    """Mark `first` and, on from each task, the consumer to which the edge has most `behind` (e,) it."""
    i = first
    on_path[i] = True
    while out_start[i] < out_start[i + 1]:
        best = out_start[i]
        for k in range(out_start[i] + 1, out_start[i + 1]):
            if behind[k] > behind[best]:
                best = k
        i = edge_target[best]
        on_path[i] = True
