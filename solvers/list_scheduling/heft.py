"""HEFT: heterogeneous earliest finish time, a list scheduler with insertion.

H. Topcuoglu, S. Hariri, M.-Y. Wu: Performance-effective and low-complexity task scheduling for
heterogeneous computing. IEEE Transactions on Parallel and Distributed Systems 13(3):260-274, 2002,
doi:10.1109/71.993206; section 4.1 (upward rank: equations 8 and 9).

Departures from the paper:

- Memory, colocation groups and separation, see `placeopt_solvers._constructive.groups`: the first task of a
  group to be placed decides for all, and the memory of the whole group is taken at once. Memory is
  counted as under the `sum` model always, which is cautious under `peak`. Where the greedy choice
  runs into a dead end, groups are packed by memory first and HEFT orders them on that placement.
- Means of durations are over feasible devices, those of transfer times over pairs of distinct devices; the paper takes
  the time at the mean bandwidth, which is the same where links are alike (`placeopt.model.levels`).
- Tasks of equal rank go by index, unless one must precede the other.
- A task of no duration may start right after a predecessor on its own device or inside a gap;
  other boundaries between two tasks that touch are not searched for it.
- Under port contention transfers take their turn at both ports when their consumer is placed (`_booking`).
- No task starts before its release time: it counts like the arrival of an input.
- Where the paper's order misses a deadline, a second one is tried: by upward ranks against deadlines, which is by the
  latest start (the deadline less the mean ticks to there; the end of the first schedule counts as the deadline of tasks
  without one). Of the two schedules the one that misses deadlines by less is kept, then the shorter one. It may miss
  some all the same, and says so.
"""

from __future__ import annotations

from typing import ClassVar

from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options, Settings
from placeopt.solver.citations import TOPCUOGLU

from .._constructive.construction import as_answer
from .._constructive.heft import heft


class Heft:
    """The schedule of HEFT; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "heft"
    info: ClassVar[Info] = Info(
        summary="list scheduling by upward rank, each task where it ends first (Topcuoglu et al. 2002)",
        family="list scheduling",
        guarantee="none",
        complexity="O((n + e) m) and the gaps searched",
        citation=TOPCUOGLU,
    )
    settings_type: ClassVar[type[Settings]] = Settings

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        """HEFT's schedule, or FAILED where it finds no placement that fits into memory."""
        return as_answer(problem, heft(problem))
