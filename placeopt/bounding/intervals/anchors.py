"""Raise the heads of few tasks by quick bounds of all their ancestors.

Small parts do not contain the congestion of long pipelines, such as the layers of an LSTM before an attention. The
*anchors* are the tasks with the largest load before and behind them together. The load is the work of the ancestors or
descendants divided among the devices, their work in one colocation group, or the head or tail, whichever is largest.
"""

from __future__ import annotations

import numpy as np

from placeopt.bounding.intervals.packing import grouped, packed_bound
from placeopt.bounding.intervals.parts import FAR
from placeopt.bounding.intervals.passes import Heads
from placeopt.bounding.quick import best_bound, narrowed_classes
from placeopt.bounding.quick.paths import windows
from placeopt.model.arrays import Bool, Float, Int

LARGEST = 2_500
"""Tasks above which there are no anchors: the ancestors of all tasks take 8 n² bytes."""

COUNT = 12
"""Maximum number of anchors."""

IDLE = 3
"""Anchors without a gain after which the others are left out."""


def anchors(heads: Heads, before: Bool) -> list[int]:
    """The anchors, best first; `before` (n, n) are the ancestors of each task."""
    least = np.where(heads.head < FAR, heads.classes.duration, FAR).min(axis=1)
    work = np.where(least < FAR, least, 0).astype(np.float64)
    near, far = heads.head.min(axis=1), heads.tail.min(axis=1)
    through = np.maximum(_load(heads, before, work), near) + np.maximum(_load(heads, before.T, work), far)
    chosen: list[int] = np.argsort(-through, kind="stable")[:COUNT].tolist()
    return chosen


def _load(heads: Heads, inside: Bool, work: Float) -> Float:
    """(n,) the load of the tasks `inside` (n, n) each row."""
    problem = heads.problem
    total = inside @ work / problem.n_devices
    busiest = np.zeros(len(work))
    for g in np.flatnonzero(np.bincount(problem.group) > 1).tolist():
        own = np.flatnonzero(problem.group == g)
        busiest = np.maximum(busiest, inside[:, own] @ work[own])
    return np.maximum(total, busiest)


def raise_anchor(heads: Heads, v: int, ancestors: Int) -> bool:
    """Raise the heads of a task by quick bounds of the part of all its `ancestors`, itself included, ascending.

    Returns whether the least of them is raised.
    """
    part, origin = heads.parts.before(ancestors, v, None)
    bound = int(best_bound(part).value)
    classes = narrowed_classes(part)
    if grouped(classes):
        bound = max(bound, packed_bound(classes, windows(classes), heads.should_stop))
    row = heads.head[v]
    least, open_ = int(row.min()), row < FAR
    row[open_] = np.maximum(row, origin + bound - heads.classes.duration[v])[open_]
    return int(row.min()) > least
