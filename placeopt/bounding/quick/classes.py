"""A problem by device classes and colocation groups: the basis of all lower bounds.

A *class* is a set of interchangeable devices (`Problem.device_class`), so 60 identical devices cost as much as one. n
tasks, g groups, k classes. This view is a relaxation: it admits every schedule of the problem, and perhaps more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import listing
from placeopt.model.arrays import Bool, Int
from placeopt.model.modes import place_text
from placeopt.model.problem import UNLIMITED, Problem

LARGEST_TOTAL = 1 << 60
"""Amounts are clipped so that their sum over all tasks stays below this; smaller amounts are a relaxation."""

SUBSETS = 64
"""Maximum number of subsets of devices."""

BLOCK = 1 << 17
"""Entries of a table that are computed at a time: they fit into a cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """A problem by device classes and colocation groups."""

    problem: Problem
    leader: Int  # (k,) the first device of each class; it represents the class
    size: Int  # (k,) devices in each class
    capacity: Int  # (k,) bytes of each device, UNLIMITED if none is stated
    # (g, k), whether the group may run on devices of the class and fits there alone. A group that may run nowhere (the
    # problem is infeasible) is allowed everywhere, so that bounds are finite.
    allowed: Bool
    duration: Int  # (n, k) ticks
    busy: Int  # (n, k) ticks for which the task keeps its device from others: 0 on devices that run several at once
    memory: Int  # (n,) bytes that a task takes permanently: all its memory under `sum`, `resident` under `peak`
    group_memory: Int  # (g,) the sum of `memory` over each group
    need: Int  # (g, k) bytes that the group needs on the class in every schedule
    lone_need: Int  # (n,) bytes beyond `memory` that the task needs while it runs, on any device
    # (k, k) a device of the row's class and one of the column's class, distinct where `linked`
    source: Int
    target: Int
    linked: Bool  # (k, k), whether two such devices exist: false only on the diagonal for classes of one device
    # (k, k) the links from `source` to `target`
    latency: Int
    num: Int
    den: Int
    together: Bool  # (e,), whether the edge stays within a group
    apart: Bool  # (e,), whether a separation keeps the edge's tasks on different devices

    @property
    def n_classes(self) -> int:
        """Number of device classes, k."""
        return len(self.leader)

    @property
    def task_allowed(self) -> Bool:
        """(n, k), whether the group of each task is allowed on the class."""
        problem = self.problem
        return self.allowed if problem.n_groups == problem.n_tasks else self.allowed[problem.group]

    def names(self, members: Bool) -> str:
        """The names of the devices of some classes, for messages; `members` is (k,)."""
        problem = self.problem
        return listing([place_text(problem, d) for d in np.flatnonzero(members[problem.device_class]).tolist()])


@dataclass(frozen=True, slots=True, eq=False)
class Subset:
    """A subset of the classes, `members` (k,), and the `groups` (g,) that may run only on them."""

    members: Bool
    groups: Bool


def group_text(problem: Problem, group: int) -> str:
    """A group for messages: `task conv1`, or `the group of conv1, relu1`."""
    names = [problem.task_names[i] for i in np.flatnonzero(problem.group == group)]
    return f"task {names[0]}" if len(names) == 1 else f"the group of {listing(names, 4)}"


