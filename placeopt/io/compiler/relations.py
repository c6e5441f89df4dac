"""Relations between tasks: edges with payloads, cycles, forward tasks of backward tasks, colocation, separation."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import chain, combinations, repeat

import numpy as np

from placeopt.errors import visible
from placeopt.io.compiler.issues import Gaps, Issues
from placeopt.io.compiler.scales import Scales
from placeopt.io.compiler.tasks import Tasks
from placeopt.io.syntax import Path
from placeopt.model.arrays import Bool, Int
from placeopt.model.graph import components, find_cycle
from placeopt.model.units import shown

_CYCLES, _CYCLE_SHOWN = 8, 8


@dataclass(frozen=True, slots=True)
class EdgeArrays:
    """Edges in document order: (e, 2) producer and consumer, (e,) bytes, (e,) whether the edge carries the output."""

    pairs: Int
    payload: Int
    shared: Bool


def edge_arrays(tasks: Tasks, scales: Scales, gaps: Gaps, issues: Issues) -> EdgeArrays:
    """Return the edges of all tasks' `after`."""
    names, number = list(tasks), tasks.number
    outputs = np.zeros(len(tasks), dtype=np.int64)
    for row, name, task in tasks.stating("output"):
        if task.output is not None:
            outputs[row] = scales.size(task.output, ("tasks", name, "output"))
    afters = [task.after for task in tasks.values()]
    counts = list(map(len, afters))
    source = np.fromiter(map(number.get, chain.from_iterable(afters), repeat(-1)), dtype=np.int64, count=sum(counts))
    target = np.repeat(np.arange(len(tasks)), counts)
    payloads = list(chain.from_iterable(map(dict.values, afters)))
    sound = (source >= 0) & (source != target)
    if not sound.all():
        producers = list(chain.from_iterable(afters))
        for edge in np.flatnonzero(~sound).tolist():
            path = ("tasks", names[target[edge]], "after", producers[edge])
            if source[edge] >= 0:
                issues.add("a task cannot come after itself", path, at_key=True)
            elif not gaps.tasks:
                issues.unknown("task", producers[edge], names, path, at_key=True)
        source, target = source[sound], target[sound]
        payloads = [payload for payload, kept in zip(payloads, sound.tolist(), strict=True) if kept]
    pairs = np.column_stack((source, target))
    shared = np.zeros(len(payloads), dtype=np.bool_)
    if None in payloads:
        shared[:] = [payload is None for payload in payloads]
    stated = np.flatnonzero(~shared)

    def place(index: int) -> Path:
        edge = stated[index]
        return ("tasks", names[target[edge]], "after", names[source[edge]])

    carried = outputs[source]
    carried[stated] = scales.sizes([payload for payload in payloads if payload is not None], place)
    arrays = EdgeArrays(pairs, carried, shared)
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


def forward_tasks(tasks: Tasks, gaps: Gaps, issues: Issues) -> Int:
    """Return (n,) the task whose gradient each task computes; its own index if it is not a backward task."""
    forward = np.arange(len(tasks), dtype=np.int64)
    names: list[str] = []
    for row, name, task in tasks.stating("backward_of"):
        if task.backward_of is None:
            continue
        path = ("tasks", name, "backward_of")
        target = tasks.number.get(task.backward_of)
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


def colocation_labels(tasks: Tasks) -> Int:
    """Return (n,) labels, equal for tasks that must share a device; a task with two labels joins their groups."""
    first: dict[str, int] = {}
    pairs = [
        (row, first.setdefault(label, row)) for row, _, task in tasks.stating("colocate") for label in task.colocate
    ]
    left, right = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return components(len(tasks), left, right)[0]


def separation_pairs(tasks: Tasks, labels: Int, n_devices: int, issues: Issues) -> list[tuple[int, int]]:
    """Return pairs of tasks that must be on different devices."""
    members: dict[str, list[int]] = defaultdict(list)
    names = list(tasks)
    for row, _, task in tasks.stating("separate"):
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
            only = "is only 1 device" if n_devices == 1 else f"are only {n_devices} devices"
            issues.add(
                f"{len(together)} tasks are separated by {shown(label)}, and there {only}",
                ("tasks", names[rows[0]], "separate"),
            )
        else:
            pairs += combinations(rows, 2)
    return pairs
