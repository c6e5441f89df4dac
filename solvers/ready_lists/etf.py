"""ETF: earliest task first, the ready task that can start earliest on any device goes there.

J.-J. Hwang, Y.-C. Chow, F. D. Anger, C.-Y. Lee: Scheduling precedence graphs in systems with interprocessor
communication times. SIAM Journal on Computing 18(2):244-257, 1989, doi:10.1137/0218016. The static level that breaks
ties (the longest path to an exit in durations alone) is that of Y.-K. Kwok, I. Ahmad: Static scheduling algorithms for
allocating directed task graphs to multiprocessors. ACM Computing Surveys 31(4):406-471, 1999,
doi:10.1145/344588.344618, section 6.

On identical devices with one kind of link, without limits on memory, groups, separation, release times or ports, the
paper's theorem holds: makespan <= (2 - 1/m) (optimum without transfer times) + (the transfers along one chain of
tasks).

Departures from the paper:

- The paper goes from one moment at which a device becomes free to the next and decides what starts before it. Starts
  never fall from one decision to the next, so that taking the least of all pairs of a ready task and a device, as here,
  decides the same; only where two starts are equal may a task that has just become ready come before one that waited.
  The paper looks at every pair in each step, O(n² m); a queue of pairs makes it O(n m log n), see `_pairs`.
- The paper leaves ties to a list of one's own. Here the higher static level goes first, then the lower index of the
  task, then that of the device. Levels are of mean durations over feasible devices, equal if less than a thousandth
  of a tick apart.
- Devices and links need not be alike. A device on which a task takes longer than on another counts as one that starts
  it that much later (`_pairs.detours`); on like devices durations decide nothing but ties, as in the paper.
- A task is ready once its producers are placed, and may not start before its release time.
- Memory, colocation groups and separation, see `placeopt_solvers._constructive.groups`: a pair whose device lacks the
  memory of the task's whole group leaves the queue, and the first task of a group to be placed decides for all. So the
  only difference from `m-etf` is the tie.
- Deadlines are not looked at; the message says if one is missed.
- Under port contention transfers take their turn at both ports when their consumer is placed (`_booking`), and pairs
  in the queue that this delays go back into it.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.model.levels import comparable, static_levels
from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options

from .._constructive.construction import answered
from .._constructive.pairs import StartSettings, detours, earliest_pairs


class Etf:
    """The schedule of ETF; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "etf"
    info: ClassVar[Info] = Info(
        summary="the earliest start of all ready tasks and devices, ties by static level (Hwang et al. 1989)",
        family="ready lists",
        guarantee="(2 - 1/m) times the optimum without transfers, and the transfers of a chain: on like devices and "
        "links, without limits on memory, groups, separation, release times and ports",
        complexity="O(n m log n + e m)",
        citation="""@article{hwang1989etf,
  author  = {Jing-Jang Hwang and Yuan-Chieh Chow and Frank D. Anger and Chung-Yee Lee},
  title   = {Scheduling precedence graphs in systems with interprocessor communication times},
  journal = {SIAM Journal on Computing},
  volume  = {18},
  number  = {2},
  pages   = {244--257},
  year    = {1989},
  doi     = {10.1137/0218016}
}""",
    )
    settings_type: ClassVar[type[StartSettings]] = StartSettings

    def solve(self, problem: Problem, options: Options, settings: StartSettings) -> Answer:  # noqa: ARG002
        """ETF's schedule, or FAILED where it finds no placement that fits into memory."""
        by_level = np.argsort(-comparable(static_levels(problem)), kind="stable")
        work = detours(problem, settings)
        return answered(problem, lambda groups: earliest_pairs(problem, groups, by_level, work))