def by_row(shape: tuple[int, ...], values: Callable[[slice], Int]) -> Int:
    """(n,) values of the rows of tables (n, k), computed for some rows at a time: no other table is stored."""
    found = np.empty(shape[0], dtype=np.int64)
    rows = max(BLOCK // max(shape[1], 1), 1)
    for begin in range(0, len(found), rows):
        block = slice(begin, begin + rows)
        found[block] = values(block)
    return found


def least(amounts: Int, allowed: Bool) -> Int:
    """(i,) the smallest amount of each item over its allowed classes."""
    most = np.iinfo(np.int64).max
    return by_row(amounts.shape, lambda block: row_minima(np.where(allowed[block], amounts[block], most)))


def row_minima(table: NDArray[Any]) -> NDArray[Any]:
    """(n,) the smallest entry of each row of a table (n, k); k is often small, and a loop over k much faster."""
    return np.asarray(np.ascontiguousarray(table.T).min(axis=0))


def selected(values: Any, rows: Bool, columns: Bool | None = None) -> Any:
    """The values of some rows, and of some columns; the values themselves if these are all: tables are large."""
    found = values if rows.all() else values[rows]
    return found if columns is None or columns.all() else np.take(found, np.flatnonzero(columns), axis=1)


def by_group(problem: Problem, values: Any, combine: np.ufunc) -> Any:
    """(g, ...) the values (n, ...) combined over the tasks of each group."""
    if problem.n_groups == problem.n_tasks:
        return values
    ordered = np.argsort(problem.group, kind="stable")
    starts = np.searchsorted(problem.group[ordered], np.arange(problem.n_groups))
    return combine.reduceat(values[ordered], starts, axis=0)


def clipped(amounts: Int) -> Int:
    """Amounts clipped so that the sum over the first axis stays below LARGEST_TOTAL."""
    most = LARGEST_TOTAL // max(len(amounts), 1)
    return amounts if amounts.max(initial=0) <= most else np.minimum(amounts, most)


def classes_of(problem: Problem) -> Classes:
    """The problem by classes and groups; requires at least one task and one device."""
    label = problem.device_class
    leader = np.unique(label, return_index=True)[1].astype(np.int64)
    size = np.bincount(label).astype(np.int64)
    second = leader.copy()  # a second device of the class, if there is one
    for d in range(problem.n_devices - 1, -1, -1):
        if d != leader[label[d]]:
            second[label[d]] = d
    source = np.repeat(leader[:, None], len(leader), axis=1)
    target = np.repeat(leader[None, :], len(leader), axis=0)
    np.fill_diagonal(target, second)

    alone = len(leader) == problem.n_devices
    feasible = problem.feasible if alone else problem.feasible[:, leader]
    duration = clipped(problem.duration if alone else np.take(problem.duration, leader, axis=1))
    memory, lone = problem.memory, np.zeros(problem.n_tasks, dtype=np.int64)
    running = np.broadcast_to(np.int64(0), duration.shape)
    if problem.memory_model == "peak":
        memory = problem.resident
        live = clipped(problem.output + problem.scratch)
        # A task that takes no time is never live at any tick.
        running = np.where(duration > 0, live[:, None], 0)
        lone = np.where(feasible, running, UNLIMITED).min(axis=1)
    memory = clipped(memory)
    group_memory = by_group(problem, memory, np.add)
    need = np.broadcast_to(group_memory[:, None], (len(group_memory), len(leader)))
    if problem.memory_model == "peak":
        need = need + by_group(problem, running, np.maximum)
    capacity = problem.capacity[leader]
    busy = np.where(problem.parallel[leader], 0, duration) if problem.parallel.any() else duration
    allowed = by_group(problem, feasible, np.logical_and) & (need <= capacity)
    allowed[~allowed.any(axis=1)] = True

    ends = problem.group[problem.edge_source], problem.group[problem.edge_target]
    return Classes(
        problem=problem,
        leader=leader,
        size=size,
        capacity=capacity,
        allowed=allowed,
        duration=duration,
        busy=busy,
        memory=memory,
        group_memory=group_memory,
        need=need,
        lone_need=lone,
        source=source,
        target=target,
        linked=source != target,
        latency=problem.latency[source, target],
        num=problem.byte_ticks_num[source, target],
        den=problem.byte_ticks_den[source, target],
        together=ends[0] == ends[1],
        apart=_separated(problem, *ends),
    )


def _separated(problem: Problem, left: Int, right: Int) -> Bool:
    """Whether each pair of groups holds a separated pair of tasks."""
    pairs = problem.group[problem.separation]
    count = problem.n_groups
    keys = pairs.min(axis=1, initial=count) * count + pairs.max(axis=1, initial=0)
    return np.isin(np.minimum(left, right) * count + np.maximum(left, right), keys)


def device_sets(classes: Classes) -> tuple[Bool, Int]:
    """(s, k) the distinct rows of `allowed` in order of first appearance, and (g,) the row of each group."""
    packed = np.packbits(classes.allowed, axis=1)  # much faster to sort
    _, first, inverse = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return classes.allowed[first[order]], np.argsort(order)[inverse.reshape(-1)].astype(np.int64)


def subsets(classes: Classes) -> list[Subset]:
    """Subsets of the classes that confine some group: the allowed classes of each group, then unions of these.

    At most SUBSETS, in order of first appearance. The set of all classes, which confines every group, is last.
    """
    rows, row = device_sets(classes)
    kinds = [sum(1 << c for c in np.flatnonzero(allowed).tolist()) for allowed in rows]
    everything = (1 << classes.n_classes) - 1
    found = [bits for bits in kinds if bits != everything][: SUBSETS - 1]
    seen = {*found, everything}
    for i, left in enumerate(found):  # the list grows during iteration: unions of unions come last
        for right in found[:i]:
            if len(found) < SUBSETS - 1 and left | right not in seen:
                seen.add(left | right)
                found.append(left | right)
    return [
        Subset(
            members=np.array([bits >> c & 1 for c in range(classes.n_classes)], dtype=np.bool_),
            groups=np.array([kind & ~bits == 0 for kind in kinds], dtype=np.bool_)[row],
        )
        for bits in (*found, everything)
    ]
