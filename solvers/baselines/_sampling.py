"""Random placements one after another, each perhaps followed by moves, and the best of them: a search in counted steps.

Groups are placed as a whole. Where few rules bind, each feasible placement is as likely as any other: all groups are
drawn, each from its own devices, and what overfills a device (memory counted as under the `sum` model, which is
cautious under `peak`) or breaks separation is drawn again. Where that seldom succeeds, the placements are those of a
random walk that starts from a packing and whose changes keep all rules, each as likely as the one back: then one
placement looks like the one before, and placements that no such changes connect are not met.

A placement's schedule is first in first out (`placeopt.simulation`). The best is the one that misses deadlines by
least, then the best by the objective.
"""

from __future__ import annotations

import math

import numpy as np

from placeopt.kernels import runs_compiled
from placeopt.model.objective import Value, evaluate
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, lateness
from placeopt.simulation import fifo_makespan, make_instance, make_work, simulate
from placeopt.solver import Answer, Clock, Options, Termination

from .._constructive.construction import Constructed, as_answer, no_room
from .._constructive.groups import grouped, packings
from .._runs.solve_run import Incumbent
from .._runs.validity import valid
from ._sampling_loops import KNOWN, LATE, LEFT, MODULUS, SEED, SPAN, TRIES, Rules, State, draw, draw_home, sample

STEPS_A_SECOND = 12_000_000
"""Tasks and edges that a core looks at in a second or less."""

PYTHON_STEPS = 10_000
"""What a placement costs beside them where the objective is not the makespan alone, in the same measure."""

ENOUGH = 20
"""Placements looked at for each there is, at most: a search of more has met a given one with probability 1 - e^-20."""

CHUNK = 200_000
"""Steps between two looks at the clock: some hundredths of a second."""

SLOWER = 50
"""How many times as long plain Python takes, at most."""

FIRST = 10
"""Placements drawn to see whether most break a rule."""

NO_PACKING = (
    "found no placement that fits into memory and keeps tasks apart that must be; the solver cp-sat can decide whether "
    "there is one"
)


def sampled(problem: Problem, options: Options, placements: int | None, moves: int) -> Answer:
    """The best of so many random placements and of those that `moves` moves after each of them lead to.

    `placements` None: as many as the time limit allows, a second without one; a number that follows from the limit,
    the same on each machine, so that the clock only stops machines that are much slower than most. It is never more
    than ENOUGH times the number of placements that there are. `Options.initial` is the first placement if it keeps all
    rules. FAILED where there is no placement that keeps memory, or none is found.
    """
    if problem.n_tasks == 0:
        return Answer(Termination.COMPLETED, Schedule(np.empty(0, np.int64), np.empty(0, np.int64)))
    search = _Search(problem, options, moves)
    initial = options.initial
    if initial is not None and valid(problem, initial):
        search.take(initial)
    reason = search.begin()
    if reason is not None and search.best is None:
        return Answer(Termination.FAILED, message=reason)
    termination = Termination.COMPLETED if reason is not None else search.run(placements)
    answer = as_answer(problem, Constructed(search.best))
    return Answer(termination, answer.schedule, message=answer.message, stats={"placements": search.looked})


