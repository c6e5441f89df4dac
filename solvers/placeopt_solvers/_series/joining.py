"""Join schedules of blocks to a schedule of the whole problem, within the memory of its devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import UNLIMITED, Problem, devices_by_class
from placeopt.model.schedule import Schedule, Transfers

from .arcs import NEVER, Arc, Arcs, Known
from .cuts import Series


@dataclass(frozen=True, slots=True, eq=False)
class _Partial:
    """A path up to a cut: its ticks, the device of the cut, free bytes by device, and how it got there."""

    ticks: int
    device: int
    room: Int
    before: _Partial | None = None
    known: Known | None = None
    real: Int | None = None  # device in the problem of each device of the block problem


def joined(
    problem: Problem,
    series: Series,
    blocks: list[Arcs],
    bounded: Bool,
    guide: Sequence[tuple[Arc, Known | None]],
    width: int,
    below: int,
) -> Schedule | None:
    """Return a short schedule that consists of known schedules of blocks and fits into memory; None if none is found.

    A beam search over the cuts: partial paths are sorted by their ticks and the least ticks of known schedules after
    them; `width` of them whose sum is less than `below` are kept at each cut. Without memory that can bind, the first
    one is the shortest path. The partial path along `guide`, a known schedule of an arc for each block, is kept, too.
    """
    after = _remaining(blocks)
    if 0 not in after[0]:
        return None
    members = devices_by_class(problem)
    beam = [_Partial(0, -1, np.where(bounded, problem.capacity, UNLIMITED))]
    guided: _Partial | None = beam[0]
    for k, arcs in enumerate(blocks):
        options: dict[int, list[tuple[Arc, Known]]] = {}
        each = [(arc, known) for arc in arcs.arcs if arc.end in after[k + 1] for known in arc.known]
        for arc, known in sorted(each, key=lambda each: each[1].ticks):
            options.setdefault(arc.start, []).append((arc, known))
        found: list[tuple[int, _Partial]] = []
        followed: list[_Partial] = []
        for partial in beam:
            start = 0 if partial.device < 0 else int(problem.device_class[partial.device])
            for arc, known in options.get(start, ()):
                if partial.ticks + known.ticks + after[k + 1][arc.end] >= below:
                    continue
                for step in _steps(problem, arc, known, partial, members, bounded):
                    found.append((step.ticks + after[k + 1][arc.end], step))
                    if partial is guided and arc is guide[k][0] and known is guide[k][1]:
                        followed.append(step)
        found.sort(key=lambda each: each[0])
        beam = _distinct(problem, [step for _, step in found], width)
        guided = followed[0] if followed else None
        if guided is not None and guided not in beam:
            beam.append(guided)
        if not beam:
            return None
    return _schedule(problem, series, blocks, min(beam, key=lambda partial: partial.ticks))


def _remaining(blocks: list[Arcs]) -> list[dict[int, int]]:
    """Return the least ticks of known schedules from each class of each cut to the end."""
    after: list[dict[int, int]] = [{0: 0}]
    for arcs in reversed(blocks):
        near: dict[int, int] = {}
        for arc in arcs.arcs:
            if arc.known and arc.end in after[-1]:
                near[arc.start] = min(near.get(arc.start, NEVER), arc.known[0].ticks + after[-1][arc.end])
        after.append(near)
    return after[::-1]


def _steps(
    problem: Problem, arc: Arc, known: Known, partial: _Partial, members: list[list[int]], bounded: Bool
) -> list[_Partial]:
    """Return the paths that continue a path with a schedule of an arc, on the roomiest and on the fullest device."""
    here, used = partial.device, known.held
    x, y = arc.devices
    if y < 0:
        ends = [-1]
    elif arc.same and x >= 0:
        ends = [here]
    else:
        ends = [d for d in members[arc.end] if d != here]
    if len(ends) > 1:
        fitting = sorted((d for d in ends if partial.room[d] >= used[y]), key=lambda d: (-partial.room[d], d))
        fullest = [d for d in fitting[-1:] if partial.room[d] < partial.room[fitting[0]]]
        ends = fitting[:1] + fullest
    found = []
    for end in ends:
        real = _real_devices(problem, members, (x, y), (here, end), used, partial.room)
        room = partial.room.copy()
        room[real] -= np.where(bounded[real], used, 0)
        if (room >= 0).all():
            found.append(_Partial(partial.ticks + known.ticks, end, room, partial, known, real))
    return found


def _real_devices(
    problem: Problem, members: list[list[int]], examples: tuple[int, int], ends: tuple[int, int], used: Int, room: Int
) -> Int:
    """Return a device of the same class for each device of a block problem; the others so that the fullest fit best."""
    real = np.full(problem.n_devices, -1, dtype=np.int64)
    taken = set()
    for example, end in zip(examples, ends, strict=True):
        if example >= 0:
            real[example] = end
            taken.add(end)
    for devices in members:
        fullest = sorted((d for d in devices if real[d] < 0), key=lambda d: (-used[d], d))
        roomiest = sorted((d for d in devices if d not in taken), key=lambda d: (-room[d], d))
        real[fullest] = roomiest
    return real


def _distinct(problem: Problem, partials: list[_Partial], width: int) -> list[_Partial]:
    """Return the first paths that no earlier one dominates: the same class of device, and at least as much room."""
    kept: list[tuple[Int, _Partial]] = []
    for partial in partials:
        if len(kept) >= width:
            break
        key = _rooms(problem, partial)
        if not any(len(other) == len(key) and (other >= key).all() and other[0] == key[0] for other, _ in kept):
            kept.append((key, partial))
    return [partial for _, partial in kept]


def _rooms(problem: Problem, partial: _Partial) -> Int:
    """Return the class and the room of the last device, and the rooms of the others, sorted within their classes."""
    here, label = partial.device, problem.device_class
    others = np.arange(problem.n_devices) != here
    order = np.lexsort((partial.room[others], label[others]))
    last = (-1, 0) if here < 0 else (int(label[here]), int(partial.room[here]))
    return np.concatenate((last, partial.room[others][order]))


def _schedule(problem: Problem, series: Series, blocks: list[Arcs], end: _Partial) -> Schedule:
    """Return the schedule of a path through all blocks."""
    steps: list[_Partial] = []
    at: _Partial | None = end
    while at is not None and at.known is not None:
        steps.append(at)
        at = at.before
    n = problem.n_tasks
    device, start = np.full(n, -1, dtype=np.int64), np.zeros(n, dtype=np.int64)
    edges, sent = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for arcs, step in zip(blocks, reversed(steps), strict=True):
        assert step.known is not None
        assert step.before is not None
        assert step.real is not None
        part, begin = arcs.part, step.before.ticks
        known = step.known.schedule
        if known is None:
            if part.last >= 0:
                last = part.tasks[part.last]
                device[last] = step.device
                start[last] = step.ticks - problem.duration[last, step.device]
            if len(part.edges) and step.device != step.before.device:
                edges.append(part.edges)
                sent.append(np.array([begin]))
            continue
        new = np.arange(len(part.tasks)) != part.first
        device[part.tasks[new]] = step.real[known.device[new]]
        start[part.tasks[new]] = begin + known.start[new]
        if known.transfers is not None:
            edges.append(part.edges[known.transfers.edge])
            sent.append(begin + known.transfers.start)
    _place_loose(problem, series.loose, device, end.room)
    ports = problem.contends
    return Schedule(device, start, Transfers(np.concatenate(edges), np.concatenate(sent)) if ports else None)


def _place_loose(problem: Problem, loose: Int, device: Int, room: Int) -> None:
    """Place each task in no block on a device of a neighbour, if it fits there, else where there is most room."""
    room = room.copy()
    for i in loose.tolist():
        out = problem.edge_target[problem.out_start[i] : problem.out_start[i + 1]]
        into = problem.edge_source[problem.in_edge[problem.in_start[i] : problem.in_start[i + 1]]]
        near = [int(d) for d in device[np.concatenate((out, into))] if d >= 0]
        able = np.flatnonzero(problem.feasible[i]).tolist()
        fitting = [d for d in near if d in able and room[d] >= problem.memory[i]]
        device[i] = fitting[0] if fitting else max(able, key=lambda d: room[d])
        room[device[i]] -= problem.memory[i]
