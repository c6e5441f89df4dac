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

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.levels import bottom_levels
from placeopt.model.problem import Problem
from placeopt.solver import Info

from .._constructive.construction import Build, Constructive, run_loop
from .._constructive.placement_ops import append, can_host, ready_time
from .._constructive.priorities import ready_order
from .._constructive.timeline import DONE, Instance, Timeline
from ._pairs import StartSettings, detours, first_idle, last_message


class Fcp(Constructive):
    name = "fcp"
    info = Info(
        summary="by bottom level, to the enabling device or the one idle first (Radulescu and van Gemund 1999)",
        family="ready lists",
        tiers=True,
        guarantee="none",
        complexity="O(n (log n + m) + e k), k kinds of links from a device",
        citation="""@inproceedings{radulescu1999complexity,
  author    = {Andrei Radulescu and Arjan J. C. van Gemund},
  title     = {On the complexity of list scheduling algorithms for distributed-memory systems},
  booktitle = {Proceedings of the 13th ACM International Conference on Supercomputing (ICS)},
  pages     = {68--75},
  year      = {1999},
  doi       = {10.1145/305138.305162}
}""",
    )
    settings_type = StartSettings

    def builder(self, problem: Problem, settings: StartSettings) -> Build:
        detour = detours(problem, settings)
        sequence = ready_order(problem, bottom_levels(problem))
        return lambda groups: run_loop(problem, groups, place_on_two, sequence, detour)


@kernel(allocates=False)
def is_ready(instance: Instance, line: Timeline, i: int) -> bool:
    """Return whether all producers of task i are placed."""
    for k in range(instance.in_start[i], instance.in_start[i + 1]):  # noqa: SIM110 - Numba has no all() of a generator
        if line.device[instance.in_source[k]] < 0:
            return False
    return True


@kernel(append, can_host, first_idle, is_ready, last_message, ready_time, allocates=False)
def place_on_two(instance: Instance, line: Timeline, sequence: Int, detour: Int) -> int:
    """Place the tasks in turn, each on the better of its two devices; return DONE or the first that has none.

    A task without a device does not end the loop: all tasks that do not depend on it are placed.
    """
    stuck = DONE
    for i in sequence:
        if stuck != DONE and not is_ready(instance, line, i):
            continue
        g = instance.group[i]
        best = line.home[g]
        if best >= 0:
            start = max(ready_time(instance, line, i, best), line.free[best])
        else:
            best = first_idle(instance, line, detour, i)
            if best < 0:
                stuck = i if stuck == DONE else min(stuck, i)
                continue
            start = max(ready_time(instance, line, i, best), line.free[best])
            _, d = last_message(instance, line, i)
            if d >= 0 and d != best and can_host(instance, line, g, d):
                there = max(ready_time(instance, line, i, d), line.free[d])
                if there + instance.duration[i, d] <= start + instance.duration[i, best]:
                    best, start = d, there
        append(instance, line, i, best, start)
    return stuck
