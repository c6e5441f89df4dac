"""Which tasks a large neighbourhood search frees: three kinds of stretches, each with a size that adapts.

    time       consecutive tasks of the sequence, on all devices
    devices    the tasks of two devices among consecutive ones
    critical   a connected cluster around a task of the critical path: its neighbours in the graph and on its device

Stretches that were tried in vain come last for a while: of some drawn ones that with the fewest failures a task is
taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.problem import Problem

from .model import Stretch
from .state import State

Name = Literal["time", "devices", "critical"]

FEWEST = 6
"""Free tasks at least."""

FIRST_SIZE = {"time": 25, "devices": 30, "critical": 20}
"""Free tasks of the first stretches of each kind, for four devices."""

LONGEST = 240
"""Tasks of a stretch at most, fixed ones included: the model's size."""

DRAWN = 3
"""Stretches of which one is taken."""


@dataclass(slots=True)
class Kind:
    """A kind of stretches and how it fares.

    Attributes
    ----------
    size
        Free tasks of the next.
    tried, gains, ticks, seconds
        Stretches solved, those that made the schedule shorter, by how many ticks in all, and what they took.
    rate
        Share of the makespan gained a second, of late; infinite before the first try.
    """

    name: Name
    size: float
    tried: int = 0
    gains: int = 0
    ticks: int = 0
    seconds: float = 0.0
    rate: float = math.inf


class Chooser:
    """Draws stretches."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem = problem
        self.random = np.random.default_rng([seed, 7])
        self.failures = np.zeros(problem.n_tasks, dtype=np.int64)
        names: list[Name] = ["time", "devices", "critical"] if problem.n_devices > 2 else ["time", "critical"]
        self.kinds = [Kind(name, min(FIRST_SIZE[name], problem.n_tasks)) for name in names]

    def stretch(self, state: State, kind: Kind) -> Stretch:
        """A stretch of a kind, one that failed seldom."""
        drawn = [self._drawn(state, kind) for _ in range(DRAWN)]
        return min(drawn, key=lambda found: self.failures_of(state, found))

    def failed(self, state: State, stretch: Stretch) -> None:
        """Remember that a stretch was tried in vain."""
        self.failures[state.sequence[stretch.first : stretch.last][stretch.free]] += 1

    def succeeded(self, state: State, stretch: Stretch) -> None:
        """Forget failures around a stretch that changed: its tasks and as many on both sides."""
        length = stretch.last - stretch.first
        self.failures[state.sequence[max(stretch.first - length, 0) : stretch.last + length]] = 0

    def failures_of(self, state: State, stretch: Stretch) -> float:
        """How often the free tasks of a stretch were tried in vain, on average."""
        tasks = state.sequence[stretch.first : stretch.last][stretch.free]
        return float(self.failures[tasks].mean()) if len(tasks) else float("inf")

    def _drawn(self, state: State, kind: Kind) -> Stretch:
        n, size = self.problem.n_tasks, min(int(kind.size), self.problem.n_tasks)
        if kind.name == "critical":
            return self._cluster(state, size)
        if kind.name == "time":
            first, last = self._first(size)
            return Stretch(first, last, np.ones(last - first, dtype=np.bool_))
        m = self.problem.n_devices
        length = min(size * m // 2, LONGEST, n)
        first, last = self._first(length)
        pair = self.random.choice(m, 2, replace=False)
        return Stretch(first, last, np.isin(state.device[state.sequence[first:last]], pair))

    def _first(self, length: int) -> tuple[int, int]:
        """Where a stretch begins and ends; those at either end of the sequence are cut off there."""
        n = self.problem.n_tasks
        first = int(self.random.integers(-(length // 2), n - length + length // 2 + 1))
        return max(first, 0), min(first + length, n)

    def _cluster(self, state: State, size: int) -> Stretch:
        """Tasks reached from one of the critical path, those at random next, in reach of a stretch."""
        problem, random = self.problem, self.random
        seed = int(random.choice(state.critical))
        low = max(int(state.position[seed]) - LONGEST // 2, 0)
        high = min(low + LONGEST, problem.n_tasks)
        taken, border = {seed}, [seed]
        while border and len(taken) < size:
            k = int(random.integers(len(border)))
            border[k], border[-1] = border[-1], border[k]
            for j in state.neighbours(border.pop()).tolist():
                if j not in taken and low <= state.position[j] < high and len(taken) < size:
                    taken.add(j)
                    border.append(j)
        positions: Int = np.sort(state.position[list(taken)])
        first, last = int(positions[0]), int(positions[-1]) + 1
        free = np.zeros(last - first, dtype=np.bool_)
        free[positions - first] = True
        return Stretch(first, last, free)
