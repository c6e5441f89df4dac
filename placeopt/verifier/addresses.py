"""The rule `address`: where buffers lie in the memory of their devices.

Of a task, the `resident` bytes are live during the whole schedule, `scratch` in [start, end) and `output` in [start,
freed), as for the rule `memory`. A buffer of 0 bytes, or one that is live at no tick, may lie anywhere.

An output that may share the bytes of another one on its device, its base, shares them if it begins at the stated byte
of it and both are live at one tick. All outputs that share bytes are one buffer, which is live as long as any of them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from placeopt.model.problem import UNLIMITED
from placeopt.verifier.report import Rule, Violation
from placeopt.verifier.view import View, freed_ticks


@dataclass(frozen=True, slots=True)
class _Buffer:
    """A buffer of a task: bytes [low, high) of its device from tick `begin` to before tick `end`."""

    task: int
    kind: str
    name: str
    low: int
    high: int
    begin: int
    end: int

    def __str__(self) -> str:
        return f"{self.name} at [{self.low}, {self.high})"


def address(view: View) -> Iterator[Violation]:
    """address: if the problem has an alignment a, each buffer of s bytes has an offset o with 0 <= o, o + s <= capacity
    and o = 0 mod a, and [o, o + s) and [o', o' + s') do not overlap for buffers of a device that are live at one tick.
    No buffer contains a reserved byte. At the start of an output that shares bytes and is not a view, no other task
    needs any bytes of its buffer.

    Of overlaps, each buffer is reported with one that begins no later: the one with which it shares most bytes. The
    amount is the number of these bytes, or of those outside the memory.
    """
    alignment, offsets = view.problem.alignment, view.schedule.offsets
    if alignment is None:
        if offsets is not None:
            yield Violation(Rule.ADDRESS, "the schedule has offsets, but the problem asks for no addresses")
        return
    if offsets is None:
        yield Violation(Rule.ADDRESS, "the schedule has no offsets; the problem asks for those of all buffers")
        return
    shape = (view.problem.n_tasks,)
    for kind in ("resident", "output", "scratch"):
        if (found := getattr(offsets, kind).shape) != shape:
            yield Violation(Rule.ADDRESS, f"the offsets of {kind} have shape {found}; expected {shape}")
            return
    layout = view.problem.layout
    for device, buffers in enumerate(_buffers(view)):
        name, capacity = view.problem.device_names[device], int(view.problem.capacity[device])
        if layout is not None:
            bases = _bases(layout.rows(), buffers)
            yield from _overwritten(view, bases)
            buffers = _joined(buffers, bases)
        for each in buffers:
            task, where = each.task, f"{each} of {name}"
            if each.low < 0:
                message = f"{where} begins before offset 0: {-each.low} bytes outside"
                yield Violation(Rule.ADDRESS, message, task=task, device=device, amount=-each.low)
            if capacity != UNLIMITED and each.high > capacity:
                over = each.high - capacity
                message = f"{where} ends above its {capacity} bytes: {over} too many"
                yield Violation(Rule.ADDRESS, message, task=task, device=device, amount=over)
            if each.low % alignment:
                message = f"{where} does not begin at a multiple of {alignment}"
                yield Violation(Rule.ADDRESS, message, task=task, device=device)
            for low, high in () if layout is None else layout.reserved(device):
                taken = min(each.high, high) - max(each.low, low)
                if taken > 0:
                    message = f"{where} contains {taken} bytes of [{low}, {high}), which are reserved"
                    yield Violation(Rule.ADDRESS, message, task=task, device=device, amount=taken)
        for late, other in _overlaps(buffers):
            shared = _shared(late, other)
            message = f"{late} and {other} of {name} are both live at tick {late.begin}: {shared} bytes overlap"
            task, other_task = late.task, other.task
            yield Violation(Rule.ADDRESS, message, task=task, other_task=other_task, device=device, amount=shared)


def _buffers(view: View) -> list[list[_Buffer]]:
    """The buffers of each device that are live at some tick."""
    problem, offsets = view.problem, view.schedule.offsets
    assert offsets is not None
    freed, tasks = freed_ticks(view), np.flatnonzero(view.placed).tolist()
    first = min([0, *(int(view.start[task]) for task in tasks)])
    last = max([1, *(int(freed[task]) for task in tasks)])
    found: list[list[_Buffer]] = [[] for _ in range(problem.n_devices)]
    for task in tasks:
        start, end = int(view.start[task]), int(view.end[task])
        lives = {"resident": (first, last), "output": (start, int(freed[task])), "scratch": (start, end)}
        for kind, (begin, until) in lives.items():
            size, low = int(problem.buffer_bytes(kind)[task]), int(getattr(offsets, kind)[task])
            if size and begin < until:
                buffer = _Buffer(task, kind, f"the {kind} of {view.task(task)}", low, low + size, begin, until)
                found[int(view.device[task])].append(buffer)
    return found


def _bases(rows: list[tuple[int, int, int, bool]], buffers: list[_Buffer]) -> dict[int, dict[int, bool]]:
    """The outputs of a device that share bytes: by task the tasks of its bases, and whether it is a view of each.

    The rows are those of the layout: task, base, first byte, view.
    """
    outputs = {each.task: each for each in buffers if each.kind == "output"}
    found: dict[int, dict[int, bool]] = {}
    for task, base, at, seen in rows:
        one, other = outputs.get(task), outputs.get(base)
        if one is None or other is None or one.low != other.low + at:
            continue
        if max(one.begin, other.begin) < min(one.end, other.end):
            found.setdefault(task, {})[base] = seen
    return found


def _storages(bases: dict[int, dict[int, bool]]) -> list[set[int]]:
    """The tasks whose outputs share bytes, directly or by way of others.

    An output that begins where several bases allow it shares one of them, a view if there is one: if the others are not
    the same buffer, they overlap it.
    """
    found: list[set[int]] = []
    for task, own in sorted(bases.items()):
        joined = {task, min(own, key=lambda base: (not own[base], base))}
        apart = [each for each in found if not each & joined]
        found = [*apart, joined.union(*(each for each in found if each & joined))]
    return found


def _derives(bases: dict[int, dict[int, bool]], task: int, base: int) -> bool:
    """Whether the output of a task is another one, or has its bytes from it."""
    waiting, seen = [task], set[int]()
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            waiting += bases.get(one, ())
    return base in seen


def _overwritten(view: View, bases: dict[int, dict[int, bool]]) -> Iterator[Violation]:
    """Outputs that overwrite bytes which another task needs afterwards."""
    for storage in _storages(bases):
        for task in sorted(storage & bases.keys()):
            start = int(view.start[task])
            for other in () if any(bases[task].values()) else sorted(storage):
                needed = start if _derives(bases, other, task) else _needed(view, other, task)
                if needed > start:
                    message = (
                        f"the output of {view.task(task)} overwrites at tick {start} that of {view.task(other)}, which "
                        f"is needed until tick {needed}"
                    )
                    yield Violation(Rule.ADDRESS, message, task=task, other_task=other, amount=needed - start)


def _needed(view: View, task: int, without: int) -> int:
    """The first tick at which no consumer, one of them excepted, needs the output of a task any more."""
    needed = int(view.end[task])
    for edge in np.flatnonzero(view.known & (view.problem.edge_source == task)).tolist():
        target = int(view.problem.edge_target[edge])
        if target != without:
            needed = max(needed, int(view.arrival[edge] if view.moves[edge] else view.end[target]))
    return needed


def _joined(buffers: list[_Buffer], bases: dict[int, dict[int, bool]]) -> list[_Buffer]:
    """The buffers of a device, those that share bytes as one."""
    outputs = {each.task: each for each in buffers if each.kind == "output"}
    found = [each for each in buffers if each.kind != "output"]
    for storage in _storages(bases):
        members = [outputs.pop(task) for task in sorted(storage)]
        first = next(each for each in members if each.task not in bases)
        found.append(
            replace(
                first, low=min(each.low for each in members), high=max(each.high for each in members),
                begin=min(each.begin for each in members), end=max(each.end for each in members),
            )
        )  # fmt: skip
    return [*found, *outputs.values()]


def _shared(one: _Buffer, other: _Buffer) -> int:
    """The number of addresses that are in both; not positive if none is."""
    return min(one.high, other.high) - max(one.low, other.low)


def _overlaps(buffers: list[_Buffer]) -> Iterator[tuple[_Buffer, _Buffer]]:
    """Each buffer that overlaps one that began no later and is still live, with the one that shares most with it.

    A sweep over the ticks, where ends come before begins. While all live buffers lie apart, only the neighbours of a
    new one can overlap it.
    """
    events = [(buffer.end, 0, buffer.low, k) for k, buffer in enumerate(buffers)]
    events += [(buffer.begin, 1, buffer.low, k) for k, buffer in enumerate(buffers)]
    live: list[tuple[int, int]] = []  # by offset
    apart = True
    for _, begins, low, k in sorted(events):
        place = bisect_left(live, (low, k))
        if not begins:
            del live[place]
            continue
        near = live[max(place - 1, 0) : place + 1]
        if not apart or any(_shared(buffers[k], buffers[other]) > 0 for _, other in near):
            apart = False
            shared = [(_shared(buffers[k], buffers[other]), -other) for _, other in live]
            most, worst = max(shared, default=(0, 0))
            if most > 0:
                yield buffers[k], buffers[-worst]
        insort(live, (low, k))
