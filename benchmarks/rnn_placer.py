"""The RNN-based placer, the rival of GiPH that is trained on each problem separately.

A. Mirhoseini, A. Goldie, H. Pham, B. Steiner, Q. V. Le, J. Dean: A hierarchical model for device placement (HDP), ICLR
2018. Only its placer is used, as in Y. Hu et al., GiPH, MLSys 2023 (section 5 and appendix B.7): a sequence-to-sequence
model (`rnn_network`) draws complete placements. REINFORCE trains it with the reward -sqrt(makespan) and, as a baseline,
the mean of all earlier rewards. Both papers draw 4 placements for each update. HDP and the released code of GiPH use
C = 5 and T = 10; HDP clips gradients to the norm 1.

The input of each task, in topological order, is: its type, one-hot; its work; the bytes of each out-edge; its consumers
in the sequence, as 0 or 1. Work and bytes are divided by their maxima. A problem does not contain the "type of hardware
requirement" of GiPH; tasks of one type may run on the same devices.

Choices where the papers leave one, or differ:

- GiPH states the learning rate 0.01; HDP and the released code of GiPH use 0.1.
- GiPH trains "until the latency is no longer improved", its released code for 100 updates. Here, training ends after
  100 updates, or `patience` updates without a better placement.
- Rewards are divided by the square root of the first placement's value, so the unit of the objective does not matter.
- The released code gives infeasible placements the reward -100, which is 3.7 times a usual one on its data. Here, it is
  -4. They occur only if memory or separation is violated, are not executed, and do not become the best placement.
- Tasks of a colocation group follow the first of them.
- The baseline does not contain the rewards of the current update, except for the first. That of the released code does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from placeopt.bridges.extras import require
from placeopt.learning.graphs.traits import Traits, fitted_traits
from placeopt.model.arrays import Int
from placeopt.model.memory import per_device
from placeopt.model.problem import Objective, Problem
from placeopt.policies.episode import Episode, Record, prepare

if TYPE_CHECKING:
    from rnn_network import RnnSettings

INFEASIBLE = -4.0
"""The reward of a placement that violates memory limits or separation; the first placement has -1."""


def admits(problem: Problem, device: Int) -> bool:
    """Whether a placement (n,) on feasible devices satisfies memory limits and separation."""
    left, right = problem.separation.T
    fits = per_device(problem, device, problem.memory) <= problem.capacity
    return bool(fits.all() and (device[left] != device[right]).all())


def place_by_rnn(
    problem: Problem,
    device: Sequence[int] | Int,
    *,
    steps: int = 400,
    noise: float = 0.0,
    seed: int = 0,
    objective: Objective | None = None,
    settings: RnnSettings | None = None,
    traits: Traits | None = None,
) -> Episode:
    """Train an RNN placer on a problem and return the placements that it drew.

    The record starts with the placement `device` (n,), which defines the unit of rewards. It then has one entry for
    each placement drawn, at most `steps`, and ends when training ends. A placement that violates memory limits or
    separation is not executed; its entry repeats the previous one. The same seed gives the same result on a CPU. A GPU
    is not used: the network is small and runs task by task.

    O(n^2) operations for each placement, as the decoder attends to all tasks at each task.

    Raises
    ------
    MissingExtraError
        If PyTorch is not installed.
    UsageError
        For the reasons of `placeopt.policies.run_episode`.
    """
    require("torch", "torch", "learned policies")
    from rnn_network import RnnSettings, RnnTrainer, sequence_of

    settings = RnnSettings() if settings is None else settings
    first, simulator, rng = prepare(problem, device, steps, noise, seed, objective)
    record = Record(simulator, first)
    current = record.best
    unit = current or 1.0
    sequence = sequence_of(problem, fitted_traits(problem) if traits is None else traits)
    trainer = RnnTrainer(sequence, settings, int(rng.integers(2**63)))
    earlier: list[float] = []
    last = 0  # update of the latest improvement
    for update in range(settings.updates):
        count = min(settings.batch, steps - len(record) + 1)
        if count == 0 or (settings.patience is not None and update - last > settings.patience):
            break
        rewards: list[float] = []
        for placement in trainer.draw(count):
            if admits(problem, placement):
                run = simulator.run(placement)
                current = run.value
                rewards.append(-math.sqrt(current / unit))
                if record.observe(placement, run):
                    last = update
            else:
                rewards.append(INFEASIBLE)
            record.add(current)
        trainer.learn(np.array(rewards) - np.mean(earlier or rewards))
        earlier += rewards
    return record.episode("rnn-placer")
