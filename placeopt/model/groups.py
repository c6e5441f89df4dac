"""Colocation groups as what has to be placed: their memory, and which must be apart."""

from __future__ import annotations

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.problem import Problem


def group_memory(problem: Problem) -> Int:
    """(g,) bytes of all members of each group, counted as under the `sum` memory model."""
    if problem.n_groups == problem.n_tasks:  # each task is its own, in order
        return problem.memory
    memory = np.zeros(problem.n_groups, dtype=np.int64)
    np.add.at(memory, problem.group, problem.memory)
    return memory


def group_separation(problem: Problem) -> tuple[Int, Int]:
    """(g + 1,), (p,) as CSR: group k must be apart from other[start[k]:start[k + 1]].

    From itself, too, if two of its tasks must be apart.
    """
    both = np.concatenate((problem.separation, problem.separation[:, ::-1]))
    pairs = np.unique(problem.group[both], axis=0)
    start = np.searchsorted(pairs[:, 0], np.arange(problem.n_groups + 1)).astype(np.int64)
    return start, np.ascontiguousarray(pairs[:, 1])
