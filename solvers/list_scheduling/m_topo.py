"""M-TOPO: topological order onto one device after the other, each up to an equal share of the memory.

B. Jeon, L. Cai, P. Srivastava, J. Jiang, X. Ke, Y. Meng, C. Xie, I. Gupta: Baechi: Fast device placement of machine
learning graphs, SoCC 2020, doi:10.1145/3419111.3421302, section 2.2. The paper's symbols: d_i the memory of operator i,
m the devices, Cap = sum_i d_i / m + max_i d_i.

Departures from the paper:

- Operators of a colocation group count as one with the memory of all. Cap is rounded up to bytes and never above the
  memory of the device. The device is full with the first operator that would exceed either.
- Where devices have less memory than Cap, the last may be full before all is placed: what is left then goes to the
  first device with room. A task that may not run on the current device goes to the next that can take it.
- Where no task has any memory, Cap is 0, which no task exceeds: all go to the first device.
- The order is `Problem.order`, breadth first; the paper names none.
- Memory, colocation groups and separation, see `placeopt_solvers._constructive.groups`: the first task of a group to be
  placed decides for all, and devices without room for the whole group, or that may not run some of it, do not count.
  Release times and ports count where a task could start; deadlines do not, and the message says if one is missed.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options, Settings
from placeopt.solver.citations import BAECHI

from .._constructive.appending import filled
from .._constructive.construction import Built, answered
from .._constructive.groups import Groups


class MTopo:
    """The schedule of m-TOPO; never overfills a device."""

    name: ClassVar[str] = "m-topo"
    info: ClassVar[Info] = Info(
        summary="topological order, one device after the other up to an equal share of memory (Jeon et al. 2020)",
        family="list scheduling",
        guarantee="none",
        complexity="O((n + e) m)",
        citation=BAECHI,
    )
    settings_type: ClassVar[type[Settings]] = Settings

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        """m-TOPO's schedule, or FAILED where there is no placement that fits into memory."""

        def build(groups: Groups) -> Built:
            return filled(problem, groups, problem.order, room_beyond_cap(problem, groups))

        return answered(problem, build)


def room_beyond_cap(problem: Problem, groups: Groups) -> Int:
    """(m,) bytes of each device that are above Cap."""
    cap = -(-int(groups.memory.sum()) // max(problem.n_devices, 1)) + int(groups.memory.max(initial=0))
    return np.maximum(problem.capacity - cap, 0)
