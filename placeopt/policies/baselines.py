"""The baseline policies of GiPH (Hu et al. 2023, section 5), and one that tries each device.

Details follow the released code of the paper, github.com/uidmice/placement-rl (`random_op_est_dev`,
`dev_selection_eft`, `random_op_greedy_dev`).
"""

from __future__ import annotations

import numpy as np

from placeopt.policies.state import Policy, State


class RandomMove(Policy):
    """Draws a move uniformly from those that change the placement."""

    name = "random-move"

    def move(self, state: State) -> tuple[int, int]:
        moves = [
            (task, device)
            for task in range(state.problem.n_tasks)
            for device in state.options(task).tolist()
            if device != state.device[task]
        ]
        return moves[self.rng.integers(len(moves))] if moves else (0, int(state.device[0]))


class RandomTaskEft(Policy):
    """Moves a random task to the device with the earliest finish time (EFT); ties go to the lowest index."""

    name = "random-task-eft"

    def move(self, state: State) -> tuple[int, int]:
        task = int(self.rng.integers(state.problem.n_tasks))
        return task, int(state.options(task)[state.finish_times(task).argmin()])


class RandomTaskGreedy(Policy):
    """Moves a random task to the device with the least value; a step executes the move to each device."""

    name = "random-task-greedy"

    def move(self, state: State) -> tuple[int, int]:
        task = int(self.rng.integers(state.problem.n_tasks))
        options = state.options(task)
        return task, int(options[np.argmin([state.evaluate(task, device) for device in options.tolist()])])
