"""The buffers of a schedule under `memory_model: peak`: their lifetimes and sizes, and how high their offsets reach."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from placeopt.model.arrays import Bool, Int, by_index
from placeopt.model.memory import freed_at
from placeopt.model.problem import Problem
from placeopt.model.schedule import BUFFERS, Schedule, arrivals, durations


class LiveBuffers(NamedTuple):
    """Buffers of more than 0 bytes that are live at some tick, one entry each.

    `task`, `device`, and `kind`, the place in BUFFERS; the lifetime [`lower`, `upper`) in ticks; `size` in bytes.
    """

    task: Int
    device: Int
    kind: Int
    lower: Int
    upper: Int
    size: Int

    def part(self, which: Bool | Int) -> LiveBuffers:
        """Return the entries that a mask or an index array selects."""
        return LiveBuffers(*(column[which] for column in self))

    def low(self, schedule: Schedule) -> Int:
        """Return the offsets in bytes of a schedule that has some."""
        assert schedule.offsets is not None
        return np.stack([getattr(schedule.offsets, kind) for kind in BUFFERS])[self.kind, self.task]


def live_buffers(problem: Problem, schedule: Schedule) -> LiveBuffers:
    """Return the buffers of all devices.

    Resident bytes are live from 0 to the end of the schedule, scratch while its task runs, and an output from the start
    of its task until its last consumer has it.
    """
    start, freed, n = schedule.start, freed_at(problem, schedule), problem.n_tasks
    last = max(int(freed.max(initial=0)), 1)
    lives = {
        "resident": (np.zeros_like(start), np.full_like(start, last)),
        "output": (start, freed),
        "scratch": (start, start + durations(problem, schedule.device)),
    }
    lower, upper = (np.concatenate([lives[kind][side] for kind in BUFFERS]) for side in (0, 1))
    size = np.concatenate([problem.buffer_bytes(kind) for kind in BUFFERS])
    task, kinds = np.tile(np.arange(n), len(BUFFERS)), np.repeat(np.arange(len(BUFFERS)), n)
    found = LiveBuffers(task, schedule.device[task], kinds, lower, upper, size)
    return found.part((size > 0) & (upper > lower))


def memory_heights(problem: Problem, schedule: Schedule) -> Int | None:
    """(m,) largest end of a live buffer on each device, in bytes; None without offsets."""
    if schedule.offsets is None:
        return None
    found = live_buffers(problem, schedule)
    return by_index(np.maximum, found.device, found.low(schedule) + found.size, problem.n_devices)


def shared_outputs(problem: Problem, schedule: Schedule) -> dict[int, tuple[int, int]]:
    """Return which outputs can share bytes in a schedule (`placeopt.model.layout`): by task the base and first byte.

    Of a schedule with offsets, those that share bytes there. Views share first, then outputs that overwrite, in
    topological order and as far as no task needs what they would overwrite. O(k c) for k rows and c outputs that share
    bytes.
    """
    found: dict[int, tuple[int, int]] = {}
    if problem.layout is None:
        return found
    device, start, freed = schedule.device.tolist(), schedule.start.tolist(), freed_at(problem, schedule).tolist()
    end = (schedule.start + durations(problem, schedule.device)).tolist()
    rank, out = np.argsort(problem.order).tolist(), problem.out_start.tolist()
    target, until = problem.edge_target.tolist(), _until(problem, schedule).tolist()

    def needed(task: int, without: int) -> Any:
        """The first tick at which no consumer but one needs an output."""
        edges = [e for e in range(out[task], out[task + 1]) if target[e] != without]
        return max([end[task], *(until[e] for e in edges)])

    offset = None if schedule.offsets is None else schedule.offsets.output.tolist()
    storage: dict[int, list[int]] = {}  # the outputs that share bytes with one
    overwriting: set[int] = set()
    for task, base, at, view in sorted(problem.layout.rows(), key=lambda row: (not row[3], rank[row[0]], row[1])):
        sizeless = not problem.layout.output[task] or freed[task] <= start[task]
        apart = offset is not None and offset[task] != offset[base] + at
        if task in found or sizeless or apart or device[task] != device[base] or freed[base] <= start[task]:
            continue
        above, below = storage.get(base, [base]), storage.get(task, [task])
        ancestors, last = {base}, base
        while last in found:
            last = found[last][0]
            ancestors.add(last)
        writers = overwriting if view else overwriting | {task}
        clash = any(
            needed(other, writer) > start[writer]
            for some, rest in ((below, above), ([each for each in above if each not in ancestors], below))
            for writer in some
            if writer in writers
            for other in rest
        )
        if not clash:
            found[task], overwriting = (base, at), writers
            together = [*above, *below]
            storage.update((each, together) for each in together)
    return found


def _until(problem: Problem, schedule: Schedule) -> Int:
    """(e,) the tick until which an edge needs its data: its consumer ends, or on another device, has the data."""
    end, target = schedule.start + durations(problem, schedule.device), problem.edge_target
    same = schedule.device[problem.edge_source] == schedule.device[target]
    return np.where(same, end[target], arrivals(problem, schedule))
