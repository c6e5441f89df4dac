"""The numbers behind pictures over time: shares per slice of time, highest levels per slice, the line of a path."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.model.arrays import Float, Int
from placeopt.model.critical_path import Step
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, durations


def slices(end: int, count: int) -> Float:
    """(count + 1,) ticks that cut [0, end) into slices of one length."""
    return np.linspace(0.0, max(end, 1), count + 1)


def busy_shares(problem: Problem, schedule: Schedule, edges: Float) -> Float:
    """(m, k) share of each slice of time that each device computes; above 1 where tasks overlap.

    `edges` (k + 1,) are the ticks between the slices.
    """
    end = schedule.start + durations(problem, schedule.device)
    by_device = np.argsort(schedule.device, kind="stable")
    parts = np.searchsorted(schedule.device[by_device], np.arange(problem.n_devices + 1))
    rows = [by_device[parts[d] : parts[d + 1]] for d in range(problem.n_devices)]
    return np.array([mean_active(schedule.start[own], end[own], edges) for own in rows]).reshape(-1, len(edges) - 1)


def mean_active(start: Int, end: Int, edges: Float) -> Float:
    """(k,) how many of the intervals [start, end) are active in each slice, in the mean over the slice.

    Exact: F(t), the time that all intervals have been active before t, is the sum of t - s over starts s < t less that
    over ends, and a slice's mean the difference of F between its edges over its length. O((n + k) log n).
    """

    def elapsed(moments: Int) -> Float:
        moments = np.sort(moments)
        count = np.searchsorted(moments, edges)
        total = np.concatenate(([0.0], np.cumsum(moments, dtype=np.float64)))
        return np.asarray(count * edges - total[count], dtype=np.float64)

    return np.asarray(np.diff(elapsed(start) - elapsed(end)) / np.diff(edges), dtype=np.float64)


def highest(ticks: Int, level: Int, edges: Float) -> Int:
    """(k,) the highest level in each slice, of a level that changes to level[i] at ticks[i]; 0 before the first."""
    values = np.concatenate((np.zeros(1, dtype=np.int64), level))
    first = np.searchsorted(ticks, edges[:-1], side="right")  # what holds where the slice begins
    last = np.searchsorted(ticks, edges[1:], side="left")
    most = values[first]
    slice_of = np.repeat(np.arange(len(first)), last - first)
    inside = np.arange(len(slice_of)) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
    np.maximum.at(most, slice_of, values[first[slice_of] + inside + 1])
    return most


def step_area(edges: Float, values: Float, floor: float) -> Float:
    """(k, 2) corners of the area between `floor` and steps: values[i] from edges[i] to edges[i + 1]."""
    change = np.flatnonzero(np.diff(values)) + 1  # steps of one height are one
    begin, end = edges[np.concatenate(([0], change))], edges[np.concatenate((change, [len(values)]))]
    height = values[np.concatenate(([0], change))]
    x = np.stack([begin, end], axis=1).ravel()
    return np.stack(
        [np.concatenate((x, [edges[-1], edges[0]])), np.concatenate((np.repeat(height, 2), [floor, floor]))], axis=1
    )


def path_line(problem: Problem, schedule: Schedule, path: Sequence[Step]) -> list[tuple[str, int, int, int, int]]:
    """The path's pieces as (kind, start, end, device at the start, device at the end), ticks and indices."""
    device = schedule.device.tolist()
    return [
        (
            step.kind,
            step.start,
            step.end,
            device[step.task],
            device[step.task] if step.edge is None else device[int(problem.edge_target[step.edge])],
        )
        for step in path
    ]
