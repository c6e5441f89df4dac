"""Placement and times under the memory model `peak`: evictions, packings and waits by live memory.

`profiles` describes when a placement fits along a sequence of tasks. Kernels here place groups such that it does:
`make_room` evicts groups, `pack_groups` places all groups by memory alone. `with_waits` gives a placement its times:
tasks are appended in a sequence, each as soon as its inputs are there and its device has the memory for it. It counts
what the verifier counts, by the times of the schedule: `scratch` from start to end, `output` until the last consumer on
the device ends and the last transfer to another one arrives. Without ports a transfer starts when its producer ends, so
its arrival is known; with ports it is known once its consumer is placed.

A placement whose profile along a sequence fits never fails there: before the first task that is not placed yet, all
outputs with later consumers only fit by the profile, and all others are freed at known ticks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Int
from placeopt.model.memory import used_memory
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, lateness, makespan
from placeopt.simulation import retime

from .groups import Groups
from .heaps import Heaps, make_heaps, pop, push
from .placement_ops import append, assign_group, can_host, link_ticks, ready_time, release_group
from .profiles import Live, count_group, fullest, make_live, most_bytes, reserved
from .timeline import DONE, NEVER, Instance, Line, Timeline, make_instance, make_timeline, schedule_of, work_steps

EVICTIONS = 1000
"""Groups that `make_room` evicts at most: each costs a pass over all groups."""


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
        total = np.zeros(n_groups, dtype=np.int64)
        np.add.at(total, self.unit, self.problem.resident)
        return total

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


class Held(NamedTuple):
    """What devices hold while tasks are appended."""

    output: Int
    scratch: Int
    """(n,) as in `Problem`."""
    room: Int
    """(m,) bytes of each device beyond the resident ones of its tasks."""
    bytes: Int
    """(m,) outputs on each device as of its last start."""
    left: Int
    """(n,) consumers of each placed task that may still delay the release of its output."""
    freed: Int
    """(n,) the tick of that release, as far as it is known."""
    release: Heaps
    """The outputs of each device with a known release, by its tick."""
    waits: Int
    """(1,) number of tasks that waited for memory."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A schedule that fits into memory, and the number of tasks that wait for memory."""

    schedule: Schedule
    waits: int


def make_held(problem: Problem, device: Int) -> Held:
    """Return what devices hold before the first task, for a placement (n,)."""
    n, m = problem.n_tasks, problem.n_devices
    room = problem.capacity.copy()
    np.subtract.at(room, device, problem.resident)
    sizes = {"bytes": m, "left": n, "freed": n, "waits": 1}
    zeros = {name: np.zeros(size, dtype=np.int64) for name, size in sizes.items()}
    return Held(problem.output, problem.scratch, room, release=make_heaps(n, m), **zeros)


