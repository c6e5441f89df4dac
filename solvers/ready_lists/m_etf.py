"""m-ETF: earliest task first with a queue of (operator, device) pairs, for devices with little memory.

B. Jeon, L. Cai, P. Srivastava, J. Jiang, X. Ke, Y. Meng, C. Xie, I. Gupta: Baechi: Fast device placement of machine
learning graphs. ACM Symposium on Cloud Computing (SoCC), 2020, doi:10.1145/3419111.3421302, section 2.3: the queue Q of
pairs (i, p) in increasing order of the earliest schedulable time of i on p, which is the later of free(p) and of the
arrival of all its inputs there, s_i + k_i + c_ij of each producer i elsewhere (equation 1); a head whose device lacks
memory is removed, otherwise it starts there at that time. Section 3.1: the first operator of a colocation group decides
for the whole group, and a device that cannot hold the group is passed over.

Departures from the paper:

- It says nothing of ties: here the lower index of the task goes first, then that of the device. `etf` differs in the
  tie only.
- Devices and links need not be alike: a device on which a task takes longer than on another counts as one that starts
  it that much later (`_pairs.detours`).
- Pairs enter the queue when their task is ready rather than all at the beginning; before that they have no time.
- The memory of the whole group is taken at once, and counted as under the `sum` model always, which is cautious under
  `peak`. A pair also leaves the queue where the device may not run the task or must be apart from another there. Where
  pairs run out before tasks do, room is made by moving what was placed, see
  `placeopt_solvers._constructive.construction`; the paper fails there.
- Co-placement, fusion and forward-only placement (sections 3.2 and 3.3) are passes, not part of the solver.
- No task starts before its release time. Deadlines are not looked at; the message says if one is missed.
- Under port contention transfers take their turn at both ports when their consumer is placed (`_booking`), and pairs
  in the queue that this delays go back into it.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options
from placeopt.solver.citations import BAECHI

from .._constructive.construction import answered
from .._constructive.pairs import StartSettings, detours, earliest_pairs


class MEtf:
    """The schedule of m-ETF; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "m-etf"
    info: ClassVar[Info] = Info(
        summary="Baechi's memory-constrained earliest task first (Jeon et al. 2020)",
        family="ready lists",
        guarantee="ratio 2 + rho - 1/m, rho the longest transfer over the shortest task: on like devices and links, "
        "without limits on memory, groups, separation, release times and ports",
        complexity="O(n m log n + e m)",
        citation=BAECHI,
    )
    settings_type: ClassVar[type[StartSettings]] = StartSettings

    def solve(self, problem: Problem, options: Options, settings: StartSettings) -> Answer:  # noqa: ARG002
        """m-ETF's schedule, or FAILED where it finds no placement that fits into memory."""
        by_index = np.arange(problem.n_tasks)
        work = detours(problem, settings)
        return answered(problem, lambda groups: earliest_pairs(problem, groups, by_index, work))
