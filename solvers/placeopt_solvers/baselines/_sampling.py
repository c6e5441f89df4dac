"""Repeated random placements, each optionally followed by moves: a search in counted steps that keeps the best.

Groups are placed as a whole. If few rules bind, placements are uniform among the feasible ones: all groups are drawn,
each from its own devices, and draws that overfill a device (memory counted as under the memory model `sum`, which is
cautious under `peak`) or break separation are rejected. If that seldom succeeds, placements are those of a random walk
from a packing. Its changes keep all rules, and each is as likely as its inverse. Then consecutive placements resemble
each other, and placements that no such changes connect are not reached.

The schedule of a placement is first in first out (`placeopt.simulation`). The best one has the least lateness, then the
best objective.

n tasks, m devices, g groups.
"""

from __future__ import annotations

import math

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int
from placeopt.model.native import native
from placeopt.model.objective import Value, evaluate
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, lateness
from placeopt.protocol import ALL_METRICS, RETIMED, Answer, Clock, Info, Options, Termination
from placeopt.protocol.citations import bibtex
from placeopt.simulation import simulate

from .._constructive.construction import Construction, as_answer, no_room
from .._constructive.groups import grouped, packings
from .._runs.solve_run import Incumbent
from .._runs.validity import valid

STEPS_A_SECOND = 12_000_000  # tasks and edges that one core simulates in a second or less
PYTHON_STEPS = 10_000  # additional steps per placement if the objective is not the makespan alone
ENOUGH = 20  # placements tried per existing one, at most: any given one is then found with probability 1 - e^-20
CHUNK = 200_000  # steps between two looks at the best placement: some hundredths of a second
FIRST = 10  # placements drawn to test whether most of them break a rule
TRIES = 100  # placements drawn without regard to memory and separation before the random walk is used
MIXING = 4  # changes per group between two placements of the random walk

NO_PACKING = (
    "found no placement that fits into memory and keeps separated tasks apart; the solver cp-sat can decide whether "
    "there is one"
)


def sampling_info(summary: str, complexity: str) -> Info:
    """Return the description of a baseline of GiPH that draws placements."""
    return Info(
        summary, "none", complexity, bibtex("hu2023giph"), "baselines", anytime=True, warm_start=True,
        metrics=ALL_METRICS, rules=RETIMED, combined=True,
    )  # fmt: skip


def sampled(problem: Problem, options: Options, placements: int | None, moves: int) -> Answer:
    """Return the best of a number of random placements and of the placements after each of `moves` moves from them.

    `placements` None: a number computed from the time limit, a second without one. It is the same on all machines; the
    clock only stops machines that are much slower than most. It is at most ENOUGH times the number of placements that
    exist. `Options.initial` is the first placement if it keeps all rules. FAILED if no placement is found.
    """
    if problem.n_tasks == 0:
        return Answer(Termination.COMPLETED, Schedule(np.empty(0, np.int64), np.empty(0, np.int64)))
    search = Sampler(problem, options, moves)
    initial = options.initial
    if initial is not None and valid(problem, initial):
        search.take(initial)
    reason = search.begin()
    if reason is not None and search.best is None:
        return Answer(Termination.FAILED, message=reason)
    termination = Termination.COMPLETED if reason is not None else search.run(placements)
    answer = as_answer(problem, Construction(search.best))
    return Answer(termination, answer.schedule, message=answer.message, stats={"placements": search.looked})


class Sampler:
    """A search: the engine's placements, and the best schedule so far."""

    def __init__(self, problem: Problem, options: Options, moves: int = 0) -> None:
        self.problem, self.options, self.moves = problem, options, moves
        self.clock = Clock(options.time_limit)
        self.incumbent = Incumbent(problem, options, self.clock)
        self.best: Schedule | None = None
        self.badness: tuple[int, tuple[Value, ...]] | None = None
        self.seen: tuple[int, int] | None = None
        self.looked = 0
        self.groups = grouped(problem)
        self.state = engine.Sampler(native(problem), self.groups, problem.deadline, problem.memory, options.seed)
        self.tries = TRIES
        self.simple = problem.objective.single == "makespan"
        self.each = problem.n_tasks + problem.n_edges + problem.n_devices

    def begin(self) -> str | None:
        """Find a first placement of the groups; return the reason if there is none, else None."""
        if self.groups.stuck is not None:
            return no_room(self.problem, self.groups, self.groups.stuck, self.groups.home, self.groups.room)
        if not self.state.draw_home(FIRST):
            packed = next(packings(self.problem, self.groups), None)
            if packed is None:
                return NO_PACKING
            self.state.set_home(packed)
            self.tries = 0
        if self.best is not None:
            self._start_from(self.best)
        return None

    def drawn(self) -> Int:
        """Draw a placement (n,) that keeps all rules, after `begin`."""
        if not self.state.draw_home(self.tries):
            self.state.mix_home(MIXING * len(self.state.home))
        return self.state.home[self.problem.group]

    def _start_from(self, schedule: Schedule) -> None:
        """Start the first moves from a schedule's placement if it fits under the memory model `sum`."""
        home, room = self.state.home.copy(), self.problem.capacity.copy()
        home[self.problem.group] = schedule.device
        np.subtract.at(room, home, self.groups.memory)
        if (room < 0).any():
            return
        self.state.start_from(home, room, self.moves, engine.current_stop())

    def count(self, placements: int | None) -> int:
        """Return the number of placements to try, moves included."""
        if placements is not None:
            return placements * (1 + self.moves)
        limit = self.options.planned_seconds
        seconds = 1.0 if limit is None else limit
        count = int(seconds * STEPS_A_SECOND / (self.each if self.simple else self.each + PYTHON_STEPS))
        there_are = math.prod(self.groups.feasible.sum(axis=1).tolist())
        return int(max(min(count, ENOUGH * there_are * (1 + self.moves)), 1 + self.moves))

    def run(self, placements: int | None) -> Termination:
        """Try placements, and return why the search stopped."""
        count, stop = self.count(placements), engine.Stop(lambda: self.clock.over or self.options.should_stop())
        chunk = max(CHUNK // self.each, 1) if self.simple else 1
        while count > 0:
            tried = self.state.sample(min(chunk, count), self.moves, self.tries, stop)
            count -= tried
            self.looked += tried
            self._take_found()
            if self.options.should_stop():
                return Termination.INTERRUPTED
            if self.clock.over and count > 0:
                return Termination.TIME_LIMIT
        return Termination.COMPLETED

    def _take_found(self) -> None:
        """Take the best placement of the engine if it is new."""
        found = self.state.value
        if found is None or (self.simple and found == self.seen):
            return
        if not self.simple:
            self.state.forget_best()
        self.seen = found
        self.take(simulate(self.problem, self.state.best))

    def take(self, schedule: Schedule) -> None:
        """Keep a schedule if it is better than the best so far; it may only break deadlines."""
        badness = lateness(self.problem, schedule), evaluate(self.problem, schedule)
        if self.badness is None or badness < self.badness:
            self.best, self.badness = schedule, badness
            if valid(self.problem, schedule):
                self.incumbent.offer(schedule)
