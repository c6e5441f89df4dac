"""What a loop that fills a timeline of the engine returns, and the schedule of a finished timeline."""

from __future__ import annotations

import numpy as np

from placeopt import engine
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, Transfers, edge_transfers

DONE = -1
"""Result of a loop that placed all tasks; otherwise it returns the task that no device can take."""


def schedule_of(problem: Problem, line: engine.Timeline) -> Schedule:
    """Return the schedule of a finished timeline."""
    device, start = line.device.copy(), line.start.copy()
    if not problem.contends:
        return Schedule(device, start)
    moved = np.flatnonzero(line.moves >= 0)
    edge = edge_transfers(problem, device)[moved]
    return Schedule(device, start, Transfers(edge, line.moves[moved]))
