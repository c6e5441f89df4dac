"""The two placers of Celeritas: Adjusting Placement and Order-Place.

H. Xu, Y. Liao, H. Xie, P. Zhou, 2022, arXiv:2208.00184, section 5.2, Algorithm 2, and section 6.2.2. `celeritas` and
`order-place` describe them and list the departures from the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int
from placeopt.model.levels import ORDERS, OrderName
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule

from .._constructive.construction import (
    Construction,
    PartialSchedule,
    construct_by_sum,
    construct_live,
    construct_with_repair,
    filled,
    fits_as_sum,
    scarce_live_memory,
    with_port_times,
)
from .._constructive.groups import Groups, grouped
from .._constructive.live_memory import Tasks


@dataclass(frozen=True, slots=True)
class Placer:
    """A placer: an order of tasks, and a loop of the engine that places a sequence in turn."""

    name: str
    loop: Callable[[engine.Timeline, Int, bool, engine.Stop], int]
    order: OrderName

    def place(self, problem: Problem, groups: Groups, *, overfill: bool = False) -> PartialSchedule:
        """Place the tasks in this order."""
        return filled(problem, groups, self.loop, ORDERS[self.order](problem), overfill)

    def repaired(self, problem: Problem) -> Construction:
        """Return a schedule that fits into memory, with repair."""
        return construct_with_repair(problem, partial(self.place, problem))

    def clustered(self, coarse: Problem, tasks: Tasks) -> Iterator[tuple[Construction, bool]]:
        """Yield schedules of a coarse problem, and of the `tasks` of its clusters by live memory, and which it is."""
        scarce, found = scarce_live_memory(tasks.problem), Construction(None)
        if not scarce or fits_as_sum(coarse):
            found = construct_by_sum(coarse, partial(self.place, coarse))
            yield found, True
        if scarce:
            yield construct_live(coarse, partial(self.place, coarse), wanted=found.schedule is None, tasks=tasks), False

    def overfilled(self, problem: Problem) -> Schedule | None:
        """Return a schedule that overfills devices if a task has no other; None if separation rules out all."""
        groups = grouped(problem)
        nowhere = np.full(problem.n_groups, -1, dtype=np.int64)
        free = replace(
            groups, feasible=problem.group_feasible(), home=nowhere, room=problem.capacity.copy(), stuck=None
        )
        found = self.place(problem, free, overfill=True)
        return with_port_times(problem, found.line) if found.stuck is None else None


def adjusting_placer(order: OrderName) -> Placer:
    """Return the placer of Algorithm 2."""
    return Placer("adjusting", engine.adjust_in_order, order)


def order_placer(order: OrderName) -> Placer:
    """Return the placer of Order-Place."""
    return Placer("order", engine.fill_in_order, order)
