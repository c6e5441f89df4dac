"""Checks of the whole problem: release times against deadlines, and totals against 64 bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.io.compiler.durations import DurationTable
from placeopt.io.compiler.edges import EdgeArrays
from placeopt.io.compiler.issues import Issues
from placeopt.io.compiler.network import DeviceIndex, LinkArrays
from placeopt.io.compiler.scales import LARGEST, Scales
from placeopt.io.spec import TaskSpec
from placeopt.model.arrays import Int
from placeopt.model.problem import COARSE, UNLIMITED
from placeopt.model.units import time_text


def check_windows(
    tasks: dict[str, TaskSpec],
    release: Int,
    deadline: Int,
    table: DurationTable | None,
    index: DeviceIndex,
    scales: Scales,
    issues: Issues,
) -> None:
    """Report deadlines before the release time, and those that even the fastest device misses.

    Without a table, tasks are assumed to take no time.
    """
    if not scales.sound or (deadline == UNLIMITED).all():
        return
    fastest = np.zeros(len(tasks), dtype=np.int64)
    if table is not None:
        some = table.feasible.any(axis=1)
        fastest[some] = np.where(table.feasible, table.duration, UNLIMITED).min(axis=1, initial=UNLIMITED)[some]
    names = list(tasks)
    # UNLIMITED exceeds every sum of two times in range.
    for row in np.flatnonzero(release + fastest > deadline).tolist():
        name, task = names[row], tasks[names[row]]
        path = ("tasks", name, "deadline")
        stated, released = issues.written(path), issues.written(("tasks", name, "release"))
        if issues.touch(*path) or issues.touch("tasks", name, "release"):
            continue
        if task.release is not None and task.deadline is not None and release[row] > deadline[row]:
            if scales.exact_ticks(task.release) > scales.exact_ticks(task.deadline):
                issues.add(f"{stated} is before the release time of the task, {released}", path)
            else:
                between = f"the release time {released} and the deadline {stated}"
                issues.add(f"no whole tick lies between {between}; use a finer resolution", path)
        elif table is not None and not issues.touch("tasks", name):
            device = index.devices[int(np.where(table.feasible[row], table.duration[row], UNLIMITED).argmin())].name
            takes = f"takes {time_text(int(fastest[row]), scales.resolution)} at its fastest (on {device})"
            excess = time_text(int(release[row] + fastest[row] - deadline[row]), scales.resolution)
            after = f", released at {released}," if release[row] else ""
            rounding = scales.rounding
            tick = time_text(1, scales.resolution)
            coarse = f"; times are rounded to the {tick} tick, a finer resolution may help"
            hint = coarse if rounding is not None and rounding.share > COARSE else ""
            issues.add(f"{stated} cannot be met: the task{after} {takes}, {excess} too long{hint}", path)


def check_ranges(
    duration: Int,
    release: Int,
    amounts: Int,
    edges: EdgeArrays,
    links: LinkArrays,
    power: Sequence[tuple[int, int]],
    issues: Issues,
) -> None:
    """Report the first total of times, memory, payloads or energy that is out of range.

    `duration` (n, m) ticks, 0 where not feasible; `release` (n,) ticks; `amounts` (n,) bytes of each task; `power`
    (num, den) of each device.
    """

    def check(what: str, total: float, unit: str, hint: str, section: str) -> None:
        if total > LARGEST and not len(issues):
            issues.add(f"{what} to {total:.2g} {unit}, more than 2^60; {hint}", (section,))

    moved = _total(edges.payload)
    slowest = float((links.byte_ticks_num / links.byte_ticks_den).max(initial=0))
    transfers = moved * slowest + len(edges.payload) * float(1 + links.latency.max(initial=0))
    # All tasks and transfers one after another from the last release on: only unnecessary waiting takes longer.
    last = float(release.max(initial=0))
    times = last + _total(duration.max(axis=1, initial=0)) + transfers
    what = "the last release time, all durations and transfers" if last else "all durations and transfers"
    check(f"{what} add up", times, "ticks", "use a coarser resolution", "resolution")
    check("the memory of all tasks adds up", _total(amounts), "bytes", "expected less", "tasks")
    check("all payloads add up", moved, "bytes", "expected less", "tasks")

    hungriest = max((num / den for num, den in power), default=0)
    dearest = float((links.byte_energy_num / links.byte_energy_den).max(initial=0))
    energy = _total(duration.max(axis=1, initial=0)) * hungriest + len(duration) + moved * dearest + len(edges.payload)
    check("the energy of all tasks and transfers adds up", energy, "nJ", "expected less", "devices")


def _total(amounts: Int) -> float:
    return float(amounts.astype(np.float64).sum())
