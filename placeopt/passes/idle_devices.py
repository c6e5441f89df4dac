"""Leaves out devices that no schedule needs because they are like others, or that nothing may run on.

Exact under every objective, contention and memory model, with release times and deadlines. **Proof.** Devices of
one class are interchangeable: swapping them in a schedule keeps feasibility and objective (`Problem.device_class`).
If k groups may run on a class, a schedule uses at most k of its devices, and swaps make these the first k. A device
without tasks adds nothing to any metric: no load, no energy, no part of a capacity. So the first min(k, size)
devices of every class do. ∎

O(g m).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.passes.protocol import Reduction
from placeopt.passes.rebuilding import rebuilt


class IdleDevices:
    """Of a class of devices, keeps as many as there are groups that may run there."""

    name: ClassVar[str] = "idle-devices"
    exact: ClassVar[bool] = True
    summary: ClassVar[str] = "leaves out devices beyond the number of groups that may run on their class"
    citation: ClassVar[str] = ""

    def apply(self, problem: Problem) -> Reduction | None:
        """The problem with fewer devices."""
        label = problem.device_class
        rank = np.empty(problem.n_devices, dtype=np.int64)  # of each device within its class
        for c in range(int(label.max(initial=-1)) + 1):
            members = np.flatnonzero(label == c)
            rank[members] = np.arange(len(members))
        kept = np.flatnonzero(rank < problem.group_feasible().sum(axis=0))
        if len(kept) == problem.n_devices or len(kept) == 0:  # none at all: infeasible, for others to tell
            return None
        reduced, _ = rebuilt(problem, devices=kept)

        def restore(schedule: Schedule) -> Schedule:
            return Schedule(kept[schedule.device], schedule.start, schedule.transfers)

        def project(schedule: Schedule) -> Schedule | None:
            device = _relabelled(schedule.device, label, kept)
            return None if device is None else Schedule(device, schedule.start, schedule.transfers)

        count = problem.n_devices - len(kept)
        return Reduction(reduced, restore, project, f"{count} devices that can stay idle left out")


def _relabelled(device: Int, label: Int, kept: Int) -> Int | None:
    """The placement on the devices kept, those of a class in order of first use; None if they do not suffice."""
    place = {d: k for k, d in enumerate(kept.tolist())}
    used, first = np.unique(device, return_index=True)
    if not all(d in place for d in used.tolist()):
        free = {c: iter(kept[label[kept] == c].tolist()) for c in np.unique(label).tolist()}
        moved = {d: next(free[int(label[d])], None) for d in used[np.argsort(first)].tolist()}
        if None in moved.values():
            return None
        place = {d: place[target] for d, target in moved.items() if target is not None}
    table = np.zeros(len(label), dtype=np.int64)
    table[used] = [place[d] for d in used.tolist()]
    return table[device]
