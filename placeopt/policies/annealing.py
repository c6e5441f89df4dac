"""Simulated annealing as a search policy: moves drawn by their finish times, kept or taken back by the makespan.

S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi: Optimization by simulated annealing, Science 220 (1983),
doi:10.1126/science.220.4598.671; the rule of acceptance is that of N. Metropolis et al. 1953, doi:10.1063/1.1699114.
An episode of GiPH is short, two steps for each task, so that annealing with moves drawn at random would end as little
more than a random walk. Two things make the steps count:

- Only what the makespan hangs on is moved: the tasks of the critical path (`State.critical_path`).
- Of their moves one is drawn with probability proportional to exp(-(f - c) / (T / greed)), where f is the finish time
  that the move would give its task, c the task's end now and T the temperature: near the end of an episode nearly
  always the move that gains most. Moves are drawn at a lower temperature than they are kept at because they are many.

The move is executed, and kept with probability min(1, exp((before - after) / T)) by its makespans. What was taken back
is not proposed again before another move has been kept, nor is the way back from that one. T falls geometrically over
the episode, from `hot` to `cold` times the best makespan so far.

A step costs one execution, and a finish time for each device of each task that is looked at: of the whole path, or of
`tasks` tasks drawn from it. (GiPH's own policy sees the like of all tasks at every step, as "start-time potential".)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator

from placeopt.errors import UsageError
from placeopt.model.problem import Problem
from placeopt.policies.protocol import Policy
from placeopt.policies.state import State


class Annealing(Policy):
    """Simulated annealing.

    Parameters
    ----------
    tasks
        Tasks of the critical path that a step looks at; None: all of them.
    hot, cold
        First and last temperature, as parts of the best makespan so far.
    greed
        How many times colder moves are drawn than kept.

    Raises
    ------
    UsageError
        If a number makes no sense.
    """

    def __init__(self, tasks: int | None = None, hot: float = 0.04, cold: float = 0.004, greed: float = 4.0) -> None:
        if tasks is not None and tasks < 1:
            raise UsageError(f"tasks: {tasks} is too few; expected at least 1, or None for all")
        if not 0 < cold <= hot:
            raise UsageError(f"hot: {hot}, cold: {cold} are no falling temperatures; expected 0 < cold <= hot")
        self.name = "annealing" if tasks is None else f"annealing-{tasks}"
        if not greed > 0:
            raise UsageError(f"greed: {greed} is not positive")
        self.tasks, self.hot, self.cold, self.greed = tasks, hot, cold, greed

    def begin(self, problem: Problem, steps: int, rng: Generator) -> None:
        """Forget what was taken back in another episode."""
        super().begin(problem, steps, rng)
        self._barred: set[tuple[int, int]] = set()

    def move(self, state: State) -> tuple[int, int]:
        """A move of a critical task; of any task where all those are barred."""
        moves: list[tuple[int, int]] = []
        gains: list[int] = []
        for pool in (state.critical_path(), range(state.problem.n_tasks)):
            movable = [task for task in pool if self._open(state, task)]
            if movable:
                for task in self._chosen(movable):
                    finish = dict(zip(state.options(task).tolist(), state.finish_times(task).tolist(), strict=True))
                    for device in self._open(state, task):
                        moves.append((task, device))
                        gains.append(int(state.run.end[task]) - finish[device])
                break
        if not moves:  # every single move has been taken back: some may be tried again
            self._barred.clear()
            return 0, int(state.device[0])
        gain = np.array(gains, dtype=np.float64)
        weight = np.exp((gain - gain.max()) / self._temperature(state) * self.greed)
        return moves[self.rng.choice(len(moves), p=weight / weight.sum())]

    def keep(self, before: State, after: State) -> bool:
        """The rule of Metropolis."""
        made = after.history[-1]
        worse = after.makespan - before.makespan
        if worse > 0 and self.rng.random() >= math.exp(-worse / self._temperature(after)):
            self._barred.add((made.task, made.device))
            return False
        self._barred = {(made.task, int(before.device[made.task]))}
        return True

    def _open(self, state: State, task: int) -> list[int]:
        """The devices that the task may be proposed to move to."""
        here = state.device[task]
        return [d for d in state.options(task).tolist() if d != here and (task, d) not in self._barred]

    def _chosen(self, tasks: list[int]) -> list[int]:
        if self.tasks is None or len(tasks) <= self.tasks:
            return tasks
        return [tasks[place] for place in self.rng.choice(len(tasks), self.tasks, replace=False)]

    def _temperature(self, state: State) -> float:
        fall = (self.cold / self.hot) ** (state.step / max(self.steps, 1))
        return float(max(self.hot * fall * state.best, 1e-9))
