"""Compute the limits that a CP-SAT model is built with, and state why they are valid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from placeopt.bounding.quick.classes import classes_of
from placeopt.bounding.quick.paths import windows
from placeopt.model.arrays import Bool, Int
from placeopt.model.memory import most_swapping
from placeopt.model.objective import Value, task_energy, transfer_energy
from placeopt.model.problem import PARTS, UNLIMITED, Metric, Problem

from ..._runs.device_classes import class_ends, moves_freely
from ..._runs.exact_run import TooLargeError, counted

LARGEST = 2**62
"""No sum in a model may reach this: CP-SAT counts in 64 bits."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that keep at least one optimal schedule.

    By the horizon, some optimal schedule ends, and every one at least as good as the incumbent if the first level of
    the objective contains the makespan.
    """

    horizon: int
    allowed: Bool  # (g, m) whether a group may run on a device, by feasibility and memory
    head: Int  # (n, m) ticks before which a task cannot start on a device
    tail: Int  # (n, m) ticks that must follow its end there
    largest: dict[Metric, int]  # numbers that no schedule within the horizon exceeds


def limits(problem: Problem, incumbent: Value | None) -> Limits:
    """Return limits for schedules whose first level is no worse than the incumbent's. O(e k^2) for k device classes.

    The horizon: take an optimal schedule, in which a device is set up right before its task starts, and remove every
    tick after the last release time at which nothing runs, moves or is set up; later events move forward. The longest
    swap time of a device counts as a release time, and so does `Problem.latest_opening`. All constraints still hold: no
    task, transfer or set-up is cut, events that move stay at or after the last release, and the memory live at any tick
    was live at some tick before. No metric grows. In the result, a task, a transfer or a set-up is active at every tick
    after the last release. So it ends by the last release time plus the sum of all durations and transfers and of what
    rules add before tasks (`Problem.delays`). If all tasks have deadlines, no schedule ends after the last one. If the
    makespan has weight w in the first level of value V, any schedule no worse ends by V / w.

    Raises a TooLargeError if times or amounts exceed 64 bits.
    """
    work = _total(problem.duration.max(axis=1, initial=0))
    between = _total(problem.delays(problem.feasible))
    pairs = _links(problem)
    moving = _largest_total(problem.transfer(problem.payload, a, b) for a, b in pairs)
    last = max(problem.latest_opening, max(most_swapping(problem), default=0))
    horizon = min(last + work + between + moving, int(problem.deadline.max(initial=0)))
    weight = next((term.weight for term in problem.objective.levels[0] if term.metric == "makespan"), 0)
    if incumbent is not None and weight > 0:
        horizon = min(horizon, int(incumbent / weight))
    energy = _total(task_energy(problem).max(axis=1, initial=0)) + _largest_total(
        transfer_energy(problem, problem.payload, np.asarray(a), np.asarray(b)) for a, b in pairs
    )
    largest: dict[Metric, int] = {
        "makespan": horizon,
        "total_cost": work + moving,
        "max_load": work,
        "communication": _total(problem.payload),
        "energy": energy,
        "memory_balance": PARTS,
        "relocation": _total(problem.relocation.max(axis=1, initial=0)),
        "tardiness": horizon * _total(problem.due_weight[problem.due != UNLIMITED]),
        "price": _total(problem.price.max(axis=1, initial=0)),
        "devices": problem.n_devices,
    }
    for metric in ("makespan", *counted(problem)):
        # Rows add up a few such numbers, hence the factor.
        if largest[metric] >= LARGEST // 8:
            raise TooLargeError(f"{metric} up to {largest[metric]}")
    found = windows(classes_of(problem))
    label = problem.device_class
    allowed = problem.group_feasible()
    may_run = found.allowed[:, label]
    np.logical_and.at(allowed, problem.group, may_run)
    head, tail = (np.where(may_run, ticks[:, label], 0) for ticks in (found.head, found.tail))
    head = np.maximum(head, problem.release[:, None])
    return Limits(horizon, allowed, head, tail, largest)


def model_size(problem: Problem) -> int:
    """Estimate the number of literals, intervals and rows of the model."""
    group = problem.group
    devices = problem.group_feasible().sum(axis=1)
    source, target = group[problem.edge_source], group[problem.edge_target]
    between = source != target
    ends = devices[source[between]] + devices[target[between]]
    pairs = np.unique(np.stack((source[between], target[between])), axis=1)
    differing = devices[pairs].min(axis=0).sum() * 3
    classes = len(np.unique(problem.device_class))
    size = devices.sum() + devices[group].sum() + problem.n_edges
    if problem.contends or problem.objective.single != "makespan" or not moves_freely(problem):
        size += differing + problem.n_edges * classes * (classes - 1)
    if problem.contends:
        size += 4 * ends.sum()
    if problem.memory_model == "peak":
        size += devices[group].sum()
    if problem.resources is not None:
        size += devices[group].sum() * len(problem.resources.names)
    if problem.layout is not None:
        size += 6 * sum(len(members) ** 2 for members in problem.layout.sets())
    return int(size)


def _links(problem: Problem) -> list[tuple[int, int]]:
    """Return a pair of devices for every pair of classes that two devices can have."""
    first, last = class_ends(problem)
    return [(a, b) for a in first.tolist() for b in last.tolist() if a != b]


def _largest_total(rows: Iterator[Int]) -> int:
    """Return the sum over all edges of their largest amount."""
    most: Int | None = None
    for row in rows:
        most = row if most is None else np.maximum(most, row)
    return 0 if most is None else _total(most)


def _total(amounts: Int) -> int:
    """Return the sum in Python integers, which never overflow."""
    return sum(amounts.tolist())
