"""Operator fusion: tasks of one colocation group that an edge connects become one, where no cycle can come of it.

B. Jeon, L. Cai, P. Srivastava, J. Jiang, X. Ke, Y. Meng, C. Xie, I. Gupta: Baechi: Fast device placement of machine
learning graphs. SoCC 2020, doi:10.1145/3419111.3421302, section 3.3 and figure 5: source and destination of an edge are
fused if the source has an out-degree of at most 1 or the destination an in-degree of at most 1, for then no second
path leads from one to the other (figures 5d and 5e). Which is checked on the graph as it has become, until nothing is
left to fuse. What a fused task is: `placeopt.passes.contraction`.

All edges of one kind are contracted at once: first those whose source has no other consumer, then, when none is left,
those whose destination has no other producer. That is as one by one. The sources of the first kind hang on each
other as trees; contracting one edge leaves the out-degree of the other sources as it was, since what is fused into a
task brings no other consumers; so each is safe when its turn comes. Of the second kind that is true the other way
round. Several edges between two tasks count as one; so do those that become such.

O((n + e) log e) for each of the rounds, which are few where chains and trees are what is fused.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.building import by_first_appearance
from placeopt.model.graph import components
from placeopt.model.problem import Problem
from placeopt.passes.contraction import clusters, contraction
from placeopt.passes.protocol import Reduction
from placeopt.passes.rebuilding import at_odds
from placeopt.solver.citations import BAECHI


class Fuse:
    """Makes one task of neighbours in a group."""

    name: ClassVar[str] = "fuse"
    exact: ClassVar[bool] = False
    summary: ClassVar[str] = "connected tasks of a group become one, where one has no other consumer or producer"
    gives_up: ClassVar[str] = "other tasks in between, and consumers that start before the whole has ended"
    citation: ClassVar[str] = BAECHI

    def apply(self, problem: Problem) -> Reduction | None:
        """The problem of the fused tasks."""
        if problem.n_tasks == 0 or at_odds(problem):
            return None
        label = fused(problem)
        if int(label.max()) + 1 == problem.n_tasks:
            return None
        return contraction(problem, clusters(label, problem.order))


def fused(problem: Problem) -> Int:
    """(n,) the cluster of each task, in order of first appearance."""
    n = problem.n_tasks
    label, group = np.arange(n), problem.group
    source, target = problem.edge_source, problem.edge_target
    while True:
        pairs = np.unique(source * n + target)
        source, target = pairs // n, pairs % n
        together = group[source] == group[target]
        chosen = together & (np.bincount(source, minlength=n)[source] == 1)
        if not chosen.any():
            chosen = together & (np.bincount(target, minlength=n)[target] == 1)
        if not chosen.any():
            return by_first_appearance(label)
        joined, _ = components(n, source[chosen], target[chosen])
        into = np.unique(joined, return_index=True)[1][joined]  # the first of those that become one stands for all
        label, source, target = into[label], into[source], into[target]
        source, target = source[source != target], target[source != target]
