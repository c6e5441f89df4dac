"""Colocation groups as units of placement: their memory and devices, packings by memory, evictions to make room."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import Problem, group_memory, group_separation

from .profiles import Live, no_profile

SEARCH_NODES = 20_000
"""Placements that the search in `packings` tries at most."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The g colocation groups of a problem and their possible homes among m devices."""

    memory: Int
    """(g,) bytes of all members, counted as under the memory model `sum`; with live memory their resident bytes."""
    feasible: Bool
    """(g, m) the devices that every member may use, that have room for the group in addition to the groups with a home,
    and that are not the home of a group that must be separate."""
    apart_start: Int
    apart: Int
    """Separation as CSR: group k must be apart from apart[apart_start[k]:apart_start[k + 1]]."""
    home: Int
    """(g,) the device of each group with a single possible device, -1 for the others."""
    room: Int
    """(m,) bytes left by the groups with a home."""
    stuck: int | None
    """A group without a possible device; None if there is none. Under the memory model `sum` it proves that the problem
    is infeasible."""
    live: Live = field(default_factory=no_profile)
    """Live memory, if that counts: it must fit in addition to `memory`."""


def grouped(problem: Problem, memory: Int | None = None) -> Groups:
    """Return the groups of a problem; a group with a single possible device has its home there.

    `memory` (g,) replaces the bytes of groups under the memory model `sum`, if given.
    """
    g = problem.n_groups
    memory = group_memory(problem) if memory is None else memory
    apart_start, apart = group_separation(problem)

    feasible = problem.group_feasible() & (memory[:, None] <= problem.capacity)
    owner = np.repeat(np.arange(g), np.diff(apart_start))
    feasible[apart[apart == owner]] = False  # no group is apart from itself
    home = np.full(g, -1, dtype=np.int64)
    room = problem.capacity.copy()
    stuck = None
    # If every group may use every device, no home is forced.
    while stuck is None and not (problem.n_devices > 1 and feasible.all()):
        options = feasible.sum(axis=1)
        if g and options.min() == 0:
            stuck = int(options.argmin())
            break
        forced = np.flatnonzero((options == 1) & (home < 0))
        if len(forced) == 0:
            break
        home[forced] = feasible[forced].argmax(axis=1)
        np.subtract.at(room, home[forced], memory[forced])
        for k in forced[apart_start[forced] < apart_start[forced + 1]]:
            feasible[apart[apart_start[k] : apart_start[k + 1]], home[k]] = False
        free = home < 0
        feasible[free] &= memory[free, None] <= room
        if (room < 0).any():
            there = np.flatnonzero(home == room.argmin())
            stuck = int(there[memory[there].argmax()])
    return Groups(memory, feasible, apart_start, apart, home, room, stuck)


def with_homes(groups: Groups, home: Int) -> Groups:
    """Return the groups with more homes (g,), -1 for groups that are still free."""
    room = groups.room.copy()
    fresh = np.flatnonzero((home >= 0) & (groups.home < 0))
    np.subtract.at(room, home[fresh], groups.memory[fresh])
    return replace(groups, home=home, room=room)


def without_memory(problem: Problem) -> Groups:
    """Return groups without memory, separation and homes, for tasks whose devices are known."""
    g, m = problem.n_groups, problem.n_devices
    nothing, nowhere = np.zeros(g, dtype=np.int64), np.full(g, -1, dtype=np.int64)
    everywhere = np.ones((g, m), dtype=np.bool_)
    return Groups(nothing, everywhere, np.zeros(g + 1, dtype=np.int64), nothing[:0], nowhere, problem.capacity, None)


def packings(problem: Problem, groups: Groups) -> Iterator[Int]:
    """Yield placements (g,) of all groups that keep memory, feasibility and separation.

    Three greedy packings: in topological order onto one device until it is full, then the next; by decreasing memory
    onto the device with the most room; the same with the least room. If all three fail, a search through at most
    SEARCH_NODES placements; if that fails too, a second search that places separated groups next to each other.
    """
    undecided = np.flatnonzero(groups.home < 0)
    first_task = np.full(len(groups.home), problem.n_tasks, dtype=np.int64)
    np.minimum.at(first_task, problem.group[problem.order], np.arange(problem.n_tasks))
    in_order = undecided[np.argsort(first_task[undecided], kind="stable")]
    falling = undecided[np.argsort(-groups.memory[undecided], kind="stable")]
    found = False
    for sequence, sign, stay in ((in_order, 1, True), (falling, 1, False), (falling, -1, False)):
        home = _greedy(groups, sequence, sign, stay=stay)
        if home is not None:
            found = True
            yield home
    if not found:
        # Groups with few options first, then those with much memory: they are the hardest to place.
        options = groups.feasible[undecided].sum(axis=1)
        sequence = undecided[np.lexsort((-groups.memory[undecided], options))]
        home = _search(groups, sequence, problem.device_class)
        if home is None and len(groups.apart):
            home = _search(groups, _rivals_next(groups, sequence), problem.device_class)
        if home is not None:
            yield home


def possible(groups: Groups, home: Int, room: Int, k: int) -> Int:
    """Return the devices that can take group k in addition to the placed groups, in order."""
    free = groups.feasible[k] & (groups.memory[k] <= room)
    taken = home[groups.apart[groups.apart_start[k] : groups.apart_start[k + 1]]]
    free[taken[taken >= 0]] = False
    return np.flatnonzero(free)


