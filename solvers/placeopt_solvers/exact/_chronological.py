"""Decide makespans of tasks on identical devices by a depth-first search that appends tasks by their starts.

It is for P | prec, c_ij | Cmax with up to 64 tasks, such as trees, on which CP-SAT mostly leaves a gap of a few ticks.
The search decides whether there is a schedule of at most T ticks. A *state* consists of the tasks that are appended,
their starts and devices. A task is appended after its predecessors, as early as its device and its data allow, and not
before the *last* task appended.

**Completeness.** If there is a schedule within T, take one whose sum of starts is least. None of its tasks can start
earlier while the others stay. So the tasks in the order of their starts, those without duration and predecessors first
among equal ones, give it. The search omits choices that lead to no such schedule:

- *Bounds.* A task and the longest path behind it are late; or tasks that only one device can run in time need more time
  than it has; or tasks that must run within an interval need more than all devices have in it. Behind a task, each
  successor runs on its device, one after the other, or waits for a transfer. A device is open for the tasks that are
  left once one of them can start there, and takes a sum of their durations.
- *Gaps.* A choice leaves idle a gap on its device that fits another ready task w, and w's data is then nowhere later
  than if w, which starts after the gap otherwise, ran there: w in the gap gives a lesser sum of starts.
- *Devices* that are free equally early, also for the data of each task that is left, are interchangeable.
- *Twins* have the same predecessors and transfers from them, and isomorphic successors: a tree of tasks that depend on
  nothing else, or the same tasks. They start in the order of their indices.
- *Refuted states.* The future of a state depends only on the tasks that are left, the tick from which each device can
  run each of them, and the last start; a later one allows less. If a state was searched without success, an equal one
  up to the order of devices is omitted: a completion of the second, of the least sum of starts, would complete the
  first, and no rule above would have omitted it there, because all depend on the same. That also holds for a smaller T.

The reverse of a schedule is one of the reverse graph, which is searched if it has fewer tasks without predecessors: an
in-tree becomes an out-tree, in which few tasks are ready. Release times, deadlines, memory, groups, separations and
contention are ignored. Refuted makespans hold with them as well; the search ends at a schedule that violates them.

Without the last start and refuted states, the order of appending is that of exhaustive list scheduling (M. Orr, O.
Sinnen: Optimal task scheduling benefits from a duplicate-free state-space, 2019, doi:10.48550/arXiv.1901.06899).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int, by_index
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, makespan

from .._runs.validity import valid_forms

MOST = 64
"""Most tasks, and most devices."""

LONGEST = 1 << 48
"""Durations and transfers in ticks, at most."""

STATES = 500_000
"""Refuted states to remember, of about 200 bytes each."""

FIRST, GROWTH = 1_000, 8
"""Nodes to decide a makespan at first, and the factor for each further round."""


class Chronological:
    """A search for schedules of a problem with identical devices; `low` and `high` are its bound and best makespan."""

    def __init__(self, problem: Problem, low: int, high: int) -> None:
        self.problem, self.low, self.high = problem, low, high
        source, target = problem.edge_source, problem.edge_target
        sources, sinks = (np.setdiff1d(problem.order, ends).size for ends in (target, source))
        self.reverse = bool(sources > sinks)
        if self.reverse:
            source, target = target, source
        # Of parallel edges, the longest one counts.
        pairs, which = np.unique(source * problem.n_tasks + target, return_inverse=True)
        longest = by_index(np.maximum, which, _transfers(problem), len(pairs))
        self._given = (
            problem.n_devices,
            np.ascontiguousarray(problem.duration[:, 0]),
            np.searchsorted(pairs, np.arange(problem.n_tasks + 1) * problem.n_tasks),
            pairs % problem.n_tasks,
            longest,
        )
        self._engine = engine.Chronological(*self._given, STATES)
        self._refutable = high
        self._nodes = FIRST
        self.visited = 0

    @property
    def ended(self) -> bool:
        """Return whether the bound is reached, or no schedule found is valid."""
        return self.low >= self.high

    def run(
        self, nodes: int, offer: Callable[[Schedule], None], bound: Callable[[int], None], stopped: Callable[[], bool]
    ) -> None:
        """Decide makespans with about `nodes` nodes; report schedules and bounds.

        In each round the bound rises, then the makespan falls, by bisection of the makespans that are not decided.
        """
        stop, until = engine.Stop(stopped, None), self.visited + nodes
        while not self.ended:
            for rising in (True, False):
                least, most = self.low, self.high - 1
                while least <= most:
                    if self.visited >= until or stopped():
                        return
                    tried = (least + most) // 2
                    found = self._decided(tried, min(self._nodes, until - self.visited), stop)
                    if found:
                        schedule = self._schedule(tried)
                        if schedule is None:
                            self.high = self.low
                            return
                        offer(schedule)
                        self.high = makespan(self.problem, schedule)
                        most = self.high - 1
                    elif found is not None:
                        self.low = least = tried + 1
                        bound(self.low)
                    elif rising:
                        most = tried - 1
                    else:
                        least = tried + 1
            self._nodes *= GROWTH

    def _decided(self, tried: int, nodes: int, stop: engine.Stop) -> bool | None:
        """Return whether there is a schedule of at most `tried` ticks; None if a limit is reached."""
        if tried > self._refutable:  # what was refuted holds only up to there
            self._engine = engine.Chronological(*self._given, STATES)
        self._refutable = tried
        before = self._engine.visited
        found = self._engine.search(tried, nodes, stop)
        self.visited += self._engine.visited - before + 1
        return found

    def _schedule(self, most: int) -> Schedule | None:
        """Return the schedule that was found; None if it is not valid because of constraints that are ignored."""
        start = self._engine.begin.copy()
        if self.reverse:
            end = start + self.problem.duration[:, 0]
            start = end.max() - end
        forms = valid_forms(self.problem, Schedule(self._engine.device.copy(), start))
        return next((form for form in forms if makespan(self.problem, form) <= most), None)


def chronological(problem: Problem, low: int, high: int) -> Chronological | None:
    """Return a search for makespans from `low` to below `high`, None if the devices are not identical or the like."""
    n, m = problem.n_tasks, problem.n_devices
    if problem.objective.single != "makespan" or problem.rules or not 0 < n <= MOST or not 1 < m <= MOST:
        return None
    if problem.device_class.any() or not problem.feasible.all():
        return None
    if max(int(problem.duration.max()), int(_transfers(problem).max(initial=0))) > LONGEST:
        return None
    return Chronological(problem, low, high)


def _transfers(problem: Problem) -> Int:
    return problem.transfer(problem.payload, np.zeros_like(problem.payload), np.ones_like(problem.payload))
