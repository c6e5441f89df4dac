"""Settings and loops that several heuristics share: the queue of pairs of a ready task and a device, and ready tasks.

The loops are in `placeopt/engine/native`: `pairs.hpp` and `neediest.cpp`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.protocol import Settings

from .._constructive.construction import InsertionSettings, PartialSchedule, filled
from .._constructive.groups import Groups


class ReadySettings(InsertionSettings):
    """Settings of heuristics for independent tasks, which here compete when they are ready."""

    batches: bool = True
    """Whether all ready tasks are placed before the tasks that become ready meanwhile. false: a task competes as soon
    as its predecessors are placed."""


class StartSettings(Settings):
    """Meaning of the earliest start on heterogeneous devices."""

    detour: bool = True
    """Whether a start counts as later by the ticks that the task takes longer there than on its fastest device. false:
    as published, for identical devices, on which it makes no difference."""


class TieSettings(StartSettings):
    """Meaning of the earliest start, and the order of tasks that tie."""

    ties: Literal["index", "topological"] = "index"
    """Which of several tasks with equal starts comes first. index: the one with the lowest index. topological: the
    first in topological order, breadth first, as in Baechi's released code."""


def tie_order(problem: Problem, settings: TieSettings) -> Int:
    """Return the tasks (n,) in the order that breaks ties."""
    return problem.order if settings.ties == "topological" else np.arange(problem.n_tasks)


def detours(problem: Problem, settings: StartSettings) -> Int:
    """Return the ticks (n, m) that count as added to the start of each task on each device.

    Classical algorithms choose the earliest start, on identical devices. On heterogeneous devices, the device that is
    free first would get a task that another one ends long before. So the start on a slower device counts as later, by
    the difference between the task's duration there and its least duration.
    """
    if not settings.detour:
        return np.zeros_like(problem.duration)
    least = np.where(problem.feasible, problem.duration, UNLIMITED).min(axis=1, initial=UNLIMITED)
    return np.where(problem.feasible, problem.duration - least[:, None], 0)


def schedule_pairs(
    problem: Problem,
    groups: Groups,
    sequence: Int,
    work: Int,
    *,
    batches: bool = False,
    insertion: bool = False,
    closing: bool = False,
) -> PartialSchedule:
    """Schedule the pair with the least start plus `work` (n, m) until none is left; ties go by `sequence` (n,).

    With `insertion`, `work` must be the durations.
    """
    return filled(problem, groups, engine.place_pairs, sequence, work, batches, closing, insertion=insertion)


def schedule_neediest(problem: Problem, groups: Groups, settings: ReadySettings, *, by_gap: bool) -> PartialSchedule:
    """Schedule the ready task with the latest earliest end, or the widest gap to the second, where it ends first."""
    return filled(problem, groups, engine.place_neediest, by_gap, settings.batches, insertion=settings.insertion)
