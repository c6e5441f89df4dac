"""The ready list of heuristics that scan all ready tasks, those whose producers are placed, in each step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem

from .construction import InsertionSettings
from .placement_ops import compute_ready_times, place
from .timeline import DONE, Instance, Timeline, work_steps


class ReadySettings(InsertionSettings):
    """Settings of heuristics for independent tasks, which here compete when they are ready."""

    batches: bool = True
    """Whether all ready tasks are placed before the tasks that become ready meanwhile. false: a task competes as soon
    as its predecessors are placed."""


class Ready(NamedTuple):
    """The ready tasks, about in the order in which they became ready: the first one replaces a task that is placed."""

    task: Int
    """(n,) the ready tasks are task[span[0]:span[1]]."""
    span: Int
    """(2,) see `task`."""
    missing: Int
    """(n,) number of each task's producers without a device."""
    data: Int
    """(n, m) of each ready task: the tick from which it can start on each device, given its inputs and its release
    time. With ports: as of the step in which it became ready; later transfers may delay it. A heuristic may raise it to
    the start that the tasks on the device allow."""
    position: Int
    """(n,) index of each ready task in `task`."""
    note: Int
    """(c, n) notes of the heuristic on the task at each position, -1 for a new task. They are stored by position, such
    that a scan of the list reads contiguous memory."""


def make_ready(problem: Problem, notes: int = 0) -> Ready:
    """Return an empty list; `admit_sources` adds the first tasks."""
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
    """Return the elementary steps of a heuristic that scans all ready tasks in each step, if most are ready at once."""
    return work_steps(problem) + problem.n_tasks**2


@kernel(allocates=False)
def first_unplaced(line: Timeline, missing: Int) -> int:
    """Return the first ready task without a device, DONE if there is none; `missing` (n,) as in `Ready`."""
    for i in range(len(missing)):
        if missing[i] == 0 and line.device[i] < 0:
            return i
    return DONE


@kernel(compute_ready_times, allocates=False)
def admit(instance: Instance, line: Timeline, ready: Ready, i: int) -> None:
    """Add task i, whose producers are placed."""
    compute_ready_times(instance, line, i)
    for d in range(len(line.room)):
        ready.data[i, d] = line.ready[d]
    ready.task[ready.span[1]] = i
    ready.position[i] = ready.span[1]
    ready.span[1] += 1


@kernel(admit, allocates=False)
def admit_sources(instance: Instance, line: Timeline, ready: Ready) -> None:
    """Add the tasks without producers."""
    for i in range(len(ready.missing)):
        if ready.missing[i] == 0:
            admit(instance, line, ready, i)


@kernel(place, admit, allocates=False)
def place_ready(instance: Instance, line: Timeline, ready: Ready, position: int, d: int) -> None:
    """Place the task at a position of the list on device d, and add the consumers that become ready."""
    i = ready.task[position]
    first = ready.task[ready.span[0]]
    ready.task[position] = first
    ready.position[first] = position
    for c in range(len(ready.note)):
        ready.note[c, position] = ready.note[c, ready.span[0]]
    ready.span[0] += 1
    place(instance, line, i, d)
    for k in range(instance.out_start[i], instance.out_start[i + 1]):
        j = instance.out_target[k]
        ready.missing[j] -= 1
        if ready.missing[j] == 0:
            admit(instance, line, ready, j)
