"""FCP: fast critical path, list scheduling with two candidate devices for each task.

A. Radulescu, A. J. C. van Gemund, ACM International Conference on Supercomputing (ICS) 1999, doi:10.1145/305138.305162.
The ready task with the highest bottom level (the longest path to an exit, transfers included) goes to one of two
processors, where it starts earlier: its enabling processor, from which its last message comes, or the one that becomes
idle first. On identical devices it starts on no other earlier.

Departures from the paper:

- All ready tasks are sorted. The paper sorts the first few and keeps the others in a queue by arrival, which takes
  log m instead of log W steps a task (W the maximum number of tasks ready at once) and gives almost the same order.
- The device that is idle first is found by a scan of all m devices, not in a heap, because it must be able to take the
  task. The enabling device is considered only if it can take the task.
- On heterogeneous devices a device counts as idle later by the ticks that the task takes longer there than on its
  fastest device. The task goes where it ends earlier of the two; on identical devices this is where it starts earlier.
  Ties go to the enabling device, which saves the transfer.
- Bottom levels are in mean times; tasks of equal level go by index. On heterogeneous links a message counts with the
  slowest link from its device.
"""

from __future__ import annotations

from placeopt import engine
from placeopt.model.levels import bottom_levels
from placeopt.model.problem import Problem
from placeopt.protocol.citations import bibtex

from .._constructive.construction import Build, Constructive, filled, heuristic_info
from .._constructive.priorities import ready_order
from ._pairs import StartSettings, detours


class Fcp(Constructive):
    name = "fcp"
    info = heuristic_info(
        summary="by bottom level, to the enabling device or the one idle first (Radulescu and van Gemund 1999)",
        family="ready lists",
        complexity="O(n (log n + m) + e k), k kinds of links from a device",
        citation=bibtex("radulescu1999complexity"),
    )
    settings_type = StartSettings

    def builder(self, problem: Problem, settings: StartSettings) -> Build:
        detour = detours(problem, settings)
        sequence = ready_order(problem, bottom_levels(problem))
        return lambda groups: filled(problem, groups, engine.place_on_two, sequence, detour, insertion=False)
