"""From a constructive heuristic to an answer: dead ends left, ports served, what is worth knowing told.

A heuristic is a function from `Groups` to `Built`: it fills a timeline and tells which group found no device, if one
did. Groups that have their `home` already stay there. `answered` runs it, and where the devices fill up before every
task is placed, runs it again with some of the placement decided beforehand:

1. Repair: groups are evicted from a device to make room for the one that is stuck (`_repair`), and the heuristic begins
   anew with these homes and all that it had chosen before; at most REPAIRS times.
2. Packing: all groups are packed by memory alone (`_placement.packings`), and the heuristic only orders them.

Of several schedules the one that misses deadlines by least is kept, then the shortest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from placeopt.errors import listing
from placeopt.model.arrays import Int
from placeopt.model.memory import used_memory
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, lateness, makespan
from placeopt.model.units import size_text, time_text
from placeopt.simulation import retime
from placeopt.solver import Answer, Termination

from .groups import Groups, grouped, packings
from .repair import with_room_for
from .timeline import Timeline, schedule_of

REPAIRS = 8
"""Evictions before everything is packed anew: each costs a run of the heuristic."""


@dataclass(frozen=True, slots=True)
class Built:
    """How far a heuristic came: its timeline, and the group that no device has room for, None if all tasks are
    placed."""

    line: Timeline
    stuck: int | None = None


Build = Callable[[Groups], Built]


def built(problem: Problem, line: Timeline, sequence: Int, placed: int) -> Built:
    """What came of placing the tasks of `sequence` in turn, when `placed` of them found a device."""
    return Built(line, None if placed == problem.n_tasks else int(problem.group[sequence[placed]]))


@dataclass(frozen=True, slots=True)
class Constructed:
    """A schedule ready for the problem's contention, or none; and why, or how it came about where that is unusual."""

    schedule: Schedule | None
    note: str = ""


def answered(problem: Problem, build: Build) -> Answer:
    """The heuristic's answer; FAILED, with the bytes that were missing on each device, where it finds no placement."""
    return as_answer(problem, constructed(problem, build))


def as_answer(problem: Problem, found: Constructed) -> Answer:
    """The answer that holds a schedule, and tells of deadlines that it misses."""
    if found.schedule is None:
        return Answer(Termination.FAILED, message=found.note)
    notes = [found.note] if found.note else []
    if late := lateness(problem, found.schedule):
        time = time_text(late, problem.resolution)
        notes.append(f"some task misses its deadline by {time}; the solver cp-sat can decide whether all can be kept")
    return Answer(Termination.COMPLETED, found.schedule, message="; ".join(notes))


def constructed(problem: Problem, build: Build) -> Constructed:
    """The heuristic's schedule, after repair or packing where the devices filled up."""
    groups = grouped(problem)
    if groups.stuck is not None:
        return Constructed(None, no_room(problem, groups, groups.stuck, groups.home, groups.room))
    first = trial = build(groups)
    if trial.stuck is None:
        return Constructed(timed(problem, trial.line))
    for _ in range(REPAIRS):
        assert trial.stuck is not None
        home = with_room_for(groups, trial.line.home, trial.line.room, trial.stuck)
        if home is None:
            break
        trial = build(with_homes(groups, home))
        if trial.stuck is None:
            note = "the devices filled up before every task was placed: some were moved to make room"
            return Constructed(timed(problem, trial.line), note)
    # With every home given nothing can be stuck.
    lines = [build(with_homes(groups, home)).line for home in packings(problem, groups)]
    if not lines:
        assert first.stuck is not None
        return Constructed(None, no_room(problem, groups, first.stuck, first.line.home, first.line.room))
    note = "the devices filled up before every task was placed: the groups were packed by memory first"
    return best_of(problem, [Constructed(timed(problem, line), note) for line in lines])


def best_of(problem: Problem, found: list[Constructed]) -> Constructed:
    """The one with the least lateness, then the least makespan; the first of equals, of those with a schedule."""

    def badness(each: Constructed) -> tuple[bool, int, int]:
        if each.schedule is None:
            return True, 0, 0
        return False, lateness(problem, each.schedule), makespan(problem, each.schedule)

    return min(found, key=badness)


def with_homes(groups: Groups, home: Int) -> Groups:
    """The groups with more of them given a home (g,), -1 for those still free."""
    room = groups.room.copy()
    fresh = np.flatnonzero((home >= 0) & (groups.home < 0))
    np.subtract.at(room, home[fresh], groups.memory[fresh])
    return replace(groups, home=home, room=room)


def no_room(problem: Problem, groups: Groups, k: int, home: Int, room: Int) -> str:
    """Why group k found no device beside those that have their `home` (g,), with `room` (m,) left."""
    members = np.flatnonzero(problem.group == k)
    task = problem.task_names[members[0]]
    others = len(members) - 1
    share = "" if others == 0 else f" and the {f'{others} others' if others > 1 else 'other'} of its group"
    devices = np.flatnonzero(problem.group_feasible()[k]).tolist()
    if not devices:
        return f"no device may run {task}{share}"
    apart = groups.apart[groups.apart_start[k] : groups.apart_start[k + 1]]
    need, reasons = int(groups.memory[k]), []
    for d in devices:
        missing = need - max(int(room[d]), 0)
        rivals = apart[home[apart] == d]
        if missing > 0:
            reasons.append(f"{size_text(missing)} more on {problem.device_names[d]}")
        elif len(rivals):
            rival = problem.task_names[int(np.flatnonzero(problem.group == rivals[0])[0])]
            reasons.append(f"{problem.device_names[d]} without {rival}, which must be apart from it")
        else:
            reasons.append(f"{problem.device_names[d]} beside what can go nowhere else")
    peak = " (counting all as held at once, as heuristics do)" if problem.memory_model == "peak" else ""
    return (
        f"no device left for {task}{share}, which takes {size_text(need)}: it would need {listing(reasons)}{peak}; "
        "the solver cp-sat can decide whether there is a placement"
    )


def overflow(problem: Problem, schedule: Schedule) -> str:
    """By how much each device is too small for what stands there; "" if none is."""
    over = used_memory(problem, schedule) - problem.capacity
    full = np.flatnonzero(over > 0).tolist()
    return listing([f"{problem.device_names[d]} by {size_text(int(over[d]))}" for d in full], 20) if full else ""


def timed(problem: Problem, line: Timeline) -> Schedule:
    """The schedule of a finished timeline; where ports contend, re-timed with its transfers in the order in which they
    were booked, or in which they become due if that ends earlier."""
    schedule = schedule_of(problem, line)
    if problem.contention == "none":
        return schedule
    ways = [retime(problem, schedule), retime(problem, replace(schedule, transfers=None))]
    return min(ways, key=lambda way: (lateness(problem, way), makespan(problem, way)))
