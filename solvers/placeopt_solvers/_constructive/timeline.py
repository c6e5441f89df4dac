"""What repair and schedules read of a timeline of the engine."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, Transfers, edge_transfers

DONE = -1
"""Result of a loop that placed all tasks; otherwise it returns the task that no device can take."""


class Line(Protocol):
    """What repair and schedules read of a timeline: this one, or `placeopt.engine.Timeline`."""

    @property
    def home(self) -> Int: ...
    @property
    def room(self) -> Int: ...
    @property
    def trees(self) -> Int: ...
    @property
    def device(self) -> Int: ...
    @property
    def start(self) -> Int: ...
    @property
    def moves(self) -> Int: ...


def schedule_of(problem: Problem, line: Line) -> Schedule:
    """Return the schedule of a finished timeline."""
    device, start = line.device.copy(), line.start.copy()
    if not problem.contends:
        return Schedule(device, start)
    moved = np.flatnonzero(line.moves >= 0)
    edge = edge_transfers(problem, device)[moved]
    return Schedule(device, start, Transfers(edge, line.moves[moved]))
