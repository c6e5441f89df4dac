"""Addresses in a plan: the buffers of each device in a schedule, and offsets for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from placeopt.allocation.problem import Buffers, build_buffers
from placeopt.allocation.solving import Allocation, allocate
from placeopt.errors import UsageError
from placeopt.model.buffers import live_buffers, shared_outputs
from placeopt.model.memory import peak_memory
from placeopt.model.modes import memory_capacity
from placeopt.model.problem import Problem
from placeopt.model.schedule import BUFFERS, Offsets, Schedule, check_schedule


def plan_buffers(
    problem: Problem, schedule: Schedule, device: int, *, alignment: int | None = None, sharing: bool = True
) -> Buffers:
    """The buffers of a device, with the lifetimes of `memory_model: peak` in ticks.

    Resident bytes are live from 0 to the end of the schedule, scratch while its task runs, and an output from the start
    of its task until its last consumer has it. Buffers of 0 bytes, and those that are live for no tick, are left out.
    With `sharing`, outputs that can share bytes, or do so in a schedule with offsets, are one buffer. Reserved regions
    are buffers with given offsets. The alignment is in bytes; by default, that of the problem, or 1.

    Raises
    ------
    UsageError
        If the schedule does not belong to the problem, is one of a pipeline, or there is no such device.
    """
    check_schedule("plan_buffers", problem, schedule)
    plan = _Plan(problem, schedule, alignment)
    if isinstance(device, bool) or not isinstance(device, int) or not 0 <= device < problem.n_devices:
        raise UsageError(f"device is {device!r}; expected a number from 0 to {problem.n_devices - 1}")
    return plan.buffers(device, sharing)


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
    If outputs that share bytes do not fit, half of the time is for buffers that share none.
    """
    check_schedule("allocate_plan", problem, schedule)
    plan = _Plan(problem, replace(schedule, offsets=None), alignment)
    used = np.unique(plan.rows.device).tolist()
    found = {}
    for d in used:
        capacity, ways = memory_capacity(problem, d), [True, False] if plan.shares(d) else [True]
        for sharing in ways:
            found[d] = allocate(
                plan.buffers(d, sharing), capacity=capacity, time_limit=time_limit / len(used) / len(ways), seed=seed,
                workers=workers, should_stop=should_stop,
            )  # fmt: skip
            if found[d].offset is not None:
                break
            if not sharing:  # other outputs could share bytes than those tried, so only what is counted is needed
                found[d] = replace(found[d], bound=plan.counted(d), bound_source="live")
    return found


def place_schedule(
    problem: Problem, schedule: Schedule, **options: Any
) -> tuple[Schedule | None, dict[int, Allocation]]:
    """The schedule with offsets, None if some were not found; and the result of `allocate_plan` with the options."""
    found = allocate_plan(problem, schedule, **options)
    if any(each.offset is None for each in found.values()):
        return None, found
    schedule = replace(schedule, offsets=None)
    return replace(schedule, offsets=_Plan(problem, schedule).offsets(found)), found


class _Plan:
    """The buffers of a schedule."""

    def __init__(self, problem: Problem, schedule: Schedule, alignment: int | None = None) -> None:
        if problem.pipeline is not None:
            raise UsageError("lifetimes of buffers of a pipeline depend on its runs; expected a problem without one")
        self.problem, self.schedule = problem, schedule
        self.alignment = problem.alignment or 1 if alignment is None else alignment
        self.rows, self.shared = live_buffers(problem, schedule), shared_outputs(problem, schedule)
        self.rank = np.argsort(problem.order)

    def shares(self, d: int) -> bool:
        """Whether outputs on a device can share bytes."""
        return any(self.schedule.device[task] == d for task in self.shared)

    def counted(self, d: int) -> int:
        """The bytes that a device needs at least, whichever outputs share bytes."""
        reserved = 0 if self.problem.layout is None else int(self.problem.layout.total[d])
        return int(peak_memory(self.problem, self.schedule)[d]) + reserved

    def buffers(self, d: int, sharing: bool) -> Buffers:
        """The buffers of a device, those that share bytes as one; see `plan_buffers`."""
        rows, upper = self.rows.part(self.rows.device == d), {}
        names = [self._name(*each) for each in zip(rows.task.tolist(), rows.kind.tolist(), strict=True)]
        if sharing and self.shared:
            upper = dict(zip(names, rows.upper.tolist(), strict=True))
            for task in sorted(self.shared, key=lambda task: -self.rank[task]):
                if self.schedule.device[task] == d:
                    base = self._name(self.shared[task][0])
                    upper[base] = max(upper[base], upper.pop(self._name(task)))
            kept = np.array([k for k, name in enumerate(names) if name in upper], dtype=np.int64)
            rows, names = rows.part(kept), [names[k] for k in kept.tolist()]
        regions = [] if self.problem.layout is None else self.problem.layout.reserved(d)
        last = int(self.rows.upper.max(initial=1))
        return build_buffers(
            lower=[*rows.lower.tolist(), *(0 for _ in regions)],
            upper=[*(upper.get(name, end) for name, end in zip(names, rows.upper.tolist(), strict=True)),
                   *(last for _ in regions)],
            size=[*rows.size.tolist(), *(end - begin for begin, end in regions)],
            alignment=[self.alignment] * len(names) + [1] * len(regions),
            fixed=[None] * len(names) + [begin for begin, _ in regions],
            buffer_names=[*names, *(f"reserved [{begin}, {end})" for begin, end in regions)],
        )  # fmt: skip

    def offsets(self, found: Mapping[int, Allocation]) -> Offsets:
        """The offsets by task that `allocate_plan` found; every device has some."""
        offsets = {kind: np.zeros(self.problem.n_tasks, dtype=np.int64) for kind in BUFFERS}
        at = {
            name: offset
            for each in found.values()
            if each.offset is not None
            for name, offset in zip(each.problem.names, each.offset.tolist(), strict=True)
        }
        for k in np.argsort(
            self.rank[self.rows.task], kind="stable"
        ).tolist():  # bases come before what shares their bytes
            task, kind = int(self.rows.task[k]), int(self.rows.kind[k])
            if (name := self._name(task, kind)) not in at:
                base, shift = self.shared[task]
                at[name] = at[self._name(base)] + shift
            offsets[BUFFERS[kind]][task] = at[name]
        return Offsets(**offsets)

    def _name(self, task: int, kind: int = BUFFERS.index("output")) -> str:
        return f"{self.problem.task_names[task]}:{BUFFERS[kind]}"
