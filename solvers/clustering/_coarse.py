"""Shared by Celeritas's placers: place the coarse graph, map the schedule back, best effort if the devices are full."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from placeopt.kernels import Kernel, kernel
from placeopt.model.arrays import Int
from placeopt.model.levels import ORDERS, OrderName
from placeopt.model.metrics import grain
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule
from placeopt.passes.celeritas_fusion import CeleritasFusion
from placeopt.passes.rebuilding import contradictory
from placeopt.simulation import retime
from placeopt.solver import Answer, Options

from .._constructive.construction import (
    Construction,
    PartialSchedule,
    as_answer,
    best_of,
    construct_with_repair,
    overflow,
    run_loop,
    with_port_times,
)
from .._constructive.groups import Groups, grouped
from .._constructive.placement_ops import append, can_host, ready_time, stays_apart
from .._constructive.timeline import DONE, Instance, Timeline


@dataclass(frozen=True, slots=True)
class Placer:
    """A placer: an order of tasks, and a kernel that places a sequence in turn.

    The kernel returns DONE or the task that no device can take. Its flag lets it overfill devices instead.
    """

    loop: Kernel[[Instance, Timeline, Int, bool], int]
    order: OrderName

    def place(self, problem: Problem, groups: Groups, *, overfill: bool = False) -> PartialSchedule:
        """Place the tasks in this order."""
        return run_loop(problem, groups, self.loop, ORDERS[self.order](problem), overfill)

    def overfilled(self, problem: Problem) -> Schedule | None:
        """Return a schedule that overfills devices if a task has no other; None if separation rules out all."""
        groups = grouped(problem)
        nowhere = np.full(problem.n_groups, -1, dtype=np.int64)
        free = replace(
            groups, feasible=problem.group_feasible(), home=nowhere, room=problem.capacity.copy(), stuck=None
        )
        found = self.place(problem, free, overfill=True)
        return with_port_times(problem, found.line) if found.stuck is None else None


def solve_coarse(problem: Problem, options: Options, fusion: CeleritasFusion, *placers: Placer) -> Answer:
    """Return the best answer of several placers on the fused problem, the first of equals.

    If the clusters do not fit into memory, the tasks themselves are placed. If they do not fit either, the clusters are
    placed with best effort, unless the options are strict.
    """
    reduction = fusion.apply(problem)
    coarse = problem if reduction is None else reduction.problem

    def mapped_back(schedule: Schedule) -> Schedule:
        if reduction is None:
            return schedule
        schedule = reduction.restore(schedule)
        # The message reports missed deadlines, and memory under port contention, of the final times.
        reported = problem.contention == "port" or (problem.deadline != UNLIMITED).any()
        return retime(problem, schedule) if reported else schedule

    found = best_of(coarse, [construct_with_repair(coarse, partial(placer.place, coarse)) for placer in placers])
    if found.schedule is not None:
        found = Construction(mapped_back(found.schedule), found.note)
    elif reduction is not None:
        found = best_of(problem, [construct_with_repair(problem, partial(placer.place, problem)) for placer in placers])
        if found.schedule is not None:
            note = "the devices are too full for clusters: tasks were placed one by one"
            found = Construction(found.schedule, f"{note}; {found.note}" if found.note else note)
    may_fit = not options.strict or problem.memory_model == "peak"
    if found.schedule is None and may_fit and not contradictory(coarse):
        effort = placers[0].overfilled(coarse)
        if effort is not None:
            schedule = mapped_back(effort)
            over = overflow(problem, schedule)
            note = f"best effort, because no device had room for some tasks: {over} over capacity" if over else ""
            if not (note and options.strict):  # under `peak` it may fit: groups were placed as under `sum`
                found = Construction(schedule, note)
    answer = as_answer(problem, found)
    fine, fused = grain(problem), grain(coarse)
    stats = {"ccr": fine.ccr, "clusters": fused.tasks, "cluster_edges": fused.edges, "cluster_ccr": fused.ccr}
    return replace(answer, stats=stats)


@kernel(stays_apart, allocates=False)
def roomiest(instance: Instance, line: Timeline, g: int) -> int:
    """Return the device with the most memory left, enough or not, that may run group g; -1 if there is none."""
    best = -1
    for d in range(len(line.room)):
        roomier = best < 0 or line.room[d] > line.room[best]
        if roomier and instance.feasible[g, d] and stays_apart(instance, line, g, d):
            best = d
    return best


@kernel(ready_time, can_host, append, roomiest, allocates=False)
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
            if instance.feasible[g, current] and instance.memory[g] > line.room[current]:
                current = d
        append(instance, line, i, d, max(ready_time(instance, line, i, d), line.free[d]))
    return DONE
