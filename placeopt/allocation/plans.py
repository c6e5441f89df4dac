"""Addresses in a plan: the buffers of each device in a schedule, and offsets for them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placeopt.allocation.problem import Buffers, build_buffers
from placeopt.allocation.solving import Allocation, allocate
from placeopt.errors import UsageError
from placeopt.model.memory import freed_at, memory_capacity
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, check_schedule


def plan_buffers(problem: Problem, schedule: Schedule, device: int, *, alignment: int = 1) -> Buffers:
    """The buffers of a device, with the lifetimes of `memory_model: peak` in ticks.

    Resident bytes are live from 0 to the end of the schedule, scratch while its task runs, and an output from the start
    of its task until its last consumer has it. Buffers of 0 bytes, and those that are live for no tick, are left out.

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
    tasks = np.flatnonzero(schedule.device == device)
    start = schedule.start[tasks]
    end = start + problem.duration[tasks, device]
    freed = freed_at(problem, schedule)
    last = max(int(freed.max(initial=0)), 1)
    kinds = (
        ("resident", np.zeros_like(start), np.full_like(start, last), problem.resident[tasks]),
        ("scratch", start, end, problem.scratch[tasks]),
        ("output", start, freed[tasks], problem.output[tasks]),
    )
    lower, upper, size = (np.concatenate([kind[axis] for kind in kinds]) for axis in (1, 2, 3))
    names = [f"{problem.task_names[task]}:{kind[0]}" for kind in kinds for task in tasks.tolist()]
    kept = np.flatnonzero((size > 0) & (upper > lower))
    return build_buffers(
        lower=lower[kept], upper=upper[kept], size=size[kept], alignment=np.full(len(kept), alignment),
        buffer_names=[names[k] for k in kept.tolist()],
    )  # fmt: skip


def allocate_plan(
    problem: Problem,
    schedule: Schedule,
    *,
    alignment: int = 1,
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
