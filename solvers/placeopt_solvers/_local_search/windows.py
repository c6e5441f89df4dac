"""Search a schedule window by window, from its begin to its end and again.

In a window of consecutive positions of the order, all moves have known surroundings: the ends of the tasks before it,
and the ticks that must follow each task after it. A move therefore costs only what it changes, and the makespan stays
exact (`engine.WindowMoves`; `native/window_moves.cpp` states the moves and their source). Windows slide over the order,
again and again.

This works without contention, deadlines, live memory and memory tiers; the rest of `_local_search` supports them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, sequence

from .instance import Instance, make_instance


class Tuning(NamedTuple):
    """Parameters of the moves; `benchmarks/search_speed.py` measures their effect."""

    moves: int = 50  # percentages of the kinds of moves; the rest are clusters
    shifts: int = 20
    swaps: int = 10
    ejections: int = 5
    tries: int = 60  # at most as many random tasks are drawn to change the one on the longest path
    choices: int = 6  # devices that a move compares
    near: int = 85  # percentage of these devices that are those of producers or consumers
    least: int = 1  # fewest tasks of the group of the task to change


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes, temperatures, and seconds that only affect budgets; `benchmarks/search_speed.py` measures them."""

    size: int = 500  # tasks of a window
    advance: int = 250  # tasks from one window to the next
    rounds: int = 5_000  # moves in a window on average, at most
    focus: float = 0.9  # share of the moves that go to windows by the ticks lost in them
    # first temperatures in windows, in turn, as parts of the makespan divided by the number of tasks
    hot: tuple[float, ...] = (1.0, 4.0, 16.0)
    fall: float = 0.02  # last temperature in a window, as a part of its first
    report: int = 16  # windows between two reports of a better schedule
    move: float = 4e-6  # seconds of a move


PLAN = Plan()
TUNING = Tuning()

WIDE = Tuning(moves=70, shifts=0, swaps=10, ejections=0, least=2)
"""Tuning of moves of groups that lie in no window."""


@dataclass(frozen=True, slots=True)
class Window:
    """Positions [low, high) of the order, and a walk in it; each of its moves takes as long as `cost` usual ones."""

    low: int
    high: int
    rounds: int
    hot: float
    tuning: Tuning
    cost: int


def searches_windows(problem: Problem) -> bool:
    """Return whether the search applies: to the makespan alone, where tasks share only devices, links and memory."""
    return (
        problem.objective.single == "makespan"
        and not problem.contends
        and problem.memory_model == "sum"
        and not problem.rules
        and problem.pipeline is None
        and problem.n_tasks > 0
        and bool((problem.deadline == UNLIMITED).all())
    )


def rounds_in(seconds: float) -> int:
    """Estimate the moves that a core tries in a few seconds."""
    return int(seconds / PLAN.move)


def bordered(instance: Instance, state: engine.WindowMoves, first: int, last: int, seed: int) -> engine.WindowMoves:
    """Return moves for the positions [first, last) of a state, in which other positions may use half of the slack.

    Tasks outside the part count as if they started in the middle between their earliest and their latest start. A task
    of the part with consumers after the part must end as if it had started in its own middle, and keeps its device. So
    the pieces of a path across a border are together as long as the makespan at most, and the gains of several parts
    add up on each path through all of them.
    """
    start, here = state.end - state.ticks, state.position
    middle = (state.span + start - state.ticks - state.after) // 2
    before, behind = here < first, here >= last
    needed = np.zeros(len(here), dtype=np.bool_)
    needed[instance.source[np.repeat(behind, np.diff(instance.in_start))]] = True
    release = np.where(before, middle, instance.release)
    tail = np.where(needed | behind, state.span - middle - state.ticks, instance.tail)
    feasible = instance.feasible.copy()
    feasible[instance.group[needed & ~before]] = False
    moves = engine.WindowMoves(instance._replace(release=release, tail=tail, feasible=feasible), seed)
    if first > 0:
        free, onward = np.zeros(len(state.first), dtype=np.int64), state.order[first:][::-1]
        free[state.device[onward]] = middle[onward]  # of the first task on each device
        moves.reserve(first, free)
    return moves


def sweep_seconds(tasks: int) -> float:
    """Estimate the seconds in which a core tries the most moves in all windows of some tasks."""
    return tasks / PLAN.advance * PLAN.rounds * PLAN.move


