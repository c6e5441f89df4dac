"""Deadlines: where tasks can keep them, and proofs that they cannot be kept together.

Every placement with a feasible schedule has one that ends by a tick T (`horizon`). In that, to keep deadline[i] is to
end T - deadline[i] ticks before T: a tail, as what must follow the task is for the makespan (the delivery times of
J. Carlier, "The one-machine sequencing problem", EJOR 11 (1982), doi:10.1016/S0377-2217(82)80007-6); a task without a
deadline needs none. So a lower bound of the makespan with these tails that is above T proves that no schedule keeps all
deadlines:

    critical-path   head + duration + tail > T on a class: no feasible schedule runs the task there, nor its group. With
                    fewer classes heads and tails grow, so this is repeated; a group without a class is a proof.
    jackson         more work between the releases and the deadlines of tasks than their devices have time for.

Tails go backwards along the edges as heads go forward, with the transfers that cannot be avoided on the way
(`placeopt.bounding.quick.paths`): T - tail is the latest end of a task in time for all that follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from placeopt.bounding.quick.classes import LARGEST_TOTAL, Classes, by_group, group_text
from placeopt.bounding.quick.jackson import head_load_tail, priced_subsets
from placeopt.bounding.quick.paths import Windows, windows
from placeopt.model.problem import UNLIMITED
from placeopt.model.units import time_text

ROUNDS = 4
"""Times that the classes are narrowed, at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Narrowed:
    """What deadlines leave of the classes.

    Attributes
    ----------
    classes
        Without the classes on which a group would miss a deadline.
    horizon
        T of the module's text.
    found
        Heads, and tails with the deadlines in them, for these classes or for more.
    late
        Why some group is left without a class, None where all have one. The classes are then those before.
    """

    classes: Classes
    horizon: int
    found: Windows
    late: str | None


def narrowed(classes: Classes) -> Narrowed | None:
    """The classes as far as the deadlines allow them, None where there are no deadlines.

    Also None where the horizon is LARGEST_TOTAL or more: heads and tails up to that would not fit into 64 bits.
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
    """A tick by which every placement that has a feasible schedule has one that has ended, no worse in any metric.

    Each has by the last deadline, if all tasks state one. And one has by the last release time plus all durations and
    all transfers, each where it takes longest: cut every tick out of a feasible schedule from the last release on
    at which no task and no transfer is under way. What comes later starts earlier, in the same order, and what is
    live at one tick was live at one before the cut. Every tick left after the last release has a task or a transfer.
    """
    problem = classes.problem
    slowest = np.zeros(problem.n_edges, dtype=np.int64)
    for a, b in zip(*np.nonzero(classes.linked), strict=True):
        ticks = problem.transfer(problem.payload, classes.source[a, b], classes.target[a, b])
        slowest = np.maximum(slowest, ticks)
    # Summed as Python integers, which do not overflow.
    work: int = sum(problem.duration.max(axis=1).tolist()) + sum(slowest.tolist())
    return min(int(problem.release.max()) + work, int(problem.deadline.max()))


def crowded(within: Narrowed) -> Iterator[str]:
    """A proof that tasks with a device each have too little time together."""
    value, subset, tasks = head_load_tail(within.classes, within.found, priced_subsets(within.classes))
    if value > within.horizon:
        yield (
            f"the {tasks} tasks that can only run on {within.classes.names(subset.members)} have too little time "
            "between their release times and their deadlines, or those of what follows them"
        )


def _late(classes: Classes, found: Windows, group: int) -> str:
    """Why a group has no class left: a task that ends too late by itself, if there is one; else the group."""
    problem = classes.problem
    end = np.where(found.allowed, found.head + classes.duration, LARGEST_TOTAL).min(axis=1)
    alone = problem.order[(end > problem.deadline)[problem.order]]
    if len(alone):
        first = int(alone[0])
        earliest, due = (time_text(int(ticks[first]), problem.resolution) for ticks in (end, problem.deadline))
        return f"task {problem.task_names[first]} ends at {earliest} at the earliest, after its deadline at {due}"
    whose = "it or a task that follows it" if (problem.group == group).sum() == 1 else "one of them or of what follows"
    return f"wherever {group_text(problem, group)} may run, {whose} misses a deadline"
