"""Search a schedule window by window, from its begin to its end and again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from placeopt.kernels import kernel, runs_compiled
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, sequence

from ..instance import Instance, make_instance
from .moves import Tuning, draw, mark_heads, mark_tails, propose, undo
from .state import FRESH, HELD, HIGH, LOW, SPAN, State, make_state
from .timing import connect, enter, repair_heads, repair_tails, restore, time_all


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes, temperatures, and seconds that only affect budgets; `benchmarks/search_speed.py` measures them."""

    size: int = 1_000  # tasks of a window
    advance: int = 500  # tasks from one window to the next
    rounds: int = 5_000  # moves in a window, at most
    hot: float = 1.0  # first temperature in a window, as a part of the makespan divided by the number of tasks
    fall: float = 0.02  # last temperature in a window, as a part of its first
    report: int = 16  # windows between two reports of a better schedule
    move: float = 4e-6  # seconds of a move
    plain_move: float = 1e-3  # seconds of a move in plain Python
    overhead: int = 400  # elementary steps of a move, as `placeopt.kernels` counts them
    chunk: float = 0.03  # seconds between two checks whether to stop


PLAN = Plan()
TUNING = Tuning()

WIDE = Tuning(moves=70, shifts=0, swaps=10, least=2)
"""Tuning of moves of groups that lie in no window."""


@dataclass(frozen=True, slots=True)
class Window:
    """Positions [low, high) of the order, and a walk in it; each of its moves takes as long as `cost` usual ones."""

    low: int
    high: int
    rounds: int
    tuning: Tuning
    cost: int


def searches_windows(problem: Problem) -> bool:
    """Return whether the search applies: to the makespan alone, where tasks share only devices, links and memory."""
    return (
        problem.objective.single == "makespan"
        and problem.contention == "none"
        and problem.memory_model == "sum"
        and problem.tiers is None
        and problem.pipeline is None
        and problem.n_tasks > 0
        and bool((problem.deadline == UNLIMITED).all())
    )


def rounds_in(seconds: float) -> int:
    """Estimate the moves that a core tries in a few seconds."""
    return int(seconds / PLAN.move)


