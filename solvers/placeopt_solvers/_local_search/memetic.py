"""Memetic search: a population of schedules, each improved by tabu search over critical paths.

P. Moscato: On evolution, search, optimization, genetic algorithms and martial arts, Caltech C3P 826, 1989; for shops,
B. Peng, Z. Lü, T. C. E. Cheng: A tabu search/path relinking algorithm to solve the job shop scheduling problem,
Computers & Operations Research 53, 2015, doi:10.1016/j.cor.2014.08.006. The engine's `critical.hpp` states the moves
and their sources.

A new schedule lies between two others: its order is that of the weighted means of the positions that tasks have in
both orders, a topological order again, and each group is on its device in one of them. Departures from Peng et al.:
this point replaces the path of swaps from one schedule to the other; of two schedules that mostly agree, the population
keeps the shorter one, since many different ones have the same makespan; a population that no longer improves is
replaced by a larger one, because small ones are sooner good and large ones better in the end. If most tasks are in
groups, which tabu search moves only to a few drawn devices, moves in windows improve each schedule first. They lead
from one schedule to different ones, so that the population begins with given schedules instead of random ones.

This works without contention, deadlines, live memory and memory tiers, as `searches_windows` says.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, durations, makespan, sequence

from .._constructive.construction import construct_with_repair
from .._constructive.groups import with_fixed_apart
from .._constructive.priorities import ready_order
from .._constructive.sequences import insert_tasks
from .._runs.validity import valid
from .instance import make_instance
from .windows import PLAN, WindowSearch


@dataclass(frozen=True, slots=True)
class Tuning:
    """Parameters; `benchmarks/shops.py` measures their effect."""

    size: int = 10  # schedules of the first population
    growth: float = 1.5  # size of the next one, relative to the last
    starts: int = 4  # given schedules, the shortest ones
    idle: int = 20  # new schedules per member without a better population after which a new one begins
    mix: tuple[float, float] = (0.1, 0.4)  # least and largest weight of the second parent
    apart: float = 0.2  # least share of the tasks that differ in device or predecessor on it, in two of a population
    rounds: int = 300  # moves in windows per task before tabu search, if most tasks are in groups
    rate: float = 1.5e8  # steps of work in a second of a slow core
    start: int = 150_000  # steps of a start: those of its tabu search, if these are more


TUNING = Tuning()

PATIENCE = 2_500
"""Moves without a gain after which a tabu search ends."""


def mostly_grouped(problem: Problem) -> bool:
    """Whether most tasks are in a group with others that moves to other devices."""
    problem = with_fixed_apart(problem)
    return 2 * int((np.bincount(problem.group) > 1)[problem.group].sum()) > problem.n_tasks


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A schedule of the population.

    `place` (n,) is the position of each task in a topological order, `before` (n,) the task before it on its device,
    or -1.
    """

    span: int
    place: Int
    device: Int
    before: Int

    def distance(self, other: Member) -> int:
        """Return the number of tasks that differ in device or in the task before them on it."""
        return int(np.count_nonzero((self.device != other.device) | (self.before != other.before)))


def make_member(span: int, order: Int, device: Int) -> Member:
    """Return the schedule of a topological order (n,) and devices (n,)."""
    place, before = np.empty_like(order), np.full_like(order, -1)
    place[order] = np.arange(len(order))
    queued = order[np.argsort(device[order], kind="stable")]
    follows = device[queued[1:]] == device[queued[:-1]]
    before[queued[1:][follows]] = queued[:-1][follows]
    return Member(span, place, device, before)


