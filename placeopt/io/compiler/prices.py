"""What tasks cost: prices of tasks and of the time on devices, due dates, and limits of metrics."""

from __future__ import annotations

from math import ceil, floor
from typing import get_args

import numpy as np

from placeopt.io.compiler.issues import Issues
from placeopt.io.compiler.resources import by_device
from placeopt.io.compiler.scales import Scales
from placeopt.io.compiler.tasks import Parts, Tasks
from placeopt.io.spec import Spec
from placeopt.model.arrays import Bool, Int
from placeopt.model.objective import IN_TICKS, UNITS
from placeopt.model.problem import NANO, UNLIMITED, Metric, ratio_ceil
from placeopt.model.ranges import LARGEST


def prices(parts: Parts, members: list[tuple[int, ...]], duration: Int, feasible: Bool) -> Int | None:
    """Return (n, m) billionths of each task on each device, which occupies the `members` of the file.

    None without prices. Larger amounts count as 2 * LARGEST, which `first_excess` reports.
    """
    free = all(device.spec.price is None for device in parts.index.devices)
    if free and next(parts.tasks.stating("price"), None) is None:
        return None
    found = np.zeros(duration.shape, dtype=np.int64)
    for d, device in enumerate(parts.index.devices):
        if device.spec.price is not None:
            num, den = parts.scales.price(device.spec.price, ("devices", device.pool, "price"))
            occupying = [c for c, team in enumerate(members) if d in team]
            ticks = duration[:, occupying]
            fits = ticks * (num / den) <= LARGEST
            cost = np.where(fits, ratio_ceil(np.where(fits, ticks, 0), num, den), 2 * LARGEST)
            found[:, occupying] = np.minimum(found[:, occupying] + cost, 2 * LARGEST)
    home = [team[0] for team in members]
    for row, name, task in parts.tasks.stating("price"):
        if task.price is not None:
            amounts = by_device(parts, task.price, ("tasks", name, "price"))
            found[row] += np.array([min(ceil(amounts[d] * NANO), 2 * LARGEST) for d in home], dtype=np.int64)
    found[~feasible] = 0
    return found


def metric_limits(spec: Spec, scales: Scales, issues: Issues) -> list[tuple[Metric, int]]:
    """Return the limits of metrics, rounded down to their units."""
    stated = {
        metric: amount for metric in get_args(Metric) if (amount := getattr(spec.limits, metric, None)) is not None
    }
    if stated and any("period" in level for level in spec.objective):
        issues.add("limits are not supported with the objective period", ("limits",))
    found: list[tuple[Metric, int]] = []
    for metric, amount in stated.items():
        path = ("limits", metric)
        if metric in IN_TICKS:
            most = scales.ticks_rounded_down(amount, path)
        elif metric == "communication":
            most = scales.capacity(amount, path)
        else:
            most = floor(amount * UNITS.get(metric, 1))
        found.append((metric, most))
    return found


def due_dates(tasks: Tasks, scales: Scales) -> tuple[Int, Int]:
    """Return (n,) due dates, rounded down to ticks, and (n,) their weights."""
    due = np.full(len(tasks), UNLIMITED, dtype=np.int64)
    weight = np.ones(len(tasks), dtype=np.int64)
    for row, name, task in tasks.stating("due"):
        if task.due is not None:
            due[row] = scales.ticks_rounded_down(task.due.by, ("tasks", name, "due", "by"))
            weight[row] = task.due.weight
    return due, weight
