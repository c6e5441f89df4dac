"""A schedule as plain numbers, from which the value of every column of a programme follows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.model.memory import freed_at, used_memory
from placeopt.model.objective import METRICS
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, arrivals, durations, edge_ticks


@dataclass(frozen=True, slots=True)
class View:
    """What a schedule says, in ticks and bytes.

    Attributes
    ----------
    home
        Per colocation group: its device.
    start, end, release
        Per task: the ticks at which it starts, ends, and lets go of its output.
    sent
        Per edge: the tick at which its data leaves, or its producer's end where it stays.
    used
        Per device: bytes that count against its capacity.
    metrics
        The value of each metric of the objective.
    """

    home: list[int]
    start: list[int]
    end: list[int]
    release: list[int]
    sent: list[int]
    used: list[int]
    metrics: dict[str, int]


def view(problem: Problem, schedule: Schedule) -> View:
    """The numbers of a valid schedule."""
    home = np.zeros(problem.n_groups, dtype=np.int64)
    home[problem.group] = schedule.device
    return View(
        home=home.tolist(),
        start=schedule.start.tolist(),
        end=(schedule.start + durations(problem, schedule.device)).tolist(),
        release=freed_at(problem, schedule).tolist(),
        sent=(arrivals(problem, schedule) - edge_ticks(problem, schedule.device)).tolist(),
        used=used_memory(problem, schedule).tolist(),
        metrics={metric: METRICS[metric](problem, schedule) for metric in problem.objective.metrics},
    )
