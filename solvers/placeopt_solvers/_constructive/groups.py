"""Colocation groups as units of placement: their memory, budgets and devices, packings, evictions to make room.

Budgets count beyond the least that each group uses on any of its devices: so a heuristic that keeps one budget always
leaves enough of it for the groups that are still to be placed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from placeopt.model.arrays import Bool, Float, Int, by_index
from placeopt.model.building import by_first_appearance
from placeopt.model.problem import Problem, group_memory, group_separation

from .profiles import Live, no_profile

SEARCH_NODES = 20_000
"""Placements that the search in `packings` tries at most."""


def with_fixed_apart(problem: Problem) -> Problem:
    """Return the problem without the groups all of whose tasks have one device: they stay together anyway.

    Searches that move groups as a whole then treat such tasks as single ones.
    """
    chooses = np.bincount(problem.group, problem.feasible.sum(axis=1) != 1) > 0
    labels = np.where(chooses[problem.group], problem.group, problem.n_tasks + np.arange(problem.n_tasks))
    return replace(problem, group=by_first_appearance(labels))


@dataclass(frozen=True, slots=True)
class Budgets:
    """What g groups use of b budgets on m devices, beyond the least that each uses on any device."""

    used: Int
    """(g, m, b) amounts."""
    left: Int
    """(b,) what the groups with a home leave; negative if they exceed it."""
    row: Int
    resource: Int
    amount: Int
    """The amounts that are not 0, as CSR by (group, device)."""

    def spent(self, groups: Int, devices: Int, sign: int = 1) -> Budgets:
        """Return the budgets after groups got homes on devices, or with sign -1 left them."""
        return replace(self, left=self.left - sign * self.used[groups, devices].sum(axis=0))


def budgets_of(problem: Problem, feasible: Bool) -> Budgets | None:
    """Return what groups use of budgets; `feasible` (g, m). None without budgets, which every placement then keeps."""
    resources = problem.resources
    if resources is None or resources.renewable.all():
        return None
    kinds, extra, left = resources.budgets, list[Int](), list[int]()
    member = np.argsort(problem.group, kind="stable")
    first = np.searchsorted(problem.group[member], np.arange(problem.n_groups))
    for r in kinds.tolist():
        most = int(resources.capacity[r])
        each = np.minimum(resources.amounts(r), most + 1)[member]
        if (most + 1) * problem.n_tasks >= 2**63:
            each = each.astype(object)
        of_group = np.add.reduceat(each, first, axis=0) if len(member) else each
        least = np.where(feasible, of_group, most + 1).min(axis=1, initial=most + 1)
        extra.append(np.clip(of_group - least[:, None], 0, most + 1))
        left.append(max(most - sum(least.tolist()), -(2**62)))
    used = np.stack(extra, axis=2).astype(np.int64)
    of_pair, resource = np.nonzero(used.reshape(-1, len(kinds)))
    row = np.searchsorted(of_pair, np.arange(feasible.size + 1))
    return Budgets(
        used, np.array(left, dtype=np.int64), row.astype(np.int64), resource.astype(np.int64), used[used != 0]
    )


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
    budgets: Budgets | None = None
    """What groups use of budgets; None without any."""


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
    budgets = budgets_of(problem, feasible)
    if budgets is not None:
        feasible &= (budgets.used <= np.maximum(budgets.left, 0)).all(axis=2)
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
        if budgets is not None:
            budgets = budgets.spent(forced, home[forced])
        for k in forced[apart_start[forced] < apart_start[forced + 1]]:
            feasible[apart[apart_start[k] : apart_start[k + 1]], home[k]] = False
        free = home < 0
        feasible[free] &= memory[free, None] <= room
        if budgets is not None:
            feasible[free] &= (budgets.used[free] <= np.maximum(budgets.left, 0)).all(axis=2)
        if (room < 0).any():
            there = np.flatnonzero(home == room.argmin())
            stuck = int(there[memory[there].argmax()])
    if budgets is not None and g and (budgets.left < 0).any():
        stuck = int(budgets.used[np.arange(g), np.maximum(home, 0)].sum(axis=1).argmax())
    return Groups(memory, feasible, apart_start, apart, home, room, stuck, budgets=budgets)


def with_homes(groups: Groups, home: Int) -> Groups:
    """Return the groups with more homes (g,), -1 for groups that are still free."""
    room = groups.room.copy()
    fresh = np.flatnonzero((home >= 0) & (groups.home < 0))
    np.subtract.at(room, home[fresh], groups.memory[fresh])
    budgets = groups.budgets
    if budgets is not None:
        budgets = budgets.spent(fresh, home[fresh])
    return replace(groups, home=home, room=room, budgets=budgets)


def without_memory(problem: Problem) -> Groups:
    """Return groups without memory, separation and homes, for tasks whose devices are known."""
    g, m = problem.n_groups, problem.n_devices
    nothing, nowhere = np.zeros(g, dtype=np.int64), np.full(g, -1, dtype=np.int64)
    everywhere = np.ones((g, m), dtype=np.bool_)
    return Groups(nothing, everywhere, np.zeros(g + 1, dtype=np.int64), nothing[:0], nowhere, problem.capacity, None)


def possible(groups: Groups, home: Int, room: Int, k: int) -> Int:
    """Return the devices that can take group k in addition to the placed groups, in order, regardless of budgets."""
    free = groups.feasible[k] & (groups.memory[k] <= room)
    taken = home[groups.apart[groups.apart_start[k] : groups.apart_start[k + 1]]]
    free[taken[taken >= 0]] = False
    return np.flatnonzero(free)


@dataclass(slots=True)
class Placed:
    """Homes (g,) of some groups, and what they leave: bytes (m,) and amounts (b,) of budgets."""

    groups: Groups
    home: Int
    room: Int
    left: Int

    def copy(self) -> Placed:
        """Return a copy that can be changed."""
        return Placed(self.groups, self.home.copy(), self.room.copy(), self.left.copy())

    def possible(self, k: int) -> Int:
        """Return the devices that can take group k, or that it can move to if it has a home, in order."""
        devices, home = possible(self.groups, self.home, self.room, k), self.home[k]
        if home >= 0:
            devices = devices[devices != home]
        budgets = self.groups.budgets
        if budgets is not None:
            left = self.left if home < 0 else self.left + budgets.used[k, home]
            devices = devices[(budgets.used[k, devices] <= left).all(axis=1)]
        return devices

    def parts(self, k: int) -> Float:
        """Return the sum (m,) of the parts that group k uses of what is left of budgets on each device."""
        budgets = self.groups.budgets
        if budgets is None:
            return np.zeros(len(self.room))
        return np.asarray((budgets.used[k] / np.maximum(self.left, 1)).sum(axis=1))

    def put(self, k: int, d: int) -> None:
        """Give group k a home, or with -1 none."""
        for device, sign in ((int(self.home[k]), -1), (d, 1)):
            if device >= 0:
                self.room[device] -= sign * self.groups.memory[k]
                if self.groups.budgets is not None:
                    self.left -= sign * self.groups.budgets.used[k, device]
        self.home[k] = d


def placed(groups: Groups, home: Int, room: Int) -> Placed:
    """Return a copy of homes (g,) that leave `room` (m,), with what they leave of budgets."""
    fresh = np.flatnonzero((home >= 0) & (groups.home < 0))
    budgets = groups.budgets
    left = np.zeros(0, dtype=np.int64) if budgets is None else budgets.spent(fresh, home[fresh]).left
    return Placed(groups, home.copy(), room.copy(), left)


def packings(problem: Problem, groups: Groups) -> Iterator[Int]:
    """Yield placements (g,) of all groups that keep memory, budgets, feasibility and separation.

    Three greedy packings: in topological order onto one device until it is full, then the next; by decreasing memory
    onto the device with the most room; the same with the least room. With budgets, a fourth: in topological order onto
    the device where the group uses the least parts of what is left. If all fail, a search through at most SEARCH_NODES
    placements; if that fails too, a second search that places separated groups next to each other.
    """
    undecided = np.flatnonzero(groups.home < 0)
    n = problem.n_tasks
    first_task = by_index(np.minimum, problem.group[problem.order], np.arange(n), len(groups.home), n)
    in_order = undecided[np.argsort(first_task[undecided], kind="stable")]
    falling = undecided[np.argsort(-groups.memory[undecided], kind="stable")]
    found = False
    ways = [(in_order, 1, True), (falling, 1, False), (falling, -1, False)]
    if groups.budgets is not None:
        ways.append((in_order, 0, False))
    for sequence, sign, stay in ways:
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


def _greedy(groups: Groups, sequence: Int, sign: int, *, stay: bool) -> Int | None:
    """Place groups in turn on the device with the most (sign 1) or least (-1) room, or stay on the last one.

    With sign 0, on the device with the least sum of the parts that the group uses of what is left of budgets.
    """
    state, last = placed(groups, groups.home, groups.room), -1
    for k in sequence.tolist():
        devices = state.possible(k)
        if len(devices) == 0:
            return None
        if sign == 0:
            last = int(devices[state.parts(k)[devices].argmin()])
        elif not (stay and last in devices):
            last = int(devices[(sign * state.room[devices]).argmax()])
        state.put(k, last)
    return state.home


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
    """Search depth-first in a fixed order of groups; None if it fails.

    The device with the least room comes first; with budgets, the one where the group uses the least parts of them.
    """
    state = placed(groups, groups.home, groups.room)
    home, room = state.home, state.room
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
            devices = state.possible(k)
            fresh: set[int] = set()
            worth = room[devices] if groups.budgets is None else state.parts(k)[devices]
            for d in devices[np.argsort(-worth, kind="stable")].tolist():
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
            used[home[k]] -= 1
            state.put(k, -1)
        k, d = int(sequence[len(choices) - 1]), choices[-1].pop()
        state.put(k, d)
        used[d] += 1
        nodes += 1
    return None


def with_room_for(groups: Groups, home: Int, room: Int, k: int) -> Int | None:
    """Return homes (g,) for group k and all groups placed before, after evictions; None if no eviction helps.

    On each device that group k may use, groups that fit elsewhere are evicted until k fits: first those that must be
    apart from k, then the smallest group that leaves enough room, or the largest one if none does; then groups of any
    device that use less of a budget elsewhere which k lacks. The device from which the least memory moves is chosen;
    ties go to the lowest index.
    """
    best: tuple[int, Int] | None = None
    start = placed(groups, home, room)
    for d in np.flatnonzero(groups.feasible[k]).tolist():
        trial = start.copy()
        moved = _cleared(trial, k, d)
        if moved is not None and (best is None or moved < best[0]):
            trial.home[k] = d
            best = moved, trial.home
    return None if best is None else best[1]


def _cleared(trial: Placed, k: int, d: int) -> int | None:
    """Evict groups until group k fits on device d, in place; return the bytes moved, None if k cannot fit."""
    groups, home, room = trial.groups, trial.home, trial.room
    moved = 0
    apart = groups.apart[groups.apart_start[k] : groups.apart_start[k + 1]]
    for other in apart[home[apart] == d].tolist():
        if groups.home[other] >= 0 or not _relocated(trial, other):
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
        evicted = next((other for other in ways.tolist() if _relocated(trial, other)), None)
        if evicted is None:
            return None
        moved += int(groups.memory[evicted])
    room[d] -= groups.memory[k]
    movable = groups.home < 0
    while (evicted := _saved(trial, k, d, movable)) is not None:
        if evicted < 0:
            return None
        moved += int(groups.memory[evicted])
        movable[evicted] = False  # once, because a move may use more of another budget
    return moved


def _relocated(trial: Placed, k: int) -> bool:
    """Move a group to the other device where it leaves the least room; return False if no other can take it."""
    devices = trial.possible(k)
    if len(devices) == 0:
        return False
    trial.put(k, int(devices[trial.room[devices].argmin()]))
    return True


def _saved(trial: Placed, k: int, d: int, movable: Bool) -> int | None:
    """Move a movable group (g,) to where it uses less of the first budget that k lacks on device d; return the group.

    None if k lacks nothing, -1 if no move saves any of it without using more of others that k lacks.
    """
    groups, budgets = trial.groups, trial.groups.budgets
    if budgets is None:
        return None
    short = budgets.used[k, d] - trial.left
    if (short <= 0).all():
        return None
    lacking = np.flatnonzero(short > 0)
    others = np.flatnonzero((trial.home >= 0) & movable)
    here = budgets.used[others, trial.home[others]]
    gain = (here[:, None, :] - budgets.used[others])[:, :, lacking]
    worth = np.where((gain >= 0).all(axis=2) & groups.feasible[others], gain[:, :, 0], 0)
    # The smallest sufficient gain first, then larger ones, then the insufficient ones from the largest on.
    which, where = np.nonzero(worth)
    size, missing = worth[which, where], short[lacking[0]]
    for way in np.lexsort((np.where(size >= missing, size, -size), size < missing)).tolist():
        other, device = int(others[which[way]]), int(where[way])
        if device in trial.possible(other):
            trial.put(other, device)
            return other
    return -1
