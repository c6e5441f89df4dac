"""Search policies: a state is mapped to a move, a task and its device, step by step.

The setting is that of GiPH (Y. Hu, C. Zhang, E. Andert, H. Singh, A. Shrivastava, J. Laudon, Y. Zhou, B. Iannucci, C.
Joe-Wong: GiPH: Generalizable placement learning for adaptive heterogeneous computing, MLSys 2023, arXiv:2305.14562,
section 4.1): from a placement, a policy moves one task at a time; every new placement is executed, first in first out,
perhaps with noise; the best one met is what the search has found. Policies differ in nothing but the moves, so that a
learned one, of whoever's making, is compared with the others by the same rules and the same counts.

What costs something is counted: placements executed, and finish times worked out for a task on a device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from placeopt.policies.annealing import Annealing
from placeopt.policies.baselines import RandomMove, RandomTaskEft, RandomTaskGreedy
from placeopt.policies.episode import Episode, random_placement, run_episode, sample_placements
from placeopt.policies.protocol import Policy
from placeopt.policies.simulator import Ledger, Run, Simulator
from placeopt.policies.state import State, Step

POLICIES: Mapping[str, Callable[[], Policy]] = {
    "random-move": RandomMove,
    "random-task-eft": RandomTaskEft,
    "random-task-greedy": RandomTaskGreedy,
    "annealing": Annealing,
    "annealing-2": partial(Annealing, tasks=2),
}
"""The policies that come with placeopt, each made anew when it is called."""

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
