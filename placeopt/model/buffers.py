"""The buffers of a schedule under `memory_model: peak`: their lifetimes and sizes, and how high their offsets reach."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.memory import freed_at
from placeopt.model.problem import Problem
from placeopt.model.schedule import BUFFERS, Schedule, durations


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

    def part(self, which: Int) -> LiveBuffers:
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
    size = np.concatenate([getattr(problem, kind) for kind in BUFFERS])
    task, kinds = np.tile(np.arange(n), len(BUFFERS)), np.repeat(np.arange(len(BUFFERS)), n)
    found = LiveBuffers(task, schedule.device[task], kinds, lower, upper, size)
    return found.part((size > 0) & (upper > lower))


def memory_heights(problem: Problem, schedule: Schedule) -> Int | None:
    """(m,) largest end of a live buffer on each device, in bytes; None without offsets."""
    if schedule.offsets is None:
        return None
    found, height = live_buffers(problem, schedule), np.zeros(problem.n_devices, dtype=np.int64)
    np.maximum.at(height, found.device, found.low(schedule) + found.size)
    return height
