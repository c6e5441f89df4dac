"""Insertion-based list scheduling: tasks in a given order, each where and when it ends first."""

from __future__ import annotations

from placeopt.ir import Int, Problem
from placeopt.kernels import kernel

from ._construction import Built, built
from ._placement import Groups
from ._timeline import (
    NEVER,
    Case,
    Timeline,
    arrival_on,
    earliest,
    make_case,
    make_timeline,
    may_take,
    note_arrivals,
    occupy,
    work_steps,
)


def inserted(problem: Problem, groups: Groups, sequence: Int) -> Built:
    """Each task of `sequence`, a topological order, on the device where it ends first; none before its release time."""
    line = make_timeline(problem, groups)
    placed = insert_in_order.select(work_steps(problem))(make_case(problem, groups), line, sequence)
    return built(problem, line, sequence, placed)


@kernel(note_arrivals, arrival_on, may_take, earliest, occupy, allocates=False)
def insert_in_order(case: Case, line: Timeline, sequence: Int) -> int:
    """Place the tasks in turn where they end first; how many were placed (fewer than n: no room for the next)."""
    m = len(line.room)
    for position in range(len(sequence)):
        i = sequence[position]
        g = case.group[i]
        best, best_end, best_start, best_gap = line.home[g], NEVER, 0, 0
        if best >= 0:
            best_start, best_gap = earliest(case, line, i, best, arrival_on(case, line, i, best))
        else:
            note_arrivals(case, line, i)
            for d in range(m):
                # No gap starts before the data is there: most devices are ruled out without looking for one.
                if line.ready[d] + case.duration[i, d] >= best_end or not may_take(case, line, g, d):
                    continue
                start, gap = earliest(case, line, i, d, line.ready[d])
                if start + case.duration[i, d] < best_end:
                    best, best_end, best_start, best_gap = d, start + case.duration[i, d], start, gap
            if best < 0:
                return position
        occupy(case, line, i, best, best_start, best_gap)
    return len(sequence)
