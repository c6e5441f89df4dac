"""Compute data of charts over time: shares and maxima per time slice, and the line of a critical path."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.model.arrays import Float, Int
from placeopt.model.critical_path import Step
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, durations


def slices(end: int, count: int) -> Float:
    """Return (count + 1,) ticks that divide [0, end) into slices of equal length."""
    return np.linspace(0.0, max(end, 1), count + 1)


def busy_shares(problem: Problem, schedule: Schedule, task: Int, device: Int, edges: Float) -> Float:
    """Return (m, k) the share of each time slice that each device computes; above 1 where tasks overlap.

    Tasks (b,) occupy devices (b,). `edges` (k + 1,) are the ticks between the slices.
    """
    end = schedule.start + durations(problem, schedule.device)
    by_device = np.argsort(device, kind="stable")
    parts = np.searchsorted(device[by_device], np.arange(problem.n_devices + 1))
    rows = [task[by_device[parts[d] : parts[d + 1]]] for d in range(problem.n_devices)]
    return np.array([mean_active(schedule.start[own], end[own], edges) for own in rows]).reshape(-1, len(edges) - 1)


def mean_active(start: Int, end: Int, edges: Float) -> Float:
    """Return (k,) the mean number of intervals [start, end) that are active in each slice.

    Let F(t) be the total active time before t: the sum of t - s over starts s < t, minus the same sum over ends. The
    mean of a slice is the difference of F between its edges, divided by its length. Exact; O((n + k) log n).
    """

    def elapsed(moments: Int) -> Float:
        moments = np.sort(moments)
        count = np.searchsorted(moments, edges)
        total = np.concatenate(([0.0], np.cumsum(moments, dtype=np.float64)))
        return np.asarray(count * edges - total[count], dtype=np.float64)

    return np.asarray(np.diff(elapsed(start) - elapsed(end)) / np.diff(edges), dtype=np.float64)


def highest(ticks: Int, level: Int, edges: Float) -> Int:
    """Return (k,) the maximum in each slice of a level that is level[i] from ticks[i] on, and 0 before."""
    values = np.concatenate((np.zeros(1, dtype=np.int64), level))
    first = np.searchsorted(ticks, edges[:-1], side="right")  # the level at the start of the slice
    last = np.searchsorted(ticks, edges[1:], side="left")
    most = values[first]
    slice_of = np.repeat(np.arange(len(first)), last - first)
    inside = np.arange(len(slice_of)) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
    np.maximum.at(most, slice_of, values[first[slice_of] + inside + 1])
    return most


def step_area(edges: Float, values: Float, floor: float) -> Float:
    """Return corners (k, 2) of the area between `floor` and steps: values[i] from edges[i] to edges[i + 1]."""
    change = np.flatnonzero(np.diff(values)) + 1  # equal adjacent steps are merged
    begin, end = edges[np.concatenate(([0], change))], edges[np.concatenate((change, [len(values)]))]
    height = values[np.concatenate(([0], change))]
    x = np.stack([begin, end], axis=1).ravel()
    return np.stack(
        [np.concatenate((x, [edges[-1], edges[0]])), np.concatenate((np.repeat(height, 2), [floor, floor]))], axis=1
    )


def path_line(problem: Problem, path: Sequence[Step]) -> list[tuple[str, int, int, int, int]]:
    """Return the steps of a path as (kind, start, end, task at the start, task at the end), ticks and indices."""
    ends = [step.task if step.edge is None else int(problem.edge_target[step.edge]) for step in path]
    return [(step.kind, step.start, step.end, step.task, end) for step, end in zip(path, ends, strict=True)]
