"""Shortest paths through the blocks, with the memory of the device that a path is on.

**Labels.** Memory adds up over blocks under the `sum` model. A label of a path up to a cut is its length and the bytes
on the device of the cut that it has placed since the path came to that device. An arc to the same device adds the bytes
of its block; an arc to another device must fit beside the bytes of the old one, and starts with those on the new one.

**Claim.** The shortest length of a label at the end is a lower bound of the makespan. Proof. Take a feasible schedule
and the boxes that contain its blocks. Along them, each block is at least as long as its box's bound (`blocks`). The
bytes of a label count distinct tasks on one device, each with at least the bytes of its box, so they are at most the
bytes of the schedule on it, hence at most its capacity. So the labels along these boxes are all feasible, and their
length is at most the makespan. ∎ Bytes that a path left behind when it last changed devices, and those on devices
within a block other than its ends, are left out.

A box is divided where the bytes of its known schedule do not fit (`Arcs.split`): a schedule with fewer bytes may take
longer, one with as many counts all of them. With dominance (a label that is not longer and has no more bytes), this is
the resource-constrained shortest path problem, solved by labels with iterative refinement of states (M. Desrochers, F.
Soumis: A generalized permanent labelling algorithm for the shortest path problem with time windows, INFOR 26, 1988,
doi:10.1080/03155986.1988.11732063).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placeopt.model.arrays import Int

from .arcs import NEVER, Arcs, Box


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """A path through all blocks: its length in ticks, and the box in each block."""

    length: int
    boxes: tuple[Box, ...]


def shortest_path(blocks: list[Arcs], capacity: Int, length: Callable[[Box], int]) -> Path | None:
    """Return the path of least length whose labels respect the capacities (k,) of the device classes.

    Ties go to fewer bytes, then to earlier labels and boxes. None if there is no path.
    """
    labels = _Labels(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64))
    steps: list[tuple[Int, Int]] = []  # the label before and the box, of each label
    for arcs in blocks:
        if not arcs.boxes:
            return None
        labels, before, box = _extended(labels, arcs.boxes, capacity, length)
        if not len(before):
            return None
        steps.append((before, box))
    at = int(np.lexsort((labels.held, labels.ticks))[0])
    total, boxes = int(labels.ticks[at]), []
    for arcs, (before, box) in zip(reversed(blocks), reversed(steps), strict=True):
        boxes.append(arcs.boxes[box[at]])
        at = int(before[at])
    return Path(total, tuple(reversed(boxes)))


@dataclass(frozen=True, slots=True, eq=False)
class _Labels:
    """Labels at a cut, sorted by class, bytes and ticks."""

    kind: Int  # class of the device
    ticks: Int
    held: Int  # bytes


def _extended(
    labels: _Labels, boxes: list[Box], capacity: Int, length: Callable[[Box], int]
) -> tuple[_Labels, Int, Int]:
    """Return the labels after a block without dominated ones, and the label and the box that each comes from."""
    columns = [(box.start, box.end, box.same, *box.low, length(box)) for box in boxes]
    start, end, same, low, low_end, ticks = (np.array(column) for column in zip(*columns, strict=True))
    held = labels.held[:, None] + low
    possible = (labels.kind[:, None] == start) & (held <= capacity[start]) & (ticks < NEVER)
    before, box = np.nonzero(possible)
    found = _Labels(end[box], labels.ticks[before] + ticks[box], np.where(same[box], held[before, box], low_end[box]))
    order = np.lexsort((found.ticks, found.held, found.kind))
    kept = []
    for each in np.split(order, np.flatnonzero(np.diff(found.kind[order])) + 1):
        shortest = np.minimum.accumulate(found.ticks[each])
        kept.append(each[np.concatenate(([True], np.diff(shortest) < 0))] if len(each) else each)
    kept_all = np.concatenate(kept)
    return (
        _Labels(found.kind[kept_all], found.ticks[kept_all], found.held[kept_all]),
        before[kept_all],
        box[kept_all],
    )


def distances(blocks: list[Arcs]) -> tuple[list[dict[int, int]], list[dict[int, int]]]:
    """Return lower bounds of the ticks from the start to every class of every cut, and from there to the end.

    Memory that spans blocks is left out.
    """

    def relaxed(near: dict[int, int], steps: list[tuple[int, int, int]]) -> dict[int, int]:
        reached: dict[int, int] = {}
        for a, b, ticks in steps:
            if a in near:
                reached[b] = min(reached.get(b, NEVER), near[a] + ticks)
        return reached

    before: list[dict[int, int]] = [{0: 0}]
    for arcs in blocks:
        before.append(relaxed(before[-1], [(box.start, box.end, box.length) for box in arcs.boxes]))
    after: list[dict[int, int]] = [{0: 0}]
    for arcs in reversed(blocks):
        after.append(relaxed(after[-1], [(box.end, box.start, box.length) for box in arcs.boxes]))
    return before, after[::-1]