def with_waits(problem: Problem, device: Int, sequence: Int) -> Timed | None:
    """Append tasks in a topological sequence (n,) on their `device` (n,), each as soon as its memory is free.

    None if a task has no memory even after all known releases.
    """
    m, none = problem.n_devices, np.zeros(0, dtype=np.int64)
    everywhere = np.zeros((0, 0), dtype=np.bool_)
    homes = np.zeros(problem.n_groups, dtype=np.int64)
    groups = Groups(none, everywhere, np.zeros(1, dtype=np.int64), none, homes, np.zeros(m, dtype=np.int64), None)
    line = make_timeline(problem, groups)
    held = make_held(problem, device)
    run = append_with_waits.select(4 * work_steps(problem) // max(m, 1))
    if (held.room < 0).any() or run(make_instance(problem, groups), line, held, device, sequence) != DONE:
        return None
    return Timed(schedule_of(problem, line), int(held.waits[0]))


def timed(tasks: Tasks, problem: Problem, line: Line, sequences: Iterable[Int]) -> Timed | None:
    """Return the schedule of a placement in the first of several sequences (n,) that memory allows; None if none does.

    `problem` is the placed one, and `line` its timeline. Under port contention, schedules that are re-timed from the
    schedule and from the timeline count as well; the best one that fits is returned.
    """
    own, device = tasks.problem, line.home[tasks.unit]
    found = next((each for each in (with_waits(own, device, sequence) for sequence in sequences) if each), None)
    if found is None or own.contention == "none":
        return found
    restored = tasks.restore(schedule_of(problem, line))
    ways = [retime(own, each) for each in (found.schedule, restored, replace(restored, transfers=None))]
    fitting = [way for way in ways if (used_memory(own, way) <= own.capacity).all()]
    best = min([found.schedule, *fitting], key=lambda way: (lateness(own, way), makespan(own, way)))
    return replace(found, schedule=best)


@kernel(allocates=False, inline=True)
def next_release(held: Held, d: int) -> int:
    """Return the tick of the next known release on device d; NEVER if there is none."""
    return int(held.release.key[0, d]) if held.release.size[d] > 0 else NEVER


@kernel(push, allocates=False, inline=True)
def queue_release(held: Held, i: int, d: int) -> None:
    """Note that the release of task i's output on device d is known."""
    if held.output[i] > 0:
        push(held.release, d, held.freed[i], i)


@kernel(append, queue_release, link_ticks, next_release, pop, ready_time, allocates=False)
def append_with_waits(instance: Instance, line: Timeline, held: Held, device: Int, sequence: Int) -> int:
    """Append the tasks in turn; return DONE or the first that finds no memory."""
    for i in sequence:
        d = device[i]
        earliest = max(ready_time(instance, line, i, d), line.free[d])
        start = earliest
        most = held.room[d] - held.output[i] - held.scratch[i]
        while next_release(held, d) <= start or held.bytes[d] > most:
            tick = next_release(held, d)
            if tick == NEVER:
                return int(i)
            start = max(start, tick)
            held.bytes[d] -= held.output[held.release.item[0, d]]
            pop(held.release, d)
        if start > earliest:
            held.waits[0] += 1
        append(instance, line, i, d, start)
        end = line.end[i]
        held.bytes[d] += held.output[i]
        for k in range(instance.in_start[i], instance.in_start[i + 1]):
            u = instance.in_source[k]
            a = line.device[u]
            there = end
            if a != d:
                if not instance.port:
                    continue
                if instance.in_shared[k]:
                    there = line.sent[u, d]
                else:
                    there = line.moves[instance.in_edge[k]]
                    there += link_ticks(instance, instance.in_payload[k], a, instance.kind[a, d])
            held.freed[u] = max(held.freed[u], there)
            held.left[u] -= 1
            if held.left[u] == 0:
                queue_release(held, u, a)
        held.freed[i] = end
        for k in range(instance.out_start[i], instance.out_start[i + 1]):
            b = device[instance.out_target[k]]
            if b == d or instance.port:
                held.left[i] += 1
            else:
                there = end + link_ticks(instance, instance.out_payload[k], d, instance.kind[d, b])
                held.freed[i] = max(held.freed[i], there)
        if held.left[i] == 0:
            queue_release(held, i, d)
    return DONE


class Moves(NamedTuple):
    """The groups that may be evicted, and scratch arrays."""

    movable: Bool
    """(g,) groups without a home from the start."""
    group: Int
    source: Int
    """(EVICTIONS,) the groups evicted by one call of `make_room`, and where they were."""
    missing: Int
    """(m,) bytes that each device lacks for the group."""


def room_made(problem: Problem, groups: Groups, line: Line, k: int) -> Int | None:
    """Return homes (g,) for group k and all groups placed on the timeline, after evictions; None if none helps.

    On the device that lacks the least bytes for k, groups are evicted until k fits, then on the next: first those that
    must be apart from k, then from the first position that is too full the smallest group that leaves enough room, or
    the largest one if none does. Each goes to the device with the least room that can take it.
    """
    run = make_room.select(work_steps(problem))
    trial = make_timeline(problem, groups)
    trial = trial._replace(home=line.home.copy(), room=line.room.copy(), trees=line.trees.copy())
    return trial.home if run(make_instance(problem, groups), trial, make_moves(groups, problem), k) == DONE else None


def missing_bytes(groups: Groups, line: Line, k: int) -> Int:
    """Return the bytes (m,) that each device lacks for group k, which has no home on the timeline."""
    lacking = np.empty(len(line.room), dtype=np.int64)
    for d in range(len(lacking)):
        tree = line.trees[d].copy()
        count_group(groups.live, tree, k, 1)
        lacking[d] = max(tree[1] + groups.memory[k] - line.room[d], 0)
    return lacking


def packed(problem: Problem, groups: Groups, sequence: Int, home: Int) -> Iterator[Int]:
    """Yield placements (g,) of all groups by live memory, from three greedy packings.

    The first keeps the homes (g,), and goes through the other groups in the order of `sequence` (n,), from one device
    to the one with the most room when it is full. The second does so without these homes. The third takes groups by
    decreasing peak to the device with the most room. If no device can take a group, others are evicted.
    """
    first = np.full(problem.n_groups, problem.n_tasks, dtype=np.int64)
    np.minimum.at(first, problem.group[sequence], np.arange(problem.n_tasks))
    falling = np.argsort(-(groups.live.peak + groups.memory), kind="stable")
    in_turn = np.argsort(first, kind="stable")
    run = pack_groups.select(work_steps(problem))
    ways = [(home, in_turn, True), (groups.home, in_turn, True), (groups.home, falling, False)]
    if np.array_equal(home, groups.home):
        del ways[0]
    for given, turn, stay in ways:
        room = groups.room.copy()
        fresh = np.flatnonzero((given >= 0) & (groups.home < 0))
        np.subtract.at(room, given[fresh], groups.memory[fresh])
        start = Groups(groups.memory, groups.feasible, groups.apart_start, groups.apart, given, room, None, groups.live)
        line = make_timeline(problem, start)
        if run(make_instance(problem, groups), line, make_moves(groups, problem), turn, stay) == DONE:
            yield line.home


def make_moves(groups: Groups, problem: Problem) -> Moves:
    """Return the groups that may be evicted, and scratch arrays, before the first eviction."""
    return Moves(
        groups.home < 0,
        np.empty(EVICTIONS, dtype=np.int64),
        np.empty(EVICTIONS, dtype=np.int64),
        np.empty(problem.n_devices, dtype=np.int64),
    )


@kernel(allocates=False)
def bytes_at(live: Live, g: int, leaf: int) -> int:
    """Return what group g holds at a leaf, without its resident bytes."""
    total = 0
    for k in range(live.row[g], live.row[g + 1]):
        if live.first[k] <= leaf <= live.last[k]:
            total += live.output[k]
        if live.first[k] == leaf:
            total += live.scratch[k]
    return int(total)


@kernel(most_bytes, allocates=False)
def room_for(instance: Instance, line: Timeline, g: int, d: int) -> int:
    """Return the least bytes that device d has left while group g holds memory."""
    live, tree = instance.live, line.trees[d]
    most = 0
    for k in range(live.row[g], live.row[g + 1]):
        most = max(most, most_bytes(tree, live.first[k], live.last[k]))
    return int(line.room[d] - most)


@kernel(can_host, room_for, allocates=False)
def other_device(instance: Instance, line: Timeline, g: int, d: int) -> int:
    """Return the device other than d with the least room that can take group g; -1 if there is none."""
    best, least = -1, NEVER
    for b in range(len(line.room)):
        if b != d and can_host(instance, line, g, b):
            room = room_for(instance, line, g, b)
            if best < 0 or room < least:
                best, least = b, room
    return best


@kernel(assign_group, other_device, release_group, allocates=False)
def evict(instance: Instance, line: Timeline, moves: Moves, g: int, count: int) -> bool:
    """Move group g to another device and note it as the eviction number `count`; return False if that fails."""
    if not moves.movable[g] or count == len(moves.group):
        return False
    d = line.home[g]
    b = other_device(instance, line, g, d)
    if b < 0:
        return False
    release_group(instance, line, g)
    assign_group(instance, line, g, b)
    moves.group[count], moves.source[count] = g, d
    return True


@kernel(bytes_at, fullest, other_device, allocates=False)
def best_to_evict(instance: Instance, line: Timeline, moves: Moves, k: int, d: int) -> int:
    """Return the group to evict from device d, which is too full, for group k; -1 if no other can move."""
    tree = line.trees[d]
    leaf, missing = fullest(tree), tree[1] - line.room[d]
    best, size = -1, 0
    for g in range(len(line.home)):
        if line.home[g] != d or g == k or not moves.movable[g]:
            continue
        own = bytes_at(instance.live, g, leaf) + instance.memory[g]
        if own == 0:
            continue
        better = best < 0 or (missing <= own < size if size >= missing else own > size)
        if better and other_device(instance, line, g, d) >= 0:
            best, size = g, own
    return best


@kernel(assign_group, best_to_evict, evict, release_group, allocates=False)
def clear_device(instance: Instance, line: Timeline, moves: Moves, k: int, d: int) -> bool:
    """Assign group k to device d after evictions; return False, with everything as before, if that fails."""
    count, done = 0, True
    for r in range(instance.apart_start[k], instance.apart_start[k + 1]):
        rival = instance.apart[r]
        if line.home[rival] == d:
            done = evict(instance, line, moves, rival, count)
            if not done:
                break
            count += 1
    if done:
        assign_group(instance, line, k, d)
        while line.trees[d, 1] > line.room[d]:
            g = best_to_evict(instance, line, moves, k, d)
            if g < 0 or not evict(instance, line, moves, g, count):
                done = False
                break
            count += 1
        if not done:
            release_group(instance, line, k)
    if not done:
        for at in range(count - 1, -1, -1):
            release_group(instance, line, moves.group[at])
            assign_group(instance, line, moves.group[at], moves.source[at])
    return done


@kernel(assign_group, clear_device, release_group, allocates=False)
def make_room(instance: Instance, line: Timeline, moves: Moves, k: int) -> int:
    """Assign group k, for which no device has room, to one after evictions; return DONE, or k if none can take it."""
    m = len(line.room)
    for d in range(m):
        moves.missing[d] = NEVER
        if instance.feasible[k, d]:
            assign_group(instance, line, k, d)
            moves.missing[d] = line.trees[d, 1] - line.room[d]
            release_group(instance, line, k)
    for _ in range(m):
        best = -1
        for d in range(m):
            if moves.missing[d] < NEVER and (best < 0 or moves.missing[d] < moves.missing[best]):
                best = d
        if best < 0:
            break
        if clear_device(instance, line, moves, k, best):
            return DONE
        moves.missing[best] = NEVER
    return int(k)


@kernel(assign_group, can_host, make_room, room_for, allocates=False)
def pack_groups(instance: Instance, line: Timeline, moves: Moves, turn: Int, stay: bool) -> int:
    """Assign the groups in turn to the device with the most room, or `stay` on the last; return DONE or a group."""
    last = -1
    for k in turn:
        if line.home[k] >= 0:
            continue
        best = last if stay and last >= 0 and can_host(instance, line, k, last) else -1
        if best < 0:
            most = 0
            for d in range(len(line.room)):
                if can_host(instance, line, k, d):
                    room = room_for(instance, line, k, d)
                    if best < 0 or room > most:
                        best, most = d, room
        if best >= 0:
            assign_group(instance, line, k, best)
        elif make_room(instance, line, moves, k) != DONE:
            return int(k)
        last = line.home[k]
    return DONE
