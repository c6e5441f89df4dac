"""List scheduling without insertion: tasks in a given order, each after the last of the device that some measure names.

The measures of the loop:

    END      earliest end of the task there (minimum completion time)
    WORK     least duration there (minimum execution time)
    IDLE     the device that is done first with what it has (opportunistic load balancing)
    INDEX    the first device that can take the task
"""

from __future__ import annotations

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem

from .construction import Built, built
from .groups import Groups
from .placement_ops import append, arrival_on, may_take, note_arrivals
from .timeline import NEVER, Case, Timeline, make_case, make_timeline, work_steps

END, WORK, IDLE, INDEX = 0, 1, 2, 3


def appended(problem: Problem, groups: Groups, sequence: Int, measure: int) -> Built:
    """Each task of `sequence`, a topological order, at the end of the device best by `measure`; ties by index."""
    line = make_timeline(problem, groups)
    run = append_in_order.select(work_steps(problem))
    return built(problem, line, sequence, run(make_case(problem, groups), line, sequence, measure))


def filled(problem: Problem, groups: Groups, sequence: Int, keep: Int) -> Built:
    """The tasks of `sequence`, a topological order, onto the first device until it is full, then the next, and so on.

    A device is full once no more than `keep` (m,) bytes of its room would be left.
    """
    line = make_timeline(problem, groups)
    run = fill_in_order.select(work_steps(problem))
    return built(problem, line, sequence, run(make_case(problem, groups), line, sequence, keep))


@kernel(note_arrivals, arrival_on, may_take, append, allocates=False)
def append_in_order(case: Case, line: Timeline, sequence: Int, measure: int) -> int:
    """Place the tasks in turn; how many were placed (fewer than n: no room for the next)."""
    m = len(line.room)
    for position in range(len(sequence)):
        i = sequence[position]
        g = case.group[i]
        best, least = line.home[g], NEVER
        if best < 0:
            if measure == END:
                note_arrivals(case, line, i)
            for d in range(m):
                if measure == END:
                    worth = max(line.ready[d], line.free[d]) + case.duration[i, d]
                elif measure == WORK:
                    worth = case.duration[i, d]
                elif measure == IDLE:
                    worth = line.free[d]
                else:
                    worth = d
                if worth < least and may_take(case, line, g, d):
                    best, least = d, worth
            if best < 0:
                return position
        append(case, line, i, best, max(arrival_on(case, line, i, best), line.free[best]))
    return len(sequence)


@kernel(arrival_on, may_take, append, allocates=False)
def fill_in_order(case: Case, line: Timeline, sequence: Int, keep: Int) -> int:
    """Place the tasks in turn; how many were placed (fewer than n: no room for the next)."""
    m = len(line.room)
    filling = 0
    for position in range(len(sequence)):
        i = sequence[position]
        g = case.group[i]
        best = line.home[g]
        if best < 0:
            while filling < m - 1 and line.room[filling] - case.memory[g] < keep[filling]:
                filling += 1
            # A task that may not go there goes on; one that finds every device behind full takes what room there is.
            for offset in range(2 * m):
                d = (filling + offset) % m
                enough = line.room[d] - case.memory[g] >= keep[d] and d >= filling
                if (enough or offset >= m) and may_take(case, line, g, d):
                    best = d
                    break
            if best < 0:
                return position
        append(case, line, i, best, max(arrival_on(case, line, i, best), line.free[best]))
    return len(sequence)
