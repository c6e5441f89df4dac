"""Release times and deadlines, and whether the time between them is enough."""

from __future__ import annotations

import numpy as np

from placeopt.io.compiler.devices import DeviceIndex
from placeopt.io.compiler.durations import DurationTable
from placeopt.io.compiler.issues import Issues
from placeopt.io.compiler.scales import Scales
from placeopt.io.spec import TaskSpec
from placeopt.model.arrays import Int
from placeopt.model.problem import COARSE, UNLIMITED
from placeopt.model.units import time_text


def time_windows(tasks: dict[str, TaskSpec], scales: Scales) -> tuple[Int, Int]:
    """(n,) release times, rounded up to ticks, and (n,) deadlines, rounded down: whole ticks never promise too much."""
    release = np.zeros(len(tasks), dtype=np.int64)
    deadline = np.full(len(tasks), UNLIMITED, dtype=np.int64)
    for row, (name, task) in enumerate(tasks.items()):
        if task.release is not None:
            release[row] = scales.ticks(task.release, ("tasks", name, "release"))
        if task.deadline is not None:
            deadline[row] = scales.ticks_within(task.deadline, ("tasks", name, "deadline"))
    return release, deadline


def check_windows(
    tasks: dict[str, TaskSpec],
    release: Int,
    deadline: Int,
    table: DurationTable | None,
    index: DeviceIndex,
    scales: Scales,
    issues: Issues,
) -> None:
    """Report deadlines before the release time, and those that not even the fastest device can meet.

    Without a table (the durations are not known) a task counts as taking no time.
    """
    if not scales.sound or (deadline == UNLIMITED).all():
        return
    fastest = np.zeros(len(tasks), dtype=np.int64)
    if table is not None:
        some = table.feasible.any(axis=1)
        fastest[some] = np.where(table.feasible, table.duration, UNLIMITED).min(axis=1, initial=UNLIMITED)[some]
    names = list(tasks)
    # A task without a deadline has the largest number there is, which no sum of two times in range exceeds.
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
            rounding = scales.rounding
            tick = time_text(1, scales.resolution)
            coarse = f"; times are rounded to the {tick} tick, a finer resolution may help"
            hint = coarse if rounding is not None and rounding.share > COARSE else ""
            issues.add(f"{stated} cannot be met: the task{after} {takes}, {excess} too long{hint}", path)
