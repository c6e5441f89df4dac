"""The two placers of Celeritas: Adjusting Placement and Order-Place.

H. Xu, Y. Liao, H. Xie, P. Zhou, 2022, arXiv:2208.00184, section 5.2, Algorithm 2, and section 6.2.2. `celeritas` and
`order-place` describe them and list the departures from the paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from placeopt.kernels import Kernel, kernel
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
    fits_as_sum,
    run_loop,
    scarce_live_memory,
    with_port_times,
)
from .._constructive.groups import Groups, grouped
from .._constructive.live_memory import Tasks
from .._constructive.placement_ops import (
    append,
    can_host,
    compute_ready_times,
    earliest_start,
    has_room,
    link_ticks,
    occupy,
    ready_time,
    stays_apart,
)
from .._constructive.timeline import DONE, NEVER, Instance, Timeline


@dataclass(frozen=True, slots=True)
class Placer:
    """A placer: an order of tasks, and a kernel that places a sequence in turn.

    The kernel returns DONE or the task that no device can take. Its flag lets it overfill devices instead.
    """

    name: str
    loop: Kernel[[Instance, Timeline, Int, bool], int]
    order: OrderName

    def place(self, problem: Problem, groups: Groups, *, overfill: bool = False) -> PartialSchedule:
        """Place the tasks in this order."""
        return run_loop(problem, groups, self.loop, ORDERS[self.order](problem), overfill)

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


@kernel(stays_apart, allocates=False)
def roomiest(instance: Instance, line: Timeline, g: int) -> int:
    """Return the device with the most memory left, enough or not, that may run group g; -1 if there is none."""
    best = -1
    for d in range(len(line.room)):
        roomier = best < 0 or line.room[d] > line.room[best]
        if roomier and instance.feasible[g, d] and stays_apart(instance, line, g, d):
            best = d
    return best


@kernel(ready_time, can_host, has_room, append, roomiest, allocates=False)
def fill_in_order(instance: Instance, line: Timeline, sequence: Int, overfill: bool) -> int:
    """Place by Order-Place: append the tasks in turn; return DONE or the task that no device can take."""
    m = len(line.room)
    current = 0
    for position in range(len(sequence)):
        i = sequence[position]
        g = instance.group[i]
        d = line.home[g]
        if d < 0:
            for step in range(m):
                d = (current + step) % m
                if can_host(instance, line, g, d):
                    break
                d = -1
            if d < 0 and overfill:
                d = roomiest(instance, line, g)
            if d < 0:
                return int(i)
            if instance.feasible[g, current] and line.home[g] < 0 and not has_room(instance, line, g, current):
                current = d
        append(instance, line, i, d, max(ready_time(instance, line, i, d), line.free[d]))
    return DONE


@kernel(link_ticks, allocates=False)
def back_cost(instance: Instance, i: int, source: int, target: int) -> int:
    """Return the ticks of the longest transfer of task i's output between two devices; 0 without consumers."""
    cost = 0
    c = instance.kind[source, target]
    for k in range(instance.out_start[i], instance.out_start[i + 1]):
        cost = max(cost, link_ticks(instance, instance.out_payload[k], source, c))
    return cost


@kernel(compute_ready_times, ready_time, can_host, earliest_start, occupy, back_cost, roomiest, allocates=False)
def adjust_in_order(instance: Instance, line: Timeline, sequence: Int, overfill: bool) -> int:
    """Place the tasks in turn by the paper's rule; return DONE or the task that no device can take."""
    last = -1
    for position in range(len(sequence)):
        i = sequence[position]
        g = instance.group[i]
        chosen = line.home[g]
        if chosen < 0:
            compute_ready_times(instance, line, i)
            best, best_end, last_end = -1, NEVER, NEVER
            for d in range(len(line.room)):
                if not can_host(instance, line, g, d):
                    continue
                start, _ = earliest_start(instance, line, i, d, line.ready[d])
                end = start + instance.duration[i, d]
                if end < best_end:
                    best, best_end = d, end
                if d == last:
                    last_end = end
            chosen = best
            if last_end < NEVER and last_end - best_end <= back_cost(instance, i, best, last):
                chosen = last
            if chosen < 0 and overfill:
                chosen = roomiest(instance, line, g)
            if chosen < 0:
                return int(i)
        start, gap = earliest_start(instance, line, i, chosen, ready_time(instance, line, i, chosen))
        occupy(instance, line, i, chosen, start, gap)
        last = chosen
    return DONE


def adjusting_placer(order: OrderName) -> Placer:
    """Return the placer of Algorithm 2."""
    return Placer("adjusting", adjust_in_order, order)


def order_placer(order: OrderName) -> Placer:
    """Return the placer of Order-Place."""
    return Placer("order", fill_in_order, order)
