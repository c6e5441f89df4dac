"""Shortest paths through the blocks, with the memory of devices as resources.

**Labels.** Memory adds up over blocks under the `sum` model. A label of a path up to a cut is its length and the bytes
that the path has placed on some devices. A class with one or two devices has an amount for each device; the first one
is the device of the cut, if that is of the class. Of a larger class, only the device of the cut counts, with the bytes
since the path came to it. A block adds the least bytes of its box (`arcs`). The two devices of a class that the block
does not start from are interchangeable, so both ways to name them are tried.

**Claim.** The shortest length of a label at the end is a lower bound of the makespan. Proof. Take a feasible schedule,
the boxes that contain its blocks, and the names of its devices. Along them, each block is at least as long as its box's
bound (`blocks`). Each amount of a label counts distinct tasks on one device, each block with the least bytes of its
box, so it is at most the bytes of the schedule on that device, hence at most its capacity. So the labels along these
boxes are all feasible, and their length is at most the makespan. A label that is not longer and has no more bytes of
any amount dominates another; where labels are too many, several become one with the least of each number. Both keep
the bound valid. ∎ Bytes that a path left behind on a device of a larger class, and those on its devices within a block
other than the ends, are left out.

A box is divided where the bytes of its known schedule do not fit (`Arcs.split`): a schedule with fewer bytes may take
longer, one with as many counts all of them. This is the resource-constrained shortest path problem, solved by labels
(M. Desrochers, F. Soumis: A generalized permanent labelling algorithm for the shortest path problem with time windows,
INFOR 26, 1988, doi:10.1080/03155986.1988.11732063), with iterative refinement of the arcs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import UNLIMITED, Problem, devices_by_class

from .arcs import NEVER, Arc, Arcs, Box, Known

MOST = 400
"""Labels of a class at a cut above which some become one."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A box on a path, and the small classes whose two devices change names before it."""

    box: Box
    swapped: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """A path through all blocks: its length in ticks, and the step in each block."""

    length: int
    steps: tuple[Step, ...]


class Memory:
    """The amounts of memory of labels: a column for each device of a small class, and one for the device of the cut."""

    def __init__(self, problem: Problem, bounded: Bool) -> None:
        """Take the classes of the devices whose memory can bind, `bounded` (m,)."""
        self.label = problem.device_class
        self.devices = devices_by_class(problem)
        binding = [c for c, members in enumerate(self.devices) if bounded[members[0]]]
        self.small = [c for c in binding if len(self.devices[c]) <= 2]
        self.large = [c for c in binding if len(self.devices[c]) > 2]
        self.column: dict[int, int] = {}  # of the first device of each small class
        for c in self.small:
            self.column[c] = sum(len(self.devices[each]) for each in self.small[: self.small.index(c)])
        self.columns = sum(len(self.devices[c]) for c in self.small)
        limits = [int(problem.capacity[d]) for c in self.small for d in self.devices[c]]
        self.limits = np.array([*limits, UNLIMITED])
        self.largest = np.full(len(self.devices), UNLIMITED)  # of the device of the cut, by class
        for c in self.large:
            self.largest[c] = problem.capacity[self.devices[c][0]]

    def roles(self, box: Box) -> dict[int, int]:
        """Return the column of each device of a box whose memory counts; those of large classes have the last one."""
        x, y = box.devices
        found: dict[int, int] = {}
        for c in self.small:
            members = self.devices[c]
            first = next((d for d in (x, y) if d in members), members[0])
            for k, d in enumerate([first, *(each for each in members if each != first)]):
                found[d] = self.column[c] + k
        for d in (x, y):
            if d >= 0 and self.label[d] in self.large:
                found[d] = self.columns
        return found

    def swaps(self, box: Box) -> Iterator[tuple[int, ...]]:
        """Yield the sets of classes of two devices that may change names before a box."""
        x = box.devices[0]
        free = [c for c in self.small if len(self.devices[c]) == 2 and x not in self.devices[c]]
        for chosen in product((False, True), repeat=len(free)):
            yield tuple(c for c, swap in zip(free, chosen, strict=True) if swap)

    def order(self, swapped: tuple[int, ...]) -> list[int]:
        """Return the columns after classes have changed the names of their devices."""
        columns = list(range(self.columns + 1))
        for c in swapped:
            k = self.column[c]
            columns[k], columns[k + 1] = k + 1, k
        return columns

    def turned(self, box: Box) -> tuple[int, ...]:
        """Return the class whose names change after a box: its ends are the two devices of one class."""
        x, y = box.devices
        turns = x >= 0 and y >= 0 and x != y and self.label[x] == self.label[y] and self.label[x] in self.small
        return (int(self.label[x]),) if turns else ()