class WindowSearch:
    """A search in windows: its state and the best schedule so far. Memory O(n m + e).

    `rounds` is the number of moves of the whole search. It decides how many moves each window gets. With a `part`
    [first, last) of the positions in the start's sequence, the tasks outside keep their order and their devices, and
    `span` counts the slack that `bordered` leaves to others. `turn` is the number of earlier searches of this kind.
    """

    def __init__(
        self,
        problem: Problem,
        start: Schedule,
        seed: int,
        rounds: int,
        plan: Plan = PLAN,
        part: tuple[int, int] | None = None,
        turn: int = 0,
    ) -> None:
        self.problem, self.plan, self.turn = problem, plan, turn
        self.part = (0, problem.n_tasks) if part is None else part
        n = self.part[1] - self.part[0]
        self.instance = make_instance(problem)
        self._judge = engine.WindowMoves(self.instance, seed)
        self._judge.load(sequence(problem, start), start.device)
        if n == problem.n_tasks:
            self.state = engine.WindowMoves(self.instance, seed)
        else:
            self.state = bordered(self.instance, self._judge, *self.part, seed)
        self.tried = self.windows = 0
        self._count = max(-(-(n - plan.size) // plan.advance), 0) + 1
        self._each = max(min(rounds // self._count, plan.rounds), 1)
        self.state.load(sequence(problem, start), start.device)
        self.state.keep_best()
        self._windows = self._sweeps()

    @property
    def span(self) -> int:
        """The makespan of the best schedule so far, in ticks; of a part, at least this makespan."""
        return self.state.held

    @property
    def evaluated(self) -> int:
        """Moves that were timed so far."""
        return self.state.evaluated

    def _sweeps(self) -> Iterator[Window]:
        """Yield the windows, sweep after sweep; every second sweep lies half an advance lower.

        The temperatures of a window differ from sweep to sweep. Before each sweep, the order becomes that of the starts
        in the best state. After it, groups that are too wide for a window move for as much time as their share of all
        tasks justifies.
        """
        plan, state, instance = self.plan, self.state, self.instance
        begin, end = self.part
        n = end - begin
        size = np.diff(instance.member_start)
        offset, cost = (self.turn % 2) * plan.advance // 2, 1 + n // plan.size
        for turn in itertools.count(self.turn):
            state.load(state.best_order, state.best_device)
            by_start = sequence(self.problem, Schedule(state.device.copy(), state.end - state.ticks))
            # The tasks of the part stay within it: none depends on a task behind the part.
            order, place = state.order.copy(), state.position[by_start]
            order[begin:end] = by_start[(place >= begin) & (place < end)]
            state.load(order, state.device.copy())
            state.keep_best()
            last = max(n - plan.size, 0)
            lows = begin + np.unique(np.clip(np.arange(-offset, last + plan.advance, plan.advance), 0, last))
            highs = np.minimum(lows + plan.size, end)
            planned = np.stack((lows, highs, self._moves(lows, highs)), axis=1).tolist()
            for at, (low, high, rounds) in enumerate(planned, turn):
                yield Window(low, high, rounds, plan.hot[at % len(plan.hot)], TUNING, 1)
            offset = plan.advance // 2 - offset
            if n < self.problem.n_tasks:
                continue
            place = state.position[instance.member]
            heads = instance.member_start[:-1]
            width = np.maximum.reduceat(place, heads) - np.minimum.reduceat(place, heads)
            share = size[width > plan.size - plan.advance].sum() / n
            rounds = int(self._count * self._each * share / cost)
            if n > plan.size and rounds > 0:
                state.load(state.order.copy(), state.device.copy())
                state.keep_best()
                yield Window(0, n, rounds, plan.hot[turn % len(plan.hot)], WIDE, cost)

    def _moves(self, lows: Int, highs: Int) -> Int:
        """Return how many moves windows get: some in equal shares, the others by the ticks lost in them.

        Ticks are lost where the longest path takes longer than it would on the fastest devices without transfers.
        """
        state, plan = self.state, self.plan
        critical = state.order[(state.end + state.after == state.span)[state.order]]
        lost = np.append(state.after[critical] - self.instance.tail[critical], 0)
        at = state.position[critical]
        loss = np.maximum(lost[np.searchsorted(at, lows)] - lost[np.searchsorted(at, highs)], 0)
        share = loss / max(float(loss.mean()), 1.0)
        rounds: Int = np.maximum(self._each * (1 - plan.focus + plan.focus * share), 1).astype(np.int64)
        return rounds

    def step(self, stopped: Callable[[], bool], most: int) -> None:
        """Try moves in the next window, at most `most`."""
        window, state, plan = next(self._windows), self.state, self.plan
        state.enter(window.low, window.high)
        self.windows += 1
        hot = window.hot * self.span / self.problem.n_tasks
        rounds, stop = min(window.rounds, -(-most // window.cost)), engine.Stop(stopped)
        if not stopped():
            self.tried += state.walk(window.tuning, 0, rounds, rounds, hot, hot * plan.fall, stop) * window.cost
        state.settle()

    def run(
        self,
        rounds: int,
        stopped: Callable[[], bool],
        better: Callable[[Schedule], object] = lambda schedule: None,  # noqa: ARG005
        enough: float = -math.inf,
    ) -> None:
        """Try `rounds` more moves.

        `better` gets better schedules from time to time. The search also ends at a makespan of `enough`.
        """
        last, reported = self.tried + rounds, self.span
        while self.tried < last and self.span > enough and not stopped():
            self.step(stopped, last - self.tried)
            if self.windows % self.plan.report == 0 and self.span < reported:
                reported = self.span
                better(self.best())
        if self.span < reported:
            better(self.best())

    def best(self) -> Schedule:
        """Return the best schedule so far."""
        judge = self._judge
        judge.load(self.state.best_order, self.state.best_device)
        return Schedule(judge.device.copy(), judge.end - judge.ticks)
