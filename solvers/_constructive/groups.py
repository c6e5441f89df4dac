"""What constructive heuristics must know of memory, groups and separation, and packing by memory alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import Problem, group_memory, group_separation

SEARCH_NODES = 20_000
"""Placements that the search of `packings` tries before it gives up."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The colocation groups as what has to be placed; g of them on m devices.

    Attributes
    ----------
    memory
        (g,) bytes of all members, counted as under the `sum` memory model.
    feasible
        (g, m), what is left of the group's devices: those that every member may use, with room for
        the group beside the groups that can go nowhere else, and not taken by one of those that
        must be apart from it.
    apart_start, apart
        Separation as CSR: group k must be apart from apart[apart_start[k]:apart_start[k + 1]].
    home
        (g,) the device of each group with only one left, -1 for the others.
    room
        (m,) bytes left beside the groups that have their home.
    stuck
        A group without any device left, None if all have one. Under the `sum` model it proves that the
        problem has no schedule.
    """

    memory: Int
    feasible: Bool
    apart_start: Int
    apart: Int
    home: Int
    room: Int
    stuck: int | None


def grouped(problem: Problem) -> Groups:
    """The groups of a problem; those with only one device possible have it reserved."""
    g = problem.n_groups
    memory = group_memory(problem)
    apart_start, apart = group_separation(problem)

    feasible = problem.group_feasible() & (memory[:, None] <= problem.capacity)
    owner = np.repeat(np.arange(g), np.diff(apart_start))
    feasible[apart[apart == owner]] = False  # nothing is apart from itself
    home = np.full(g, -1, dtype=np.int64)
    room = problem.capacity.copy()
    stuck = None
    # Where every group has every device to choose from, nothing is settled.
    while stuck is None and not (problem.n_devices > 1 and feasible.all()):
        options = feasible.sum(axis=1)
        if g and options.min() == 0:
            stuck = int(options.argmin())
            break
        settled = np.flatnonzero((options == 1) & (home < 0))
        if len(settled) == 0:
            break
        home[settled] = feasible[settled].argmax(axis=1)
        np.subtract.at(room, home[settled], memory[settled])
        for k in settled[apart_start[settled] < apart_start[settled + 1]]:
            feasible[apart[apart_start[k] : apart_start[k + 1]], home[k]] = False
        free = home < 0
        feasible[free] &= memory[free, None] <= room
        if (room < 0).any():
            there = np.flatnonzero(home == room.argmin())
            stuck = int(there[memory[there].argmax()])
    return Groups(memory, feasible, apart_start, apart, home, room, stuck)


def packings(problem: Problem, groups: Groups) -> Iterator[Int]:
    """Placements (g,) of all groups that keep memory, feasibility and separation, each found in another way.

    In topological order onto one device until it is full, then the next; by falling memory onto the
    device with most room; likewise with least room. Where all three fail, a search through at
    most SEARCH_NODES placements; where that fails, too, another in which separated groups come one after another.
    """
    undecided = np.flatnonzero(groups.home < 0)
    first_task = np.full(len(groups.home), problem.n_tasks, dtype=np.int64)
    np.minimum.at(first_task, problem.group[problem.order], np.arange(problem.n_tasks))
    in_order = undecided[np.argsort(first_task[undecided], kind="stable")]
    falling = undecided[np.argsort(-groups.memory[undecided], kind="stable")]
    found = False
    for sequence, preference in ((in_order, _stay), (falling, _most_room), (falling, _least_room)):
        home = _greedy(groups, sequence, preference)
        if home is not None:
            found = True
            yield home
    if not found:
        # Few options first, then much memory: what is hard to place is tried before room runs out.
        options = groups.feasible[undecided].sum(axis=1)
        sequence = undecided[np.lexsort((-groups.memory[undecided], options))]
        home = _search(groups, sequence, problem.device_class)
        if home is None and len(groups.apart):
            home = _search(groups, _rivals_next(groups, sequence), problem.device_class)
        if home is not None:
            yield home


def possible(groups: Groups, home: Int, room: Int, k: int) -> Int:
    """The devices that group k can go to beside those placed already, in order."""
    free = groups.feasible[k] & (groups.memory[k] <= room)
    taken = home[groups.apart[groups.apart_start[k] : groups.apart_start[k + 1]]]
    free[taken[taken >= 0]] = False
    return np.flatnonzero(free)


def _stay(room: Int, devices: Int, last: int) -> int:
    return last if last in devices else int(devices[room[devices].argmax()])


def _most_room(room: Int, devices: Int, last: int) -> int:  # noqa: ARG001 - preferences share a signature
    return int(devices[room[devices].argmax()])


def _least_room(room: Int, devices: Int, last: int) -> int:  # noqa: ARG001
    return int(devices[room[devices].argmin()])


def _greedy(groups: Groups, sequence: Int, preference: Callable[[Int, Int, int], int]) -> Int | None:
    home, room, last = groups.home.copy(), groups.room.copy(), -1
    for k in sequence.tolist():
        devices = possible(groups, home, room, k)
        if len(devices) == 0:
            return None
        last = preference(room, devices, last)
        home[k] = last
        room[last] -= groups.memory[k]
    return home


def _rivals_next(groups: Groups, sequence: Int) -> Int:
    """The sequence, but what separation connects with a group comes with it, breadth-first: each then meets rivals that
    stand already, and where few devices leave no choice (two: one side or the other) a search need not go far back."""
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
    """Depth-first search in a fixed order of groups, the device with least room first."""
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
                # Of the unused devices of a class one is as good as another.
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
