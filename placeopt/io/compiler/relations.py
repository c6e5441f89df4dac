"""Relations between tasks: edges with payloads, cycles, forward tasks of backward tasks, colocation, separation."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from placeopt.errors import visible
from placeopt.io.compiler.issues import Gaps, Issues
from placeopt.io.compiler.scales import Scales
from placeopt.io.spec import TaskSpec
from placeopt.model.arrays import Bool, Int
from placeopt.model.graph import find_cycle
from placeopt.model.units import shown

_CYCLES, _CYCLE_SHOWN = 8, 8


@dataclass(frozen=True, slots=True)
class EdgeArrays:
    """Edges in document order: (e, 2) producer and consumer, (e,) bytes, (e,) whether the edge carries the output."""

    pairs: Int
    payload: Int
    shared: Bool


def edge_arrays(tasks: dict[str, TaskSpec], scales: Scales, gaps: Gaps, issues: Issues) -> EdgeArrays:
    """Return the edges of all tasks' `after`."""
    names = list(tasks)
    number = {name: row for row, name in enumerate(tasks)}
    outputs = [
        0 if task.output is None else scales.size(task.output, ("tasks", name, "output"))
        for name, task in tasks.items()
    ]
    sources: list[int] = []
    targets: list[int] = []
    payloads: list[int] = []
    shared: list[bool] = []
    for row, (name, task) in enumerate(tasks.items()):
        for producer, payload in task.after.items():
            source = number.get(producer)
            if source is None:
                if not gaps.tasks:
                    issues.unknown("task", producer, names, ("tasks", name, "after", producer), at_key=True)
                continue
            if source == row:
                issues.add("a task cannot come after itself", ("tasks", name, "after", producer), at_key=True)
                continue
            sources.append(source)
            targets.append(row)
            shared.append(payload is None)
            payloads.append(
                outputs[source] if payload is None else scales.size(payload, ("tasks", name, "after", producer))
            )
    arrays = EdgeArrays(
        np.column_stack((np.array(sources, dtype=np.int64), np.array(targets, dtype=np.int64))),
        np.array(payloads, dtype=np.int64),
        np.array(shared, dtype=np.bool_),
    )
    _report_cycles(arrays.pairs, names, issues)
    return arrays


def _report_cycles(pairs: Int, names: list[str], issues: Issues) -> None:
    """Report cycles, each after removing the closing edge of the one before."""
    for _ in range(_CYCLES):
        cycle = find_cycle(pairs, len(names))
        if not cycle:
            return
        around = [shown(names[row]) if " " in names[row] else visible(names[row]) for row in cycle]
        if len(around) > _CYCLE_SHOWN:
            around[_CYCLE_SHOWN - 1 : -1] = ["..."]
        issues.add(
            f"these tasks form a cycle: {' -> '.join([*around, around[0]])}",
            ("tasks", names[cycle[0]], "after", names[cycle[-1]]),
            at_key=True,
        )
        pairs = pairs[(pairs != (cycle[-1], cycle[0])).any(axis=1)]


def forward_tasks(tasks: dict[str, TaskSpec], gaps: Gaps, issues: Issues) -> Int:
    """Return (n,) the task whose gradient each task computes; its own index if it is not a backward task."""
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


def colocation_labels(tasks: dict[str, TaskSpec]) -> Int:
    """Return (n,) labels, equal for tasks that must share a device; a task with two labels joins their groups."""
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
    """Return pairs of tasks that must be on different devices."""
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