class _Search:
    """The arrays of the kernels, and the best schedule so far."""

    def __init__(self, problem: Problem, options: Options, moves: int) -> None:
        self.problem, self.options, self.moves = problem, options, moves
        self.clock = Clock(options.time_limit)
        self.incumbent = Incumbent(problem, options, self.clock)
        self.best: Schedule | None = None
        self.badness: tuple[int, tuple[Value, ...]] | None = None
        self.told: tuple[int, int] | None = None
        self.looked = 0
        groups = self.groups = grouped(problem)
        self.case, self.work = make_instance(problem), make_work(problem)
        options_of, option = np.nonzero(groups.feasible)
        self.rules = Rules(
            problem.group,
            problem.deadline,
            np.searchsorted(options_of, np.arange(problem.n_groups + 1)).astype(np.int64),
            option.astype(np.int64),
            groups.memory,
            groups.apart_start,
            groups.apart,
            problem.capacity,
        )
        n, g = problem.n_tasks, problem.n_groups
        sizes = {"home": g, "trial": g, "room": problem.n_devices, "device": n, "best": n, "numbers": 5}
        self.state = State(**{name: np.zeros(size, dtype=np.int64) for name, size in sizes.items()})
        self.state.numbers[SEED] = 1 + options.seed % (MODULUS - 1)
        self.tries = TRIES
        self.simple = problem.objective.single == "makespan"
        self.each = n + problem.n_edges + problem.n_devices

    def begin(self) -> str | None:
        """Find a first placement of the groups; why there is none, or None."""
        if self.groups.stuck is not None:
            return no_room(self.problem, self.groups, self.groups.stuck, self.groups.home, self.groups.room)
        for _ in range(2):
            draw(self.state.numbers, 2)  # the first number of a small seed is small
        if not draw_home(self.rules, self.state, FIRST):
            packed = next(packings(self.problem, self.groups), None)
            if packed is None:
                return NO_PACKING
            self.state.home[:] = packed
            self.tries = 0
        if self.best is not None:
            self._start_from(self.best)
        return None

    def _start_from(self, schedule: Schedule) -> None:
        """Let the first moves start from a schedule's placement, where it fits as the `sum` model counts."""
        state, home, room = self.state, self.state.home.copy(), self.problem.capacity.copy()
        home[self.problem.group] = schedule.device
        np.subtract.at(room, home, self.groups.memory)
        if (room < 0).any():
            return
        state.home[:], state.room[:], state.device[:] = home, room, schedule.device
        state.numbers[LEFT] = self.moves
        fifo_makespan.select(self.each)(self.case, state.device, self.work)

    def count(self, placements: int | None) -> int:
        """How many placements to look at: so many drawn ones and what comes after them, or what the limit allows."""
        if placements is not None:
            return placements * (1 + self.moves)
        limit = self.options.planned_seconds
        seconds = 1.0 if limit is None else limit
        count = int(seconds * STEPS_A_SECOND / (self.each if self.simple else self.each + PYTHON_STEPS))
        there_are = math.prod(np.diff(self.rules.option_start).tolist())
        return int(max(min(count, ENOUGH * there_are * (1 + self.moves)), 1 + self.moves))

    def run(self, placements: int | None) -> Termination:
        """Look at so many placements, drawn ones counted; why it ended."""
        count = self.count(placements)
        look = sample.select(self.each * count, chunked=True)
        chunk = max(CHUNK // self.each, 1) if self.simple else 1
        while count > 0:
            size = min(chunk if runs_compiled(look) else max(chunk // SLOWER, 1), count)
            look(self.case, self.rules, self.state, self.work, size, self.moves, self.tries)
            count -= size
            self.looked += size
            self._tell()
            if self.options.should_stop():
                return Termination.INTERRUPTED
            if self.clock.over and count > 0:
                return Termination.TIME_LIMIT
        return Termination.COMPLETED

    def _tell(self) -> None:
        """Take the best placement of the kernel if it is a new one."""
        state = self.state
        if state.numbers[KNOWN] == 0:  # no other placement than before
            return
        found = int(state.numbers[LATE]), int(state.numbers[SPAN])
        if not self.simple:
            state.numbers[KNOWN] = 0
        elif found == self.told:
            return
        self.told = found
        self.take(simulate(self.problem, state.best))

    def take(self, schedule: Schedule) -> None:
        """Keep a schedule that keeps all rules, perhaps deadlines aside, if it is better than the best so far."""
        badness = lateness(self.problem, schedule), evaluate(self.problem, schedule)
        if self.badness is None or badness < self.badness:
            self.best, self.badness = schedule, badness
            if valid(self.problem, schedule):
                self.incumbent.offer(schedule)