class WindowSearch:
    """A search in windows: its state and the best schedule so far. Memory O(n m + e).

    `rounds` is the number of moves of the whole search. It decides how many moves each window gets, and whether code is
    compiled. With a `part` [first, last) of the positions in the start's sequence, the tasks outside keep their order
    and their devices.
    """

    def __init__(
        self,
        problem: Problem,
        start: Schedule,
        seed: int,
        rounds: int,
        plan: Plan = PLAN,
        part: tuple[int, int] | None = None,
    ) -> None:
        self.problem, self.plan = problem, plan
        self.part = (0, problem.n_tasks) if part is None else part
        n = self.part[1] - self.part[0]
        self.instance = make_instance(problem)
        self.state = make_state(problem, seed)
        self._judge = make_state(problem, seed)
        self.tried = self.evaluated = self.windows = 0
        self._count = max(-(-(n - plan.size) // plan.advance), 0) + 1
        self._each = max(min(rounds // self._count, plan.rounds), 1)
        steps = rounds * plan.overhead
        self._walk, self._enter = walk.select(steps, chunked=True), enter.select(steps, chunked=True)
        self._connect = connect.select(steps, chunked=True)
        self._time = time_all.select(steps, chunked=True)
        self.state.order[:], self.state.device[:] = sequence(problem, start), start.device
        self._retime()
        keep_best(self.state)
        self._windows = self._sweeps()

    @property
    def span(self) -> int:
        """The makespan of the best schedule so far, in ticks."""
        return int(self.state.number[HELD])

    @property
    def compiled(self) -> bool:
        """Whether moves run in compiled code."""
        return runs_compiled(self._walk)

    def _retime(self) -> None:
        """Recompute all times from the order and the devices."""
        self._connect(self.instance, self.state)
        self._time(self.instance, self.state)

    def _sweeps(self) -> Iterator[Window]:
        """Yield the windows, sweep after sweep; every second sweep lies half an advance lower.

        Before each sweep, the order becomes that of the starts in the best state. After it, groups that are too wide
        for a window move for as much time as their share of all tasks justifies.
        """
        plan, state, instance = self.plan, self.state, self.instance
        begin, end = self.part
        n = end - begin
        size = np.diff(instance.member_start)
        offset, cost = 0, 1 + n // plan.size
        while True:
            state.order[:], state.device[:] = state.best_order, state.best_device
            self._retime()
            by_start = sequence(self.problem, Schedule(state.device.copy(), state.end - state.ticks))
            # The tasks of the part stay within it: none depends on a task behind the part.
            state.order[begin:end] = by_start[(state.position[by_start] >= begin) & (state.position[by_start] < end)]
            self._retime()
            for low in range(-offset, max(n - plan.size, 0) + plan.advance, plan.advance):
                first = min(max(low, 0), max(n - plan.size, 0))
                yield Window(begin + first, begin + min(first + plan.size, n), self._each, TUNING, 1)
                if first + plan.size >= n:
                    break
            offset = plan.advance // 2 - offset
            if n < self.problem.n_tasks:
                continue
            place = state.position[instance.member]
            heads = instance.member_start[:-1]
            width = np.maximum.reduceat(place, heads) - np.minimum.reduceat(place, heads)
            share = size[width > plan.size - plan.advance].sum() / n
            rounds = int(self._count * self._each * share / cost)
            if n > plan.size and rounds > 0:
                self._retime()
                yield Window(0, n, rounds, WIDE, cost)

    def step(self, stopped: Callable[[], bool], most: int) -> None:
        """Try moves in the next window, at most `most`."""
        window, state, plan = next(self._windows), self.state, self.plan
        state.number[FRESH] = 0
        self._enter(self.instance, state, window.low, window.high)
        self.windows += 1
        hot = plan.hot * self.span / self.problem.n_tasks
        rounds, done = min(window.rounds, -(-most // window.cost)), 0
        while done < rounds and not stopped():
            seconds = window.cost * (plan.move if self.compiled else plan.plain_move)
            end = min(done + max(int(plan.chunk / seconds), 1), rounds)
            self.evaluated += self._walk(self.instance, state, window.tuning, done, end, rounds, hot, hot * plan.fall)
            done = end
        self.tried += done * window.cost

    def run(
        self,
        rounds: int,
        stopped: Callable[[], bool],
        better: Callable[[Schedule], object] = lambda schedule: None,  # noqa: ARG005
        enough: float = -math.inf,
        patience: float = math.inf,
    ) -> bool:
        """Try `rounds` more moves; return whether plain Python was cut short after `patience` seconds.

        `better` gets better schedules from time to time. The search also ends at a makespan of `enough`.
        """
        last, reported, begun = self.tried + rounds, self.span, time.monotonic()

        def late() -> bool:
            return not self.compiled and time.monotonic() - begun > patience

        while self.tried < last and self.span > enough and not stopped() and not late():
            self.step(lambda: stopped() or late(), last - self.tried)
            if self.windows % self.plan.report == 0 and self.span < reported:
                reported = self.span
                better(self.best())
        if self.span < reported:
            better(self.best())
        return late()

    def best(self) -> Schedule:
        """Return the best schedule so far."""
        judge = self._judge
        judge.order[:], judge.device[:] = self.state.best_order, self.state.best_device
        self._connect(self.instance, self._judge)
        self._time(self.instance, self._judge)
        return Schedule(judge.device.copy(), judge.end - judge.ticks)


def improve_windows(
    problem: Problem,
    start: Schedule,
    rounds: int,
    seed: int = 0,
    stopped: Callable[[], bool] = lambda: False,
    better: Callable[[Schedule], object] = lambda schedule: None,  # noqa: ARG005
    enough: float = -math.inf,
) -> Schedule:
    """Return a schedule that is at least as good, after `rounds` moves, or when it is `enough` or `stopped` is true.

    `better` gets better schedules from time to time. The same seed gives the same schedule unless the search is
    stopped. `start` is feasible, and the problem is one of `searches_windows`.
    """
    search = WindowSearch(problem, start, seed, rounds)
    search.run(rounds, stopped, better, enough)
    return search.best()


@kernel(allocates=False)
def keep_best(state: State) -> None:
    """Store the state as the best so far."""
    number = state.number
    low, high = number[LOW], number[HIGH]
    if not number[FRESH]:
        low, high = 0, len(state.order)
    for p in range(low, high):
        i = state.order[p]
        state.best_order[p], state.best_device[i] = i, state.device[i]
    number[HELD], number[FRESH] = number[SPAN], 1


@kernel(
    draw,
    propose,
    undo,
    mark_heads,
    repair_heads,
    restore,
    mark_tails,
    repair_tails,
    keep_best,
    allocates=False,
)
def walk(
    instance: Instance, state: State, tuning: Tuning, begin: int, end: int, rounds: int, hot: float, cold: float
) -> int:
    """Try the moves `begin` to `end` of a walk of `rounds` moves in the window; return how many were evaluated.

    Temperatures fall from `hot` to `cold` ticks along the walk; 0 accepts moves that do not increase the makespan.
    """
    number = state.number
    evaluated = 0
    for at in range(begin, end):
        limit = float(number[SPAN])
        if hot > 0:
            limit -= hot * (cold / hot) ** (at / rounds) * math.log(1.0 - draw(state, 1 << 24) / (1 << 24))
        if not propose(instance, state, tuning, limit):
            continue
        evaluated += 1
        mark_heads(instance, state)
        if not repair_heads(instance, state, int(limit)):
            restore(state)
            undo(instance, state)
            continue
        mark_tails(instance, state)
        repair_tails(instance, state)
        if number[SPAN] < number[HELD]:
            keep_best(state)
    return evaluated
