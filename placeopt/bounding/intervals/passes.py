"""Raise the heads of all tasks in topological order, each by a part that CP-SAT solves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from placeopt.bounding.intervals.parts import FAR, Parts, producers
from placeopt.bounding.quick.classes import Classes, by_group
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem, transfer_ticks
from placeopt.solver import Options, Termination, checked_settings
from placeopt.solver.registry import find_solver

SOLVER = "cp-sat"

SMALLEST = 3
"""Tasks of the smallest part that may raise a head."""

WORK = 0.5
"""CP-SAT's deterministic time for a part; most parts need a hundredth of it."""


@dataclass(eq=False)
class Heads:
    """The heads of a problem, or of its mirror, whose heads are the tails of the problem.

    Attributes
    ----------
    head, tail
        (n, k) by class, shared with the other direction; FAR where the class is closed.
    raised
        Called after the heads of a task have been raised.
    known
        Lower bounds of the makespans of parts by fingerprint, None for infeasible ones: equal parts are solved once.
    """

    problem: Problem
    classes: Classes
    head: Int
    tail: Int
    raised: Callable[[int], None]
    should_stop: Callable[[], bool]
    worth: Callable[[int], bool]
    known: dict[str, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.parts = Parts(self.problem, self.head)
        self._settings = checked_settings(SOLVER, find_solver(SOLVER).settings_type, {"work": WORK, "series": False})
        members = np.bincount(self.problem.group)[self.problem.group]
        joins = [len(np.unique(producers(self.problem, v))) > 1 for v in range(self.problem.n_tasks)]
        # Another task with one producer only follows that on the same device, or after the transfer.
        self._grouped = members > 1
        self._joins = np.array(joins, dtype=np.bool_) | self._grouped

    def raise_all(self, size: int) -> Iterator[None]:
        """Raise the heads of all tasks that matter by parts of at most `size` tasks; yield after each task."""
        for v in self.problem.order.tolist():
            self.propagate(v)
            if self._joins[v] and self.worth(v):
                tasks = self.parts.nearest(v, size)
                for c in np.argsort(self.head[v] + self.classes.duration[v], kind="stable").tolist():
                    while self._useful(v, c) and not self._raise(v, c, tasks):
                        yield
            self.raised(v)
            yield

    def propagate(self, v: int) -> None:
        """Raise the heads of a task by those of its producers and by the transfers from them."""
        classes, problem = self.classes, self.problem
        open_ = self.head[v] < FAR
        for e in problem.in_edge[problem.in_start[v] : problem.in_start[v + 1]].tolist():
            u = int(problem.edge_source[e])
            end = np.minimum(self.head[u] + classes.duration[u], FAR)
            arrival = end
            if not classes.together[e]:
                ticks = transfer_ticks(problem.payload[e], classes.latency, classes.num, classes.den)
                arrival = np.where(classes.linked, end[:, None] + ticks, FAR).min(axis=0)
                if not classes.apart[e]:
                    arrival = np.minimum(arrival, end)
            self.head[v, open_] = np.minimum(np.maximum(self.head[v], arrival), FAR)[open_]

    def _useful(self, v: int, c: int) -> bool:
        """Whether a later end of the task on class c may make data arrive later on some class.

        It does not where another class sends the data earlier to all classes.
        """
        classes, problem = self.classes, self.problem
        edges = range(problem.out_start[v], problem.out_start[v + 1])
        if not edges or self._grouped[v]:
            return True
        end = self.head[v] + classes.duration[v]
        others = np.flatnonzero((self.head[v] < FAR) & (np.arange(len(end)) != c))
        for e in edges:
            ticks = transfer_ticks(problem.payload[e], classes.latency, classes.num, classes.den)
            if not classes.apart[e]:
                np.fill_diagonal(ticks, 0)
            arrival = end[:, None] + ticks
            if (arrival[others].min(axis=0, initial=FAR) > arrival[c]).any():
                return True
        return False

    def close(self, v: int, c: int) -> None:
        """Exclude a class for a task, and for all of its group."""
        group = self.problem.group == self.problem.group[v]
        self.head[group, c] = self.tail[group, c] = FAR

    def _raise(self, v: int, c: int, tasks: Int) -> bool:
        """Raise a head by the part of these tasks before v on class c; return False if the search is stopped."""
        if len(tasks) < SMALLEST or self.head[v, c] >= FAR:
            return True
        part, origin = self.parts.before(tasks, v, c)
        key = part.fingerprint()
        if key not in self.known:
            bound = self._solved(part)
            if self.should_stop():
                return False
            self.known[key] = bound
        bound = self.known[key]
        if bound is None:
            self.close(v, c)
        elif self.head[v, c] < FAR:
            end = origin + bound
            self.head[v, c] = max(int(self.head[v, c]), end - int(self.classes.duration[v, c]))
        return True

    def _solved(self, part: Problem) -> int | None:
        """A lower bound of the makespan of a part; None if it has no schedule."""
        answer = find_solver(SOLVER).solve(part, Options(should_stop=self.should_stop), self._settings)
        if answer.termination is Termination.INFEASIBLE:
            return None
        return int(answer.bound or 0)


def narrow(classes: Classes, head: Int, tail: Int) -> None:
    """Close a class for all tasks of a group if it is closed for one."""
    closed = by_group(classes.problem, (head >= FAR) | (tail >= FAR), np.logical_or)[classes.problem.group]
    head[closed] = tail[closed] = FAR
