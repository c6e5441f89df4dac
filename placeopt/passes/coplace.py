"""Co-placement: a producer whose output one consumer alone uses joins it, a backward task its forward task.

B. Jeon, L. Cai, P. Srivastava, J. Jiang, X. Ke, Y. Meng, C. Xie, I. Gupta: Baechi: Fast device placement of machine
learning graphs. SoCC 2020, doi:10.1145/3419111.3421302, section 3.2: "If the output of an operator is only used by its
next operator, we place both operators on the same device", and "Baechi co-places each backward operator on the same
device as its respectively-matched forward operator".

Departures from the paper:

- Groups are formed before placement; Baechi finds them when it places the first operator of one.
- Never does a group form that no device may run or has room for, or that a separation forbids. Pairs are tried in turn:
  backward tasks by index, then producers in topological order (`m-topo`), so that a chain that is too long for a device
  is cut where the device is full.
- A producer with several edges to its one consumer counts as well.

O((n + e) m) but for what separated pairs add.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.passes.protocol import Reduction
from placeopt.passes.rebuilding import at_odds
from placeopt.passes.uniting import regrouped, united
from placeopt.solver.citations import BAECHI

BAECHI = BAECHI


class Coplace:
    """Unites the groups of tasks that have only each other to talk to, and of forward and backward tasks."""

    name: ClassVar[str] = "coplace"
    exact: ClassVar[bool] = False
    summary: ClassVar[str] = "a producer with one consumer joins it in a group, a backward task its forward task"
    gives_up: ClassVar[str] = "placements that part them; groups may no longer find room together"
    citation: ClassVar[str] = BAECHI

    def apply(self, problem: Problem) -> Reduction | None:
        """The problem with larger groups."""
        if problem.n_tasks == 0 or at_odds(problem):
            return None
        producer = single_producers(problem)
        consumer = problem.edge_target[problem.out_start[producer]]
        backward = backward_tasks(problem)
        left = problem.group[np.concatenate((problem.forward[backward], consumer))]
        right = problem.group[np.concatenate((backward, producer))]
        return regrouped(problem, united(problem, left, right))


def backward_tasks(problem: Problem) -> Int:
    """The backward tasks, by index."""
    return np.flatnonzero(problem.forward != np.arange(problem.n_tasks))


def single_producers(problem: Problem) -> Int:
    """The tasks whose output one consumer alone uses, in topological order."""
    source, target = problem.edge_source, problem.edge_target
    fresh = np.ones(problem.n_edges, dtype=np.bool_)  # edges to another consumer than the one before
    fresh[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    consumers = np.bincount(source[fresh], minlength=problem.n_tasks)
    return np.asarray(problem.order[consumers[problem.order] == 1])
