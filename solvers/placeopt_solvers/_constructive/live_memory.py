"""Placement and times under the memory model `peak`: evictions, packings and waits by live memory.

`profiles` describes when a placement fits along a sequence of tasks. `room_made` and `packed` place groups such that it
does, with the engine's `evictions.cpp`. `with_waits` gives a placement its times, with `waits.cpp`: tasks are appended
in a sequence, each as soon as its inputs are there and its device has the memory for it.

A placement whose profile along a sequence fits never fails there: before the first task that is not placed yet, all
outputs with later consumers only fit by the profile, and all others are freed at known ticks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int, by_index
from placeopt.model.memory import used_memory
from placeopt.model.native import native
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, lateness, makespan
from placeopt.simulation import retime

from .groups import Groups, with_homes, without_memory
from .profiles import Live, make_live, reserved
from .timeline import DONE, schedule_of


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks whose memory counts when the groups of a problem are placed: its own, or those of its clusters."""

    problem: Problem
    """The problem of the n tasks."""
    unit: Int
    """(n,) the group of the placed problem that decides for each task's device."""
    expand: Callable[[Int], Int]
    """Turns a topological sequence of the placed problem's tasks into one of these (n,)."""
    restore: Callable[[Schedule], Schedule]
    """Turns a schedule of the placed problem into one of these tasks; under port contention without valid times."""
    reserve: bool = False
    """Whether groups reserve memory from their first task to their last, see `profiles.reserved`."""

    def resident(self, n_groups: int) -> Int:
        """Return the resident bytes of each group (g,)."""
        return by_index(np.add, self.unit, self.problem.resident, n_groups)

    def live(self, n_groups: int, sequence: Int) -> Live:
        """Return what the groups hold along a sequence of the placed problem's tasks."""
        own, fine = self.problem, self.expand(sequence)
        live = make_live(
            self.unit, n_groups, own.output, own.scratch, own.edge_source, own.edge_target, fine, own.n_devices
        )
        return reserved(live, self.unit, fine) if self.reserve else live


def own_tasks(problem: Problem, reserve: bool = False) -> Tasks:
    """Return the tasks of a problem whose own groups are placed; `reserve` is as in `Tasks`."""
    return Tasks(problem, problem.group, lambda sequence: sequence, lambda schedule: schedule, reserve)


def time_order(problem: Problem, start: Int) -> Int:
    """Return the tasks (n,) by start, those of equal start in topological order."""
    return problem.order[np.argsort(start[problem.order], kind="stable")]


@dataclass(frozen=True, slots=True)
class Timed:
    """A schedule that fits into memory, and the number of tasks that wait for memory."""

    schedule: Schedule
    waits: int


def with_waits(problem: Problem, device: Int, sequence: Int) -> Timed | None:
    """Append tasks in a topological sequence (n,) on their `device` (n,), each as soon as its memory is free.

    None if a task has no memory even after all known releases.
    """
    room = problem.capacity.copy()
    np.subtract.at(room, device, problem.resident)
    if (room < 0).any():
        return None
    line = engine.Timeline(native(problem), without_memory(problem), False)
    stuck, waits = engine.append_with_waits(
        line, problem.output, problem.scratch, room, device, sequence, engine.current_stop()
    )
    return None if stuck != DONE else Timed(schedule_of(problem, line), waits)


def timed(tasks: Tasks, problem: Problem, line: engine.Timeline, sequences: Iterable[Int]) -> Timed | None:
    """Return the schedule of a placement in the first of several sequences (n,) that memory allows; None if none does.

    `problem` is the placed one, and `line` its timeline. Under port contention, schedules that are re-timed from the
    schedule and from the timeline count as well; the best one that fits is returned.
    """
    own, device = tasks.problem, line.home[tasks.unit]
    found = next((each for each in (with_waits(own, device, sequence) for sequence in sequences) if each), None)
    if found is None or not own.contends:
        return found
    restored = tasks.restore(schedule_of(problem, line))
    ways = [retime(own, each) for each in (found.schedule, restored, replace(restored, transfers=None))]
    fitting = [way for way in ways if (used_memory(own, way) <= own.capacity).all()]
    best = min([found.schedule, *fitting], key=lambda way: (lateness(own, way), makespan(own, way)))
    return replace(found, schedule=best)


def room_made(problem: Problem, groups: Groups, line: engine.Timeline, k: int) -> Int | None:
    """Return homes (g,) for group k and all groups placed on the timeline, after evictions; None if none helps.

    On the device that lacks the least bytes for k, groups are evicted until k fits, then on the next: first those that
    must be apart from k, then from the first position that is too full the smallest group that leaves enough room, or
    the largest one if none does. Each goes to the device with the least room that can take it.
    """
    trial = engine.Timeline(native(problem), with_homes(groups, line.home))
    return trial.home if engine.make_room(trial, groups.home, k, engine.current_stop()) else None


def missing_bytes(problem: Problem, groups: Groups, line: engine.Timeline, k: int) -> Int:
    """Return the bytes (m,) that each device lacks for group k, which has no home on the timeline."""
    return engine.missing_bytes(engine.Timeline(native(problem), with_homes(groups, line.home)), k)


def packed(problem: Problem, groups: Groups, sequence: Int, home: Int) -> Iterator[Int]:
    """Yield placements (g,) of all groups by live memory, from three greedy packings.

    The first keeps the homes (g,), and goes through the other groups in the order of `sequence` (n,), from one device
    to the one with the most room when it is full. The second does so without these homes. The third takes groups by
    decreasing peak to the device with the most room. If no device can take a group, others are evicted.
    """
    first = by_index(np.minimum, problem.group[sequence], np.arange(problem.n_tasks), problem.n_groups, problem.n_tasks)
    falling = np.argsort(-(groups.live.peak + groups.memory), kind="stable")
    in_turn = np.argsort(first, kind="stable")
    ways = [(home, in_turn, True), (groups.home, in_turn, True), (groups.home, falling, False)]
    if np.array_equal(home, groups.home):
        del ways[0]
    for given, turn, stay in ways:
        line = engine.Timeline(native(problem), with_homes(groups, given))
        if engine.pack_groups(line, groups.home, turn, stay, engine.current_stop()) == DONE:
            yield line.home
