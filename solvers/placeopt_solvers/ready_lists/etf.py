"""ETF: earliest task first, the ready task that can start earliest on any device goes there.

J.-J. Hwang, Y.-C. Chow, F. D. Anger, C.-Y. Lee, SIAM Journal on Computing 1989, doi:10.1137/0218016. The static level
that breaks ties (the longest path to an exit in durations alone) is that of Y.-K. Kwok, I. Ahmad, ACM Computing Surveys
1999, doi:10.1145/344588.344618, section 6.

On identical devices with one kind of link, without limits on memory, groups, separation, release times or ports, the
paper's theorem holds: makespan <= (2 - 1/m) (optimum without transfer times) + (the transfers along one chain of
tasks).

Departures from the paper:

- The paper goes from one time at which a device becomes free to the next, and decides which tasks start before it.
  Starts never decrease from one decision to the next. So choosing the pair of a ready task and a device with the
  earliest start, as here, gives the same decisions. Only at equal starts may a task that has just become ready come
  before one that waited.
- The paper examines every pair in each step, O(n² m). A queue of pairs makes it O(n m log n), see `pairs.hpp`.
- The paper leaves ties to a list of the user. Here the higher static level comes first, then the lower index of the
  task, then of the device. Static levels that differ by less than a thousandth of a tick are equal. `m-etf` differs
  only in ties.
- On heterogeneous devices a start counts as later by the ticks that the task takes longer there than on its fastest
  device (`_pairs.detours`). On identical devices durations decide only ties, as in the paper.
- A pair leaves the queue if its device cannot take the task. Under port contention queued pairs are delayed by later
  transfers, see `pairs.hpp`.
"""

from __future__ import annotations

import numpy as np

from placeopt.model.levels import comparable, static_levels
from placeopt.model.problem import Problem
from placeopt.protocol.citations import bibtex

from .._constructive.construction import Build, Constructive, heuristic_info
from ._pairs import StartSettings, detours, schedule_pairs


class Etf(Constructive):
    name = "etf"
    info = heuristic_info(
        summary="the earliest start of all ready tasks and devices, ties by static level (Hwang et al. 1989)",
        family="ready lists",
        guarantee="(2 - 1/m) times the optimum without transfers, and the transfers of a chain: on identical devices "
        "and links, without limits on memory, groups, separation, release times and ports",
        complexity="O(n m log n + e m)",
        citation=bibtex("hwang1989etf"),
    )
    settings_type = StartSettings

    def builder(self, problem: Problem, settings: StartSettings) -> Build:
        by_level = np.argsort(-comparable(static_levels(problem)), kind="stable")
        work = detours(problem, settings)
        return lambda groups: schedule_pairs(problem, groups, by_level, work)
