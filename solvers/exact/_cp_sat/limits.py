"""Numbers that a CP-SAT model is built with, and why they are valid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from placeopt.bounding.quick.classes import classes_of
from placeopt.bounding.quick.paths import windows
from placeopt.model.arrays import Bool, Int
from placeopt.model.objective import Value, task_energy, transfer_energy
from placeopt.model.problem import PARTS, Metric, Problem

from .base import LARGEST, TooLargeError


@dataclass(frozen=True, slots=True)
class Limits:
    """What every schedule of a problem keeps that is worth having.

    Attributes
    ----------
    horizon
        A tick by which some optimal schedule has ended, and every one at least as good as the
        incumbent if the objective's first level counts the makespan.
    allowed
        (g, m), whether a group may run on a device: by feasibility and, known beforehand, by memory.
    head, tail
        (n, m) ticks before which a task cannot start on a device; which must follow its end there.
    largest
        For each metric, a number that no schedule within the horizon exceeds.
    """

    horizon: int
    allowed: Bool
    head: Int
    tail: Int
    largest: dict[Metric, int]


def limits(problem: Problem, incumbent: Value | None) -> Limits:
    """Limits for schedules whose first level is no worse than the incumbent's; O(e k^2) for k device classes.

    The horizon: take an optimal schedule and cut out every tick from the last release time on at which nothing runs
    and nothing moves, shifting what comes later forward. All rules still hold (nothing in flight is cut, what is
    shifted stays at or after the last release and nearer to its deadline, and the memory live
    at any tick is what it was at some tick before), no metric grows, and what is left has at
    every tick from then on a task or a transfer: so it ends by the last release time and the sum of all durations and
    transfers. No schedule ends after the last deadline, if all tasks have one. And
    if makespan has weight w in the first level of value V, any schedule no worse ends by V / w.

    Raises
    ------
    TooLargeError
        If times or amounts do not fit into CP-SAT's 64 bits.
    """
    work = _total(problem.duration.max(axis=1, initial=0))
    pairs = list(_links(problem))
    moving = _largest_total(problem.transfer(problem.payload, a, b) for a, b in pairs)
    horizon = min(int(problem.release.max(initial=0)) + work + moving, int(problem.deadline.max(initial=0)))
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
    }
    for metric, value in largest.items():
        # Rows add up a few such numbers: stay a factor away from the limit.
        if value >= LARGEST // 8:
            raise TooLargeError(f"{metric} up to {value}")
    found = windows(classes_of(problem))
    label = problem.device_class
    allowed = problem.group_feasible()
    may_run = found.allowed[:, label]
    np.logical_and.at(allowed, problem.group, may_run)
    head, tail = (np.where(may_run, ticks[:, label], 0) for ticks in (found.head, found.tail))
    head = np.maximum(head, problem.release[:, None])
    return Limits(horizon, allowed, head, tail, largest)


def model_size(problem: Problem) -> int:
    """About how many literals, intervals and rows the model has."""
    group = problem.group
    devices = problem.group_feasible().sum(axis=1)
    source, target = group[problem.edge_source], group[problem.edge_target]
    between = source != target
    ends = devices[source[between]] + devices[target[between]]
    pairs = np.unique(np.stack((source[between], target[between])), axis=1)
    differing = devices[pairs].min(axis=0).sum() * 3
    classes = len(np.unique(problem.device_class))
    size = devices.sum() + devices[group].sum() + differing + problem.n_edges * (1 + classes * (classes - 1))
    if problem.contention == "port":
        size += 4 * ends.sum()
    if problem.memory_model == "peak":
        size += devices[group].sum()
    return int(size)


def _links(problem: Problem) -> Iterator[tuple[int, int]]:
    """A pair of devices for every pair of classes that two devices can have."""
    label = problem.device_class
    first = np.unique(label, return_index=True)[1].tolist()
    last = (len(label) - 1 - np.unique(label[::-1], return_index=True)[1]).tolist()
    for c, a in enumerate(first):
        for k, b in enumerate(last):
            if c != k or a != b:
                yield a, b


def _largest_total(rows: Iterator[Int]) -> int:
    """The sum over all edges of the largest of their amounts."""
    most: Int | None = None
    for row in rows:
        most = row if most is None else np.maximum(most, row)
    return 0 if most is None else _total(most)


def _total(amounts: Int) -> int:
    """The sum in Python integers, which never overflow."""
    return sum(amounts.tolist())
