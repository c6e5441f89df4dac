"""Deadlines: exclude devices on which tasks miss them, and prove that they cannot all be met.

Every placement with a feasible schedule has one that ends by a tick T (`horizon`). Meeting deadline[i] means ending T
- deadline[i] ticks before T. A deadline is thus a tail, as the work after a task is for the makespan (delivery times
in J. Carlier, "The one-machine sequencing problem", EJOR 11 (1982), doi:10.1016/S0377-2217(82)80007-6). A lower bound
of the makespan with these tails that exceeds T proves that no schedule meets all deadlines:

    critical-path   head + duration + tail > T on a class: no feasible schedule runs the task, or its group, there.
                    Fewer classes increase heads and tails, so this is repeated. A group without a class is a proof.
    jackson         more work between release times and deadlines than the devices of the tasks have time for.

Tails propagate backwards along edges as heads propagate forwards, with unavoidable transfers
(`placeopt.bounding.quick.paths`): T - tail is the latest end of a task for which its successors can be on time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from placeopt.bounding.quick.classes import LARGEST_TOTAL, Classes, by_group, group_text
from placeopt.bounding.quick.paths import Windows, windows
from placeopt.errors import listing
from placeopt.model.arrays import Int
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.units import time_text

ROUNDS = 4
"""Maximum number of rounds of narrowing."""


@dataclass(frozen=True, slots=True, eq=False)
class Narrowed:
    """The classes that deadlines leave."""

    classes: Classes  # without the classes on which a group would miss a deadline
    horizon: int  # T in the module's docstring
    found: Windows  # heads, and tails that include deadlines, for these classes or a superset
    late: str | None  # why some group has no class left (`classes` are then those before this round); None if all have


def narrowed(classes: Classes) -> Narrowed | None:
    """The classes that the deadlines allow; None without deadlines.

    Also None if the horizon is at least LARGEST_TOTAL: heads and tails would exceed 64 bits.
    """
    problem = classes.problem
    if (problem.deadline == UNLIMITED).all() or (end := horizon(classes)) >= LARGEST_TOTAL:
        return None
    after = end - np.minimum(problem.deadline, end)
    for _ in range(ROUNDS):
        found = windows(classes, after)
        timely = found.allowed & (found.head + classes.duration + found.tail <= end)
        allowed = classes.allowed & by_group(problem, timely, np.logical_and)
        if not allowed.any(axis=1).all():
            return Narrowed(classes, end, found, _late(classes, found, int(allowed.any(axis=1).argmin())))
        if (allowed == classes.allowed).all():
            break
        classes = replace(classes, allowed=allowed)
    return Narrowed(classes, end, found, None)


def horizon(classes: Classes) -> int:
    """A tick by which every placement that has a feasible schedule has one that ends, with no metric worse.

    If all tasks have deadlines, the last one. In any case the last release time plus all durations and transfers, each
    at its longest. Proof: from a feasible schedule, cut every tick after the last release at which no task and no
    transfer is active. Later events move forward in the same order, and all that is live at one tick was live together
    before. Every remaining tick after the last release has an active task or transfer. ∎
    """
    problem = classes.problem
    slowest = np.zeros(problem.n_edges, dtype=np.int64)
    for a, b in zip(*np.nonzero(classes.linked), strict=True):
        ticks = problem.transfer(problem.payload, classes.source[a, b], classes.target[a, b])
        slowest = np.maximum(slowest, ticks)
    # Summed as Python integers, which do not overflow.
    work: int = sum(problem.duration.max(axis=1).tolist()) + sum(slowest.tolist())
    return min(int(problem.release.max()) + work, int(problem.deadline.max()))


def _late(classes: Classes, found: Windows, group: int) -> str:
    """Why a group has no class left: a task that is late by itself, if there is one; otherwise the group."""
    problem = classes.problem
    end = np.where(found.allowed, found.head + classes.duration, LARGEST_TOTAL).min(axis=1)
    alone = problem.order[(end > problem.deadline)[problem.order]]
    if len(alone):
        first = int(alone[0])
        earliest, due = (time_text(int(ticks[first]), problem.resolution) for ticks in (end, problem.deadline))
        name, chain = problem.task_names[first], _chain(problem, first, end)
        before = f"; the longest chain before it is {listing(chain)}" if chain else ""
        return f"task {name} ends at {earliest} at the earliest, after its deadline at {due}{before}"
    single = (problem.group == group).sum() == 1
    whose = "it or one of its successors" if single else "one of them or of their successors"
    return f"wherever {group_text(problem, group)} may run, {whose} misses a deadline"


def _chain(problem: Problem, task: int, end: Int) -> list[str]:
    """The tasks of the chain that delays a task until its earliest end `end` (n,), from the first one on."""
    chain: list[str] = []
    while True:
        producers = problem.edge_source[problem.in_edge[problem.in_start[task] : problem.in_start[task + 1]]]
        latest = int(end[producers].max(initial=0))
        if latest <= problem.release[task]:
            return chain[::-1]
        task = int(producers[end[producers].argmax()])
        chain.append(problem.task_names[task])
