"""A schedule improved by simulated annealing before an exact solver starts from it.

S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi: Optimization by simulated annealing, Science 220 (1983),
doi:10.1126/science.220.4598.671. The state is a placement of the groups and a topological order of the tasks; its
schedule starts every task, in that order, as soon as its device, its release and its data allow. The order can be that
of the starts, so no schedule without contention and needless waiting is out of reach.

A move gives a group another device, exchanges those of two groups, takes a run of tasks that follow each other on one
device to another (the cuts that full devices force are moved so), or shifts a task in the order; the last beside one of
the others, too. One that breaks feasibility, separation or memory (counted as under the `sum` model, which is
cautious under `peak`) is not tried.

What is minimised is the makespan and, averaged over the devices, what they work past the lower bound: the makespan
alone does not tell how far the other devices are from letting the last one finish earlier. Temperatures fall
geometrically, as parts of the start's distance to the bound. Deadlines are not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from placeopt.ir import Int, Problem
from placeopt.schedule import Schedule, durations

from ._annealing_loops import MODULUS, anneal, run_in_order
from ._placement import Groups, grouped

HOT, COLD = 0.15, 0.0015
"""First and last temperature of a run, as parts of the distance between its start and the bound."""

HOT_AGAIN, COLD_AGAIN = 1.0, 0.02
"""Those of the runs after the first, which start from the best schedule so far."""

FIRST, AGAIN = 250_000_000, 150_000_000
"""Elementary steps of the first run and of one after it: about a second, and half of one."""

CHUNK = 1 << 23
"""Elementary steps between two looks at whether to stop: some hundredths of a second."""


def annealed(
    problem: Problem, start: Schedule, bound: int, steps: int, seed: int, stopped: Callable[[], bool]
) -> Schedule | None:
    """The best schedule found in about so many elementary steps, without contention; None if none was tried.

    A step is a task or an edge looked at. `bound` is a lower bound of the makespan: reaching it ends the search. Same
    seed, same schedule, unless `stopped` says to end before the steps are up. Memory O(e k^2) for k device classes.
    """
    groups = grouped(problem)
    home = np.zeros(problem.n_groups, dtype=np.int64)
    home[problem.group] = start.device
    room = problem.capacity.copy()
    np.subtract.at(room, home, groups.memory)
    if steps < problem.n_tasks or problem.n_devices == 1 or (room < 0).any():  # the last: it fits under `peak` only
        return None
    search = _Search(problem, groups, start, bound, seed)
    hot, cold, size = HOT, COLD, FIRST
    while steps > 0 and search.span > bound and not stopped():
        search.run(min(steps, size), hot, cold, stopped)
        steps -= size
        hot, cold, size = HOT_AGAIN, COLD_AGAIN, AGAIN
    return search.schedule()


class _Search:
    """The arrays that the kernels work on."""

    def __init__(self, problem: Problem, groups: Groups, start: Schedule, bound: int, seed: int) -> None:
        self.problem, self.bound = problem, bound
        label, edge = problem.device_class, problem.in_edge
        first = np.unique(label, return_index=True)[1]
        # The last device of each class: another than the first wherever there is another.
        last = problem.n_devices - 1 - np.unique(label[::-1], return_index=True)[1]
        self.memory = groups.memory
        self.rules = problem.group_feasible(), groups.memory, groups.apart_start, groups.apart
        self.times = (
            problem.group,
            problem.duration,
            problem.release,
            problem.in_start,
            problem.edge_source[edge],
            problem.transfer(problem.payload[edge, None, None], first[:, None], last[None, :]),
            label,
        )
        position = np.empty(problem.n_tasks, dtype=np.int64)
        position[problem.order] = np.arange(problem.n_tasks)
        self.order = np.lexsort((position, start.start)).astype(np.int64)
        self.home = np.zeros(problem.n_groups, dtype=np.int64)
        self.home[problem.group] = start.device
        self.state = np.array([seed % (MODULUS - 1) + 1], dtype=np.int64)
        self.span = self._ends()[1]

    def run(self, steps: int, hot: float, cold: float, stopped: Callable[[], bool]) -> None:
        """One cooling from the best schedule so far, which it may replace."""
        problem = self.problem
        work = problem.n_tasks + problem.n_edges
        rounds, size = max(steps // work, 1), max(CHUNK // work, 1)
        gap = self.span - self.bound
        order, home = self.order.copy(), self.home.copy()
        room = problem.capacity.copy()
        np.subtract.at(room, home, self.memory)
        cost = np.array([math.inf, self.span])
        cool = anneal.select(steps)
        for begin in range(0, rounds, size):
            if stopped() or cost[1] <= self.bound:
                break
            count = min(size, rounds - begin)
            first, last = (gap * hot * (cold / hot) ** (done / rounds) for done in (begin, begin + count))
            cool(
                count,
                first,
                last,
                self.bound,
                order,
                home,
                room,
                *self.rules,
                *self.times,
                self.state,
                cost,
                self.order,
                self.home,
            )
        self.span = int(cost[1])

    def schedule(self) -> Schedule:
        """The best so far."""
        device = self.home[self.problem.group]
        return Schedule(device, self._ends()[0] - durations(self.problem, device))

    def _ends(self) -> tuple[Int, int]:
        """(n,) the ends of the best schedule so far, and its makespan."""
        end, free = (np.zeros(size, dtype=np.int64) for size in self.problem.duration.shape)
        run_in_order(self.order, self.home, *self.times, self.bound, math.inf, free, end)
        return end, int(free.max())