def shortest_path(blocks: list[Arcs], memory: Memory, known: int) -> Path | None:
    """Return the path of least length below `known` whose labels fit into memory; None if there is none.

    Lengths are lower bounds. Ties go to fewer bytes, then to earlier labels and boxes.
    """
    return _shortest([arcs.boxes for arcs in blocks], memory, known, relaxed=True)


def fitting(blocks: list[Arcs], memory: Memory, known: int) -> list[tuple[Arc, Known]] | None:
    """Return known schedules of a path that is shorter than `known` and fits into memory; None if none is found.

    It is the shortest one if there are never more than MOST labels. Otherwise some labels are left out.
    """
    columns = [[(arc, each) for arc in arcs.arcs for each in arc.known] for arcs in blocks]
    boxes = [
        [Box(arc, dict(enumerate(each.held.tolist())), {}, each.ticks) for arc, each in options] for options in columns
    ]
    path = _shortest(boxes, memory, known, relaxed=False)
    if path is None:
        return None
    origin = [
        {id(box): option for box, option in zip(row, options, strict=True)}
        for row, options in zip(boxes, columns, strict=True)
    ]
    return [of[id(step.box)] for of, step in zip(origin, path.steps, strict=True)]


def _shortest(blocks: list[list[Box]], memory: Memory, known: int, *, relaxed: bool) -> Path | None:
    """Return the path of least length; `relaxed`: labels that are too many become one, else some are left out."""
    after = _distances(blocks)[1]
    held = np.zeros((1, memory.columns + 1), dtype=np.int64)
    labels = _Labels(np.zeros(1, np.int64), np.zeros(1, np.int64), held)
    stages: list[tuple[Int, list[Step]]] = []
    for boxes, rest in zip(blocks, after[1:], strict=True):
        labels, before, steps = _extended(labels, boxes, memory, rest, known, relaxed=relaxed)
        if not steps:
            return None
        stages.append((before, steps))
    at = int(np.lexsort((labels.held.sum(axis=1), labels.ticks))[0])
    total, found = int(labels.ticks[at]), []
    for before, steps in reversed(stages):
        found.append(steps[at])
        at = int(before[at])
    return Path(total, tuple(reversed(found)))


@dataclass(frozen=True, slots=True, eq=False)
class _Labels:
    """Labels at a cut."""

    kind: Int  # class of the device of the cut
    ticks: Int
    held: Int  # bytes by column

    def of(self, which: Int) -> _Labels:
        return _Labels(self.kind[which], self.ticks[which], self.held[which])


