"""Shared by Celeritas's placers: place the coarse graph, map the schedule back, best effort if the devices are full."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from placeopt.kernels import Kernel, kernel
from placeopt.model.arrays import Int
from placeopt.model.levels import ORDERS, OrderName
from placeopt.model.memory import used_memory
from placeopt.model.metrics import grain
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, lateness, makespan
from placeopt.passes.celeritas_fusion import CeleritasFusion
from placeopt.passes.rebuilding import contradictory
from placeopt.simulation import retime
from placeopt.solver import Answer, Options

from .._constructive.construction import (
    Construction,
    PartialSchedule,
    as_answer,
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

    name: str
    loop: Kernel[[Instance, Timeline, Int, bool], int]
    order: OrderName

    def place(self, problem: Problem, groups: Groups, *, overfill: bool = False) -> PartialSchedule:
        """Place the tasks in this order."""
        return run_loop(problem, groups, self.loop, ORDERS[self.order](problem), overfill)

    def repaired(self, problem: Problem) -> Construction:
        """Return a schedule that fits into memory, with repair."""
        return construct_with_repair(problem, partial(self.place, problem))

    def overfilled(self, problem: Problem) -> Schedule | None:
        """Return a schedule that overfills devices if a task has no other; None if separation rules out all."""
        groups = grouped(problem)
        nowhere = np.full(problem.n_groups, -1, dtype=np.int64)
        free = replace(
            groups, feasible=problem.group_feasible(), home=nowhere, room=problem.capacity.copy(), stuck=None
        )
        found = self.place(problem, free, overfill=True)
        return with_port_times(problem, found.line) if found.stuck is None else None


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one placer achieved on a fused problem.

    Attributes
    ----------
    placer
        Its name.
    found
        The schedule of the original problem or None, and a note.
    badness
        Whether there is no schedule; bytes over capacity; lateness and makespan in ticks. The least is the best.
    """

    placer: str
    found: Construction
    badness: tuple[bool, int, int, int]


def solve_coarse(problem: Problem, options: Options, fusion: CeleritasFusion, *placers: Placer) -> Answer:
    """Return the best answer of several placers on the fused problem."""
    best, stats = place_coarse(problem, options, fusion, *placers)
    return replace(as_answer(problem, best.found), stats=stats)


def place_coarse(
    problem: Problem, options: Options, fusion: CeleritasFusion, *placers: Placer
) -> tuple[Attempt, dict[str, Any]]:
    """Return the best attempt of several placers on the fused problem, the first of equals, and statistics.

    Schedules of several placers are compared after re-timing on `problem`: times of the coarse graph do not decide. If
    no placer finds room for the clusters, all place the tasks themselves. If no one finds room for these, all place the
    clusters with best effort, unless the options are strict; then the fewest bytes over capacity decide first.
    """
    reduction = fusion.apply(problem)
    coarse = problem if reduction is None else reduction.problem
    # Messages report missed deadlines, and memory under port contention, of the final times.
    final = len(placers) > 1 or problem.contention == "port" or bool((problem.deadline != UNLIMITED).any())

    def attempt(placer: Placer, found: Construction, *, restore: bool) -> Attempt:
        schedule = found.schedule
        if schedule is None:
            return Attempt(placer.name, found, (True, 0, 0, 0))
        if restore and reduction is not None:
            schedule = reduction.restore(schedule)
        if final:
            schedule = retime(problem, schedule)
        late = lateness(problem, schedule), makespan(problem, schedule)
        return Attempt(placer.name, Construction(schedule, found.note), (False, excess(problem, schedule), *late))

    def best(attempts: Iterable[Attempt]) -> Attempt:
        return min(attempts, key=lambda each: each.badness)

    chosen = best(attempt(placer, placer.repaired(coarse), restore=True) for placer in placers)
    if chosen.found.schedule is None and reduction is not None:
        chosen = best(attempt(placer, placer.repaired(problem), restore=False) for placer in placers)
        if chosen.found.schedule is not None:
            chosen = _noted(chosen, "the devices are too full for clusters: tasks were placed one by one")
    may_fit = not options.strict or problem.memory_model == "peak"
    if chosen.found.schedule is None and may_fit and not contradictory(coarse):
        effort = best(attempt(placer, Construction(placer.overfilled(coarse)), restore=True) for placer in placers)
        if effort.found.schedule is not None:
            over = overflow(problem, effort.found.schedule)
            note = f"best effort, because no device had room for some tasks: {over} over capacity" if over else ""
            if not (note and options.strict):  # under `peak` it may fit: groups were placed as under `sum`
                chosen = _noted(effort, note)
    fine, fused = grain(problem), grain(coarse)
    clusters = {"clusters": fused.tasks, "cluster_edges": fused.edges, "cluster_ccr": fused.ccr}
    return chosen, {"ccr": fine.ccr, **clusters, "placement": chosen.placer}


def _noted(each: Attempt, note: str) -> Attempt:
    """Return the attempt with a further note in front."""
    notes = "; ".join(text for text in (note, each.found.note) if text)
    return replace(each, found=Construction(each.found.schedule, notes))


def excess(problem: Problem, schedule: Schedule) -> int:
    """Return the total bytes over the capacities."""
    return int(np.maximum(used_memory(problem, schedule) - problem.capacity, 0).sum())


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


def order_placer(order: OrderName) -> Placer:
    """Return the placer of Order-Place."""
    return Placer("order", fill_in_order, order)
