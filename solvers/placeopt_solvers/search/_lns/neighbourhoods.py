"""Choose neighbourhoods: three kinds, each with a size that adapts.

    time       consecutive tasks of the sequence, on all devices
    devices    the tasks of two devices among consecutive ones
    critical   a connected cluster around a task of the critical path: its neighbours in the graph and on its device

Several neighbourhoods are drawn, and the one with the fewest failures per task is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.problem import Problem

from .._intervals.state import State
from .._intervals.subproblem import Neighbourhood
from .tuning import TUNING

Name = Literal["time", "devices", "critical"]


@dataclass(slots=True)
class Kind:
    """A kind of neighbourhoods and its success."""

    name: Name
    size: float  # free tasks of the next neighbourhood
    tried: int = 0
    ticks: int = 0  # gained in total
    seconds: float = 0.0  # spent in total
    rate: float = math.inf  # recent gain per second, as a share of the makespan; infinite before the first trial


class Chooser:
    """Draws neighbourhoods."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem = problem
        self.random = np.random.default_rng([seed, 7])
        self.failures = np.zeros(problem.n_tasks, dtype=np.int64)
        names: list[Name] = ["time", "devices", "critical"] if problem.n_devices > 2 else ["time", "critical"]
        self.kinds = [Kind(name, min(TUNING.first_size[name], problem.n_tasks)) for name in names]

    def draw(self, state: State, kind: Kind) -> Neighbourhood:
        """Return a neighbourhood of a kind, one with few failures."""
        drawn = [self._drawn(state, kind) for _ in range(TUNING.drawn)]
        return min(drawn, key=lambda found: self.failures_of(state, found))

    def failed(self, state: State, area: Neighbourhood) -> None:
        """Count a failure."""
        self.failures[state.sequence[area.first : area.last][area.free]] += 1

    def succeeded(self, state: State, area: Neighbourhood) -> None:
        """Forget failures of the tasks of a neighbourhood that changed, and of as many on both sides."""
        length = area.last - area.first
        self.failures[state.sequence[max(area.first - length, 0) : area.last + length]] = 0

    def failures_of(self, state: State, area: Neighbourhood) -> float:
        """Return the mean number of failures of the free tasks."""
        tasks = state.sequence[area.first : area.last][area.free]
        return float(self.failures[tasks].mean()) if len(tasks) else float("inf")

    def _drawn(self, state: State, kind: Kind) -> Neighbourhood:
        n, size = self.problem.n_tasks, min(int(kind.size), self.problem.n_tasks)
        if kind.name == "critical":
            return self._cluster(state, size)
        if kind.name == "time":
            first, last = self._first(size)
            return Neighbourhood(first, last, np.ones(last - first, dtype=np.bool_))
        m = self.problem.n_devices
        length = min(size * m // 2, TUNING.span, n)
        first, last = self._first(length)
        pair = self.random.choice(m, 2, replace=False)
        return Neighbourhood(first, last, np.isin(state.device[state.sequence[first:last]], pair))

    def _first(self, length: int) -> tuple[int, int]:
        """Return a random interval of positions, cut off at the ends of the sequence."""
        n = self.problem.n_tasks
        first = int(self.random.integers(-(length // 2), n - length + length // 2 + 1))
        return max(first, 0), min(first + length, n)

    def _cluster(self, state: State, size: int) -> Neighbourhood:
        """Return tasks reached in random order from one of the critical path, within the largest interval."""
        problem, random = self.problem, self.random
        seed = int(random.choice(state.critical))
        low = max(int(state.position[seed]) - TUNING.span // 2, 0)
        high = min(low + TUNING.span, problem.n_tasks)
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
        return Neighbourhood(first, last, free)
