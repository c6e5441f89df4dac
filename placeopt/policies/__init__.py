"""Search policies, which map a state to a move of one task, and their comparison at equal numbers of steps.

The setting is that of GiPH (Y. Hu, C. Zhang, E. Andert, H. Singh, A. Shrivastava, J. Laudon, Y. Zhou, B. Iannucci, C.
Joe-Wong: GiPH: Generalizable placement learning for adaptive heterogeneous computing, MLSys 2023, arXiv:2305.14562,
section 4.1). The search starts from a placement, and the policy moves one task per step. Each new placement is
executed, that is, simulated in first-in-first-out order, with noise if requested. The result is the best placement
visited, by makespan or by another objective. Policies differ only in their moves, so learned and hand-written ones can
be compared.

Two kinds of cost are counted: executed placements, and computed finish times of a task on a device.

state       `State`, the input of a policy; `Policy`, the base class
simulator   executes and counts placements
critical    critical paths of executions
values      values of executed placements under an objective
episode     `run_episode`, `sample_placements`, `random_placement`
baselines   random moves, earliest finish time, best device
annealing   simulated annealing
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from placeopt.policies.annealing import Annealing
from placeopt.policies.baselines import RandomMove, RandomTaskEft, RandomTaskGreedy
from placeopt.policies.episode import Episode, random_placement, run_episode, sample_placements
from placeopt.policies.simulator import Ledger, Run, Simulator
from placeopt.policies.state import Policy, State, Step

POLICIES: Mapping[str, Callable[[], Policy]] = {
    "random-move": RandomMove,
    "random-task-eft": RandomTaskEft,
    "random-task-greedy": RandomTaskGreedy,
    "annealing": Annealing,
    "annealing-2": partial(Annealing, tasks=2, hot=0.04, cold=0.004, greed=12.0),
}
"""The policies of placeopt by name, as functions that create a new object."""

__all__ = [
    "POLICIES",
    "Annealing",
    "Episode",
    "Ledger",
    "Policy",
    "RandomMove",
    "RandomTaskEft",
    "RandomTaskGreedy",
    "Run",
    "Simulator",
    "State",
    "Step",
    "random_placement",
    "run_episode",
    "sample_placements",
]
