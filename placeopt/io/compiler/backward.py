"""Backward tasks: the forward task of each looked up."""

from __future__ import annotations

import numpy as np

from placeopt.io.compiler.issues import Gaps, Issues
from placeopt.io.spec import TaskSpec
from placeopt.model.arrays import Int
from placeopt.model.units import shown


def forward_tasks(tasks: dict[str, TaskSpec], gaps: Gaps, issues: Issues) -> Int:
    """(n,) the task whose gradient each task computes; its own index for one that is no backward task."""
    number = {name: row for row, name in enumerate(tasks)}
    forward = np.arange(len(tasks), dtype=np.int64)
    names: list[str] = []
    for row, (name, task) in enumerate(tasks.items()):
        if task.backward_of is None:
            continue
        path = ("tasks", name, "backward_of")
        target = number.get(task.backward_of)
        if target is None:
            names = names or list(tasks)
            if not gaps.tasks:
                issues.unknown("task", task.backward_of, names, path)
        elif target == row:
            issues.add("a task cannot be backward of itself", path)
        elif (further := tasks[task.backward_of].backward_of) is not None:
            issues.add(
                f"{shown(task.backward_of)} is a backward task itself (of {shown(further)}); expected a forward task",
                path,
            )
        else:
            forward[row] = target
    return forward
