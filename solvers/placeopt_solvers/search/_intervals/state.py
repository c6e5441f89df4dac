"""A schedule for large neighbourhood search: a sequence of the tasks, with heads and tails.

The sequence orders the tasks by start, so the tasks before a cut do not depend on those after it. The start of a task
is its exact head. Its tail is the longest path of tasks, transfers and devices' sequences from its start to the end of
the schedule, and does not depend on the tasks before the cut. So an interval of the sequence can be optimised for the
exact makespan from the numbers at its boundary.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int, inverse
from placeopt.model.memory import sum_memory
from placeopt.model.native import native
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, durations, sequence
from placeopt.simulation import retime


@dataclass(frozen=True, slots=True, eq=False)
class Boundary:
    """The state of the devices before and after an interval of the sequence."""

    free: Int  # (m,) end of the last task on the device before the interval, 0 without one
    tail: Int  # (m,) tail of the first task on the device after the interval, 0 without one
    latest: Int  # (m,) latest start of that task, UNLIMITED without one


class State:
    """An immutable valid schedule, with its makespan `span`, heads and tails.

    All arrays are (n,). `sequence` has the tasks by start, producers before consumers. `tail` has the ticks from the
    start of each task to the end of the longest path from it, without the waiting of transfers for ports. `latest` has
    the latest start with which a task and its followers meet their deadlines, UNLIMITED without deadlines. `order` is
    another sequence: the schedule must be the earliest of this order.
    """

    def __init__(self, problem: Problem, schedule: Schedule, order: Int | None = None) -> None:
        self.problem, self.schedule = problem, schedule
        self.device, self.start = schedule.device, schedule.start
        ticks = durations(problem, self.device)
        self.end: Int = self.start + ticks
        self.span = int(self.end.max(initial=0))
        self.sequence = sequence(problem, schedule) if order is None else order
        self.tail = engine.tails(native(problem), self.sequence, self.device)
        self.latest = np.full_like(ticks, UNLIMITED)
        if (problem.deadline != UNLIMITED).any():
            self.latest = engine.latest_starts(native(problem), self.sequence, self.device, problem.deadline)

    @cached_property
    def position(self) -> Int:
        """(n,) the position of each task in the sequence."""
        return inverse(self.sequence)

    @cached_property
    def used(self) -> Int:
        """(m,) bytes of all tasks on each device."""
        return sum_memory(self.problem, self.device)

    @cached_property
    def home(self) -> Int:
        """(g,) the device of each group."""
        home = np.zeros(self.problem.n_groups, dtype=np.int64)
        home[self.problem.group] = self.device
        return home

    @cached_property
    def critical(self) -> Int:
        """The critical tasks, in sequence: a later start would increase the makespan."""
        return self.sequence[(self.start + self.tail)[self.sequence] >= self.span]

    @cached_property
    def _lines(self) -> list[tuple[Int, Int]]:
        """The sequence of each device: positions, ascending, and tasks."""
        by_device = np.argsort(self.device[self.sequence], kind="stable")
        bounds = np.cumsum(np.bincount(self.device, minlength=self.problem.n_devices))[:-1]
        return [(part, self.sequence[part]) for part in np.split(by_device, bounds)]

    def boundary(self, first: int, last: int) -> Boundary:
        """Return the boundary of the positions [first, last). O(m log n)."""
        m = self.problem.n_devices
        free, tail, latest = np.zeros(m, np.int64), np.zeros(m, np.int64), np.full(m, UNLIMITED, dtype=np.int64)
        for d, (positions, tasks) in enumerate(self._lines):
            before, behind = np.searchsorted(positions, (first, last)).tolist()
            if before > 0:
                free[d] = self.end[tasks[before - 1]]
            if behind < len(tasks):
                tail[d], latest[d] = self.tail[tasks[behind]], self.latest[tasks[behind]]
        return Boundary(free, tail, latest)

    def neighbours(self, task: int) -> Int:
        """Return the tasks next to one on its device, its producers and its consumers."""
        problem = self.problem
        positions, tasks = self._lines[int(self.device[task])]
        place = int(np.searchsorted(positions, self.position[task]))
        inputs = problem.in_edge[problem.in_start[task] : problem.in_start[task + 1]]
        return np.concatenate(
            (
                tasks[max(place - 1, 0) : place],
                tasks[place + 1 : place + 2],
                problem.edge_source[inputs],
                problem.edge_target[problem.out_start[task] : problem.out_start[task + 1]],
            )
        )


def decoded(problem: Problem, sequence: Int, device: Int) -> Schedule:
    """Return the earliest schedule of a topological order of the tasks; ports are booked in that order. O(n + e)."""
    if problem.contends:
        return retime(problem, Schedule(device, inverse(sequence)))
    return Schedule(device, engine.earliest_starts(native(problem), sequence, device))
