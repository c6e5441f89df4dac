"""The ready list of heuristics that look at every ready task in each step: those whose producers are all placed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem

from .construction import Built
from .placement_ops import append, arrival_on, note_arrivals
from .timeline import Case, Timeline, work_steps

DONE = -1
"""Instead of a task that no device can take: all are placed."""


class Ready(NamedTuple):
    """The ready tasks, in the order in which they became so but for gaps that the first of them fill.

    Attributes
    ----------
    task
        (n,) the ready tasks are task[span[0]:span[1]].
    span
        (2,)
    missing
        (n,) producers of each task that are not placed yet.
    data
        (n, m) of each ready task: the tick from which it can start on each device as far as its data and its release
        time go. With ports as of when it became ready: they may be busy by the time it is placed.
    position
        (n,) where each ready task stands in `task`.
    note
        (c, n) what a heuristic has found out about the task at each position, and -1 for each new one: it stands by
        position, not by task, such that going through the list is going through memory.
    """

    task: Int
    span: Int
    missing: Int
    data: Int
    position: Int
    note: Int


def make_ready(problem: Problem, notes: int = 0) -> Ready:
    """A list to which `admit_sources` has still to add the tasks without producers."""
    n, m = problem.n_tasks, problem.n_devices
    return Ready(
        np.empty(n, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
        np.diff(problem.in_start),
        np.empty((n, m), dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.full((notes, n), -1, dtype=np.int64),
    )


def scan_steps(problem: Problem) -> int:
    """Elementary steps of a heuristic that looks at all ready tasks in each step, where most are ready at once."""
    return work_steps(problem) + problem.n_tasks**2


def ready_built(problem: Problem, line: Timeline, stuck: int) -> Built:
    """What came of placing ready tasks until all were DONE or a task was stuck."""
    return Built(line, None if stuck == DONE else int(problem.group[stuck]))


@kernel(note_arrivals, allocates=False)
def admit(case: Case, line: Timeline, ready: Ready, i: int) -> None:
    """Add task i, whose producers are all placed."""
    note_arrivals(case, line, i)
    for d in range(len(line.room)):
        ready.data[i, d] = line.ready[d]
    ready.task[ready.span[1]] = i
    ready.position[i] = ready.span[1]
    ready.span[1] += 1


@kernel(admit, allocates=False)
def admit_sources(case: Case, line: Timeline, ready: Ready) -> None:
    """Add the tasks without producers."""
    for i in range(len(ready.missing)):
        if ready.missing[i] == 0:
            admit(case, line, ready, i)


@kernel(arrival_on, append, admit, allocates=False)
def place_ready(case: Case, line: Timeline, ready: Ready, position: int, d: int) -> None:
    """Put the task at a position of the list at the end of device d, and add the consumers that become ready."""
    i = ready.task[position]
    first = ready.task[ready.span[0]]
    ready.task[position] = first
    ready.position[first] = position
    for c in range(len(ready.note)):
        ready.note[c, position] = ready.note[c, ready.span[0]]
    ready.span[0] += 1
    append(case, line, i, d, max(arrival_on(case, line, i, d), line.free[d]))
    for k in range(case.out_start[i], case.out_start[i + 1]):
        j = case.out_target[k]
        ready.missing[j] -= 1
        if ready.missing[j] == 0:
            admit(case, line, ready, j)
