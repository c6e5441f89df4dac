"""Sweep through a schedule: passes improve one window of its sequence after the other.

A window is an interval of the sequence that is long enough for a pass to rearrange, and so short that a pass takes a
millisecond. Its heads and tails are exact, so a shorter window shortens every longest path through it. A random change
of the whole graph improves some layers and spoils others; windows keep the gains of each (rolling horizon: S. Sethi, G.
Sorger, Annals of Operations Research 29, 1991, doi:10.1007/BF02283607).

Work is measured in steps of list scheduling, not in time: with one worker the same seed gives the same schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int
from placeopt.model.graph import path_lengths
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, makespan

from ..._runs.validity import valid
from .passes import Arrangement, Passes
from .state import State, decoded
from .subproblem import Neighbourhood, Subproblem, changed, inserted, subproblem_of


@dataclass(frozen=True, slots=True)
class Tuning:
    """Parameters; `benchmarks/large.py` measures their effect."""

    passes: int = 8  # of a window
    step: float = 6e-10  # seconds of an elementary step of list scheduling
    fixed: float = 4e-3  # seconds of a window apart from its passes
    task: float = 1e-7  # seconds to insert a window, per task and edge of the whole graph
    cells: int = 20_000_000  # largest product of tasks and devices of a window
    memory: float = 0.9  # weight of an operator's former steps
    exploration: float = 0.2  # share of steps whose operator is drawn with equal probabilities
    prior: float = 0.02  # gain of an operator per second before its first step
    belief: float = 0.05  # seconds that this counts for


TUNING = Tuning()


DEPTHS = (12, 24, 48)
"""Layers of the graph in a window."""

LEAST = 200
"""Tasks of the smallest window."""

WAYS = ((300, 0), (0, 900))
"""Noise and aim of passes, in thousandths: with noise, few devices are busy; with an aim, most are."""


@dataclass(slots=True)
class Operator:
    """How windows are improved: tasks, noise and aim; and its recent gain, as a share of the makespan."""

    size: int
    noise: int
    aim: int
    gained: float = TUNING.prior * TUNING.belief
    seconds: float = TUNING.belief
    step: float = 1.0  # seconds of the last step

    @property
    def rate(self) -> float:
        """Recent gain per second."""
        return self.gained / self.seconds

    def learn(self, gain: float, seconds: float) -> None:
        """Count a step."""
        self.gained = TUNING.memory * self.gained + gain
        self.seconds = TUNING.memory * self.seconds + seconds
        self.step = seconds


@dataclass(frozen=True, slots=True, eq=False)
class Improved:
    """A window, its problem, and a shorter arrangement of it; None if none was found."""

    area: Neighbourhood
    sub: Subproblem
    found: Arrangement | None
    seconds: float


def swept(problem: Problem) -> bool:
    """Return whether windows apply: the makespan is the objective, and there are neither deadlines nor memory tiers."""
    return problem.objective.single == "makespan" and not problem.rules and bool((problem.deadline == UNLIMITED).all())


class Sweep:
    """Improves windows of a valid schedule; `state` is the best one so far, or another of the same makespan."""

    def __init__(
        self,
        problem: Problem,
        schedule: Schedule,
        seed: int,
        stopped: Callable[[], bool],
        on_better: Callable[[Schedule], object],
        workers: int = 1,
    ) -> None:
        self.problem, self.seed = problem, seed
        self.stopped, self.on_better = stopped, on_better
        # Under ports the result of a window depends on the transfers of the whole, so windows are taken one by one.
        self.lanes = workers if not problem.contends else 1
        self.state = State(problem, schedule)
        self.random = np.random.default_rng([seed, 11])
        n = problem.n_tasks
        ones = np.ones(n, dtype=np.int64)
        layers = int(path_lengths(problem.order, problem.out_start, problem.edge_target, ones).max(initial=0)) + 1
        sizes = sorted({min(max(depth * n // layers, LEAST), n) for depth in DEPTHS})
        self.operators = [Operator(size, noise, aim, step=size * 5e-5) for size in sizes for noise, aim in WAYS]
        whole = n * problem.n_devices <= TUNING.cells
        self.ahead = [
            Operator(n, noise, aim) for noise, aim in WAYS if whole
        ]  # the whole graph first, once in each way
        self.spent = 0.0  # work so far, in seconds
        self.tried = 0  # windows

    @property
    def span(self) -> int:
        """The makespan of the best schedule so far."""
        return self.state.span

    def go_to(self, schedule: Schedule) -> None:
        """Continue from a schedule."""
        self.state = State(self.problem, schedule)

    def run(self, seconds: float, bound: float) -> None:
        """Continue for about `seconds` of work, or until the makespan is at most a bound."""
        limit = self.spent + seconds
        with ThreadPoolExecutor(self.lanes, thread_name_prefix="windows") as pool:
            while self.spent < limit and self.state.span > bound and not self.stopped():
                self._step(pool)

    def _step(self, pool: ThreadPoolExecutor) -> None:
        """Improve a window in each lane, all by the same operator."""
        operator = self.ahead.pop() if self.ahead else self._chosen()
        areas = self._areas(operator.size)
        numbers = range(self.tried, self.tried + len(areas))
        if len(areas) == 1:
            found = [self._improved(areas[0], operator, self.tried)]
        else:
            found = list(pool.map(self._improved, areas, [operator] * len(areas), numbers))
        before = self.state.span
        self._take(found)
        self.tried += len(areas)
        seconds = max(each.seconds for each in found)
        self.spent += seconds
        operator.learn((before - self.state.span) / max(before, 1), seconds)

    def _chosen(self) -> Operator:
        """Return a random operator; the time that an operator gets is proportional to the square of its rate."""
        rates = np.array([each.rate for each in self.operators])
        worth = rates**2 / np.array([each.step for each in self.operators])
        share = worth / worth.sum() if worth.any() else np.full(len(rates), 1 / len(rates))
        even = np.array([1 / each.step for each in self.operators])
        share = TUNING.exploration * even / even.sum() + (1 - TUNING.exploration) * share
        return self.operators[int(self.random.choice(len(rates), p=share))]

    def _areas(self, size: int) -> list[Neighbourhood]:
        """Return a random window, and others at equal distances from it for the other lanes."""
        n = self.problem.n_tasks
        lanes = min(self.lanes, n // size)
        first = int(self.random.integers(n)) - size // 2
        areas = []
        for lane in range(lanes):
            begin = (first + size // 2 + lane * n // lanes) % n - size // 2
            low, high = max(begin, 0), min(begin + size, n)
            areas.append(Neighbourhood(low, high, np.ones(high - low, dtype=np.bool_)))
        return areas

    def _improved(self, area: Neighbourhood, operator: Operator, number: int) -> Improved:
        """Make passes over a window."""
        state = self.state
        sub = subproblem_of(state, area)
        tail = state.tail[sub.tasks] - sub.rest
        passes = Passes(sub, state.device[sub.tasks], tail, self.seed + 7919 * number)
        passes.run(TUNING.passes, operator.noise, operator.aim, engine.Stop(self.stopped))
        part = sub.problem
        steps = (16 * part.n_tasks + 2 * part.n_edges) * part.n_devices  # of list scheduling
        fixed = TUNING.fixed + TUNING.task * (self.problem.n_tasks + self.problem.n_edges)
        return Improved(area, sub, passes.best, fixed + TUNING.passes * steps * TUNING.step)

    def _take(self, windows: list[Improved]) -> None:
        """Insert each shorter window with which the whole schedule is not longer."""
        state, problem = self.state, self.problem
        device, sequence, span = state.device, state.sequence, state.span
        best: Schedule | None = None
        for each in windows:
            area, sub, found = each.area, each.sub, each.found
            if found is None:
                continue
            if problem.contends:
                homes, line = device, sequence
                schedule = changed(state, sub, area, found.device, found.start)
            else:
                homes, line = inserted(device, sequence, sub, area, found.device, found.start)
                schedule = decoded(problem, line, homes)
            if makespan(problem, schedule) <= span and valid(problem, schedule):
                best, device, sequence, span = schedule, homes, line, makespan(problem, schedule)
        if best is not None:
            shorter = span < state.span
            self.state = self._state(best, sequence)
            if shorter:
                self.on_better(best)

    def _state(self, schedule: Schedule, sequence: Int) -> State:  # noqa: ARG002 - a range keeps the sequence
        return State(self.problem, schedule)
