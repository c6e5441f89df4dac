"""FLB: fast load balancing, the choice of ETF from two candidate pairs only.

A. Radulescu, A. J. C. van Gemund, International Conference on Parallel Processing (ICPP) 1999,
doi:10.1109/ICPP.1999.797442. Symbols: EP(t) the enabling processor of a ready task, from which its last message comes;
LMT(t) the arrival of that message on other processors; EMT(t, p) the arrival of all data on p; PRT(p) the time at which
p becomes idle; EST the later of the last two.

A task with LMT(t) >= PRT(EP(t)) is of EP type: it starts nowhere earlier than there. Any other task starts earliest on
the processor that becomes idle first. So the pair that starts earliest is one of two: the EP-type task with the least
EST on its EP, or the non-EP-type task with the least LMT on the processor that is idle first. Ties go to the latter,
whose communication is hidden already.

Departures from the paper:

- The device that is idle first, and the EP-type task with the least EST, are found by a scan of all m devices, not in
  heaps, because the device must be able to take the task.
- On heterogeneous devices and links the same two pairs are compared, by their exact starts. A start counts as later by
  the ticks that the task takes longer there than on its fastest device (`_pairs.detours`). LMT is that of the slowest
  link from the device. A task that is no longer of EP type stays a candidate on its EP; on identical devices this
  changes nothing.
- Ties go by bottom level in mean times, then by index.
- A task whose group has a home waits for that device as an EP-type task waits for its EP. A task whose EP cannot take
  it is not of EP type. The device that is idle first is one that can take the task.
- LMT is never before the release time.
- Under port contention queued pairs are delayed by later transfers, see `pairs.hpp`.
"""

from __future__ import annotations

import numpy as np

from placeopt import engine
from placeopt.model.levels import bottom_levels, comparable
from placeopt.model.problem import Problem
from placeopt.protocol.citations import bibtex

from .._constructive.construction import Build, Constructive, filled, heuristic_info
from ._pairs import StartSettings, detours


class Flb(Constructive):
    name = "flb"
    info = heuristic_info(
        summary="ETF's choice from two candidates: fast load balancing (Radulescu and van Gemund 1999)",
        family="ready lists",
        guarantee="as etf, under the same conditions: every task starts as early as any ready task could",
        complexity="O(n (log n + m) + e k), k kinds of links from a device",
        citation=bibtex("radulescu1999flb"),
    )
    settings_type = StartSettings

    def builder(self, problem: Problem, settings: StartSettings) -> Build:
        work = detours(problem, settings)
        by_level = np.argsort(-comparable(bottom_levels(problem)), kind="stable")
        return lambda groups: filled(problem, groups, engine.place_by_type, by_level, work, insertion=False)
