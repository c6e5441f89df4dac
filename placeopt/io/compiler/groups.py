"""Colocation and separation groups, and checks of their memory."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import NamedTuple

import numpy as np

from placeopt.errors import listing
from placeopt.io.compiler.durations import DurationTable
from placeopt.io.compiler.issues import Issues
from placeopt.io.compiler.network import DeviceIndex
from placeopt.io.spec import TaskSpec
from placeopt.model.arrays import Int
from placeopt.model.problem import UNLIMITED, MemoryModel
from placeopt.model.units import shown, size_text


def colocation_labels(tasks: dict[str, TaskSpec]) -> Int:
    """(n,) labels, equal for tasks that must share a device; a task with two labels joins their groups."""
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


class TaskMemory(NamedTuple):
    """Bytes of each task, (n,) each: for the whole run, from start to consumption, and while the task runs."""

    resident: Int
    output: Int
    scratch: Int

    @property
    def total(self) -> Int:
        """(n,) all memory of each task."""
        return self.resident + self.output + self.scratch


def check_groups(
    tasks: dict[str, TaskSpec],
    labels: Int,
    table: DurationTable,
    memory: TaskMemory,
    model: MemoryModel,
    capacity: Int,
    index: DeviceIndex,
    issues: Issues,
) -> None:
    """Report groups without a common device, groups too large for every device, and tasks too large in total.

    A single task is a group. Under `sum`, a group needs all memory of its tasks. Under `peak`, it needs at least its
    resident memory and the output and scratch of its largest task.
    """
    names = list(tasks)
    if not names:
        return
    _, group = np.unique(labels, return_inverse=True)
    by_group = np.argsort(group, kind="stable")
    firsts = np.searchsorted(group[by_group], np.arange(group.max() + 1))
    common = np.logical_and.reduceat(table.feasible[by_group], firsts, axis=0)
    peaks = _peaks(memory, table.duration, by_group, firsts)
    needs = peaks if model == "peak" else np.add.reduceat(memory.total[by_group], firsts)[:, None]
    for label in np.flatnonzero(~(common & (needs <= capacity)).any(axis=1)):
        rows = by_group[group[by_group] == label]
        members = listing([names[row] for row in rows])
        path = ("tasks", names[rows[0]], "colocate" if len(rows) > 1 else "memory")
        if not common[label].any():
            issues.add(f"no device can run every task of its colocation group ({members})", path)
            continue
        roomiest = int(np.argmax(np.where(common[label], capacity, -1)))
        what = f"its colocation group ({members}) needs" if len(rows) > 1 else "needs"
        need, room = _sizes(int(np.broadcast_to(needs, common.shape)[label, roomiest]), int(capacity[roomiest]))
        message = (
            f"{what} {need}{' at one time' if model == 'peak' else ''}, more than any device that may run it has "
            f"(the largest is {index.devices[roomiest].name} with {room})"
        )
        if model == "sum" and (common[label] & (peaks[label] <= capacity)).any():
            message += _freed(memory, rows)
        issues.add(message, path)
    if (capacity != UNLIMITED).all() and not len(issues):
        there, resident = sum(map(int, capacity)), int(memory.resident.sum())
        total = resident if model == "peak" else int(memory.total.sum())
        if total > there:
            need, room = _sizes(total, there)
            kind = "resident memory" if model == "peak" else "memory"
            helps = model == "sum" and resident + int((memory.output + memory.scratch).max()) <= there
            freed = _freed(memory, np.arange(len(names))) if helps else ""
            issues.add(f"all tasks together need {need} of {kind}, and all devices have {room}{freed}", ("tasks",))


def _peaks(memory: TaskMemory, duration: Int, by_group: Int, firsts: Int) -> Int:
    """(g, m) fewest bytes live at one time for each group on each device; tasks of zero duration hold none."""
    running = np.where(duration > 0, (memory.output + memory.scratch)[:, None], 0)
    resident = np.add.reduceat(memory.resident[by_group], firsts)
    return np.asarray(resident[:, None] + np.maximum.reduceat(running[by_group], firsts, axis=0))


def _freed(memory: TaskMemory, rows: Int) -> str:
    """A hint on the memory that the memory model `peak` counts for a part of the time only."""
    resident, total = int(memory.resident[rows].sum()), int(memory.total[rows].sum())
    return (
        f"; {size_text(resident)} of it is resident, and memory_model: peak counts the other "
        f"{size_text(total - resident)} only while it is live"
    )


def _sizes(need: int, room: int) -> tuple[str, str]:
    """Two amounts as text, in bytes if they would otherwise look equal."""
    texts = size_text(need), size_text(room)
    return texts if texts[0] != texts[1] else (f"{need} B", f"{room} B")
