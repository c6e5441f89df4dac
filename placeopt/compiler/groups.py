"""Colocation and separation groups, and whether memory can hold what must stand together."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

import numpy as np

from placeopt.compiler.devices import DeviceIndex
from placeopt.compiler.issues import Issues
from placeopt.errors import listing
from placeopt.ir import UNLIMITED, Bool, Int
from placeopt.spec import TaskSpec
from placeopt.units import shown, size_text


def colocation_labels(tasks: dict[str, TaskSpec]) -> Int:
    """(n,) a number for each task, equal for tasks that must share a device.

    A task with two labels joins their groups.
    """
    parent = list(range(len(tasks)))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    first: dict[str, int] = {}
    for row, task in enumerate(tasks.values()):
        for label in task.colocate:
            other = first.setdefault(label, row)
            a, b = root(row), root(other)
            parent[max(a, b)] = min(a, b)
    return np.array([root(row) for row in range(len(tasks))], dtype=np.int64)


def separation_pairs(tasks: dict[str, TaskSpec], labels: Int, n_devices: int, issues: Issues) -> list[tuple[int, int]]:
    """Pairs of tasks that must be on different devices."""
    members: dict[str, list[int]] = defaultdict(list)
    names = list(tasks)
    for row, task in enumerate(tasks.values()):
        for label in dict.fromkeys(task.separate):
            members[label].append(row)
    pairs: list[tuple[int, int]] = []
    for label, rows in members.items():
        together: dict[int, int] = {}
        for row in rows:
            other = together.setdefault(int(labels[row]), row)
            if other != row:
                issues.add(
                    f"separated by {shown(label)} from task {shown(names[other])}, with which it is colocated",
                    ("tasks", names[row], "separate"),
                )
        if len(together) > n_devices:
            issues.add(
                f"{len(together)} tasks are separated by {shown(label)}, and there are only {n_devices} devices",
                ("tasks", names[rows[0]], "separate"),
            )
        else:
            pairs += combinations(rows, 2)
    return pairs


def check_groups(
    tasks: dict[str, TaskSpec],
    labels: Int,
    feasible: Bool,
    amounts: Int,
    capacity: Int,
    index: DeviceIndex,
    issues: Issues,
) -> None:
    """Report groups without a common device, groups too large for every device, and too much memory in all."""
    names = list(tasks)
    if not names:
        return
    _, group = np.unique(labels, return_inverse=True)
    by_group = np.argsort(group, kind="stable")
    firsts = np.searchsorted(group[by_group], np.arange(group.max() + 1))
    common = np.logical_and.reduceat(feasible[by_group], firsts, axis=0)
    needs = np.add.reduceat(amounts[by_group], firsts)
    largest = np.where(common, capacity, -1).max(axis=1)
    for label in np.flatnonzero(needs > largest):
        rows = np.flatnonzero(group == label)
        members = listing([names[row] for row in rows])
        path = ("tasks", names[rows[0]], "colocate" if len(rows) > 1 else "memory")
        if largest[label] < 0:
            issues.add(f"no device can run every task of its colocation group ({members})", path)
            continue
        what = f"its colocation group ({members}) needs" if len(rows) > 1 else "needs"
        roomiest = index.devices[int(np.argmax(np.where(common[label], capacity, -1)))].name
        need, room = _sizes(int(needs[label]), int(largest[label]))
        issues.add(
            f"{what} {need}, more than any device that may run it has (the largest is {roomiest} with {room})", path
        )
    if (capacity != UNLIMITED).all():
        total, there = int(amounts.sum()), sum(map(int, capacity))
        if total > there and not len(issues):
            need, room = _sizes(total, there)
            issues.add(f"all tasks together need {need} of memory, and all devices have {room}", ("tasks",))


def _sizes(need: int, room: int) -> tuple[str, str]:
    """Two amounts for people; to the byte where they would look alike otherwise."""
    texts = size_text(need), size_text(room)
    return texts if texts[0] != texts[1] else (f"{need} B", f"{room} B")