def _extended(
    labels: _Labels, boxes: list[Box], memory: Memory, rest: dict[int, int], known: int, *, relaxed: bool
) -> tuple[_Labels, Int, list[Step]]:
    """Return the labels after a block without dominated ones, and the label before and the step of each.

    `rest` are the least ticks from each class to the end. Labels whose paths are not below `known` are left out.
    """
    possible = [box for box in boxes if box.length < NEVER and box.end in rest]
    steps = [Step(box, swapped) for box in possible for swapped in memory.swaps(box)]
    if not steps:
        return labels, np.empty(0, dtype=np.int64), []
    ticks = np.array([step.box.length for step in steps])
    last = np.array([rest[step.box.end] for step in steps])
    low, new = np.zeros((2, len(steps), memory.columns + 1), dtype=np.int64)
    for k, step in enumerate(steps):
        x, y = step.box.devices
        for d, column in memory.roles(step.box).items():
            if column < memory.columns or d == x:
                low[k, column] = step.box.low.get(d, 0)
            if column == memory.columns and d == y != x:
                new[k, column] = step.box.low.get(d, 0)
    earlier = np.array([memory.order(step.swapped) for step in steps])
    later = np.array([memory.order(memory.turned(step.box)) for step in steps])
    start, end = (np.array([getattr(step.box, name) for step in steps]) for name in ("start", "end"))
    same = np.array([step.box.same for step in steps])
    through = labels.ticks[:, None] + ticks + last
    before, s = np.nonzero((labels.kind[:, None] == start) & (through < known))
    held = np.take_along_axis(labels.held[before], earlier[s], axis=1) + low[s]
    fits = (held <= memory.limits).all(axis=1) & (held[:, -1] <= memory.largest[start[s]])
    before, s, held = before[fits], s[fits], np.take_along_axis(held[fits], later[s[fits]], axis=1)
    held[~same[s], -1] = new[s[~same[s]], -1]
    found = _Labels(end[s], labels.ticks[before] + ticks[s], held)
    kept: list[Int] = []
    merged: list[_Labels] = []
    for kind in np.unique(found.kind).tolist():
        best = _undominated(found, np.flatnonzero(found.kind == kind))
        kept.append(best)
        merged.append(found.of(best))
        if len(best) > MOST:
            kept[-1], merged[-1] = _merged(found, best) if relaxed else _thinned(found, best)
    if not kept:
        return labels, np.empty(0, dtype=np.int64), []
    chosen = np.concatenate(kept)
    joined = _Labels(
        np.concatenate([each.kind for each in merged]),
        np.concatenate([each.ticks for each in merged]),
        np.concatenate([each.held for each in merged]),
    )
    return joined, before[chosen], [steps[k] for k in s[chosen].tolist()]


def _undominated(labels: _Labels, which: Int) -> Int:
    """Return the labels among `which` that no other dominates, by length."""
    order = which[np.lexsort((which, *labels.held[which].T, labels.ticks[which]))]
    held = labels.held[order]
    held = held[:, (held != held[0]).any(axis=0)]
    if held.shape[1] <= 1:  # a label is dominated unless it has fewer bytes than all shorter ones
        fewest = np.minimum.accumulate(held.sum(axis=1))
        return order[np.concatenate(([True], np.diff(fewest) < 0))]
    kept = np.zeros(len(order), dtype=np.int64)
    count = 0
    for k in range(len(order)):
        if not (held[kept[:count]] <= held[k]).all(axis=1).any():
            kept[count] = k
            count += 1
    return order[kept[:count]]


def _merged(labels: _Labels, which: Int) -> tuple[Int, _Labels]:
    """Join labels that are alike, in order of length, to MOST with the least of each number; each keeps one origin."""
    groups = np.array_split(which, MOST)
    first = np.array([group[0] for group in groups])
    held = np.array([labels.held[group].min(axis=0) for group in groups])
    return first, _Labels(labels.kind[first], labels.ticks[first], held)


def _thinned(labels: _Labels, which: Int) -> tuple[Int, _Labels]:
    """Keep MOST labels, evenly in the order of their length."""
    kept = which[np.linspace(0, len(which) - 1, MOST).astype(np.int64)]
    return kept, labels.of(kept)


def distances(blocks: list[Arcs]) -> tuple[list[dict[int, int]], list[dict[int, int]]]:
    """Return lower bounds of the ticks from the start to every class of every cut, and from there to the end.

    Memory that spans blocks is left out.
    """
    return _distances([arcs.boxes for arcs in blocks])


def _distances(blocks: list[list[Box]]) -> tuple[list[dict[int, int]], list[dict[int, int]]]:
    def extended(near: dict[int, int], steps: list[tuple[int, int, int]]) -> dict[int, int]:
        reached: dict[int, int] = {}
        for a, b, ticks in steps:
            if a in near:
                reached[b] = min(reached.get(b, NEVER), near[a] + ticks)
        return reached

    before: list[dict[int, int]] = [{0: 0}]
    for boxes in blocks:
        before.append(extended(before[-1], [(box.start, box.end, box.length) for box in boxes]))
    after: list[dict[int, int]] = [{0: 0}]
    for boxes in reversed(blocks):
        after.append(extended(after[-1], [(box.end, box.start, box.length) for box in boxes]))
    return before, after[::-1]
