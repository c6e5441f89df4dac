"""PEFT: predict earliest finish time, list scheduling with an optimistic view of what follows each task.

H. Arabnejad, J. G. Barbosa: List scheduling algorithm for heterogeneous systems by an optimistic cost table. IEEE
Transactions on Parallel and Distributed Systems 25(3):682-694, 2014, doi:10.1109/TPDS.2013.57; section 4. The paper's
symbols: OCT(i, k) the optimistic cost of what follows task i on processor k, the longest of the ways to an exit when
every task on the way has its best processor to itself; rank_oct the mean of a task's row; O_EFT = EFT + OCT.

    OCT(i, k) = max over consumers j of min over w of (OCT(j, w) + duration of j on w + (0 if w = k else c_ij))

Of the tasks whose producers are placed the one of highest rank_oct comes next, to the processor of least O_EFT, gaps
included. As c_ij does not depend on processors, in the paper neither, the minimum is at w = k or at the best w of all:
the table takes O(e m) rather than the O(e m²) of the definition.

Departures from the paper:

- c_ij is the mean of times over pairs of distinct devices (the paper: the time at the mean bandwidth), rounded to whole
  ticks.
- rank_oct is the mean over feasible devices, and w goes over those of j.
- Ties, which the paper leaves open, go by index, those of devices too.
- Memory, colocation groups and separation, see `placeopt_solvers._constructive.groups`: the first task of a group to be
  placed decides for all, and devices without room for the whole group, or that may not run some of it, do not count.
  Release times and ports count where a task could start; deadlines do not, and the message says if one is missed.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.levels import mean_transfers
from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options, Settings

from .._constructive.construction import Built, answered
from .._constructive.groups import Groups
from .._constructive.insertion import Penalties, inserted
from .._constructive.priorities import ready_order
from .._constructive.timeline import NEVER, work_steps


class Peft:
    """The schedule of PEFT; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "peft"
    info: ClassVar[Info] = Info(
        summary="list scheduling by an optimistic table of what follows each task (Arabnejad, Barbosa 2014)",
        family="list scheduling",
        guarantee="none",
        complexity="O(n log n + (n + e) m) and the gaps searched",
        citation="""@article{arabnejad2014peft,
  author  = {Hamid Arabnejad and Jorge G. Barbosa},
  title   = {List scheduling algorithm for heterogeneous systems by an optimistic cost table},
  journal = {IEEE Transactions on Parallel and Distributed Systems},
  volume  = {25},
  number  = {3},
  pages   = {682--694},
  year    = {2014},
  doi     = {10.1109/TPDS.2013.57}
}""",
    )
    settings_type: ClassVar[type[Settings]] = Settings

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        """PEFT's schedule, or FAILED where it finds no placement that fits into memory."""
        table = optimistic_costs(problem)
        sequence = ready_order(problem, mean_costs(problem, table))
        penalties = Penalties(np.arange(problem.n_tasks), table)

        def build(groups: Groups) -> Built:
            return inserted(problem, groups, sequence, penalties)

        return answered(problem, build)


def optimistic_costs(problem: Problem) -> Int:
    """(n, m) ticks, OCT: what is left to do at least once each task has ended on each device."""
    table = np.zeros((problem.n_tasks, problem.n_devices), dtype=np.int64)
    transfer = np.rint(mean_transfers(problem)).astype(np.int64)
    backwards, producer = problem.order[::-1].copy(), problem.edge_source[problem.in_edge]
    run = look_ahead.select(work_steps(problem))
    run(backwards, problem.in_start, producer, transfer[problem.in_edge], problem.duration, problem.feasible, table)
    return table


def mean_costs(problem: Problem, table: Int) -> Float:
    """(n,) rank_oct: mean of each row of OCT (n, m) over feasible devices; 0 for a task without any."""
    count = problem.feasible.sum(axis=1)
    total = np.where(problem.feasible, table, 0).sum(axis=1)
    return np.asarray(total / np.maximum(count, 1), dtype=np.float64)


@kernel(allocates=False)
def look_ahead(
    backwards: Int, in_start: Int, producer: Int, transfer: Int, duration: Int, feasible: Bool, table: Int
) -> None:
    """Fill `table` (n, m), all zero, consumers before producers; in-edges as CSR, `transfer` (e,) in their order."""
    m = table.shape[1]
    for j in backwards:
        if in_start[j] == in_start[j + 1]:
            continue
        # What it takes from here on where j runs on w; a task without any device keeps nobody waiting.
        least = NEVER
        for w in range(m):
            if feasible[j, w]:
                least = min(least, table[j, w] + duration[j, w])
        if least == NEVER:
            continue
        for e in range(in_start[j], in_start[j + 1]):
            i = producer[e]
            moved = least + transfer[e]
            for k in range(m):
                cost = moved
                if feasible[j, k]:
                    cost = min(cost, table[j, k] + duration[j, k])
                if cost > table[i, k]:
                    table[i, k] = cost
