"""What a search policy is: it maps a state to a move, a task and the device that it goes to."""

from __future__ import annotations

from abc import ABC, abstractmethod

from numpy.random import Generator

from placeopt.model.problem import Problem
from placeopt.policies.state import State


class Policy(ABC):
    """A search policy; `placeopt.policies.run_episode` runs it.

    One object may run many episodes, one after another. GiPH (Hu et al. 2023, section 4.1) calls this a Markov decision
    process: states are feasible placements, an action moves one task, and the reward is what the makespan gains.
    """

    name: str

    def begin(self, problem: Problem, steps: int, rng: Generator) -> None:
        """Make ready for an episode of so many steps; all random numbers come from `rng`."""
        self.problem, self.steps, self.rng = problem, steps, rng

    @abstractmethod
    def move(self, state: State) -> tuple[int, int]:
        """The task to move and a device among `state.options(task)`; the device where it is leaves all as it is."""

    def keep(self, before: State, after: State) -> bool:  # noqa: ARG002 - for those who look
        """Whether the search goes on from the placement that the move led to, or from the one before.

        Always, as in GiPH, unless a policy says otherwise. Going back needs no execution: that placement is known.
        """
        return True
