"""The base class of constructive heuristics: runs one, repairs dead ends and builds the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from placeopt import engine
from placeopt.errors import listing
from placeopt.model.arrays import Int
from placeopt.model.levels import ORDERS
from placeopt.model.memory import used_memory
from placeopt.model.native import native
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, lateness, makespan
from placeopt.model.units import size_text, time_text
from placeopt.protocol import BOOKED, Answer, Info, Options, Settings, Termination
from placeopt.simulation import retime

from .groups import Groups, grouped, packings, placed, with_homes, with_room_for
from .live_memory import Tasks, missing_bytes, own_tasks, packed, room_made, time_order, timed
from .profiles import total_peak
from .timeline import DONE, schedule_of

REPAIRS = 8
"""Evictions before all groups are packed instead: each costs a run of the heuristic."""

MOVED = "the devices filled up before all tasks were placed: some were moved to make room"
PACKED = "the devices filled up before all tasks were placed: the groups were packed by memory first"
"""Notes on schedules after repair, and on packed ones."""

LIVE = "counted as live memory in the order of the schedule"
EXACT = "the solver cp-sat can decide whether there is a placement"
"""Parts of messages."""


@dataclass(frozen=True, slots=True)
class PartialSchedule:
    """The timeline that a heuristic filled, and the group that no device could take; None if all tasks are placed."""

    line: engine.Timeline
    stuck: int | None = None


Build = Callable[[Groups], PartialSchedule]
"""A heuristic on one problem: places all groups, those with a home there, until all are placed or one is stuck."""


@dataclass(frozen=True, slots=True)
class Construction:
    """A schedule with port times or None, and a note: why there is none, or what was unusual."""

    schedule: Schedule | None
    note: str = ""
    stopped: bool = False
    """Whether better schedules were not tried, because the time was over."""


def heuristic_info(
    *, summary: str, family: str, complexity: str, citation: str = "", guarantee: str = "none", **more: Any
) -> Info:
    """Return the description of a heuristic that books transfers; `more` are further fields of it."""
    return Info(summary, guarantee, complexity, citation, family, rules=BOOKED, **more)


class InsertionSettings(Settings):
    """Settings of heuristics whose paper leaves open whether tasks use gaps."""

    insertion: bool = True
    """Whether a task may start in a gap between other tasks of a device. false: after all tasks placed there before."""


class Constructive:
    """Base class of constructive heuristics. Unless a solver states otherwise, it handles the whole model as follows.

    - **Colocation groups**: the first task of a group to be placed decides for the whole group, and the group's memory
      is reserved at once. A group with a single possible device is assigned to it from the start.
    - **Candidates**: a device is a candidate for a group if all its members may run there, if it has enough memory
      left, and if it holds no group that must be separate. Other devices are ignored. A device is never overfilled.
    - **Memory** is counted as under the memory model `sum`. Under `peak`, a second schedule counts live memory
      (`construct_live`); the better one is returned.
    - **Budgets** are kept like memory, each beyond the least that the groups that are not placed yet use of it.
    - **Renewable resources**: a task starts when what it uses is free as long as it runs. A device that runs several
      tasks at once is always free.
    - **Memory tiers**: the capacity is that of all tiers. The swap time of a device counts like a release time of its
      tasks. A group that delays the first task of a device by its swap time starts as much later. Heuristics that do
      not compare the times of devices ignore both. The schedule is re-timed, so its times are exact.
    - **Dead ends**: if no device is left for a group, other groups are evicted to make room, and the heuristic starts
      again with these homes. As a last resort all groups are packed by memory and budgets, and the heuristic only
      orders tasks.
    - **Release times**: no task starts before its release time, which counts like the arrival of an input.
    - **Port contention**: transfers are booked at both ports when their consumer is placed, in the order in which their
      producers end, each after all transfers booked before.
    - **Deadlines** do not influence the choices. If the schedule misses one, the message reports by how much.
    - **Means**: mean durations are over the devices that may run the task, mean transfer times over all pairs of
      distinct devices.
    - **Ties** that the algorithm leaves open go to the lowest index, of tasks and then of devices.
    """

    name: ClassVar[str]
    info: ClassVar[Info]
    settings_type: ClassVar[type[Settings]] = Settings

    def builder(self, problem: Problem, settings: Any) -> Build:
        """Prepare the heuristic: compute what does not depend on homes. Not needed if `construct` is overridden."""
        raise NotImplementedError

    def construct(self, problem: Problem, options: Options, settings: Any) -> Construction:
        """Run the heuristic, with repair; overridden by heuristics that build several schedules."""
        return construct_with_repair(problem, self.builder(problem, settings))

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:
        """Return the schedule, or FAILED with the missing bytes if the heuristic finds no placement."""
        return as_answer(problem, self.construct(problem, options, settings))


def run_heuristic(problem: Problem, build: Build) -> Answer:
    """Run a heuristic with repair, and build the answer."""
    return as_answer(problem, construct_with_repair(problem, build))


def filled(
    problem: Problem, groups: Groups, loop: Callable[..., int], *arguments: Any, insertion: bool = True
) -> PartialSchedule:
    """Fill a timeline of the native engine with one of its loops, which takes the timeline and the other arguments.

    The loop returns DONE or the task that it could not place.
    """
    line = engine.Timeline(native(problem), groups, insertion)
    task = loop(line, *arguments, engine.current_stop())
    return PartialSchedule(line, None if task == DONE else int(problem.group[task]))


def as_answer(problem: Problem, found: Construction) -> Answer:
    """Build the answer with a schedule; its message reports missed deadlines."""
    if found.schedule is None:
        return Answer(Termination.FAILED, message=found.note)
    notes = [found.note] if found.note else []
    if late := lateness(problem, found.schedule):
        time = time_text(late, problem.resolution)
        notes.append(
            f"some task misses its deadline by {time}; the solver cp-sat can decide whether all deadlines can be met"
        )
    termination = Termination.INTERRUPTED if found.stopped else Termination.COMPLETED
    return Answer(termination, found.schedule, message="; ".join(notes))


def construct_with_repair(problem: Problem, build: Build, reserve: bool = False) -> Construction:
    """Run a heuristic with repair; under the memory model `peak` also by live memory, if memory is scarce.

    Of both schedules the one with less lateness is returned, then the shorter one, then the one under `sum`. With
    `reserve`, groups reserve live memory (`profiles.reserved`); under `sum` they hold more than that anyway.
    """
    if not scarce_live_memory(problem):
        return construct_by_sum(problem, build)
    found = construct_by_sum(problem, build) if fits_as_sum(problem) else Construction(None)
    if found.schedule is None:
        return construct_live(problem, build, wanted=True, tasks=own_tasks(problem, reserve))
    live = partial(construct_live, problem, build, wanted=False, tasks=own_tasks(problem, reserve))
    return best_until_stopped(problem, (lambda: found, live))


def construct_by_sum(problem: Problem, build: Build) -> Construction:
    """Run a heuristic with memory as under `sum`; after a dead end with repaired homes, then with packed ones.

    1. Repair: groups are evicted to make room for the stuck group (`with_room_for`). The heuristic starts again with
       these homes and those of all groups that it placed before. At most REPAIRS times.
    2. Packing: all groups are packed by memory (`packings`), and the heuristic runs on each packing.
    """
    groups = grouped(problem)
    if groups.stuck is not None:
        return Construction(None, no_room(problem, groups, groups.stuck, groups.home, groups.room))
    first, last, note = _repaired(build, groups, lambda line, k: with_room_for(groups, line.home, line.room, k))
    if last.stuck is None:
        return Construction(with_port_times(problem, last.line), note)
    # With a home for every group none can be stuck.
    lines = [build(with_homes(groups, home)).line for home in packings(problem, groups)]
    if not lines:
        assert first.stuck is not None
        return Construction(None, no_room(problem, groups, first.stuck, first.line.home, first.line.room))
    return best_of(problem, [Construction(with_port_times(problem, line), PACKED) for line in lines])


def _repaired(
    build: Build, groups: Groups, repair: Callable[[engine.Timeline, int], Int | None], repairs: int = REPAIRS
) -> tuple[PartialSchedule, PartialSchedule, str]:
    """Return the first and the last of at most `repairs` + 1 runs of a heuristic, and a note.

    `repair` returns homes (g,) for the stuck group and for those on the timeline, or None.
    """
    first = last = build(groups)
    for _ in range(repairs):
        home = None if last.stuck is None else repair(last.line, last.stuck)
        if home is None:
            break
        last = build(with_homes(groups, home))
    return first, last, "" if last is first else MOVED


def scarce_live_memory(problem: Problem) -> bool:
    """Return whether the memory model is `peak` and some device has too little memory for all tasks at once."""
    live = problem.memory_model == "peak" and problem.pipeline is None
    return live and bool((problem.capacity < problem.memory.sum()).any())


def fits_as_sum(problem: Problem) -> bool:
    """Return whether the devices together have enough memory for all tasks at once."""
    return int(problem.memory.sum()) <= sum(map(int, problem.capacity))


def construct_live(problem: Problem, build: Build, *, wanted: bool, tasks: Tasks | None = None) -> Construction:
    """Run a heuristic by live memory, with repair.

    1. It runs without limits on memory. If the devices have room for that schedule at all times, it is the result,
       unless groups reserve memory.
    2. The order of tasks in time is the sequence along which live memory counts (`profiles`). The heuristic runs again,
       and a device takes a group only if it has room along the sequence. After a dead end groups are evicted
       (`room_made`), and it starts again as in `construct_by_sum`. Tasks may wait for memory (`with_waits`).
    3. If there is none and one is `wanted`, all groups are packed by memory (`packed`), and the heuristic runs on each
       packing. If that fails too, steps 2 and 3 are repeated with `ORDERS` as sequences, except those along which all
       tasks together hold more than the devices have.

    `tasks` are those whose memory counts and whose schedule is returned, by default the problem's own.
    """
    tasks = own_tasks(problem) if tasks is None else tasks
    resident = tasks.resident(problem.n_groups)
    bare = grouped(problem, resident)
    if bare.stuck is not None:
        lacking = np.maximum(resident[bare.stuck] - bare.room, 0)
        return Construction(None, no_room(problem, bare, bare.stuck, bare.home, bare.room, lacking))
    found: list[Construction] = []

    def add(line: engine.Timeline, *sequences: Int, note: str = "") -> bool:
        """Time a placement along the first sequence that memory allows; return whether no task waits for memory."""
        finished = timed(tasks, problem, line, map(tasks.expand, sequences))
        if finished is not None:
            found.append(Construction(finished.schedule, note))
        return finished is not None and not finished.waits

    limitless = grouped(replace(problem, capacity=np.full(problem.n_devices, UNLIMITED)), np.zeros_like(resident))
    _, trial, note = _repaired(build, limitless, lambda line, k: with_room_for(limitless, line.home, line.room, k))
    sequence = problem.order if trial.stuck is not None else time_order(problem, trial.line.start)
    if trial.stuck is None and not tasks.reserve and add(trial.line, sequence, note=note):
        return found[0]
    failure = ""
    for each in [sequence, *(order(problem) for order in ORDERS.values())] if wanted else [sequence]:
        live = tasks.live(problem.n_groups, each)
        hopeless = int(resident.sum()) + total_peak(live) > sum(map(int, problem.capacity))
        if hopeless and failure:
            continue
        feasible = bare.feasible & ((resident + live.peak)[:, None] <= problem.capacity)
        groups = replace(bare, feasible=feasible, live=live)
        repairs = 0 if hopeless else REPAIRS
        first, last, note = _repaired(build, groups, partial(room_made, problem, groups), repairs)
        if last.stuck is None:
            add(last.line, time_order(problem, last.line.start), each, note=note)
        elif wanted and not hopeless:
            for home in packed(problem, groups, each, last.line.home):
                line = build(with_homes(groups, home)).line
                add(line, time_order(problem, line.start), each, note=PACKED)
        if found:
            return best_of(tasks.problem, found)
        failure = failure or shortage(problem, groups, first)
    return Construction(None, failure)


def shortage(problem: Problem, groups: Groups, found: PartialSchedule) -> str:
    """Explain why a heuristic finds no place for a group by live memory, or none for those with a single device."""
    line = found.line
    if found.stuck is not None:
        lacking = missing_bytes(problem, groups, line, found.stuck)
        return no_room(problem, groups, found.stuck, line.home, line.room, lacking)
    over = line.trees[:, 1] - line.room
    short = [f"{problem.device_names[d]} lacks {size_text(int(over[d]))}" for d in np.flatnonzero(over > 0).tolist()]
    return f"{listing(short)} for tasks that can run only there ({LIVE}); {EXACT}"


def best_of(problem: Problem, found: list[Construction]) -> Construction:
    """Choose the schedule with the least lateness, then the least makespan, then the first."""

    def badness(each: Construction) -> tuple[bool, int, int]:
        if each.schedule is None:
            return True, 0, 0
        return False, lateness(problem, each.schedule), makespan(problem, each.schedule)

    return min(found, key=badness)


def best_until_stopped(problem: Problem, makers: Iterable[Callable[[], Construction]]) -> Construction:
    """Make several schedules and return the best, once stopped of those made before.

    Raises a StoppedError if the engine is stopped before there is a schedule.
    """
    found: list[Construction] = []
    try:
        for make in makers:
            if found:
                engine.poll()
            found.append(make())
    except engine.StoppedError:
        if all(each.schedule is None for each in found):
            raise
        return replace(best_of(problem, found), stopped=True)
    return best_of(problem, found)


def no_room(problem: Problem, groups: Groups, k: int, home: Int, room: Int, lacking: Int | None = None) -> str:
    """Explain why no device can take group k; the placed groups have their `home` (g,) and leave `room` (m,).

    With live memory, `lacking` (m,) are the bytes that each device lacks.
    """
    members = np.flatnonzero(problem.group == k)
    task = problem.task_names[members[0]]
    others = len(members) - 1
    share = "" if others == 0 else f" and the {f'{others} other tasks' if others > 1 else 'other task'} of its group"
    devices = np.flatnonzero(problem.group_feasible()[k]).tolist()
    if not devices:
        return f"no device may run {task}{share}"
    apart = groups.apart[groups.apart_start[k] : groups.apart_start[k + 1]]
    need, reasons = int(groups.memory[k]), []
    if groups.live.on:
        need += int(groups.live.peak[k])
    for d in devices:
        missing = need - max(int(room[d]), 0) if lacking is None else int(lacking[d])
        rivals = apart[home[apart] == d]
        if missing > 0:
            reasons.append(f"{size_text(missing)} more on {problem.device_names[d]}")
        elif short := _short_budgets(problem, groups, home, k, d):
            reasons.append(f"{short} for {problem.device_names[d]}")
        elif len(rivals):
            rival = problem.task_names[int(np.flatnonzero(problem.group == rivals[0])[0])]
            reasons.append(f"{problem.device_names[d]} without {rival}, which must be apart from it")
        else:
            reasons.append(f"{problem.device_names[d]} without the tasks that can run only there")
    how = "" if problem.memory_model == "sum" else " (all memory held at once)" if lacking is None else f" ({LIVE})"
    wanted = f"which takes {size_text(need)}: it would need {listing(reasons)}{how}"
    return f"no device left for {task}{share}, {wanted}; {EXACT}"


def _short_budgets(problem: Problem, groups: Groups, home: Int, k: int, d: int) -> str:
    """List what group k lacks of budgets on device d, given the homes (g,) and the least uses of the other groups."""
    budgets, resources = groups.budgets, problem.resources
    if budgets is None or resources is None:
        return ""
    lacking = budgets.used[k, d] - placed(groups, home, groups.room).left
    short = zip(resources.budgets.tolist(), lacking.tolist(), strict=True)
    return listing([f"{resources.text(r, lack)} more of {resources.names[r]}" for r, lack in short if lack > 0])


def overflow(problem: Problem, schedule: Schedule) -> str:
    """List the devices that a schedule overfills, and by how much; "" if there are none."""
    over = used_memory(problem, schedule) - problem.capacity
    full = np.flatnonzero(over > 0).tolist()
    return listing([f"{problem.device_names[d]} by {size_text(int(over[d]))}" for d in full], 20) if full else ""


def with_port_times(problem: Problem, line: engine.Timeline) -> Schedule:
    """Return the schedule of a finished timeline.

    Under port contention it is re-timed twice, with transfers in the order in which they were booked and in the order
    in which they become due. The better schedule is returned. Under further rules it is re-timed, too: with memory
    tiers, the last task of a device may delay the first one, and not every heuristic knows when devices are
    unavailable.
    """
    schedule = schedule_of(problem, line)
    if not problem.contends:
        return retime(problem, schedule) if problem.rules else schedule
    ways = [retime(problem, schedule), retime(problem, replace(schedule, transfers=None))]
    return min(ways, key=lambda way: (lateness(problem, way), makespan(problem, way)))
