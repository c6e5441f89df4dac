"""Insertion-based list scheduling: tasks in a given order, each where and when it ends first.

What counts as first may be biased: a penalty in ticks for each device is added to the end of the task there, such as
what PEFT expects to follow it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem

from .construction import Built, built
from .groups import Groups
from .placement_ops import arrival_on, earliest, may_take, note_arrivals, occupy
from .timeline import NEVER, Case, Timeline, make_case, make_timeline, work_steps

BLOCK = 16
"""Tasks that are read ahead."""


class Penalties(NamedTuple):
    """What is added to the end of each task on each device when devices are compared.

    Attributes
    ----------
    row
        (n,) the row that holds for the task.
    ticks
        (r, m) ticks, none of them negative, and such that an end and a penalty together stay below NEVER.
    """

    row: Int
    ticks: Int


def no_penalties(problem: Problem) -> Penalties:
    """The device where a task ends first is the best."""
    return Penalties(np.zeros(problem.n_tasks, dtype=np.int64), np.zeros((1, problem.n_devices), dtype=np.int64))


def inserted(problem: Problem, groups: Groups, sequence: Int, penalties: Penalties | None = None) -> Built:
    """Each task of `sequence`, a topological order, on the device where it ends first; none before its release time."""
    line = make_timeline(problem, groups)
    run = insert_in_order.select(work_steps(problem))
    placed = run(make_case(problem, groups), line, sequence, penalties or no_penalties(problem))
    return built(problem, line, sequence, placed)


@kernel(allocates=False)
def fetch(case: Case, line: Timeline, sequence: Int, position: int) -> None:
    """Read what the next BLOCK tasks need, so that it comes into the cache for all of them at once.

    By rank tasks are strewn over memory, and one after the other each would wait for its own (a million tasks take a
    sixth less time with this).
    """
    total = 0
    for k in range(position, min(position + BLOCK, len(sequence))):
        i = sequence[k]
        g = case.group[i]
        total += case.duration[i, 0] + case.in_start[i] + case.release[i] + case.memory[g] + case.apart_start[g]
    line.arrival[0] = total  # to scribble on; nothing would be read if the sum were not kept


@kernel(note_arrivals, arrival_on, may_take, earliest, occupy, fetch, allocates=False)
def insert_in_order(case: Case, line: Timeline, sequence: Int, penalties: Penalties) -> int:
    """Place the tasks in turn where they end first; how many were placed (fewer than n: no room for the next)."""
    m = len(line.room)
    for position in range(len(sequence)):
        if position % BLOCK == 0:
            fetch(case, line, sequence, position)
        i = sequence[position]
        g = case.group[i]
        best, best_worth, best_start, best_gap = line.home[g], NEVER, 0, 0
        if best >= 0:
            best_start, best_gap = earliest(case, line, i, best, arrival_on(case, line, i, best))
        else:
            note_arrivals(case, line, i)
            row = penalties.row[i]
            for d in range(m):
                # No gap starts before the data is there: most devices are ruled out without looking for one.
                work = case.duration[i, d] + penalties.ticks[row, d]
                if line.ready[d] + work >= best_worth or not may_take(case, line, g, d):
                    continue
                start, gap = earliest(case, line, i, d, line.ready[d])
                if start + work < best_worth:
                    best, best_worth, best_start, best_gap = d, start + work, start, gap
            if best < 0:
                return position
        occupy(case, line, i, best, best_start, best_gap)
    return len(sequence)