def _greedy(groups: Groups, sequence: Int, sign: int, *, stay: bool) -> Int | None:
    """Place groups in turn on the device with the most (sign 1) or least (-1) room, or stay on the last one."""
    home, room, last = groups.home.copy(), groups.room.copy(), -1
    for k in sequence.tolist():
        devices = possible(groups, home, room, k)
        if len(devices) == 0:
            return None
        if not (stay and last in devices):
            last = int(devices[(sign * room[devices]).argmax()])
        home[k] = last
        room[last] -= groups.memory[k]
    return home


def _rivals_next(groups: Groups, sequence: Int) -> Int:
    """Reorder the sequence so that groups connected by separation follow each other, breadth-first.

    Each group then meets rivals that are placed already. With few devices a search detects a conflict early.
    """
    seen = groups.home >= 0
    order: list[int] = []
    for first in sequence.tolist():
        start = len(order)
        if not seen[first]:
            seen[first] = True
            order.append(first)
        while start < len(order):
            k = order[start]
            start += 1
            for other in groups.apart[groups.apart_start[k] : groups.apart_start[k + 1]].tolist():
                if not seen[other]:
                    seen[other] = True
                    order.append(other)
    return np.array(order, dtype=np.int64)


def _search(groups: Groups, sequence: Int, device_class: Int) -> Int | None:
    """Search depth-first in a fixed order of groups, the device with the least room first; None if it fails."""
    home, room = groups.home.copy(), groups.room.copy()
    used = np.bincount(home[home >= 0], minlength=len(room))
    rest = np.append(np.cumsum(groups.memory[sequence][::-1])[::-1], 0)
    choices: list[list[int]] = []
    nodes = 0
    while nodes < SEARCH_NODES:
        depth = len(choices)
        if depth == len(sequence):
            return home
        options: list[int] = []
        if rest[depth] <= sum(room.tolist()):
            k = int(sequence[depth])
            devices = possible(groups, home, room, k)
            fresh: set[int] = set()
            for d in devices[np.argsort(-room[devices], kind="stable")].tolist():
                # Unused devices of one class are interchangeable.
                if used[d] or device_class[d] not in fresh:
                    options.append(d)
                if not used[d]:
                    fresh.add(int(device_class[d]))
        choices.append(options)
        while not choices[-1]:
            choices.pop()
            if not choices:
                return None
            k = int(sequence[len(choices) - 1])
            room[home[k]] += groups.memory[k]
            used[home[k]] -= 1
            home[k] = -1
        k, d = int(sequence[len(choices) - 1]), choices[-1].pop()
        home[k] = d
        room[d] -= groups.memory[k]
        used[d] += 1
        nodes += 1
    return None


def with_room_for(groups: Groups, home: Int, room: Int, k: int) -> Int | None:
    """Return homes (g,) for group k and all groups placed before, after evictions; None if no eviction helps.

    On each device that group k may use, groups that fit elsewhere are evicted until k fits: first those that must be
    apart from k, then the smallest group that leaves enough room, or the largest one if none does. The device from
    which the least memory moves is chosen; ties go to the lowest index.
    """
    best: tuple[int, Int] | None = None
    for d in np.flatnonzero(groups.feasible[k]).tolist():
        trial_home, trial_room = home.copy(), room.copy()
        moved = _cleared(groups, trial_home, trial_room, k, d)
        if moved is not None and (best is None or moved < best[0]):
            trial_home[k] = d
            best = moved, trial_home
    return None if best is None else best[1]


def _cleared(groups: Groups, home: Int, room: Int, k: int, d: int) -> int | None:
    """Evict groups from device d until group k fits, in place; return the bytes moved, None if k cannot fit."""
    moved = 0
    apart = groups.apart[groups.apart_start[k] : groups.apart_start[k + 1]]
    for other in apart[home[apart] == d].tolist():
        if groups.home[other] >= 0 or not _relocated(groups, home, room, other):
            return None
        moved += int(groups.memory[other])
    while (missing := int(groups.memory[k] - room[d])) > 0:
        there = np.flatnonzero((home == d) & (groups.home < 0) & (groups.memory > 0))
        elsewhere = groups.feasible[there] & (groups.memory[there, None] <= room)
        elsewhere[:, d] = False
        there = there[elsewhere.any(axis=1)]
        # The smallest sufficient group first, then larger ones, then the insufficient ones from the largest on.
        size = groups.memory[there]
        ways = there[np.lexsort((np.where(size >= missing, size, -size), size < missing))]
        evicted = next((other for other in ways.tolist() if _relocated(groups, home, room, other)), None)
        if evicted is None:
            return None
        moved += int(groups.memory[evicted])
    return moved


def _relocated(groups: Groups, home: Int, room: Int, k: int) -> bool:
    """Move a group to the other device where it leaves the least room; return False if no other can take it."""
    devices = possible(groups, home, room, k)
    devices = devices[devices != home[k]]
    if len(devices) == 0:
        return False
    target = int(devices[room[devices].argmin()])
    room[home[k]] += groups.memory[k]
    room[target] -= groups.memory[k]
    home[k] = target
    return True
