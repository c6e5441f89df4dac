"""What Celeritas's placers share: place the coarse graph, map the schedule back, best effort where devices fill up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.metrics import grain
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule
from placeopt.model.topological_orders import ORDERS, OrderName
from placeopt.passes.celeritas_fusion import CeleritasFusion
from placeopt.passes.rebuilding import contradictory
from placeopt.simulation import retime
from placeopt.solver import Answer, Options

from .._constructive.construction import Built, Constructed, as_answer, best_of, built, constructed, overflow, timed
from .._constructive.groups import Groups, grouped
from .._constructive.placement_ops import append, arrival_on, may_take, stays_apart
from .._constructive.timeline import Case, Timeline, make_case, make_timeline, work_steps

Place = Callable[[Case, Timeline, Int, bool], int]
"""Places the tasks of a sequence in turn and returns how many found a device. The flag: overfill devices rather than
leave a task without one."""


@dataclass(frozen=True, slots=True)
class Placer:
    """One of the placers: how it chooses its loop for a problem, and the order in which it takes the tasks."""

    choose: Callable[[Problem], Place]
    order: OrderName

    def built(self, problem: Problem, groups: Groups, *, overfill: bool = False) -> Built:
        """The tasks placed in this order."""
        sequence, line = ORDERS[self.order](problem), make_timeline(problem, groups)
        placed = self.choose(problem)(make_case(problem, groups), line, sequence, overfill)
        return built(problem, line, sequence, placed)

    def constructed(self, problem: Problem) -> Constructed:
        """The schedule that keeps memory, after repair or packing where the devices filled up."""
        return constructed(problem, lambda groups: self.built(problem, groups))

    def overfilled(self, problem: Problem) -> Schedule | None:
        """The schedule with best effort: devices are overfilled where a task has no other; None if all are barred."""
        groups = grouped(problem)
        nowhere = np.full(problem.n_groups, -1, dtype=np.int64)
        free = replace(
            groups, feasible=problem.group_feasible(), home=nowhere, room=problem.capacity.copy(), stuck=None
        )
        found = self.built(problem, free, overfill=True)
        return timed(problem, found.line) if found.stuck is None else None


def answered_coarse(problem: Problem, options: Options, fusion: CeleritasFusion, *placers: Placer) -> Answer:
    """The best answer of some placers on what the fusion makes of the problem, the first of equals.

    Where the clusters do not fit into memory, the tasks themselves are placed; where they do not either, clusters with
    best effort, unless the options are strict.
    """
    reduction = fusion.apply(problem)
    coarse = problem if reduction is None else reduction.problem

    def restored(schedule: Schedule) -> Schedule:
        if reduction is None:
            return schedule
        schedule = reduction.restore(schedule)
        # What is told of deadlines, and where ports contend of memory, is of the schedule as it will be.
        told = problem.contention == "port" or (problem.deadline != UNLIMITED).any()
        return retime(problem, schedule) if told else schedule

    found = best_of(coarse, [placer.constructed(coarse) for placer in placers])
    if found.schedule is not None:
        found = Constructed(restored(found.schedule), found.note)
    elif reduction is not None:
        found = best_of(problem, [placer.constructed(problem) for placer in placers])
        if found.schedule is not None:
            told = "the devices are too full for clusters: tasks were placed one by one"
            found = Constructed(found.schedule, f"{told}; {found.note}" if found.note else told)
    may_fit = not options.strict or problem.memory_model == "peak"
    if found.schedule is None and may_fit and not contradictory(coarse):
        effort = placers[0].overfilled(coarse)
        if effort is not None:
            schedule = restored(effort)
            over = overflow(problem, schedule)
            note = f"best effort, for no device had room for some tasks: {over} over capacity" if over else ""
            if not (note and options.strict):  # under `peak` it may fit all the same: groups are placed as under `sum`
                found = Constructed(schedule, note)
    answer = as_answer(problem, found)
    fine, fused = grain(problem), grain(coarse)
    stats = {"ccr": fine.ccr, "clusters": fused.tasks, "cluster_edges": fused.edges, "cluster_ccr": fused.ccr}
    return replace(answer, stats=stats)


@kernel(stays_apart, allocates=False)
def roomiest(case: Case, line: Timeline, g: int) -> int:
    """The device with most memory left of those that may run group g, room or no room; -1 if separation bars all."""
    best = -1
    for d in range(len(line.room)):
        roomier = best < 0 or line.room[d] > line.room[best]
        if roomier and case.feasible[g, d] and stays_apart(case, line, g, d):
            best = d
    return best


@kernel(arrival_on, may_take, append, roomiest, allocates=False)
def fill_in_order(case: Case, line: Timeline, sequence: Int, overfill: bool) -> int:
    """Place the tasks in turn on the current device, each behind the one before; how many were placed."""
    m = len(line.room)
    current = 0
    for position in range(len(sequence)):
        i = sequence[position]
        g = case.group[i]
        d = line.home[g]
        if d < 0:
            for step in range(m):
                d = (current + step) % m
                if may_take(case, line, g, d):
                    break
                d = -1
            if d < 0 and overfill:
                d = roomiest(case, line, g)
            if d < 0:
                return position
            if case.feasible[g, current] and case.memory[g] > line.room[current]:
                current = d
        append(case, line, i, d, max(arrival_on(case, line, i, d), line.free[d]))
    return len(sequence)


def filling(order: OrderName) -> Placer:
    """Order-Place; see `placeopt_solvers.clustering.order_place`."""
    return Placer(lambda coarse: fill_in_order.select(work_steps(coarse)), order)
