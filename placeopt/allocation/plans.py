"""Addresses in a plan: the buffers of each device in a schedule, and offsets for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from placeopt.allocation.problem import Buffers, build_buffers
from placeopt.allocation.solving import Allocation, allocate
from placeopt.errors import UsageError
from placeopt.model.arrays import Int
from placeopt.model.memory import freed_at, memory_capacity
from placeopt.model.problem import Problem
from placeopt.model.schedule import BUFFERS, Offsets, Schedule, check_schedule


def plan_buffers(problem: Problem, schedule: Schedule, device: int, *, alignment: int | None = None) -> Buffers:
    """The buffers of a device, with the lifetimes of `memory_model: peak` in ticks.

    Resident bytes are live from 0 to the end of the schedule, scratch while its task runs, and an output from the start
    of its task until its last consumer has it. Buffers of 0 bytes, and those that are live for no tick, are left out.
    The alignment is in bytes; by default, that of the problem, or 1.

    Raises
    ------
    UsageError
        If the schedule does not belong to the problem, is one of a pipeline, or there is no such device.
    """
    check_schedule("plan_buffers", problem, schedule)
    if problem.pipeline is not None:
        raise UsageError("the lifetimes of buffers of a pipeline depend on its runs; expected a problem without one")
    if isinstance(device, bool) or not isinstance(device, int) or not 0 <= device < problem.n_devices:
        raise UsageError(f"device is {device!r}; expected a number from 0 to {problem.n_devices - 1}")
    rows = _rows(problem, schedule, device)
    step = problem.alignment or 1 if alignment is None else alignment
    return build_buffers(
        lower=rows.lower, upper=rows.upper, size=rows.size, alignment=np.full(len(rows.task), step),
        buffer_names=[
            f"{problem.task_names[task]}:{BUFFERS[kind]}"
            for task, kind in zip(rows.task.tolist(), rows.kind.tolist(), strict=True)
        ],
    )  # fmt: skip


def allocate_plan(
    problem: Problem,
    schedule: Schedule,
    *,
    alignment: int | None = None,
    time_limit: float = 10.0,
    seed: int = 0,
    workers: int | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> dict[int, Allocation]:
    """Offsets for the buffers of each device that has some, within its memory; see `plan_buffers` and `allocate`.

    The devices share the time equally. Without limited memory, a device gets offsets of the least height that is found.
    """
    buffers = {d: plan_buffers(problem, schedule, d, alignment=alignment) for d in range(problem.n_devices)}
    used = {d: each for d, each in buffers.items() if len(each)}
    return {
        d: allocate(
            each, capacity=memory_capacity(problem, d), time_limit=time_limit / len(used), seed=seed, workers=workers,
            should_stop=should_stop,
        )
        for d, each in used.items()
    }  # fmt: skip


def place_schedule(
    problem: Problem, schedule: Schedule, **options: Any
) -> tuple[Schedule | None, dict[int, Allocation]]:
    """The schedule with offsets, None if some were not found; and the result of `allocate_plan` with the options."""
    found = allocate_plan(problem, schedule, **options)
    if any(each.offset is None for each in found.values()):
        return None, found
    return replace(schedule, offsets=_offsets(problem, schedule, found)), found


def _offsets(problem: Problem, schedule: Schedule, found: Mapping[int, Allocation]) -> Offsets:
    offsets = {kind: np.zeros(problem.n_tasks, dtype=np.int64) for kind in BUFFERS}
    for d, each in found.items():
        assert each.offset is not None
        rows = _rows(problem, schedule, d)
        for place, kind in enumerate(BUFFERS):
            mine = rows.kind == place
            offsets[kind][rows.task[mine]] = each.offset[mine]
    return Offsets(**offsets)


class _Rows(NamedTuple):
    """The buffers of a device, one entry each: the task, the place in BUFFERS, the lifetime in ticks, the bytes."""

    task: Int
    kind: Int
    lower: Int
    upper: Int
    size: Int


def _rows(problem: Problem, schedule: Schedule, device: int) -> _Rows:
    tasks = np.flatnonzero(schedule.device == device)
    start = schedule.start[tasks]
    end = start + problem.duration[tasks, device]
    freed = freed_at(problem, schedule)
    last = max(int(freed.max(initial=0)), 1)
    lives = {
        "resident": (np.zeros_like(start), np.full_like(start, last)),
        "output": (start, freed[tasks]),
        "scratch": (start, end),
    }
    lower, upper = (np.concatenate([lives[kind][side] for kind in BUFFERS]) for side in (0, 1))
    size = np.concatenate([getattr(problem, kind)[tasks] for kind in BUFFERS])
    kept = (size > 0) & (upper > lower)
    kinds = np.repeat(np.arange(len(BUFFERS)), len(tasks))
    return _Rows(*(column[kept] for column in (np.tile(tasks, len(BUFFERS)), kinds, lower, upper, size)))
