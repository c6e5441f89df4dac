"""Simulated annealing as a search policy: draw moves by estimated gains, accept them by the value of the objective.

S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi: Optimization by simulated annealing, Science 220 (1983),
doi:10.1126/science.220.4598.671; acceptance rule of N. Metropolis et al. 1953, doi:10.1063/1.1699114.

Departures from uniformly random moves, with which the short episodes of GiPH (two steps per task) would be little more
than a random walk:

- If the objective is the makespan, only tasks of the critical path are moved (`State.critical_path`).
- A move is drawn with a probability proportional to exp(g / (T / greed)), where T is the temperature and g the
  estimated decrease of the value (`State.gains`): for the makespan, the current end of the task minus its finish time
  after the move. Near the end of an episode, this is almost always the best move. Draws have a lower temperature than
  acceptance because there are many moves.

The move is executed and kept with probability min(1, exp((before - after) / T)), in terms of the values. A reverted
move is not proposed again before another move was kept, and neither is the reverse of a kept move. T decreases
geometrically during the episode, from `hot` to `cold` times the best value so far.

Cost of a step: one execution, and one estimate per device for each task of the path, or of `tasks` tasks drawn from it.
(The policy of GiPH receives similar data of all tasks in each step, the "start-time potential".)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator

from placeopt.errors import UsageError
from placeopt.model.problem import Problem
from placeopt.policies.state import Policy, State


class Annealing(Policy):
    """Simulated annealing.

    Parameters
    ----------
    tasks
        Number of tasks that a step examines, drawn from the critical path, or from all tasks; None: all of them.
    hot, cold
        First and last temperature, as shares of the best value so far.
    greed
        Ratio of the temperature of acceptance to that of drawing moves.

    Raises
    ------
    UsageError
        If a number is out of range.
    """

    def __init__(self, tasks: int | None = None, hot: float = 0.1, cold: float = 0.01, greed: float = 40.0) -> None:
        if tasks is not None and tasks < 1:
            raise UsageError(f"tasks: {tasks} is too few; expected at least 1, or None for all")
        if not 0 < cold <= hot:
            raise UsageError(f"hot: {hot}, cold: {cold} are not valid temperatures; expected 0 < cold <= hot")
        self.name = "annealing" if tasks is None else f"annealing-{tasks}"
        if not greed > 0:
            raise UsageError(f"greed: {greed} is not positive")
        self.tasks, self.hot, self.cold, self.greed = tasks, hot, cold, greed

    def begin(self, problem: Problem, steps: int, rng: Generator) -> None:
        """Clear the excluded moves of the previous episode."""
        super().begin(problem, steps, rng)
        self._excluded: set[tuple[int, int]] = set()

    def move(self, state: State) -> tuple[int, int]:
        """A move of a critical task; of any task under other objectives, or if all moves of those are excluded."""
        moves: list[tuple[int, int]] = []
        gains: list[float] = []
        everything = range(state.problem.n_tasks)
        for pool in (state.critical_path(), everything) if state.only_makespan else (everything,):
            movable = [task for task in pool if self._open(state, task)]
            if movable:
                for task in self._chosen(movable):
                    gain = dict(zip(state.options(task).tolist(), state.gains(task).tolist(), strict=True))
                    for device in self._open(state, task):
                        moves.append((task, device))
                        gains.append(gain[device])
                break
        if not moves:  # all moves were reverted: try them again
            self._excluded.clear()
            return 0, int(state.device[0])
        gain_of = np.array(gains)
        weight = np.exp((gain_of - gain_of.max()) / self._temperature(state) * self.greed)
        return moves[self.rng.choice(len(moves), p=weight / weight.sum())]

    def keep(self, before: State, after: State) -> bool:
        """The Metropolis rule."""
        made = after.history[-1]
        worse = after.value - before.value
        if worse > 0 and self.rng.random() >= math.exp(-worse / self._temperature(after)):
            self._excluded.add((made.task, made.device))
            return False
        self._excluded = {(made.task, int(before.device[made.task]))}
        return True

    def _open(self, state: State, task: int) -> list[int]:
        """The other devices of a task whose moves are not excluded."""
        here = state.device[task]
        return [d for d in state.options(task).tolist() if d != here and (task, d) not in self._excluded]

    def _chosen(self, tasks: list[int]) -> list[int]:
        if self.tasks is None or len(tasks) <= self.tasks:
            return tasks
        return [tasks[place] for place in self.rng.choice(len(tasks), self.tasks, replace=False)]

    def _temperature(self, state: State) -> float:
        fall = (self.cold / self.hot) ** (state.step / max(self.steps, 1))
        return float(max(self.hot * fall * state.best, 1e-9))
