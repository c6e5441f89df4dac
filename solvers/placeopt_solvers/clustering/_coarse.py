"""Shared by the solvers with Celeritas's fusion: place the coarse graph, map the schedule back, best effort if full."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from placeopt.model.arrays import Int, inverse
from placeopt.model.levels import ORDERS, OrderName, bottom_levels
from placeopt.model.memory import used_memory
from placeopt.model.metrics import grain
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, lateness, makespan
from placeopt.passes.celeritas_fusion import CeleritasFusion
from placeopt.passes.chain import Chain, Step
from placeopt.passes.protocol import Reduction
from placeopt.passes.rebuilding import contradictory
from placeopt.protocol import Answer, Options
from placeopt.simulation import retime, simulate

from .._constructive.construction import Construction, as_answer, overflow, scarce_live_memory
from .._constructive.live_memory import Tasks, time_order, with_waits
from ._placers import Placer

Execution = Literal["clusters", "fifo", "priority"]
Executions = tuple[Execution, ...]
"""How a placement is executed: in the order of the coarse schedule, or by a discipline of `simulate`."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one placer achieved on a fused problem."""

    placer: str
    """Its name."""
    execution: Execution | Literal[""]
    """How its placement is executed; "" without a schedule."""
    found: Construction
    """The schedule of the original problem or None, and a note."""
    reduction: Reduction | None
    """The fusion whose clusters it placed; None if it placed colocation groups one by one."""
    badness: tuple[bool, int, int, int]
    """Whether there is no schedule; bytes over capacity; lateness and makespan in ticks. The least is the best."""


def solve_coarse(problem: Problem, options: Options, fusion: CeleritasFusion, *placers: Placer) -> Answer:
    """Return the best answer of several placers on the fused problem."""
    best, stats = place_coarse(problem, options, fusion, *placers)
    return replace(as_answer(problem, best.found), stats=stats, clusters=clusters_of(problem, best))


def place_coarse(
    problem: Problem,
    options: Options,
    fusion: CeleritasFusion,
    *placers: Placer,
    executions: Executions = ("clusters",),
) -> tuple[Attempt, dict[str, Any]]:
    """Return the best attempt of several placers on the fused problem, the first of equals, and statistics.

    Schedules of several placers are compared after re-timing on `problem`: times of the coarse graph do not decide. If
    no placer finds room for the clusters, all place the tasks themselves. If no one finds room for these, all place the
    clusters with best effort, unless there are budgets or the options are strict; then the fewest bytes over capacity
    decide first.

    Each placement is executed in the order of the clusters, first in, first out, or by decreasing bottom level, or in
    several ways, of which the best counts.
    """
    reduction = fusion.apply(problem)
    coarse = problem if reduction is None else reduction.problem
    # Messages report missed deadlines, and memory under port contention, of the final times.
    several = len(placers) > 1 or executions != ("clusters",)
    scarce = scarce_live_memory(problem)
    final = several or problem.contends or bool((problem.deadline != UNLIMITED).any())

    def attempt(placer: Placer, found: Construction, *, restore: bool) -> Attempt:
        schedule = found.schedule
        if schedule is None:
            return Attempt(placer.name, "", found, None, (True, 0, 0, 0))
        used = reduction if restore else None
        if used is not None:
            schedule = used.restore(schedule)
        if final and (restore or not scarce):
            schedule = retime(problem, schedule)  # by live memory, tasks may wait
        ways = {way: schedule if way == "clusters" else executed(problem, schedule.device, way) for way in executions}
        return best(
            Attempt(placer.name, way, Construction(each, found.note), used, (False, *badness(problem, each)))
            for way, each in ways.items()
        )

    def best(attempts: Iterable[Attempt]) -> Attempt:
        return min(attempts, key=lambda each: each.badness)

    if reduction is None:
        chosen = best(attempt(placer, placer.repaired(problem), restore=False) for placer in placers)
    else:
        tasks = tasks_of(problem, reduction, fusion.order)
        chosen = best(
            attempt(placer, found, restore=restore)
            for placer in placers
            for found, restore in placer.clustered(coarse, tasks)
        )
    if chosen.found.schedule is None and reduction is not None:
        chosen = best(attempt(placer, placer.repaired(problem), restore=False) for placer in placers)
        if chosen.found.schedule is not None:
            chosen = _noted(chosen, "the devices are too full for clusters: tasks were placed one by one")
    may_fit = (not options.strict or problem.memory_model == "peak") and "budgets" not in problem.rules
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


def clusters_of(problem: Problem, attempt: Attempt) -> Int | None:
    """Return the cluster (n,) of each task, with the rest of its colocation group; None without a schedule."""
    if attempt.found.schedule is None:
        return None
    steps = () if attempt.reduction is None else (Step(CeleritasFusion(), problem, attempt.reduction),)
    return Chain(problem, steps).clusters()


def tasks_of(problem: Problem, reduction: Reduction, order: OrderName) -> Tasks:
    """Return the tasks of the clusters of a reduction; those of a cluster run in the given order."""
    label, leader = reduction.label, reduction.leader
    assert label is not None
    assert leader is not None
    position = np.empty(problem.n_tasks, dtype=np.int64)
    position[ORDERS[order](problem)] = np.arange(problem.n_tasks)

    def expand(sequence: Int) -> Int:
        rank = inverse(sequence)
        return np.lexsort((position, rank[label]))

    return Tasks(problem, reduction.problem.group[leader], expand, reduction.restore)


def _noted(each: Attempt, note: str) -> Attempt:
    """Return the attempt with a further note in front."""
    notes = "; ".join(text for text in (note, each.found.note) if text)
    return replace(each, found=Construction(each.found.schedule, notes))


def executed(problem: Problem, device: Int, way: Literal["fifo", "priority"]) -> Schedule:
    """Simulate a placement (n,): first in, first out, or by decreasing bottom level.

    If live memory does not suffice, tasks keep the order of their starts and wait for memory, where that is possible.
    """
    priority = bottom_levels(problem) if way == "priority" else None
    schedule = simulate(problem, device, discipline=way, priority=priority)
    if not scarce_live_memory(problem) or (used_memory(problem, schedule) <= problem.capacity).all():
        return schedule
    waiting = with_waits(problem, device, time_order(problem, schedule.start))
    return schedule if waiting is None else waiting.schedule


def badness(problem: Problem, schedule: Schedule) -> tuple[int, int, int]:
    """Return the total bytes over the capacities, and lateness and makespan in ticks."""
    over = int(np.maximum(used_memory(problem, schedule) - problem.capacity, 0).sum())
    return over, lateness(problem, schedule), makespan(problem, schedule)
