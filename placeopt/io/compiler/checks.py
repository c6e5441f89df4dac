"""Check a whole problem: times against deadlines, colocation groups against memory."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from placeopt.errors import listing
from placeopt.io.compiler.durations import DurationTable
from placeopt.io.compiler.tasks import Parts
from placeopt.model.arrays import Int
from placeopt.model.memory import freed_text
from placeopt.model.problem import COARSE, UNLIMITED
from placeopt.model.ranges import LARGEST
from placeopt.model.units import time_text, two_sizes


def check_windows(parts: Parts, release: Int, deadline: Int, table: DurationTable | None) -> None:
    """Report deadlines before the release time, and those that even the fastest device misses.

    Without a table, tasks are assumed to take no time.
    """
    tasks, index, scales, issues = parts.tasks, parts.index, parts.scales, parts.issues
    if not scales.sound or (deadline == UNLIMITED).all():
        return
    fastest = np.zeros(len(tasks), dtype=np.int64)
    if table is not None:
        some = table.feasible.any(axis=1)
        fastest[some] = np.where(table.feasible, table.duration, UNLIMITED).min(axis=1, initial=UNLIMITED)[some]
    names = list(tasks)
    # UNLIMITED exceeds every sum of two times in range.
    for row in np.flatnonzero(release + fastest > deadline).tolist():
        name, task = names[row], tasks[names[row]]
        path = ("tasks", name, "deadline")
        stated, released = issues.written(path), issues.written(("tasks", name, "release"))
        if issues.touch(*path) or issues.touch("tasks", name, "release"):
            continue
        if task.release is not None and task.deadline is not None and release[row] > deadline[row]:
            if scales.exact_ticks(task.release) > scales.exact_ticks(task.deadline):
                issues.add(f"{stated} is before the release time of the task, {released}", path)
            else:
                between = f"the release time {released} and the deadline {stated}"
                issues.add(f"no whole tick lies between {between}; use a finer resolution", path)
        elif table is not None and not issues.touch("tasks", name):
            device = index.devices[int(np.where(table.feasible[row], table.duration[row], UNLIMITED).argmin())].name
            takes = f"takes {time_text(int(fastest[row]), scales.resolution)} at its fastest (on {device})"
            excess = time_text(int(release[row] + fastest[row] - deadline[row]), scales.resolution)
            after = f", released at {released}," if release[row] else ""
            hint = ""
            if scales.rounding is not None and scales.rounding.share > COARSE:
                tick = time_text(1, scales.resolution)
                hint = f"; times are rounded to the {tick} tick, a finer resolution may help"
            issues.add(f"{stated} cannot be met: the task{after} {takes}, {excess} too long{hint}", path)


class TaskMemory(NamedTuple):
    """Bytes of each task, (n,) each: for the whole run, from start to consumption, and while the task runs."""

    resident: Int
    output: Int
    scratch: Int

    @property
    def total(self) -> Int:
        """(n,) all memory of each task."""
        return self.resident + self.output + self.scratch

    def kept(self, more: Int) -> Int:
        """(n,) all memory of each task, with the outputs of `more` (n,) further runs."""
        return np.asarray(self.total + np.minimum(self.output, LARGEST // np.maximum(more, 1)) * more)


def check_groups(
    parts: Parts, labels: Int, table: DurationTable, memory: TaskMemory, capacity: Int, *, hint: bool
) -> None:
    """Report groups without a common device, and groups too large for every device.

    A single task is a group. Under `sum`, a group needs all memory of its tasks. Under `peak`, it needs at least its
    resident memory and the output and scratch of its largest task. With `hint`, a message says where `peak` helps.
    """
    names, issues, model = list(parts.tasks), parts.issues, parts.spec.memory_model
    if not names:
        return
    _, group = np.unique(labels, return_inverse=True)
    by_group = np.argsort(group, kind="stable")
    firsts = np.searchsorted(group[by_group], np.arange(group.max() + 1))
    single = len(firsts) == len(names)  # each task is a group, in order

    def combined(values: Any, combine: np.ufunc) -> Any:
        return values if single else combine.reduceat(values[by_group], firsts, axis=0)

    @cache
    def peaks() -> Int:
        """(g, m) fewest bytes live at one time for each group on each device; tasks of zero duration hold none."""
        running = np.where(table.duration > 0, (memory.output + memory.scratch)[:, None], 0)
        return np.asarray(combined(memory.resident, np.add)[:, None] + combined(running, np.maximum))

    common = combined(table.feasible, np.logical_and)
    needs = peaks() if model == "peak" else combined(memory.total, np.add)[:, None]
    for label in np.flatnonzero(~(common & (needs <= capacity)).any(axis=1)):
        rows = by_group[group[by_group] == label]
        members = listing([names[row] for row in rows])
        path = ("tasks", names[rows[0]], "colocate" if len(rows) > 1 else "memory")
        if not common[label].any():
            issues.add(f"no device can run every task of its colocation group ({members})", path)
            continue
        roomiest = int(np.argmax(np.where(common[label], capacity, -1)))
        what = f"its colocation group ({members}) needs" if len(rows) > 1 else "needs"
        need, room = two_sizes(int(np.broadcast_to(needs, common.shape)[label, roomiest]), int(capacity[roomiest]))
        message = (
            f"{what} {need}{' at one time' if model == 'peak' else ''}, more than any device that may run it has "
            f"(the largest is {parts.index.devices[roomiest].name} with {room})"
        )
        if hint and model == "sum" and (common[label] & (peaks()[label] <= capacity)).any():
            message += freed_text(int(memory.resident[rows].sum()), int(memory.total[rows].sum()))
        issues.add(message, path)
