"""Placement without colocation, after which each colocation group moves to one device: Baechi's post-adjustment.

B. Jeon et al. (Baechi), SoCC 2020, doi:10.1145/3419111.3421302, section 3.1, reports it as a first attempt: the
heuristic ignores colocation, then each group moves to

    compute    the device of its operator with the longest duration
    memory     the device of its operator with the most memory
    majority   the device of most of its operators

The paper found step times up to 406% longer than an expert's. By default the heuristics place a whole group with its
first operator, which is the paper's *co-adjustment*.

Departures from the paper:

- The paper does not state the order of groups, ties, and what happens if a device lacks memory. Here groups move in the
  order of their indices, and ties go to the lower device. If a device lacks memory, the next best one by the rule
  follows, at last the devices without operators of the group. The released code then fails, or ignores memory.
- Tasks are then scheduled by the rule of the heuristic on these devices; TensorFlow executed the paper's placements.
- If no device has room for a group, the heuristic places it as without this setting. By live memory, room counts what
  groups hold for the whole run. If the heuristic then finds no schedule, it runs without this setting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.protocol import Settings

from .construction import Build, Construction, construct_with_repair
from .groups import Groups, with_homes

Rule = Literal["compute", "memory", "majority"]


class AdjustSettings(Settings):
    """Settings of heuristics that Baechi also runs without colocation."""

    adjust: Literal[Rule, "no"] = "no"
    """Whether the heuristic ignores colocation and then moves each group to one device: that of its longest operator
    (compute), of its operator with the most memory (memory), or of most of its operators (majority). no: the first
    operator of a group decides."""


class RoomSettings(AdjustSettings):
    """Settings of heuristics whose devices Baechi closes or reserves memory on."""

    closing: bool = False
    """Whether a device is closed when it lacks memory for a task that would start there next, as section 2.4 of Baechi
    says: it takes no further colocation groups. false: it stays open to groups that still fit, as in section 2.3 and in
    the released code."""
    reserve: bool = False
    """Whether a colocation group reserves memory from its first task to its last under the memory model peak, as in the
    reserve-memory mode of Baechi's released code: its resident bytes, its largest output and its largest scratch.
    false: it holds what its tasks hold at each time. Under the memory model sum it holds everything."""


def construct_adjusted(
    problem: Problem, build_for: Callable[[Problem], Build], adjust: Literal[Rule, "no"], reserve: bool = False
) -> Construction:
    """Run a heuristic with repair; with a rule, first without colocation, then with each group on its device.

    `build_for` prepares the heuristic for the problem, and for the problem without colocation; `reserve` is as in
    `construct_with_repair`.
    """
    build = build_for(problem)
    if adjust != "no" and problem.n_groups < problem.n_tasks:
        loose = replace(problem, group=np.arange(problem.n_tasks))
        free = construct_with_repair(loose, build_for(loose), reserve)
        if free.schedule is not None:
            device = free.schedule.device
            moved = construct_with_repair(
                problem,
                lambda groups: build(with_homes(groups, adjusted(problem, groups, device, adjust))),
                reserve,
            )
            if moved.schedule is not None:
                return moved
    return construct_with_repair(problem, build, reserve)


def adjusted(problem: Problem, groups: Groups, device: Int, rule: Rule) -> Int:
    """Return the device (g,) of each group after the adjustment of a placement (n,); -1 if no device has room.

    O((n + g) m), plus the time for separated groups.
    """
    g, m = problem.n_groups, problem.n_devices
    own = problem.resident if groups.live.on else problem.memory
    weight = {
        "compute": problem.duration[np.arange(problem.n_tasks), device],
        "memory": problem.memory,
        "majority": np.ones(problem.n_tasks, dtype=np.int64),
    }[rule]
    worth = np.full((g, m), -1, dtype=np.int64)
    # (g, m) bytes of each group's operators there
    there = np.zeros((g, m), dtype=np.int64)
    np.add.at(there, (problem.group, device), own)
    if rule == "majority":
        np.add.at(worth, (problem.group, device), weight)
    else:
        np.maximum.at(worth, (problem.group, device), weight)
    room = groups.room - there[groups.home < 0].sum(axis=0)
    home = groups.home.copy()
    for k in np.flatnonzero(groups.home < 0).tolist():
        apart = home[groups.apart[groups.apart_start[k] : groups.apart_start[k + 1]]]
        fits = groups.feasible[k] & (groups.memory[k] - there[k] <= room)
        fits[apart[apart >= 0]] = False
        if fits.any():
            home[k] = int(np.argmax(np.where(fits, worth[k], -2)))
            room += there[k]
            room[home[k]] -= groups.memory[k]
    return home
