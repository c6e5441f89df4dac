"""The neediest ready task next: with the latest of the earliest ends (max-min), or the widest gap to the second best.

Each ready task has its earliest ends over the devices, which only grow. They are worked out anew only for the tasks
whose best device was the last one used (for sufferage: or whose second best was), or whose group got its home. All
ready tasks are looked at in each step: O(n W + r m + e m), where W is the most tasks ready at once and r <= n W counts
the times that one is worked out anew: few where the data decides, most of n W where many tasks that could start at once
agree on the best device.

Under port contention what is booked meanwhile delays the arrivals of ready tasks. Those of the task chosen are worked
out anew, and the device is chosen by them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem

from .construction import Built
from .groups import Groups
from .pairs import ready_built
from .placement_ops import append, note_arrivals, open_to
from .timeline import NEVER, Case, Timeline, make_case, make_timeline, work_steps


class Waiting(NamedTuple):
    """The ready tasks, in rows.

    Attributes
    ----------
    by_gap
        1 to put the widest gap between the two earliest ends first, 0 the latest of the earliest ends.
    members
        (g,) tasks of each group.
    missing
        (n,) producers of each task that are not placed yet; 0 for a ready task.
    task, arrival
        (n,), (n, m) of each row: its task, and when its data is there on each device.
    best, end
        (n,) twice: the device where the row's task ends first, and when; -1 and NEVER if no device may take it.
    second, second_end
        (n,) twice: the next best device and the end there, likewise.
    """

    by_gap: int
    members: Int
    missing: Int
    task: Int
    arrival: Int
    best: Int
    end: Int
    second: Int
    second_end: Int


def neediest(problem: Problem, groups: Groups, *, by_gap: bool) -> Built:
    """The ready task with the latest earliest end, or the widest gap to its second, goes where it ends first."""
    n, m = problem.n_tasks, problem.n_devices
    line = make_timeline(problem, groups)
    waiting = Waiting(
        int(by_gap),
        np.bincount(problem.group),
        np.diff(problem.in_start),
        np.empty(n, dtype=np.int64),
        np.empty((n, m), dtype=np.int64),
        *(np.empty(n, dtype=np.int64) for _ in range(4)),
    )
    placed = place_neediest.select(work_steps(problem))(make_case(problem, groups), line, waiting)
    return ready_built(problem, line, waiting.missing, placed)


@kernel(open_to, allocates=False)
def weigh(case: Case, line: Timeline, waiting: Waiting, row: int) -> None:
    """Find the two earliest ends of the row's task."""
    i = waiting.task[row]
    best, end, second, second_end = -1, NEVER, -1, NEVER
    for d in range(len(line.room)):
        there = max(waiting.arrival[row, d], line.free[d]) + case.duration[i, d]
        if there >= second_end or not open_to(case, line, i, d):
            continue
        if there < end:
            second, second_end = best, end
            best, end = d, there
        else:
            second, second_end = d, there
    waiting.best[row], waiting.end[row] = best, end
    waiting.second[row], waiting.second_end[row] = second, second_end


@kernel(note_arrivals, weigh, allocates=False)
def arrive(case: Case, line: Timeline, waiting: Waiting, row: int, i: int) -> None:
    """Let ready task i have the row."""
    note_arrivals(case, line, i)
    waiting.task[row] = i
    for d in range(len(line.room)):
        waiting.arrival[row, d] = line.ready[d]
    weigh(case, line, waiting, row)


@kernel(arrive, weigh, append, allocates=False)
def place_neediest(case: Case, line: Timeline, waiting: Waiting) -> int:
    """Place the neediest ready task until none is left that a device may take; how many tasks were placed."""
    task, best, end, second, second_end = waiting.task, waiting.best, waiting.end, waiting.second, waiting.second_end
    rows = 0
    for i in range(len(task)):
        if waiting.missing[i] == 0:
            arrive(case, line, waiting, rows, i)
            rows += 1
    placed, used, settled = 0, len(line.room), -1
    while True:
        chosen, most = -1, -1
        for row in range(rows):
            if (
                best[row] == used
                or (waiting.by_gap and second[row] == used)
                or (settled >= 0 and case.group[task[row]] == settled)
            ):
                weigh(case, line, waiting, row)
            if best[row] < 0:
                continue
            need = second_end[row] - end[row] if waiting.by_gap else end[row]
            if need > most or (need == most and task[row] < task[chosen]):
                chosen, most = row, need
        if chosen < 0:
            return placed
        i = task[chosen]
        if case.port:
            arrive(case, line, waiting, chosen, i)
        used = best[chosen]
        # Its fellows that are ready have to go there too; most groups are one task and not worth a look at each row.
        g = case.group[i]
        settled = g if line.home[g] < 0 and waiting.members[g] > 1 else -1
        append(case, line, i, used, end[chosen] - case.duration[i, used])
        placed += 1
        rows -= 1
        if chosen < rows:
            task[chosen], best[chosen], end[chosen] = task[rows], best[rows], end[rows]
            second[chosen], second_end[chosen] = second[rows], second_end[rows]
            for d in range(len(line.room)):
                waiting.arrival[chosen, d] = waiting.arrival[rows, d]
        for k in range(case.out_start[i], case.out_start[i + 1]):
            j = case.out_target[k]
            waiting.missing[j] -= 1
            if waiting.missing[j] == 0:
                arrive(case, line, waiting, rows, j)
                rows += 1