class Memetic:
    """Improves valid schedules, of which there is at least one; `span` and `schedule` are the best so far.

    `size` is the number of schedules of the current population, `populations` the number of those before it.

    `better` gets each better schedule. With one worker, the same calls give the same schedule, unless stopped.
    """

    def __init__(
        self,
        problem: Problem,
        starts: Iterable[Schedule],
        seed: int,
        stopped: Callable[[], bool],
        better: Callable[[Schedule], object] = lambda schedule: None,  # noqa: ARG005
        workers: int = 1,
        patience: int = PATIENCE,
    ) -> None:
        self.problem, self.workers, self.patience = problem, workers, patience
        self._seed, self._stopped, self._better = seed, stopped, better
        self.apart = with_fixed_apart(problem)
        self.grouped = mostly_grouped(problem)
        self._instance = make_instance(self.apart)
        self._starts = sorted(starts, key=lambda each: makespan(problem, each))
        self.schedule = self._starts[0]
        del self._starts[TUNING.starts :]
        self._given = tuple(self._starts)
        self.span = makespan(problem, self.schedule)
        self._population: list[Member] = []
        self.size = TUNING.size
        self._idle = self.populations = self.evaluated = 0
        self._lock = threading.Lock()
        self._lanes = [Lane(self, seed)]

    def add(self, schedule: Schedule) -> None:
        """Improve another schedule next."""
        self._starts.insert(0, schedule)
        if makespan(self.problem, schedule) < self.span:
            self.schedule, self.span = schedule, makespan(self.problem, schedule)

    def run(self, seconds: float, bound: float) -> None:
        """Continue for about `seconds` of work of each worker, or until the makespan is at most a bound."""
        steps = int(seconds * TUNING.rate) if math.isfinite(seconds) else 1 << 62
        enough = max(math.floor(bound), 0) if math.isfinite(bound) else 0
        self._lanes += [Lane(self, self._seed + 7919 * at) for at in range(len(self._lanes), self.workers)]
        lanes = self._lanes[: self.workers]
        if len(lanes) == 1:
            lanes[0].run(steps, enough)
            return
        with ThreadPoolExecutor(len(lanes), thread_name_prefix="memetic") as pool:
            list(pool.map(lambda lane: lane.run(steps, enough), lanes))

    def over(self, enough: int) -> bool:
        """Return whether to stop now."""
        return self.span <= enough or self._stopped()

    # The following methods are called by the lanes.

    def next_start(self, random: np.random.Generator) -> tuple[Int, Int]:
        """Return an order (n,) and devices (n,) to improve next: of a start, a random schedule, or a new one."""
        with self._lock:
            if len(self._population) >= self.size and not self._starts:
                first, second = (self._population[at] for at in random.choice(self.size, 2, replace=False))
                return self._between(random, first, second)
            start = self._starts.pop(0) if self._starts else None
        if start is None and not self.grouped:
            return self._random(random)
        start = start or self._given[random.integers(len(self._given))]
        return sequence(self.problem, start), start.device

    def count(self, moves: int) -> None:
        """Count moves."""
        with self._lock:
            self.evaluated += moves

    def found(self, span: int, order: Int, device: Int) -> None:
        """Consider the result of a tabu search for the population."""
        member = make_member(span, order, device)
        near = TUNING.apart * len(order)
        with self._lock:
            population, self._idle = self._population, self._idle + 1
            rival = min(population, key=member.distance, default=None)
            if rival is None or (member.distance(rival) >= near and len(population) < self.size):
                population.append(member)
            else:
                if member.distance(rival) >= near:
                    rival = max(population, key=lambda each: each.span)
                if span <= rival.span:
                    population[population.index(rival)] = member
                if span < rival.span:
                    self._idle = 0
            if self._idle >= TUNING.idle * self.size:
                self._idle = 0
                self.size = int(TUNING.growth * self.size)
                population.clear()
                self.populations += 1
                if self.populations % 2 == 0:
                    self._starts.append(self.schedule)

    def report(self, span: int, make: Callable[[], Schedule]) -> None:
        """Keep a schedule if it is shorter than the best."""
        with self._lock:
            if span >= self.span:
                return
            schedule = make()
            if valid(self.problem, schedule):
                self.schedule, self.span = schedule, span
                self._better(schedule)

    def _random(self, random: np.random.Generator) -> tuple[Int, Int]:
        """Return a random order, and for each task in turn the device on which it ends first."""
        order = ready_order(self.problem, random.random(self.problem.n_tasks) * self.problem.n_tasks)
        found = construct_with_repair(self.problem, lambda groups: insert_tasks(self.problem, groups, order)).schedule
        if found is None or not valid(self.problem, found):
            return order, self.schedule.device
        return sequence(self.problem, found), found.device

    def _between(self, random: np.random.Generator, first: Member, second: Member) -> tuple[Int, Int]:
        """Return a schedule between two others."""
        weight = random.uniform(*TUNING.mix)
        order = np.argsort((1 - weight) * first.place + weight * second.place, kind="stable")
        drawn = random.random(self.apart.n_groups) < weight
        device = np.where(drawn[self.apart.group], second.device, first.device)
        return order, device if self._fits(device) else first.device

    def _fits(self, device: Int) -> bool:
        """Return whether devices (n,), each feasible, meet memory limits and separation."""
        each = self._instance
        home = device[each.member[each.member_start[:-1]]]
        held = np.zeros(self.problem.n_devices)
        np.add.at(held, home, each.memory)
        apart = np.repeat(home, np.diff(each.apart_start)) != home[each.apart]
        return bool((held <= each.capacity).all() and apart.all())


class Lane:
    """A worker of the search, with the schedule that it has not yet improved to the end."""

    def __init__(self, search: Memetic, seed: int) -> None:
        self._search, self._seed = search, seed
        self._random = np.random.default_rng([seed, 37])
        self._state = engine.CriticalPaths(search._instance, seed)
        self._open = False
        self._windows: WindowSearch | None = None
        self._rounds = 0  # moves in windows that are left

    def run(self, steps: int, enough: int) -> None:
        """Continue for a number of steps of work."""
        search, state = self._search, self._state
        stop = engine.Stop(lambda: search.over(enough))
        last = state.work + steps
        while state.work < last and not search.over(enough):
            if not self._open:
                self._begin(*search.next_start(self._random))
            last -= self._move_in_windows(last - state.work, enough)
            if self._windows is not None:
                return
            begun, worked = state.held, state.work
            search.count(state.search(search.patience, max(last - state.work, 0), enough, stop))
            search.report(state.held, self._best)
            self._open = state.work >= last and state.held < begun
            last -= max(TUNING.start - (state.work - worked), 0)
            if not self._open:
                search.found(state.held, state.best_order.copy(), state.best_device.copy())

    def _begin(self, order: Int, device: Int) -> None:
        """Begin with a schedule; if most tasks are in groups, windows improve it before tabu search."""
        problem, self._open = self._search.apart, True
        self._state.load(order, device)
        if self._search.grouped:
            self._seed += 1
            self._rounds = TUNING.rounds * problem.n_tasks
            self._windows = WindowSearch(problem, self._timed(), self._seed, self._rounds)

    def _move_in_windows(self, steps: int, enough: int) -> int:
        """Continue the moves in windows, if they have not ended; return the steps used."""
        search = self._windows
        if search is None:
            return 0
        cost = int(PLAN.move * TUNING.rate)
        rounds = min(max(steps // cost, 1), self._rounds)
        search.run(rounds, lambda: self._search.over(enough))
        self._rounds -= rounds
        if self._rounds <= 0:
            self._state.load(search.state.best_order.copy(), search.state.best_device.copy())
            self._windows = None
        return rounds * cost

    def _best(self) -> Schedule:
        self._state.load(self._state.best_order.copy(), self._state.best_device.copy())
        return self._timed()

    def _timed(self) -> Schedule:
        device = self._state.device.copy()
        return Schedule(device, self._state.end - durations(self._search.problem, device))
