"""Addresses in a plan: the buffers of each device in a schedule, and offsets for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from placeopt.allocation.problem import Buffers, build_buffers
from placeopt.allocation.solving import Allocation, allocate
from placeopt.errors import UsageError
from placeopt.model.buffers import live_buffers
from placeopt.model.memory import memory_capacity
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
    rows = live_buffers(problem, schedule)
    rows = rows.part(rows.device == device)
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
    buffers = live_buffers(problem, schedule)
    for d, each in found.items():
        assert each.offset is not None
        rows = buffers.part(buffers.device == d)
        for place, kind in enumerate(BUFFERS):
            mine = rows.kind == place
            offsets[kind][rows.task[mine]] = each.offset[mine]
    return Offsets(**offsets)
