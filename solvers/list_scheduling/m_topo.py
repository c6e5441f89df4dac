"""m-TOPO: topological order onto one device after the other, each up to an equal share of the memory.

B. Jeon et al. (Baechi), SoCC 2020, doi:10.1145/3419111.3421302, section 2.2. The paper's symbols: d_i the memory of
operator i, m the number of devices, Cap = sum_i d_i / m + max_i d_i.

Departures from the paper:

- Each colocation group counts as one operator with the memory of all its members, also in max_i d_i; the published code
  takes the largest operator. Cap is rounded up to bytes. A device is full at the first operator that would exceed Cap
  or the device's memory.
- If devices have less memory than Cap, the last one may be full before all operators are placed. The remaining ones go
  to the first device with room. A task that the current device cannot take goes to the next one that can.
- If no task has memory, Cap is 0. No task exceeds it, and all go to the first device.
- The paper names no order. Here it is `Problem.order`, breadth first, as in the published code.
"""

from __future__ import annotations

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.solver import Info
from placeopt.solver.citations import BAECHI

from .._constructive.adjusting import Adjustable, AdjustSettings
from .._constructive.construction import Build
from .._constructive.groups import Groups
from .._constructive.sequences import fill_devices


class MTopo(Adjustable):
    name = "m-topo"
    info = Info(
        summary="topological order, one device after the other up to an equal share of memory (Jeon et al. 2020)",
        family="list scheduling",
        tiers=True,
        guarantee="none",
        complexity="O((n + e) m)",
        citation=BAECHI,
    )
    settings_type = AdjustSettings

    def builder(self, problem: Problem, settings: AdjustSettings) -> Build:
        return lambda groups: fill_devices(problem, groups, problem.order, room_beyond_cap(problem, groups))


def room_beyond_cap(problem: Problem, groups: Groups) -> Int:
    """Return the bytes (m,) of each device above Cap."""
    cap = -(-int(groups.memory.sum()) // max(problem.n_devices, 1)) + int(groups.memory.max(initial=0))
    return np.maximum(problem.capacity - cap, 0)
