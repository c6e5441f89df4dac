"""FCP: fast critical path, list scheduling with two candidate devices for each task.

A. Radulescu, A. J. C. van Gemund: On the complexity of list scheduling algorithms for distributed-memory systems. ACM
International Conference on Supercomputing (ICS), pages 68-75, 1999, doi:10.1145/305138.305162. The ready task with the
highest bottom level (the longest path to an exit, transfers included) goes where it starts earliest, of two
processors: its enabling processor, from which its last message comes, and the one that becomes idle first. On like
devices no other lets it start earlier.

Departures from the paper:

- All ready tasks are sorted; the paper sorts the first few and keeps the others in a queue by arrival, which takes
  log m instead of log W steps a task (W the most tasks ready at once) and comes close to the same order.
- The device that is idle first is found by a scan of all m rather than in a heap, for it must be one that may take
  the task; the enabling one counts only if it may.
- On unlike devices, one on which the task takes longer than elsewhere counts as idle that much later, and the task goes
  where it ends earliest of the two; on like ones that is where it starts earliest. Of equals it is the enabling device,
  which saves the transfer.
- Bottom levels are in mean durations over feasible devices and mean transfer times over pairs of distinct devices;
  tasks of equal level go by index. On unlike links a message counts as long as on the slowest link from its device.
- Memory, colocation groups and separation, see `placeopt_solvers._constructive.groups`: the first task of a group to be
  placed decides for all, and the memory of the whole group is taken at once.
- No task starts before its release time. Deadlines are not looked at; the message says if one is missed.
- Under port contention transfers take their turn at both ports when their consumer is placed (`_booking`).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.levels import bottom_levels, comparable
from placeopt.model.problem import Problem
from placeopt.solver import Answer, Info, Options

from .._constructive.candidate_devices import first_idle, last_message
from .._constructive.construction import Built, answered
from .._constructive.groups import Groups
from .._constructive.heaps import Heaps, make_heaps, pop, push
from .._constructive.pairs import StartSettings, detours, ready_built
from .._constructive.placement_ops import append, arrival_on, may_take
from .._constructive.timeline import Case, Timeline, make_case, make_timeline, work_steps


class Fcp:
    """The schedule of FCP; never overfills a device, but may miss deadlines."""

    name: ClassVar[str] = "fcp"
    info: ClassVar[Info] = Info(
        summary="by bottom level, to the enabling device or the one idle first (Radulescu and van Gemund 1999)",
        family="ready lists",
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
    settings_type: ClassVar[type[StartSettings]] = StartSettings

    def solve(self, problem: Problem, options: Options, settings: StartSettings) -> Answer:  # noqa: ARG002
        """FCP's schedule, or FAILED where it finds no placement that fits into memory."""
        work = detours(problem, settings)
        by_level = np.argsort(-comparable(bottom_levels(problem)), kind="stable")
        return answered(problem, lambda groups: two_devices(problem, groups, by_level, work))


def two_devices(problem: Problem, groups: Groups, sequence: Int, detour: Int) -> Built:
    """Each ready task in the order of `sequence` (n,), on the better of its two devices; `detour` as in `_pairs`."""
    line = make_timeline(problem, groups)
    rank = np.empty_like(sequence)
    rank[sequence] = np.arange(problem.n_tasks)
    missing = np.diff(problem.in_start)
    case, ready = make_case(problem, groups), make_heaps(problem.n_tasks, 1)
    placed = place_by_priority.select(work_steps(problem))(case, line, ready, sequence, rank, missing, detour)
    return ready_built(problem, line, missing, placed)


@kernel(append, arrival_on, may_take, first_idle, last_message, push, pop, allocates=False)
def place_by_priority(
    case: Case, line: Timeline, ready: Heaps, sequence: Int, rank: Int, missing: Int, detour: Int
) -> int:
    """Place the first of `sequence` (n,) that is ready until none is left; how many tasks were placed.

    `rank` (n,) is the place of each task in the sequence, `missing` (n,) counts the producers that are not placed.
    """
    for i in range(len(missing)):
        if missing[i] == 0:
            push(ready, 0, 0, rank[i])
    placed = 0
    while ready.size[0] > 0:
        i = sequence[ready.item[0, 0]]
        pop(ready, 0)
        g = case.group[i]
        best, start = line.home[g], 0
        if best >= 0:
            start = max(arrival_on(case, line, i, best), line.free[best])
        else:
            best = first_idle(case, line, detour, i)
            if best < 0:
                continue
            start = max(arrival_on(case, line, i, best), line.free[best])
            _, d = last_message(case, line, i)
            if d >= 0 and d != best and may_take(case, line, g, d):
                there = max(arrival_on(case, line, i, d), line.free[d])
                if there + case.duration[i, d] <= start + case.duration[i, best]:
                    best, start = d, there
        append(case, line, i, best, start)
        placed += 1
        for k in range(case.out_start[i], case.out_start[i + 1]):
            j = case.out_target[k]
            missing[j] -= 1
            if missing[j] == 0:
                push(ready, 0, 0, rank[j])
    return placed
