"""The critical path of an execution: each task starts when an input arrives or its device becomes free."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int, inverse
from placeopt.model.native import native
from placeopt.model.problem import Problem


class Links(NamedTuple):
    """The tasks of each device in the order of their starts; -1 at the ends."""

    head: Int  # (m,) first task of each device
    following: Int  # (n,) next task on the same device
    before: Int  # (n,) previous task on the same device


class CriticalPaths:
    """Finds the critical paths of executions of one problem."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._position = inverse(problem.order)

    def links(self, device: Int, start: Int, end: Int) -> Links:
        """The tasks of each device, if they start and end at these ticks; ties in topological order."""
        order = np.lexsort((self._position, end, start, device))
        on = device[order]
        first = np.ones(len(on), dtype=np.bool_)
        first[1:] = on[1:] != on[:-1]
        head = np.full(self._problem.n_devices, -1)
        head[on[first]] = order[first]
        following, before = np.full((2, len(order)), -1)
        earlier, later = order[:-1][~first[1:]], order[1:][~first[1:]]
        following[earlier], before[later] = later, earlier
        return Links(head, following, before)

    def path(self, start: Int, end: Int, edge_ticks: Int, before: Int) -> Int:
        """The critical path, first to last, of an execution with these times; `before` as in `Links`."""
        if not self._problem.n_tasks:
            return np.empty(0, dtype=np.int64)
        return engine.critical_path(native(self._problem), start, end, edge_ticks, before)
