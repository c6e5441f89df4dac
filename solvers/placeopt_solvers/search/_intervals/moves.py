"""Moves in the windows of a large graph, on one or more threads; each thread has a range of the sequence.

`placeopt_solvers._local_search.windows` has the moves. With more threads, the ranges are others in each turn, and the
results of a turn are joined (`ranges`).

Machines that share only the problem and the schedule improve ranges, too. A range is an interval of the sequence of
tasks. In a range, moves (`WindowSearch`) or passes (`Sweep`) improve one window after the other, while the tasks
outside keep their order and their devices. Results of disjoint ranges of one schedule are joined: each is accepted if
the whole schedule does not become longer and breaks no rule. So all threads or machines work on different parts of the
graph, and their gains add up, while searches with different seeds would find the same gains again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from placeopt.model.arrays import Int, inverse
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, durations, makespan
from placeopt.protocol import Answer, Options, Termination

from ..._local_search.windows import WindowSearch, rounds_in, searches_windows, sweep_seconds
from ..._runs.solve_run import SolveRun
from ..._runs.validity import valid
from .state import State, decoded
from .subproblem import Neighbourhood
from .sweep import Sweep

SECONDS = 5.0
"""Seconds of a job without a time limit."""

LEAST = 900
"""Least number of tasks of a range, for several windows."""


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """The order and devices of a range's tasks in another schedule; the range begins at the position `first`."""

    first: int
    tasks: Int
    device: Int


