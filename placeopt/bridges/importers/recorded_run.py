"""A recorded run as a plan: its placement and start times, or its order if the times do not fit the problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from placeopt.errors import UsageError, counted, visible
from placeopt.io.compiler import compile_spec
from placeopt.io.plan import plan_document
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, makespan
from placeopt.model.units import time_text
from placeopt.simulation import retime
from placeopt.verifier import verify


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The devices on which each task may have run, and the starts of tasks in seconds, as far as they are recorded."""

    devices: Mapping[str, tuple[str, ...]]
    starts: Mapping[str, Fraction]


def recorded_plan(document: dict[str, Any], run: RecordedRun) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the plan of a run on the problem of a document, and notes about what was not recorded or does not fit.

    A task without a recorded start follows its producers. On a machine of several cores, tasks take in the order of
    their starts the core that became free last, or, if all are busy, the one that becomes free first. Recorded times
    that break the problem, because tasks overlap or data is late, are replaced by simulated ones in the same order.

    Raises
    ------
    UsageError
        If the simulated plan breaks the problem, too: the memory of a device does not suffice.
    """
    problem = compile_spec(document)
    schedule, notes = _recorded(problem, run), []
    if missing := problem.n_tasks - len(run.starts):
        notes.append(f"{counted(missing, 'task')} without a recorded start, placed after their producers")
    broken = verify(problem, schedule).violations
    if broken or missing:
        schedule = retime(problem, schedule)
        why = "not all starts are recorded"
        if broken and not missing:
            why = f"the recorded starts break {counted(len(broken), 'rule')} of the problem ({broken[0].message})"
        notes.append(f"{why}; the plan has the recorded order with simulated times")
    if broken := verify(problem, schedule).violations:
        raise UsageError(
            f"the recorded run is not a plan of this problem: {visible(broken[0].message, 400)}; import without "
            "--plan-out, or with --devices of your own"
        )
    notes.append(f"the plan of the recorded run takes {time_text(makespan(problem, schedule), problem.resolution)}")
    return plan_document(problem, schedule), tuple(notes)


def _recorded(problem: Problem, run: RecordedRun) -> Schedule:
    """The recorded starts, each task on a core of its machine."""
    n, index = problem.n_tasks, {name: d for d, name in enumerate(problem.device_names)}
    devices = [[index[name] for name in run.devices[task]] for task in problem.task_names]
    ticks = [int(problem.duration[i, devices[i][0]]) for i in range(n)]
    first = min(run.starts.values(), default=Fraction(0))
    start = [0] * n
    before: list[list[int]] = [[] for _ in range(n)]
    for source, target in zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True):
        before[target].append(source)
    order = problem.order.tolist()
    for i in order:
        recorded = run.starts.get(problem.task_names[i])
        if recorded is None:
            start[i] = max((start[j] + ticks[j] for j in before[i]), default=0)
        else:
            start[i] = round((recorded - first) / problem.resolution)
    rank = {i: place for place, i in enumerate(order)}
    free, device = [0] * problem.n_devices, [0] * n
    for i in sorted(range(n), key=lambda i: (start[i], rank[i])):
        idle = [d for d in devices[i] if free[d] <= start[i]]
        device[i] = max(idle, key=lambda d: (free[d], -d)) if idle else min(devices[i], key=lambda d: (free[d], d))
        free[device[i]] = max(free[device[i]], start[i]) + ticks[i]
    return Schedule(np.array(device, dtype=np.int64), np.array(start, dtype=np.int64))
