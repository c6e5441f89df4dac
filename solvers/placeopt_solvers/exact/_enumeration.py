"""Enumerate all placements of a tiny problem and all orders of each, by a depth-first search with pruning.

Placement: the colocation groups in turn, each on every feasible device with enough memory left, within all budgets, and
without a group that is separated from it. Of interchangeable devices without any group only the first is tried. A
placement is pruned if the load of one device, as a makespan, and the relocation so far cannot improve the incumbent:
every level of the objective is non-decreasing in both.

Order: operations are the tasks and, under contention, the transfers that the placement needs. A transfer occupies
the ports of `placeopt.model.ports`: those of its two devices, and the channels of shared links. Operations are
appended in every order of non-decreasing starts, each as early as its release time, its predecessors, its device and
its ports allow. That finds the best schedule of the placement: take one in which nothing can start earlier while the
order on each device and port stays. Appended by start, predecessors first among equal ones, its operations get the same
starts, because each starts at its release, when its device is set up, at the end of a window in which its device is
unavailable, or when an operation ends that was appended before it. That holds with renewable resources, too: a task
that starts earlier adds to what is in use only before any task that was appended later starts. A schedule that meets
its deadlines still does when operations start earlier. A partial order is pruned if an operation must be late, or if
the path from an operation to the end, or the remaining work of a device, shows that it cannot improve the incumbent.

Memory is that of the `sum` model, which does not depend on the order. Neither do the swap times of memory tiers, which
count as release times of the placement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from placeopt.engine import StoppedError
from placeopt.model.arrays import Int, by_index
from placeopt.model.memory import earliest_starts
from placeopt.model.objective import METRICS, Value, simplified
from placeopt.model.ports import n_ports, ports_of
from placeopt.model.problem import UNLIMITED, Metric, Problem
from placeopt.model.schedule import Schedule, Transfers, edge_ticks, edge_transfers, makespan

from .._constructive.groups import grouped, possible

COUNTED: tuple[Metric, ...] = ("makespan", "relocation")
"""Metrics that an objective may contain."""

CHECK_EVERY = 1000
"""Steps between two calls of `stop`."""


class Enumeration:
    """One search.

    `least` is the value of the incumbent, None without one: an integer for each level of the objective, `_scale` times
    its value. `moved` are the ticks of relocation of the current partial placement.
    """

    def __init__(
        self, problem: Problem, known: Schedule | None, stop: Callable[[], bool], found: Callable[[Schedule], object]
    ) -> None:
        self.problem, self._stop, self._found = problem, stop, found
        self.placements = self.steps = self.moved = 0
        weights = [
            [sum((term.weight for term in level if term.metric == metric), Fraction(0)) for metric in COUNTED]
            for level in problem.objective.levels
        ]
        self._scale = [math.lcm(*(weight.denominator for weight in level)) for level in weights]
        self._weights = [
            tuple(int(weight * scale) for weight in level) for level, scale in zip(weights, self._scale, strict=True)
        ]
        self.least: tuple[int, ...] | None = None
        if known is not None:
            self.least = self._value(makespan(problem, known), METRICS["relocation"](problem, known))

    @property
    def bound(self) -> Value:
        """The first level of the value of the incumbent."""
        assert self.least is not None
        return simplified(Fraction(self.least[0], self._scale[0]))

    def run(self) -> None:
        """Search to the end.

        Raises a StoppedError if `stop` returned true; the incumbent is kept.
        """
        self._check_stop()
        for device in self._placements():
            self.placements += 1
            _Orders(self, device).append(0, 0)

    def step(self) -> None:
        """Count a step, and regularly check whether to stop."""
        self.steps += 1
        if self.steps % CHECK_EVERY == 0:
            self._check_stop()

    def improves(self, makespan: int) -> bool:
        """Return whether a schedule of the current placement with this makespan improves the incumbent."""
        return self.least is None or self._value(makespan, self.moved) < self.least

    def take(self, schedule: Schedule, makespan: int) -> None:
        """Make a schedule the incumbent."""
        self.least = self._value(makespan, self.moved)
        self._found(schedule)

    def _value(self, makespan: int, relocation: int) -> tuple[int, ...]:
        return tuple(a * makespan + b * relocation for a, b in self._weights)

    def _check_stop(self) -> None:
        if self._stop():
            raise StoppedError

    def _placements(self) -> Iterator[list[int]]:
        problem = self.problem
        groups = grouped(problem)
        if groups.stuck is not None:
            return
        free = np.flatnonzero(groups.home < 0).tolist()
        home, room = groups.home.copy(), groups.room.copy()
        load = by_index(np.add, problem.group, problem.duration, problem.n_groups)
        relocation = by_index(np.add, problem.group, problem.relocation, problem.n_groups)
        settled = np.flatnonzero(home >= 0)
        spent, left = self._uses(load)
        left -= spent[settled, home[settled]].sum(axis=0)
        busy = by_index(np.add, home[settled], load[settled, home[settled]], problem.n_devices)
        members = by_index(np.add, home[settled], 1, problem.n_devices)
        self.moved = int(relocation[settled, home[settled]].sum())

        def place(depth: int) -> Iterator[list[int]]:
            self.step()
            if (left < 0).any() or not self.improves(int(busy.max(initial=0))):
                return
            if depth == len(free):
                yield home[problem.group].tolist()
                return
            k = free[depth]
            fresh: set[int] = set()
            for d in possible(groups, home, room, k).tolist():
                if members[d] == 0:
                    if int(problem.device_class[d]) in fresh:
                        continue
                    fresh.add(int(problem.device_class[d]))
                home[k] = d
                room[d] -= groups.memory[k]
                left[:] -= spent[k, d]
                busy[d] += load[k, d]
                members[d] += 1
                self.moved += int(relocation[k, d])
                yield from place(depth + 1)
                home[k] = -1
                room[d] += groups.memory[k]
                left[:] += spent[k, d]
                busy[d] -= load[k, d]
                members[d] -= 1
                self.moved -= int(relocation[k, d])

        yield from place(0)

    def _uses(self, load: Int) -> tuple[Int, Int]:
        """Return what groups use of the budgets (g, m, b), and the budgets (b,).

        The loads (g, m) of parallel devices become 0: they do not delay anything.
        """
        problem, resources = self.problem, self.problem.resources
        if resources is None:
            return np.zeros((*load.shape, 0), dtype=np.int64), np.zeros(0, dtype=np.int64)
        load[:, resources.parallel] = 0
        spent = np.zeros((*load.shape, len(resources.budgets)), dtype=np.int64)
        amounts = [resources.amounts(r) for r in resources.budgets]
        if amounts:
            np.add.at(spent, problem.group, np.stack(amounts, axis=2))
        return spent, resources.capacity[resources.budgets]


class _Orders:
    """All orders of one placement."""

    def __init__(self, search: Enumeration, device: list[int]) -> None:
        problem = search.problem
        n, m = problem.n_tasks, problem.n_devices
        self.search, self.device = search, device
        self.ticks = [int(problem.duration[i, d]) for i, d in enumerate(device)]
        given = problem.resources
        self.resources: list[tuple[int, ...]] = [() if problem.parallel[d] else (d,) for d in device]
        # What each task uses of renewable resources; nothing if it takes no time.
        self.uses: list[list[tuple[int, int]]] = []
        if given is not None and given.renewable.any():
            self.capacity: list[int] = given.capacity.tolist()
            for i, d in enumerate(device):
                used = given.used(i, d) if self.ticks[i] else []
                self.uses.append([(r, amount) for r, amount in used if given.renewable[r]])
        self.before: list[list[tuple[int, int]]] = [[] for _ in device]
        self.carrier: list[int] = []
        where = np.array(device, dtype=np.int64)
        way, sender = edge_ticks(problem, where).tolist(), edge_transfers(problem, where).tolist()
        move: dict[int, int] = {}
        for e, (i, j) in enumerate(zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True)):
            if sender[e] < 0 or not problem.contends:
                self.before[j].append((i, way[e]))
                continue
            if sender[e] not in move:
                move[sender[e]] = len(self.ticks)
                self.ticks.append(way[e])
                self.resources.append(tuple(m + port for port in ports_of(problem, device[i], device[j])))
                self.before.append([(i, 0)])
                self.carrier.append(sender[e])
            self.before[j].append((move[sender[e]], 0))
        self.release = earliest_starts(problem, where).tolist() + [0] * len(self.carrier)
        # Ticks from an operation's start to the end of its successors; its latest start that meets all deadlines.
        self.tail = list(self.ticks)
        due = problem.deadline.tolist() + [UNLIMITED] * len(self.carrier)
        self.latest = [end - ticks for end, ticks in zip(due, self.ticks, strict=True)]
        for i in problem.order[::-1].tolist():
            self._pass_back(i)
            for b, _ in self.before[i]:
                if b >= n:
                    self._pass_back(b)
        self.start: list[int | None] = [None] * len(self.ticks)
        self.free = [0] * (m + n_ports(problem))
        self.left = [0] * len(self.free)
        # What each device is set up for: its last task that lasts, in any mode, None before the first.
        self.station = list(range(m)) if problem.setups is None else problem.setups.station.tolist()
        self.sets_up = [False] * m if problem.setups is None else problem.setups.used().tolist()
        self.last: list[int | None] = [None] * m
        for o, resources in enumerate(self.resources):
            for r in resources:
                self.left[r] += self.ticks[o]

    def _pass_back(self, o: int) -> None:
        for b, lag in self.before[o]:
            self.tail[b] = max(self.tail[b], self.ticks[b] + lag + self.tail[o])
            self.latest[b] = min(self.latest[b], self.latest[o] - lag - self.ticks[b])

    def append(self, last: int, makespan: int) -> None:
        """Append the remaining operations in every order to those that start by tick `last`."""
        self.search.step()
        candidates = []
        length = makespan
        for o, begun in enumerate(self.start):
            if begun is not None:
                continue
            earliest, ready = self._earliest(o)
            if max(earliest, last) > self.latest[o]:
                return
            length = max(length, max(earliest, last) + self.tail[o])
            if ready and earliest >= last:
                candidates.append((o, earliest))
        devices = self.search.problem.n_devices
        length = max([length, *(f + w for f, w in zip(self.free[:devices], self.left[:devices], strict=True) if w)])
        if not self.search.improves(length):
            return
        if None not in self.start:
            self.search.take(self._schedule(), makespan)
            return
        for o, begin in candidates:
            end, d = begin + self.ticks[o], self.station[self.device[o]] if o < len(self.device) else 0
            last_there = self.last[d]
            if o < len(self.device) and self.ticks[o]:
                self.last[d] = o
            saved = [self.free[r] for r in self.resources[o]]
            self.start[o] = begin
            for r in self.resources[o]:
                self.free[r] = end
                self.left[r] -= self.ticks[o]
            self.append(begin, max(makespan, end) if o < len(self.device) else makespan)
            self.start[o], self.last[d] = None, last_there
            for r, tick in zip(self.resources[o], saved, strict=True):
                self.free[r] = tick
                self.left[r] += self.ticks[o]

    def _earliest(self, o: int) -> tuple[int, bool]:
        """Return a lower bound of an operation's start, and whether all its predecessors have been appended."""
        earliest, ready = self.release[o], True
        for r in self.resources[o]:
            earliest = max(earliest, self.free[r])
        for b, lag in self.before[o]:
            begun = self.start[b]
            if begun is None:
                ready = False
            else:
                earliest = max(earliest, begun + self.ticks[b] + lag)
        if o < len(self.device):
            earliest = self._available(o, max(earliest, self._set_up(o)))
        return earliest, ready

    def _set_up(self, i: int) -> int:
        """Return the tick from which its device is set up for a task, after the tasks appended so far."""
        setups, last = self.search.problem.setups, self.last[self.station[self.device[i]]]
        begun = None if last is None else self.start[last]
        if setups is None or not self.ticks[i] or last is None or begun is None:
            return 0
        if not self.sets_up[self.device[i]]:  # such as parallel devices
            return 0
        return begun + self.ticks[last] + setups.between(self.device[i], last, i)

    def _available(self, i: int, tick: int) -> int:
        """Return the first tick from this one on at which a task has its device and its resources while it runs."""
        windows = self.search.problem.unavailable
        while True:
            later = tick if windows is None else windows.clear_of(self.device[i], tick, self.ticks[i])
            for r, amount in self.uses[i] if self.uses else ():
                later = max(later, self._free(r, amount, later, later + self.ticks[i]))
            if later == tick:
                return tick
            tick = later

    def _free(self, r: int, amount: int, begin: int, end: int) -> int:
        """Return the first tick, from `begin` on, at which a task that would run until `end` may have an amount.

        It may be too early: what begins later is not looked at.
        """
        runs = [
            (begun, begun + self.ticks[j], used)
            for j, begun in enumerate(self.start[: len(self.device)])
            if begun is not None
            for resource, used in self.uses[j]
            if resource == r
        ]
        for at in sorted({begin, *(first for first, _, _ in runs if begin < first < end)}):
            there = [(last, used) for first, last, used in runs if first <= at < last]
            if sum(used for _, used in there) + amount > self.capacity[r]:
                return min(last for last, _ in there)
        return begin

    def _schedule(self) -> Schedule:
        n = len(self.device)
        start = np.array([begin or 0 for begin in self.start], dtype=np.int64)
        ports = self.search.problem.contends
        moves = Transfers(np.array(self.carrier, dtype=np.int64), start[n:]) if ports else None
        return Schedule(np.array(self.device, dtype=np.int64), start[:n], moves)
