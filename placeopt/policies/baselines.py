"""Policies to compare with: those of GiPH (Hu et al. 2023, section 5), and one that tries every device.

Facts on the last two come from the paper's released code, github.com/uidmice/placement-rl (`random_op_est_dev`,
`dev_selection_eft`, `random_op_greedy_dev`).
"""

from __future__ import annotations

import numpy as np

from placeopt.policies.protocol import Policy
from placeopt.policies.state import State


class RandomMove(Policy):
    """Any task to any other of its devices, each such move as likely as the others."""

    name = "random-move"

    def move(self, state: State) -> tuple[int, int]:
        """One of the moves that change the placement."""
        moves = [
            (task, device)
            for task in range(state.problem.n_tasks)
            for device in state.options(task).tolist()
            if device != state.device[task]
        ]
        return moves[self.rng.integers(len(moves))] if moves else (0, int(state.device[0]))


class RandomTaskEft(Policy):
    """A random task to the device on which it ends first, its own perhaps; ties go to the lowest index."""

    name = "random-task-eft"

    def move(self, state: State) -> tuple[int, int]:
        """Any task, as likely as the others; the earliest finish time (EFT)."""
        task = int(self.rng.integers(state.problem.n_tasks))
        return task, int(state.options(task)[state.finish_times(task).argmin()])


class RandomTaskGreedy(Policy):
    """A random task to the device that gives the least makespan: each is tried, so a step costs several executions."""

    name = "random-task-greedy"

    def move(self, state: State) -> tuple[int, int]:
        """Any task, as likely as the others; the best device, of equals the lowest index."""
        task = int(self.rng.integers(state.problem.n_tasks))
        options = state.options(task)
        return task, int(options[np.argmin([state.evaluate(task, device) for device in options.tolist()])])