def ranges(n: int, count: int, turn: int) -> list[tuple[int, int]]:
    """Return at most `count` ranges [first, last) of n positions, divided elsewhere in each turn."""
    count = max(min(count, n // LEAST), 1)
    shift = (0.5 + turn * 0.618034) % 1 - 0.5  # by golden sections: 0, then far from all earlier ones
    inner = [round((k + shift) * n / count) for k in range(1, count)]
    return list(zip([0, *inner], [*inner, n], strict=True))


class RangeSweep(Sweep):
    """Improves windows of one range; the tasks outside keep their order."""

    def __init__(self, run: SolveRun, start: Schedule, seed: int, first: int, last: int) -> None:
        super().__init__(run.problem, start, seed, run.stopped, run.best.offer)
        self.first, self.last = first, last
        self.ahead = []
        for operator in self.operators:
            operator.size = min(operator.size, last - first)

    def _areas(self, size: int) -> list[Neighbourhood]:
        """Return a random window, which may be cut off at the ends of the range."""
        begin = int(self.random.integers(self.first, self.last)) - size // 2
        low, high = max(begin, self.first), min(begin + size, self.last)
        return [Neighbourhood(low, high, np.ones(high - low, dtype=np.bool_))]

    def _state(self, schedule: Schedule, sequence: Int) -> State:
        return State(self.problem, schedule, sequence)


def improved_range(problem: Problem, options: Options, *, first: int, last: int) -> Answer:
    """Return the initial schedule with an improved range, for a job of a pool; None instead without a gain."""
    assert options.initial is not None
    run = SolveRun(problem, options)
    if searches_windows(problem):
        limit = SECONDS if options.time_limit is None else options.time_limit
        rounds = rounds_in(limit)
        search = WindowSearch(problem, options.initial, options.seed, rounds, part=(first, last))
        search.run(rounds, run.stopped, run.best.offer)
        return run.ended(run.stop_reason() or Termination.COMPLETED)
    RangeSweep(run, options.initial, options.seed, first, last).run(math.inf, -math.inf)
    return run.ended(run.stop_reason() or Termination.COMPLETED)


def change_of(state: State, first: int, last: int, schedule: Schedule) -> Change:
    """Return what a schedule changes in the range [first, last) of a state."""
    problem, tasks = state.problem, state.sequence[first:last]
    end = schedule.start + durations(problem, schedule.device)
    place = np.lexsort((inverse(problem.order)[tasks], end[tasks], schedule.start[tasks]))
    return Change(first, tasks[place], schedule.device[tasks[place]])


def joined(state: State, changes: Sequence[Change]) -> State:
    """Return the state with changes of disjoint ranges that neither lengthen the schedule nor break a rule.

    All are tried together; if that fails, the first half, and then the second half with it, so that a few changes that
    fail cost O(log) decodings each.
    """
    if not changes:
        return state
    homes, order = state.device.copy(), state.sequence.copy()
    for change in changes:
        order[change.first : change.first + len(change.tasks)] = change.tasks
        homes[change.tasks] = change.device
    found = decoded(state.problem, order, homes)
    if makespan(state.problem, found) <= state.span and valid(state.problem, found):
        return State(state.problem, found, order)
    half = len(changes) // 2
    return joined(joined(state, changes[:half]), changes[half:]) if half else state


TURN = 0.5
"""Seconds of the ranges of one turn, at least; of long ranges, a turn visits all windows once."""


class Moves:
    """Improves a valid schedule; `schedule` is the best one so far. Deadlines do not influence the moves."""

    def __init__(
        self,
        problem: Problem,
        schedule: Schedule,
        seed: int,
        stopped: Callable[[], bool],
        on_better: Callable[[Schedule], object],
        workers: int = 1,
        planned: float = 60.0,
    ) -> None:
        self.problem, self.seed, self.workers, self.planned = problem, seed, workers, planned
        self.stopped, self.on_better = stopped, on_better
        self.relaxed = replace(problem, deadline=np.full_like(problem.deadline, UNLIMITED))
        self.schedule, self.span = schedule, makespan(problem, schedule)
        self._done = 0  # windows of earlier searches
        self._turns = itertools.count()
        self._search: WindowSearch | None = None  # of one thread, which continues

    @property
    def tried(self) -> int:
        """Windows so far."""
        return self._done + (0 if self._search is None else self._search.windows)

    def go_to(self, schedule: Schedule) -> None:
        """Continue from a schedule."""
        self._done, self._search = self.tried, None
        self.schedule, self.span = schedule, makespan(self.problem, schedule)

    def run(self, seconds: float, bound: float) -> None:
        """Try the moves of about `seconds`, or until the makespan is at most a bound."""
        while seconds > 0 and self.span > bound and not self.stopped():
            number = next(self._turns)
            parts = ranges(self.problem.n_tasks, self.workers, number)
            turn = min(seconds, max(TURN, sweep_seconds(self.problem.n_tasks // len(parts))))
            if len(parts) == 1:
                self._continued(turn, bound)
            else:
                self._divided(parts, turn, number, bound)
            seconds -= turn

    def _continued(self, seconds: float, bound: float) -> None:
        if self._search is None:
            self._search = WindowSearch(self.relaxed, self.schedule, self.seed, rounds_in(self.planned))
        self._search.run(rounds_in(seconds), self.stopped, self._offer, bound)

    def _divided(self, parts: list[tuple[int, int]], seconds: float, number: int, bound: float) -> None:
        """Search in each range, and join the results, those of the shortest schedules first."""
        rounds, state, seed = rounds_in(seconds), State(self.relaxed, self.schedule), self.seed + 31 * number
        searches = [
            WindowSearch(self.relaxed, self.schedule, seed + 7919 * at, rounds, part=part, turn=number)
            for at, part in enumerate(parts)
        ]

        def run(search: WindowSearch) -> None:
            search.run(rounds, self.stopped, enough=bound)

        with ThreadPoolExecutor(len(parts), thread_name_prefix="windows") as pool:
            list(pool.map(run, searches))
        shorter = sorted((each for each in searches if each.span < state.span), key=lambda each: each.span)
        self._offer(joined(state, [change_of(state, *each.part, each.best()) for each in shorter]).schedule)
        self._done += sum(each.windows for each in searches)

    def _offer(self, schedule: Schedule) -> None:
        span = makespan(self.problem, schedule)
        if span < self.span and valid(self.problem, schedule):
            self.schedule, self.span = schedule, span
            self.on_better(schedule)
